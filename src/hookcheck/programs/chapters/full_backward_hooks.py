"""What do full backward hooks of a module promise beyond what any network shows, and what do libraries rely on?

A full backward hook is called as ``hook(module, grad_input, grad_output)`` when the gradients of the inputs of a call
are computed; a tuple that it returns takes the place of ``grad_input``. It hangs on an identity that is put around the
module, which is why arguments and outputs are views while it is there.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times, weighted
from hookcheck.programs.program import program

FULL = "torch.nn.Module.register_full_backward_hook"
NOTES = "notes on modules, 'Module Hooks'"


@program("BW-06", PROMISE, since="1.8", source=f"{FULL}; {NOTES}")
def a_tuple_replaces_grad_input(check: Check) -> None:
    """Of a full backward hook, None leaves the gradient alone; a tuple takes the place of grad_input from there on."""
    results = {
        "None": (lambda module, grad_input, grad_output: None, 1),
        "a tuple": (lambda module, grad_input, grad_output: (10 * grad_input[0],), 10),
        "a list": (lambda module, grad_input, grad_output: [10 * grad_input[0]], 10),
    }
    for name, (hook, change) in results.items():
        x, before, after = leaf(1.0, 2.0), weighted(2.0), weighted(3.0)
        after.register_full_backward_hook(hook)
        after(before(x)).sum().backward()
        check.equal(f"gradient of the input under {name}", x.grad, [6.0 * change] * 2)  # dy/dx = 2 * 3
        check.equal(f"gradient of a weight before it under {name}", before.weight.grad, 9.0 * change)  # 3 * (1 + 2)
        check.equal(f"gradient of its own weight under {name}", after.weight.grad, 6.0)  # 2 * (1 + 2)

    a, b = leaf(1.0), leaf(1.0)
    two = net(lambda module, a, b: 2 * a + 3 * b)
    two.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] + 10, grad_input[1] + 100))
    two(a, b).backward()
    check.equal("gradients of two inputs", (a.grad, b.grad), ([12], [103]))

    class Total(nn.Module):
        def forward(self, *args: Any) -> Any:
            return sum(args)

    total: Any = Total()
    five = [leaf(1.0) for _ in range(5)]
    total.register_full_backward_hook(lambda module, gi, go: tuple((n + 2) * g for n, g in enumerate(gi)))
    total(*five).backward()
    check.equal("gradients of five inputs", [x.grad for x in five], [[2], [3], [4], [5], [6]])


@program("BW-09", PIN, since="1.8", source=FULL)
def changes_in_place_reach_the_inputs(check: Check) -> None:
    """A full backward hook that breaks the rule and changes grad_input in place has changed the inputs' gradients."""

    def change_input(module: Any, grad_input: Any, grad_output: Any) -> None:
        grad_input[0].mul_(10)

    def change_output(module: Any, grad_input: Any, grad_output: Any) -> None:
        grad_output[0].mul_(10)

    x, y = leaf(1.0), leaf(1.0)
    tripled, doubled = times(3.0), times(2.0)
    tripled.register_full_backward_hook(change_input)
    tripled(x).sum().backward()
    check.equal("gradient of the input", x.grad, [30])
    doubled.register_full_backward_hook(change_output)
    doubled(y).sum().backward()
    check.equal("gradient of the input after a change of grad_output", y.grad, [2])  # it was worked out before


@program("BW-10", PROMISE, since="1.8", source=FULL)
def forward_receives_views(check: Check) -> None:
    """While a full backward hook is attached, ``forward`` receives a view of each tensor that the caller passes."""
    got: list[Any] = []

    def receive(module: Any, *args: Any, **kwargs: Any) -> Any:
        got.extend([*args, *kwargs.values()])
        return 2 * args[0]

    taking = net(receive)
    handle = taking.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    x, data = leaf(1.0, 2.0), torch.tensor([3.0, 4.0])

    def state(name: str, given: Any) -> None:
        received = got.pop()
        check.true(f"{name} is another object", received is not given, "argument")
        check.true(f"{name} is a view", received._is_view(), "argument")
        check.equal(f"memory of {name}", received.data_ptr(), given.data_ptr(), "argument")

    taking(x)
    state("an argument that requires grad", x)
    taking(x, data)
    state("an argument beside one that requires grad", data)
    got.clear()
    taking(data)
    state("an argument where none requires grad", data)
    taking(x, key=x)
    state("a keyword argument", x)
    handle.remove()
    taking(x)
    check.true("without a hook it is the argument itself", got.pop() is x, "argument")


