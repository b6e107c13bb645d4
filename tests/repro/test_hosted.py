"""Scripts of clauses on hosts: the clause's own, in which the host makes its modules or its optimizers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import nn

from hookcheck.contract.verdict import PROGRAM
from hookcheck.programs.chapters.clauses_on_hosts import ON_HOSTS, fitting
from hookcheck.programs.host_changes import offered
from hookcheck.releases.numbers import release
from hookcheck.repro.choice import executed as executed_here
from hookcheck.repro.hosted import HOSTS, _collected, _hosted, hosted_script
from hookcheck.repro.raising import raising
from hookcheck.repro.situations.reduced import SCENES
from hookcheck.repro.writers import HOSTED, SITUATIONS, WRITERS

from .cases import PROGRAMS, executed
from .test_agreement import RECORD, limits, record

HERE = release(torch.__version__)


def deviating() -> dict[str, list[str]]:
    """Of each clause on hosts what the record of this torch has of it, in the order in which it is stated."""
    if not RECORD.exists():
        return {}
    groups = (group for group in record().alike if group.family == PROGRAM)
    deviations = [d for group in groups for d in group.deviations if d.clause in HOSTS]
    return {clause: [d.subject for d in deviations if d.clause == clause] for clause in HOSTS}


FIRST = [(clause, facts[0]) for clause, facts in deviating().items() if facts]


@pytest.mark.slow
@pytest.mark.parametrize(("clause", "fact"), FIRST)
def test_what_deviates_first_in_the_record_has_a_short_script(clause: str, fact: str) -> None:
    title, text = hosted_script(PROGRAMS[clause], None, fact, executed_here)
    limits(text.rstrip("\n"))
    assert executed(text)[0] == 1
    assert title.startswith(fact.partition(": ")[0])
    assert ": not as stated: " in title


@pytest.mark.slow
@pytest.mark.skipif(HERE < (2, 4), reason="nothing is known of it before")
def test_it_passes_where_torch_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    fact = "OptimizedModule: HD-01: calls inside: register_backward_hook"
    _, text = hosted_script(PROGRAMS["HO-07"], None, fact, executed_here)
    assert executed(text)[0] == 1
    dynamo: Any = torch._dynamo
    register = nn.Module.register_backward_hook
    monkeypatch.setattr(
        dynamo.OptimizedModule, "register_backward_hook", lambda self, hook: register(self._orig_mod, hook)
    )
    assert executed(text)[0] == 0


@pytest.mark.skipif(HERE < (2, 1), reason="it has no such optimizer")
def test_what_a_program_ends_with_is_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = hosted_script(PROGRAMS["HO-09"], None, "PostLocalSGDOptimizer: OP-01: program", executed_here)
    limits(text.rstrip("\n"))
    assert "\nregister_step_pre_hook works: expected None, observed AttributeError: " in executed(text)[1]
    assert executed(text)[1].startswith("without PostLocalSGDOptimizer: expected None, observed None")
    kind: Any = torch.distributed.optim.PostLocalSGDOptimizer  # type: ignore[attr-defined]
    monkeypatch.setattr(kind, "register_step_pre_hook", lambda self, hook: self.optim.register_step_pre_hook(hook))
    assert executed(text)[0] == 0
    assert not torch.distributed.is_initialized()


def test_a_planted_fault_has_a_script_that_fails_and_passes_once_it_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    register: Any = nn.Module.register_forward_hook

    def deaf(self: nn.Module, hook: Any, **options: Any) -> Any:
        return register(self, (lambda *_: None) if hasattr(self, "weight_orig") else hook, **options)

    with monkeypatch.context() as broken:
        broken.setattr(nn.Module, "register_forward_hook", deaf)
        _, text = hosted_script(PROGRAMS["HO-03"], None, "pruned: FW-20", executed_here)
        limits(text.rstrip("\n"))
        assert executed(text)[0] == 1
        assert ".identity(" in text
    assert executed(text)[0] == 0


@pytest.mark.parametrize("clause", HOSTS)
def test_each_host_is_written(clause: str) -> None:
    hosts = HOSTS[clause]
    chapters = next(chapters for kinds, chapters in ON_HOSTS if kinds is hosts.kinds)
    for name, kind in hosts.kinds.items():
        one = next(fitting(kind, chapters), None) if offered(kind.since) else None
        if one is not None:
            collected = _collected(hosts, name, kind, one)
            with suppress(NotImplementedError):
                compile("\n\n\n".join(collected.definitions), name, "exec")
            assert "hookcheck" not in "\n".join(collected.definitions)


TEXT = """
def judge(check):
    net, part = nn.Sequential(nn.Linear(1, 1)), times(2.0)
    check.true("another", not hasattr(nn.ReLU(), "mark"))
    times = lambda x: x
    return [make() for make in (nn.Linear,)]
