"""Does each rule speak of its bad example alone, and does torch do to the example what the rule says it does?"""

from __future__ import annotations

import difflib
import pickle
import warnings
from typing import Any

import pytest
import torch
from packaging.version import Version

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.scan.findings import ScanRule
from hookcheck.scan.releases import allowed
from hookcheck.scan.rules import RULES
from hookcheck.scan.scanning import scan

EVERY = frozenset(RULES)
BOTH = pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))


def ids(text: str, torch: str = "") -> list[str]:
    """The rules that speak of a program."""
    result = scan("program.py", text.encode(), allowed(torch) if torch else (), EVERY)
    assert not result.unread
    return [finding.rule for finding in result.findings]


@BOTH
def test_a_rule_speaks_of_its_bad_example_and_no_other_rule_does(rule: ScanRule) -> None:
    assert ids(rule.bad, rule.torch) == [rule.id]


@BOTH
def test_no_rule_speaks_of_a_good_example(rule: ScanRule) -> None:
    assert ids(rule.good, rule.torch) == []


@BOTH
def test_examples_are_one_edited_line_apart(rule: ScanRule) -> None:
    lines = difflib.ndiff(rule.bad.splitlines(), rule.good.splitlines())
    assert sorted(line[0] for line in lines if line[0] in "+-") == ["+", "-"]


@BOTH
def test_rules_are_stated_in_one_sentence_with_a_link(rule: ScanRule) -> None:
    assert rule.sentence.endswith(".")
    assert ". " not in rule.sentence
    assert rule.link.startswith("https://") or rule.id == "HKS100"
    assert rule.clauses or rule.id == "HKS100"
    assert {*rule.clauses} <= CLAUSES.keys()


