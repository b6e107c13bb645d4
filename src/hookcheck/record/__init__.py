"""What we saw: the record of one run, written, read and checked."""
