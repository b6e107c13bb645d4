"""What comes of results that a backward hook should not return: which are refused, and what do the others mean?

The documentation names tuples of gradients and None. Tuples of a wrong length, of tensors of a wrong shape or dtype,
bare tensors, numbers and texts are refused; None in a tuple has a meaning that libraries rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times, weighted
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

FULL = "torch.nn.Module.register_full_backward_hook"
PRE = "torch.nn.Module.register_full_backward_pre_hook"
Change = Callable[[Any], Any]
"""What a hook returns, given its grad_input or, of a pre-hook, its grad_output."""


def under(kind: str, change: Change) -> tuple[Callable[[], Any], Any]:
    """Computes ``y = 3 * (2 * x)`` under a hook; gives backward, and x of the shape (3,)."""
    x, tripled = leaf(1.0, 2.0, 3.0), times(3.0)
    if kind == "full":
        tripled.register_full_backward_hook(lambda module, grad_input, grad_output: change(grad_input))
    else:
        tripled.register_full_backward_pre_hook(lambda module, grad_output: change(grad_output))
    return tripled(2 * x).sum().backward, x


def refused(check: Check, kind: str, error: type[Exception], says: str, changes: Mapping[str, Change]) -> None:
    """States that each result makes backward raise, and that the input then has no gradient."""
    for name, change in changes.items():
        backward, x = under(kind, change)
        check.raises(f"backward under {name}", error, backward, says)
        check.equal(f"gradient of the input under {name}", x.grad, None)


NUMBERS: dict[str, Change] = {
    "nothing": lambda g: (),
    "one too many": lambda g: (g[0], g[0]),
    "a None too many": lambda g: (g[0], None),
}
SHAPES: dict[str, Change] = {
    "fewer rows": lambda g: (g[0][:2],),
    "one element": lambda g: (g[0][:1],),
    "no dimension": lambda g: (g[0].sum(),),
    "one dimension more": lambda g: (g[0].unsqueeze(0),),
}


def cast(dtype: str, factor: int = 1) -> Change:
    """Returns a multiple of the gradient, as another dtype."""
    return lambda gradients: ((factor * gradients[0]).to(getattr(torch, dtype)),)


DTYPES = ("float64", "float16", "int32", "bool", "complex64")
ENTRIES: dict[str, Change] = {"a number in a tuple": lambda g: (7.0,), "a text in a tuple": lambda g: ("text",)}
LENGTHLESS: dict[str, Change] = {"a number": lambda g: 7, "False": lambda g: False}


@program("AC-21", PIN, since="1.8", source=FULL)
def grad_inputs_that_are_refused(check: Check) -> None:
    """A full backward hook's result of a wrong length, and one that has no length or no tensors, is refused."""
    refused(check, "full", RuntimeError, "invalid number of grad_input", NUMBERS)
    refused(check, "full", TypeError, "expected Variable", ENTRIES)
    refused(check, "full", TypeError, "has no len()", LENGTHLESS)
    log: list[str] = []
    module, x = nn.ReLU(), leaf(1.0)
    module.register_full_backward_hook(lambda module, grad_input, grad_output: ())
    module.register_full_backward_hook(noting(log, "called"))
    check.raises("a result of nothing ahead of another hook", RuntimeError, module(x).backward, "invalid number")
    check.calls("calls of a hook behind one whose result is refused", len(log), 0)


@program("AC-22", PIN, since="2.0", source=PRE)
def grad_outputs_that_are_refused(check: Check) -> None:
    """A full backward pre-hook's result of a wrong length, shape or dtype, or without tensors, is refused."""
    refused(check, "pre", RuntimeError, "invalid number of grad_output", NUMBERS)
    refused(check, "pre", TypeError, "expected Variable", ENTRIES)
    refused(check, "pre", TypeError, "has no len()", LENGTHLESS)
    refused(check, "pre", RuntimeError, "changed the size of value", SHAPES)
    dtypes = {name: cast(name) for name in DTYPES}
    refused(check, "pre", RuntimeError, "changed the type of value", dtypes)


@program("AC-23", PIN, since="1.8", source=f"{FULL}; shap, 'deep_pytorch.py'")
def none_in_grad_input(check: Check) -> None:
    """Where a full backward hook returns None for a tensor, no gradient goes on from there."""
    a, b, before = leaf(1.0), leaf(1.0), weighted(2.0)
    total = net(lambda module, a, b: 3 * a + 5 * b)
    total.register_full_backward_hook(lambda module, grad_input, grad_output: (None, 10 * grad_input[1]))
    total(before(a), b).sum().backward()
    check.equal("gradients of the two inputs", (a.grad, b.grad), (None, [50]))
    check.equal("gradient of a weight before it", before.weight.grad, None)

    x, tripled = leaf(1.0), times(3.0)
    tripled.register_full_backward_hook(lambda module, grad_input, grad_output: (None,))
    (2 * x + tripled(x)).sum().backward()
    check.equal("gradient beside another path", x.grad, [2])


