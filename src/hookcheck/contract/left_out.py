"""Which documented sentences about hooks have no clause, and why? By the id that a clause of it would have."""

LEFT_OUT: dict[str, str] = {}
