"""Clauses about any network: what they judge, and how."""
