"""Is a script what triagers accept? Its whole text, its exit codes in a process of its own, its controls."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hookcheck.contract.ledger import Ledger
from hookcheck.hooks.kinds import KINDS
from hookcheck.repro.choice import chosen
from hookcheck.repro.formatting import WIDTH
from hookcheck.repro.heading import FAILS, ending
from hookcheck.repro.links import links
from hookcheck.repro.network import ITS_OWN, ONES, in_parts, network
from hookcheck.repro.question import TYPE, VALUE, Question
from hookcheck.repro.script import Control, Way, script
from hookcheck.repro.sighting import Sighting, sightings
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Grad, Input, Sequential, Topology
from hookcheck.topology.ops.elementwise import Pow
from hookcheck.topology.ops.reduction import Sum
from hookcheck.topology.primitive import Array
from hookcheck.topology.tree import Ref

from .cases import LEAKED, LINEAR, ON_NETWORKS, executed

SMALL = Topology(
    Linear(2, 1),
    (Input("x", (1, 2), requires_grad=True),),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),))),
    dtype="float32",
    counting=True,
)

LEGACY = '''# /// script
# dependencies = ["torch"]
# ///
"""register_backward_hook on Linear: grad_input[0] has another shape than it should."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import torch
from torch import nn


def run(register):
    calls = []
    net = nn.Linear(2, 1)
    x = torch.ones(1, 2, requires_grad=True)
    getattr(net, register)(lambda _, grad_input, grad_output: calls.append(grad_input))
    net(x).backward()
    return tuple(calls[0][0].shape)


