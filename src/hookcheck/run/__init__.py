"""One run of the suite: what is asked for, replaying, exploring, and the record that comes of it."""
