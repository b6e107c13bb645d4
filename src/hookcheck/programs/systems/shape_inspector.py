"""Which shape has what each layer gives? A worked program: a wrapper whose hooks print it, call by call."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class ShapeInspector(nn.Module):
    """Wraps ``model`` and prints the shape of what each of its layers gives; a layer is a module without children."""

    def __init__(self, model: nn.Module) -> None:
        """Registers a forward hook on every layer."""
        super().__init__()
        self.model = model
        for name, layer in model.named_modules():
            if not list(layer.children()):
                layer.register_forward_hook(self.printing(name))

    def printing(self, name: str) -> Any:
        """A hook for the layer of that name."""

        def hook(layer: nn.Module, args: Any, output: torch.Tensor) -> None:
            print(f"{name}: {tuple(output.shape)}")

        return hook

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What ``model`` gives."""
        result: torch.Tensor = self.model(x)
        return result


if __name__ == "__main__":
    from hookcheck.programs.systems.feature_maps import ConvNet

    ShapeInspector(ConvNet())(torch.randn(2, 3, 8, 8))
