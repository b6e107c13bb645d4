"""The words of the contract: clauses, findings, verdicts, and the ledger of what is known to deviate."""
