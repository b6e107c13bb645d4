"""What does a full backward hook do to what goes into a module and what comes out of it, though it only looks on?

Objects that are passed through, inputs that are not used, named tuples and other classes of tuples, nested outputs:
each program is a fault that was found in some release.
"""

from __future__ import annotations

import warnings
from collections import namedtuple
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times, weighted
from hookcheck.programs.program import program

Pair = namedtuple("Pair", ["first", "second"])
Single = namedtuple("Single", ["only"])


class Couple(tuple[Any, Any]):
    """A tuple of a class of its own, which is made of a sequence as tuples are."""

    @property
    def first(self) -> Any:
        """The first item."""
        return self[0]


def watched(module: Any) -> list[Any]:
    """The grad_output of each call of a full backward hook of the module, as they come."""
    seen: list[Any] = []
    module.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output))
    return seen


@program("BS-01", PIN, since="1.8", source="pytorch#61446")
def what_is_passed_through_is_the_same(check: Check) -> None:
    """A module that passes its input through returns the very object that it was given, with a hook and without."""
    passing, x = nn.Identity(), leaf(1.0)
    check.true("without a hook", passing(x) is x)
    seen = watched(passing)
    y = passing(x)
    check.true("with a hook", y is x)
    (5 * y).sum().backward()
    check.equal("gradient of the input", x.grad, [5])
    check.equal("what the hook saw", seen, [([5],)])


@program("BS-02", PROMISE, since="1.8", source="pytorch#41359")
def an_ignored_input_has_no_gradient(check: Check) -> None:
    """An input that the module ignores has no gradient, with a hook and without, and so has all that is before it."""
    for name, hooked in (("without a hook", False), ("with a hook", True)):
        ignoring, before = net(lambda module, a, b: 2 * a), weighted(3.0)
        if hooked:
            watched(ignoring)
        a, b = leaf(1.0), leaf(1.0)
        ignoring(a, before(b)).sum().backward()
        check.equal(f"gradient of the input that is used {name}", a.grad, [2])
        check.equal(f"gradient of what is ignored {name}", b.grad, None)
        check.equal(f"gradient of a weight before what is ignored {name}", before.weight.grad, None)


@program("BS-03", PROMISE, since="1.8", source="pytorch#59901")
def hooks_are_inert_under_no_grad(check: Check) -> None:
    """Under ``no_grad`` forward works as without the hook, which is not called; with grad it is called again."""
    tripled, x = times(3.0), leaf(1.0)
    seen = watched(tripled)
    with torch.no_grad():
        y = check.works("forward under no_grad", partial(tripled, x))
    if y is not None:
        check.equal("output under no_grad", (y, y.requires_grad), ([3], False))
    tripled(x).sum().backward()
    check.equal("calls", seen, [([1],)])


@program("BS-04", PROMISE, since="1.8", source="pytorch#112433")
def named_tuples_keep_their_type(check: Check) -> None:
    """An output that is a named tuple keeps its type under a hook, and its fields."""
    pairing, x = net(lambda module, x: Pair(2 * x, 3 * x)), leaf(1.0)
    seen = watched(pairing)
    output = pairing(x)
    (5 * output[0] + 7 * output[1]).sum().backward()
    check.equal("what the hook saw", seen, [([5], [7])])
    check.equal("type of the output", type(output).__name__, "Pair")
    check.equal("field", getattr(output, "second", None), [3])
    single = net(lambda module, x: Single(2 * x))
    watched(single)
    check.equal("type of an output of one field", type(single(x)).__name__, "Single")


@program("BS-05", PROMISE, since="1.8", source="pytorch#112433")
def results_of_torch_keep_their_type(check: Check) -> None:
    """An output that is a named result of torch, as of ``torch.max``, has its fields under a hook as without it."""
    maximum, x = net(lambda module, x: torch.max(x, dim=0)), leaf(1.0, 5.0)
    check.equal("field without a hook", maximum(x).values, 5.0)
    seen = watched(maximum)
    fields = check.works("field under a hook", lambda: maximum(x).values)
    if fields is not None:
        fields.backward()
        check.equal("what the hook saw", seen, [(1.0, None)])


@program("BS-06", PROMISE, since="1.8", source="pytorch#112433")
def tuples_keep_their_class(check: Check) -> None:
    """An output of a class derived from tuple keeps its class under a hook as without it."""
    coupling, x = net(lambda module, x: Couple([2 * x, 3 * x])), leaf(1.0)
    check.equal("output without a hook", coupling(x).first, [2])
    seen = watched(coupling)
    first = check.works("output under a hook", lambda: coupling(x).first)
    if first is not None:
        first.sum().backward()
        check.equal("what the hook saw", seen, [([1], None)])


@program("BS-07", PROMISE, since="1.8", source="pytorch#87540")
def nested_outputs_are_tracked(check: Check) -> None:
    """Where an output is nested, the hook fires for a loss on it, or a warning says that it will not."""
    nested = net(lambda module, x: (2 * x, (3 * x, 5 * x)))
    lstm = nn.LSTM(1, 1)
    for name, module, x in (("a net", nested, leaf(1.0)), ("nn.LSTM", lstm, torch.ones(1, 1, 1, requires_grad=True))):
        seen = watched(module)
        module(x)[0].sum().backward()
        check.calls(f"calls for the outer output of {name}", len(seen), 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loss = module(x)[1][0].sum()
        gradient = check.works(f"backward from the nested output of {name}", partial(torch.autograd.grad, loss, x))
        if gradient is not None:
            check.true(f"a call or a warning for the nested output of {name}", len(seen) > 1 or bool(caught), "call")


@program("BS-08", PIN, since="1.8", source="torch.nn.modules._functions.BackwardHookFunction.backward, 'return args'")
def gradients_pass_as_they_are(check: Check) -> None:
    """A full backward hook that only looks on hands gradients on as they are: in the memory that they are in, and with
    its layout."""
    seen: dict[str, Any] = {}

    def storing(name: str) -> Any:
        return lambda grad: seen.update({name: (grad.data_ptr(), grad.stride())})

    x = torch.ones(2, 3, requires_grad=True)
    before = 2 * x
    before.register_hook(storing("before"))
    inner = net(lambda module, x: x.view(2, 3))
    watched(inner)
    after = inner(before)
    after.register_hook(storing("after"))
    grad = torch.ones(3, 2).t()
    after.backward(grad)
    check.equal("the layout after the module", seen["after"][1], (1, 2))
    check.equal("the layout before the module", seen["before"][1], (1, 2))
    check.true("the memory before the module is that of after it", seen["before"][0] == seen["after"][0])
