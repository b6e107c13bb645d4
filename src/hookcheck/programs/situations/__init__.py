"""Situations in which hooks are met: every kind of hook, on every host, in every context, with what may go wrong."""