@program("BW-11", PROMISE, since="1.8", source=FULL)
def the_caller_receives_views(check: Check) -> None:
    """While a full backward hook is attached, the caller receives a view of each tensor that ``forward`` returns."""
    results: list[Any] = []

    def forward(module: Any, *factors: Any) -> Any:
        results[:] = [2 * factor for factor in factors]
        return tuple(results) if len(results) > 1 else results[0]

    returning = net(forward)
    handle = returning.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    x, data = leaf(1.0, 2.0), torch.tensor([3.0, 4.0])

    def state(name: str, received: Any, returned: Any) -> None:
        check.true(f"{name} is another object", received is not returned)
        check.true(f"{name} is a view", received._is_view())
        check.equal(f"memory of {name}", received.data_ptr(), returned.data_ptr())

    state("an output that requires grad", returning(x), *results)
    first, second = returning(x, x)
    state("the first of two outputs", first, results[0])
    state("the second of two outputs", second, results[1])
    state("an output beside one that requires grad", returning(x, data)[1], results[1])
    state("an output where none requires grad", returning(data), *results)
    handle.remove()
    check.true("without a hook it is the output itself", returning(x) is results[0])
    single = net(lambda module, x: (2 * x,))
    single.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    check.equal("a tuple of one output", single(x), ([2, 4],))

    passing = nn.Identity()
    passing.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    check.true("nn.Identity returns another object than it is given", passing(x) is not x)


@program("BW-13", PROMISE, since="2.0", source=f"{FULL}, 'prepend'; {NOTES}")
def order_of_full_hooks(check: Check) -> None:
    """Full backward hooks run in the order of registration, prepended ones before them, and global ones before all."""
    log: list[str] = []

    def named(name: str) -> Any:
        return lambda module, grad_input, grad_output: log.append(name)

    def run(name: str, expected: str) -> None:
        for given, needs in ((leaf(1.0), "an input that requires grad"), (torch.tensor([1.0]), "data")):
            log.clear()
            hooked(given).sum().backward()
            check.order(f"{name}, with {needs}", log, list(expected))

    hooked = weighted(3.0)
    hooked.register_full_backward_hook(named("a"))
    hooked.register_full_backward_hook(named("b"))
    run("as registered", "ab")
    prepended = hooked.register_full_backward_hook(named("P"), prepend=True)
    run("one prepended", "Pab")
    hooked.register_full_backward_hook(named("Q"), prepend=True)
    run("the later prepended one is the first", "QPab")
    prepended.remove()
    hooked.register_full_backward_hook(named("c"))
    run("one removed and one appended", "Qabc")
    globally = torch.nn.modules.module.register_module_full_backward_hook
    with globally(named("G")), globally(named("H")):
        run("global ones", "GHQabc")
    run("global ones removed", "Qabc")


@program("BW-14", PROMISE, since="2.0", source=NOTES)
def what_full_hooks_are_given(check: Check) -> None:
    """A full backward hook is given the gradients of inputs and outputs, a full backward pre-hook those of outputs."""
    got: dict[str, tuple[Any, ...]] = {}
    tripled = times(3.0)
    tripled.register_full_backward_hook(lambda *args: got.update(hook=args))
    tripled.register_full_backward_pre_hook(lambda *args: got.update(pre=args))
    (5 * tripled(leaf(1.0))).sum().backward()
    check.true("module of the hook", got["hook"][0] is tripled, "argument")
    check.equal("arguments of the hook", got["hook"][1:], (([15],), ([5],)), "argument")
    check.true("module of the pre-hook", got["pre"][0] is tripled, "argument")
    check.equal("arguments of the pre-hook", got["pre"][1:], (([5],),), "argument")


@program("U-01", PIN, since="1.8", source=f"{FULL}; pytorch#25723")
def removal_after_forward(check: Check) -> None:
    """A full backward hook that is removed after forward still runs in that backward; a hook on a tensor does not."""
    calls: list[str] = []
    tripled = times(3.0)
    handle = tripled.register_full_backward_hook(lambda *args: calls.append("module"))
    y = tripled(leaf(1.0))
    on_output = y.register_hook(lambda grad: calls.append("tensor"))
    handle.remove()
    on_output.remove()
    y.sum().backward()
    check.order("hooks that ran", calls, ["module"])
    tripled(leaf(1.0)).sum().backward()
    check.order("hooks that ran after one more forward", calls, ["module"])


