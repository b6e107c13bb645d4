"""Is it true what tutorials say of hooks on tensors, of what forward hooks may change, and of saving what has hooks?

A tensor's hook is registered with ``Tensor.register_hook`` and is called as ``hook(grad)`` in backward; a module's
forward hook may replace the output, so it can drop out a part of it. ``hookcheck claims`` shows what is refuted.
"""

from __future__ import annotations

import weakref
from functools import partial
from io import BytesIO
from typing import Any

from hookcheck.contract.clause import CLAIM
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

NOTES = "notes on a hooks tutorial"
POWER = "tutorial 'Power of hooks'"
BLOG = "blog post on tensor and module hooks, 2023"
TENSOR, FORWARD = "torch.Tensor.register_hook", "torch.nn.Module.register_forward_hook"


def _leaf(*numbers: float) -> Any:
    return torch.tensor(numbers, requires_grad=True)


@program("TT-1", CLAIM, since="1.7", source=f"{NOTES}; {TENSOR}")
def hooks_chain(check: Check) -> None:
    """Hooks on one tensor run in the order of registration, and each may replace the gradient that the next one
    sees."""
    for name in ("a leaf", "no leaf"):
        seen: list[Any] = []
        x = _leaf(1.0)
        t = x if name == "a leaf" else 1 * x

        def replacing(grad: Any, change: Any, seen: list[Any] = seen) -> Any:
            seen.append(grad.tolist())
            return change(grad)

        for change in (lambda g: g + 1, lambda g: None, lambda g: 10 * g):
            t.register_hook(partial(replacing, change=change))
        (5 * t).backward()
        check.order(f"{name}: what each hook got", seen, [[5.0], [6.0], [6.0]])
        check.equal(f"{name}: grad", x.grad, [60])


@program("TT-2", CLAIM, since="1.7", source=f"{NOTES}; {TENSOR}")
def before_the_node_and_before_grad(check: Check) -> None:
    """On a non-leaf tensor the hook runs before the gradient enters the backward of the Node that made it, which then
    uses what the hook returned; on a leaf it runs before the gradient is accumulated in ``.grad``."""
    log: list[Any] = []
    x = _leaf(1.0)
    y = 3 * x
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: log.append("Node of y"))

    def on_y(grad: Any) -> Any:
        log.append("y")
        return 10 * grad

    def on_x(grad: Any) -> Any:
        log.append("x")
        log.append(None if x.grad is None else x.grad.tolist())
        return grad + 1

    y.register_hook(on_y)
    x.register_hook(on_x)
    (2 * y).backward(retain_graph=True)
    check.order("what happened", log, ["y", "Node of y", "x", None])
    # dL/dy is 2, the hook makes it 20; dL/dx is 3 · 20, the hook makes it 61.
    check.equal("grad of the leaf", x.grad, [61])
    (2 * y).backward()
    check.order("what happened in the second backward", log[4:], ["y", "Node of y", "x", [61.0]])
    check.equal("grad of the leaf after the second", x.grad, [122])


@program("TT-3", CLAIM, since="1.7", source=f"{NOTES}; {TENSOR}; torch.utils.hooks.RemovableHandle")
def a_handle_takes_its_hook_off(check: Check) -> None:
    """``register_hook`` returns a handle, and ``handle.remove()`` takes that hook off, and only that one."""
    log: list[str] = []
    x = _leaf(1.0)

    def hook(name: str) -> Any:
        return lambda grad: log.append(name)

    handles = [x.register_hook(hook(name)) for name in ("first", "second", "third")]
    (2 * x).backward()
    handles[1].remove()
    (2 * x).backward()
    handles[1].remove()
    handles[0].remove()
    (2 * x).backward()
    check.order("what ran", log, ["first", "second", "third", "first", "third", "third"])


@program("TT-4", CLAIM, since="1.7", source=f"{NOTES}; {TENSOR}, 'should not modify its argument'")
def in_place_changes_leak(check: Check) -> None:
    """Changing a gradient in place inside a hook can change another tensor's gradient: of e = c + d, both get the same
    tensor."""
    seen: list[Any] = []
    a = _leaf(1.0)
    c, d = 2 * a, 3 * a

    def scaling_the_first(grad: Any) -> None:
        seen.append((grad.data_ptr(), grad.tolist()))
        if len(seen) == 1:
            grad.mul_(10)

    c.register_hook(scaling_the_first)
    d.register_hook(scaling_the_first)
    (c + d).backward()
    check.true("both get one memory", seen[0][0] == seen[1][0])
    check.equal("what the hooks get", [numbers for _, numbers in seen], [[1.0], [10.0]])
    check.equal("grad of what both are made of", a.grad, [(2 + 3) * 10])


