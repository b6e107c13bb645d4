"""What is promised: clauses, verdicts, and the ledger of what is known to deviate."""
