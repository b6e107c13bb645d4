"""What do CUDA graphs promise about hooks? Modules are graphed without any; a graph has hooks of its own.

``torch.cuda.make_graphed_callables`` takes modules without hooks, which can be added afterwards; a
``torch.cuda.CUDAGraph`` has hooks on its own life: capture, instantiation, replay.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered, NotRun
from hookcheck.programs.program import program


def _cuda() -> Any:
    """The CUDA device."""
    if not torch.cuda.is_available():
        raise NotRun("it needs CUDA")
    return torch.device("cuda")


def _graphed() -> tuple[Any, Any]:
    """A module that gives w·x with w = 2, and an input to graph it with."""

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.tensor([2.0]))

        def forward(self, x: Any) -> Any:
            return self.w * x

    return Scale().to(_cuda()), torch.ones(1, device=_cuda(), requires_grad=True)


@program("DS-15", PROMISE, since="1.10", source="torch.cuda.make_graphed_callables", device="cuda")
def graphed_modules_have_no_hooks(check: Check) -> None:
    """make_graphed_callables refuses a module that has hooks; those that are added to what it gives run."""
    for name in ("register_forward_pre_hook", "register_forward_hook", "register_full_backward_hook"):
        net, sample = _graphed()
        getattr(net, name)(lambda *arguments: None)
        graph = partial(torch.cuda.make_graphed_callables, net, (sample,))
        check.raises(f"a module with {name}", AssertionError, graph, "hooks")
    net, sample = _graphed()
    net.register_forward_hook(lambda module, args, output: None).remove()
    graphed = torch.cuda.make_graphed_callables(net, (sample,))
    log: list[Any] = []
    graphed.register_forward_pre_hook(lambda module, args: log.append(("pre", args[0].item())))
    graphed.register_forward_hook(lambda module, args, output: log.append(("forward", output.item())))
    graphed.register_full_backward_hook(lambda module, gi, go: log.append(("backward", gi[0].item(), go[0].item())))
    x = torch.tensor([3.0], device=_cuda(), requires_grad=True)
    output = graphed(x)
    output.backward()
    check.equal("output, and gradients of x and w", [output, x.grad, net.w.grad], [[6.0], [2.0], [3.0]])
    check.order("hooks that were added afterwards", log, [("pre", 3.0), ("forward", 6.0), ("backward", 2.0, 1.0)])


HOOKS = ("capture_end", "post_instantiate", "replay_start", "replay_end")


def _noted(graph: Any, log: list[str]) -> None:
    """Two hooks of each kind on a graph, and between them one that is taken off again."""
    for name in HOOKS:
        register = getattr(graph, f"register_{name}_hook", None)
        if register is None:
            raise NotOffered(f"this torch has no register_{name}_hook")
        for text in (f"{name} 1", "removed", f"{name} 2"):
            handle = register(lambda graph, text=text: log.append(text))
            if text == "removed":
                handle.remove()


@program(
    "DS-16", PROMISE, since="2.14", source="torch.cuda.CUDAGraph.register_replay_end_hook and its like", device="cuda"
)
def a_graph_has_hooks(check: Check) -> None:
    """Hooks on a CUDAGraph are called in the order of registration; those on the end of a replay even if it raises."""
    device = _cuda()
    log: list[str] = []
    graph = torch.cuda.CUDAGraph()
    _noted(graph, log)
    x = torch.tensor([1.0], device=device)
    with torch.cuda.graph(graph):
        y = 2 * x
    check.order("hooks in a capture", log, [f"{name} {i}" for name in HOOKS[:2] for i in (1, 2)])
    log.clear()
    x.fill_(3.0)
    graph.replay()
    torch.cuda.synchronize()
    check.equal("what the replay computes", y, [6])
    check.order("hooks in a replay", log, [f"{name} {i}" for name in HOOKS[2:] for i in (1, 2)])

    log.clear()
    graph.register_replay_start_hook(lambda graph: graph.reset())  # there is nothing left to launch
    check.raises("a replay whose launch fails", RuntimeError, graph.replay, "without a preceding successful capture")
    check.order("hooks in it", log, [f"{name} {i}" for name in HOOKS[2:] for i in (1, 2)])
