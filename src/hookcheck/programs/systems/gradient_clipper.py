"""What does clipping gradients by hooks give? A worked program: a hook on every parameter clamps its gradient.

Tutorials set this against clamping ``.grad`` after backward. A hook on a leaf gets the gradient that one backward has
for it, summed over all its uses, so both give the same, also for a parameter that is used twice. They differ where
``.grad`` collects the gradients of several backward passes: the hooks clamp each of them, so the sum may leave the
range.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn


class GradientClipper:
    """Clamps the gradient of every parameter of ``model`` to the range from ``low`` to ``high`` as it is computed."""

    def __init__(self, model: nn.Module, low: float, high: float) -> None:
        """Registers the hooks."""
        parameters: Iterable[Any] = model.parameters()
        self.handles = [p.register_hook(lambda grad: grad.clamp(low, high)) for p in parameters]

    def remove(self) -> None:
        """Takes the hooks off."""
        for handle in self.handles:
            handle.remove()


class Tied(nn.Module):
    """A layer that is used twice: x (N, 3) to fc(sigmoid(fc(x))), (N, 3)."""

    def __init__(self) -> None:
        """The one layer."""
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (N, 3) to (N, 3)."""
        result: torch.Tensor = self.fc(torch.sigmoid(self.fc(x)))
        return result


def run(
    model: nn.Module, data: Iterable[torch.Tensor], weights: torch.Tensor, bounds: tuple[float, float] | None
) -> dict[tuple[str, str, int], tuple[np.ndarray]]:
    """Runs ``model`` forward and, from ``sum(weights · output)``, backward on each of ``data``, without zeroing.

    Gradients are clamped to ``bounds`` by hooks, or not at all. Gives ``.grad`` of every parameter after each backward.
    """
    clipper = GradientClipper(model, *bounds) if bounds else None
    arrays = {}
    for n, x in enumerate(data):
        (weights * model(x)).sum().backward()
        parameters: Iterable[tuple[str, Any]] = model.named_parameters()
        for name, parameter in parameters:
            arrays[name, ".grad", n] = (parameter.grad.cpu().numpy().copy(),)
    if clipper:
        clipper.remove()
    return arrays


if __name__ == "__main__":
    from hookcheck.programs.systems.chains import TIED, gradients
    from hookcheck.programs.systems.side_by_side import table

    torch.manual_seed(0)
    model, x, weights = Tied(), torch.randn(2, 3), torch.tensor([3.0, -2.0, 1.0])
    parameters = {name: p.tolist() for name, p in model.named_parameters()}
    analytic = gradients(TIED, parameters, np.array(x.tolist()), np.array([weights.tolist()] * 2))
    right = {(name, ".grad", 0): (np.clip(gradient, -1, 1),) for name, gradient in analytic.items()}
    without = run(model, [x], weights, None)
    model.zero_grad()
    print(table(right, {"without hooks": without, "with hooks": run(model, [x], weights, (-1, 1))}, "float32"))
