"""What do hooks see of ``torch.autograd.functional`` and of forward-mode AD?

The functions of ``torch.autograd.functional`` call a function once, on tensors that stand for what they are given, and
go backward from what it gives. In forward mode a tensor carries its tangent through a call.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program

# Of x³ at 2 the first derivative is 12, the second one 12 and the third one 6; v is 5. The first entry is the result,
# the second what its own derivative is, the third what the module's hook is given for the input and for the output:
# jvp goes backward twice, from zeros the first time.
FUNCTIONS: dict[str, tuple[float, float, tuple[float, float]]] = {
    "vjp": (60, 60, (60, 5)),
    "jvp": (60, 60, (0, 0)),
    "jacobian": (12, 12, (12, 1)),
    "hessian": (12, 6, (12, 1)),
    "vhp": (60, 30, (12, 1)),
    "hvp": (60, 30, (12, 1)),
}
"""The functions of ``torch.autograd.functional``, and what comes of each."""


@program(
    "AF-09", PIN, since="1.13", source="torch.autograd.functional; its note on tensors that are given, pytorch#32576"
)
def functional_calls_a_module_once(check: Check) -> None:
    """Each function of torch.autograd.functional calls a module once, with hooks on forward and backward, and leaves
    the tensor that it is given alone: its hooks are called, and its ``.grad`` is set, where one goes backward from the
    result that ``create_graph=True`` gives, and not before."""
    for name, (result, derivative, gradients) in FUNCTIONS.items():
        for builds in (False, True):
            log, x, v = list[Any](), leaf(2.0), torch.tensor(5.0)
            module = net(lambda module, x: (x * x * x).sum())
            module.register_forward_pre_hook(lambda module, args, log=log: log.append(("before", args[0].item())))
            module.register_forward_hook(lambda module, args, output, log=log: log.append(("after", output.item())))
            module.register_full_backward_hook(
                lambda module, gi, go, log=log: log.append(("backward", gi[0].item(), go[0].item()))
            )
            x.register_hook(lambda gradient, log=log: log.append(("leaf", gradient.item())))
            vector = {"vjp": (v,), "jacobian": (), "hessian": ()}.get(name, (v.reshape(1),))
            given = getattr(torch.autograd.functional, name)(module, x, *vector, create_graph=builds)
            what = f"{name}{', a graph is built' if builds else ''}"
            if vector:
                output, given = given
                check.equal(f"{what}: the output requires grad", output.requires_grad, builds)
            check.equal(f"{what}: result", given.reshape(1), [result])
            check.equal(f"{what}: it requires grad", given.requires_grad, builds)
            check.equal(f"{what}: hooks", log, [("before", 2.0), ("after", 8.0), ("backward", *map(float, gradients))])
            check.equal(f"{what}: the gradient that is set", x.grad, None)
            if builds:
                log.clear()
                given.sum().backward()
                check.equal(f"{what}: hooks of its backward", log, [("leaf", float(derivative))])
                check.equal(f"{what}: its gradient", x.grad, [derivative])


@program("AF-10", PROMISE, since="1.13", source="torch.autograd.forward_ad.make_dual, 'backward differentiable'")
def hooks_in_forward_mode(check: Check) -> None:
    """In forward mode a forward hook sees the tangents of inputs and outputs, and what it returns carries its tangent
    on; hooks on a dual tensor and on what it was made of are called in backward; and an error of a hook ends the level
    of forward mode."""
    forward: Any = import_module("torch.autograd.forward_ad")
    for factor in (1.0, 10.0):
        log, x = list[Any](), leaf(2.0)
        module = net(lambda module, x: x * x * x)

        def look(module: Any, args: Any, output: Any, log: list[Any] = log, factor: float = factor) -> Any:
            log.append([forward.unpack_dual(tensor).tangent.item() for tensor in (args[0], output)])
            return factor * output

        module.register_forward_hook(look)
        with forward.dual_level():
            dual = forward.make_dual(x, torch.tensor([5.0]))
            y = module(dual)
            what = f"a hook that gives {factor} times the output"
            check.equal(f"{what}: tangents that it sees", log, [[5.0, 60.0]])  # 5, and 5 · 12
            check.equal(f"{what}: tangent of the output", forward.unpack_dual(y).tangent, [60 * factor])
            log.clear()
            for name, tensor in (("dual", dual), ("leaf", x)):
                tensor.register_hook(lambda gradient, name=name, log=log: log.append((name, gradient.item())))
            y.sum().backward()
        check.equal(f"{what}: hooks of backward", log, [("dual", 12 * factor), ("leaf", 12 * factor)])
        check.equal(f"{what}: gradient", x.grad, [12 * factor])

    def refuse(*args: Any) -> None:
        raise ValueError("refused")

    def in_forward_mode() -> None:
        refusing = net(lambda module, x: x * x)
        refusing.register_forward_hook(refuse)
        with forward.dual_level():
            refusing(forward.make_dual(leaf(2.0), torch.tensor([5.0])))

    check.raises("a hook that raises", ValueError, in_forward_mode, "refused")
    outside = partial(forward.make_dual, leaf(2.0), torch.tensor([5.0]))
    check.raises("a dual tensor after that", RuntimeError, outside, "no level exists")
