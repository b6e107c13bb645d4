"""Clauses about any network, each judged on the corpus: the same networks on every torch and device.

A chapter of clauses is a module of `hookcheck.networks.chapters`; ``--chapter firing`` runs one alone.
"""

from __future__ import annotations

from hookcheck.run.items import CellItem


def test_network(network_cell: CellItem) -> None:
    """A clause, on every topology of a family's corpus."""
    network_cell.check()
