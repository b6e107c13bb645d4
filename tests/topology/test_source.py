from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hookcheck.oracle.expected import Expected
from hookcheck.topology.build import build
from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Backward, Call, Composite, Input, Sequential, Topology, Within
from hookcheck.topology.source import expression, literal, source
from hookcheck.topology.tree import Literal, Pack, Ref
from hookcheck.topology.values import draw, values

from .running import agrees, array, assert_same, built, gradients, scripted, tensors, values_of_main
from .samples import CALLED, SAMPLES, SMALL, X, plain

every = pytest.mark.parametrize("topology", SAMPLES.values(), ids=SAMPLES)


def test_a_script_reads_as_a_person_would_write_it() -> None:
    net = Composite(
        (("fc", Linear(2, 1)), ("act", Tanh())),
        ("x",),
        (Call("h", "fc", (X,)), Within("no_grad", (Call("z", "act", (Ref("h"),)),))),
        Pack("tuple", (Ref("h"), Ref("z"), Literal(None))),
    )
    topology = replace(SMALL, module=net, main=(CALLED, Backward((Ref("y", (0,)),), (Ref("v"),))), frozen=("fc.bias",))
    assert source(topology).script() == (
        """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
        self.act = nn.Tanh()

    def forward(self, x):
        h = self.fc(x)
        with torch.no_grad():
            z = self.act(h)
        return (h, z, None)


net = Net()
net.to(torch.float64)
net.fc.bias.requires_grad_(False)

with torch.no_grad():
    net.fc.weight.copy_(torch.tensor([[0.34375, 2.96875]]))
    net.fc.bias.copy_(torch.tensor([-1.96875]))
x = torch.tensor([-1.40625, 2.59375], dtype=torch.float64, requires_grad=True)
v = torch.tensor([-0.40625], dtype=torch.float64)

y = net(x)
y[0].backward(v)
"""
    )


def main_of(topology: Topology) -> list[str]:
    return source(topology).main.splitlines()


def test_each_statement_has_its_line() -> None:
    assert main_of(SAMPLES["several forwards and backwards"]) == [
        "y = net(x)",
        "z = net(y)",
        "y.backward(v, retain_graph=True)",
        "p = z * v",
        "l = p.sum()",
        "m = z.mean()",
        "l.backward(retain_graph=True)",
        "torch.autograd.backward([l, m])",
    ]
    assert main_of(SAMPLES["leak"]) == [
        "leaked = {}",
        "y = net(x)",
        "torch.autograd.backward([leaked['h'], y], [v, v])",
    ]
    assert main_of(SAMPLES["keyword arguments"])[0] == "y = net(x, factor=w, bias=b)"
    assert "    def forward(self, x, *, factor, bias):" in source(SAMPLES["keyword arguments"]).modules.splitlines()
    assert main_of(SAMPLES["gradient of the input alone"])[1] == "y.backward(v, inputs=[x], retain_graph=True)"
    assert main_of(SAMPLES["grad modes"]) == [
        "with torch.no_grad():",
        "    y = net(x)",
        "    with torch.enable_grad():",
        "        z = net(x)",
        "y.backward(v)",
    ]


def test_newer_statements_have_their_lines_too() -> None:
    assert main_of(SAMPLES["train and eval"]) == [
        "y = net(x)",
        "z = net(y)",
        "net.eval()",
        "net[1].train()",
        "w = net(z)",
        "net.train()",
        "w.backward(v)",
    ]
    assert main_of(SAMPLES["gradients of leaves, parameters and intermediates"])[2:] == [
        "g = torch.autograd.grad([z, y], [x, net[0].weight, y, u], [v, v], retain_graph=True, allow_unused=True)",
        "p = g[0] * x",
        "p.backward(v)",
        "z.backward(v, inputs=[net[1].bias])",
    ]
    assert main_of(SAMPLES["gradient of a gradient"])[1] == (
        "g = torch.autograd.grad([y], [x, net[2].weight], [v], create_graph=True, allow_unused=True)"
    )
    assert main_of(SAMPLES["backward that records itself"])[1] == "y.backward(v, create_graph=True)"
    lines = source(SAMPLES["recursion"]).modules.splitlines()
    assert "        z = self(h, depth - 1) if depth else h" in lines


