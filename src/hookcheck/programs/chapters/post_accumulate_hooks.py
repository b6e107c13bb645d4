"""What do hooks promise that run once a leaf's ``.grad`` has been updated?

``leaf.register_post_accumulate_grad_hook(hook)`` has ``hook(leaf)`` called when autograd has updated ``leaf.grad``. It
gets the tensor, not the gradient, and may change both: optimizers take a parameter's step in it.
"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

HOOK = "torch.Tensor.register_post_accumulate_grad_hook"
EXECUTION = f"{HOOK}; notes on autograd, 'Backward Hooks execution'"


@program("PA-01", PROMISE, since="2.1", source=EXECUTION)
def runs_after_accumulation(check: Check) -> None:
    """The hook runs when all gradients of the tensor have been accumulated and its ``.grad`` has been updated."""
    log: list[Any] = []
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    unused = torch.tensor([5.0], requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.tolist()))
    unused.register_post_accumulate_grad_hook(lambda p: log.append("unused"))
    loss = (2 * w + w * w).sum()  # a gradient of 2 + 2 w
    loss.backward(retain_graph=True)
    check.order("gradient of a parameter that is used twice", log, [[4.0, 6.0]])
    loss.backward(retain_graph=True)
    check.order("gradient after each of two backwards", log, [[4.0, 6.0], [8.0, 12.0]])

    log.clear()
    w.grad = torch.tensor([100.0, 100.0])
    w.register_hook(lambda grad: -grad)
    loss.backward()
    check.order("gradient added to another, under a tensor hook that turns it around", log, [[96.0, 94.0]])

    log.clear()
    net = nn.Linear(1, 1)
    for name, p in net.named_parameters():
        p.register_post_accumulate_grad_hook(lambda p, name=name: log.append((name, p.grad.tolist())))
    for x in (1.0, 5.0):
        net(torch.tensor([[x]])).sum().backward()
        net.zero_grad()
    check.equal("calls for both parameters of a layer in two steps", sorted(map(str, log)), sorted(map(str, _STEPS)))

    log.clear()
    (3 * copy.deepcopy(w)).sum().backward()
    (3 * w.detach().requires_grad_()).sum().backward()
    check.order("calls for a deep copy and a detached tensor", log, [])

    table: Any = nn.Embedding(2, 1, sparse=True)
    table.weight.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.layout))
    with ThreadPoolExecutor(1) as other:
        for run in (lambda act: act(), lambda act: other.submit(act).result()):
            table.zero_grad()
            run(table(torch.tensor([1])).sum().backward)
    check.order("layout of a sparse gradient, in this thread and in another", log, [torch.sparse_coo] * 2)


_STEPS = [("bias", [1.0]), ("weight", [[1.0]]), ("bias", [1.0]), ("weight", [[5.0]])]


@program("PA-02", PROMISE, since="2.1", source=EXECUTION)
def is_for_leaves(check: Check) -> None:
    """The hook can be registered on leaves that require a gradient alone; on any other tensor, that raises."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    says = "non-leaf"
    for name, tensor in {"a product": 2 * x, "a view": x[:1], "a clone": x.clone()}.items():
        register = tensor.register_post_accumulate_grad_hook
        check.raises(f"registering on {name} of a leaf", RuntimeError, lambda: register(lambda p: None), says)  # noqa: B023
    for name, tensor in {
        "": torch.ones(1),
        " and is of no dimension": torch.tensor(1.0),
        " of integers": torch.ones(1).long(),
        ", detached": x.detach(),
    }.items():
        register = tensor.register_post_accumulate_grad_hook
        name = f"registering on a tensor that requires no gradient{name}"
        check.raises(name, RuntimeError, lambda: register(lambda p: None), "require gradient")  # noqa: B023
    log: list[Any] = []
    leaves = {
        "a tensor of no dimension": torch.tensor(1.0, requires_grad=True),
        "a parameter": nn.Parameter(torch.tensor(1.0)),
        "a complex tensor": torch.tensor(1 + 1j, requires_grad=True),
        "a detached product": (2 * x[0]).detach().requires_grad_(),
    }
    for name, leaf in leaves.items():
        with torch.no_grad():
            leaf.register_post_accumulate_grad_hook(lambda p, name=name: log.append(name))
        (leaf * 2).abs().sum().backward()
    check.order("calls on leaves of every kind, registered under no_grad", log, list(leaves))


