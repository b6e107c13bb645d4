"""What do hooks promise that wait for the gradients of several tensors?

``register_multi_grad_hook(tensors, hook)`` has ``hook(gradients)`` called once the gradients of all tensors are there
that a backward computes; with ``mode="any"``, ``hook(gradient)`` with the first that comes.
"""

from __future__ import annotations

import copy
import pickle
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import Release, offered
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

HOOK = "torch.autograd.graph.register_multi_grad_hook"
EXECUTION = "notes on autograd, 'Backward Hooks execution': Special hooks"


@program("MG-01", PROMISE, since="2.0", source=HOOK)
def runs_when_all_gradients_are_there(check: Check) -> None:
    """In mode "all", the hook is called once the gradients of all its tensors are computed, with the list of them."""
    seen: list[Any] = []
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    y = a * b
    z = 5 * y + y
    loss = 7 * z
    torch.autograd.graph.register_multi_grad_hook((z, y, b, a), lambda *args: seen.append(args))
    loss.backward(retain_graph=True)
    expected = (([7], [42], [84], [126]),)  # of z, y, b and a: 7, 7 · 6, 42 a, 42 b
    check.calls("calls of a backward", len(seen), 1)
    check.equal("what it is called with", _tuples(seen[0]), expected)
    loss.backward(retain_graph=True)
    check.calls("calls of two backwards", len(seen), 2)
    check.equal("what it is called with again", _tuples(seen[1]), expected)
    check.true("the second call's list is its own", seen[0][0] is not seen[1][0])
    torch.autograd.grad(loss, (y, z))
    check.calls("calls of another torch.autograd.grad", len(seen), 3)
    check.equal("what it is called with for two of four", _tuples(seen[2]), (([7], [42], None, None),))

    held: list[Any] = []
    y = a * b
    torch.autograd.graph.register_multi_grad_hook((y,), lambda gradients: held.extend(map(weakref.ref, gradients)))
    (7 * y).backward()
    check.true("its gradients are let go", [gradient() for gradient in held] == [None])


@program("MG-10", PROMISE, since="2.0", source=HOOK)
def waits_for_the_root(check: Check) -> None:
    """The tensor that backward starts from is one like the others: the hook is called once, with all gradients."""
    for name, start in {
        "backward": lambda y, a, b: y.backward(),
        "a backward for the inputs": lambda y, a, b: y.backward(inputs=(a, b)),
        "a backward of two tensors": lambda y, a, b: torch.autograd.backward((y, 5 * y)),
    }.items():
        seen: list[Any] = []
        a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
        y = a * b
        torch.autograd.graph.register_multi_grad_hook((y, a, b), lambda grads: seen.append(tuple(grads)))  # noqa: B023
        start(y, a, b)
        total = 6 if "two" in name else 1
        check.equal(f"gradients of each call in {name}", seen, [([total], [3 * total], [2 * total])])


