"""What do hooks on tensors promise: when they run, what they get, and what becomes of what they return?

``tensor.register_hook(hook)`` has ``hook(grad)`` called whenever a gradient with respect to the tensor is computed. A
gradient that it returns takes the place of the one that it got: in ``.grad`` of a leaf, in what ``torch.autograd.grad``
gives, and in all that is computed from it. ``retain_grad`` keeps the gradient of a tensor that is no leaf.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.functions import without_gradient
from hookcheck.programs.program import program
from hookcheck.programs.watching import Bound

HOOK = "torch.Tensor.register_hook"
EXECUTION = "notes on autograd, 'Backward Hooks execution'"


@program("TH-01", PROMISE, since="1.7", source=HOOK)
def runs_whenever_a_gradient_is_computed(check: Check) -> None:
    """A hook on a tensor is called every time that a gradient with respect to the tensor is computed."""
    log: list[Any] = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = 2 * x
    x.register_hook(lambda grad: log.append(("x", grad.tolist())))
    y.register_hook(lambda grad: log.append(("y", grad.tolist())))
    loss = (3 * y + y * y).sum()
    once = [("y", [7.0, 11.0]), ("x", [14.0, 22.0])]  # 3 + 2 y, and twice that: sums over the two uses of y
    loss.backward(retain_graph=True)
    check.order("calls of a backward", log, once)
    loss.backward(retain_graph=True)
    check.order("calls of two backwards on a retained graph", log, 2 * once)

    log.clear()
    torch.autograd.grad(loss, x)
    check.order("calls of torch.autograd.grad", log, once)
    check.raises("a graph that was not retained", RuntimeError, loss.backward, "second time")

    log.clear()
    (3 * x).sum().backward()
    check.order("calls in another graph", log, [("x", [3.0, 3.0])])

    log.clear()
    for other in (torch.ones(2, requires_grad=True), x.detach().requires_grad_(), copy.deepcopy(x)):
        (3 * other).sum().backward()
    check.order("calls for other tensors, a detached one and a deep copy among them", log, [])

    x = torch.ones(2, requires_grad=True)
    x.register_hook(Bound(log).hook)
    (3 * x).sum().backward()
    check.order("calls of a method of what nothing else refers to", log, ["bound"])
    log.clear()
    loss = (x * x).sum()
    loss.backward(create_graph=True)  # which retains the graph
    loss.backward()
    check.order("calls of a backward that creates its graph, and of another one", log, ["bound"] * 2)


@program("TH-08", PROMISE, since="1.7", source=HOOK)
def runs_in_double_backward(check: Check) -> None:
    """A hook on a tensor is called for a second derivative as for the first, with a gradient that can be derived."""
    log: list[Any] = []
    x = torch.tensor([3.0], requires_grad=True)
    x.register_hook(lambda grad: log.append((grad.tolist(), grad.requires_grad)))
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    check.order("calls of the first backward", log, [([27.0], True)])  # 3 x²
    log.clear()
    first.backward()
    check.order("calls of the second backward", log, [([18.0], False)])  # 6 x

    doubled = torch.tensor([3.0], requires_grad=True)
    doubled.register_hook(lambda grad: 2 * grad)
    (first,) = torch.autograd.grad(doubled**3, doubled, create_graph=True)
    check.equal("first derivative under a hook that doubles", first, [54])
    (second,) = torch.autograd.grad(first, doubled)
    check.equal("second derivative under a hook that doubles", second, [72])  # 2 · 2 · 6 x: the hook runs in both


@program("TH-09", PROMISE, since="1.7", source=HOOK)
def can_be_put_on_any_tensor_that_requires_a_gradient(check: Check) -> None:
    """A hook can be put on every tensor that requires a gradient, at any time before its backward, and on no other."""
    for name, tensor in {
        "that requires none": torch.ones(2),
        "of no dimension that requires none": torch.tensor(1.0),
        "of integers": torch.ones(2).long(),
    }.items():
        register = partial(tensor.register_hook, lambda grad: None)
        check.raises(f"a tensor {name}", RuntimeError, register, "requ")
        with torch.no_grad():
            check.raises(f"a tensor {name}, under no_grad", RuntimeError, register, "requ")

    class Special(torch.Tensor):
        pass

    special = torch.ones(2).as_subclass(Special).requires_grad_()
    for name, x in {
        "a plain leaf": torch.ones(2, requires_grad=True),
        "a parameter": torch.nn.Parameter(torch.ones(2)),
        "a leaf of a subclass of Tensor": special,
        "a view": torch.ones(2, 2, requires_grad=True)[0],
    }.items():
        log: list[Any] = []
        y = 3 * x
        with torch.no_grad():
            x.register_hook(lambda grad: log.append(grad.tolist()))  # noqa: B023
            y.register_hook(lambda grad: log.append(grad.tolist()))  # noqa: B023
        y.sum().backward()
        check.order(f"calls on {name} and its product, registered under no_grad", log, [[1.0, 1.0], [3.0, 3.0]])

    log = []
    x = torch.tensor([2.0], requires_grad=True)
    y = x * 1

    def registers(grad: Any) -> None:
        x.register_hook(lambda grad: log.append(grad.tolist()))

    y.register_hook(registers)
    y.backward()
    check.order("calls of a hook registered by the hook of a later tensor in the same backward", log, [[1.0]])


@program("TH-02", PROMISE, since="1.7", source=HOOK)
def gets_the_gradient(check: Check) -> None:
    """A hook on a tensor gets the gradient alone, and returns a tensor like it or None."""
    for name, x in {
        "a number": torch.tensor(2.0),
        "a tensor without elements": torch.ones(0, 3),
        "a float64 tensor": torch.ones(2, dtype=torch.float64),
        "a complex tensor": torch.ones(2, dtype=torch.complex64),
    }.items():
        seen: list[Any] = []
        x.requires_grad_().register_hook(lambda *args, **kwargs: seen.append((args, kwargs)))  # noqa: B023
        (x * 1).abs().sum().backward()
        arguments = [
            ([(type(a).__name__, a.shape, a.dtype, a.requires_grad) for a in args], kwargs) for args, kwargs in seen
        ]
        check.equal(f"arguments of a hook on {name}", arguments, [([("Tensor", x.shape, x.dtype, False)], {})])

    def backward(result: Any, of_leaf: bool) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x if of_leaf else 1 * x
        y.register_hook(lambda grad: result)
        (2 * y).sum().backward()
        return x.grad

    for of_leaf, place in ((True, "leaf"), (False, "result")):
        check.equal(f"gradient under a hook on a {place} that returns None", backward(None, of_leaf), [2, 2])
        for other in (0, False, "grad", [torch.ones(2)], (torch.ones(2),)):
            name = f"a hook on a {place} that returns a {type(other).__name__}"
            check.raises(name, TypeError, lambda: backward(other, of_leaf), "expected Variable")  # noqa: B023
        for value, says in ((torch.ones(3), "size"), (torch.ones(2, 1), "size"), (torch.ones(2).double(), "type")):
            name = f"a hook on a {place} that returns {value.dtype} of shape {tuple(value.shape)}"
            check.raises(name, RuntimeError, lambda: backward(value, of_leaf), says)  # noqa: B023


@program("TH-03", PROMISE, since="1.7", source=HOOK)
def a_returned_gradient_is_used(check: Check) -> None:
    """What a hook on a tensor returns takes the place of the gradient in all that follows."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    seen: list[Any] = []
    y.register_hook(lambda grad: 10 * grad)
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.register_hook(lambda grad: grad + 1)
    loss = y.sum()
    loss.backward(retain_graph=True)
    check.equal("what the second of three hooks gets", seen, [[10.0, 10.0]])
    check.equal("gradient of the first factor", x.grad, [33, 44])  # 11 w
    check.equal("gradient of the second factor", w.grad, [11, 22])  # 11 x

    x.register_hook(lambda grad: -grad)
    loss.backward(retain_graph=True)
    check.equal("gradient of a leaf with a hook of its own, added to the one before", x.grad, [0, 0])
    one = torch.autograd.grad(loss, x, retain_graph=True)
    check.equal("torch.autograd.grad of the hooked leaf", one, ([-33, -44],))
    both = torch.autograd.grad(loss, (w, x), retain_graph=True)
    check.equal("torch.autograd.grad of two leaves", both, ([11, 22], [-33, -44]))

    parts = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    first, second = parts.unbind()
    second.register_hook(lambda grad: torch.zeros_like(grad))
    (2 * first + 5 * second).sum().backward()
    check.equal("gradient where a hook on one of two outputs of an operation gives zeros", parts.grad, [[2, 2], [0, 0]])

    z = torch.tensor([1 + 2j], requires_grad=True)
    z.register_hook(lambda grad: 1j * grad)
    (3 * z).real.sum().backward()
    check.equal("complex gradient that is turned", z.grad, [3j])
    hooks = {"a module": torch.nn.Threshold(9.0, 15.0), "a partial": partial(torch.mul, 3.0)}
    for name, hook in {**hooks, "expand": lambda _: torch.tensor(15.0).expand(2)}.items():
        one_more = torch.ones(2, requires_grad=True)
        one_more.register_hook(hook)
        (5 * one_more).sum().backward()
        check.equal(f"gradient under {name} as a hook", one_more.grad, [15, 15])


