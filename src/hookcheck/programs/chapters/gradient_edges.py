"""What do hooks see of a backward that begins or ends at gradient edges instead of tensors?

The edge of a tensor is the Node that its gradient comes to, and the number of the result that it is there. It stands
for the tensor in ``torch.autograd.grad`` and ``torch.autograd.backward``.
"""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

EDGE = "torch.autograd.graph.get_gradient_edge"


def edge(tensor: Any) -> Any:
    """Where the gradient of ``tensor`` is computed."""
    return torch.autograd.graph.get_gradient_edge(tensor)


def scaled(factor: float, log: list[str], name: str) -> Any:
    """A hook that notes its call and gives a multiple of the gradient."""

    def hook(grad: Any) -> Any:
        log.append(name)
        return grad * factor

    return hook


@program("GE-01", PROMISE, since="2.2", source=f"{EDGE}, 'equivalent'; pytorch#110867")
def the_gradient_of_an_edge_is_that_of_its_tensor(check: Check) -> None:
    """``torch.autograd.grad`` gives for the gradient edge of a tensor what it gives for the tensor: with the hooks of
    the tensor applied, once, be it a leaf or not or one of several results of an operation."""
    log: list[str] = []
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = a * 5
    c, d = b.unbind()
    loss = c * 7 + d * d
    for name, tensor, factor in (("a", a, 2.0), ("b", b, 3.0), ("d", d, 10.0)):
        tensor.register_hook(scaled(factor, log, name))
    # for d: 10 * 2 d = 300; for b: 3 * (7, 300); for a: 2 * 5 times that
    for name, tensor, called, due in (
        ("d", d, ["d"], 300),
        ("b", b, ["d", "b"], [21, 900]),
        ("a", a, ["d", "b", "a"], [210, 9000]),
    ):
        for of, asked in (("the tensor", tensor), ("its edge", edge(tensor))):
            log.clear()
            (gradient,) = torch.autograd.grad(loss, asked, retain_graph=True)
            check.equal(f"gradient of {name} by {of}", gradient, due)
            check.order(f"hooks called for {name} by {of}", log, called)
    parts = torch.tensor([1.0, 2.0, 3.0], requires_grad=True).unbind()
    gradients = torch.autograd.grad(sum((n + 2) * part for n, part in enumerate(parts)), [*map(edge, parts)])
    check.equal("gradients of three results by their edges", gradients, (2.0, 3.0, 4.0))
    for mode in filter(partial(hasattr, torch), ("no_grad", "inference_mode")):
        leaf = torch.tensor([2.0], requires_grad=True)
        with getattr(torch, mode)():
            there = check.works(f"the edge of a leaf, looked up under {mode}", partial(edge, leaf))
        if there:
            check.equal(f"gradient by that edge, looked up under {mode}", torch.autograd.grad(leaf * 5, there)[0], [5])
    check.raises("the edge of a tensor without gradient", RuntimeError, lambda: edge(a.detach()), "not require grad")


@program("GE-02", PROMISE, since="2.7", source="torch.autograd.backward, 'GradientEdge'; pytorch#144744")
def backward_may_begin_at_an_edge(check: Check) -> None:
    """A backward that begins at the gradient edge of a tensor calls the hooks that one calls which begins at the
    tensor, with the same gradients: those of modules, of tensors, and those that run after accumulation."""

    def seen(by_edge: bool, alone: bool = False) -> list[Any]:
        log: list[Any] = []
        net = torch.nn.Linear(1, 1)
        with torch.no_grad():
            net.weight.fill_(3.0)
            net.bias.fill_(1.0)
        x = torch.tensor([[2.0]], requires_grad=True)
        net.register_full_backward_hook(
            lambda module, grad_input, grad_output: log.append(
                ["module", grad_input[0].tolist(), grad_output[0].tolist()]
            )
        )
        net.weight.register_post_accumulate_grad_hook(lambda weight: log.append(["weight", weight.grad.tolist()]))
        y = net(x)
        y.register_hook(lambda grad: log.append(["output", grad.tolist()]))
        root = edge(y) if by_edge else y
        torch.autograd.backward(root if alone else (root,), (torch.tensor([[5.0]]),))
        return sorted([*log, ["input", x.grad.tolist()]], key=str)

    due = [["input", [[15]]], ["module", [[15]], [[5]]], ["output", [[5]]], ["weight", [[10]]]]
    check.equal("from the tensor", seen(by_edge=False), due)
    check.equal("from its edge", seen(by_edge=True), due)
    check.equal("from its edge, which is in no tuple", seen(by_edge=True, alone=True), due)


@program("GE-03", PROMISE, since="2.7", source=f"{EDGE}; pytorch#160098", alone=True)
def an_edge_keeps_the_graph_behind_it(check: Check) -> None:
    """A backward may begin at the edge of a result of a custom Function that is gone, with the hooks on that result."""

    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 3 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * grad

    log: list[Any] = []
    x = torch.tensor([2.0], requires_grad=True)

    def root() -> Any:
        y = Tripled.apply(x * 5)
        y.register_hook(lambda grad: log.append(grad.tolist()))
        return edge(y)

    def ran() -> bool:
        torch.autograd.backward((root(),), (torch.tensor([7.0]),))
        return True

    if check.works("a backward that begins there", ran):
        check.order("what the hook is given", log, [[7]])
        check.equal("gradient of the input", x.grad, [7 * 3 * 5])


class _Held:
    """What a hook refers to, by which one sees whether the hook is alive."""


@program("GE-04", PIN, since="2.2", source=f"{EDGE}; pytorch#110867, on memory; pytorch#160098, on who owns the graph")
def an_edge_holds_the_graph_and_not_the_tensor(check: Check) -> None:
    """The edge of a result keeps the graph behind it, with its hooks, and not the result; that of a leaf keeps it.
    Nothing is left of them once the edge is gone."""

    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 3 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * grad

    for name, make, due in (
        ("an operation", lambda x: 3 * x, (False, True)),
        ("a custom Function", Tripled.apply, (False, True)),
        ("a leaf", None, (True, True)),
    ):
        held, x = _Held(), torch.tensor([2.0], requires_grad=True)
        before = 5 * x if make else x
        before.register_hook(lambda grad, held=held: None)
        result = make(before) if make else x
        alive = [weakref.ref(result), weakref.ref(held)]
        of = edge(result)
        del held, x, before, result
        check.equal(f"{name}: whether result and hook behind live", tuple(one() is not None for one in alive), due)
        del of
        check.equal(f"{name}: the same without the edge", tuple(one() is not None for one in alive), (False, False))
