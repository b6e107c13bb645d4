"""Programs on hosts: what they make is replaced while they run, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from hookcheck.contract.clause import CLAUSES, PIN, Clause, Subject
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs import nets, watching
from hookcheck.programs.chapters.clauses_on_hosts import AS_MADE, CHAPTERS, KINDS, OPTIMIZERS, fitting
from hookcheck.programs.check import Check
from hookcheck.programs.hosting import MODULES, hosted, untrue
from hookcheck.programs.nets import net, times, weighted
from hookcheck.programs.program import Program, chapters


def makes(check: Check) -> None:
    """Makes a module by each name, and an optimizer."""
    modules = (nn.Linear(1, 1), nn.Identity(), nn.Sequential(), times(2.0), weighted(3.0), net(lambda module, x: x))
    check.equal("the modules that are marked", [hasattr(module, "mark") for module in modules], [False] * 6)
    check.true("the optimizer", not hasattr(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0), "mark"))
    check.true("what is not made by a name", not hasattr(nn.ReLU(), "mark"))
    check.true("what is made elsewhere", not hasattr(watching.nested()[0], "mark"))


HERE = Program("XX-01", PIN, "Makes.", "1.8", "nowhere", ("here",), Subject.PROGRAM, makes)


def marked(module: Any) -> Any:
    module.mark = True
    return module


def test_what_a_program_makes_is_replaced_while_it_runs() -> None:
    assert untrue(HERE, "cpu") == set()
    with hosted(HERE, dict.fromkeys(MODULES, marked)):
        assert untrue(HERE, "cpu") == {"the modules that are marked", "what is made elsewhere"}
    with hosted(HERE, {"Linear": marked}, marked):
        assert untrue(HERE, "cpu") == {"the modules that are marked", "the optimizer"}
    assert untrue(HERE, "cpu") == set()
    assert (nets.times, watching.times) == (times, times)


def test_what_is_named_is_there() -> None:
    ids = {id for id, clause in CLAUSES.items() if isinstance(clause, Clause)}
    assert {*CHAPTERS} <= {*chapters()}
    for kind in (*KINDS.values(), *OPTIMIZERS.values()):
        assert {*kind.names} <= {*MODULES}
        assert {*kind.but} <= ids | {*chapters()}
    assert {*AS_MADE} <= ids


@pytest.mark.parametrize("name", KINDS)
def test_a_host_makes_another_module_of_some_program(name: str) -> None:
    kind, differences = KINDS[name], list[bool]()

    def noted(module: Any) -> Any:
        before = (type(module), {**vars(module)}, {**module._parameters})
        other = kind.make(module)
        differences.append(other is not module or (type(other), {**vars(other)}, {**other._parameters}) != before)
        return other

    programs = [one for one in fitting(kind, CHAPTERS) if one.chapter in ("handles", "forward-hooks")]
    for one in programs:
        with hosted(one, dict.fromkeys(kind.names, noted)):
            untrue(one, "cpu")
    assert len(programs) > 15
    assert differences
    back = name.endswith("undone") or name == "hooked before"
    assert any(differences) or back  # what is undone leaves a module as it was