""".strip("\n")


def test_what_is_made_is_what_the_host_makes_of_it() -> None:
    text = _hosted(TEXT.replace("    times = lambda x: x\n", ""), ("Linear", "times"), "host")
    assert "nn.Sequential(host(nn.Linear(1, 1))), host(times(2.0))" in text
    assert "hasattr(nn.ReLU(), " in text
    assert "(lambda *args, **options: host(nn.Linear(*args, **options)))" in text
    assert "host(times(" not in _hosted(TEXT, ("Linear", "times"), "host")  # it is a name of its own
    assert _hosted("def f():\n    return torch.optim.SGD(x)", ("SGD",), "host").endswith(
        "return host(torch.optim.SGD(x))"
    )


@pytest.mark.skipif(HERE < (2, 1), reason="it has no such optimizer")
def test_a_fact_behind_another_that_is_not_so_either_has_a_script() -> None:
    fact = "ZeroRedundancyOptimizer: OP-08: the learning rate of what is returned"
    _, text = hosted_script(PROGRAMS["HO-09"], None, fact, executed_here)
    limits(text.rstrip("\n"))
    assert executed(text)[0] == 1
    assert "the learning rate after an edit in place" not in text


@pytest.mark.skipif(HERE < (2, 0), reason="it has no hooks of optimizers")
def test_a_script_comes_to_the_exception_of_its_program() -> None:
    _, text = hosted_script(PROGRAMS["HO-04"], None, "with super().step(): OP-04", executed_here)
    limits(text.rstrip("\n"))
    code, said = executed(text)
    assert code == 1
    assert "step works: expected None, observed TypeError: " in said
    assert "expected None, observed None" in said


def ends(text: str) -> bool:
    """Whether a program gets to what raises."""
    return "raises(" in text


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("a = f()\nb = a.raises(1)\ng(b)", 'a = f()\ncheck.works("raises works", lambda: a.raises(1))'),
        ("with c:\n    raises(1)\n    g()", 'with c:\n    check.works("raises works", lambda: raises(1))'),
        ('check.equal("n", list(raises(1)), 2)\ng()', 'check.works("raises works", lambda: raises(1))'),
        ("a = [f(1), raises(1), g()]\ng(a)", 'f(1)\ncheck.works("raises works", lambda: raises(1))'),
        (
            "a = [raises(x) for x in y]\ng(a)",
            'check.works("raises works", lambda: [raises(x) for x in y])',
        ),
        ("if raises(1):\n    g()", None),
        ("g()", None),
    ],
)
def test_what_comes_after_what_raises_goes(body: str, result: str | None) -> None:
    text = "def judge(check):\n" + "\n".join(f"    {line}" for line in body.split("\n"))
    stated = raising(text, ends)
    lines = None if result is None else "\n".join(f"    {line}" for line in result.split("\n"))
    assert (stated and stated[0]) == (lines and f"def judge(check):\n{lines}")


def test_the_table_of_writers_names_all_that_they_write_for() -> None:
    by_writer = {writer: {id for id in WRITERS if WRITERS[id] == writer} for writer in {*WRITERS.values()}}
    assert by_writer[HOSTED] == {*HOSTS}
    assert by_writer[SITUATIONS] == {*SCENES}
    assert PROGRAMS.keys() >= WRITERS.keys()


@pytest.mark.slow
@pytest.mark.skipif(HERE < (2, 6), reason="parameters of optimizers have no names")
@pytest.mark.parametrize(
    "fact",
    ["ZeroRedundancyOptimizer: OP-08: the learning rate once that hook is removed", "_NamedOptimizer: OP-12: program"],
)
def test_what_a_sound_torch_does_not_notice_makes_no_script_too_long(fact: str) -> None:
    _, text = hosted_script(PROGRAMS["HO-09"], None, fact, executed_here)
    limits(text.rstrip("\n"))
    assert executed(text)[0] == 1
