"""In which order do backward hooks of different kinds run, and does each see what those before it changed?

The documentation names six steps: tensor hooks; pre-hooks of the Node; ``.grad`` of tensors that retain it; the Node;
post-accumulate hooks; post-hooks of the Node. Hooks of one kind run in the order of registration, and each sees what
those before it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import net, times
from hookcheck.programs.program import program
from hookcheck.programs.watching import linear

ORDER = "notes on autograd, 'Backward Hooks execution': the order in which hooks are run"
MODULE = "torch.nn.Module.register_full_backward_hook; notes on autograd, 'Backward Hooks execution': Special hooks"


def logging(log: Any) -> Any:
    """An operation written in Python that doubles its input and calls ``log()`` in its backward."""

    class Logging(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            log()
            return 2 * grad

    return Logging.apply


def accumulator(leaf: Any) -> Any:
    """The Node that accumulates the gradient of a leaf."""
    return leaf.view_as(leaf).grad_fn.next_functions[0][0]


ON_A_TENSOR: Mapping[str, Callable[..., Any]] = {
    "tensor hook": lambda tensor, node, hook: tensor.register_hook(hook),
    "Node pre-hook": lambda tensor, node, hook: node.register_prehook(hook),
    "Node": lambda tensor, node, hook: None,
    "post-accumulate hook": lambda tensor, node, hook: tensor.register_post_accumulate_grad_hook(hook),
    "Node post-hook": lambda tensor, node, hook: node.register_hook(hook),
}
"""How each kind of hook is put on a tensor and the Node behind it, in the order of running, which ``Node`` divides."""

ON_A_MODULE: Mapping[str, Callable[..., Any]] = {
    "tensor hook of the output": lambda net, x, later, hook: later.append(hook),
    "global full pre-hook": lambda net, x, later, hook: nn.modules.module.register_module_full_backward_pre_hook(hook),
    "full pre-hook": lambda net, x, later, hook: net.register_full_backward_pre_hook(hook),
    "global full hook": lambda net, x, later, hook: nn.modules.module.register_module_full_backward_hook(hook),
    "full hook": lambda net, x, later, hook: net.register_full_backward_hook(hook),
    "tensor hook of the input": lambda net, x, later, hook: x.register_hook(hook),
    "post-accumulate hook of the input": lambda net, x, later, hook: x.register_post_accumulate_grad_hook(hook),
}
"""How each kind is put on a module and its input, in the order of running; ``later`` are for the output of the call."""


def on_a_leaf(kinds: Sequence[str]) -> list[str]:
    """What runs in a backward if hooks of ``kinds`` are put on a leaf, one after the other."""
    log: list[str] = []
    x = linear().weight
    node = accumulator(x)
    for kind, hook in _named(kinds, log):
        ON_A_TENSOR[kind](x, node, hook)
    (2 * x).backward()
    return log


def on_a_result(kinds: Sequence[str]) -> list[str]:
    """What runs in a backward if hooks of ``kinds`` are put on the result of an operation whose Node logs too."""
    log: list[str] = []
    y = logging(lambda: log.append("Node"))(torch.tensor([1.0], requires_grad=True))
    for kind, hook in _named(kinds, log):
        ON_A_TENSOR[kind](y, y.grad_fn, hook)
    (3 * y).backward()
    return log


def on_a_module(kinds: Sequence[str]) -> list[str]:
    """What runs in a backward if hooks of ``kinds`` are put on a module, its input and its output."""
    log: list[str] = []
    module, x = nn.Linear(1, 1, bias=False), torch.ones(1, 1, requires_grad=True)
    later: list[Any] = []
    handles = [ON_A_MODULE[kind](module, x, later, hook) for kind, hook in _named(kinds, log)]
    y = module(x)
    for hook in later:
        y.register_hook(hook)
    y.backward()
    for handle in handles:
        if handle:
            handle.remove()
    return log


def _named(kinds: Sequence[str], log: list[str]) -> list[tuple[str, Any]]:
    """For each kind a hook that logs it with its number."""
    return [(kind, lambda *args, name=f"{kind} {i}": log.append(name)) for i, kind in enumerate(kinds)]


def due(kinds: Sequence[str], table: Iterable[str], *others: str) -> list[str]:
    """What the log must say: ``kinds`` and ``others`` in the order of the table, equal ones in that of registration."""
    order = list(table)
    names = [*others, *(f"{kind} {i}" for i, kind in enumerate(kinds))]
    return sorted(names, key=lambda name: order.index(name.rstrip(" 0123456789")))


def two_kinds(check: Check, first: str, second: str) -> None:
    """States that ``first`` runs before ``second`` on a leaf and on a result, whichever is registered first."""
    for kinds in ((first, second), (second, first)):
        check.order(f"calls on a leaf: {', '.join(kinds)}", on_a_leaf(kinds), due(kinds, ON_A_TENSOR))
        if "post-accumulate hook" not in kinds:
            called = on_a_result(kinds)
            check.order(f"calls on a result: {', '.join(kinds)}", called, due(kinds, ON_A_TENSOR, "Node"))


def scaling(log: list[Any], name: str, factor: int) -> Any:
    """A hook on a tensor or a Node that logs the first gradient that it gets and replaces it by ``factor`` times it."""

    def hook(first: Any, *others: Any) -> Any:
        gradient = first if isinstance(first, torch.Tensor) else first[0]
        log.append((name, gradient.tolist()))
        return factor * gradient if gradient is first else (factor * gradient, *first[1:])

    return hook


@program("EX-01", PROMISE, since="1.13", source=ORDER)
def tensor_hooks_before_pre_hooks(check: Check) -> None:
    """Tensor hooks run before pre-hooks of the tensor's Node."""
    two_kinds(check, "tensor hook", "Node pre-hook")


