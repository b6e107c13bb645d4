"""Programs on hosts: what they make is replaced while they run, and only then."""

from __future__ import annotations

import fnmatch
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import pytest

from hookcheck.contract.clause import CLAUSES, PIN, Clause, Subject
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs import hosting, nets, watching
from hookcheck.programs.chapters.clauses_on_hosts import CHAPTERS, CHAPTERS_OF_OPTIMIZERS, fitting, is_meant
from hookcheck.programs.check import Check, NotOffered, NotRun
from hookcheck.programs.compiling import fresh
from hookcheck.programs.host_changes import offered
from hookcheck.programs.host_compiled import COMPILED
from hookcheck.programs.host_kinds import KINDS, ON_NO_HOST, Kind
from hookcheck.programs.host_optimizers import OPTIMIZERS
from hookcheck.programs.hosting import MODULES, hosted, named, untrue
from hookcheck.programs.making import makes
from hookcheck.programs.nets import net, times, weighted
from hookcheck.programs.program import Program, chapters, programs

NAMES = (*hosting.ALL_MODULES, *hosting.OPTIMIZERS)


def makes_each(check: Check) -> None:
    """Makes a module by each name, and an optimizer."""
    by_hand = (times(2.0), weighted(3.0), net(lambda module, x: x))
    modules = (nn.Linear(1, 1), nn.Identity(), nn.MSELoss(), nn.Sequential(), *by_hand)
    check.equal("the modules that are marked", [hasattr(module, "mark") for module in modules], [False] * 7)
    check.true("the optimizer", not hasattr(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0), "mark"))
    check.true("what is not made by a name", not hasattr(nn.ReLU(), "mark"))
    check.true("what is made elsewhere", not hasattr(watching.nested()[0], "mark"))


HERE = Program("XX-01", PIN, "Makes.", "1.8", "nowhere", ("here",), Subject.PROGRAM, makes_each)


def marked(module: Any) -> Any:
    module.mark = True
    return module


def test_what_a_program_makes_is_replaced_while_it_runs() -> None:
    assert set(untrue(HERE, "cpu")) == set()
    with hosted(HERE, dict.fromkeys(MODULES, marked)):
        assert set(untrue(HERE, "cpu")) == {"the modules that are marked", "what is made elsewhere"}
    with hosted(HERE, {"Linear": marked, "SGD": marked}):
        assert set(untrue(HERE, "cpu")) == {"the modules that are marked", "the optimizer"}
    assert set(untrue(HERE, "cpu")) == set()
    assert (nets.times, watching.times) == (times, times)


def makes_elsewhere(check: Check) -> None:
    """Makes modules otherwise."""
    check.true("a module", isinstance(nn.ReLU(), nn.Module))
    check.true("a part", type("Net", (nn.Module,), {"forward": lambda module, x: x})().training)


def makes_by_others(check: Check) -> None:
    """Makes modules by a table, by a function of another one, and inside of what is called later."""
    check.true("by a table", TABLE["partial"]() is not None)
    check.true("by watching", watching.linear() is not None)
    check.true("later", [lambda: weighted(1.0)] != [])


TABLE = {"partial": partial(lambda make: make(), lambda: nn.Sequential())}


def test_by_which_names_a_program_makes_something() -> None:
    names = {*MODULES, "SGD"}
    assert makes(HERE) == names
    assert makes(replace(HERE, judge=makes_elsewhere)) == frozenset()
    assert makes(replace(HERE, judge=makes_by_others)) == {"Sequential", "weighted"}


@pytest.mark.slow
@pytest.mark.parametrize("chapter", sorted({*CHAPTERS, *CHAPTERS_OF_OPTIMIZERS}))
def test_what_a_program_makes_as_it_runs_is_what_its_code_says(chapter: str) -> None:
    for one in programs(chapter):
        if one.id not in ON_NO_HOST and offered(tuple(map(int, one.since.split(".")))):
            names = set[str]()
            with suppress(NotOffered, NotRun), hosted(one, {name: partial(noted_by, names, name) for name in NAMES}):
                untrue(one, "cpu")
            assert names <= makes(one), one.id
            assert bool(names) == bool(makes(one)), one.id


def noted_by(names: set[str], name: str, other: Any) -> Any:
    names.add(name)
    return other


def test_what_is_named_is_there() -> None:
    ids = {id for id, clause in CLAUSES.items() if isinstance(clause, Clause)}
    assert {*CHAPTERS} <= {*chapters()}
    for kind in (*KINDS.values(), *COMPILED.values(), *OPTIMIZERS.values()):
        assert {*kind.names} <= {*NAMES}
        for pattern in chain(kind.but, *kind.before.values()):  # of an id, of a chapter, or of an id and a fact
            assert fnmatch.filter(ids | {*chapters()}, pattern.partition(": ")[0]), pattern
    assert {*ON_NO_HOST} <= ids


def test_a_host_leaves_out_clauses_chapters_or_single_facts() -> None:
    kind = COMPILED["OptimizedModule"]
    assert is_meant(kind, "SD-01", "state-dict-hooks") == "what is saved has other names"
    assert is_meant(kind, "HD-01", "handles") is None
    assert is_meant(kind, "HD-01: calls inside: register_module_forward_hook")
    assert is_meant(kind, "HD-01: calls inside: register_forward_hook") is None


def test_a_host_leaves_out_more_before_a_release() -> None:
    name, nothing = "HD-01: calls inside: register_module_forward_hook", {"HD-02": "not this"}
    for release, reason in (((1, 0), None), ((99, 0), "the graph is called")):
        kind = Kind(marked, but=nothing, before={release: {"HD-01: calls inside*": "the graph is called"}})
        assert (is_meant(kind, name), is_meant(kind, "HD-02")) == (reason, "not this")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*KINDS, *COMPILED])
def test_a_host_makes_another_module_of_some_program(name: str) -> None:
    kind, differences = {**KINDS, **COMPILED}[name], list[bool]()

    def noted(module: Any) -> Any:
        before = (type(module), {**vars(module)}, {**module._parameters})
        other = kind.make(module)
        differences.append(other is not module or (type(other), {**vars(other)}, {**other._parameters}) != before)
        return other

    programs = [one for one in fitting(kind, CHAPTERS) if one.chapter in ("handles", "forward-hooks")]
    with fresh() if name in COMPILED else nullcontext():
        for one in programs:
            with hosted(one, dict.fromkeys(kind.names, noted)):
                untrue(one, "cpu")
    assert programs
    assert differences
    back = name.endswith("undone") or name == "hooked before"
    assert any(differences) or back  # what is undone leaves a module as it was


def test_what_comes_to_a_module_meanwhile_stays() -> None:
    """What torch.compile made of a function calls what it put into the function's module."""
    names = {"net": 1}
    with named(names, {"net": 2}):
        assert names["net"] == 2
        names["__compiled_fn_1"] = 3
    assert names == {"net": 1, "__compiled_fn_1": 3}
