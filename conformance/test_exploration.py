"""What the corpus does not hold.

New topologies of every family are drawn and held against the whole contract. What deviates in a way that the ledger
does not explain is shrunk to the smallest network that shows it, and printed as a program.
"""

from __future__ import annotations

from hookcheck.run.items import Endless, Exploration


def test_new_topologies(exploration: Exploration | Endless) -> None:
    """Every clause, on topologies that were not there before."""
    exploration.check()
