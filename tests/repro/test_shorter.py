"""Scripts of networks without what their one network does not need: do they say the same, of a mended torch as well?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hookcheck.contract.ledger import Ledger
from hookcheck.hooks.kinds import KINDS
from hookcheck.repro.arity import counted, entry_alone, handed_on, listed, unstarred
from hookcheck.repro.branches import one_branch
from hookcheck.repro.choice import chosen
from hookcheck.repro.choice import executed as executed_here
from hookcheck.repro.script import Parts, raising
from hookcheck.repro.shorter import flattened, shorter
from hookcheck.repro.sighting import sightings, unable
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Backward, Call, Input, Topology
from hookcheck.topology.tree import Ref

from .cases import ON_NETWORKS, executed, limits

HELPER = """def helper(act, *args):
{}


def run():
    return helper(len, [1], [2])"""


def helper(*lines: str) -> str:
    return HELPER.format("\n".join(f"    {line}" for line in lines))


@pytest.mark.parametrize(
    ("lines", "head", "body"),
    [
        (["return act(*args)"], "arg0, arg1", "return act(arg0, arg1)"),
        (["return act(*(a[None] for a in args), 1)"], "arg0, arg1", "return act(arg0[None], arg1[None], 1)"),
        (["return [act(a) for a in args]"], "arg0, arg1", "return [act(arg0), act(arg1)]"),
    ],
)
def test_a_helper_has_a_parameter_for_each_argument(lines: list[str], head: str, body: str) -> None:
    assert counted(helper(*lines)) == helper(body).replace("act, *args", f"act, {head}")


@pytest.mark.parametrize(
    "text",
    [
        helper("return act(args)"),
        helper("return act(*args[1:])"),
        helper("arg0 = 1", "return act(arg0, *args)"),
        helper("return act(*args)").replace("[2])", "[2]) + helper(len)"),
        helper("return act(*args)").replace("[2])", "*[2])"),
        helper("return act(*args)").replace("helper(len, [1], [2])", "map(helper, [1])"),
    ],
)
def test_one_that_is_given_more_or_less_takes_any_number(text: str) -> None:
    assert counted(text) is None


@pytest.mark.parametrize(
    ("change", "text", "result"),
    [
        (unstarred, "f(1, *(a, b), c=2)", "f(1, a, b, c=2)"),
        (unstarred, "f(*a)", None),
        (listed, "x = [f(a) for a in (b, c)]", "x = [f(b), f(c)]"),
        (listed, "x = g(f(a) for a in (b,))", "x = g((f(b),))"),
        (listed, "x = [f(a) for a in (b, c) if a]", None),
        (entry_alone, "x = [f(a)]\ny = x[0]", "x = f(a)\ny = x"),
        (entry_alone, "x = [f(a)]\ny = len(x)", None),
        (handed_on, helper("y = act()", "return y[0]"), helper("return act()[0]")),
        (handed_on, helper("y = act()", "return args() + y"), None),  # that was called first
        (handed_on, helper("y = act()", "return lambda: y"), None),
        (handed_on, helper("y = act()", "return y + y"), None),
    ],
)
def test_what_is_written_out_takes_its_place(change: Any, text: str, result: str | None) -> None:
    assert change(text) == result


CHOOSING = """def one(value):
    return value[0] if isinstance(value, list) else value


def other(value):
    if value:
        return 1
    return 2


def run():
    seen = one([0]) if True else None
    print(seen, other(0), other(1))
    raise SystemExit(1)