@program("TH-04", PIN, since="1.7", source=HOOK)
def changes_its_argument(check: Check) -> None:
    """A hook on a tensor that changes its argument in place, which it must not, changes the gradient if it can be."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = 2 * x
    seen: list[Any] = []

    def tenfold(grad: Any) -> None:
        grad.mul_(10)

    y.register_hook(tenfold)
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    (3 * y).sum().backward()
    check.equal("what a later hook gets", seen, [[30.0, 30.0]])
    check.equal("gradient", x.grad, [60, 60])
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda grad: grad.mul_(2))
    check.raises("a gradient that is one number expanded", RuntimeError, lambda: x.sum().backward(), "single memory")


@program("TH-05", PROMISE, since="1.7", source=HOOK)
def is_taken_off_by_its_handle(check: Check) -> None:
    """``remove()`` of its handle takes off a hook, and that one alone, also between forward and backward."""
    log: list[Any] = []
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    for tensor, place in ((x, "x"), (y, "y")):
        handles = [tensor.register_hook(lambda grad, what=f"{place}{i}": log.append(what)) for i in range(3)]
        handles[1].remove()
        handles[1].remove()  # a second time, which does nothing
    loss = 3 * y
    loss.backward(retain_graph=True)
    check.order("calls of the hooks that are left", log, ["y0", "y2", "x0", "x2"])

    log.clear()
    handles[0].remove()
    loss.backward()
    check.order("calls after another was removed between two backwards", log, ["y2", "x0", "x2"])

    def hook(grad: Any) -> Any:
        return 10 * grad

    z = torch.tensor([1.0], requires_grad=True)
    first, second = z.register_hook(hook), z.register_hook(hook)
    z.backward()
    check.equal("gradient under one hook that is registered twice", z.grad, [100])
    first.remove()
    (3 * z).backward()
    check.equal("gradient added after one of its handles was removed", z.grad, [130])
    second.remove()
    (3 * z).backward()
    check.equal("gradient added after both were", z.grad, [133])


@program("TH-10", PIN, since="1.7", source=f"{HOOK}; torch.utils.hooks.RemovableHandle")
def removes_itself(check: Check) -> None:
    """A hook on a tensor may take itself off: it has run, the others run, and it does not run again."""
    log: list[str] = []
    x = torch.tensor([1.0], requires_grad=True)

    def once(grad: Any) -> None:
        log.append("once")
        handle.remove()

    x.register_hook(lambda grad: log.append("before"))
    handle = x.register_hook(once)
    x.register_hook(lambda grad: log.append("after"))
    x.backward()
    check.order("calls of the first backward", log, ["before", "once", "after"])
    log.clear()
    x.backward()
    check.order("calls of the second backward", log, ["before", "after"])


@program("TH-06", PROMISE, since="1.7", source=f"{EXECUTION}: Whether a particular hook will be fired")
def runs_for_requested_inputs(check: Check) -> None:
    """A hook runs for a tensor whose gradient ``torch.autograd.grad`` is asked for, though its grad_fn does not run."""
    log: list[Any] = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = 2 * x
    loss = (y * y).sum()
    for tensor, name in ((x, "x"), (y, "y")):
        tensor.register_hook(lambda grad, name=name: log.append((name, grad.tolist())))
    torch.autograd.grad(loss, y, retain_graph=True)
    check.order("calls where the gradient of a result is asked for", log, [("y", [4.0, 8.0])])
    log.clear()
    torch.autograd.grad(loss, (x, y), retain_graph=True)
    check.order("calls where that of the leaf is too", log, [("y", [4.0, 8.0]), ("x", [8.0, 16.0])])

    y.register_hook(lambda grad: 10 * grad)
    given = torch.autograd.grad(loss, y, retain_graph=True)
    check.equal("what torch.autograd.grad gives if the hook replaces it", given, ([40, 80],))
    given = torch.autograd.grad(loss, (y, x))
    check.equal("what it gives for two tensors", given, ([40, 80], [80, 160]))


@program("TH-07", PROMISE, since="1.7", source=f"{EXECUTION}: Whether a particular hook will be fired")
def runs_while_gradients_are_computed(check: Check) -> None:
    """A hook on a tensor runs while gradients are computed: before ``.grad`` is updated, and before what comes next."""
    log: list[Any] = []
    x = torch.tensor([1.0], requires_grad=True)
    w = torch.tensor([1.0], requires_grad=True)
    y = 3 * x
    loss = 2 * y * w
    for tensor, name in ((x, "x"), (y, "y"), (loss, "loss")):
        tensor.register_hook(lambda grad, name=name: log.append((name, x.grad if x.grad is None else x.grad.tolist())))
    loss.backward(retain_graph=True)
    check.order("gradient of the leaf when each hook runs", log, [("loss", None), ("y", None), ("x", None)])
    check.equal("gradient after it", x.grad, [6])
    log.clear()
    loss.backward()
    check.order("gradient when each runs again", log, [("loss", [6.0]), ("y", [6.0]), ("x", [6.0])])


@program("EX-09", PROMISE, since="1.7", source="torch.Tensor.retain_grad")
def retain_grad_keeps_the_gradient(check: Check) -> None:
    """``retain_grad`` has a result's ``.grad`` filled by backward, and does nothing to a leaf."""
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    other = 3 * x
    y.retain_grad()
    y.retain_grad()
    x.retain_grad()
    check.equal("gradient before backward", y.grad, None)
    loss = (5 * y + other).sum()
    loss.backward(retain_graph=True)
    check.equal("gradient of a result that asked twice", y.grad, [5])
    check.equal("gradient of one that did not ask", other.grad, None)
    check.equal("gradient of the leaf", x.grad, [13])
    loss.backward()
    check.equal("gradient of the result after a second backward", y.grad, [10])
    check.equal("gradient of the leaf after it", x.grad, [26])

    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    y.register_hook(lambda grad: 10 * grad)
    y.retain_grad()
    y.backward()
    check.equal("gradient of a result under a hook that replaces it", y.grad, [10])
    check.equal("gradient of the leaf behind it", x.grad, [20])
    check.raises("a tensor that requires no gradient", RuntimeError, torch.ones(1).retain_grad, "requires_grad=False")


