"""Many statements of the support data on one page: what changed, what is not as promised, how many hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from packaging.version import Version

from hookcheck.cli.output import Row, line, wrapped, wrapped_head
from hookcheck.contract.clause import CLAIM
from hookcheck.contract.verdict import COSTS
from hookcheck.report.prose import many

NOT_AS_STATED = ("fails", "partial", "changed")
_COST = {gap: rank for rank, gap in enumerate(COSTS)}
_COUNTED: Mapping[str, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "partial": ("holds in part", "hold in part"),
    "changed": ("is otherwise than libraries rely on", "are otherwise than libraries rely on"),
    "unknown": ("is not judged", "are not judged"),
    "not offered": ("is not offered", "are not offered"),
}
"""What is said of one and of several, by their state on the newest release."""


@dataclass(frozen=True)
class Course:
    """What a clause says of a hook kind, the newest release first, and what it said ``before`` those asked for."""

    rows: tuple[Row, ...]
    before: tuple[Row, ...] = ()

    @property
    def now(self) -> Row:
        """What it says of the newest release."""
        return self.rows[0]

    @property
    def changed(self) -> bool:
        """Whether the user of a hook may see that something is otherwise than before."""
        course = (*self.rows, *self.before)
        return len(course) > 1 and any(row["state"] in NOT_AS_STATED for row in course)


def courses(rows: Iterable[Row], since: str | None, until: str | None) -> Iterator[Course]:
    """The statements of the releases asked for, in the order in which their clauses come."""
    first, last = (version and Version(version) for version in (since, until))
    for _, those in groupby(rows, lambda row: (row["clause"], row["kind"], row["device"])):
        course = sorted(those, key=lambda row: Version(row["since"]), reverse=True)
        asked = [
            row
            for row in course
            if (not first or Version(row["last"]) >= first) and (not last or Version(row["since"]) <= last)
        ]
        if asked:
            begins = first and Version(asked[-1]["since"]) >= first
            earlier = course[course.index(asked[-1]) + 1 :][: 1 if begins else 0]
            yield Course(tuple(asked), tuple(earlier))


def overview(every: list[Course], since: str | None, until: str | None) -> str:
    """A page of courses; with ``since``, what changed in this release or in newer ones goes before the rest."""
    changed = [course for course in every if since and course.changed]
    rest = [course for course in every if course not in changed]
    wrong = [course for course in rest if course.now["state"] in NOT_AS_STATED]
    pins = [course for course in wrong if course.now["state"] == "changed"]
    claims = [course for course in wrong if course.now["class"] == CLAIM]
    parts = [
        wrapped(_counts(every, until)),
        *_section(f"changed since {since}", changed, steps=True),
        *([f"\nnothing changed since {since}"] if since and not changed else []),
        *_section("not as promised", [course for course in wrong if course not in (*pins, *claims)]),
        *_section("otherwise than libraries rely on, though nothing documents it", pins),
        *_listed("claims of tutorials and notes that do not hold, or in part", claims),
        *_listed("not judged", [course for course in rest if course.now["state"] == "unknown"]),
        *_listed("not offered", [course for course in rest if course.now["state"] == "not offered"]),
        "\n" + wrapped("--all lists what holds as well, and every cause; `hookcheck explain CLAUSE` tells all of one"),
    ]
    return "\n".join(parts)


def _counts(every: list[Course], until: str | None) -> str:
    counted = Counter(course.now["state"] for course in every)
    parts = [f"{n:,} {_COUNTED[state][n != 1]}" for state in _COUNTED if (n := counted[state])]
    newest = until or max((course.now["last"] for course in every), key=Version)
    return f"torch {newest}: of {many(len(every), 'statement')} {', '.join(parts)}."


def _section(title: str, those: list[Course], steps: bool = False) -> Iterator[str]:
    """A paragraph for all that is alike but for the hook kind, the costliest first; with the ``steps`` to it."""
    alike: dict[tuple[str, ...], dict[str, None]] = {}
    for course in sorted(those, key=_rank):
        said = f"{course.now['clause']} {_said(course.now)}", _short(course.now["statement"])
        alike.setdefault((*said, *(_steps(course) if steps else ())), {})[course.now["kind"]] = None
    if alike:
        yield f"\n{wrapped_head(title)}"
    for (head, statement, *path), kinds in alike.items():
        among = f" ({', '.join(kinds)})" if len(kinds) > 1 else ""
        yield wrapped(f"{head}{among}. {statement}", 0, 6)
        yield from (wrapped(step, 6, 8) for step in path)


def _rank(course: Course) -> tuple[bool, int]:
    costs = [_COST[cause["gap"]] for cause in course.now["causes"]]
    return course.now["state"] != "fails", min(costs, default=len(_COST))


def _said(row: Row) -> str:
    """The state of a statement, its releases, and the ways in which it is not so."""
    gaps = Counter(cause["gap"] for cause in row["causes"])
    ways = ", ".join(gap + (f" ({count} causes)" if count > 1 else "") for gap, count in gaps.items())
    when = f"since {row['since']}" if row["otherwise_after"] is None else f"from {row['since']} to {row['last']}"
    return f"{row['state']} {when}{': ' if ways else ''}{ways}"


def _steps(course: Course) -> Iterator[str]:
    """What became otherwise, with each release in which anything did."""
    path = (*course.rows, *course.before)
    for now, before in zip(path, path[1:]):
        states = f"now {now['state']}, before {before['state']}" if now["state"] != before["state"] else ""
        came, gone = _causes(now, but_not=before), _causes(before, but_not=now)
        parts = filter(None, [states, came and f"came: {came}", gone and f"gone: {gone}"])
        yield f"{now['since']}: {'; '.join(parts) or 'in other cases'}"


def _causes(row: Row, but_not: Row) -> str:
    others = [(cause["gap"], cause["ledger"]) for cause in but_not["causes"]]
    those = [(cause["gap"], cause["ledger"]) for cause in row["causes"]]
    return ", ".join(f"{gap} ({ledger or 'not explained'})" for gap, ledger in those if (gap, ledger) not in others)


def _short(statement: str) -> str:
    """A statement up to its first semicolon."""
    first, semicolon, _ = statement.partition(";")
    return f"{first} …" if semicolon else statement


def _listed(title: str, those: list[Course]) -> Iterator[str]:
    """The ids alone, by what is said of them."""
    by_note: dict[str, dict[str, None]] = {}
    for course in those:
        note = "" if course.now["causes"] else line(course.now["note"])
        by_note.setdefault(note, {})[course.now["clause"]] = None
    if by_note:
        yield f"\n{wrapped_head(title)}"
    for note, ids in by_note.items():
        yield wrapped(f"{', '.join(ids)}{f': {note}' if note else ''}", 0, 6)