@program("TT-5", CLAIM, since="1.7", source=f"{NOTES}; {TENSOR}")
def only_backward_hooks(check: Check) -> None:
    """A Tensor has backward hooks only, ``hook(grad) -> Tensor or None``."""
    methods = [name for name in dir(torch.Tensor) if name.startswith("register_")]
    check.equal("public methods that register something", methods, ["register_hook"])
    seen: list[Any] = []
    x = _leaf(1.0)
    x.register_hook(lambda *received: seen.append(received))
    y = 2 * x
    check.calls("calls in forward", len(seen), 0)
    y.backward(retain_graph=True)
    check.equal("what it gets in backward", seen, [([2.0],)])
    check.equal("grad where it returns None", x.grad, [2])
    x.register_hook(lambda grad: grad + 1)
    y.backward(retain_graph=True)
    check.equal("grad where it returns a Tensor", x.grad, [2 + 3])
    x.register_hook(lambda grad: 7)
    check.raises("where it returns anything else", TypeError, y.backward, "expected Variable")


@program("TT-6", CLAIM, since="1.7", source=f"{NOTES}; torch.Tensor.retain_grad")
def retaining_alters_no_values(check: Check) -> None:
    """Of a = ones(5), b = 2a, c = mean(b) hooks get b's gradient, 0.2 each, and then a's, 0.4 each; ``b.grad`` is None
    after backward unless ``b.retain_grad()`` was called, which does not alter the values."""
    for retained in (False, True):
        which = "with retain_grad" if retained else "without"
        seen: list[Any] = []
        a = _leaf(*[1.0] * 5)
        b = 2 * a
        if retained:
            b.retain_grad()
        a.register_hook(lambda grad, seen=seen: seen.append(("a", grad.tolist())))
        b.register_hook(lambda grad, seen=seen: seen.append(("b", grad.tolist())))
        b.mean().backward()
        check.equal(f"{which}: what the hooks get", seen, [("b", [0.2] * 5), ("a", [0.4] * 5)])
        check.equal(f"{which}: b.grad", b.grad, [0.2] * 5 if retained else None)
        check.equal(f"{which}: a.grad", a.grad, [0.4] * 5)