expected = (1, 2)  # a gradient has the shape of its tensor
control, experiment = run("register_full_backward_hook"), run("register_backward_hook")
print("control:", control, "experiment:", experiment)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != expected else 0 if experiment == expected else 1)
'''


def seen(topology: Topology, kind: str, clause: str) -> Sighting:
    return sightings(topology, "single-layer", KINDS[kind], ON_NETWORKS[clause], Ledger(()))[0]


def test_whole_text() -> None:
    assert chosen(seen(SMALL, "backward", "GI-01")).text == LEGACY


def test_passes_on_a_torch_that_is_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    text = chosen(seen(SMALL, "backward", "GI-01")).text
    assert executed(text)[0] == 1
    monkeypatch.setattr(nn.Module, "register_backward_hook", nn.Module.register_full_backward_hook)
    assert executed(text)[0] == 0


def test_a_control_that_fails_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    text = chosen(seen(SMALL, "backward", "GI-01")).text
    monkeypatch.setattr(nn.Module, "register_full_backward_hook", nn.Module.register_backward_hook)
    assert executed(text)[0] == FAILS


@pytest.mark.parametrize(
    ("condition", "so", "not_so"),
    [
        ("{} == 1", 1, 2),
        ("{}", True, False),
        ("not {}", [], [1]),
        ("{} is None", None, 1),
        ("{} is not None and {}.startswith('a')", "ab", "b"),
        ("{}.index('a') < {}.index('b')", "ab", "ba"),
        ("'a' in str({})", "a", "b"),
        ("abs({} - expected) <= 5e-04", 0.25, 1.0),
    ],
)
def test_how_a_script_ends(condition: str, so: Any, not_so: Any) -> None:
    """With 2 where the control fails, whatever the experiment gives."""
    lines = "\n".join(ending(condition.replace("{}", "experiment"), condition.replace("{}", "control")))
    assert max(map(len, lines.split("\n"))) <= WIDTH
    for control, experiment, code in ((so, so, 0), (so, not_so, 1), (not_so, so, FAILS), (not_so, not_so, FAILS)):
        with pytest.raises(SystemExit) as end:
            exec(lines, {"control": control, "experiment": experiment, "expected": 0.25})
        assert end.value.code == code


def test_data_that_is_used_once_needs_no_name() -> None:
    parts = network(LINEAR, ONES, "")
    assert parts.setup[-1] == "x = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)"
    assert parts.main == ("net(x).backward(torch.ones(2, 1, dtype=torch.float64))",)
    assert network(LINEAR, ONES, "v_y").main == ("net(x).backward(v_y)",)


def test_what_leaks_is_named_at_once() -> None:
    (text,) = network(LEAKED, ONES, "").classes
    assert text.endswith("        leaked['h'] = h = -x\n        return h")


def test_many_parameters_of_one_number_are_filled_together() -> None:
    setup = network(replace(SMALL, module=Sequential((Linear(1, 1), Linear(1, 1)))), ITS_OWN, "").setup
    assert "for parameter in net.parameters():\n    nn.init.constant_(parameter, 1.0)" in "\n".join(setup)


def test_runs_of_which_one_may_use_what_the_other_compiled_begin_anew() -> None:
    sighting, about = seen(SMALL, "backward", "GI-01"), Question(VALUE, TYPE, path="y")
    text = script(sighting, about, Way(Control(hooked=True), fresh=True))
    assert "def run(hooked):\n    torch.compiler.reset()\n    net = " in text
    assert "return type(y).__name__" in text


@pytest.mark.parametrize(
    ("clause", "kind", "part"),
    [
        ("BW-07", "backward", "return len(calls[0])"),
        ("OB-05", "backward", "warnings.catch_warnings(record=True)"),
    ],
)
def test_asks_by_the_relation(clause: str, kind: str, part: str) -> None:
    text = chosen(seen(SMALL, kind, clause)).text
    assert part in text
    assert executed(text)[0] == 1


@pytest.mark.skipif(torch.__version__ < "2", reason="what is kept alive differs there")
def test_a_leak_in_a_process_of_its_own(tmp_path: Path) -> None:
    """As short as the measure asks, the lines that every script has aside."""
    squared = replace(
        SMALL,
        module=Linear(1, 1),
        inputs=(Input("x", (1,), requires_grad=True),),
        main=(
            Call("y", "", (Ref("x"),)),
            Apply("p", Pow(2), (Ref("y"),)),
            Apply("loss", Sum(), (Ref("p"),)),
            Grad("g", (Ref("loss"),), (Ref("net.weight"),), create_graph=True),
        ),
    )
    text = chosen(seen(squared, "full_backward", "OB-08")).text
    path = tmp_path / "repro.py"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "control: True experiment: False\n")
    body = text[text.index("def run") : text.index("\n\n\ncontrol")].split("\n")
    assert len(body) <= 14


def test_a_torch_without_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    text = chosen(seen(replace(SMALL, inputs=(Input("x", (1, 2)),)), "full_backward", "OB-05")).text
    assert executed(text)[0] == 1
    monkeypatch.delattr(nn.Module, "register_full_backward_hook")
    assert executed(text)[0] == 3


def test_links() -> None:
    source = "torch.nn.Module.register_full_backward_hook; notes on autograd, 'Special hooks'; pytorch#7"
    assert links(source) == (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook",
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#special-hooks",
        "https://github.com/pytorch/pytorch/issues/7",
    )
    assert links("the formulas of the oracle") == ()


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([0.5, 2.25]), "torch.tensor([0.5, 2.25], requires_grad=True)"),
        (
            np.arange(8).reshape(2, 4) / 32 + 1,
            "(torch.tensor([[32, 33, 34, 35], [36, 37, 38, 39]]) / 32).requires_grad_()",
        ),
        (np.full(5, 0.123456), "torch.tensor([0.123456, 0.123456, 0.123456, 0.123456, 0.123456], requires_grad=True)"),
        (np.array([-0.0, *[1.53125] * 8]), f"torch.tensor([-0.0{', 1.53125' * 8}], requires_grad=True)"),
    ],
)
def test_many_numbers_are_written_in_parts_of_one(array: Array, text: str) -> None:
    written = in_parts(array, "", ", requires_grad=True")
    assert written == text
    tensor = eval(written, {"torch": torch})
    assert tensor.is_leaf
    assert tensor.requires_grad
    assert np.array_equal(tensor.detach().numpy(), array.astype(np.float32))
