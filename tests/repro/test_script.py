"""Is a script what triagers accept? Its whole text, its header, its exit codes in a process of its own, its limits."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS
from hookcheck.repro.checks import CHECKS
from hookcheck.repro.links import links
from hookcheck.repro.script import script
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology, Within

from .cases import BY_HAND, DOUBLED, LINEAR, ON_NETWORKS, executed

GOLDEN = Path(__file__).with_name("golden.txt")


def test_whole_text() -> None:
    assert script(LINEAR, ON_NETWORKS["GI-01"], KINDS["backward"]) == GOLDEN.read_text(encoding="utf-8")


def test_every_clause_has_a_check() -> None:
    assert set(CHECKS) == set(ON_NETWORKS)


def test_says_that_it_has_no_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(CHECKS, "GI-01")
    with pytest.raises(HookcheckError, match="no script can be written yet for clause GI-01 with hook kind backward"):
        script(LINEAR, ON_NETWORKS["GI-01"], KINDS["backward"])


def test_has_no_script_where_hooks_act_on_what_is_differentiated() -> None:
    with pytest.raises(HookcheckError, match="no clause speaks of this topology with hook kind acting_full_backward"):
        script(DOUBLED, ON_NETWORKS["GI-01"], KINDS["acting_full_backward"])


@pytest.mark.parametrize("clause", ON_NETWORKS)
@pytest.mark.parametrize("name", BY_HAND)
def test_imports_torch_alone(clause: str, name: str) -> None:
    for kind in map(KINDS.get, ON_NETWORKS[clause].kinds):
        assert kind is not None
        if name == "doubled" and kind.acts.backward:
            continue
        tree = ast.parse(script(BY_HAND[name], ON_NETWORKS[clause], kind))
        imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        assert {"sys", "torch"} <= imported <= {"gc", "sys", "torch", "warnings", "weakref"}
        named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert named <= {"torch", "collections", "dataclasses"}


def test_no_run_of_empty_lines_and_no_trailing_space() -> None:
    for clause in ON_NETWORKS.values():
        for kind in clause.kinds:
            text = script(LINEAR, clause, KINDS[kind])
            assert "\n\n\n\n" not in text, (clause.id, kind)
            assert all(line == line.rstrip() for line in text.split("\n")), (clause.id, kind)
            assert text.endswith("\n")
            assert not text.endswith("\n\n")


def test_header_says_what_is_promised_where() -> None:
    clause = ON_NETWORKS["BW-03"]
    comment = "\n".join(
        line for line in script(LINEAR, clause, KINDS["full_backward"]).split("\n") if line.startswith("# ")
    )
    told = " ".join(comment.replace("\n# ", " ").split())
    for part in (clause.id, clause.statement, clause.source, identify(LINEAR), "register_full_backward_hook"):
        assert part in told
    assert "https://github.com/pytorch/pytorch/issues/56693" in told


@pytest.mark.parametrize("clause", ON_NETWORKS)
def test_every_script_links_to_documentation(clause: str) -> None:
    for kind in ON_NETWORKS[clause].kinds:
        assert "\n# https://" in script(LINEAR, ON_NETWORKS[clause], KINDS[kind])


def test_links() -> None:
    source = "torch.nn.Module.register_full_backward_hook; notes on autograd, 'Special hooks'; pytorch#7"
    assert links(source) == (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook",
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#special-hooks",
        "https://github.com/pytorch/pytorch/issues/7",
    )
    assert links("torch.autograd.grad, 'create_graph'; torch.autograd.graph") == (
        "https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html",
    )
    assert links("the formulas of the oracle") == ()


@pytest.mark.parametrize(
    ("clause", "kind", "code", "words"),
    [
        ("BW-07", "backward", 1, "The fault shows. entries of grad_input of net: expected 1, observed ("),
        ("GI-01", "global_backward", 1, "The fault shows. grad_input[0] of net: expected [["),
        ("GO-01", "backward", 0, "The fault does not show."),
    ],
)
def test_in_a_process_of_its_own(clause: str, kind: str, code: int, words: str, tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    path.write_text(script(LINEAR, ON_NETWORKS[clause], KINDS[kind]), encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == code
    last = (done.stderr if code else done.stdout).strip().split("\n")[-1]
    assert last.startswith(words)


def test_a_torch_without_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.nn.Module, "register_backward_hook")
    code, words = executed(script(LINEAR, ON_NETWORKS["GI-01"], KINDS["backward"]))
    assert (code, words) == (2, "This torch lacks register_backward_hook (since 1.7).\n")


def test_a_torch_without_keyword_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "1.13.1+cpu")
    code, words = executed(script(LINEAR, ON_NETWORKS["FN-03"], KINDS["forward_kwargs"]))
    assert (code, words) == (2, "This torch lacks with_kwargs (since 2.0).\n")


def test_a_torch_too_old_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = replace(LINEAR, main=(Within("inference_mode", LINEAR.main[:1]),))
    monkeypatch.setattr(torch, "__version__", "1.8.1+cpu")
    code, words = executed(script(evaluated, ON_NETWORKS["NG-01"], KINDS["backward"]))
    assert (code, words) == (2, "This torch lacks inference_mode (since 1.9).\n")


def test_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    text = script(replace(LINEAR, dtype="float32"), ON_NETWORKS["GI-01"], KINDS["backward"], "cuda")
    assert 'net.to("cuda")\nx = x.detach().to("cuda").requires_grad_()\nv_y = v_y.detach().to("cuda")\n' in text
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert executed(text) == (2, "This torch lacks a CUDA device.\n")


def test_where_cuda_is_done_on_a_device_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that move tensors leave the verdict as it is."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for clause, code in (("GI-01", 1), ("GO-01", 0), ("OB-03", 0), ("AG-01", 0)):
        text = script(LINEAR, ON_NETWORKS[clause], KINDS["backward"], "cuda").replace('to("cuda")', 'to("cpu")')
        assert executed(text)[0] == code, clause


@pytest.mark.parametrize(
    ("topology", "kind", "words"),
    [
        (LINEAR, "full_backward", "clause P2-11 does not speak of hook kind 'full_backward'; choose from backward"),
        (replace(LINEAR, device="cuda"), "backward", "the topology is about cuda; add --device cuda"),
    ],
)
def test_refuses(topology: Topology, kind: str, words: str) -> None:
    with pytest.raises(HookcheckError, match=words):
        script(topology, ON_NETWORKS["P2-11"], KINDS[kind])