@program("EX-02", PROMISE, since="1.13", source=ORDER)
def pre_hooks_before_retain_grad(check: Check) -> None:
    """Pre-hooks of the Node run before the ``.grad`` of a tensor that retains it is updated."""
    for retained_first in (True, False):
        seen: list[Any] = []
        x = torch.tensor([1.0], requires_grad=True)
        y = times(2.0)(x)

        def hook(grad_outputs: Any) -> Any:
            seen.append(y.grad)  # noqa: B023
            return (10 * grad_outputs[0],)

        if retained_first:
            y.retain_grad()
        y.grad_fn.register_prehook(hook)
        if not retained_first:
            y.retain_grad()
        (3 * y).backward()
        when = "before" if retained_first else "after"
        check.equal(f"gradient that the pre-hook sees, retained {when} it was registered", seen, [None])
        check.equal(f"gradient that is retained {when} it was registered", y.grad, [30])
        check.equal(f"gradient of the leaf, retained {when} it was registered", x.grad, [60])


@program("EX-03", PROMISE, since="1.7", source=ORDER)
def retain_grad_before_the_node(check: Check) -> None:
    """The ``.grad`` of a tensor that retains it is updated before the tensor's Node runs."""
    seen: list[Any] = []
    y: Any = logging(lambda: seen.append(y.grad))(torch.tensor([1.0], requires_grad=True))
    y.register_hook(lambda grad: 10 * grad)
    y.retain_grad()
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: seen.append(y.grad))
    (3 * y).backward()
    check.equal("gradients that the Node and its post-hook see", seen, [[30], [30]])


@program("EX-04", PROMISE, since="2.1", source=ORDER)
def post_accumulate_hooks_after_the_node(check: Check) -> None:
    """Post-accumulate hooks run after the Node that accumulates, and see what all hooks before made of ``.grad``."""
    two_kinds(check, "Node pre-hook", "post-accumulate hook")
    two_kinds(check, "tensor hook", "post-accumulate hook")
    seen: list[Any] = []
    x = linear().weight
    x.grad = torch.tensor([[1000.0]])
    node = accumulator(x)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    node.register_prehook(scaling([], "", 7))
    x.register_hook(scaling([], "", 5))
    (3 * x).backward()
    check.equal("gradient that it sees, beside the one before", seen, [[[1105.0]]])  # 3 · 5 · 7


