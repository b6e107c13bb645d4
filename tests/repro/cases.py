"""Networks that show what scripts must cope with, and torches that are broken on purpose."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from faults.autograd import on_nodes
from faults.engine import replaced
from faults.programs.saved_tensors_hooks import pairs

import hookcheck.contract.chapters  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.program import Program
from hookcheck.contract.verdict import CaseResult, Deviation
from hookcheck.probe.kinds import HookKind
from hookcheck.probe.registering import OWNERS
from hookcheck.probe.state import preserved
from hookcheck.record.model import (
    CorpusFile,
    Counterexample,
    Footer,
    Header,
    Plan,
    PlannedClause,
    Record,
    Torch,
    tally,
)
from hookcheck.topology.codec import encode, identify
from hookcheck.topology.layers.activation import Sigmoid
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Input, Leak, Sequential, Topology, Within
from hookcheck.topology.ops import Add
from hookcheck.topology.ops.complex import Complex
from hookcheck.topology.ops.elementwise import Neg
from hookcheck.topology.ops.inplace import AddInplace
from hookcheck.topology.ops.moving import To
from hookcheck.topology.source import source
from hookcheck.topology.tree import Literal, Pack, Ref

ON_NETWORKS = {id: clause for id, clause in CLAUSES.items() if not isinstance(clause, Program)}
"""The clauses that are no programs."""

PROGRAMS = {id: clause for id, clause in CLAUSES.items() if isinstance(clause, Program)}
"""Those that are."""

PAIR = Pack("tuple", (Ref("a"), Ref("b")))

LINEAR = Topology(
    Linear(2, 1),
    (Input("x", (2, 2), requires_grad=True), Input("v_y", (2, 1))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v_y"),))),
)

MIXED = Topology(
    Composite(
        (("stem", Linear(2, 3)), ("fc", Linear(2, 3)), ("act", Sigmoid()), ("aside", Sigmoid())),
        ("a", "b", "scale"),
        (
            Call("p", "stem", (Ref("a"),)),
            Call("q", "fc", (Ref("b"),)),
            Within("no_grad", (Call("r", "aside", (Ref("b"),)),)),
            Apply("s", Add(), (Ref("p"), Ref("q"))),
            Leak("s", Ref("s")),
            Call("t", "act", (Ref("s"),)),
        ),
        Ref("t"),
    ),
    (Input("a", (2, 2)), Input("b", (2, 2), requires_grad=True), Input("v", (2, 3))),
    (Call("y", "", (Ref("a"), Ref("b"), Literal(2.0))), Backward((Ref("y"),), (Ref("v"),))),
    frozen=("stem.weight", "stem.bias"),
)
"""A frozen stem on plain data, a part without grad mode, an argument that is no tensor, a leak."""

PACKED = Topology(
    Composite(
        (("fc", Linear(2, 2)),),
        ("x",),
        (Call("h", "fc", (Ref("x"),)),),
        Pack("tuple", (Ref("h"), Literal(None), Pack("dict", (Ref("h"),), ("again",)))),
    ),
    (Input("x", (1, 2), requires_grad=True), Input("v", (1, 2))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y", (0,)),), (Ref("v"),))),
)
"""Outputs in containers, one of them None."""

SHARED = Topology(
    Sequential((Linear(2, 2), Sigmoid(), Linear(2, 2))),
    (Input("x", (3, 2), requires_grad=True), Input("v", (3, 2))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))),
    ties=(("2", "0"),),
)
"""One layer in two places, so that its hook is due twice."""

UNLIKE = Topology(
    Composite(
        (("fc", Linear(2, 2)),),
        ("a", "b"),
        (
            Call("p", "fc", (Ref("a"),)),
            Call("q", "fc", (Ref("b"),)),
            Apply("s", Add(), (Ref("p"), Ref("q"))),
        ),
        Ref("s"),
    ),
    (Input("a", (2, 2)), Input("b", (2, 2), requires_grad=True), Input("v", (2, 2))),
    (Call("y", "", (Ref("a"), Ref("b"))), Backward((Ref("y"),), (Ref("v"),))),
    dtype="float32",
)
"""One layer called twice, due once under each firing rule."""

AGAIN = Topology(
    Sequential((Linear(2, 1), Sigmoid())),
    (Input("x", (3, 2), requires_grad=True), Input("v", (3, 1)), Input("w", (3, 1))),
    (
        Call("y", "", (Ref("x"),)),
        Backward((Ref("y"),), (Ref("v"),), retain_graph=True),
        Backward((Ref("y"),), (Ref("w"),)),
    ),
)
"""Two backward passes through one graph."""

KEYED = Topology(
    Composite(
        (("fc", Linear(2, 2)),),
        ("x",),
        (Call("h", "fc", (Ref("x"),)), Apply("g", Neg(), (Ref("h"),))),
        Pack("namedtuple", (Ref("h"), Pack("dataclass", (Ref("g"),), ("of",))), ("plain", "boxed")),
    ),
    (Input("x", (1, 2), requires_grad=True), Input("v", (1, 2))),
    (
        Call("y", "", (Ref("x"),)),
        Grad("d", (Ref("y", (0,)),), (Ref("x"),), (Ref("v"),), retain_graph=True),
        Backward((Ref("y", (1, ".of")),), (Ref("v"),)),
    ),
)
"""Outputs in a namedtuple and in a dataclass, and a gradient that is asked for."""

WRITTEN = Topology(
    Composite(
        (("fc", Linear(2, 2)), ("act", Sigmoid())),
        ("x",),
        (
            Call("h", "fc", (Ref("x"),)),
            Leak("h", Ref("h")),
            Apply("g", AddInplace(), (Ref("h"), Ref("x"))),
            Call("y", "act", (Ref("g"),)),
        ),
        Ref("y"),
    ),
    (Input("x", (2, 2), requires_grad=True), Input("v", (2, 2))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))),
)
"""An output of a module that is written to in place."""

TYPED = Topology(
    Composite(
        (("fc", Linear(2, 2)), ("part", Sigmoid())),
        ("x", "z"),
        (
            Call("h", "fc", (Ref("x"),)),
            Apply("c", Complex(), (Ref("h"), Ref("h"))),
            Apply("b", To("bfloat16"), (Ref("h"),)),
            Call("p", "part", (Ref("b"),)),
        ),
        Pack("tuple", (Ref("h"), Ref("c"), Ref("p"), Ref("z"))),
    ),
    (
        Input("x", (2, 2), requires_grad=True),
        Input("z", (2, 0), requires_grad=True),
        Input("v", (2, 2)),
        Input("w", (2, 2), domain="complex", dtype="complex64"),
        Input("u", (2, 2), dtype="bfloat16"),
    ),
    (
        Call("y", "", (Ref("x"), Ref("z"))),
        Backward((Ref("y", (0,)), Ref("y", (1,)), Ref("y", (2,))), (Ref("v"), Ref("w"), Ref("u"))),
    ),
    dtype="float32",
)
"""Outputs of three dtypes, one of them coarse, and an empty tensor that nothing uses."""

DOUBT = Topology(
    Composite(
        (("pair", Composite((), ("x",), (Apply("a", Neg(), (Ref("x"),)), Apply("b", Neg(), (Ref("x"),))), PAIR)),),
        ("x",),
        (Call("p", "pair", (Ref("x"),)), Call("q", "pair", (Ref("p", (1,)),))),
        Pack("tuple", (Ref("p", (0,)), Ref("q", (0,)), Ref("q", (1,)))),
    ),
    (Input("x", (2,), requires_grad=True), Input("v", (2,))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y", (0,)),), (Ref("v"),))),
)
"""Outputs that have zeros for gradients or None, and a call that need not come, of a module that is called twice."""

DOUBLED = Topology(
    Sequential((Linear(2, 1), Sigmoid())),
    (Input("x", (2, 2), requires_grad=True), Input("v", (2, 1)), Input("w", (2, 2))),
    (
        Call("y", "", (Ref("x"),)),
        Grad("d", (Ref("y"),), (Ref("x"),), (Ref("v"),), create_graph=True),
        Backward((Ref("d", (0,)),), (Ref("w"),)),
    ),
)
"""A backward through a backward."""

BY_HAND = {
    "linear": LINEAR,
    "mixed": MIXED,
    "packed": PACKED,
    "shared": SHARED,
    "unlike": UNLIKE,
    "again": AGAIN,
    "keyed": KEYED,
    "written": WRITTEN,
    "typed": TYPED,
    "doubt": DOUBT,
    "doubled": DOUBLED,
}


def record_with(topology: Topology) -> Record:
    """A sound record with one case, in which ``topology`` deviates."""
    id = identify(topology)
    deviation = Deviation("GI-01", "net#0", "wrong values", "1.0", "0.0")
    case = CaseResult("multi-node", id, "backward", "exploration", "ran", "", {"GI-01": 1}, (deviation,))
    clause = PlannedClause("GI-01", "promise", "It holds.", "1.8", "docs", ("backward",))
    plan = Plan("default", 0, ("multi-node",), ("backward",), (clause,), {"multi-node": CorpusFile(0, "ab12")}, 0)
    environment = {"python": "3.11.7", "platform": "Linux", "numpy": "2.1.0", "hypothesis": "6.170", "pytest": "9.2"}
    return Record(
        Header("0.1.0", "2026-11-21T04:40:00Z", environment, Torch("2.13.0+cpu", "0123abc", None), "cpu", plan),
        (case,),
        (Counterexample(id, encode(topology), source(topology).script()),),
        Footer("2026-11-21T04:41:00Z", True, "", tally((case,)), 0),
    )


def executed(script: str) -> tuple[int, str]:
    """Exit code and last words of a script, run in this process, which is left as it was."""
    out, err = io.StringIO(), io.StringIO()
    module = ModuleType("reproduced")  # pickle looks up in its module what a script defines
    sys.modules[module.__name__] = module
    with preserved(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(script, "<script>", "exec"), vars(module))
        except SystemExit as end:
            return (1, end.code) if isinstance(end.code, str) else (int(end.code or 0), out.getvalue())
        finally:
            del sys.modules[module.__name__]
    return 0, out.getvalue()


Change = Callable[..., Any]
"""Calls ``hook`` with what torch gives it, changed; what it returns torch takes for what the hook has returned."""


def _twice(hook: Any, module: Any, inputs: Any, outputs: Any) -> None:
    hook(module, inputs, outputs)
    hook(module, inputs, outputs)


def _doubling(hook: Any, module: Any, inputs: Any, outputs: Any) -> Any:
    hook(module, inputs, outputs)
    return tuple(None if g is None else 2 * g for g in inputs)


def _twice_of_two(hook: Any, module: Any, args: Any) -> None:
    hook(module, args)
    hook(module, args)


def _negated(values: Any) -> Any:
    return tuple(-value if isinstance(value, torch.Tensor) else value for value in values)


def _requiring(gradients: Any) -> Any:
    return tuple(g if g is None else g.detach().requires_grad_() for g in gradients)


def _filled(gradients: Any, others: Any) -> Any:
    """``gradients`` with zeros for None."""
    like = next(g for g in (*gradients, *others) if g is not None)
    return tuple(0 * like if g is None else g for g in gradients)


CHANGES: dict[str, tuple[Change, str]] = {
    "calls twice": (_twice, "BW-05"),
    "gives lists": (lambda hook, m, i, o: hook(m, list(i), list(o)), "BW-01"),
    "wrong grad_input": (lambda hook, m, i, o: hook(m, tuple(g if g is None else g + 1 for g in i), o), "GI-01"),
    "no grad_input": (lambda hook, m, i, o: hook(m, (None,) * len(i), o), "GI-02"),
    "one grad_input more": (lambda hook, m, i, o: hook(m, (*i, None), o), "BW-07"),
    "zeros for None": (lambda hook, m, i, o: hook(m, _filled(i, o), _filled(o, i)), "BW-08"),
    "wrong grad_output": (lambda hook, m, i, o: hook(m, i, tuple(g if g is None else g + 1 for g in o)), "GO-01"),
    "no grad_output": (lambda hook, m, i, o: hook(m, i, (None,) * len(o)), "GO-02"),
    "one grad_output more": (lambda hook, m, i, o: hook(m, i, (*o, None)), "GO-03"),
    "gradients require grad": (lambda hook, m, i, o: hook(m, _requiring(i), _requiring(o)), "GR-01"),
    "doubles gradients": (_doubling, "OB-03 AG-01"),
}
"""How a broken torch calls a hook, and the clauses that this breaks."""


def _forward(act: Callable[..., Any]) -> Callable[..., Any]:
    """A registration that puts ``act(hook, module, output)`` on forward, before the hook itself is registered."""

    def register(original: Any, module: Any, hook: Any) -> Any:
        module.register_forward_hook(lambda m, inputs, output: act(hook, m, output))
        return original(module, hook)

    return register


def _raise(hook: Any, module: Any, output: Any) -> None:
    raise ValueError("broken on purpose")


def _frozen(original: Any, module: Any, hook: Any) -> Any:
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return original(module, hook)


def _drawing(original: Any, module: Any, hook: Any) -> Any:
    torch.rand(1)
    return original(module, hook)


def _touching(original: Any, module: Any, hook: Any) -> Any:
    """Writes to arguments that autograd does not need, before the hook is registered."""
    module.register_forward_hook(lambda m, args, output: _touched(args))
    return original(module, hook)


def _touched(args: Any) -> None:
    for arg in args:
        if isinstance(arg, torch.Tensor) and not arg.requires_grad:
            arg.mul_(1)


def _warning(original: Any, module: Any, hook: Any) -> Any:
    warnings.warn("broken on purpose", stacklevel=1)
    return original(module, hook)


REGISTRATIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "never calls": (lambda original, module, hook: None, "BW-02"),
    "calls in forward": (_forward(lambda hook, m, output: hook(m, (None,), (None,))), "BW-04 NG-01"),
    "raises": (_forward(_raise), "OB-01"),
    "negates outputs": (_forward(lambda hook, m, output: -output), "OB-02"),
    "freezes": (_frozen, "OB-04"),
    "warns": (_warning, "OB-05"),
    "draws": (_drawing, "OB-06"),
    "touches": (_touching, "OB-07"),
}
"""How a broken torch registers a hook, and the clauses that this breaks."""


@contextmanager
def broken(register: str, how: str) -> Iterator[None]:
    """A torch whose ``nn.Module.<register>`` is broken in one of the ways above."""
    from torch import nn

    original = getattr(nn.Module, register)

    def patched(module: Any, hook: Any) -> Any:
        if how in REGISTRATIONS:
            return REGISTRATIONS[how][0](original, module, hook)
        change = CHANGES[how][0]
        return original(module, lambda *arguments: change(hook, *arguments))

    setattr(nn.Module, register, patched)
    try:
        yield
    finally:
        setattr(nn.Module, register, original)


NEW_CHANGES: dict[str, tuple[str, Change | None, str]] = {
    "pre-hook is never called": ("full_backward_pre", None, "BN-01"),
    "pre-hook gets a list": ("full_backward_pre", lambda hook, m, o: hook(m, list(o)), "BN-02"),
    "pre-hook gets other values": ("full_backward_pre", lambda hook, m, o: hook(m, tuple(g + 1 for g in o)), "GO-01"),
    "forward pre-hook is called twice": ("forward_pre", _twice_of_two, "FN-01"),
    "forward hook is never called": ("forward", None, "FN-01"),
    "forward hook gets an argument more": ("forward", lambda hook, m, a, o: hook(m, (*a, None), o), "FN-02"),
    "forward pre-hook gets other values": ("forward_pre", lambda hook, m, a: hook(m, _negated(a)), "FN-02"),
    "no keyword arguments": ("forward_kwargs", lambda hook, m, a, k, o: hook(m, a, {"key": 1}, o), "FN-03"),
    "forward hook gets another output": ("forward", lambda hook, m, a, o: hook(m, a, (o,)), "FN-04"),
    "tensor hook gets other values": ("tensor", lambda hook, g: hook(2 * g), "TN-01"),
    "tensor hook is never called": ("tensor", None, "TN-01"),
    "tensor hook gets what requires grad": ("tensor", lambda hook, g: hook(g.detach().requires_grad_()), "GR-01"),
    "leaf hook is called twice": ("post_accumulate", lambda hook, leaf: (hook(leaf), hook(leaf))[0], "TN-02"),
    "output hook gets other values": ("output_tensor", lambda hook, g: hook(2 * g), "TN-03"),
    "output hook is never called": ("output_tensor", None, "TN-03"),
    "node hook gets other values": ("output_node", lambda hook, i, o: hook(i, _negated(o)), "TN-04"),
    "node pre-hook is called twice": ("output_node_pre", lambda hook, o: (hook(o), hook(o))[0], "TN-05"),
    "multi-grad hook gets other values": ("multi_grad", lambda hook, g: hook([*_negated(g)]), "TN-06"),
    "multi-grad hook is never called": ("multi_grad", None, "TN-06"),
    "no gradient is retained": ("output_retain_grad", None, "TN-07"),
    "another number is unpacked": ("saved_tensors", lambda hook, number: hook(-1), "TN-08"),
    "new output is dropped": ("acting_forward", lambda hook, *told: (hook(*told), None)[1], "AG-01 AG-02"),
    "new argument is dropped": ("acting_forward_pre", lambda hook, *told: (hook(*told), None)[1], "AG-02"),
    "new grad_input is dropped": ("acting_full_backward", lambda hook, *told: (hook(*told), None)[1], "AG-01 CH-01"),
    "new grad_output is dropped": ("acting_full_backward_pre", lambda hook, *told: (hook(*told), None)[1], "AG-01"),
}
"""How a broken torch calls hooks of other kinds (None: not at all), and the clauses that this breaks."""


@contextmanager
def changed(kind: HookKind, change: Change | None) -> Iterator[None]:
    """A torch that calls hooks of ``kind`` in another way."""

    def otherwise(original: Any) -> Any:
        def register(*arguments: Any, **settings: Any) -> Any:
            *owner, hook = arguments
            return change and original(*owner, lambda *told: change(hook, *told), **settings)

        return register

    def called(hook: Any) -> Any:
        return lambda *told: change and change(hook, *told)

    with contextlib.ExitStack() as stack:
        if kind.scope == "node":
            stack.enter_context(on_nodes(called, called))
        elif kind.scope == "run":
            stack.enter_context(pairs(unpack=called))
        else:
            stack.enter_context(replaced(OWNERS[kind.scope], kind.register, otherwise))
        if kind.then:
            stack.enter_context(replaced(torch.nn.Module, kind.then, otherwise))
        yield
