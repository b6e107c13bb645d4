"""What does check_module cost on models of others, and what does it find? A Markdown table.

    python benchmarks/own_models.py [NAME…]

Needs torchvision for all but the models of torch.nn; random weights, nothing is downloaded. A step is forward and
backward of the model itself, in processor time, the shortest of three; for each hook kind the check runs three times
and the shortest counts. Memory is the most that the process holds, less what it holds without model and arguments, over
that of one training step: forward, backward, and SGD with momentum. Set MALLOC_MMAP_THRESHOLD_=65536, without which
glibc keeps what is freed.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
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


PAGE = os.sysconf("SC_PAGE_SIZE")


def held() -> int:
    """How much memory the process holds, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


class Peak(threading.Thread):
    """Looks every millisecond at how much memory the process holds."""

    def __enter__(self) -> Peak:
        self.most, self.ended = held(), threading.Event()
        self.start()
        return self

    def run(self) -> None:
        while not self.ended.wait(0.001):
            self.most = max(self.most, held())

    def __exit__(self, *error: Any) -> None:
        self.ended.set()
        self.join()


def train(model: Any, args: Any, steps: int) -> float:
    """The processor time of forward and backward, the shortest of so many training steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9, momentum=0.9)
    times = []
    for _ in range(steps):
        optimizer.zero_grad()
        start = time.process_time()
        model(*args).sum().backward()
        times.append(time.process_time() - start)
        optimizer.step()
    return min(times)


def row(name: str) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    hookcheck.check_module(nn.Linear(1, 1), torch.ones(1, 1))  # what is loaded once
    before = held()
    model, args = MODELS[name]()
    with Peak() as training:
        step = train(model, args, 3)
    model.zero_grad()
    times: dict[str, list[float]] = {}
    try:
        with Peak() as checking:
            for _ in range(3):
                names: list[tuple[str, float]] = []
                result = hookcheck.check_module(
                    model, args, progress=lambda done, total, what, to=names: to.append((what, time.process_time()))
                )
                for (what, begun), (_, ended) in zip(names, names[1:]):
                    times.setdefault(what, []).append(ended - begun)
    except Exception as error:
        print(f"| {name} | {type(error).__name__}: {error} |", flush=True)
        return
    cells = [f"{min(times[kind]) / step:.1f}" for kind in ("full_backward", "backward", "forward", "tensor")]
    memory = (checking.most - before) / (training.most - before)
    verdicts = Counter(verdict.verdict for verdict in result.judged)
    print(f"| {name} | {step * 1000:.0f} ms | {' | '.join(cells)} | {memory:.1f} | {verdicts[NEW]} | "
          f"{verdicts[KNOWN]} |", flush=True)  # fmt: skip
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
