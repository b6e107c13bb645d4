"""The chapters of clauses on networks: each module is one."""
