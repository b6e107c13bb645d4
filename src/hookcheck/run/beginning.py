"""What is said of a run before it begins: every setting, so that a typo shows."""

from __future__ import annotations

from collections.abc import Sequence

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.verdict import PROGRAM
from hookcheck.hooks.kinds import KINDS
from hookcheck.run.plan import Request, all_families, all_kinds

FEW = 12
"""Up to so many clauses are named."""


def settings_of(asked: Request, torch: str) -> list[str]:
    """The settings in lines; of families, hook kinds and clauses those that were chosen, and where none was, how many
    there are."""
    chapters = len(all_kinds()) - len(KINDS)
    kinds = _names(asked.kinds, all_kinds(), "hook kinds", f"all {len(KINDS)} hook kinds and {chapters} chapters")
    networks = [name for name in asked.families if name != PROGRAM]
    every = [name for name in all_families() if name != PROGRAM]
    families = _names(networks, every, "families", f"all {len(every)} families") if networks else "programs alone"
    clauses = _names(asked.clauses, tuple(CLAUSES), "clauses", f"all {len(CLAUSES)} clauses", FEW)
    return [
        f"hookcheck: torch {torch}, device {', '.join(asked.devices)}, profile {asked.profile} "
        f"({asked.examples} new topologies a family, seed {asked.seed}), reports in {asked.reports}",
        f"hookcheck: {families}; {kinds}; {clauses}",
    ]


def _names(chosen: Sequence[str], every: Sequence[str], what: str, all_of_them: str, most: int = 0) -> str:
    if set(chosen) == set(every):
        return all_of_them
    return f"{len(chosen)} {what}" if most and len(chosen) > most else f"{what} {', '.join(chosen)}"
