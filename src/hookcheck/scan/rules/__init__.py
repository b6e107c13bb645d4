"""The table of rules. A new rule is one ``Rule`` in one of these modules."""

from __future__ import annotations

from hookcheck.scan.findings import NOTE, Scanned, ScanRule
from hookcheck.scan.rules import functions, names, places, results, since

UNUSED_IGNORE = "HKS100"


def _none(scanned: Scanned) -> tuple[()]:
    """Nothing: what no finding matches is known only when all other rules are through."""
    return ()


_IGNORES = ScanRule(
    UNUSED_IGNORE,
    NOTE,
    "A comment ignores findings of which there is none: remove it, or the id that it names.",
    "docs/scan.md",
    _none,
    bad="x = 1  # hookcheck: ignore[HKS001]\n",
    good="x = 1\n",
)

RULES: dict[str, ScanRule] = {
    rule.id: rule
    for rule in sorted(
        (*names.RULES, *since.RULES, *functions.RULES, *results.RULES, *places.RULES, _IGNORES), key=lambda r: r.id
    )
}