@program("EX-05", PROMISE, since="2.1", source=ORDER)
def post_hooks_after_post_accumulate_hooks(check: Check) -> None:
    """Post-hooks of the Node that accumulates run after post-accumulate hooks, and see what those did to ``.grad``."""
    two_kinds(check, "post-accumulate hook", "Node post-hook")
    seen: list[Any] = []
    x = linear().weight
    node = accumulator(x)
    node.register_hook(lambda grad_inputs, grad_outputs: seen.append(x.grad))

    def clear(p: Any) -> None:
        p.grad = None

    x.register_post_accumulate_grad_hook(clear)
    (3 * x).backward()
    check.equal("gradient that a post-hook sees if a post-accumulate hook cleared it", seen, [None])


@program("EX-06", PROMISE, since="1.7", source=ORDER)
def one_kind_in_order_of_registration(check: Check) -> None:
    """Hooks of one kind on one tensor or Node run in the order of their registration."""
    for kind in ("tensor hook", "Node post-hook"):
        kinds = 12 * [kind]
        check.order(f"calls of 12 {kind}s of a leaf", on_a_leaf(kinds), due(kinds, ON_A_TENSOR))
        check.order(f"calls of 12 {kind}s of a result", on_a_result(kinds), due(kinds, ON_A_TENSOR, "Node"))
    log: list[str] = []
    x = torch.tensor([1.0], requires_grad=True)
    handles = [x.register_hook(lambda grad, name=name: log.append(name)) for name in "abc"]
    handles[0].remove()
    x.register_hook(lambda grad: log.append("d"))
    handles[2].remove()
    x.register_hook(lambda grad: log.append("e"))
    x.backward()
    check.order("hooks after two were removed and two were added", log, list("bde"))


@program("EX-07", PROMISE, since="1.13", source=ORDER)
def later_hooks_see_changes(check: Check) -> None:
    """A hook sees what hooks before it made of the gradient, whatever their kinds."""
    log: list[Any] = []
    x = torch.tensor([1.0], requires_grad=True)
    y = times(2.0)(x)
    node, leaf = y.grad_fn, accumulator(x)
    leaf.register_prehook(scaling(log, "leaf's pre-hook", 23))
    x.register_hook(scaling(log, "leaf's tensor hook", 19))
    node.register_hook(scaling(log, "post-hook", 13))
    node.register_hook(scaling(log, "second post-hook", 17))
    node.register_prehook(scaling(log, "pre-hook", 7))
    node.register_prehook(scaling(log, "second pre-hook", 11))
    y.register_hook(scaling(log, "tensor hook", 3))
    y.register_hook(scaling(log, "second tensor hook", 5))
    y.backward()
    before = 2 * 3 * 5 * 7 * 11  # of y's hooks, through the product with 2
    expected = {
        "tensor hook": 1,
        "second tensor hook": 3,
        "pre-hook": 3 * 5,
        "second pre-hook": 3 * 5 * 7,
        "post-hook": before,
        "second post-hook": 13 * before,
        "leaf's tensor hook": 13 * 17 * before,
        "leaf's pre-hook": 13 * 17 * 19 * before,
    }
    check.order("calls", [name for name, _ in log], list(expected))
    check.equal("gradients that the hooks get", dict(log), {name: [float(g)] for name, g in expected.items()})
    check.equal("gradient of the leaf", x.grad, [13 * 17 * 19 * 23 * before])


