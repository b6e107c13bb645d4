"""Is it counted right what clauses judged in a record, and said why they did not run on a host?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.verdict import CRASHED
from hookcheck.programs.chapters.clauses_on_hosts import ON_HOSTS
from hookcheck.programs.host_compiled import COMPILED
from hookcheck.programs.host_kinds import KINDS, ON_NO_HOST
from hookcheck.programs.host_optimizers import DISTRIBUTED, OPTIMIZERS
from hookcheck.programs.on_hosts import OTHERWISE, by_host, by_reason, clauses_on_hosts
from hookcheck.programs.program import programs
from hookcheck.record.judged import MET, NOT_RUN, NOTHING, OTHER_HOOKS, JudgedTogether, by_axes, by_clause, judged
from hookcheck.record.model import Folded
from hookcheck.record.reading import read, read_folded
from hookcheck.suite import conformance_folder
from hookcheck.topology import corpus
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology, inside, tensor_words

RECORD = conformance_folder().parent / "reports" / "records" / "torch-2.13.0-cpu.jsonl.gz"


@cache
def topologies() -> dict[str, Topology]:
    """Those of the family that has the contexts, by id."""
    return {identify(topology): topology for topology in corpus.read(conformance_folder() / "corpus", "context")}


def in_record(record: Folded) -> dict[tuple[str, ...], JudgedTogether]:
    return {tuple(word for _, word in row.words): row for row in judged(record, topologies().values())}


@cache
def rows() -> dict[tuple[str, ...], JudgedTogether]:
    return in_record(read_folded(RECORD))


def cases(clause: str, kind: str = "", *words: str) -> int:
    """How many cases say that the clause judged a network that has the words, asked one by one."""
    return sum(
        clause in case.judged and kind in ("", case.kind) and {*words} <= having(topologies()[case.topology])
        for case in read(RECORD).cases
        if case.topology in topologies()
    )


def having(topology: Topology) -> set[str]:
    return {*inside(topology), *(tensor_words(topology) or ("plain",))}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("GI-01", "full_backward", "ddp"), ("AG-01", "tensor", "wrapper"), ("OB-01", "", "checkpoint", "subclass")],
    ids=" ".join,
)
def test_cases_are_counted(words: tuple[str, ...]) -> None:
    row = rows()[tuple(filter(None, words))]
    assert row.cases == cases(*words) > 0
    assert row.reason == ""


def test_what_is_not_judged_has_its_reason() -> None:
    assert rows()["GI-01", "tensor"].reason == OTHER_HOOKS
    assert rows()["GI-01", "tensor", "ddp"].reason == OTHER_HOOKS
    assert rows()["PL-02", "tensor"].reason == NOTHING  # it holds a GPU against the CPU
    assert rows()["AG-01", "tensor", "compile_eager"].reason == NOT_RUN  # the networks of another family
    assert "DTensor" in rows()["AG-01", "dtensor", "sparse COO"].reason
    assert all(bool(row.cases) != bool(row.reason) for row in rows().values())


def without(record: Folded, lost: Iterable[str]) -> Folded:
    """The record with networks that crashed."""
    alike = (
        replace(each, topologies=those, **({"outcome": CRASHED} if crashed else {}))
        for each in record.alike
        for crashed in (False, True)
        for those in [tuple(t for t in each.topologies if (t in lost) == crashed)]
        if those
    )
    return replace(record, alike=tuple(alike))


@pytest.mark.slow
def test_what_did_not_run_judged_nothing() -> None:
    lost = frozenset(id for id, topology in topologies().items() if "ddp" in inside(topology))
    fewer = in_record(without(read_folded(RECORD), lost))
    assert {row.reason for words, row in fewer.items() if words[1:] == ("ddp",)} == {NOT_RUN}
    assert fewer["GI-01", "checkpoint"].cases == rows()["GI-01", "checkpoint"].cases - cases(
        "GI-01", "", "ddp", "checkpoint"
    )


def test_tables_count_rows() -> None:
    tables = by_axes(rows().values())
    assert [row["axes"] for row in tables] == [" × ".join(axes) for axes in MET]
    numbers = (int(row[column].replace(",", "")) for row in tables for column in [*row][1:])
    assert sum(numbers) == len(rows())
    of_clause = next(row for row in by_clause(rows().values()) if row["clause"] == "GI-01")
    kinds = sum(1 for words in rows() if words[0] == "GI-01" and len(words) == 2 and not rows()[words].reason)
    assert sum(int(of_clause[axis].partition("/")[0]) for axis in [*of_clause][1:]) == kinds


def test_each_host_has_a_row_for_each_clause() -> None:
    on_hosts = tuple(clauses_on_hosts())
    assert {row.host for row in on_hosts} == {*KINDS, *COMPILED, *OPTIMIZERS, *DISTRIBUTED}
    assert sum(int(row[column]) for row in by_host(on_hosts) for column in [*row][1:]) == len(on_hosts)
    assert sum(row["clauses"] for row in by_reason(on_hosts)) == sum(bool(row.reason) for row in on_hosts)


def test_why_a_clause_does_not_run_on_a_host() -> None:
    on_hosts = {(row.clause, row.host): row for row in clauses_on_hosts()}
    assert on_hosts["SD-13", "ScriptModule"].reason == KINDS["ScriptModule"].but["SD-13"]
    assert on_hosts["HD-01", "replica"].reason == ""
    assert on_hosts["FW-01", "replica"].reason == OTHERWISE  # its one module has a forward of its own
    assert on_hosts["SD-01", "replica"].reason == ""
    assert "save" in on_hosts["SD-01", "pruned"].reason
    assert on_hosts["RG-04", "AveragedModel"].without[-1:] == ("* for a module",)
    assert on_hosts["RG-06", "pruned, undone"].without == ("names",)


def test_a_clause_on_modules_alone_has_no_row_for_an_optimizer_nor_the_other_way_round() -> None:
    on_hosts = {(row.clause, row.host) for row in clauses_on_hosts()}
    assert {("SZ-20", "replica"), ("SZ-09", "foreach"), ("U-13", "replica"), ("U-13", "foreach")} <= on_hosts
    assert not {("SZ-20", "foreach"), ("SZ-09", "replica")} & on_hosts


OF_HOSTS = {one for _, chapters in ON_HOSTS for chapter in chapters for one in programs(chapter)}


def test_each_clause_that_runs_on_no_host_has_its_reason() -> None:
    on_some = {row.clause for row in clauses_on_hosts() if not row.reason}
    assert {one.id for one in OF_HOSTS} - on_some == {*ON_NO_HOST}


def test_what_runs_in_a_process_of_its_own_runs_on_no_host() -> None:
    assert {one.id for one in OF_HOSTS if one.alone} <= {*ON_NO_HOST}
