"""What do legacy backward hooks promise, and where do they see only a part of the gradients?

A hook that is registered with ``register_backward_hook`` hangs on the Node that made the first output. It sees the
gradients of that Node, which are those of the module only where the module is this one Node.
"""

from __future__ import annotations

from functools import partial
from threading import Thread
from types import MethodType
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times
from hookcheck.programs.program import program

LEGACY = "torch.nn.Module.register_backward_hook"
GLOBAL = "torch.nn.modules.module.register_module_backward_hook"
MISSING = "hook will be missing some"


def squared_and_negated(module: Any, x: Any) -> Any:
    """``y = -x * x`` in two Nodes, of which the last has one input: its gradient is ``-grad_output``."""
    return -(x * x)


@program("LB-01", PROMISE, since="1.8", source=LEGACY)
def the_hook_is_deprecated(check: Check) -> None:
    """The legacy backward hook is called deprecated, and where it misses gradients a warning says so."""
    check.true("its documentation", "deprecated" in (nn.Module.register_backward_hook.__doc__ or ""))
    one, nodes = net(lambda module, x: -x), net(squared_and_negated)
    pair, listed = net(lambda module, x: (-x, x + 1)), net(lambda module, x: [-x])
    mixed = net(lambda module, x, text: -x)
    for module in (one, nodes, pair, listed, mixed):
        module.register_backward_hook(lambda module, grad_input, grad_output: None)
    check.silent("a module of one Node", lambda: one(2 * leaf(1.0)))
    check.warns("a module of two Nodes", Warning, lambda: nodes(leaf(1.0)), f"{MISSING} grad_input")
    check.warns("outputs of two Nodes", Warning, lambda: pair(leaf(1.0)), f"{MISSING} grad_output")
    check.warns("a list of outputs", Warning, lambda: listed(leaf(1.0)), f"{MISSING} of the grad_output")
    check.warns("an argument that is no tensor", Warning, lambda: mixed(leaf(1.0), "a"), f"{MISSING} of the grad_input")


@program("LB-02", PROMISE, since="1.8", source=GLOBAL)
def the_global_hook_is_deprecated(check: Check) -> None:
    """The global legacy backward hook is called deprecated, and where it misses gradients a warning says so."""
    register = torch.nn.modules.module.register_module_backward_hook
    check.true("its documentation", "deprecated" in (register.__doc__ or ""))
    one, nodes, x = net(lambda module, x: -x), net(squared_and_negated), 2 * leaf(1.0)
    with register(lambda module, grad_input, grad_output: None):
        check.silent("a module of one Node", lambda: one(x))
        check.warns("a module of two Nodes", Warning, lambda: nodes(x), f"{MISSING} grad_input")
    check.silent("after its removal", lambda: nodes(x))


@program("LB-03", PIN, since="1.7", source=f"{LEGACY} (text up to 1.7); pytorch#46163")
def what_the_hook_sees(check: Check) -> None:
    """A legacy backward hook sees the gradients of the Node that made the first output, and runs when it does."""
    seen: list[Any] = []

    def record(module: Any, grad_input: Any, grad_output: Any) -> None:
        seen.append((grad_input, grad_output))

    x, nodes = leaf(1.0, 2.0), net(squared_and_negated)
    nodes.register_backward_hook(record)
    nodes(x).sum().backward()
    check.equal("gradients of a module of two Nodes", seen, [(([-1, -1],), ([1, 1],))])
    check.equal("gradient of its input", x.grad, [-2, -4])

    seen.clear()
    pair = net(lambda module, x: (-x, x.neg()))
    pair.register_backward_hook(record)
    first, second = pair(leaf(1.0))
    second.sum().backward()
    check.calls("calls where the second output is used", len(seen), 0)
    (2 * first + 3 * second).sum().backward()
    check.equal("gradients where both are used", seen, [(([-2],), ([2],))])

    order: list[str] = []
    several = net(lambda module, x: -x)
    several.register_backward_hook(lambda *args: order.append("first"))
    second_hook = several.register_backward_hook(lambda *args: order.append("second"))
    several.register_backward_hook(lambda *args: order.append("third"))
    several(leaf(1.0)).sum().backward()
    second_hook.remove()
    several(leaf(1.0)).sum().backward()
    check.order("several hooks, then without the second", order, ["first", "second", "third", "first", "third"])

    seen.clear()
    bound = net(lambda module, x: -x)
    bound.register_backward_hook(partial(lambda word, module, gi, go: seen.append((word, gi, go)), "bound"))
    bound(leaf(1.0)).sum().backward()
    check.equal("what a partial is called with", seen, [("bound", ([-1],), ([1],))])
    bound.register_backward_hook(MethodType(lambda self, module, gi, go: (3 * gi[0],), bound))
    x = leaf(1.0)
    bound(x).sum().backward()
    check.equal("gradient that a bound method returns", x.grad, [-3])

    seen.clear()
    linear = nn.Linear(2, 1)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[2.0, 3.0]]))
    linear.register_backward_hook(record)
    linear(torch.tensor([[1.0, 5.0]], requires_grad=True)).sum().backward()
    expected = [(([1], [[2, 3]], [[1], [5]]), ([[1]],))]  # bias, input and the weight transposed, as addmm has them
    check.equal("gradients of nn.Linear", seen, expected, "entry")


