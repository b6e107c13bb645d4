"""What do hooks meet where a module gives no tensor at all, or one whose memory is not in order?

Nothing, an empty container or a number is an output as any other for hooks of forward. Elements that share memory, that
lie far apart or in another order are elements as any others for hooks of backward, and for what hooks return.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program
from hookcheck.programs.watching import globally

FULL = "torch.nn.Module.register_full_backward_hook"

WITHOUT_TENSORS: dict[str, Any] = {
    "None": None,
    "a tuple": (),
    "a list": [],
    "a dict": {},
    "a tuple in a tuple": ((),),
    "zero": 0,
    "False": False,
}
"""Outputs that hold no tensor."""


def _giving(output: Any) -> Any:
    """A module that computes 2·x, of which its loss is, and gives ``output``."""

    def forward(module: Any, x: Any) -> Any:
        module.inner = module.w * x
        return output

    return net(forward, w=nn.Parameter(torch.tensor([2.0])))


@program("SM-06", PIN, since="2.0", source="torch.nn.Module.__call__, 'if hook_result is not None'; undocumented")
def outputs_without_tensors(check: Check) -> None:
    """An output that holds no tensor goes through hooks of every kind as it is, and gradients of what the module
    computed are those of a module without hooks; a forward hook may put a tensor in its place, or it in a tensor's."""
    for name, output in WITHOUT_TENSORS.items():
        module, seen = _giving(output), list[Any]()
        module.register_forward_pre_hook(lambda *_: None)
        module.register_forward_hook(lambda module, args, output, seen=seen: seen.append(output))
        module.register_forward_hook(
            lambda module, args, kwargs, output, seen=seen: seen.append(output), with_kwargs=True, prepend=True
        )
        module.register_full_backward_pre_hook(lambda *_: None)
        module.register_full_backward_hook(lambda *_: None)
        handle = globally("forward_hook", lambda module, args, output, seen=seen: seen.append(output))
        x = leaf(3.0)
        given = check.works(f"{name}: a call", lambda module=module, x=x: module(x))
        handle.remove()
        check.equal(f"{name}: is what hooks get", [one is output for one in seen], [True] * 3, "argument")
        check.true(f"{name}: is what the caller gets", given is output)
        check.works(f"{name}: backward", module.inner.sum().backward)
        check.equal(f"{name}: gradients", [x.grad, module.w.grad], [[2.0], [3.0]])
        _replaced(check, name, output)


def _replaced(check: Check, name: str, output: Any) -> None:
    """States what becomes of an output that a hook puts a tensor in the place of, and the other way round."""
    module, log = _giving(output), list[Any]()
    module.register_forward_hook(lambda module, args, output: 5 * module.inner)
    module.register_full_backward_hook(lambda module, gi, go: log.append((gi[0].item(), go[0].item())))
    x = leaf(3.0)
    given = module(x)
    check.equal(f"{name}, a tensor in its place: what the caller gets", given, [30.0])
    given.sum().backward()
    check.order(f"{name}, a tensor in its place: backward hooks", log, [(10.0, 1.0)])
    check.equal(f"{name}, a tensor in its place: gradients", [x.grad, module.w.grad], [[10.0], [15.0]])
    module = net(lambda module, x: 2 * x)
    module.register_forward_hook(lambda module, args, given: output)
    given = module(x)
    check.equal(f"{name}, in a tensor's place: whether the caller gets it", given is output, output is not None)


Layout = tuple[Callable[[Any], Any], tuple[int, ...], list[Any], list[float], list[float]]

LAYOUTS: dict[str, Layout] = {
    "expanded": (lambda y: y[:1].expand(3), (0,), [2.0, 2.0, 2.0], [1.0, 10.0, 100.0], [222.0, 0.0, 0.0, 0.0]),
    "overlapping": (
        lambda y: y.as_strided((2, 2), (1, 1)),
        (1, 1),
        [[2.0, 4.0], [4.0, 6.0]],
        [[1.0, 10.0], [100.0, 1000.0]],  # type: ignore[list-item]
        [2.0, 220.0, 2000.0, 0.0],
    ),
    "far apart": (lambda y: y.as_strided((2,), (3,)), (3,), [2.0, 8.0], [1.0, 10.0], [2.0, 0.0, 0.0, 20.0]),
    "transposed": (
        lambda y: y.view(2, 2).t(),
        (1, 2),
        [[2.0, 6.0], [4.0, 8.0]],
        [[1.0, 10.0], [100.0, 1000.0]],  # type: ignore[list-item]
        [2.0, 200.0, 20.0, 2000.0],
    ),
}
"""What is made of 2·x, where x is 1 to 4: its strides and numbers, what each number is multiplied by in the loss, and
the gradients of x: twice the sum of those factors over all places that show it."""


def spread(gradient: Any) -> Any:
    """Ten times the gradient, in memory with other numbers in between."""
    return torch.stack((10 * gradient, torch.full_like(gradient, -1.0)), -1)[..., 0]


def _spread_output(module: Any) -> None:
    module.register_forward_hook(lambda module, args, output: output.register_hook(spread) and None)


SPREADING: dict[str, Callable[[Any], Any]] = {
    "full backward hook": lambda module: module.register_full_backward_hook(lambda module, gi, go: (spread(gi[0]),)),
    "full backward pre-hook": lambda module: module.register_full_backward_pre_hook(
        lambda module, go: (spread(go[0]),)
    ),
    "hook on the output": _spread_output,
    "hook on the input": lambda module: module.register_forward_pre_hook(
        lambda module, args: args[0].register_hook(spread) and None
    ),
}
"""What registers hooks of a module that return ten times a gradient in such memory."""


@program("SM-07", PROMISE, since="1.8", source=f"{FULL}; torch.Tensor.register_hook; torch.as_strided")
def memory_that_is_not_in_order(check: Check) -> None:
    """Outputs whose elements share memory, are far apart or in another order have the gradients of their elements, and
    hooks get these; so have outputs that a forward hook makes, and gradients in such memory that hooks return."""
    for name, (view, strides, numbers, factors, gradients) in LAYOUTS.items():
        for maker in ("forward", "a forward hook"):
            for kind, register in {"no hook": lambda module: None, **SPREADING}.items():
                if kind == "full backward pre-hook" and not offered((2, 0)):
                    continue
                module = net(lambda module, x, view=view: view(2 * x))
                if maker == "a forward hook":
                    module = net(lambda module, x: 2 * x)
                    module.register_forward_hook(lambda module, args, output, view=view: view(output))
                log: list[Any] = []
                register(module)
                x = torch.arange(1.0, 5.0).requires_grad_()
                output = module(x)
                if kind == "no hook":
                    check.equal(f"{name} by {maker}: output", [output.stride(), output], [strides, numbers])
                output.register_hook(lambda gradient, log=log: log.append(gradient.tolist()))
                for times in (1, 2):
                    (output * torch.tensor(factors)).sum().backward(retain_graph=True)
                    due = [times * gradient * (1 if kind == "no hook" else 10) for gradient in gradients]
                    check.equal(f"{name} by {maker}, {kind}: gradient of {times}", x.grad, due)
                if kind in ("no hook", "full backward hook"):
                    check.order(f"{name} by {maker}, {kind}: what a hook on the output gets", log, [factors] * 2)
