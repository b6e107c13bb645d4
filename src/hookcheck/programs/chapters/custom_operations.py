"""Do hooks meet an operation of one's own as they meet one of torch?

Such an operation is a function under ``torch.library.custom_op``, which is told its formula by ``register_autograd``.
Autograd makes a Node of it, with hooks like those of any other.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net
from hookcheck.programs.program import program

CUSTOM = "torch.library.custom_op, register_autograd"


def _operation(schema: str, act: Any, mutates: tuple[str, ...] = ()) -> Any:
    """An operation of one's own, in a namespace that nothing else has."""
    library: Any = torch.library
    return library.custom_op(f"operation_{uuid4().hex}::act", act, mutates_args=mutates, schema=schema)


def _product(notes: list[Any]) -> Any:
    """The product of two tensors and a factor, with a formula that notes what it is told."""

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        notes.append([len(inputs), inputs[2]])
        ctx.save_for_backward(*inputs[:2])
        ctx.factor = inputs[2]

    def backward(ctx: Any, gradient: Any) -> Any:
        notes.append([*ctx.needs_input_grad])
        x, w = ctx.saved_tensors
        return ctx.factor * w * gradient, ctx.factor * x * gradient, None

    schema = "(Tensor x, Tensor w, float factor=4.0) -> Tensor"
    product = _operation(schema, lambda x, w, factor=4.0: factor * x * w)
    product.register_autograd(backward, setup_context=setup_context)
    return product


def _write(x: Any) -> None:
    x.data.mul_(3)  # autograd does not see it


@program("AF-07", PROMISE, since="2.6", source=CUSTOM)
def hooks_around_an_operation_of_ones_own(check: Check) -> None:
    """Hooks on the inputs, the output, the Node and the module of an operation of one's own are called once with its
    gradients, whichever of its inputs needs one, and its formula is told all inputs, and which of the tensors need one;
    where none does, the formula is not asked."""
    notes = list[Any]()
    product = _product(notes)
    for needy, factor in (("x", 4.0), ("x", 6.0), ("w", 6.0), ("none", 6.0)):
        notes.clear()
        log, values, called = list[Any](), {"x": torch.tensor([3.0]), "w": torch.tensor([5.0])}, list[Any]()
        module = net(lambda module, x, w, factor=factor: product(x, w, factor))
        module.register_forward_hook(lambda module, args, output, log=log: log.append(("forward", output.item())))
        if needy != "none":
            module.register_full_backward_hook(lambda module, gi, go, called=called: called.append([go, gi]))
            values[needy].requires_grad_()
            values[needy].register_hook(lambda gradient, log=log: log.append(("input", gradient.item())))
        y = module(values["x"], values["w"])
        what = f"{needy}, a factor of {factor}"
        check.equal(f"{what}: output", y, [15 * factor])
        if needy == "none":
            check.equal(f"{what}: what is told", notes, [])
            check.equal(f"{what}: hooks", log, [("forward", 90.0)])
            continue
        y.register_hook(lambda gradient, log=log: log.append(("output", gradient.item())))
        node = y.grad_fn
        while "operation" not in node.name():
            node = node.next_functions[0][0]
        node.register_prehook(lambda gradients, log=log: log.append(("before the Node", gradients[0].item())))
        (10 * y).backward()
        inputs, needs = notes
        check.equal(f"{what}: what is told", [inputs, needs[:2]], [[3, factor], [needy == "x", needy == "w"]])
        due = 10 * factor * {"x": 5, "w": 3}[needy]  # 10 times the factor times the other one
        noted = [("before the Node", 10.0), ("forward", 15 * factor), ("input", due), ("output", 10.0)]
        check.equal(f"{what}: hooks", sorted(log), noted)
        ((given, of_inputs),) = called
        check.equal(f"{what}: gradients in the module's hook", [given[0], of_inputs[needy == "w"]], [[10], [due]])


@program("AF-08", PROMISE, since="2.6", source=CUSTOM)
def other_operations_of_ones_own(check: Check) -> None:
    """Each tensor of a list that an operation gives has its own gradient, which hooks may change; where an operation
    has no formula, hooks before it are called and an error says so; and what it writes to is known to be changed."""
    log, x = list[Any](), leaf(3.0)
    parts = _operation("(Tensor x) -> Tensor[]", lambda x: [2 * x, 3 * x])
    parts.register_autograd(lambda ctx, gradients: sum(factor * g for factor, g in zip((2, 3), gradients)))
    first, second = parts(1 * x)
    for name, part in (("first", first), ("second", second)):
        part.register_hook(lambda gradient, name=name: (log.append((name, gradient.item())), 10 * gradient)[1])
    (5 * first + 7 * second).backward()
    check.equal("list: hooks", sorted(log), [("first", 5.0), ("second", 7.0)])
    check.equal("list: gradient", x.grad, [2 * 50 + 3 * 70])
    log.clear()
    z = 1 * leaf(3.0)
    y = _operation("(Tensor x) -> Tensor", lambda x: 2 * x)(z)
    y.register_hook(lambda gradient: log.append("output"))
    z.register_hook(lambda gradient: log.append("input"))
    check.raises("no formula: backward", RuntimeError, y.backward, "no autograd formula was registered")
    check.order("no formula: hooks", log, ["output"])
    z = 1 * leaf(3.0)
    squared = z * z
    with torch.no_grad():
        _operation("(Tensor(a!) x) -> ()", _write, ("x",))(z)
    check.equal("what is written", z, [9])
    check.raises("a backward that needs it", RuntimeError, squared.backward, "modified by an inplace operation")


FACTORS: dict[str, tuple[tuple[float, ...], dict[str, float], float]] = {
    "by position": ((6.0,), {}, 6.0),
    "by keyword": ((), {"factor": 6.0}, 6.0),
    "not at all": ((), {}, 4.0),
    "as its default": ((4.0,), {}, 4.0),
}
"""How a factor is given to the product, and what it is then; its default is 4."""


@program("AF-12", PROMISE, since="2.6", source=f"{CUSTOM}, 'the same ctx object'; Function.backward, needs_input_grad")
def a_formula_is_told_of_each_input(check: Check) -> None:
    """Which inputs need a gradient is told to the formula of an operation of one's own with an entry for each of them,
    however an input that has a default is given."""
    notes = list[Any]()
    product = _product(notes)
    for way, (args, kwargs, factor) in FACTORS.items():
        notes.clear()
        x, w = leaf(3.0), torch.tensor([5.0])
        product(x, w, *args, **kwargs).backward()
        inputs, needs = notes
        check.equal(f"{way}: inputs", inputs, [3, factor])
        check.equal(f"{way}: which need a gradient", needs, [True, False, False])
        check.equal(f"{way}: gradient", x.grad, [5 * factor])
