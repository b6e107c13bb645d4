"""Which deviations do we know, and why do they happen? The ledger: data in ``known/*.toml``, strict both ways.

An entry matches a deviation if all its fields do. On a run, a deviation that no entry matches is unexplained; an entry
that applies to this torch and device but matches nothing in one of its cells is stale; and one is idle with a gap or a
hook kind of its own that none of what it explains has. All three fail the run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from hookcheck.contract.clause import CLAUSES, Subject
from hookcheck.contract.finding import Finding
from hookcheck.contract.verdict import GAPS, PROGRAM, RAN, CaseResult
from hookcheck.errors import HookcheckError
from hookcheck.topology.families import FAMILIES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEVICES = ("cpu", "cuda")
FEATURES = (
    *("module", "mode", "inputs", "outputs", "steps", "last", "rank", "bias", "reached"),
    *("leaves", "asks", "roots", "ties", "writes", "layout", "mirrored", "tensor", "inside", "fact", "legacy"),
    *("order", "met", "stale", "unused", "boundaries", "program"),
    *("site", "sites", "lane", "trouble", "before", "between", "backward", "call", "context", "host", "optimizer"),
    "input",
)
PATH = Path(__file__).with_name("known")


class LedgerError(HookcheckError):
    """An entry of the ledger is not as it must be."""


@dataclass(frozen=True)
class Entry:
    """A known deviation.

    It concerns the cells clause × ``families`` (empty: all) × ``kinds`` on ``devices`` and on every torch in the
    version specifier ``torch``; in them, the subjects that have all the features in ``when`` (of each, one of the
    words given; ``a + b`` is both of them together), which deviate by one of
    the gaps ``instead``; ``says`` is a part of the text of what is observed, of an exception or a warning always;
    ``more`` is how many more calls there may be than are due (0: any number). Of programs the family is ``program`` and
    the chapter stands for the hook kind. ``why`` and ``link`` say what it rests on, ``reviewed`` when that was last
    looked at. Where a run shows now one thing and now another, ``varies`` says why: the verdict on a program is then
    the set of all gaps ``instead``, or none, and records say that whatever a run saw of it. Networks need not show it,
    and a network that shows it in one of two records alone has not changed.
    """

    id: str
    clauses: tuple[str, ...]
    kinds: tuple[str, ...]
    torch: SpecifierSet
    instead: tuple[str, ...]
    why: str
    link: str
    reviewed: date
    families: tuple[str, ...] = ()
    devices: tuple[str, ...] = DEVICES
    when: tuple[tuple[str, tuple[str, ...]], ...] = ()
    says: str = ""
    more: int = 0
    varies: str = ""

    def matches(
        self, clause: str, family: str, kind: str, finding: Finding, features: Mapping[str, frozenset[str]]
    ) -> bool:
        """Whether the entry explains a deviation with these properties."""
        return (
            clause in self.clauses
            and (not self.families or family in self.families)
            and kind in self.kinds
            and finding.gap in self.instead
            and all(_has(features.get(key, frozenset()), words) for key, words in self.when)
            and (not self.says or self.says in finding.words()[1])
            and (not self.more or finding.more <= self.more)
        )

    def cells(self) -> list[tuple[str, str, str]]:
        """Every cell (clause, family, kind) that the entry, if it names families, calls deviating."""
        return [(clause, family, kind) for clause in self.clauses for family in self.families for kind in self.kinds]


BOTH = " + "
"""Between words of a feature that a subject must have together."""


def _has(present: frozenset[str], words: tuple[str, ...]) -> bool:
    """Whether one of the ``words`` is among those ``present``, or all that one is made of."""
    return any(present.issuperset(word.split(BOTH)) for word in words)


@dataclass(frozen=True)
class Idle:
    """What an entry claims and a run does not show: one of its gaps or hook kinds, in a family where it names any."""

    entry: Entry
    claim: str
    family: str = ""


@dataclass(frozen=True)
class Ledger:
    """The entries that apply to one torch on one device."""

    entries: tuple[Entry, ...]

    def explain(
        self, clause: str, family: str, kind: str, finding: Finding, features: Mapping[str, frozenset[str]]
    ) -> str | None:
        """The id of the first entry that explains the deviation, or None."""
        entries = (*self._by_cell.get((clause, family, kind), ()), *self._anywhere.get((clause, kind), ()))
        return next((e.id for e in entries if e.matches(clause, family, kind, finding, features)), None)

    def sorts(self, id: str | None, features: Iterable[str]) -> tuple[str, ...]:
        """Those of ``features`` that tell sorts of what an entry explains apart: all if it goes by any of them."""
        return tuple(features) if id in self._sorting else ()

    @cached_property
    def _sorting(self) -> frozenset[str]:
        return frozenset(e.id for e in self.entries if {"last", "rank", "bias"} & {key for key, _ in e.when})

    def stale(self, results: Iterable[CaseResult], clause: str, family: str, kind: str) -> list[Entry]:
        """The entries that call the cell deviating and match nothing in ``results`` (the cases of that cell)."""
        entries = [e for e in self._by_cell.get((clause, family, kind), ()) if not e.varies]
        if not entries:
            return []
        seen = {d.ledger for result in results for d in result.deviations if d.clause == clause}
        return [e for e in entries if e.id not in seen]

    def varying(self, clause: str) -> Iterator[Entry]:
        """The entries by which the verdict on a program is a set of outcomes."""
        return (e for e in self.entries if e.varies and clause in e.clauses)

    def idle(self, results: Iterable[CaseResult]) -> list[Idle]:
        """What entries claim and nothing in ``results`` shows (all cases of a run, or of any record of this torch).

        An entry with families must show each of its gaps in each of those that ran, unless it `varies`. One for all
        families must show each gap in some family, and each hook kind that ran: which of its clauses it shows under
        depends on what networks a release can run, so one will do.
        """
        ran = [result for result in results if result.outcome == RAN]
        names = {(result.family, result.topology if result.family == PROGRAM else result.kind) for result in ran}
        kinds = {result.kind for result in ran}
        seen: dict[str, set[tuple[str, str]]] = {entry.id: set() for entry in self.entries}
        for result in ran:
            for d in result.deviations:
                if d.ledger in seen:
                    seen[d.ledger].update([("", d.gap), ("", result.kind), (result.family, d.gap)])
        unused = []
        for entry in self.entries:
            if not entry.families and kinds.intersection(entry.kinds):
                claims = [("", claim) for claim in (*entry.instead, *(kind for kind in entry.kinds if kind in kinds))]
            else:
                on = [f for f in entry.families if any((f, name) in names for name in (*entry.clauses, *entry.kinds))]
                claims = [(family, gap) for family in on for gap in entry.instead if not entry.varies]
            unused += [Idle(entry, claim, family) for family, claim in claims if (family, claim) not in seen[entry.id]]
        return unused

    @cached_property
    def _anywhere(self) -> dict[tuple[str, str], list[Entry]]:
        """The entries that concern each clause and kind in all families, in order."""
        by_clause: dict[tuple[str, str], list[Entry]] = {}
        for entry in self.entries:
            for clause in entry.clauses if not entry.families else ():
                for kind in entry.kinds:
                    by_clause.setdefault((clause, kind), []).append(entry)
        return by_clause

    @cached_property
    def _by_cell(self) -> dict[tuple[str, str, str], list[Entry]]:
        """The entries that concern each cell, in order."""
        by_cell: dict[tuple[str, str, str], list[Entry]] = {}
        for entry in self.entries:
            for cell in entry.cells():
                by_cell.setdefault(cell, []).append(entry)
        return by_cell


def applying(entries: Iterable[Entry], torch_version: str, device: str) -> Ledger:
    """The part of the ledger that applies to a torch and a device.

    Local version labels do not count, and a nightly counts as the release that it leads to: by the rules of version
    specifiers 2.8.0.dev1 would be neither ``<2.8`` nor ``>=2.8``.
    """
    version = Version(torch_version).base_version
    return Ledger(tuple(e for e in entries if device in e.devices and e.torch.contains(version)))


def varying(entries: Iterable[Entry]) -> frozenset[str]:
    """The ids of those entries that show now and then."""
    return frozenset(entry.id for entry in entries if entry.varies)


def load(path: Path = PATH) -> tuple[Entry, ...]:
    """Reads and checks a ledger: a file, or all files of a folder. Its clauses must be declared (`hookcheck.clauses`).

    Raises:
        LedgerError: a file does not parse, or an entry lacks a field, names something unknown, has no reason or has a
            wrong version specifier; the message names the entry and the field.
    """
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    entries = tuple(entry for file in files for entry in _entries(file))
    twice = sorted(id for id, times in Counter(entry.id for entry in entries).items() if times > 1)
    if twice:
        raise LedgerError(f"{path.name} has two entries with the id {twice[0]!r}; give each its own")
    return entries


def _entries(path: Path) -> Iterator[Entry]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LedgerError(f"{path.name} cannot be read: {error}") from None
    unknown = set(content) - {"deviation"}
    if unknown:
        raise LedgerError(f"{path.name} has unknown tables {sorted(unknown)}; entries are [[deviation]]")
    choices = _choices()
    for number, raw in enumerate(content.get("deviation", []), start=1):
        yield _entry(raw, number, choices)


_TEXTS = ("id", "torch", "why", "link")
_LISTS = ("clauses", "families", "kinds", "instead", "devices")


def _entry(raw: Mapping[str, Any], number: int, choices: Mapping[str, Collection[str]]) -> Entry:
    label = f"entry {raw.get('id', f'number {number}')!r} of the ledger"
    known = {*_TEXTS, *_LISTS, "reviewed", "when", "says", "more", "varies"}
    if set(raw) - known:
        raise LedgerError(f"{label} has unknown fields {sorted(set(raw) - known)}; known are {sorted(known)}")
    for key in _TEXTS:
        if not isinstance(raw.get(key), str) or not raw[key].strip():
            raise LedgerError(f"{label} has no {key!r}; write down {_ASKED[key]}")
    if type(raw.get("reviewed")) is not date:
        raise LedgerError(f"{label} has no 'reviewed'; write down the date of the last review, as 2026-01-31")
    if "clauses" in raw and "kinds" not in raw:
        raw = {**raw, **_of_programs(raw["clauses"], label)}
    left_out = {"devices", "families"} - raw.keys()
    lists = {key: _names(raw, key, choices[key], label) for key in _LISTS if key not in left_out}
    try:
        torch = SpecifierSet(raw["torch"])
    except InvalidSpecifier:
        raise LedgerError(f"{label}: {raw['torch']!r} is no version specifier; write as '>=1.13,<2.8'") from None
    return Entry(
        id=raw["id"],
        torch=torch,
        why=raw["why"],
        link=raw["link"],
        reviewed=raw["reviewed"],
        when=_when(raw.get("when", {}), label),
        says=_says(raw, label),
        more=_more(raw, label),
        varies=_varies(raw, label),
        **lists,
    )


def _choices() -> Mapping[str, Collection[str]]:
    """The names that each list may hold; of hook kinds and chapters of programs those that some clause speaks of."""
    return {
        "clauses": CLAUSES,
        "families": (*FAMILIES, PROGRAM),
        "kinds": dict.fromkeys(kind for clause in CLAUSES.values() for kind in clause.kinds),
        "instead": GAPS,
        "devices": DEVICES,
    }


def _of_programs(clauses: Any, label: str) -> dict[str, Any]:
    """The cells of an entry that names programs alone: where they stand is known."""
    kinds = {CLAUSES[id].kinds[0] for id in clauses if id in CLAUSES and CLAUSES[id].subject is Subject.PROGRAM}
    if len(kinds) > 1:
        raise LedgerError(f"{label} names programs of several chapters; write an entry for each")
    return {"families": [PROGRAM], "kinds": sorted(kinds)} if kinds else {}


_ASKED = {
    "id": "a short name of its own",
    "torch": "the releases that it concerns, as a version specifier",
    "why": "the reason for the deviation",
    "link": "the address of the documentation or upstream issue that the reason rests on",
}


def _names(raw: Mapping[str, Any], key: str, choices: Collection[str], label: str) -> tuple[str, ...]:
    names = raw.get(key)
    if not isinstance(names, list) or not names:
        raise LedgerError(f"{label} has no list {key!r}; choose from {_shown(choices)}")
    unknown = [name for name in names if name not in choices]
    if unknown:
        near = get_close_matches(str(unknown[0]), choices) or choices
        raise LedgerError(f"{label}: unknown name {unknown[0]!r} in {key!r}; choose from {_shown(near)}")
    return tuple(names)


def _says(raw: Mapping[str, Any], label: str) -> str:
    says = raw.get("says", "")
    talks = {"raised", "new warning"} & set(raw["instead"])
    if not isinstance(says, str) or (("says" in raw or talks) and not says.strip()):
        raise LedgerError(f"{label}: 'says' is a part of the text of what is observed; exceptions and warnings need it")
    return says


def _more(raw: Mapping[str, Any], label: str) -> int:
    more = raw.get("more", 0)
    if type(more) is not int or ("more" in raw and more < 1):
        raise LedgerError(f"{label}: 'more' is a number of calls, at least 1")
    return more


def _varies(raw: Mapping[str, Any], label: str) -> str:
    varies = raw.get("varies", "")
    if not isinstance(varies, str) or (varies and not raw.get("families")):
        raise LedgerError(f"{label}: 'varies' says why its families show now one thing and now another")
    return varies


def _shown(choices: Iterable[str]) -> str:
    """The names, or the first of very many."""
    names = list(choices)
    return ", ".join(names[:40]) + (f" and {len(names) - 40} more" if len(names) > 40 else "")


def _when(raw: Any, label: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(raw, dict) or any(key not in FEATURES for key in raw):
        raise LedgerError(f"{label}: 'when' is a table of features; choose from {', '.join(FEATURES)}")
    return tuple((key, tuple(words) if isinstance(words, list) else (words,)) for key, words in raw.items())
