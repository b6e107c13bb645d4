"""Hook engines that are wrong in one way each, for programs to catch: one module a chapter."""