def test_containers_of_parameters_and_modules_are_constructed() -> None:
    lines = source(SAMPLES["own parameters and those of children"]).modules.splitlines()
    assert [line.strip() for line in lines if line.strip().startswith("self.") or " = self" in line] == [
        "self.w = nn.Parameter(torch.zeros((3,)))",
        "self.unused = nn.Parameter(torch.zeros((0, 2)))",
        "self.fc = nn.Linear(3, 3)",
        "self.many = nn.ParameterList([nn.Parameter(torch.zeros((3,))), nn.Parameter(torch.zeros((2, 3)))])",
        "self.named = nn.ParameterDict({'a': nn.Parameter(torch.zeros((3,))), 'b': nn.Parameter(torch.zeros(()))})",
        "self.steps = nn.ModuleDict({'first': nn.Linear(3, 3), 'then': nn.Tanh()})",
        "a = self.steps.first(x)",
        "b = self.steps.then(a)",
    ]
    assert "        d = c * self.many[1]" in lines


def test_the_classes_of_containers_are_defined_once() -> None:
    text = source(SAMPLES["dataclass and namedtuple arguments"]).script()
    assert text.count("CDTuple = namedtuple('CDTuple', ['c', 'd'])") == 1
    assert text.count("@dataclass\nclass ABData:\n    a: object\n    b: object\n") == 1
    assert "y = net(ABData(x, 'no tensor'), (None, CDTuple(x, 0.5)))" in text


def test_the_lines_after_construction_tie_switch_mode_convert_and_freeze() -> None:
    topology = replace(SAMPLES["nested sequential"], ties=(("1.0", "0.0"),), frozen=("0.0.bias",), training=False)
    assert source(topology).modules.splitlines() == [
        "net = nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.Sigmoid()), nn.Sequential(nn.Linear(3, 3)))",
        "net[1][0] = net[0][0]",
        "net.eval()",
        "net.to(torch.float64)",
        "net[0][0].bias.requires_grad_(False)",
    ]


def test_float32_is_the_default_of_torch_and_is_not_spelled_out() -> None:
    text = source(replace(SMALL, dtype="float32")).script()
    assert "float" not in text


def test_classes_that_are_different_have_different_names_and_equal_ones_share_theirs() -> None:
    inner = Composite((("net", Linear(3, 3)),), ("x",), (Call("h", "net", (X,)),), Ref("h"))
    other = replace(inner, children=(("net", Linear(3, 3, bias=False)),))
    net = Composite(
        (("block", inner), ("again", inner), ("Block", Sequential((other,)))),
        ("x",),
        (Call("a", "block", (X,)), Call("b", "again", (Ref("a"),)), Call("c", "Block", (Ref("b"),))),
        Ref("c"),
    )
    text = source(plain(net)).modules
    assert text.count("class ") == 3
    assert "self.again = Block()" in text
    assert_same(values_of_main(plain(net), scripted(plain(net))), values_of_main(plain(net), built(plain(net))))


def test_expressions() -> None:
    tree = Pack(
        "dict", (Pack("tuple", (Ref("y", (0, "a")),)), Pack("list", (Literal("it's"), Literal(-0.5)))), ("p", "q")
    )
    assert expression(tree) == """{'p': (y[0]['a'],), 'q': ["it's", -0.5]}"""
    assert expression(Pack("tuple", ())) == "()"


def test_a_printed_array_is_the_array() -> None:
    for numbers in (
        draw(3, "x", (2, 2, 2)),
        draw(3, "i", (3,), "index", 4),
        draw(3, "m", (3,), "mask"),
        np.ones((0, 2)),
    ):
        printed = eval(literal(numbers))
        assert (printed.tolist(), tuple(printed.shape)) == (numbers.tolist(), numbers.shape)
    assert eval(literal(draw(3, "x", ()), "float64", ", requires_grad=True")).requires_grad


@every
def test_the_script_and_the_built_module_give_the_same_bits(topology: Topology) -> None:
    ours, theirs = built(topology), scripted(topology)
    assert_same(values_of_main(topology, ours), values_of_main(topology, theirs))
    assert_same(gradients(topology, ours), gradients(topology, theirs))


@every
def test_the_oracle_sees_the_values_that_torch_computes(topology: Topology) -> None:
    observed = dict(tensors(values_of_main(topology, built(topology))))
    oracle = Expected(topology, values(topology))
    expected = dict(tensors({k: v for k, v in oracle.trace.names.items() if k != "leaked" or v}))
    assert observed.keys() == expected.keys()
    assert [n for n in expected if not agrees(observed[n], expected[n], oracle)] == []


