"""Functions of one's own, which programs put hooks around."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hookcheck.probe.lazy import torch
from hookcheck.programs.host_changes import Release

Backward = Callable[[Any, Any], Any]


def function_of(**methods: Any) -> Any:
    """A Function with those methods; its Node is named after a Square."""
    static = {name: staticmethod(method) for name, method in methods.items()}
    return type("Square", (torch.autograd.Function,), static)


def saving_square(ctx: Any, x: Any) -> Any:
    """A forward that squares and saves what it is given."""
    ctx.save_for_backward(x)
    return x * x


def marked_once(backward: Backward) -> Any:
    """A Function that squares, and can be differentiated once alone."""
    return function_of(forward=saving_square, backward=torch.autograd.function.once_differentiable(backward))


def setting_up(backward: Backward) -> Any:
    """A Function that squares, and leaves ``ctx`` to ``setup_context``."""

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    return function_of(forward=lambda x: x * x, setup_context=setup_context, backward=backward)


@dataclass(frozen=True)
class Squaring:
    """How a Function is made that squares, of a ``backward`` that notes whether grad mode is on; since which release it
    can be, and whether it can be differentiated once alone."""

    make: Callable[[Backward], Any]
    since: Release = (1, 8)
    once: bool = False


WAYS = {
    "with ctx": Squaring(lambda backward: function_of(forward=saving_square, backward=backward)),
    "with setup_context": Squaring(setting_up, (2, 0)),
    "once differentiable": Squaring(marked_once, once=True),
}
"""The ways to make a Function, by name."""


def without_gradient() -> Any:
    """An operation whose backward gives None for its input."""

    class WithoutGradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> None:
            return None

    return WithoutGradient.apply
