"""What becomes of hooks on the Node that accumulates a leaf's gradient?

Such a Node is found behind any view of the leaf. Distributed training put its hooks there long before there were
post-accumulate hooks; how long it lives decides how long they do.
"""

from __future__ import annotations

from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program


@program("U-15", PIN, since="1.7", source="torch.autograd.graph.Node.register_hook, as distributed training uses it")
def lives_while_it_is_held(check: Check) -> None:
    """A hook on the Node of a leaf runs as long as something holds the Node, and is lost with it."""
    log: list[str] = []
    used, held, lost = (nn.Parameter(torch.tensor([1.0])) for _ in range(3))
    holder = used.expand_as(used).grad_fn.next_functions[0][0]
    holder.register_hook(lambda *gradients: log.append("held by hand"))
    graph = 5 * held
    graph.grad_fn.next_functions[0][0].register_hook(lambda *gradients: log.append("held by a graph"))
    lost.expand_as(lost).grad_fn.next_functions[0][0].register_hook(lambda *gradients: log.append("not held"))
    for _ in range(2):
        for parameter in (used, held, lost):
            (2 * parameter).backward()
    check.order("calls in two backwards", log, 2 * ["held by hand", "held by a graph"])
    check.true("the Node that is held is the leaf's", used.expand_as(used).grad_fn.next_functions[0][0] is holder)


@program("AG-03", PIN, since="1.7", source="pytorch#60796")
def keeps_its_hooks(check: Check) -> None:
    """A hook on the Node of a leaf runs although nothing holds the Node any longer."""
    log: list[str] = []
    w = nn.Parameter(torch.tensor([1.0]))
    graph = w.expand_as(w)
    graph.grad_fn.next_functions[0][0].register_hook(lambda *gradients: log.append("hook"))
    (2 * w).backward()
    check.calls("calls while a graph holds it", len(log), 1)
    del graph
    (2 * w).backward()
    check.calls("calls in another backward, when nothing does", len(log), 2)


@program("AG-04", PROMISE, since="1.7", source="pytorch#139742")
def survives_set(check: Check) -> None:
    """A hook on the Node of a parameter, which the program holds, runs also after ``set_`` gave it other data."""
    log: list[str] = []
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    node = w.expand_as(w).grad_fn.next_functions[0][0]
    node.register_hook(lambda *gradients: log.append("hook"))
    (2 * w).sum().backward()
    check.calls("calls before", len(log), 1)
    with torch.no_grad():
        w.set_(torch.tensor([3.0, 4.0]))  # type: ignore[call-overload]
    (2 * w).sum().backward()
    check.calls("calls before and after", len(log), 2)


@program("AG-05", PIN, since="1.7", source="pytorch#139742")
def survives_another_type(check: Check) -> None:
    """A hook on the Node of a parameter, which the program holds, runs also after ``.data`` got another type."""
    log: list[str] = []
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    node = w.expand_as(w).grad_fn.next_functions[0][0]
    node.register_hook(lambda *gradients: log.append("hook"))
    w.data = torch.tensor([3.0, 4.0])
    (2 * w).sum().backward()
    check.calls("calls after data of the same type", len(log), 1)
    w.grad = None
    w.data = w.data.double()
    (2 * w).sum().backward()
    check.calls("calls after data of the same and of another type", len(log), 2)


@program("U-16", PIN, since="2.1", source="torch.nn.Module.register_full_backward_hook, as loggers of gradients use it")
def order_in_a_layer(check: Check) -> None:
    """A layer's parameters have tensor hook and post-accumulate hook before the layer's full hook; after it if no input
    of the layer requires a gradient."""
    for requires_grad in (True, False):
        log: list[str] = []
        net = nn.Linear(1, 1, bias=False)
        net.weight.register_post_accumulate_grad_hook(lambda p: log.append("post-accumulate"))  # noqa: B023
        net.weight.register_hook(lambda grad: log.append("tensor hook"))  # noqa: B023
        net.register_full_backward_hook(lambda module, gi, go: log.append("full hook"))  # noqa: B023
        net(torch.ones(1, 1, requires_grad=requires_grad)).sum().backward()
        of_parameter = ["tensor hook", "post-accumulate"]
        due = [*of_parameter, "full hook"] if requires_grad else ["full hook", *of_parameter]
        check.order(f"calls if the input requires a gradient: {requires_grad}", log, due)