@program("TH-11", PROMISE, since="1.7", source="pytorch#35802")
def runs_once_with_the_sum(check: Check) -> None:
    """A hook on a tensor that is used three times is called once, with the sum of the three gradients."""
    for of_leaf, place in ((True, "leaf"), (False, "result")):
        x = torch.tensor([1.0], requires_grad=True)
        y = x if of_leaf else 1 * x
        seen: list[Any] = []
        y.register_hook(lambda grad: seen.append(grad.tolist()))  # noqa: B023
        (1 * y + 2 * y + 3 * y).backward()
        check.equal(f"gradients that the hook of a {place} gets", seen, [[6.0]])


@program("TH-12", PIN, since="1.7", source="pytorch#11165")
def a_change_in_place_stays_with_its_tensor(check: Check) -> None:
    """A hook that changes a gradient in place changes that of its tensor alone, not that of the other summand."""
    others = []
    for hooked in (0, 1):
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        b = torch.tensor([3.0, 4.0], requires_grad=True)
        summands = (1 * a, 1 * b)
        summands[hooked].register_hook(lambda grad: grad.mul_(10))
        (2 * (summands[0] + summands[1])).sum().backward()
        check.equal(f"gradient of summand {hooked} with the hook on it", (a, b)[hooked].grad, [20, 20])
        others.append((b, a)[hooked].grad)
    check.equal("gradients of the others", others, [[2, 2], [2, 2]])  # which Node runs first is not promised


