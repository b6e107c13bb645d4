"""Faults in what hooks on Nodes, on several tensors and on saved tensors are told, in retained gradients, and in chains
of hooks on a module."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from weakref import ref

import torch

from hookcheck.hooks.kinds import KINDS, MULTI_GRAD, NODE, NODE_PRE, RETAINED, SAVED

from .autograd import Wrapped, on_nodes
from .engine import LEGACY, Fault, added, called, fetched, replaced
from .forward_calls import Hook, every_second, giving, kinds, registering, twice
from .programs.saved_tensors_hooks import pairs

CHAINS = tuple(kind.name for kind in KINDS.values() if kind.then)


def doubled(*gradients: Any) -> tuple[Any, ...]:
    """Twice the gradients, in whatever tuples."""
    return tuple(
        doubled(*g) if isinstance(g, (tuple, list)) else 2 * g if isinstance(g, torch.Tensor) else g for g in gradients
    )


@contextmanager
def registering_later(change: Any) -> Iterator[None]:
    """Replaces how the hooks of a chain that come after the global one are registered."""
    with ExitStack() as stack:
        for name in {kind.then for kind in KINDS.values() if kind.then}:
            if hasattr(torch.nn.Module, name):
                stack.enter_context(replaced(torch.nn.Module, name, change))
        yield


def last(original: Any) -> Any:
    """Nothing is put before anything."""
    return lambda module, hook, **settings: original(module, hook, **{**settings, "prepend": False})


def forgetful(original: Any) -> Any:
    """What a hook on a module returns is not used."""

    def register(module: Any, hook: Hook, **settings: Any) -> Any:
        return original(module, lambda *arguments: (hook(*arguments), None)[1], **settings)

    return register


def silent_on_nodes() -> AbstractContextManager[None]:
    """Hooks on a Node are silent once the tensor that they were found by was written to."""
    grad_fn = torch.Tensor.grad_fn

    def get(self: Any) -> Any:
        node = grad_fn.__get__(self)
        if node is None:
            return None
        # It has the version of the tensor, and does not keep the Node alive.
        memory, version = self.detach(), self._version

        def while_unwritten(hook: Hook) -> Hook:
            return lambda *given: hook(*given) if memory._version == version else None

        return Wrapped(node, while_unwritten, while_unwritten)

    return added(torch.Tensor, "grad_fn", property(get))


def retaining_as_it_was(original: Any) -> Any:
    """A tensor retains the gradient of what it was when it was told to, whatever is written to it later."""

    def retain_grad(self: Any) -> None:
        tensor, place = ref(self), self.output_nr

        def keep(gradients: Any) -> None:
            retaining, gradient = tensor(), gradients[place]
            if retaining is not None and gradient is not None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # torch warns of the question
                    retaining.grad = gradient.clone() if retaining.grad is None else retaining.grad + gradient

        self.grad_fn.register_prehook(keep)

    return retain_grad


@contextmanager
def silent_legacy_hooks() -> Iterator[None]:
    """Legacy hooks are silent once the output of their module was written to."""
    calls: list[list[Any]] = []

    def call(forward: Any, module: Any, args: Any) -> Any:
        calls.append(memory := [])
        try:
            result = forward(*args)
        finally:
            calls.pop()
        if isinstance(result, torch.Tensor):
            memory += [result.detach(), result._version]
        return result

    def while_unwritten(module: Any, hooks: list[Any]) -> list[Any]:
        memory = calls[-1]

        def silent(hook: Any) -> Any:
            return lambda *given: hook(*given) if not memory or memory[0]._version == memory[1] else None

        return [silent(hook) for hook in hooks]

    with called(call), fetched(while_unwritten):
        yield


GRAPH_HOOKS = (
    Fault(
        "hooks on a Node are silent once its output was written to",
        silent_on_nodes,
        ("TN-04",),
        kinds(NODE),
        "1.7",
    ),
    Fault(
        "pre-hooks on a Node are silent once its output was written to",
        silent_on_nodes,
        ("TN-05",),
        kinds(NODE_PRE),
        "1.13",
    ),
    Fault(
        "the gradient of what a tensor was is retained",
        lambda: replaced(torch.Tensor, "retain_grad", retaining_as_it_was),
        ("TN-07",),
        kinds(RETAINED),
        "1.13",
    ),
    Fault(
        "legacy hooks are silent once the output was written to",
        silent_legacy_hooks,
        ("P2-11", "P2-12"),
        LEGACY,
    ),
    Fault(
        "a hook on a Node is told twice the gradients",
        lambda: on_nodes(giving(doubled)),
        ("TN-04",),
        kinds(NODE),
        "1.7",
    ),
    Fault("a hook on a Node is called twice", lambda: on_nodes(twice), ("TN-04",), kinds(NODE), "1.7"),
    Fault(
        "a pre-hook on a Node is told twice the gradients",
        lambda: on_nodes(pre=giving(doubled)),
        ("TN-05",),
        kinds(NODE_PRE),
        "1.13",
    ),
    Fault(
        "every second call of a pre-hook on a Node is left out",
        lambda: on_nodes(pre=every_second),
        ("TN-05",),
        kinds(NODE_PRE),
        "1.13",
    ),
    Fault(
        "a multi-grad hook is told twice the gradients",
        lambda: registering(giving(doubled), MULTI_GRAD),
        ("TN-06",),
        kinds(MULTI_GRAD),
        "2.0",
    ),
    Fault(
        "a multi-grad hook is called twice",
        lambda: registering(twice, MULTI_GRAD),
        ("TN-06",),
        kinds(MULTI_GRAD),
        "2.0",
    ),
    Fault(
        "a multi-grad hook is told zeros for None",
        lambda: registering(
            giving(lambda gradients: ([torch.zeros(()) if g is None else g for g in gradients],)), MULTI_GRAD
        ),
        ("TN-06",),
        kinds(MULTI_GRAD),
        "2.0",
    ),
    Fault(
        "no gradient is retained",
        lambda: replaced(torch.Tensor, "retain_grad", lambda original: lambda self: None),
        ("TN-07",),
        kinds(RETAINED),
        "1.7",
    ),
    Fault(
        "another number is unpacked than was packed",
        lambda: pairs(unpack=lambda hook: lambda number: hook(-1)),
        ("TN-08",),
        kinds(SAVED),
        "1.10",
    ),
    Fault(
        "what is unpacked is twice what was packed",
        lambda: pairs(unpack=lambda hook: lambda number: 2 * hook(number)),
        ("OB-03", "AG-01"),
        kinds(SAVED),
        "1.10",
    ),
    Fault(
        "prepended hooks are called last",
        lambda: registering_later(last),
        ("CH-01",),
        CHAINS,
        "2.0",
    ),
    Fault(
        "what the later hooks of a chain return is not used",
        lambda: registering_later(forgetful),
        ("CH-01", "AG-01"),
        CHAINS,
        "1.8",
    ),
)
