"""Faults in full backward hooks: in what they are given, what becomes of their results, and how long they are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from ..engine import Fault, boundary, calling, each, engine, fetched, receiving, replaced
from ..registering import edited

Module = torch.nn.Module


def is_there(hook: Any, module: Any) -> bool:
    """Whether the module still has the hook."""
    return hook in module._backward_hooks.values()


@contextmanager
def reaching_the_last_forward() -> Iterator[None]:
    """A full hook is put on what the module gave last as well."""
    last: dict[int, Any] = {}

    def calling(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            last[id(self)] = original(self, *args, **kwargs)
            return last[id(self)]

        return call

    def registering(original: Any) -> Any:
        def register(self: Any, hook: Any) -> Any:
            last[id(self)].grad_fn.register_hook(lambda *gradients: hook(self, *gradients))
            return original(self, hook)

        return register

    with replaced(Module, "__call__", calling), replaced(Module, "register_full_backward_hook", registering):
        yield


def forgetting_its_family(original: Any) -> Any:
    def register(self: Any, hook: Any) -> Any:
        if not self._backward_hooks:
            self._is_full_backward_hook = None
        return original(self, hook)

    return register


def refusing_containers(original: Any) -> Any:
    def setup(self: Any, output: Any) -> Any:
        if not isinstance(output, (torch.Tensor, tuple)):
            raise TypeError("outputs must be tensors or tuples")
        return original(self, output)

    return setup


def plain_tuples(original: Any, fields: int = 0) -> Any:
    """Gives plain tuples in the place of others: of those of so many fields, or of any."""

    def setup(self: Any, output: Any) -> Any:
        output = original(self, output)
        return tuple(output) if isinstance(output, tuple) and fields in (0, len(output)) else output

    return setup


def no_more_than_three(original: Any) -> Any:
    def unpack(self: Any, places: Any, values: Any) -> Any:
        return tuple(value if n < 3 else None for n, value in enumerate(original(self, places, values)))

    return unpack


def refusing_results_for_no_tensor(original: Any) -> Any:
    def unpack(self: Any, indices: Any, values: Any) -> Any:
        if any(value is not None for place, value in enumerate(values) if place not in indices):
            raise RuntimeError("there is no gradient at this place")
        return original(self, indices, values)

    return unpack


def first_must_require_grad(original: Any) -> Any:
    def apply(self: Any, fn: Any, args: Any) -> Any:
        if args and isinstance(args[0], torch.Tensor) and not args[0].requires_grad:
            raise AttributeError("the first tensor has no Node")
        return original(self, fn, args)

    return apply


def needing_a_node(original: Any) -> Any:
    def setup(self: Any, args: Any) -> Any:
        if not torch.is_grad_enabled():
            raise RuntimeError("the input has no Node")
        return original(self, args)

    return setup


def no_second_zeros(gradients: Any) -> Any:
    """The gradients, without a second one that is all zeros."""
    return tuple(None if n == 1 and g is not None and not g.any() else g for n, g in enumerate(gradients))


def without_the_rest(result: Any, due: int) -> Any:
    """What a hook returns, without entries of None beyond those that are due."""
    more = isinstance(result, tuple) and len(result) > due and all(g is None for g in result[due:])
    return result[:due] if more else result


FAULTS = (
    Fault(
        "full hooks: what they return is ignored",
        lambda: calling(lambda hook, *args: hook(*args) and None),
        ("BW-06", "U-11", "AC-07", "AC-12"),
    ),
    Fault(
        "full hooks: they are given copies of the gradients",
        lambda: receiving(each(torch.clone), each(torch.clone)),
        ("BW-09",),
    ),
    Fault(
        "full hooks: forward is given the arguments themselves",
        lambda: engine("setup_input_hook", lambda original: lambda self, args: (original(self, args), args)[1]),
        ("BW-10", "BP-06", "BP-07", "U-10"),
        since="2.0",
    ),
    Fault(
        "full hooks: the caller is given the outputs themselves",
        lambda: engine("setup_output_hook", lambda original: lambda self, args: (original(self, args), args)[1]),
        ("BW-11", "BP-06"),
        since="2.0",
    ),
    Fault(
        "full hooks: those to be prepended are appended",
        lambda: replaced(
            Module,
            "register_full_backward_hook",
            lambda original: lambda self, hook, prepend=False: original(self, hook),
        ),
        ("BW-13", "AC-02"),
        since="2.0",
    ),
    Fault(
        "full hooks: the newest runs first",
        lambda: fetched(lambda module, hooks: hooks[::-1]),
        ("BW-13", "AC-01", "AC-02"),
        since="2.0",
    ),
    Fault(
        "full hooks: they are not given grad_output",
        lambda: calling(lambda hook, module, grad_input, grad_output: hook(module, grad_input)),
        ("BW-14",),
    ),
    Fault(
        "full hooks: one that is removed after forward does not run",
        lambda: calling(lambda hook, module, *args: hook(module, *args) if is_there(hook, module) else None),
        ("U-01",),
    ),
    Fault("full hooks: one that is registered after forward runs", reaching_the_last_forward, ("U-02",)),
    Fault(
        "full hooks: a module without hooks has no family",
        lambda: replaced(Module, "register_backward_hook", forgetting_its_family),
        ("U-05",),
    ),
    Fault(
        "full hooks: a pre-hook decides that its module takes full ones",
        lambda: edited(
            Module,
            "register_full_backward_pre_hook",
            ("    handle = ", "    self._is_full_backward_hook = True\n    handle = "),
        ),
        ("U-05",),
        since="2.0",
    ),
    Fault(
        "full hooks: the identity drops zeros",
        lambda: boundary("backward", lambda original: lambda ctx, *g: each(lambda t: t if t.any() else None)(g)),
        ("U-06",),
    ),
    Fault(
        "full hooks: zeros in grad_input are None",
        lambda: receiving(grad_input=each(lambda gradient: gradient if gradient.any() else None)),
        ("U-07",),
    ),
    Fault(
        "full hooks: None in grad_output is zeros",
        lambda: receiving(grad_output=lambda g: tuple(torch.zeros(1) if t is None else t for t in g)),
        ("U-08",),
    ),
    Fault(
        "full hooks: a named tuple of one field comes out as a tuple",
        lambda: engine("setup_output_hook", partial(plain_tuples, fields=1)),
        ("BS-04",),
    ),
    Fault(
        "full hooks: outputs other than tensors and tuples are refused",
        lambda: engine("setup_output_hook", refusing_containers),
        ("U-09",),
    ),
    Fault(
        "full hooks: named tuples come out as tuples",
        lambda: engine("setup_output_hook", plain_tuples),
        ("U-09", "BS-04"),
    ),
    Fault(
        "full hooks: results for what is no tensor are refused",
        lambda: engine("_unpack_none", refusing_results_for_no_tensor),
        ("U-11",),
    ),
    Fault(
        "full hooks: the first argument must require grad",
        lambda: engine("_apply_on_tensors", first_must_require_grad),
        ("BF-06",),
    ),
    Fault(
        "full hooks: forward needs a Node under no_grad too",
        lambda: engine("setup_input_hook", needing_a_node),
        ("BS-03",),
    ),
    Fault(
        "full hooks: what is returned for a fourth input is dropped",
        lambda: engine("_unpack_none", no_more_than_three),
        ("BW-06",),
    ),
    Fault(
        "full hooks: a second gradient of an output that is all zeros is None",
        lambda: receiving(grad_output=no_second_zeros),
        ("U-08",),
    ),
    Fault(
        "full hooks: a None too many is dropped",
        lambda: calling(lambda hook, module, gi, go: without_the_rest(hook(module, gi, go), len(gi))),
        ("AC-21",),
    ),
)
