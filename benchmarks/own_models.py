"""What does check_module cost on models of others, and what does it find? A Markdown table.

    python benchmarks/own_models.py [NAME…]

Needs torchvision for all but the models of torch.nn; random weights, nothing is downloaded. Steps are those of the
model itself (forward and backward), memory is the largest part of it that the process held, less what it held before.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
import warnings
from collections import Counter
from typing import Any

import torch
from torch import nn

import hookcheck
from hookcheck.models.result import KNOWN, NEW


def vision(name: str, size: int = 64) -> tuple[Any, Any]:
    from torchvision import models

    return getattr(models, name)(), (torch.randn(2, 3, size, size),)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.lstm = nn.LSTM(32, 64, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(128, 10)

    def forward(self, words: Any) -> Any:
        return self.head(self.lstm(self.embed(words))[0])


class Graph(nn.Module):
    """Two layers that mix neighbours by a sparse adjacency matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x: Any, adjacency: Any) -> Any:
        return torch.sparse.mm(adjacency, self.second(torch.relu(torch.sparse.mm(adjacency, self.first(x)))))


def transformer() -> tuple[Any, Any]:
    model = nn.Transformer(64, 4, 2, 2, 128, batch_first=True)
    return model, (torch.randn(2, 12, 64), torch.randn(2, 9, 64))


MODELS = {
    "resnet18": lambda: vision("resnet18", 224),
    "vgg16": lambda: vision("vgg16"),
    "mobilenet_v3_small": lambda: vision("mobilenet_v3_small"),
    "swin_t": lambda: vision("swin_t"),
    "vit_b_16": lambda: vision("vit_b_16", 224),
    "nn.Transformer": transformer,
    "LSTM tagger": lambda: (Tagger(), (torch.randint(100, (2, 20)),)),
    "graph network": lambda: (Graph(), (torch.randn(20, 16), torch.eye(20).to_sparse())),
}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def row(name: str) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    before = peak()
    model, args = MODELS[name]()
    output: Any = None
    for _ in range(2):
        start = time.perf_counter()
        output = model(*args)
        output.sum().backward()
        step = time.perf_counter() - start
    model.zero_grad()
    del output
    held, times = peak() - before, {}
    names: list[tuple[str, float]] = []
    try:
        result = hookcheck.check_module(
            model, args, progress=lambda done, total, what: names.append((what, time.perf_counter()))
        )
    except Exception as error:
        print(f"| {name} | {type(error).__name__}: {error} |", flush=True)
        return
    for (what, begun), (_, ended) in zip(names, names[1:]):
        times[what] = (ended - begun) / step
    cells = [f"{times[kind]:.1f}" for kind in ("full_backward", "backward", "forward", "tensor")]
    told = Counter(verdict.verdict for verdict in result.judged)
    print(f"| {name} | {step * 1000:.0f} ms | {' | '.join(cells)} | {(peak() - before) / held:.1f} | {told[NEW]} | "
          f"{told[KNOWN]} |", flush=True)  # fmt: skip
    for verdict in result.deviations[:8]:
        print(f"    {verdict}", file=sys.stderr)


if __name__ == "__main__":
    print(
        f"| model | one step | full | legacy | forward | tensor | memory | new | known |\n{'| --- ' * 9}|",
        flush=True,
    )
    for name in sys.argv[1:] or MODELS:
        process = multiprocessing.get_context("spawn").Process(target=row, args=(name,))
        process.start()
        process.join()
