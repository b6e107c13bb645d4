"""A static scan of source code for hooks: what registers one, and what is known to go wrong there.

Neither torch nor the scanned code is imported; only the syntax tree is read.
"""