@program("TT-8", CLAIM, since="1.7", source=f"{NOTES}; {FORWARD}, register_forward_pre_hook")
def hooks_change_input_and_output(check: Check) -> None:
    """A forward pre-hook on a module of two inputs may return ``(a + 2, b)``, and a forward hook ``output + 10``."""

    class Product(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a * b

    net = Product()
    handle = net.register_forward_pre_hook(lambda module, args: (args[0] + 2, args[1]))
    a, b = _leaf(1.0), _leaf(5.0)
    check.equal("output with the pre-hook", net(a, b), [(1 + 2) * 5])
    net.register_forward_hook(lambda module, args, output: output + 10)
    y = net(a, b)
    check.equal("output with both", y, [(1 + 2) * 5 + 10])
    y.backward()
    check.equal("grads", (a.grad, b.grad), ([5.0], [3.0]))
    handle.remove()
    check.equal("output with the forward hook", net(a, b), [1 * 5 + 10])


@program("ZH-1", CLAIM, since="1.7", source=f"{BLOG}; {FORWARD}")
def a_forward_hook_changes_nothing(check: Check) -> None:
    """A module's forward hook returns None, so it cannot change the output."""
    relu, net = nn.ReLU(), nn.Sequential(nn.ReLU(), nn.ReLU())
    for module in (relu, net[0]):
        module.register_forward_hook(lambda module, args, output: output + 10)
    check.equal("output where the hook returns a tensor", relu(torch.tensor([1.0])), [1])
    check.equal("output of a net where one on a child does", net(torch.tensor([1.0])), [1])


@program("PW-2", CLAIM, since="1.7", source=f"{POWER}; torch.nn.functional.dropout2d; {FORWARD}")
def dropping_out_in_place_raises(check: Check) -> None:
    """A forward hook that applies ``dropout2d`` with ``inplace=True`` raises during training."""

    def hook(module: Any, args: Any, output: Any) -> Any:
        return nn.functional.dropout2d(output, p=0.5, training=module.training, inplace=True)

    def step(module: Any, follower: Any) -> None:
        follower(module(_leaf(*(i / 8 for i in range(8))).view(1, 2, 2, 2))).sum().backward()

    followers = {
        "nothing": nn.Identity(),
        "ReLU": nn.ReLU(),
        "ReLU(inplace=True)": nn.ReLU(inplace=True),
        "Sigmoid": nn.Sigmoid(),
        "Conv2d": nn.Conv2d(2, 2, 1),
        "BatchNorm2d": nn.BatchNorm2d(2),
        "MaxPool2d": nn.MaxPool2d(2),
        "a product with itself": lambda y: y * y,
    }
    # What is followed by nothing: these keep their output for backward, Conv2d its input and weight.
    hooked = {"Sigmoid": nn.Sigmoid(), "Tanh": nn.Tanh(), "Softmax": nn.Softmax(dim=1)}
    pairs = [(name, module, "nothing") for name, module in hooked.items()]
    pairs += [("Conv2d", nn.Conv2d(2, 2, 1), follower) for follower in followers]
    for name, module, follower in pairs:
        module.register_forward_hook(hook)
        where, act = f"on {name}, followed by {follower}", partial(step, module, followers[follower])
        check.raises(f"{where}: in training", RuntimeError, act, says="modified by an inplace operation")
        module.eval()
        check.works(f"{where}: in evaluation", act)


def _top_level(module: Any, args: Any, output: Any) -> Any:
    """A hook that the module above holds under its name."""
    return output + 10


class _Adding:
    """An object with a method that is a hook."""

    def hook(self, module: Any, args: Any, output: Any) -> Any:
        return output + 10


@program("PW-3", CLAIM, since="1.7", source=f"{POWER}; torch.save; notes on serialization")
def what_has_hooks_cannot_be_saved(check: Check) -> None:
    """Hooks are not serialisable, so a model with hooks cannot be saved with ``torch.save``, its ``state_dict``
    aside."""
    amount = 10
    hooks: dict[str, Any] = {
        "a lambda": lambda module, args, output: output + 10,
        "a closure": lambda module, args, output: output + amount,
        "a bound method": _Adding().hook,
        "a top-level function": _top_level,
        "a partial of a top-level function": partial(_top_level),
    }
    for name, hook in hooks.items():
        net: Any = nn.Linear(1, 1)
        net.register_forward_hook(hook)
        check.raises(f"a module with {name}", Exception, partial(torch.save, net, BytesIO()), says="pickle")
        check.works(f"the state_dict of one with {name}", partial(torch.save, net.state_dict(), BytesIO()))
    linear: Any = nn.Linear(1, 1)
    linear.weight.register_hook(lambda grad: grad)
    check.raises(
        "a module with a hook on a parameter", Exception, partial(torch.save, linear, BytesIO()), says="pickle"
    )
    x = _leaf(1.0)
    x.register_hook(lambda grad: grad)
    says = "will not be serialized"
    check.warns("a Tensor with a hook", UserWarning, partial(torch.save, x, BytesIO()), says=says)


@program("PW-4", CLAIM, since="1.7", source=f"{POWER}; torch.utils.hooks.RemovableHandle")
def the_handle_is_the_only_way(check: Check) -> None:
    """References to hooks are not kept in the model: the handle is the only public way to take a hook off."""
    calls: list[None] = []

    def registered() -> tuple[Any, Any]:
        def hook(module: Any, args: Any, output: Any) -> None:
            calls.append(None)

        return net.register_forward_hook(hook), weakref.ref(hook)

    def public() -> list[str]:
        return sorted(name for name in dir(net) if not name.startswith("_"))

    net = nn.ReLU()
    before = public()
    handle, reference = registered()
    check.true("the model does not keep the hook", reference() is None)
    check.equal("the public attributes are as before", public(), before)
    others = [name for name in before if "hook" in name and not name.startswith("register_")]
    check.equal("public attributes for hooks that register none", others, [])
    net(_leaf(1.0))
    check.calls("calls before the handle takes it off", len(calls), 1)
    handle.remove()
    net(_leaf(1.0))
    check.calls("calls after", len(calls), 1)
    check.true("the model keeps nothing of it then", reference() is None)
