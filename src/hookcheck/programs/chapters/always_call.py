"""What does ``always_call`` promise: a forward hook that runs although the call raises?

They run although the call of the module raises, in ``forward`` or in a hook; the output is None where there is none
yet. The error comes out of the call all the same.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import net
from hookcheck.programs.program import program
from hookcheck.programs.watching import globally, keeping, noting

ALWAYS = "torch.nn.Module.register_forward_hook, always_call"


def failing() -> Any:
    """``y = 2 * x``, or with ``fail`` a ValueError."""

    def forward(module: Any, x: Any, fail: bool = False) -> Any:
        if fail:
            raise ValueError("forward")
        return 2 * x

    return net(forward)


def raising(*arguments: Any) -> None:
    """A hook of any kind that raises a KeyError."""
    raise KeyError("hook")


@program("FW-17", PROMISE, since="2.1", source=ALWAYS)
def runs_although_the_call_raises(check: Check) -> None:
    """A forward hook with ``always_call`` runs whether or not calling the module raises, and the error comes out."""
    x = torch.tensor([1.0])
    for prepend, with_kwargs in product((False, True), (False, True)):
        what = f"prepend={prepend}, with_kwargs={with_kwargs}"
        module, seen = failing(), list[Any]()
        module.register_forward_hook(noting([], "ordinary"))
        module.register_forward_hook(keeping(seen), prepend=prepend, with_kwargs=with_kwargs, always_call=True)
        check.raises(f"the call: {what}", ValueError, partial(module, x, fail=True), "forward")
        kwargs = ({"fail": True},) if with_kwargs else ()
        check.equal(f"what the hook gets: {what}", seen, [(module, (x,), *kwargs, None)])
        seen.clear()
        check.equal(f"output of the next call: {what}", module(x, fail=False), [2.0])
        kwargs = ({"fail": False},) if with_kwargs else ()
        check.equal(f"what the hook gets from it: {what}", seen, [(module, (x,), *kwargs, [2.0])])

    module, seen = failing(), []
    module.register_forward_hook(keeping(seen), always_call=True)
    handle = module.register_forward_pre_hook(raising)
    check.raises("a pre-hook that raises", KeyError, partial(module, x), "hook")
    check.equal("what the hook gets then", seen, [(module, (x,), None)])
    handle.remove()
    module.register_forward_hook(raising, prepend=True)
    check.raises("an earlier forward hook that raises", KeyError, partial(module, x), "hook")
    check.equal("what the hook gets from the second call", seen[1:], [(module, (x,), [2.0])])

    for with_kwargs in (False, True):
        module, seen = failing(), []
        module.register_forward_pre_hook(lambda module, args, kwargs: ((5 * x,), {"fail": True}), with_kwargs=True)
        module.register_forward_hook(keeping(seen), with_kwargs=with_kwargs, always_call=True)
        check.raises(
            f"a call as a pre-hook changed it: with_kwargs={with_kwargs}", ValueError, partial(module, x), "forward"
        )
        kwargs = ({"fail": True},) if with_kwargs else ()
        check.equal(f"what the hook gets from it: with_kwargs={with_kwargs}", seen, [(module, ([5.0],), *kwargs, None)])

    module, seen = failing().eval(), []
    module.register_forward_hook(keeping(seen), always_call=True)
    check.raises("the call in eval mode", ValueError, partial(module, x, fail=True), "forward")
    check.equal("what the hook gets in eval mode", seen, [(module, (x,), None)])

    log: list[str] = []
    inner = failing()
    inner.register_forward_hook(noting(log, "inner"), always_call=True)
    outer = net(lambda module, x: module.inner(x, fail=True), inner=inner)
    outer.register_forward_hook(noting(log, "outer"), always_call=True)
    check.raises("a module inside another", ValueError, partial(outer, x), "forward")
    check.order("hooks inside out", log, ["inner", "outer"])


@program("FW-18", PROMISE, since="2.1", source=ALWAYS)
def ordinary_hooks_do_not(check: Check) -> None:
    """Without ``always_call`` a forward hook does not run when the call raises."""
    log: list[str] = []
    x, module = torch.tensor([1.0]), failing()
    module.register_forward_hook(noting(log, "by default"))
    module.register_forward_hook(noting(log, "always"), always_call=True)
    module.register_forward_hook(noting(log, "on request"), always_call=False)
    check.raises("forward raises", ValueError, partial(module, x, fail=True), "forward")
    check.order("hooks after forward raised", log, ["always"])
    log.clear()
    handle = module.register_forward_pre_hook(raising)
    check.raises("a pre-hook raises", KeyError, partial(module, x), "hook")
    check.order("hooks after a pre-hook raised", log, ["always"])
    log.clear()
    handle.remove()
    module(x)
    check.order("hooks of the next call", log, ["by default", "always", "on request"])
    log.clear()
    module.register_forward_hook(raising, prepend=True)
    check.raises("a forward hook raises", KeyError, partial(module, x), "hook")
    check.order("hooks after a forward hook raised", log, ["always"])


@program("FW-22", PROMISE, since="2.1", source=ALWAYS)
def runs_once(check: Check) -> None:
    """A forward hook with ``always_call`` runs once a call, whatever raises, itself included."""
    log: list[str] = []
    x, module = torch.tensor([1.0]), failing()
    for word in ("first", "second"):
        module.register_forward_hook(noting(log, word), always_call=True)
    handle = module.register_forward_hook(raising)
    module.register_forward_hook(noting(log, "third"), always_call=True)
    check.raises("a hook between them raises", KeyError, partial(module, x), "hook")
    check.order("hooks before and after it", log, ["first", "second", "third"])
    log.clear()
    handle.remove()

    def hook(module: Any, args: Any, output: Any) -> None:
        log.append("raising")
        raise KeyError("itself")

    handle = module.register_forward_hook(hook, always_call=True, prepend=True)
    module.register_forward_hook(noting(log, "ordinary"))
    check.raises("one of them raises", KeyError, partial(module, x), "itself")
    check.order("each of them, and no ordinary one", log, ["raising", "first", "second", "third"])
    log.clear()
    handle.remove()
    check.raises("forward raises", ValueError, partial(module, x, fail=True), "forward")
    check.order("hooks after forward raised", log, ["first", "second", "third"])
    log.clear()
    module(x)
    check.order("hooks of the next call", log, ["first", "second", "third", "ordinary"])


@program("FW-23", PIN, since="2.1", source=f"{ALWAYS}; pytorch#104278")
def cannot_hide_the_error(check: Check) -> None:
    """What a hook with ``always_call`` returns or raises after an error does not take the error's place."""
    x, seen = torch.tensor([1.0]), list[Any]()
    for what, options in {"": {}, ", with_kwargs": {"with_kwargs": True}}.items():
        seen.clear()
        replacing = failing()
        replacing.register_forward_hook(lambda *given: x if given[-1] is None else None, always_call=True, **options)
        replacing.register_forward_hook(lambda *given: given[-1] + 2, always_call=True, **options)
        replacing.register_forward_hook(keeping(seen), always_call=True)
        check.raises(f"hooks that return values{what}", ValueError, partial(replacing, x, fail=True), "forward")
        check.equal(f"the output that a third hook gets{what}", seen[0][2], [3.0])
        check.equal(f"output of the next call{what}", replacing(x), [4.0])

    log: list[str] = []
    module, other = failing(), failing()
    module.register_forward_hook(raising, always_call=True)
    module.register_forward_hook(noting(log, "next"), always_call=True)

    def call() -> None:
        check.raises("a hook that raises too", ValueError, partial(module, x, fail=True), "forward")

    check.warns("the second error is told in a warning", UserWarning, call, "hook")
    check.order("the hook after the one that raises", log, ["next"])

    def call_with_global_hooks() -> None:
        check.raises("global hooks that return and raise", ValueError, partial(other, x, fail=True), "forward")

    seen.clear()
    order: list[str] = []
    other.register_forward_hook(keeping(seen), always_call=True)
    globally(
        "forward_hook", lambda *given: (order.append("first"), x if given[-1] is None else None)[1], always_call=True
    )
    globally("forward_hook", raising, always_call=True)
    globally("forward_hook", noting(order, "third"), always_call=True)
    check.warns("the error of a global hook is told in a warning", UserWarning, call_with_global_hooks, "hook")
    check.equal("the output that a hook gets after global ones", [call[2] for call in seen], [[1.0]])
    check.order("global hooks before and after the one that raises", [*dict.fromkeys(order)], ["first", "third"])


@program("FW-24", PIN, since="2.1", source=f"{ALWAYS}; pytorch#104278")
def runs_for_every_exception(check: Check) -> None:
    """A hook with ``always_call`` runs for exceptions that are no ``Exception`` too, such as KeyboardInterrupt."""
    for error in (KeyboardInterrupt, SystemExit, GeneratorExit):
        log: list[str] = []

        def forward(module: Any, x: Any, error: Any = error) -> Any:
            raise error("stop")

        module = net(forward)
        module.register_forward_hook(noting(log, "hook"), always_call=True)
        check.raises(f"{error.__name__} comes out", error, partial(module, torch.tensor([1.0])), "stop")
        check.calls(f"calls of the hook after {error.__name__}", len(log), 1)
