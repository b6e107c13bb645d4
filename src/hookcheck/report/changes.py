"""The changelog of PyTorch's hooks, in Markdown: release by release, what changed against the one that was run before.

It is a pure function of the records; only the addresses that reasons rest on come from the ledger.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from packaging.version import Version

from hookcheck.contract.clause import CLAIM, PIN
from hookcheck.record.changes import (
    AS_EXPECTED,
    CHANGED,
    DISAPPEARED,
    MENDED,
    NEW,
    NEWLY_OFFERED,
    NO_LONGER_OFFERED,
    PIN_CHANGED,
)
from hookcheck.record.compare import Comparison, Group, compare
from hookcheck.record.model import PlannedClause, Record, public_version
from hookcheck.releases import releases
from hookcheck.report.accounts import some

WORDS = 160
"""How many characters of what was expected and observed are shown."""

_HEADS = {
    "silent": "Silent wrong values",
    "not called": "Hooks that are not called",
    "called otherwise": "Hooks that are called otherwise",
    "exception": "Exceptions",
    "warning": "Warnings",
    "memory": "Memory",
    "rounding": "Rounding",
    "": "What is offered",
}


def changes(records: Sequence[Record], links: Mapping[str, str], varying: Collection[str] = ()) -> str:
    """The text of ``changes.md``, the newest release first; ``links`` are the addresses of the ledger's entries by id,
    ``varying`` those entries that show now and then."""
    by_device: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda r: (r.header.device, Version(r.header.torch.version))):
        by_device.setdefault(record.header.device, []).append(record)
    lines = [
        "# What changed for hooks, release by release",
        "",
        "Made by `hookcheck support --write` from the records in `reports/records`. Each release is compared with the "
        "one before it that was run, on what ran in both; what costs its users most comes first. `hookcheck diff` "
        "compares any two.",
        "",
    ]
    for device, ordered in by_device.items():
        pairs = [compare(before, after, varying=varying) for before, after in zip(ordered, ordered[1:])]
        for comparison in reversed(pairs):
            lines += _release(comparison, device, links)
        first = ordered[0].header
        lines += [f"## torch {public_version(first.torch.version)} on {device}", "", "The oldest that was run.", ""]
    return "\n".join(lines)


def _release(comparison: Comparison, device: str, links: Mapping[str, str]) -> Iterator[str]:
    before, after = (public_version(header.torch.version) for header in (comparison.before, comparison.after))
    yield f"## torch {after} on {device}, against {before}"
    yield ""
    yield f"{_count(comparison.compared, 'case')} ran in both. {_between(before, after)}".rstrip()
    clauses = {clause.id: clause for clause in comparison.after.plan.clauses}
    yield ""
    if not comparison.groups:
        yield "Nothing changed."
        yield ""
    ordered = sorted(comparison.groups, key=lambda group: list(_HEADS).index(group.cause.cost))
    for cost, groups in groupby(ordered, key=lambda group: group.cause.cost):
        yield f"### {_HEADS[cost]}"
        yield ""
        for text in dict.fromkeys(_item(group, clauses, links) for group in groups):
            yield f"- {text}"
        yield ""


def _between(before: str, after: str) -> str:
    """Which releases between the two have not been run, so that the change may be theirs."""
    known = [r.torch for r in releases() if Version(before) < Version(r.torch) < Version(after)]
    return f"Not run between them: {', '.join(known)}." if known else ""


def _item(group: Group, clauses: Mapping[str, PlannedClause], links: Mapping[str, str]) -> str:
    cause = group.cause
    link = f" [Why]({links[cause.ledger]})." if cause.ledger in links and cause.ledger else ""
    return markdown(sentence(group, clauses)) + link


def sentence(group: Group, clauses: Mapping[str, PlannedClause]) -> str:
    """One group of a comparison in words: what was promised, what has become of it, and where."""
    cause, example = group.cause, group.example
    clause = clauses.get(cause.clause)
    where = f"{_count(group.cases, 'case')}, {some(group.kinds, 'hook kinds', 3)}"
    if clause is None:
        reason = cause.reason.partition(": ")[2] or cause.reason
        new = cause.status == NEWLY_OFFERED and " came with torch " in reason
        return f"{'New' if new else _OFFERED[cause.status]}: {reason} ({where})."
    if cause.reason:
        return f"{clause.id} has lost its say: {cause.reason} ({where})."
    beginning = _BEGINNINGS[cause.status].format("a pin" if clause.rank == PIN else _RANKS.get(clause.rank, "promised"))
    gone = example.after == AS_EXPECTED
    seen = _seen(cause.gap, example.expected, example.before if gone else example.after)
    return f"{beginning} {clause.id}, “{clause.statement}” {'Before' if gone else 'Now'}: {seen} ({where})."


_RANKS = {CLAIM: "claimed"}

_BEGINNINGS = {
    NEW: "No longer as {}:",
    CHANGED: "Deviates otherwise than before:",
    PIN_CHANGED: "Changed, though nothing promised it:",
    MENDED: "Mended:",
    DISAPPEARED: "No longer judged:",
}

_OFFERED = {
    NEWLY_OFFERED: "Runs now, and did not before",
    NO_LONGER_OFFERED: "No longer offered",
    DISAPPEARED: "No longer run",
}


def _seen(gap: str, expected: str, observed: str) -> str:
    if not observed or observed == gap:
        return gap
    return f"{gap}: {cut(observed)}" + (f" instead of {cut(expected)}" if expected else "")


def cut(text: str) -> str:
    """``text`` on one line of at most `WORDS` characters, cut between words."""
    return textwrap.shorten(text, WORDS, placeholder=" …")


def markdown(text: str) -> str:
    """``text`` as Markdown that shows it as it is; what stands in double backticks is code."""
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    parts = printable.split("``")
    if len(parts) % 2 == 0:
        return _escaped(printable)
    return "".join(f"`` {part} ``" if place % 2 else _escaped(part) for place, part in enumerate(parts))


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in r"\`*_[]<>|#~" else c for c in text).replace("&", "&amp;")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