def _tuples(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with sequences of gradients as tuples: the documentation does not say which sequence it is."""
    return tuple(tuple(a) if isinstance(a, (tuple, list)) else a for a in args)


@program("MG-02", PROMISE, since="2.0", source=HOOK)
def ignores_what_is_not_computed(check: Check) -> None:
    """A tensor outside of the graph, or not needed for the requested inputs, is ignored and not waited for."""
    a, b, outside = (torch.tensor([float(i)], requires_grad=True) for i in (2, 3, 4))
    y = a * b
    behind = 7 * outside
    seen: list[Any] = []
    log: list[str] = []
    b.register_hook(lambda grad: log.append("b"))

    def hook(grads: Any) -> None:
        seen.append(tuple(grads))
        log.append("multi")

    torch.autograd.graph.register_multi_grad_hook((outside, a, behind, b, y), hook)
    loss, other = 2 * y, 5 * behind
    loss.backward(retain_graph=True)
    check.equal("gradients where two of five tensors are in another graph", seen, [(None, [6], None, [4], [2])])
    seen.clear()
    log.clear()
    loss.backward(inputs=(a,), retain_graph=True)
    check.equal("gradients where one input is asked for", seen, [(None, [6], None, None, [2])])
    check.order("calls then", log, ["multi"])
    seen.clear()
    other.backward(retain_graph=True)
    check.equal("gradients of the other graph", seen, [([35], None, [5], None, None)])
    seen.clear()
    (loss + other).backward()
    check.equal("gradients of both graphs", seen, [([35], [6], [5], [4], [2])])
    seen.clear()
    (a + 1).backward()
    check.equal("gradients of a graph with one of them", seen, [(None, [1], None, None, None)])


@program("MG-03", PROMISE, since="2.0", source=HOOK)
def gives_none_for_the_rest(check: Check) -> None:
    """In the place of a gradient that was not computed, the hook gets None."""
    a, b = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    c, d = a * b, a * b
    seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook(
        (a, b, c, d), lambda grads: seen.append([grad is not None for grad in grads])
    )
    c.sum().backward(retain_graph=True)
    check.equal("which gradients are there", seen, [[True, True, True, False]])
    seen.clear()
    c.sum().backward(inputs=(a,), retain_graph=True)
    check.equal("which are there if one input is asked for", seen, [[True, False, True, False]])


@program("MG-04", PROMISE, since="2.3", source=HOOK)
def any_runs_with_the_first(check: Check) -> None:
    """In mode "any", the hook is called once in a backward, with the first gradient that is computed."""
    seen: list[Any] = []
    log: list[Any] = []
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    y = 5 * a * b
    constant, outside = torch.ones(1), torch.ones(1, requires_grad=True)
    for tensor, name in ((y, "y"), (a, "a"), (b, "b")):
        tensor.register_hook(lambda grad, name=name: log.append(name))

    def hook(*args: Any) -> None:
        seen.append(args)
        log.append("any")

    torch.autograd.graph.register_multi_grad_hook((a, constant, outside, y, b), hook, mode="any")
    loss = 7 * y
    loss.backward(retain_graph=True)
    check.equal("what it is called with", seen, [([7],)])
    check.order("first calls", log[:2], ["y", "any"])
    loss.backward(retain_graph=True)
    check.equal("what it is called with in two backwards", seen, [([7],), ([7],)])
    seen.clear()
    torch.autograd.grad(loss, a)
    check.equal("what it is called with where a is asked for", seen, [([7],)])
    seen.clear()
    (3 * outside).backward()
    check.equal("what it is called with in another graph", seen, [([3],)])


@program("MG-05", PROMISE, since="2.3", source=HOOK)
def knows_two_modes(check: Check) -> None:
    """The modes are "all", which is the default, and "any"; another one raises."""
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    register = torch.autograd.graph.register_multi_grad_hook
    for mode in ("some", "ALL", "", None):
        registering = partial(register, (a, b), lambda grads: None, mode=mode)
        check.raises(f"mode {mode!r}", ValueError, registering, "Expects mode to be one of")
    log: list[Any] = []
    register((a, b), lambda grads: log.append(("default", len(grads))))
    register((a, b), lambda grads: log.append(("all", len(grads))), mode="all")
    register((a, b), lambda grad: log.append(("any", grad.tolist())), mode="any")
    (2 * a + 2 * b).backward()
    check.order("calls", log, [("any", [2.0]), ("default", 2), ("all", 2)])


@program("MG-06", PIN, since="2.0", source=HOOK)
def changes_its_arguments(check: Check) -> None:
    """What the hook returns is ignored; if it changes a gradient in place, which it must not, the change counts."""
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    value: Any
    for value in (torch.tensor([100.0]), (torch.tensor([100.0]),), 0):
        torch.autograd.graph.register_multi_grad_hook((y,), lambda grads, value=value: value)
    torch.autograd.graph.register_multi_grad_hook((y,), lambda grads: grads[0].mul_(10))
    (3 * y).backward()
    check.equal("gradient", x.grad, [60])
    if offered((2, 3)):
        x.grad = None
        y, hook = 2 * x, partial(lambda value, grad: value, torch.tensor([100.0]))
        torch.autograd.graph.register_multi_grad_hook((y,), hook, mode="any")
        (3 * y).backward()
        check.equal('gradient under one of mode "any"', x.grad, [6])
        x.grad = None
        y = 2 * x
        torch.autograd.graph.register_multi_grad_hook((y,), lambda grad: grad.mul_(10), mode="any")
        (3 * y).backward()
        check.equal('gradient under one of mode "any" that changes its argument', x.grad, [60])


@program("MG-07", PROMISE, since="2.0", source=HOOK)
def one_handle_removes_it(check: Check) -> None:
    """The handle takes the hook off all of its tensors, and leaves others alone."""
    log: list[str] = []
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    y = a * b
    register = torch.autograd.graph.register_multi_grad_hook
    handle = register((a, b, y), lambda grads: log.append("first"))
    register((a, b, y), lambda grads: log.append("second"))
    a.register_hook(lambda grad: log.append("tensor hook"))
    y.backward(retain_graph=True)
    check.equal("calls before", sorted(log), ["first", "second", "tensor hook"])
    log.clear()
    handle.remove()
    handle.remove()
    for loss in (y, a + 1, b + 1):
        loss.backward(retain_graph=True)
    check.equal("calls of three backwards after", sorted(log), 3 * ["second"] + 2 * ["tensor hook"])
    if offered((2, 3)):
        gone = torch.ones(1, requires_grad=True)
        handle = register((gone, a), lambda grad: log.append("any"), mode="any")
        del gone
        handle.remove()
        (3 * a).backward()
        check.calls("calls after removing it where one of its tensors is gone", log.count("any"), 0)
        third = torch.ones(1, requires_grad=True)
        register((a, b, third), lambda grad: log.append("of three"), mode="any").remove()
        (a + b + third).backward()
        check.calls("calls after removing it from three tensors", log.count("of three"), 0)
    log.clear()
    with register((a, b), lambda grads: log.append("in the context")):
        y.backward(retain_graph=True)
    y.backward()
    check.calls("calls of one whose handle is a context", log.count("in the context"), 1)


@program("MG-08", PROMISE, since="2.0", source=f"{HOOK}; {EXECUTION}")
def is_made_of_tensor_hooks(check: Check) -> None:
    """It is made of tensor hooks and runs as the one on the tensor whose gradient comes last, in its order there."""
    log: list[Any] = []
    x = torch.tensor([2.0], requires_grad=True)
    y = 3 * x
    for tensor, name in ((x, "x"), (y, "y")):
        tensor.register_hook(lambda grad, name=name: log.append(f"{name} before"))
    torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: log.append("multi"))
    for tensor, name in ((x, "x"), (y, "y")):
        tensor.register_hook(lambda grad, name=name: log.append(f"{name} after"))
    loss = 5 * y
    loss.backward(retain_graph=True)
    check.order("calls", log, ["y before", "y after", "x before", "multi", "x after"])
    check.equal("gradient of the leaf when all is done", x.grad, [15])

    seen: list[Any] = []
    y.register_hook(lambda grad: 10 * grad)
    torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: seen.append((tuple(grads), x.grad.tolist())))
    loss.backward()
    check.equal("gradients after a tensor hook that replaces one", seen, [(([150], [50]), [15.0])])


@program("MG-09", PROMISE, since="2.0", source=HOOK)
def keeps_backwards_apart(check: Check) -> None:
    """A backward that runs within another one is a backward of its own: the hook is called for each."""
    seen: list[Any] = []
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    y = 5 * a
    loss = 7 * y * b
    torch.autograd.graph.register_multi_grad_hook((y, a, b), lambda grads: seen.append(tuple(grads)))
    inner: list[Any] = []

    def within(grad: Any) -> None:
        if not inner:
            inner.append(None)
            with torch.enable_grad():
                (11 * a * b).backward(inputs=[a, b])

    y.register_hook(within)
    loss.backward()
    check.equal("gradients of the inner backward", seen[:1], [(None, [33], [22])])
    check.equal("gradients of the outer one", seen[1:], [([21], [105], [70])])


@program("MG-11", PROMISE, since="2.0", source="pytorch#131753")
def runs_for_requested_leaves(check: Check) -> None:
    """The hook runs in ``torch.autograd.grad`` of two leaves too, with both gradients."""
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append(tuple(grads)))
    (a * b).backward()
    check.equal("gradients in a backward", seen, [([3], [2])])
    seen.clear()
    torch.autograd.grad(a * b, (a, b))
    check.equal("gradients in torch.autograd.grad", seen, [([3], [2])])


@program("MG-12", PROMISE, since="2.3", source="pytorch#117984")
def any_runs_once_in_each_backward(check: Check) -> None:
    """In mode "any" there is one call in each of two backwards, and none after ``remove()``."""
    log: list[Any] = []
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    handle = torch.autograd.graph.register_multi_grad_hook((a, b), log.append, mode="any")
    (a * b).backward()
    (a * b).backward()
    check.calls("calls in two backwards", len(log), 2)
    handle.remove()
    (a * b).backward()
    check.calls("calls after remove()", len(log), 2)

    calls: list[Any] = []

    def raising_once(grad: Any) -> None:
        calls.append(grad)
        if len(calls) == 1:
            raise ValueError("on purpose")

    y = a * b
    torch.autograd.graph.register_multi_grad_hook((a, b), raising_once, mode="any")
    check.raises("a backward in which it raises", ValueError, partial(y.backward, retain_graph=True), "on purpose")
    y.backward()
    check.calls("calls in that and the next backward", len(calls), 2)


@program("MG-13", PROMISE, since="2.0", source="pytorch#83617")
def a_failed_backward_leaves_nothing(check: Check) -> None:
    """After a backward that a hook broke off, the next one calls the hook once, with gradients of its own."""
    seen: list[Any] = []
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    y = a * b
    torch.autograd.graph.register_multi_grad_hook((y, a, b), lambda grads: seen.append(tuple(grads)))

    def fails(grad: Any) -> None:
        raise ValueError("on purpose")

    handle = a.register_hook(fails)
    loss = 2 * y
    check.raises("the backward that is broken off", ValueError, lambda: loss.backward(retain_graph=True), "on purpose")
    handle.remove()
    seen.clear()
    (5 * y).backward()
    check.equal("gradients of the next", seen, [([5], [15], [10])])


@program("MG-14", PROMISE, since="2.0", source="pytorch#83617")
def the_same_tensor_twice(check: Check) -> None:
    """A tensor that is listed twice has its gradient passed twice, in one call."""
    seen: list[Any] = []
    for of_leaf in (True, False):
        x = torch.tensor([1.0], requires_grad=True)
        y = x if of_leaf else 1 * x
        torch.autograd.graph.register_multi_grad_hook((y, y), lambda grads: seen.append(tuple(grads)))
        (2 * y).backward()
    check.equal("gradients of a leaf and of a result", seen, [([2], [2]), ([2], [2])])


REGISTERED: dict[str, tuple[Release, Callable[[Any, Any, Any], Any]]] = {
    "tensor": ((2, 0), lambda leaves, y, hook: leaves[0].register_hook(hook)),
    "Node": ((2, 0), lambda leaves, y, hook: y.grad_fn.register_hook(hook)),
    "post-accumulate": ((2, 1), lambda leaves, y, hook: leaves[0].register_post_accumulate_grad_hook(hook)),
    "all": ((2, 0), lambda leaves, y, hook: torch.autograd.graph.register_multi_grad_hook(leaves, hook)),
    "any": ((2, 3), lambda leaves, y, hook: torch.autograd.graph.register_multi_grad_hook(leaves, hook, mode="any")),
}
"""What registers a hook in the graph of two leaves and their product, by name, and since when."""


@program(
    "MG-15",
    PIN,
    since="2.0",
    source="torch.autograd.graph._MultiHandle, torch.utils.hooks.RemovableHandle; __getstate__",
)
def copies_of_handles(check: Check) -> None:
    """A shallow copy of the handle of a hook in the graph removes the hook as the handle does, a deep copy removes
    nothing of the original's, and one that removed its hook can be pickled."""
    log: list[str] = []
    for kind, (since, register) in REGISTERED.items():
        if not offered(since):
            continue
        leaves = [torch.ones(1, requires_grad=True) for _ in range(2)]
        y = leaves[0] * leaves[1]
        handle = register(leaves, y, noting(log, "hook"))
        for way, copied in (("deepcopy", copy.deepcopy), ("copy", copy.copy)):
            log.clear()
            other = check.works(f"{kind}: {way}", partial(copied, handle))
            if other is None:
                continue
            other.remove()
            y.backward(retain_graph=True)
            check.order(f"{kind}: hooks once the {way} is removed", log, ["hook"] if way == "deepcopy" else [])
        check.works(f"{kind}: remove() after that of its copy", handle.remove)
        restored = check.works(
            f"{kind}: pickle, once it is removed", lambda handle=handle: pickle.loads(pickle.dumps(handle))
        )
        if restored is not None:
            check.works(f"{kind}: remove() of what was pickled", restored.remove)
