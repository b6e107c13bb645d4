"""Small models, and one that a library runs itself, for the page on popular libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Runs(nn.Module):
    """A model that a library runs itself; what it gives is the input or a tensor of the library's."""

    def __init__(self, model: nn.Module, run: Callable[[nn.Module, Any], Any]) -> None:
        super().__init__()
        self.model, self.run = model, run

    def forward(self, x: Any) -> Any:
        result = self.run(self.model, x)
        return result if isinstance(result, torch.Tensor) else x


class Small(nn.Module):
    """Layers that opacus knows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))


class Twice(Small):
    """A layer that is called twice."""

    def forward(self, x: Any) -> Any:
        hidden = torch.relu(self.norm(self.norm(self.conv(x))))
        return self.head(hidden.mean((2, 3)))
