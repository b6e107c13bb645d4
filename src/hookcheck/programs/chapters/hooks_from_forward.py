"""What becomes of hooks that a module's own ``forward`` registers or removes?

A call gathers the hooks of its backward before it runs ``forward``, and its forward hooks after. So what ``forward``
does to a kind whose turn is over, or which is gathered, counts from the next call on, and else at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.handles import GLOBAL, KINDS, LEAF, MODULE, NODE, OUTPUT, SEVERAL, kinds, restored
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

SOURCE = "call of torch.nn.Module: before and after forward"


def at_once(kind: str) -> bool:
    """Whether what ``forward`` does to hooks of that kind counts in the same call."""
    owner, register = KINDS[kind]
    return owner not in (MODULE, GLOBAL) or register.endswith("forward_hook")


def registering(kind: str, module: Any, x: Any, y: Any, hook: Any) -> Any:
    """The handle of a hook of that kind."""
    owner, register = KINDS[kind]
    if owner == SEVERAL:
        return torch.autograd.graph.register_multi_grad_hook((x,), hook)
    return getattr(_owners(module, x, y)[owner], register)(hook)


def _owners(module: Any, x: Any, y: Any) -> dict[str, Any]:
    node = None if y is None else y.grad_fn
    return {MODULE: module, GLOBAL: torch.nn.modules.module, LEAF: x, OUTPUT: y, NODE: node}


Act = Callable[[Any, Any, Any, dict[str, Any]], None]
"""What ``forward`` does: with its module, input and output, and the handles of the hooks that are there."""


def counts(kind: str, act: Act, log: list[str]) -> list[list[int]]:
    """How often the hooks ``a``, ``b`` and ``new`` were called by the end of each of two calls and backwards, where
    ``forward`` does ``act`` in the first of them."""
    acts, handles = [act], dict[str, Any]()

    def forward(module: Any, x: Any) -> Any:
        y = 2 * x
        if acts:
            acts.pop()(module, x, y, handles)
        return y

    module, x = net(forward), leaf(1.0)
    if KINDS[kind][0] not in (OUTPUT, NODE):
        for word in ("a", "b"):
            handles[word] = registering(kind, module, x, None, noting(log, word))
    seen = []
    for _ in range(2):
        module(x).sum().backward()
        seen.append([log.count(word) for word in ("a", "b", "new")])
    return seen


@program("HF-01", PIN, since="1.8", source=f"{SOURCE}; torch.Tensor.register_hook")
def hooks_that_forward_registers(check: Check) -> None:
    """A hook that ``forward`` registers is called in the same call if it is a forward hook, or is on a tensor or Node,
    else from the next call on; the others of its kind are called as ever."""
    for kind in kinds():
        log: list[str] = []

        def act(module: Any, x: Any, y: Any, _: Any, kind: str = kind, log: list[str] = log) -> None:
            registering(kind, module, x, y, noting(log, "new"))

        with restored():
            seen = check.works(f"two calls: {kind}", partial(counts, kind, act, log))
        there = 0 if KINDS[kind][0] in (OUTPUT, NODE) else 1
        first = int(at_once(kind))
        # What is on an output or its Node goes with the graph of the first call.
        due = [[there, there, first], [2 * there, 2 * there, first + there]]
        check.equal(f"calls of the hooks before, and of the new one: {kind}", seen, due)


@program("HF-02", PIN, since="1.8", source=f"{SOURCE}; torch.utils.hooks.RemovableHandle")
def hooks_that_forward_removes(check: Check) -> None:
    """A hook that ``forward`` removes is not called any more in the same call if it is a forward hook or on a tensor,
    else from the next call on; the others of its kind are called as ever."""
    for kind in kinds(MODULE, GLOBAL, LEAF, SEVERAL):
        log: list[str] = []

        def act(module: Any, x: Any, y: Any, handles: dict[str, Any]) -> None:
            handles["a"].remove()

        with restored():
            seen = check.works(f"two calls: {kind}", partial(counts, kind, act, log))
        first = int(not at_once(kind))
        check.equal(f"calls of the hook that goes, and of the other: {kind}", seen, [[first, 1, 0], [first, 2, 0]])