run()"""


def test_the_branch_that_is_taken_each_time_takes_the_place_of_both() -> None:
    text = one_branch(CHOOSING, executed_here)
    assert "def one(value):\n    return value[0]\n" in text
    assert "    if value:\n        return 1\n" in text
    assert "one([0]) if True else None" in text
    assert executed_here(text) == executed_here(CHOOSING)


def test_what_hooks_are_given_may_be_another_thing_on_another_torch() -> None:
    assert one_branch(CHOOSING, executed_here, ("one", "other")) == CHOOSING


def parts(body: str, verdict: str) -> Parts:
    return Parts('"""A."""', ("from contextlib import suppress",), "", body, verdict)


VERDICT = "experiment = run()\nraise SystemExit(0 if experiment == 1 else 1)"


@pytest.mark.parametrize(
    ("body", "verdict", "ends"),
    [
        ("def run():\n    a = f()\n    return a[0]", VERDICT, "a = f()\n\nexperiment = a[0]\nraise SystemExit("),
        (
            "def run():\n    a = f()\n    g(a)",
            raising("run()"),
            "try:\n    a = f()\n    g(a)\nexcept Exception as error:\n",
        ),
    ],
)
def test_what_runs_once_needs_no_function(body: str, verdict: str, ends: str) -> None:
    flat = flattened(parts(body, verdict))
    assert flat is not None
    assert f'"""A."""\n\nimport torch\nfrom torch import nn\n\n{ends}' in flat.text


@pytest.mark.parametrize(
    ("first", "begins"), [("calls = []", "calls, leaked = [], {}"), ("net = Net()", "leaked = {}\nnet = Net()")]
)
def test_what_leaks_has_its_place_beside_what_runs(first: str, begins: str) -> None:
    flat = flattened(
        parts(f"leaked = {{}}\n\n\nclass Net:\n    pass\n\n\ndef run():\n    {first}\n    return f()", VERDICT)
    )
    assert flat is not None
    assert f"from torch import nn\n\n\nclass Net:\n    pass\n\n\n{begins}\n" in flat.text


@pytest.mark.parametrize(
    "body", ["def run(hooked):\n    return f(hooked)", "def run():\n    net = f()\n    return weakref.ref(net)"]
)
def test_what_runs_twice_or_is_freed_is_a_function(body: str) -> None:
    assert flattened(parts(body, VERDICT)) is None


def test_what_would_say_another_thing_stays() -> None:
    text = "def run():\n    import sys\n\n    return sys._getframe().f_code.co_name"
    whole = parts(text, 'experiment = run()\nprint(experiment)\nraise SystemExit(0 if experiment != "run" else 1)')
    assert shorter(whole, executed_here) == whole


ON_A_BATCH = Topology(
    Linear(1, 1, bias=False),
    (Input("x", (1,), requires_grad=True),),
    (Call("y", "", (Ref("x"),), context="vmap"), Backward((Ref("y"),))),
    dtype="float32",
)


@pytest.mark.skipif(bool(unable(ON_A_BATCH, KINDS["full_backward"])), reason="it has no vmap that hooks know")
def test_a_context_is_entered_as_people_do(monkeypatch: pytest.MonkeyPatch) -> None:
    sighting = sightings(ON_A_BATCH, "context", KINDS["full_backward"], ON_NETWORKS["BW-02"], Ledger(()))[0]
    text = chosen(sighting).text
    limits(text.rstrip("\n"))
    assert 'torch.vmap(net, randomness="same")(x[None])[0]' in text
    assert text.count("def ") == 1
    assert executed(text)[0] == 1
    monkeypatch.setattr(torch, "vmap", lambda function, **options: lambda x: function(x[0])[None])
    assert executed(text)[0] == 0


def test_an_exception_is_shown_behind_a_run_without_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    register = nn.Module.register_forward_hook
    topology = Topology(Linear(1, 1), (Input("x", (1,)),), (Call("y", "", (Ref("x"),)),), dtype="float32")

    def refusing(self: nn.Module, hook: Any, **options: Any) -> Any:
        def refuses(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("broken on purpose")

        return register(self, refuses, **options)

    with monkeypatch.context() as broken:
        broken.setattr(nn.Module, "register_forward_hook", refusing)
        sighting = sightings(topology, "single-layer", KINDS["forward"], ON_NETWORKS["OB-01"], Ledger(()))[0]
        text = chosen(sighting).text
        assert "\n\n\nrun(hooked=False)  # the control raises nothing\ntry:\n    run(hooked=True)\n" in text
        assert executed(text) == (1, "experiment: RuntimeError: broken on purpose\n")
    assert executed(text) == (0, "")
