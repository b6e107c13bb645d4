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


def lazy_with_hooks(log: list[str]) -> Any:
    """A module whose weight is made in its first call, and hooks on it."""

    def pre(module: Any, args: Any) -> Any:
        log.append("pre")
        return (args[0] + 10,)

    def hook(module: Any, args: Any, output: Any) -> Any:
        log.append("hook")
        return 3 * output

    lazy: Any = nn.LazyLinear(1, bias=False)
    lazy.register_forward_pre_hook(pre)
    lazy.register_forward_hook(hook)
    return lazy


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


def _tenfold(tensor: Any) -> Any:
    """Hooks a tensor so that its gradient is ten times what comes."""
    return tensor.register_hook(lambda grad: 10 * grad)


def _hooked_twice(x: Any) -> Any:
    y = 2 * x
    _tenfold(y)
    z = 3 * y
    y.register_hook(lambda grad: grad + 1)
    return z


def _hooked_without_grad(x: Any) -> Any:
    y = 2 * x
    with torch.no_grad():
        _tenfold(y)
    return 3 * y


def _hooked_as_itself(x: Any) -> Any:
    y = 2 * x
    _tenfold(y.contiguous())
    return 3 * y


def _hooked_and_viewed(x: Any) -> Any:
    y = 2 * x
    _tenfold(y)
    return y, y.view(1, 1)


def _hooked_then_changed(x: Any) -> Any:
    y = 2 * x
    _tenfold(y)
    return y.mul_(3)


def _changed_then_hooked(x: Any) -> Any:
    y = 2 * x
    y.mul_(3)
    _tenfold(y)
    return y


def _hooked_in_a_checkpoint(x: Any) -> Any:
    def region(y: Any) -> Any:
        z = y * y
        _tenfold(z)
        return 3 * z

    return checkpointed(region, 2 * x)


def _hooked_at_a_checkpoint(x: Any) -> Any:
    def region(y: Any) -> Any:
        y.register_hook(lambda grad: 1 * grad)
        return y * y

    return checkpointed(region, 2 * x)


def _hooked_across_a_checkpoint(x: Any) -> Any:
    def region(y: Any) -> Any:
        inner = y.detach() + 1
        y.register_hook(lambda grad: grad + 0 * inner)
        return y * y

    return checkpointed(region, 2 * x)


def checkpointed(region: Callable[[Any], Any], x: Any) -> Any:
    """What the region gives, of which the second pass is part of the backward."""
    return torch.utils.checkpoint.checkpoint(region, x, use_reentrant=False)


HOOKED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "two hooks on one tensor": (_hooked_twice, (3.0 * 10 + 1) * 2),
    "a hook without grad mode": (_hooked_without_grad, 3.0 * 10 * 2),
    "a hook on what contiguous() gives": (_hooked_as_itself, 3.0 * 10 * 2),
    "a hook on what has a view": (_hooked_and_viewed, (1.0 + 1) * 10 * 2),
    "a hook before a change in place": (_hooked_then_changed, 3.0 * 10 * 2),
    "a hook after a change in place": (_changed_then_hooked, 10.0 * 3 * 2),
    "a hook in a checkpoint": (_hooked_in_a_checkpoint, 3.0 * 10 * (2 * 2) * 2),
    "a hook that a checkpoint puts on its input": (_hooked_at_a_checkpoint, 2.0 * 2 * 2),
    "such a hook that uses what the checkpoint computed": (_hooked_across_a_checkpoint, 2.0 * 2 * 2),
}
"""Functions of one tensor that put a hook on what they compute, with the derivative of the sum of what they give at 1.

A second pass of a checkpoint runs its region again, and puts the hook on the input once more: those hooks change
nothing."""
