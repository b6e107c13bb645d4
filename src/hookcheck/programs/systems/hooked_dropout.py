"""What does dropout through hooks do to a net? A worked program: every convolution of a VGG16 drops channels out.

The hooks drop out in evaluation mode as well, as one does to sample predictions; taken off, they leave the net as it
was. The net is the 16-layer VGG with random weights, by default with a sixteenth of its channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

WIDTH = 4
"""Channels of the first convolutions, of which the paper has 64."""


class VGG16(nn.Module):
    """Thirteen convolutions and three linear layers: x (N, 3, 32, 32) to (N, 10)."""

    def __init__(self, width: int = WIDTH) -> None:
        """Random weights of such a size that activations keep theirs from layer to layer (He et al., 2015)."""
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for wide in (1, 1, "M", 2, 2, "M", 4, 4, 4, "M", 8, 8, 8, "M", 8, 8, 8, "M"):
            if isinstance(wide, str):
                layers.append(nn.MaxPool2d(2))
            else:
                layers += [nn.Conv2d(channels, wide * width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = wide * width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(channels, channels), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(channels, channels), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(channels, 10),
        )  # fmt: skip
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.kaiming_normal_(parameter, nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (N, 3, 32, 32) to (N, 10)."""
        result: torch.Tensor = self.classifier(torch.flatten(self.features(x), 1))
        return result


class HookedDropout:
    """Has every Conv2d of ``model`` drop out each channel of its output with probability ``p``."""

    def __init__(self, model: nn.Module, p: float) -> None:
        """Registers the hooks."""
        self.p = p
        self.handles: list[Any] = []
        model.apply(self.add)

    def add(self, module: nn.Module) -> None:
        """Registers the hook on a module if that is a Conv2d."""
        if isinstance(module, nn.Conv2d):
            self.handles.append(module.register_forward_hook(self.drop))

    def drop(self, module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        """Called by torch; the result is the module's output."""
        return nn.functional.dropout2d(output, self.p, training=True)

    def remove(self) -> None:
        """Takes the hooks off."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()


def run(model: nn.Module, x: torch.Tensor, p: float, seed: int) -> dict[tuple[str, str, int], tuple[np.ndarray]]:
    """Runs ``model`` in evaluation mode without hooks, with them from ``seed``, and after their removal.

    Gives the three outputs, and ``.grad`` of every parameter for the sum of the second's squares.
    """
    model.eval()
    tensors = {("reference", "output", 0): model(x)}
    dropout = HookedDropout(model, p)
    torch.manual_seed(seed)
    tensors["hooked", "output", 0] = model(x)
    tensors["hooked", "output", 0].pow(2).sum().backward()
    dropout.remove()
    tensors["removed", "output", 0] = model(x)
    tensors.update({(name, ".grad", 0): parameter.grad for name, parameter in model.named_parameters()})
    return {what: (tensor.detach().cpu().numpy(),) for what, tensor in tensors.items()}


if __name__ == "__main__":
    from hookcheck.programs.systems.chains import outputs, vgg16
    from hookcheck.programs.systems.side_by_side import table

    torch.manual_seed(0)
    model, x = VGG16(), torch.randn(1, 3, 32, 32)
    parameters = {name: p.tolist() for name, p in model.named_parameters()}
    right = outputs(vgg16(WIDTH), parameters, np.array(x.tolist()))[-1]
    seen = run(model, x, p=0.2, seed=1)
    rows = ("reference", "hooked", "removed")
    columns = {"torch": {(what, "output", 0): seen[what, "output", 0] for what in rows}}
    print(table({(what, "output", 0): (right,) for what in rows}, columns, "float32"))