@program("PA-03", PROMISE, since="2.1", source=EXECUTION)
def retaining_makes_no_leaf(check: Check) -> None:
    """It can not be registered on a result either if its gradient or the graph is retained."""
    x = torch.tensor([1.0], requires_grad=True)
    y = 2 * x
    y.retain_grad()
    register = y.register_post_accumulate_grad_hook
    check.raises("before a backward that retains the graph", RuntimeError, lambda: register(lambda p: None), "non-leaf")
    y.backward(retain_graph=True)
    check.raises("between two backwards", RuntimeError, lambda: register(lambda p: None), "non-leaf")


@program("PA-04", PROMISE, since="2.1", source=HOOK)
def gets_the_tensor(check: Check) -> None:
    """The hook gets the tensor itself, not its gradient."""
    seen: list[Any] = []
    leaf, parameter = torch.tensor([2.0], requires_grad=True), nn.Parameter(torch.tensor([3.0]))
    for tensor in (leaf, parameter):
        tensor.register_post_accumulate_grad_hook(lambda *args, **kwargs: seen.append((args, kwargs)))
        (5 * tensor).backward()
    for name, tensor, call in zip(("leaf", "parameter"), (leaf, parameter), seen):
        args, kwargs = call
        check.equal(f"number of arguments of the hook on a {name}", (len(args), len(kwargs)), (1, 0))
        check.true(f"the {name} is the argument", args[0] is tensor, "argument")


@program("PA-05", PROMISE, since="2.1", source=HOOK)
def may_change_the_tensor(check: Check) -> None:
    """The hook may read and change the tensor and its ``.grad`` in place."""
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    handle = w.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.5))  # as documented
    for _ in range(2):
        (2 * w).sum().backward()
    check.equal("tensor after two steps of descent", w, [-2, -1])  # steps of 0.5 · 2 and of 0.5 · 4
    check.equal("gradient after them", w.grad, [4, 4])
    check.true("the tensor still requires a gradient and is a leaf", w.requires_grad and w.is_leaf)

    handle.remove()
    w.grad = None

    def step(p: Any) -> None:
        p.sub_(p.grad)
        p.grad = None

    handle = w.register_post_accumulate_grad_hook(step)
    for number, expected in enumerate(([-5, -4], [-8, -7])):
        (3 * w).sum().backward()
        check.equal(f"tensor after step {number} of a hook that clears the gradient", w, expected)
        check.equal(f"gradient after step {number}", w.grad, None)

    handle.remove()

    def scale(p: Any) -> None:
        p.grad.mul_(10)

    w.register_post_accumulate_grad_hook(scale)
    (3 * w).sum().backward()
    check.equal("gradient under a hook that scales it", w.grad, [30, 30])


@program("PA-06", PROMISE, since="2.1", source=HOOK)
def returns_nothing(check: Check) -> None:
    """The hook returns nothing: any other value than None raises."""
    for value in (0, False, torch.ones(1), (torch.ones(1),)):
        w = torch.tensor([1.0], requires_grad=True)
        w.register_post_accumulate_grad_hook(lambda p: value)  # noqa: B023
        check.raises(f"a hook that returns a {type(value).__name__}", Exception, (2 * w).backward, "return")
        check.equal(f"gradient that had been accumulated before a {type(value).__name__} was returned", w.grad, [2])


@program("PA-07", PROMISE, since="2.1", source=HOOK)
def runs_without_grad_mode(check: Check) -> None:
    """The hook runs with grad mode off, unless the graph of the backward is created; it may switch grad mode on."""
    seen: list[Any] = []
    w = torch.tensor([3.0], requires_grad=True)

    def hook(p: Any) -> None:
        with torch.enable_grad():
            product = 2 * p
        seen.append((torch.is_grad_enabled(), p.grad.requires_grad, product.requires_grad))

    w.register_post_accumulate_grad_hook(hook)
    (w * w).backward()
    w.grad = None
    with torch.enable_grad():
        (w * w).backward(create_graph=True)
    check.equal("grad mode, and whether the gradient and a product require one", seen[0], (False, False, True))
    check.equal("the same if the graph is created", seen[1], (True, True, True))
    w.grad = None  # it would hold the graph, and the graph w