@program("EX-08", PROMISE, since="1.8", source=MODULE)
def module_hooks_are_node_hooks(check: Check) -> None:
    """A module's full hook is made of hooks on one Node behind all its inputs and one behind all its outputs."""
    inside: list[Any] = []
    log: list[Any] = []

    def forward(module: Any, a: Any, b: Any) -> Any:
        inside.extend((a, b))
        return a * b, a + b

    module = net(forward)
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    plain = module(a, b)
    names = [tensor.grad_fn.name() for tensor in plain]
    check.true("no Node is added without a hook", not any("BackwardHook" in name for name in names))
    check.true("inputs are what they were without a hook", inside[0] is a and inside[1] is b)

    def hook(module: Any, grad_input: Any, grad_output: Any) -> Any:
        log.append(("full hook", [g.tolist() for g in (*grad_input, *grad_output)]))
        return 10 * grad_input[0], 100 * grad_input[1]

    module.register_full_backward_hook(hook)
    multiplied, added = module(a, b)
    for name, (first, second) in {"outputs": (multiplied, added), "inputs": (inside[2], inside[3])}.items():
        check.equal(f"name of the Node behind the {name}", first.grad_fn.name(), "BackwardHookFunctionBackward")
        check.true(f"both {name} have one Node", first.grad_fn is second.grad_fn)
    multiplied.register_hook(scaling(log, "output", 7))
    a.register_hook(scaling(log, "input", 1))
    (multiplied + 5 * added).backward()
    gradients = [26.0, 19.0, 7.0, 5.0]  # 7 b + 5, 7 a + 5, and of the outputs 7 · 1 and 5
    due = [("output", [1.0]), ("full hook", [[g] for g in gradients]), ("input", [260.0])]
    check.order("calls, each with the gradients that it gets", log, due)
    check.equal("gradients of the inputs", (a.grad, b.grad), ([260], [1900]))


@program("EX-10", PROMISE, since="2.1", source=f"{ORDER}; {MODULE}")
def any_two_kinds(check: Check) -> None:
    """Any two kinds of hooks on one tensor, Node or module run in the documented order, however they are registered."""
    of_leaf = [kind for kind in ON_A_TENSOR if kind != "Node"]
    of_result = [kind for kind in of_leaf if kind != "post-accumulate hook"]
    for pair in product(of_result, of_result):
        check.order(f"on a result: {', '.join(pair)}", on_a_result(pair), due(pair, ON_A_TENSOR, "Node"))
    for pair in product(ON_A_MODULE, ON_A_MODULE):
        check.order(f"on a module: {', '.join(pair)}", on_a_module(pair), due(pair, ON_A_MODULE))
    for pair in product(of_leaf, of_leaf):
        check.order(f"on a leaf: {', '.join(pair)}", on_a_leaf(pair), due(pair, ON_A_TENSOR))
    y = times(2.0)(torch.tensor([1.0], requires_grad=True))
    y.register_hook(lambda gradient: 5 * gradient)
    y.retain_grad()
    y.register_hook(lambda gradient: 10 * gradient)
    (3 * y).backward()
    check.equal("gradient that is retained between two tensor hooks", y.grad, [150])


@program("EX-11", PROMISE, since="1.13", source="pytorch#85849")
def tensor_hook_pre_hook_post_hook(check: Check) -> None:
    """A tensor hook, a pre-hook and a post-hook of its Node run in that order, each after what the others changed."""
    for place in ("leaf", "result"):
        log: list[Any] = []
        x = torch.tensor([1.0], requires_grad=True)
        tensor = x if place == "leaf" else times(2.0)(x)
        node = accumulator(x) if place == "leaf" else tensor.grad_fn
        node.register_hook(lambda grad_inputs, grad_outputs: log.append(("post", grad_outputs[0].tolist())))  # noqa: B023
        node.register_prehook(scaling(log, "pre", 5))
        tensor.register_hook(scaling(log, "tensor", 3))
        (1 * tensor).backward()
        check.order(f"calls on a {place}", [name for name, _ in log], ["tensor", "pre", "post"])
        check.equal(f"gradients that they get on a {place}", dict(log), {"tensor": [1.0], "pre": [3.0], "post": [15.0]})
