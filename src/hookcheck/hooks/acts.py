"""What hooks that act do: they scale what they are given, by powers of two, so that they round nothing.

Three of them are on every module, one after the other. Each has a factor of its own, and so has each position, so that
one that is left out, comes too early or gets what is another's shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

FIRST = (2.0, 0.5, 4.0)
"""What the first hook of a chain scales gradients at positions 0, 1, 2, 3, … by, over and over."""

FORWARD = (0.5, 4.0, 0.125)
"""What the hooks of a chain scale the first argument, or every output, by: all together small and positive, so that it
stays in its domain."""

LATER = (4.0, 0.03125)
"""What the hooks after the first scale every gradient by."""


@dataclass(frozen=True)
class Acts:
    """Which of the things that a module call is given, or gives, its hooks scale.

    ``args``: the first positional argument, where it is a floating tensor. ``outputs``: the floating tensors among the
    outputs, where those are a tensor or a tuple. ``grad_input`` and ``grad_output``: every gradient there.
    """

    args: bool = False
    outputs: bool = False
    grad_input: bool = False
    grad_output: bool = False

    @property
    def backward(self) -> bool:
        """Whether gradients are scaled."""
        return self.grad_input or self.grad_output

    def returned(self, factor: str) -> str:
        """The expression that such a hook returns, of its parameters, of ``factor`` (an expression, of the position
        ``i`` where gradients are scaled) and of ``scaled``, a function of a value and a factor; empty for hooks that
        look on."""
        if self.backward:
            gradients = "grad_input" if self.grad_input else "grad_output"
            return f"tuple(scaled(g, {factor}) for i, g in enumerate({gradients}))"
        if self.args:
            return f"(*(scaled(value, {factor}) for value in args[:1]), *args[1:])"
        if self.outputs:
            plain = 'isinstance(output, tuple) and not hasattr(output, "_fields")'
            return f"tuple(scaled(o, {factor}) for o in output) if {plain} else scaled(output, {factor})"
        return ""


NO_ACTS = Acts()


def share(acts: Acts, link: int, position: int) -> float:
    """What one hook of a chain, counted from 0 in the order of their calls, scales what is at a position by."""
    if not acts.backward:
        return FORWARD[link]
    return LATER[link - 1] if link else FIRST[position % len(FIRST)]


def factor(acts: Acts, position: int = 0, links: int = len(FORWARD)) -> float:
    """What the first ``links`` hooks of a chain together scale what is at a position by."""
    return prod(share(acts, link, position) for link in range(links))
