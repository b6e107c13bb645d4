"""Faults in what a hook receives."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from .engine import ALL, FULL, LEGACY, Fault, Gradients, calling, each, engine, receiving


def swapped() -> AbstractContextManager[None]:
    return calling(lambda hook, module, gi, go: hook(module, go, gi))


def requiring_grad(gradient: Any) -> Any:
    return gradient.detach().requires_grad_() if gradient.is_floating_point() else gradient


def filled() -> AbstractContextManager[None]:
    """Positions that hold no Tensor get a zero."""

    def make(original: Any) -> Any:
        def pack(self: Any, indices: Any, values: Any, size: int) -> Gradients:
            return tuple(torch.zeros(1) if g is None else g for g in original(self, indices, values, size))

        return pack

    return engine("_pack_with_none", make)


def aligned_by_inputs() -> AbstractContextManager[None]:
    """The positions of grad_output are packed as if the module had as many outputs as it has inputs."""

    def make(original: Any) -> Any:
        def setup(self: Any, args: Any) -> Any:
            result = original(self, args)
            self.n_outputs = max(self.n_outputs, self.n_inputs)
            return result

        return setup

    return engine("setup_output_hook", make)


def stale() -> AbstractContextManager[None]:
    """A hook gets the grad_output of the hook call before it."""
    before: list[Any] = []

    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
        before.append(go)
        return hook(module, gi, before[-2] if len(before) > 1 else go)

    return calling(change)


def of_the_first_child() -> AbstractContextManager[None]:
    """A container gets the gradients of the hook call before it, which was for a child."""
    last: list[Any] = []

    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
        if last and list(module.children()):
            gi, go = last[-1]
        last.append((gi, go))
        return hook(module, gi, go)

    return calling(change)


def another_module() -> AbstractContextManager[None]:
    """Every hook is given the first module that any hook was called for."""
    first: list[Any] = []

    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
        first.append(module)
        return hook(first[0], gi, go)

    return calling(change)


def three_arguments() -> AbstractContextManager[None]:
    return calling(lambda hook, module, gi, go: hook(module, gi, go, None))


def unboxed(gradients: Gradients) -> Any:
    return gradients[0] if len(gradients) == 1 else gradients


def zeros_for_none(gradients: Gradients) -> Gradients:
    return tuple(torch.zeros(1) if g is None else g for g in gradients)


def only_gradients(gradients: Gradients) -> Gradients:
    return tuple(g for g in gradients if g is not None)


def all_none(gradients: Gradients) -> Gradients:
    return (None,) * len(gradients)


def empty_without_gradients(gradients: Gradients) -> Gradients:
    return gradients if only_gradients(gradients) else ()


GRADIENTS = (
    Fault(
        "grad_input is one part in a thousand too large", lambda: receiving(each(lambda g: g * 1.001)), ("GI-01",), ALL
    ),
    Fault("grad_input is off by one part in 1e10", lambda: receiving(each(lambda g: g * (1 + 1e-10))), ("GI-01",), ALL),
    Fault(
        "grad_output is one part in a thousand too large",
        lambda: receiving(grad_output=each(lambda g: g * 1.001)),
        ("GO-01", "P2-11"),
        ALL,
    ),
    Fault("grad_input is all zeros", lambda: receiving(each(torch.zeros_like)), ("GI-01",), ALL),
    Fault("grad_output is all zeros", lambda: receiving(grad_output=each(torch.zeros_like)), ("GO-01", "P2-11"), ALL),
    Fault("grad_input is NaN", lambda: receiving(each(lambda g: g * float("nan"))), ("GI-01",), ALL),
    Fault("the entries of grad_input come in reverse", lambda: receiving(lambda g: g[::-1]), ("GI-01",)),
    Fault("every entry of grad_input is the first", lambda: receiving(lambda g: g[:1] * len(g)), ("GI-01",)),
    Fault("grad_input and grad_output are swapped", swapped, ("GI-01", "GO-01", "P2-11"), ALL),
    Fault("grad_input lacks its last entry", lambda: receiving(lambda g: g[:-1]), ("BW-07",), ALL),
    Fault("grad_input has a None too many", lambda: receiving(lambda g: (*g, None)), ("BW-07",), ALL),
    Fault("grad_output lacks its last entry", lambda: receiving(grad_output=lambda g: g[:-1]), ("GO-03", "P2-11"), ALL),
    Fault("grad_output has a None too many", lambda: receiving(grad_output=lambda g: (*g, None)), ("GO-03",), ALL),
    Fault("grad_output has as many entries as the module has inputs", aligned_by_inputs, ("GO-03",)),
    Fault("lists instead of tuples", lambda: receiving(list, list), ("BW-01",), ALL),
    Fault("a bare tensor instead of a tuple of one", lambda: receiving(unboxed, unboxed), ("BW-01",), ALL),
    Fault("a third argument", three_arguments, ("BW-01",), ALL),
    Fault("another module of the network is passed", another_module, ("BW-01", "BW-02"), ALL),
    Fault(
        "an object that is no module is passed",
        lambda: calling(lambda hook, module, gi, go: hook(None, gi, go)),
        ("BW-01",),
        ALL,
    ),
    Fault("grad_input has zeros in the place of None", lambda: receiving(zeros_for_none), ("GI-02", "BW-08")),
    Fault(
        "grad_output has zeros in the place of None", lambda: receiving(grad_output=zeros_for_none), ("GO-02", "BW-08")
    ),
    Fault("positions without a Tensor are filled", filled, ("BW-08",)),
    Fault(
        "positions without a gradient are left out",
        lambda: receiving(only_gradients, only_gradients),
        ("BW-07", "GO-03"),
    ),
    Fault(
        "grad_input is () where no input requires grad",
        lambda: receiving(empty_without_gradients),
        ("BW-07",),
        FULL,
        "1.9",
    ),
    Fault("grad_input is all None", lambda: receiving(all_none), ("GI-02",), ALL),
    Fault("grad_output is all None", lambda: receiving(grad_output=all_none), ("GO-02", "P2-11"), ALL),
    Fault(
        "gradients are flattened", lambda: receiving(each(torch.flatten), each(torch.flatten)), ("GI-01", "GO-01"), ALL
    ),
    Fault("grad_input is transposed", lambda: receiving(each(lambda g: g.transpose(0, -1))), ("GI-01",), ALL),
    Fault(
        "grad_input is summed over the batch",
        lambda: receiving(each(lambda g: g.sum(0, keepdim=True))),
        ("GI-01",),
        ALL,
    ),
    Fault(
        "gradients are cast to float32",
        lambda: receiving(each(torch.Tensor.float), each(torch.Tensor.float)),
        ("GI-01", "GO-01"),
        ALL,
    ),
    Fault(
        "gradients are cast to float64",
        lambda: receiving(each(torch.Tensor.double), each(torch.Tensor.double)),
        ("GI-01", "GO-01"),
        ALL,
    ),
    Fault("grad_output is that of the hook call before", stale, ("GO-01",), ALL),
    Fault("a container gets the gradients of its first child", of_the_first_child, ("GO-01",)),
    Fault("grad_input requires grad", lambda: receiving(each(requiring_grad)), ("GR-01",), ALL),
    Fault("grad_output requires grad", lambda: receiving(grad_output=each(requiring_grad)), ("GR-01",), ALL),
    Fault("the gradients of legacy hooks are swapped", swapped, ("P2-11",), LEGACY),
)