@program("U-02", PIN, since="1.8", source=FULL)
def registration_after_forward(check: Check) -> None:
    """A backward hook that is registered after forward does not run in the backward of that forward."""
    calls: list[str] = []
    full, legacy = times(3.0), times(3.0)
    for earlier in (True, False):
        y, z = full(leaf(1.0)), legacy(leaf(1.0))
        if earlier:
            full.register_full_backward_hook(lambda *args: calls.append("full"))
            legacy.register_backward_hook(lambda *args: calls.append("legacy"))
        y.sum().backward()
        z.sum().backward()
        check.order(
            f"hooks that ran where forward came {'before' if earlier else 'after'}",
            calls,
            [] if earlier else ["full", "legacy"],
        )


@program("U-05", PIN, since="1.8", source=f"{FULL}; torch.nn.Module.register_backward_hook")
def a_module_keeps_its_family(check: Check) -> None:
    """Once a module, or the process, had full backward hooks, legacy ones are refused for ever, and the reverse."""
    says = "Cannot use both regular backward hooks and full backward hooks"
    mixed = times(3.0)
    handle = mixed.register_full_backward_hook(print)
    check.raises("legacy beside full", RuntimeError, lambda: mixed.register_backward_hook(print), says)
    handle.remove()
    check.raises("legacy after full", RuntimeError, lambda: mixed.register_backward_hook(print), says)
    check.works("full after full", lambda: mixed.register_full_backward_hook(print).remove())

    mixed = times(3.0)
    handle = mixed.register_backward_hook(print)
    check.raises("full beside legacy", RuntimeError, lambda: mixed.register_full_backward_hook(print), says)
    handle.remove()
    check.raises("full after legacy", RuntimeError, lambda: mixed.register_full_backward_hook(print), says)
    check.works("legacy after legacy", lambda: mixed.register_backward_hook(print).remove())

    if hasattr(nn.Module, "register_full_backward_pre_hook"):
        for kind in ("backward_hook", "full_backward_hook"):
            mixed = times(3.0)
            mixed.register_full_backward_pre_hook(print)
            check.works(f"{kind} beside a pre-hook, of neither", partial(getattr(mixed, f"register_{kind}"), print))

    module = torch.nn.modules.module
    module.register_module_full_backward_hook(print).remove()
    check.raises("global legacy after full", RuntimeError, lambda: module.register_module_backward_hook(print), says)
    check.works("global full after full", lambda: module.register_module_full_backward_hook(print).remove())
    check.works("legacy of a module after global full", lambda: times(3.0).register_backward_hook(print))


@program("U-06", PIN, since="1.8", source=f"{FULL}; pytorch#58511")
def zeros_for_what_is_not_used(check: Check) -> None:
    """Under a full backward hook an input that the loss does not depend on gets a gradient of zeros instead of None."""
    for hooked in (False, True):
        a, unused, b = leaf(1.0), leaf(1.0), leaf(1.0)
        ignoring, pair = net(lambda module, a, b: 2 * a), net(lambda module, a, b: (2 * a, 3 * b))
        if hooked:
            ignoring.register_full_backward_hook(lambda module, grad_input, grad_output: None)
            pair.register_full_backward_hook(lambda module, grad_input, grad_output: None)
        ignoring(a, unused).sum().backward()
        name = "with a hook" if hooked else "without a hook"
        check.equal(
            f"gradients where forward ignores the second input {name}",
            (a.grad, unused.grad),
            ([2], [0] if hooked else None),
        )
        a.grad = None
        pair(a, b)[0].sum().backward()
        check.equal(
            f"gradients where the second output is not used {name}", (a.grad, b.grad), ([2], [0] if hooked else None)
        )


@program("U-07", PIN, since="1.8", source=FULL)
def zeros_for_what_needs_no_gradient(check: Check) -> None:
    """A tensor that requires no grad beside one that does shows up in grad_input as zeros, not as None."""
    seen: list[Any] = []
    product = net(lambda module, a, b: a * b)
    product.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_input))
    data = torch.tensor([5.0])
    product(leaf(3.0), data).sum().backward()
    check.equal("grad_input", seen[-1:], [([5], [0])])
    check.equal("gradient of the tensor itself", data.grad, None)


