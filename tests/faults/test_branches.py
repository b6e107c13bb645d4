"""Branches of torch's hook code: found, forced and put back; what sees one; and what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from faults import on_branches
from faults.branches import ALWAYS, MODULES, NEVER, SKIPPED, UNHANDLED, Branch, branches
from faults.engine import release
from faults.on_branches import CRASH, NO_END, BranchLog, functions, reaching, recorded, seen
from faults.on_programs import soundly
from faults.samples import known
from faults.unseen_branches import REASONS, matches, reason
from torch import nn

import hookcheck.cli as cli
from hookcheck.contract.clause import CLAUSES
from hookcheck.programs.program import Program

HOOKS, MODULE = "torch.utils.hooks", "torch.nn.modules.module"
pytestmark = pytest.mark.skipif(release(torch.__version__) < (2, 13), reason="it is about the code of torch 2.13")
on_2_13 = pytest.mark.skipif(release(torch.__version__) != (2, 13), reason="the record is of torch 2.13")


def branch(module: str, function: str, forced: str, text: str) -> Branch:
    return next(b for b in branches(module) if (b.function, b.forced) == (function, forced) and text in b.text)


def test_all_sorts_of_branches_are_found_and_have_names_of_their_own() -> None:
    all_branches = [each for module in MODULES for each in branches(module)]
    assert {each.forced for each in all_branches} == {ALWAYS, NEVER, SKIPPED, UNHANDLED}
    assert len({each.name for each in all_branches}) == len(all_branches) > 450
    assert {each.module for each in all_branches} == {*MODULES}


def test_a_branch_is_forced_while_the_context_is_open() -> None:
    module = nn.Identity()
    handle = module.register_forward_hook(print)
    code = torch.utils.hooks.RemovableHandle.remove.__code__
    with branch(HOOKS, "RemovableHandle.remove", NEVER, "hooks_dict is not None and").fault.patch():
        handle.remove()
        assert len(module._forward_hooks) == 1
    assert torch.utils.hooks.RemovableHandle.remove.__code__ is code
    handle.remove()
    assert not module._forward_hooks


def test_functions_within_functions_are_forced_too() -> None:
    seen = []
    module = nn.Identity()
    module.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output))
    x = torch.ones(1, requires_grad=True)
    with branch(HOOKS, "BackwardHook._set_user_hook.hook", ALWAYS, "self.grad_outputs is None").fault.patch():
        module(x).backward()
    assert seen == []
    module(x).backward()
    assert len(seen) == 1


def test_abstract_classes_are_asked_anew() -> None:
    """`Node` remembers what it was asked before."""
    node = torch.ones(1, requires_grad=True).exp().grad_fn
    assert isinstance(node, torch.autograd.graph.Node)
    with branch("torch.autograd.graph", "Node.__subclasshook__", NEVER, "cls is Node").fault.patch():
        assert not isinstance(node, torch.autograd.graph.Node)
    assert isinstance(node, torch.autograd.graph.Node)


def programs(*ids: str) -> list[Program]:
    return [program for program in map(CLAUSES.get, ids) if isinstance(program, Program)]


def test_what_reaches_a_branch_sees_it_or_does_not() -> None:
    reached = reaching(programs("HD-05", "HD-04"))
    removal = branch(HOOKS, "RemovableHandle.remove", ALWAYS, "hooks_dict is not None and")
    assert {run.id for run in reached.of(removal) if isinstance(run, Program)} == {"HD-05", "HD-04"}
    assert seen(removal, reached.of(removal)) in ("HD-05", "HD-04")
    assert seen(removal, ()) == ""
    unreached = branch(HOOKS, "BackwardHook._set_user_hook.hook", ALWAYS, "self.grad_outputs is None")
    assert reached.of(unreached) == []


@pytest.mark.parametrize(("act", "said"), [("os._exit(1)", CRASH), ("while True: pass", NO_END)])
def test_what_ends_or_never_ends_is_told(act: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_branches, "SECONDS", 1)
    monkeypatch.setattr(on_branches, "caught", lambda branch, run: exec(f"import os\n{act}"))
    removal = branch(HOOKS, "RemovableHandle.remove", ALWAYS, "hooks_dict is not None and")
    assert seen(removal, programs("HD-05")) == said


def test_a_process_that_has_shared_an_operation_among_threads_still_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """RB-17 quantises a tensor, which is shared among threads however small it is."""
    monkeypatch.setattr(on_branches, "PATIENCE", 60)
    soundly("RB-17")
    forced = branch("torch._tensor", "Tensor.__deepcopy__", NEVER, "self.is_quantized")
    count = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        torch.ones(10**6).mul(2)
        assert seen(forced, programs("RB-17")) == "RB-17"
    finally:
        torch.set_num_threads(count)


def test_what_is_known_of_a_function_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, function = tmp_path / "kept.jsonl", f"{HOOKS}.BackwardHook._pack_with_none"
    monkeypatch.setattr(on_branches, "all_runs", list)
    looked: list[Branch] = []
    monkeypatch.setattr(on_branches, "seen", lambda branch, runs: looked.append(branch) or "HD-05")
    names = [each.name for each in functions()[function]]
    for _ in range(2):
        assert BranchLog(file).of(function) == [(name, "HD-05") for name in names]
    assert [each.name for each in looked] == names
    assert [json.loads(line)["torch"] for line in file.read_text().splitlines()] == [torch.__version__]
    BranchLog().of(function)
    assert len(looked) == 2 * len(names)


def test_the_command_lists_what_is_seen_and_what_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    function = f"{HOOKS}.RemovableHandle.__getstate__"
    monkeypatch.setattr(on_branches, "functions", lambda: {function: functions()[function]})
    monkeypatch.setattr(on_branches, "all_runs", list)
    monkeypatch.setattr(on_branches, "seen", lambda branch, runs: "" if branch.forced == NEVER else "RB-01")
    with pytest.raises(SystemExit) as ended:
        cli.main(["kill-matrix", "--branches", "--format", "json"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ended.value.code == 0
    assert [(row["seen"], bool(row["reason"])) for row in rows] == [("RB-01", False), ("", True), ("RB-01", False)]


@on_2_13
def test_each_branch_has_a_clause_or_a_reason() -> None:
    """The record is of torch's branches as they are, and no reason excuses what a clause sees."""
    names = [each.name for group in functions().values() for each in group]
    clauses = recorded()
    assert [*clauses] == names
    assert {*clauses.values()} - {*CLAUSES} == {""}
    assert [name for name in names if bool(clauses[name]) is bool(reason(name))] == []
    for pattern, why in REASONS.items():
        assert why
        assert any(matches(pattern, name) for name in names), pattern
    assert reason("torch.utils.hooks.RemovableHandle.remove: never: no such") == ""


SLOW = (pytest.mark.slow, pytest.mark.one_in(4))
PROGRAMS = [
    pytest.param(name, marks=() if number % 195 == 0 else SLOW)
    for number, (name, clause) in enumerate(recorded().items())
    if isinstance(CLAUSES.get(clause), Program)
]


@on_2_13
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_clause_sees_the_branch_that_it_is_recorded_for(name: str) -> None:
    """What is so of a sound torch is asked here, once for all branches, and not in the process of each."""
    known()
    soundly(recorded()[name])
    forced = next(each for group in functions().values() for each in group if each.name == name)
    assert seen(forced, programs(recorded()[name])) == recorded()[name]