@program("AG-06", PIN, since="1.7", source="torch.autograd.graph.Node.register_hook; pytorch#34082")
def a_gradient_that_a_hook_kept(check: Check) -> None:
    """What a hook on a leaf, or a pre-hook of its Node, kept of one backward is the same after the next; a post-hook of
    the Node gets the very memory that becomes ``.grad``, to which the next backward adds."""
    w = nn.Parameter(torch.tensor([1.0]))
    node = w.expand_as(w).grad_fn.next_functions[0][0]
    gradients: dict[str, list[Any]] = {"hook": [], "pre-hook of the Node": [], "post-hook of the Node": []}
    node.register_hook(lambda gi, go: gradients["post-hook of the Node"].append(go[0]))
    (2 * w).backward()
    (2 * w).backward()
    check.equal("kept by a post-hook of the Node", gradients["post-hook of the Node"][0], [4])  # 2, and 2 more
    w.grad = None
    w.register_hook(gradients["hook"].append)
    if hasattr(node, "register_prehook"):
        node.register_prehook(lambda go: gradients["pre-hook of the Node"].append(go[0]))
    (2 * w).backward()
    (2 * w).backward()
    for name in ("hook", "pre-hook of the Node"):
        if gradients[name]:
            check.equal(f"kept by a {name}", gradients[name][0], [2])


@program(
    "AG-07", PROMISE, since="2.10", source="torch.Tensor.grad_dtype: 'the autograd engine casts incoming gradients'"
)
def has_the_dtype_that_the_leaf_asks_for(check: Check) -> None:
    """Hooks on a leaf get its gradient in the leaf's ``grad_dtype``, and as it comes if that is None."""
    slope = 2.0**200  # float64 holds it; the others do not

    class Precise(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return slope * grad.double()

    for asked in (None, torch.float64, torch.float32, torch.bfloat16):
        seen: dict[str, Any] = {}
        w = nn.Parameter(torch.tensor([3.0]))
        w.grad_dtype = asked
        w.register_hook(lambda grad: seen.update({"a hook": grad}))  # noqa: B023
        w.register_post_accumulate_grad_hook(lambda p: seen.update({"a post-accumulate hook": p.grad.clone()}))  # noqa: B023
        torch.autograd.graph.register_multi_grad_hook([w], lambda gs: seen.update({"a multi-grad hook": gs[0]}))  # noqa: B023
        node = torch.autograd.graph.get_gradient_edge(w).node
        node.register_prehook(lambda gs: seen.update({"a pre-hook of the Node": gs[0]}))  # noqa: B023
        node.register_hook(lambda gi, go: seen.update({"a hook of the Node": go[0].clone()}))  # noqa: B023
        Precise.apply(w).backward()
        dtype = asked or torch.float64
        due = slope if dtype == torch.float64 else float("inf")
        check.order(f"who was called, with {asked}", sorted(seen), [
            "a hook", "a hook of the Node", "a multi-grad hook", "a post-accumulate hook", "a pre-hook of the Node",
        ])  # fmt: skip
        for name, grad in seen.items():
            check.equal(f"dtype of what {name} got, with {asked}", str(grad.dtype), str(dtype))
            check.equal(f"what {name} got, with {asked}", grad.tolist(), [due])
        Precise.apply(w).backward()
        check.equal(f".grad after another backward, with {asked}", w.grad.tolist(), [2 * due])
        check.equal(f"its dtype, with {asked}", str(w.grad.dtype), str(dtype))


@program("AG-08", PROMISE, since="2.13", source="torch.autograd.enforce_grad_layout_policy; 'Default gradient layouts'")
def has_the_strides_of_the_leaf(check: Check) -> None:
    """A post-accumulate hook meets ``.grad`` in the strides of the leaf, also after these were not enforced for a
    while."""

    class Transposed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.tensor([[1.0, 3.0], [2.0, 4.0]]).t()

    def seen() -> Any:
        strides: list[Any] = []
        w = nn.Parameter(torch.zeros(2, 2))
        w.register_post_accumulate_grad_hook(lambda p: strides.append((p.grad.stride(), p.grad.tolist())))
        Transposed.apply(w).sum().backward()
        return strides

    def raises() -> None:
        with relaxed(False):
            raise ValueError("on purpose")

    relaxed = torch.autograd.enforce_grad_layout_policy
    due = [((2, 1), [[1, 2], [3, 4]])]
    check.equal("before", seen(), due)
    with relaxed(False):
        within = seen()
        with relaxed(True):
            check.equal("enforced within", seen(), due)
    check.equal("values while it was not enforced", [values for _, values in within], [[[1, 2], [3, 4]]])
    check.equal("afterwards", seen(), due)
    decorated = relaxed(False)(seen)
    check.equal("once a function is decorated", seen(), due)
    check.equal("calls in the decorated function", len(decorated()), 1)
    check.equal("after the decorated function", seen(), due)
    check.raises("an error within", ValueError, raises, "on purpose")
    check.equal("after the error", seen(), due)
