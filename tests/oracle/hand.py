"""Small programs whose gradients can be worked out by hand: layers that multiply one number by their weight.

Every gradient is then a sum over paths of the product of the weights along the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Optional

import numpy as np

from hookcheck.oracle.due import Firing
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.gradient import Gradient
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Backward, Call, Composite, Input, Leak, Module, Statement, Topology
from hookcheck.topology.tree import Pack, Ref, Tree

TIMES = Linear(1, 1, bias=False)
X, Y, V, H = Ref("x"), Ref("y"), Ref("v"), Ref("h")
LEAKED = Ref("leaked", ("h",))
CALLED = Call("y", "", (X,))
FROM_Y = Backward((Y,), (V,))


def net(gives: Tree, *body: Statement, takes: tuple[str, ...] = ("x",), keywords: tuple[str, ...] = ()) -> Composite:
    """A module with a body, over two layers that multiply, ``a`` and ``b``."""
    return Composite((("a", TIMES), ("b", TIMES)), takes, body, gives, keywords)


CHAIN = net(Ref("z"), Call("h", "a", (X,)), Call("z", "b", (H,)))
"""``h = a · x; z = b · h``."""
LEAKING = net(Ref("z"), Call("h", "a", (X,)), Leak("h", H), Call("z", "b", (H,)))
"""The same, with ``h`` leaked."""


def pair(*items: Tree) -> Pack:
    """A tuple."""
    return Pack("tuple", items)


def expected(
    module: Module,
    main: Iterable[Any],
    weights: Mapping[str, float],
    grad: str = "x",
    frozen: tuple[str, ...] = (),
    ties: tuple[tuple[str, str], ...] = (),
    **inputs: float,
) -> Expected:
    """What the oracle says of ``main``.

    ``weights`` are given by the layer's path (empty for the root), inputs by their names; those in
    ``grad`` require grad.
    """
    arrays = {f"{path}.weight".lstrip("."): np.array([[float(w)]]) for path, w in weights.items()}
    arrays.update((name, np.array([float(number)])) for name, number in inputs.items())
    declared = tuple(Input(name, (1,), name in grad.split()) for name in inputs)
    return Expected(Topology(module, declared, tuple(main), frozen=frozen, ties=ties), arrays)


def numbers(gradients: tuple[Gradient, ...]) -> tuple[float | None, ...]:
    """A tuple of gradients as plain numbers; absent ones are None."""
    return tuple(None if g is None else float(g.item()) for g in gradients)


Sides = tuple[tuple[Optional[float], ...], tuple[Optional[float], ...]]


def fired(e: Expected) -> dict[str, Sides]:
    """``grad_input`` and ``grad_output`` of each firing, by subject; none fires twice."""
    sides = {f.call.subject: (numbers(f.grad_input), numbers(f.grad_output)) for f in e.firings}
    assert len(sides) == len(e.firings)
    return sides


def firing(e: Expected, subject: str) -> Firing:
    """The one firing of that call."""
    (match,) = [f for f in e.firings if f.call.subject == subject]
    return match


def leaves(e: Expected) -> dict[str, float]:
    """The gradients of leaves as plain numbers."""
    return {name: float(gradient.item()) for name, gradient in e.leaf_gradients.items()}