@program("AC-24", PIN, since="2.0", source=PRE)
def none_in_grad_output(check: Check) -> None:
    """Where a full backward pre-hook returns None that counts as zeros, and a tensor in the place of None counts."""
    x, pair = leaf(1.0), net(lambda module, x: (module.first * x, module.second * x), first=2.0, second=3.0)
    handle = pair.register_full_backward_pre_hook(lambda module, grad_output: (None, 10 * grad_output[1]))
    sum(pair(x)).backward()
    check.equal("gradient of the input", x.grad, [30])
    check.equal("gradients of the weights", (pair.first.grad, pair.second.grad), (None, 10.0))
    handle.remove()

    x.grad, tripled = None, times(3.0)
    tripled.register_full_backward_pre_hook(lambda module, grad_output: (None,))
    tripled(x).sum().backward()
    check.equal("gradient where None is all there is", x.grad, [0])

    x.grad = None
    pair.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0], 10 * grad_output[0]))
    pair(x)[0].sum().backward()
    check.equal("gradient where the second output is not used", x.grad, [2 + 30])


@program("AC-25", PIN, since="1.8", source=FULL)
def results_where_no_input_requires_grad(check: Check) -> None:
    """Where no input requires grad, a full backward hook may return None or a tuple of None, and no gradient."""

    def backward(result: Any) -> Callable[[], Any]:
        hooked = weighted(3.0)
        hooked.register_full_backward_hook(lambda module, grad_input, grad_output: result)
        total: Any = hooked(torch.tensor([2.0])).sum()
        return lambda: total.backward()

    check.works("backward under None", backward(None))
    check.works("backward under a tuple of None", backward((None,)))
    one = torch.tensor([1.0])
    check.raises("backward under a tensor", RuntimeError, backward(one), "should always return None")
    check.raises("backward under a tuple with a tensor", RuntimeError, backward((one,)), "should always return None")


@program("BR-01", PIN, since="1.8", source="pytorch#56693")
def a_hook_that_returns_what_it_is_given(check: Check) -> None:
    """A full backward hook that returns its grad_input is harmless, whether an input requires grad or not."""
    wraps: dict[str, Any] = {"the tuple": tuple, "a list of it": list}
    for name, wrap in wraps.items():
        for needs, given in (("requires grad", leaf(2.0)), ("requires no grad", torch.tensor([2.0]))):
            hooked = weighted(3.0)
            hooked.register_full_backward_hook(lambda module, gi, go, wrap=wrap: wrap(gi))
            check.works(f"{name} where the input {needs}", hooked(given).sum().backward)


@program("BR-02", PROMISE, since="1.8", source="pytorch#46163")
def a_grad_input_of_another_dtype(check: Check) -> None:
    """A full backward hook's result of another dtype is refused or cast: a gradient keeps its tensor's dtype."""
    for name in DTYPES:
        backward, x = under("full", cast(name, 10))
        try:
            backward()
        except RuntimeError as error:
            check.true(f"{name} is refused", "changed the type of value" in str(error))
            check.equal(f"gradient under {name}", x.grad, None)
        else:
            check.equal(f"dtype of the gradient under {name}", x.grad.dtype, x.dtype)
            check.equal(f"gradient under {name}", x.grad, [2.0 if name == "bool" else 60.0] * 3)


@program("BR-03", PROMISE, since="1.8", source="torch.Tensor.register_hook; pytorch#46163")
def a_grad_input_of_another_shape(check: Check) -> None:
    """A full backward hook's result of another shape is refused as one of a tensor's hook is."""
    refused(check, "full", RuntimeError, "changed the size of value", SHAPES)


@program("BR-04", PROMISE, since="1.8", source=f"{FULL}; pytorch#95422")
def a_tensor_instead_of_a_tuple(check: Check) -> None:
    """A bare tensor that a full backward hook returns is refused, also where its rows are as many as the inputs."""
    refusals: dict[tuple[int, ...], tuple[type[Exception], str]] = {
        (): (TypeError, "0-d tensor"),
        (1,): (RuntimeError, "changed the size of value"),
        (3,): (RuntimeError, "invalid number of grad_input"),
        (1, 3): (RuntimeError, "changed the size of value"),
        (2, 3): (RuntimeError, "invalid number of grad_input"),
    }
    for shape, (error, says) in refusals.items():
        x, tripled = torch.ones(shape, requires_grad=True), times(3.0)
        tripled.register_full_backward_hook(lambda module, grad_input, grad_output: 10 * grad_input[0])
        check.raises(f"backward for the shape {shape}", error, tripled(x).sum().backward, says)
        check.equal(f"gradient for the shape {shape}", x.grad, None)


@program("BR-05", PROMISE, since="2.0", source="pytorch#86700")
def a_tensor_from_a_pre_hook(check: Check) -> None:
    """A bare tensor that a full backward pre-hook returns is refused, or used as the only grad_output."""
    for shape in ((), (1,), (3,), (1, 3), (2, 3)):
        x, tripled = torch.ones(shape, requires_grad=True), times(3.0)
        tripled.register_full_backward_pre_hook(lambda module, grad_output: 10 * grad_output[0])
        try:
            tripled(x).sum().backward()
        except (RuntimeError, TypeError):
            check.equal(f"gradient for the shape {shape}", x.grad, None)
        else:
            check.equal(f"gradient for the shape {shape}", x.grad, torch.full(shape, 30.0))