@program("PA-08", PROMISE, since="2.1", source=EXECUTION)
def runs_where_the_gradient_is_updated(check: Check) -> None:
    """The hook runs only where autograd updates ``.grad``: not for ``torch.autograd.grad``."""
    log: list[str] = []
    a, b = (torch.tensor([2.0], requires_grad=True) for _ in range(2))
    for tensor, name in ((a, "a"), (b, "b")):
        tensor.register_post_accumulate_grad_hook(lambda p, name=name: log.append(name))
    loss = a * b
    torch.autograd.grad(loss, (a, b), retain_graph=True)
    check.order("calls of torch.autograd.grad", log, [])
    a.grad = torch.ones(1)
    check.order("calls after .grad was set by hand", log, [])
    loss.backward(inputs=[a], retain_graph=True)
    check.order("calls of a backward for one of two inputs", log, ["a"])
    loss.backward()
    check.equal("calls of a backward for all", sorted(log[1:]), ["a", "b"])


@program("PA-09", PROMISE, since="2.1", source=HOOK)
def is_taken_off_by_its_handle(check: Check) -> None:
    """``remove()`` of its handle takes the hook off, and it alone, also between forward and backward."""
    log: list[str] = []
    w = torch.tensor([1.0], requires_grad=True)
    loss = 2 * w
    handles = [w.register_post_accumulate_grad_hook(lambda p, i=i: log.append(f"hook {i}")) for i in range(3)]
    handles[1].remove()
    handles[1].remove()
    loss.backward(retain_graph=True)
    check.order("calls of the hooks that are left", log, ["hook 0", "hook 2"])

    def once(p: Any) -> None:
        log.append("once")
        last.remove()

    log.clear()
    handles[0].remove()
    last = w.register_post_accumulate_grad_hook(once)
    loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)
    check.order("calls of a hook that removes itself, beside another", log, ["hook 2", "once", "hook 2"])
    log.clear()
    handles[2].remove()
    loss.backward()
    check.order("calls when all were removed", log, [])


@program("PA-10", PROMISE, since="2.1", source="pytorch#107063")
def is_refused_at_registration(check: Check) -> None:
    """On a result of an operation the registration raises, not the backward after it."""
    y = 2 * torch.tensor([1.0], requires_grad=True)
    register = y.register_post_accumulate_grad_hook
    check.raises("registration", RuntimeError, lambda: register(lambda p: None), "non-leaf")
    check.works("backward after it", y.backward)


@program("PA-11", PROMISE, since="2.1", source="pytorch#107063")
def hooks_run_in_order(check: Check) -> None:
    """Several such hooks run in order after the tensor hooks, see the gradient after those, and may set it to None."""
    log: list[Any] = []
    w = torch.tensor([1.0], requires_grad=True)

    def double(grad: Any) -> Any:
        log.append("tensor hook")
        return 2 * grad

    def clear(p: Any) -> None:
        log.append(("clears", p.grad.tolist()))
        p.grad = None

    w.register_post_accumulate_grad_hook(lambda p: log.append(("first", p.grad.tolist())))
    w.register_post_accumulate_grad_hook(clear)
    w.register_post_accumulate_grad_hook(lambda p: log.append(("last", p.grad)))
    w.register_hook(double)
    (3 * w).backward()
    check.order("calls", log, ["tensor hook", ("first", [6.0]), ("clears", [6.0]), ("last", None)])
    check.equal("gradient after backward", w.grad, None)


@program("PA-12", PROMISE, since="2.1", source="pytorch#139742")
def survives_new_data(check: Check) -> None:
    """Such hooks and tensor hooks of a parameter go on when its data are replaced by ``.data`` and by ``set_``."""
    log: list[str] = []
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    w.register_hook(lambda grad: log.append("tensor hook"))
    w.register_post_accumulate_grad_hook(lambda p: log.append("post-accumulate"))
    due = ["tensor hook", "post-accumulate"]
    (2 * w).sum().backward()
    check.order("calls before", log, due)
    w.data = torch.tensor([3.0, 4.0])
    (2 * w).sum().backward()
    check.order("calls after .data was assigned", log, 2 * due)
    with torch.no_grad():
        w.set_(torch.tensor([5.0, 6.0]))  # type: ignore[call-overload]
    (2 * w).sum().backward()
    check.order("calls after set_", log, 3 * due)
