"""What do chosen layers of a convolutional net give? A worked program: a wrapper that returns their outputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn


class ConvNet(nn.Module):
    """A small convolutional net: x (N, 3, 8, 8) to (N, 5). Its activations write in place if ``inplace`` is set."""

    def __init__(self, inplace: bool = False) -> None:
        """Two convolutions, then the mean over each of six channels."""
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.ReLU(inplace),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3),
            nn.ReLU(inplace),
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (N, 3, 8, 8) to (N, 5)."""
        result: torch.Tensor = self.classifier(torch.flatten(self.pool(self.features(x)), 1))
        return result


class FeatureMaps(nn.Module):
    """Wraps ``model``: called as it, it gives the outputs of its layers ``names`` in one call, by name."""

    def __init__(self, model: nn.Module, names: Iterable[str]) -> None:
        """Registers a forward hook on each of the layers."""
        super().__init__()
        self.model = model
        self.maps: dict[str, torch.Tensor] = {}
        layers = dict(model.named_modules())
        for name in names:
            layers[name].register_forward_hook(self.keeping(name))

    def keeping(self, name: str) -> Any:
        """A hook for the layer of that name."""

        def hook(layer: nn.Module, args: Any, output: torch.Tensor) -> None:
            self.maps[name] = output

        return hook

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """The outputs of the layers on ``x``."""
        self.maps = {}
        self.model(x)
        return self.maps


def recorded(maps: dict[str, torch.Tensor]) -> dict[tuple[str, str, int], tuple[np.ndarray]]:
    """Every map as an array, in the order in which they came about."""
    return {(name, "output", 0): (output.detach().cpu().numpy(),) for name, output in maps.items()}


if __name__ == "__main__":
    from hookcheck.programs.systems.chains import CONVNET, outputs
    from hookcheck.programs.systems.side_by_side import table

    torch.manual_seed(0)
    model, x, names = ConvNet(), torch.randn(1, 3, 8, 8), ("pool", "classifier")
    parameters = {name: p.tolist() for name, p in model.named_parameters()}
    right = dict(zip((name for name, _ in CONVNET), outputs(CONVNET, parameters, np.array(x.tolist()))))
    print(
        table(
            {(name, "output", 0): (right[name],) for name in names},
            {"forward hooks": recorded(FeatureMaps(model, names)(x))},
            "float32",
        )
    )
