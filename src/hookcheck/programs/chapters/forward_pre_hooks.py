"""What do a module's forward pre-hooks promise: when they run, what they get, and what becomes of what they return?

A forward pre-hook is called as ``hook(module, args)`` before ``forward`` and may replace the positional arguments. With
``with_kwargs`` it is called as ``hook(module, args, kwargs)`` and may replace both.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import net
from hookcheck.programs.program import program
from hookcheck.programs.watching import given, keeping, noting

PRE = "torch.nn.Module.register_forward_pre_hook"


@program("FW-01", PROMISE, since="1.7", source=PRE)
def runs_before_forward(check: Check) -> None:
    """A forward pre-hook runs on every call of the module instance, before the body of ``forward``."""
    log: list[str] = []

    x, inner = torch.ones(2), net(lambda module, x: log.append("forward"))
    handle = inner.register_forward_pre_hook(noting(log, "hook"))
    inner(x)
    inner(x)
    check.order("two calls", log, ["hook", "forward"] * 2)
    log.clear()
    with torch.no_grad():
        inner.eval()(x)
    check.order("a call in eval mode under no_grad", log, ["hook", "forward"])
    log.clear()
    outer = net(lambda module, x: module.inner(x), inner=inner)
    outer.register_forward_pre_hook(noting(log, "outer hook"))
    outer(x)
    check.order("a module inside another", log, ["outer hook", "hook", "forward"])
    log.clear()
    handle.remove()
    hook = noting(log, "hook")
    inner.register_forward_pre_hook(hook)
    inner.register_forward_pre_hook(hook)
    inner(x)
    check.order("a hook that is registered twice", log, ["hook", "hook", "forward"])


@program("FW-02", PROMISE, since="1.7", source=PRE)
def gets_module_and_arguments(check: Check) -> None:
    """Registered without ``with_kwargs``, a forward pre-hook gets the module and the tuple of positional arguments."""
    shown, seen, x, y = given(), list[Any](), torch.tensor([1.0, 2.0]), torch.tensor([3.0])
    shown.register_forward_pre_hook(keeping(seen))
    shown(x, scale=3)
    check.equal("how many arguments the hook gets", len(seen[0]), 2)
    check.true("the module", seen[0][0] is shown)
    check.equal("args beside a keyword argument", seen[0][1], (x,))
    check.true("args hold the very tensor", seen[0][1][0] is x)
    shown(x, 5, None, "text", [y], y)
    check.equal("args of every type", seen[1][1], (x, 5, None, "text", [y], y))
    shown(scale=3)
    check.equal("args without any positional argument", seen[2][1], ())
    shown((x, y))
    check.equal("args of a call with one tuple", seen[3][1], ((x, y),))


@program("FW-03", PROMISE, since="1.7", source=f"{PRE}; 'Keyword arguments'")
def keywords_reach_forward(check: Check) -> None:
    """Keyword arguments that a forward pre-hook is not shown reach ``forward`` unchanged."""
    shown, x, y = given(), torch.tensor([1.0]), torch.tensor([2.0])
    shown.register_forward_pre_hook(lambda module, args: None)
    keywords = shown(x, scale=y, shift=None)[1]
    check.equal("keyword arguments", keywords, {"scale": y, "shift": None})
    check.true("the very tensor", keywords["scale"] is y)
    check.equal("keyword arguments alone", shown(scale=3), ((), {"scale": 3}))
    shown.register_forward_pre_hook(lambda module, args: (y, y))
    check.equal("keyword arguments beside replaced arguments", shown(x, scale=3), ((y, y), {"scale": 3}))
    check.equal("the next call without keyword arguments", shown(x), ((y, y), {}))


@program("FW-04", PROMISE, since="1.7", source=f"{PRE}; notes on modules, 'Module Hooks'")
def a_tuple_replaces_the_arguments(check: Check) -> None:
    """Of a forward pre-hook, None leaves the arguments alone, and a tuple takes the place of the positional ones."""
    shown = nn.Threshold(0.0, 0.0)
    x, y, z = torch.tensor([1.0, 2.0]), torch.tensor([3.0]), torch.tensor([4.0])
    handle = shown.register_forward_pre_hook(lambda module, args: None)
    check.equal("output under a hook that returns None", shown(x), [1, 2])
    handle.remove()
    shown.register_forward_pre_hook(lambda module, args: (args[0] + 10,))
    check.equal("output under a hook that returns a tuple", shown(x), [11, 12])
    check.equal("output of the second call", shown(x + 1), [12, 13])

    results = {"longer": (y, x), "shorter": (y,), "empty": (), "of no tensor": (None, 0), "named": torch.max(x, 0)}
    for name, returned in results.items():
        shown = given()
        shown.register_forward_pre_hook(lambda module, args, returned=returned: returned)
        check.equal(f"what forward gets for a tuple that is {name}", shown(x, z), (tuple(returned), {}))

    chain, seen = given(), list[Any]()
    chain.register_forward_pre_hook(lambda module, args: (args[0] + 1, y))
    chain.register_forward_pre_hook(keeping(seen))
    chain.register_forward_pre_hook(lambda module, args: (10 * args[0],))
    chain.register_forward_pre_hook(keeping(seen))
    check.equal("what forward gets from a chain of four hooks", chain(x), (([20.0, 30.0],), {}))
    check.equal("args of the second hook", seen[0][1], ([2.0, 3.0], y))
    check.equal("args of the fourth hook", seen[1][1], ([20.0, 30.0],))


@program("FW-05", PROMISE, since="1.7", source=PRE)
def a_single_value_is_wrapped(check: Check) -> None:
    """A single value that a forward pre-hook returns, and that is no tuple, becomes the only positional argument."""
    x, y = torch.tensor([1.0]), torch.tensor([2.0, 3.0])
    values = {"tensor": y, "list": [x, y], "dict": {"key": y}, "number": 0, "text": "", "truth value": False}
    for name, value in values.items():
        shown, seen = given(), list[Any]()
        shown.register_forward_pre_hook(lambda module, args, value=value: value)
        shown.register_forward_pre_hook(keeping(seen))
        check.equal(f"what forward gets for a {name}", shown(x, x), ((value,), {}))
        check.equal(f"args of the next hook after a {name}", seen[0][1], (value,))


@program("FW-06", PROMISE, since="2.0", source=f"{PRE}, with_kwargs")
def gets_keywords_too(check: Check) -> None:
    """Registered with ``with_kwargs``, a forward pre-hook gets module, args and the dict of keyword arguments."""
    shown, seen, plain, x, y = given(), list[Any](), list[Any](), torch.tensor([1.0]), torch.tensor([2.0])
    shown.register_forward_pre_hook(keeping(plain))
    shown.register_forward_pre_hook(keeping(seen), with_kwargs=True)
    shown.register_forward_pre_hook(keeping(plain), with_kwargs=False)
    check.equal("what forward gets under hooks that return None", shown(x, scale=y), ((x,), {"scale": y}))
    check.equal("how many arguments the hook gets", len(seen[0]), 3)
    check.true("the module", seen[0][0] is shown)
    check.equal("args and kwargs", seen[0][1:], ((x,), {"scale": y}))
    check.true("kwargs hold the very tensor", seen[0][2]["scale"] is y)
    check.equal("what hooks without it get beside it", [call[1:] for call in plain], [((x,),), ((x,),)])
    shown(x, y)
    check.equal("args and kwargs without keyword arguments", seen[1][1:], ((x, y), {}))
    shown(scale=3, shift=None)
    check.equal("args and kwargs of keyword arguments alone", seen[2][1:], ((), {"scale": 3, "shift": None}))


@program("FW-07", PROMISE, since="2.0", source=f"{PRE}, with_kwargs")
def changes_both_or_nothing(check: Check) -> None:
    """A forward pre-hook with ``with_kwargs`` that changes anything returns the pair of args and kwargs."""
    x, y = torch.tensor([1.0]), torch.tensor([2.0])
    pairs: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "changed arguments": ((y,), {"scale": 3}),
        "a changed keyword argument": ((x,), {"scale": y}),
        "another keyword argument": ((x,), {"scale": 3, "shift": 1}),
        "everything dropped": ((), {}),
    }
    for name, pair in pairs.items():
        shown, seen = given(), list[Any]()
        shown.register_forward_pre_hook(lambda module, args, kwargs, pair=pair: pair, with_kwargs=True)
        shown.register_forward_pre_hook(keeping(seen), with_kwargs=True)
        shown.register_forward_pre_hook(keeping(seen))
        check.equal(f"what forward gets for {name}", shown(x, scale=3), pair)
        check.equal(f"what the next hooks get for {name}", [call[1:] for call in seen], [pair, pair[:1]])

    mixed = given()
    mixed.register_forward_pre_hook(lambda module, args: args[0] + 1)
    mixed.register_forward_pre_hook(lambda module, args, k: (args * 2, {"n": k["n"] + 1}), with_kwargs=True)
    mixed.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    mixed.register_forward_pre_hook(lambda module, args, k: (args, {"n": k["n"] * 2}), with_kwargs=True)
    check.equal("what forward gets from a chain of both sorts", mixed(x, n=1), (([20.0],), {"n": 4}))

    wrong = {"tensor": y, "dict": {"scale": 2}, "tuple of one": (y,), "triple": ((y,), {}, 1), "list": [(y,), {}]}
    for name, value in wrong.items():
        ran: list[str] = []
        shown = net(noting(ran, "forward"))
        shown.register_forward_pre_hook(lambda module, args, kwargs, value=value: value, with_kwargs=True)
        call = partial(shown, x, scale=3)
        check.raises(f"a {name} instead of the pair", RuntimeError, call, "a tuple of (new_args, new_kwargs)")
        check.calls(f"forward after a {name} instead of the pair", len(ran), 0)