@program("TH-13", PIN, since="1.7", source="pytorch#11751")
def never_gets_none(check: Check) -> None:
    """A hook on a tensor whose gradient is undefined gets zeros or is not called, as its signature has a tensor."""
    seen: list[Any] = []
    y = 1 * torch.tensor([1.0], requires_grad=True)
    y.register_hook(lambda grad: seen.append(grad))
    without_gradient()(y).backward()
    check.equal("the hook gets a tensor, if it is called", None if None in seen else "a tensor", "a tensor")
    seen.clear()
    z = 1 * torch.tensor([1.0], requires_grad=True)
    z.register_hook(lambda grad: seen.append(grad))
    (0 * z).backward()
    check.equal("what it gets for a gradient of zeros", seen, [[0]])


@program("TH-14", PROMISE, since="1.7", source="pytorch#60796")
def leaves_are_as_results(check: Check) -> None:
    """A hook on a leaf is called for an undefined gradient if and only if one on a result of an operation is."""
    calls = []
    for of_leaf in (False, True):
        seen: list[Any] = []
        x = torch.tensor([1.0], requires_grad=True)
        y = x if of_leaf else 1 * x
        y.register_hook(lambda grad: seen.append(grad))  # noqa: B023
        without_gradient()(y).backward()
        calls.append(len(seen))
    check.calls("calls of the hook on the leaf, beside those on the result", calls[1], calls[0])