def run(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(text, names)
    return names


def backward(names: dict[str, Any]) -> None:
    """A forward and a backward through what an example has made."""
    x = torch.ones(3, 2, requires_grad=True)
    y = names["layer"](x * 1) if "layer" in names else names["weight"] * x
    y.sum().backward()


SINCE = {"HKS005": "1.7", "HKS006": "2.1", "HKS007": "1.8", "HKS011": "1.9", "HKS012": "2.1"}
"""Since when torch does to a bad example what the rule says."""


@pytest.mark.parametrize("id", [id for id, since in SINCE.items() if Version(torch.__version__) >= Version(since)])
def test_torch_refuses_the_bad_example_and_runs_the_good_one(id: str, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = run(RULES[id].good), run(RULES[id].bad)
    backward(good)
    if id == "HKS006":  # the parameter has a norm as well, only not that of its gradient, which is 3 in each place
        capsys.readouterr()
        backward(bad)
        assert float(capsys.readouterr().out.strip("tensor()\n").split(",")[0]) < 2
        return
    with pytest.raises((RuntimeError, TypeError)):
        backward(bad)


def test_a_module_with_a_lambda_is_not_pickled_whole() -> None:
    layer = run(RULES["HKS008"].bad.replace("torch.save", "print"))["layer"]
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(layer)


HEAD = "import torch\nfrom torch import nn\nfrom functools import partial\n"


def on_layer(hook: str, call: str = "register_full_backward_hook", before: str = "") -> list[str]:
    return ids(f"{HEAD}{before}\nlayer = nn.Linear(2, 2)\nh = layer.{call}({hook})\n")


@pytest.mark.parametrize(
    ("hook", "rules"),
    [
        ("lambda m, gi, go: gi[0]", ["HKS007"]),
        ("lambda m, gi, go: -gi[0].clamp(min=0)", ["HKS007"]),
        ("lambda m, gi, go: torch.zeros_like(gi[0])", ["HKS007"]),
        ("lambda m, gi, go: gi", []),
        ("lambda m, gi, go: [gi[0]]", []),
        ("lambda m, gi, go: gi[:1]", []),
        ("lambda m, gi, go: seen.append(gi[0])", []),
        ("lambda m, gi, go: gi[0] is None", []),
    ],
)
def test_one_tensor_where_a_tuple_is_due(hook: str, rules: list[str]) -> None:
    assert on_layer(hook) == rules


@pytest.mark.parametrize("call", ["register_forward_hook", "register_forward_pre_hook"])
def test_forward_hooks_may_return_a_tensor(call: str) -> None:
    assert on_layer("lambda m, *rest: rest[0][0] * 2", call) == []


@pytest.mark.parametrize(
    ("before", "hook", "rules"),
    [
        ("def f(a, b): ...", "f", ["HKS005"]),
        ("def f(a, b, c): ...", "f", []),
        ("def f(a, b, c, d=1): ...", "f", []),
        ("def f(a, b, c, d): ...", "f", ["HKS005"]),
        ("def f(a, *b): ...", "f", []),
        ("def f(a, b, c, *, d): ...", "f", ["HKS005"]),
        ("def f(a, b, c, *, d): ...", "partial(f, d=1)", []),
        ("def f(n, a, b, c): ...", "partial(f, 1)", []),
        ("def f(n, a, b, c): ...", "partial(f, 1, 2)", ["HKS005"]),
        ("def f(n, a, b, c): ...", "partial(f, n=1)", ["HKS005"]),
        ("def f(n):\n    def g(a, b): ...\n    return g", "f(1)", ["HKS005"]),
        ("def f(n):\n    def g(a, b, c): ...\n    return g", "f(1)", []),
        ("class F:\n    def __call__(self, a, b): ...", "F()", ["HKS005"]),
        ("class F:\n    def __call__(self, a, b, c): ...", "F()", []),
        ("@wraps\ndef f(a): ...", "f", []),
        ("def f(a): ...\ndef f(a, b, c): ...", "f", []),
        ("from elsewhere import f", "f", []),
    ],
)
def test_what_a_hook_takes(before: str, hook: str, rules: list[str]) -> None:
    assert on_layer(hook, before=before) == rules


@pytest.mark.parametrize(
    ("option", "rules"), [("", ["HKS005"]), (", with_kwargs=True", []), (", with_kwargs=flag", []), (", **more", [])]
)
def test_options_change_what_a_hook_takes(option: str, rules: list[str]) -> None:
    assert on_layer(f"lambda m, args, kwargs, out: None{option}", "register_forward_hook") == rules


def test_methods_of_a_class_are_hooks() -> None:
    text = f"{HEAD}class Net(nn.Module):\n    def __init__(self):\n        self.register_forward_hook(self.see)\n"
    assert ids(f"{text}    def see(self, m, args, out): ...\n") == []
    assert ids(f"{text}    def see(self, m, args): ...\n") == ["HKS005"]


@pytest.mark.parametrize(
    ("test", "rules"), [("hasattr(w, 'register_post_accumulate_grad_hook')", []), ("torch.version > (2, 1)", []),
    ("ready", ["HKS003"])],
)  # fmt: skip
def test_a_program_may_ask_before_it_uses_what_is_new(test: str, rules: list[str]) -> None:
    text = f"{HEAD}w = torch.ones(2, requires_grad=True)\nif {test}:\n"
    text += "    h = w.register_post_accumulate_grad_hook(print)\n"
    assert ids(text, ">=2.0,<2.16") == rules
    assert ids(text, ">=2.1") == []


@pytest.mark.parametrize(
    ("place", "rules"),
    [
        ("def f(m: nn.Module):\n    m.register_forward_hook(print)", ["HKS009"]),
        ("def f(m: nn.Module):\n    for c in m.modules():\n        c.register_forward_hook(print)", ["HKS009"]),
        ("for c in nn.Linear(2, 2).modules():\n    c.register_forward_hook(print)", ["HKS009"]),
        ("def f(m: nn.Module, hs):\n    hs.append(m.register_forward_hook(print))", []),
        ("def f(m: nn.Module):\n    if not hooked(m):\n        m.register_forward_hook(print)", []),
        ("def f():\n    m = nn.Linear(2, 2)\n    m.register_forward_hook(print)\n    return m", []),
        ("def f(x: torch.Tensor):\n    x.register_hook(print)", []),
        ("def f(m):\n    for p in m.parameters():\n        p.register_hook(print)", ["HKS009"]),
        ("class N(nn.Module):\n    def __init__(self):\n        self.register_forward_hook(print)", []),
        ("class N(nn.Module):\n    def watch(self):\n        self.register_forward_hook(print)", ["HKS009"]),
    ],
)
def test_dropped_handles(place: str, rules: list[str]) -> None:
    assert ids(f"{HEAD}{place}\n") == rules


@pytest.mark.parametrize(
    ("end", "rules"),
    [
        ("torch.jit.script(layer)", ["HKS008"]),
        ("h.remove()\ntorch.save(layer, 'x')", []),
        ("torch.save(other, 'x')", []),
    ],
)
def test_lambdas_on_what_is_saved(end: str, rules: list[str]) -> None:
    text = f"{HEAD}layer = nn.Linear(2, 2)\nother = nn.Linear(2, 2)\n"
    assert ids(f"{text}h = layer.register_forward_hook(lambda m, a, o: None)\n{end}\n") == rules


@pytest.mark.parametrize(
    ("use", "rules"),
    [
        ("layer._buffers", []),
        ("self._forward_hooks", []),
        ("getattr(layer, '_forward_hooks')", ["HKS002"]),
        ("torch.nn.modules.module._global_forward_hooks", ["HKS002"]),
    ],
)
def test_private_names(use: str, rules: list[str]) -> None:
    before = (
        "class Mine:\n    def __init__(self):\n        self._forward_hooks = []\n" if use.startswith("self") else ""
    )
    assert ids(f"{HEAD}{before}\nprint({use})\n") == rules


@pytest.mark.parametrize(("home", "rules"), [("torch.nn.modules.module", ["HKS002"]), ("mine", [])])
def test_private_names_that_are_imported(home: str, rules: list[str]) -> None:
    assert ids(f"{HEAD}from {home} import _global_forward_hooks, _parameters\n") == rules


FIELD = """\
class Net(nn.Module):
    def __init__(self):
        self.relu = nn.ReLU(inplace=True)
        self.h = self.relu.register_full_backward_hook(print)
"""


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (FIELD, ["HKS011"]),
        (FIELD.replace("True", "False"), []),
        (FIELD.replace("full_backward", "forward"), []),
        (FIELD + "        self.relu = nn.ReLU()\n", []),
        ("h = nn.ReLU(inplace=True).register_full_backward_pre_hook(print)\n", ["HKS011"]),
    ],
)
def test_modules_that_work_in_place(text: str, rules: list[str]) -> None:
    assert ids(HEAD + text) == rules


def test_a_name_that_is_bound_twice_in_a_hook_is_not_judged() -> None:
    hook = "def f(m, gi, go):\n    g = gi[0] * 2\n{}    return g"
    assert on_layer("f", before=hook.format("")) == ["HKS007"]
    assert on_layer("f", before=hook.format("    for g in [gi]:\n        pass\n")) == []
