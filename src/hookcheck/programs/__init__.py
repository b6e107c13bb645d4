"""Clauses about acts: small programs, and the machine that plays acts one after another."""
