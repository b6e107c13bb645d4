"""What do programs about compiled code share? A start with nothing compiled, a backend that notes, small modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import NotRun

PAGE = "torch.compile; PyTorch 2.0 NNModule Support"
CALL_HOOKS = f"{PAGE}, 'nn.Module.__call__ Hooks Usage and limitations'"
BACKENDS = ("eager", "aot_eager")


def dynamo() -> Any:
    """The module torch._dynamo, which torch imports late."""
    return import_module("torch._dynamo")


@contextmanager
def fresh() -> Iterator[None]:
    """Runs a program with nothing compiled before it and leaves nothing compiled behind it."""
    if not dynamo().is_dynamo_supported():
        raise NotRun("this torch does not compile on this Python")
    dynamo().reset()
    try:
        yield
    finally:
        dynamo().reset()


def recording(graphs: list[list[str]]) -> Callable[..., Any]:
    """A backend that runs graphs as they are, and notes what each calls."""

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append([str(node.target) for node in graph.graph.nodes if node.op.startswith("call")])
        return graph.forward

    return backend


def scaling() -> Any:
    """A module that gives w·x, with w = 2."""

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.tensor(2.0))

        def forward(self, x: Any) -> Any:
            return self.w * x

    return Scale()


def chain(length: int = 2) -> Any:
    """Modules that give 2x, one after another, inside one of our own."""

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList([scaling() for _ in range(length)])

        def forward(self, x: Any) -> Any:
            for part in self.parts:
                x = part(x)
            return x

    return Chain()


def linear() -> Any:
    """A Linear layer that gives 2x."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, 2.0)
    return layer


def derivative(function: Any, value: float) -> Any:
    """The derivative of a function at a number."""
    x: Any = torch.tensor([value], requires_grad=True)
    function(x).backward()
    return x.grad.item()