@every
def test_the_oracle_sees_the_gradients_that_torch_leaves(topology: Topology) -> None:
    observed = {k: g for k, g in gradients(topology, built(topology)).items() if g is not None}
    oracle = Expected(topology, values(topology))
    assert observed.keys() == oracle.leaf_gradients.keys()
    wrong = [n for n, g in oracle.leaf_gradients.items() if not oracle.close(array(observed[n]), g, "cpu")]
    assert wrong == []
    assert [n for n, g in observed.items() if str(g.dtype) != f"torch.{oracle.trace.leaves[n].dtype}"] == []


def test_scripts_need_nothing_but_torch(tmp_path: Path) -> None:
    for number, topology in enumerate(SAMPLES.values()):
        (tmp_path / f"{number}.py").write_text(source(topology).script(), encoding="utf-8")
    driver = tmp_path / "driver.py"
    driver.write_text(
        """\
import sys
from pathlib import Path
from typing import Any

for number in range(int(sys.argv[1])):
    names = {}
    exec(Path(__file__).with_name(f"{number}.py").read_text(encoding="utf-8"), names)
    leaves = {**dict(names["net"].named_parameters()), "x": names["x"]}
    print({k: None if t.grad is None else t.grad.tolist() for k, t in leaves.items()})
assert "hookcheck" not in sys.modules
""",
        encoding="utf-8",
    )
    command = [sys.executable, "-I", str(driver), str(len(SAMPLES))]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    shown = [ast.literal_eval(line) for line in run.stdout.splitlines()]
    for topology, seen in zip(SAMPLES.values(), shown):
        ours = gradients(topology, built(topology))
        assert seen == {k: None if ours[k] is None else ours[k].tolist() for k in seen}
    assert len(shown) == len(SAMPLES)


def test_a_tied_module_is_one_object() -> None:
    net = build(SAMPLES["shared module"], values(SAMPLES["shared module"])).module
    assert net.b is net.a
    assert [name for name, _ in net.named_modules()] == ["", "a"]


def test_a_tied_parameter_is_one_object_in_two_modules() -> None:
    net: Any = build(SAMPLES["shared parameter"], values(SAMPLES["shared parameter"])).module
    assert net.b is not net.a
    assert net.b.weight is net.a.weight
    assert net.b.bias is not net.a.bias
    assert [name for name, _ in net.named_parameters()] == ["a.weight", "a.bias", "b.bias"]


def test_a_built_module_holds_the_drawn_numbers_in_its_dtype_mode_and_device() -> None:
    topology = SAMPLES["float32 in eval mode"]
    ready = build(topology, values(topology))
    assert not ready.module.training
    held = {**dict(ready.module.named_parameters()), **ready.inputs}
    assert held.keys() == values(topology).keys()
    for name, tensor in held.items():
        assert tensor.dtype == torch.float32
        assert tensor.device.type == "cpu"
        assert tensor.tolist() == values(topology)[name].tolist()


def test_inputs_are_leaves_that_require_grad_where_they_should() -> None:
    ready = build(SMALL, values(SMALL))
    assert {name: (t.is_leaf, t.requires_grad) for name, t in ready.inputs.items()} == {
        "x": (True, True),
        "v": (True, False),
    }


def test_frozen_parameters_require_no_grad() -> None:
    topology = SAMPLES["frozen"]
    net = build(topology, values(topology)).module
    assert [name for name, p in net.named_parameters() if not p.requires_grad] == ["0.weight", "1.bias"]


def test_building_twice_gives_modules_that_share_nothing() -> None:
    first, second = (build(SMALL, values(SMALL)) for _ in range(2))
    first.run()
    assert all(p.grad is None for p in second.module.parameters())
    assert first.inputs["x"] is not second.inputs["x"]


def test_the_numbers_are_copied() -> None:
    numbers = values(replace(SMALL, inputs=(Input("x", (2,)), Input("v", (1,)))))
    ready = build(SMALL, numbers)
    with torch.no_grad():
        ready.inputs["x"].zero_()
        for parameter in ready.module.parameters():
            parameter.zero_()
    assert all(array.all() for array in numbers.values())
