"""Faults in the gradients that hooks in and around checkpointed regions see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..engine import Fault, replaced
from ..registering import edited
from .checkpointing import checkpoints, doubled, hooks_off_in


def hooked_twice() -> Any:
    """Registers tensor hooks twice."""
    return replaced(
        torch.Tensor,
        "register_hook",
        lambda original: lambda self, hook: (original(self, hook), original(self, hook))[1],
    )


def in_halves(run: Any) -> Any:
    """Runs a region twice, and takes the mean."""
    return lambda *args: (run(*args) + run(*args)) / 2


def used_once() -> Any:
    """A weight is a constant from its second use on."""
    seen: list[Any] = []

    def make(original: Any) -> Any:
        def linear(x: Any, weight: Any, *bias: Any) -> Any:
            again = any(weight is other for other in seen)
            seen.append(weight)
            return original(x, weight.detach() if again else weight, *bias)

        return linear

    return replaced(torch.nn.functional, "linear", make)


@contextmanager
def down_after_a_failure() -> Iterator[None]:
    """When gradients could not be given, the next backward is refused."""
    failed: list[Exception] = []

    def grad(original: Any) -> Any:
        def give(*args: Any, **options: Any) -> Any:
            try:
                return original(*args, **options)
            except Exception as error:
                failed.append(error)
                raise

        return give

    def backward(original: Any) -> Any:
        def run(self: Any, *args: Any, **options: Any) -> None:
            if failed:
                failed.clear()
                raise RuntimeError("not compatible")
            original(self, *args, **options)

        return run

    with replaced(torch.autograd, "grad", grad), replaced(torch.Tensor, "backward", backward):
        yield


@contextmanager
def _past_saved() -> Iterator[None]:
    """Reentrant checkpoints keep their inputs as attributes of their contexts."""
    function = torch.utils.checkpoint.CheckpointFunction
    forward = edited(function, "forward", ("ctx.save_for_backward(*tensor_inputs)", "ctx.kept = tensor_inputs"))
    with forward, edited(function, "backward", ("tensors = ctx.saved_tensors", "tensors = ctx.kept")):
        yield


FAULTS = (
    Fault("checkpoint: a weight is a constant from its second use on", used_once, ("CK-36",), kinds=(), since="2.11"),
    Fault("checkpoint: a failed request bars the next backward", down_after_a_failure, ("CK-37",), kinds=()),
    Fault(
        "checkpoint: hooks inside do not run in the second pass",
        lambda: checkpoints(hooks_off_in(2)),
        ("CK-01", "CK-02", "CK-03", "CK-11", "CK-13"),
    ),
    Fault(
        "checkpoint: hooks inside do not run in the first pass",
        lambda: checkpoints(hooks_off_in(1)),
        ("CK-07", "CK-12"),
    ),
    Fault(
        "checkpoint: gradients that enter a region are doubled",
        lambda: checkpoints(output=doubled),
        ("CK-01", "CK-03", "CK-04", "CK-05", "CK-08", "CK-09", "CK-10", "CK-12"),
    ),
    Fault(
        "checkpoint: a region is run in two halves",
        lambda: checkpoints(in_halves),
        ("CK-01", "CK-03", "CK-06", "CK-11", "CK-12", "CK-13"),
    ),
    Fault("checkpoint: tensor hooks are called twice", hooked_twice, ("CK-05", "CK-06")),
    Fault(
        "checkpoint: a reentrant one gives the gradients of its first outputs, whichever need them",
        lambda: edited(
            torch.utils.checkpoint.CheckpointFunction,
            "backward",
            ("args_with_grad.append(args[i])", "args_with_grad.append(args[len(args_with_grad)])"),
        ),
        ("CK-06",),
        kinds=(),
    ),
    Fault(
        "checkpoint: a reentrant one saves its inputs past the hooks on what is saved",
        _past_saved,
        ("ST-01",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "checkpoint: all that the second pass of a reentrant region is given requires grad",
        lambda: edited(
            torch.utils.checkpoint,
            "detach_variable",
            ("x.requires_grad = inp.requires_grad", "x.requires_grad = inp.is_floating_point()"),
        ),
        ("CK-01",),
    ),
)