@program("LB-04", PROMISE, since="1.7", source="pytorch#59203")
def outputs_of_any_structure(check: Check) -> None:
    """A module with a legacy backward hook may return anything, and a tensor that is nested in it is found."""
    calls: list[Any] = []
    outputs: tuple[tuple[str, Any, Any], ...] = (
        ("None", lambda x: None, None),
        ("a number", lambda x: 7, None),
        ("an empty dict", lambda x: {}, None),
        ("an empty tuple", lambda x: (), None),
        ("a dict of numbers", lambda x: {"a": 7}, None),
        ("a dict of a dict", lambda x: {"a": {"b": -x}}, lambda output: output["a"]["b"]),
        ("a dict of a list", lambda x: {"a": [-x]}, lambda output: output["a"][0]),
        ("None and a tensor", lambda x: (None, -x), lambda output: output[1]),
        ("a tensor in a list in a tuple", lambda x: ([-x],), lambda output: output[0][0]),
    )
    for name, forward, tensor in outputs:
        calls.clear()
        hooked = net(lambda module, x, forward=forward: forward(x))
        hooked.register_backward_hook(lambda *args: calls.append(args))
        output = check.works(f"forward that returns {name}", partial(hooked, leaf(1.0)))
        if tensor is not None and output is not None:
            tensor(output).sum().backward()
            check.calls(f"calls where forward returns {name}", len(calls), 1)


@program("LB-05", PROMISE, since="1.7", source="pytorch#59203", alone=True)
def an_output_that_is_a_text(check: Check) -> None:
    """A module with a legacy backward hook may return a text."""
    outputs: list[Any] = []
    telling = net(lambda module, x: "text")
    telling.register_backward_hook(lambda module, grad_input, grad_output: None)
    thread = Thread(target=lambda: outputs.append(telling(leaf(1.0))), daemon=True)
    thread.start()
    thread.join(timeout=3)  # where it hangs it does so for ever: "t"[0] is "t"
    check.equal("output", outputs, ["text"], "process")


@program("LB-06", PROMISE, since="1.8", source="pytorch#46163")
def full_hooks_after_legacy_ones(check: Check) -> None:
    """A module takes full backward hooks once its last legacy hook is removed."""
    calls: list[Any] = []
    tripled = times(3.0)
    tripled.register_backward_hook(lambda *args: calls.append("legacy")).remove()
    full = check.works("registration", lambda: tripled.register_full_backward_hook(lambda *args: calls.append("full")))
    tripled(leaf(1.0)).sum().backward()
    check.order("hooks that ran", calls, ["full"] if full else [])


@program("LB-07", PROMISE, since="1.8", source="pytorch#46163")
def global_full_hooks_after_legacy_ones(check: Check) -> None:
    """The process takes global full backward hooks once the last global legacy hook is removed."""
    calls: list[Any] = []
    module, tripled = torch.nn.modules.module, times(3.0)
    module.register_module_backward_hook(lambda *args: calls.append("legacy")).remove()
    register = module.register_module_full_backward_hook
    full = check.works("registration", lambda: register(lambda *args: calls.append("full")))
    tripled(leaf(1.0)).sum().backward()
    check.order("hooks that ran", calls, ["full"] if full else [])
