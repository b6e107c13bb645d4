"""The case that is meant: a cell of a record, a clause, a topology by its id, or one in a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hookcheck.contract.clause import CLAUSES, clause_named
from hookcheck.contract.verdict import PROGRAM
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import kind_named
from hookcheck.programs.program import Program
from hookcheck.record.model import Alike, Folded
from hookcheck.repro.lookup import find
from hookcheck.topology.codec import decode
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Topology, size


@dataclass(frozen=True)
class Wanted:
    """A topology to be shown with a clause and a hook kind; ``where`` is the family, record or file that it is from."""

    topology: Topology
    where: str
    family: str
    clause: str
    kind: str


def cell(name: str) -> tuple[str, str, str]:
    """Clause, family and hook kind of a cell, which is written with slashes; of a clause alone the others are empty.

    Raises:
        HookcheckError: there is no such clause, family or kind, or the clause does not speak of that kind.
    """
    clause, family, kind, *rest = [*name.split("/"), "", ""]
    if rest[2:] or len(name.split("/")) > 3:
        raise HookcheckError(f"{name!r} is no cell: write CLAUSE/FAMILY/KIND, such as OB-08/nested/full_backward")
    known = clause_named(clause)
    if isinstance(known, Program):
        return clause, PROGRAM, known.chapter
    if family and family not in FAMILIES:
        raise HookcheckError(f"unknown family {family!r}; `hookcheck families` shows them all")
    if kind and kind_named(kind).name not in known.kinds:
        raise HookcheckError(f"clause {clause} does not speak of {kind}; choose from {', '.join(known.kinds)}")
    return clause, family, kind


def in_record(name: str, record: Folded, corpus: Path, reports: Path) -> Wanted:
    """The smallest network of a cell that deviates in a record; of several cells, that of the plainest hook kind.

    Raises:
        HookcheckError: nothing deviates there.
    """
    clause, family, kind = cell(name)
    deviating = _deviating(record.alike, clause, family, kind)
    if not deviating:
        torch = record.header.torch.version
        others = sorted(_deviating(record.alike, clause, "", ""))
        beside = f", but {clause}/{others[0][1]}/{_kinds(clause)[others[0][0]]} deviates" if others else ""
        raise HookcheckError(
            f"{name} conforms on torch {torch}, says the record: there is nothing to reproduce{beside}"
        )
    contents = {example.topology: example.content for example in record.counterexamples if example.content}
    best: tuple[tuple[int, ...], Wanted] | None = None
    for place, of_family, topology_id in deviating:
        content = contents.get(topology_id)
        if content is None and best is not None:
            continue
        topology = decode(content) if content is not None else find(topology_id, corpus, reports).topology
        weight = (place, *size(topology))
        if best is None or weight < best[0]:
            best = weight, Wanted(topology, of_family, of_family, clause, _kinds(clause)[place])
    assert best is not None
    return best[1]


def _kinds(clause: str) -> tuple[str, ...]:
    return CLAUSES[clause].kinds


def _deviating(alike: Iterable[Alike], clause: str, family: str, kind: str) -> list[tuple[int, str, str]]:
    """Place of the hook kind among those of the clause, family and topology of each case that deviates."""
    kinds = _kinds(clause)
    return [
        (kinds.index(k), group.family, topology)
        for group in alike
        if family in ("", group.family) and any(d.clause == clause for d in group.deviations)
        for k in group.kinds
        if kind in ("", k) and k in kinds
        for topology in group.topologies
    ]
