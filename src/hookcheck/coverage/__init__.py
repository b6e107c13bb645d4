"""Coverage: which features of networks and hooks meet in the corpus, and which have not met yet."""