@program("U-08", PIN, since="1.8", source=FULL)
def none_for_an_unused_output(check: Check) -> None:
    """An output that the loss does not depend on shows up in grad_output as None."""
    seen: list[Any] = []
    pair = net(lambda module, x: (2 * x, 3 * x))
    pair.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    pair(leaf(1.0))[0].sum().backward()
    pair(leaf(1.0))[1].sum().backward()
    check.equal("gradients where the second is not used", seen[:1], [(([2],), ([1], None))])
    check.equal("gradients where the first is not used", seen[1:], [(([3],), (None, [1]))])
    first, second = pair(leaf(1.0))
    (first + 0 * second).backward()
    check.equal("gradients where the second is used and counts for nothing", seen[2:], [(([2],), ([1], [0]))])


@dataclass
class AnswerOutput:
    """An output that is neither a tensor nor a tuple."""

    value: Any


Pair = namedtuple("Pair", ["first", "second"])


NO_TUPLE = "module output should be a Tensor or a tuple of Tensors"
"""What torch warns of where a full hook is not called because of the output."""


@program("U-09", PIN, since="1.8", source=f"{FULL}; transformers#36508")
def outputs_that_are_no_tuples(check: Check) -> None:
    """Of an output that is a dict, list or dataclass the hook is not called, with a warning; a named tuple's is."""
    shapes: dict[str, tuple[Any, Any]] = {
        "dict": (lambda x: {"value": 2 * x}, lambda output: output["value"]),
        "list": (lambda x: [2 * x], lambda output: output[0]),
        "dataclass": (lambda x: AnswerOutput(2 * x), lambda output: output.value),
    }
    calls: list[Any] = []
    for name, (wrap, value) in shapes.items():
        x, wrapping = leaf(1.0), net(lambda module, x, wrap=wrap: wrap(x))
        wrapping.register_full_backward_hook(lambda *args: calls.append(args))
        output = check.warns(f"warning for a {name}", UserWarning, partial(wrapping, x), NO_TUPLE)
        gradient = check.works(f"backward from a {name}", partial(torch.autograd.grad, value(output).sum(), x))
        if gradient is not None:
            check.equal(f"gradient through a {name}", gradient, ([2],))
    check.calls("hook", len(calls), 0)

    seen: list[Any] = []
    named = net(lambda module, x: Pair(2 * x, 3 * x))
    named.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output))
    pair = check.silent("warning for a named tuple", lambda: named(leaf(1.0)), NO_TUPLE)
    check.true("a named tuple keeps its type", isinstance(pair, Pair))
    (pair[0] + 10 * pair[1]).sum().backward()
    check.equal("grad_output of a named tuple", seen, [([1], [10])])


@program("U-10", PIN, since="1.8", source=FULL)
def a_parameter_as_argument(check: Check) -> None:
    """A parameter that is passed to a module with a full backward hook arrives as a tensor that is a view of it."""
    got: list[Any] = []

    def receive(module: Any, x: Any) -> Any:
        got.append(x)
        return 2 * x

    taking = net(receive)
    weight = nn.Parameter(torch.tensor([1.0]))
    taking(weight)
    check.true("without a hook it is the parameter", got.pop() is weight, "argument")
    taking.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    taking(weight).sum().backward()
    check.equal("its class", type(got[0]).__name__, "Tensor", "argument")
    check.true("it is a view", got[0]._is_view(), "argument")
    check.equal("gradient of the parameter", weight.grad, [2])


@program("U-11", PIN, since="1.8", source=FULL)
def what_is_returned_for_no_tensor(check: Check) -> None:
    """What a full backward hook returns at the place of an argument that is no tensor is ignored."""
    for answer in (None, "anything"):
        a, b = leaf(1.0), leaf(1.0)
        mixed = net(lambda module, a, factor, b: factor * (2 * a + 3 * b))
        mixed.register_full_backward_hook(lambda module, gi, go, answer=answer: (10 * gi[0], answer, 100 * gi[2]))
        mixed(a, 5, b).sum().backward()
        check.equal(f"gradients under {answer}", (a.grad, b.grad), ([100], [1500]))
