"""Faults in what belongs to which call, which argument and which output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from typing import Any

import torch

from .engine import (
    ALL,
    LEGACY,
    Fault,
    Gradients,
    added,
    at_the_end_of_backward,
    boundary,
    called,
    calling,
    engine,
    fetched,
    hooks_of,
    knowing,
    receiving,
    remembered,
    tensors,
)

ADD = torch.Tensor.add_


def without_gaps() -> AbstractContextManager[None]:
    """The gradients of Tensors move up where a position between them holds none."""

    def make(original: Any) -> Any:
        def pack(self: Any, indices: Any, values: Any, size: int) -> Gradients:
            return (*values, *(None,) * (size - len(values)))

        return pack

    return engine("_pack_with_none", make)


def first_alone(gradients: Gradients) -> Gradients:
    return (*gradients[:1], *(None,) * (len(gradients) - 1))


def summed(gradients: Gradients) -> Gradients:
    """Every entry is the sum of all of one shape."""
    known = [g for g in gradients if g is not None]
    return tuple(g if g is None else sum(o for o in known if o.shape == g.shape) for g in gradients)


def none_for_zero(gradients: Gradients) -> Gradients:
    return tuple(g if g is not None and g.any() else None for g in gradients)


def zero_for_unused() -> AbstractContextManager[None]:
    """An output that the loss does not use has a gradient of zeros, of the shape that the first one has."""

    def make(original: Any) -> Any:
        def pack(self: Any, indices: Any, values: Any, size: int) -> Gradients:
            known = [value for value in values if value is not None]
            filled = [torch.zeros_like(known[0]) if value is None and known else value for value in values]
            return original(self, indices, filled, size)

        return pack

    return engine("_pack_with_none", make)


def silent_unless_all() -> AbstractContextManager[None]:
    """A hook waits for the gradients of all outputs."""

    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
        return None if any(g is None for g in go) else hook(module, gi, go)

    return calling(change)


def once_an_output() -> AbstractContextManager[None]:
    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> None:
        for i, gradient in enumerate(go):
            if gradient is not None:
                hook(module, gi, tuple(g if i == j else None for j, g in enumerate(go)))

    return calling(change)


def of_the_last_output() -> AbstractContextManager[None]:
    """The legacy hook sits on the grad_fn of the last output instead of the first."""

    def call(forward: Any, module: Any, args: Any) -> Any:
        result = forward(*args)
        outputs = tensors(result)
        for hook in hooks_of(module) if outputs and outputs[-1].grad_fn is not None else []:
            outputs[-1].grad_fn.register_hook(partial(hook, module))
        return result

    @contextmanager
    def patch() -> Iterator[None]:
        with called(call), fetched(lambda module, hooks: []):
            yield

    return patch()


def with_keywords(args: Any, kwargs: Any, hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
    """Tensors that were given by keyword follow in grad_input."""
    return hook(module, (*gi, *map(torch.zeros_like, kwargs.values())), go)


def taken_apart(args: Any, kwargs: Any, hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
    """A container among the arguments has an entry for each of its items."""
    spread = [[g] * (len(arg) if isinstance(arg, (tuple, list)) else 1) for arg, g in zip(args, gi)]
    return hook(module, tuple(g for entries in spread for g in entries) + (None,) * bool(spread[2:]), go)


def total_for_each(args: Any, kwargs: Any, hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
    """A tensor that is given twice has its whole gradient in both positions."""
    same = [[g for other, g in zip(args, gi) if other is arg and g is not None] for arg in args]
    return hook(module, tuple(g if g is None else sum(gradients) for g, gradients in zip(gi, same)), go)


def past_the_module(args: Any, kwargs: Any, hook: Any, module: Any, gi: Gradients, go: Gradients) -> None:
    """grad_input is what the inputs end up with, along whatever path."""

    def late() -> None:
        ended = [arg.grad if isinstance(arg, torch.Tensor) and arg.is_leaf else None for arg in args]
        hook(module, tuple(g if g is None or whole is None else whole for g, whole in zip(gi, ended)), go)

    at_the_end_of_backward(late)


def of_the_other_call() -> AbstractContextManager[None]:
    """A module that is called twice gets the grad_input of the hook call before."""
    before: dict[int, Gradients] = {}

    def change(hook: Any, module: Any, gi: Gradients, go: Gradients) -> Any:
        given = before.get(id(module), gi)
        before[id(module)] = gi
        return hook(module, given, go)

    return calling(change)


def for_the_last_forward() -> AbstractContextManager[None]:
    """What a forward sets up takes the place of what the one before it has set up."""
    numbers = count()

    def change(module: Any, hooks: list[Any]) -> list[Any]:
        latest = vars(module)["latest"] = next(numbers)

        def told_if_latest(hook: Any, *arguments: Any) -> Any:
            return hook(*arguments) if vars(module)["latest"] == latest else None

        return [partial(told_if_latest, hook) for hook in hooks]

    return fetched(change)


def held_by_the_module() -> AbstractContextManager[None]:
    """What is kept between output and input of a call is kept by the module, for all its calls."""
    return remembered(
        lambda self: vars(self.module).get("waiting"), lambda self, value: vars(self.module).update(waiting=value)
    )


def in_the_order_of_outputs() -> AbstractContextManager[None]:
    """Of the calls of a module that are open, the hook gets the grad_output that came first."""

    def waiting(self: Any) -> list[Any]:
        return vars(self.module).setdefault("waiting", [])

    def put(self: Any, value: Any) -> None:
        if value is not None:
            waiting(self).append(value)
        elif waiting(self):
            waiting(self).pop(0)

    return remembered(lambda self: next(iter(waiting(self)), None), put)


def kept_from_the_first() -> AbstractContextManager[None]:
    """The gradients of a call's outputs, once they are known, are not asked for again."""

    def put(self: Any, value: Any) -> None:
        if value is not None:
            vars(self).setdefault("first", value)
        vars(self)["now"] = value

    def get(self: Any) -> Any:
        return None if vars(self)["now"] is None else vars(self)["first"]

    return remembered(get, put)


def kept_for_good() -> AbstractContextManager[None]:
    """The gradients of a call's outputs are still there when its input is reached another time."""

    def put(self: Any, value: Any) -> None:
        if value is not None:
            vars(self)["waiting"] = value

    return remembered(lambda self: vars(self).get("waiting"), put)


def added_up() -> AbstractContextManager[None]:
    """Gradients accumulate over the backwards, as those of leaves do."""

    def change(module: Any, hooks: list[Any]) -> list[Any]:
        def total(hook: Any, sums: list[Any], module: Any, gi: Gradients, go: Gradients) -> Any:
            sums.append([g for g in go if g is not None])
            added = iter([sum(parts) for parts in zip(*sums)])
            return hook(module, gi, tuple(g if g is None else next(added) for g in go))

        return [partial(total, hook, []) for hook in hooks]

    return fetched(change)


def while_recording(wanted: bool) -> AbstractContextManager[None]:
    """Hooks are called only in backwards that record themselves, or only in others."""
    return calling(lambda hook, *arguments: hook(*arguments) if torch.is_grad_enabled() is wanted else None)


def not_differentiable() -> AbstractContextManager[None]:
    """The boundary's own backward cannot be differentiated."""
    return boundary("backward", torch.autograd.function.once_differentiable)


def cut_off() -> AbstractContextManager[None]:
    """The boundary's own backward leaves no graph behind."""
    return boundary(
        "backward", lambda original: lambda ctx, *gradients: tuple(g if g is None else g.detach() for g in gradients)
    )


def copied() -> AbstractContextManager[None]:
    """Behind the boundary are copies, which may be written to."""

    def make(original: Any) -> Any:
        def forward(ctx: Any, *arguments: Any) -> Any:
            copies = tuple(argument.clone() for argument in arguments)
            ctx.mark_non_differentiable(*[c for c, a in zip(copies, arguments) if not a.requires_grad])
            return copies

        return forward

    return boundary("forward", make)


def on_the_outputs_alone() -> AbstractContextManager[None]:
    """There is no boundary around outputs, so that they may be written to; hooks are told of the input's side."""

    def make(original: Any) -> Any:
        def setup(self: Any, result: Any) -> Any:
            self.grad_outputs = (None,) * (len(result) if isinstance(result, tuple) else 1)
            return result

        return setup

    return engine("setup_output_hook", make)


def another_exception() -> AbstractContextManager[None]:
    """A write in place that autograd refuses is refused as a wrong value is."""

    def add(self: Any, *arguments: Any) -> Any:
        try:
            return ADD(self, *arguments)
        except RuntimeError as error:
            raise ValueError(str(error)) from None

    return added(torch.Tensor, "add_", add)


def refusing_every_write() -> AbstractContextManager[None]:
    """Nothing is written to in place while a module with hooks runs."""
    depth: list[Any] = []

    def call(forward: Any, module: Any, args: Any) -> Any:
        depth.append(module)
        try:
            return forward(*args)
        finally:
            depth.pop()

    def add(self: Any, *arguments: Any) -> Any:
        if depth:
            raise RuntimeError("modules with hooks must not write in place")
        return ADD(self, *arguments)

    @contextmanager
    def patch() -> Iterator[None]:
        with called(call), added(torch.Tensor, "add_", add):
            yield

    return patch()


def plain_tuples() -> AbstractContextManager[None]:
    def call(forward: Any, module: Any, args: Any) -> Any:
        result = forward(*args)
        return tuple(result) if isinstance(result, tuple) else result

    return called(call)


def tuples_for_lists() -> AbstractContextManager[None]:
    def call(forward: Any, module: Any, args: Any) -> Any:
        result = forward(*args)
        return tuple(result) if isinstance(result, list) else result

    return called(call)


def raising(original: Any) -> Any:
    def forward(ctx: Any, *tensors: Any) -> Any:
        raise RuntimeError("of another fault")

    return forward


CALLS = (
    Fault("gradients move up where a position holds no Tensor", without_gaps, ("BW-08", "GI-02", "GO-02")),
    Fault("of several outputs only the first has a gradient", lambda: receiving(grad_output=first_alone), ("GO-02",)),
    Fault("of several outputs only the first has an entry", lambda: receiving(grad_output=lambda g: g[:1]), ("GO-03",)),
    Fault(
        "the entries of grad_output come in reverse",
        lambda: receiving(grad_output=lambda g: g[::-1]),
        ("GO-01", "GO-02", "BW-08"),
    ),
    Fault("every output has the sum of the gradients", lambda: receiving(grad_output=summed), ("GO-01",)),
    Fault("every input has the sum of the gradients", lambda: receiving(summed), ("GI-01",)),
    Fault("a gradient of zeros counts as none", lambda: receiving(none_for_zero), ("GI-02",)),
    Fault("an output that the loss does not use has a gradient of zeros", zero_for_unused, ("GO-02",)),
    Fault("a hook waits for the gradients of all outputs", silent_unless_all, ("BW-02",)),
    Fault("a hook is called once an output", once_an_output, ("BW-05", "GO-02")),
    Fault("the legacy hook sits on the last output", of_the_last_output, ("P2-11",), LEGACY),
    Fault("tensors given by keyword have entries in grad_input", lambda: knowing(with_keywords), ("BW-07",)),
    Fault("containers among the arguments are taken apart", lambda: knowing(taken_apart), ("BW-07",)),
    Fault("a tensor given twice has the total in both positions", lambda: knowing(total_for_each), ("GI-01",)),
    Fault("grad_input counts the paths past the module", lambda: knowing(past_the_module), ("GI-01",)),
    Fault("a module called twice gets the other call's grad_input", of_the_other_call, ("GI-01",)),
    Fault("hooks are called for the last forward only", for_the_last_forward, ("BW-02", "BW-05"), ALL),
    Fault("the calls of a module share what is kept", held_by_the_module, ("BW-02", "BW-05")),
    Fault("the calls of a module are served in turn", in_the_order_of_outputs, ("GO-01",)),
    Fault("grad_output is that of the first backward", kept_from_the_first, ("GO-01",)),
    Fault("a hook fires again in the backward of a backward, with old gradients", kept_for_good, ("GO-02",)),
    Fault("grad_output adds up over the backwards", added_up, ("GO-01", "P2-11"), ALL),
    Fault("hooks are skipped in a backward that records itself", lambda: while_recording(False), ("BW-02",), ALL),
    Fault("hooks are skipped in a backward that does not", lambda: while_recording(True), ("BW-02", "P2-11"), ALL),
    Fault("a boundary can be differentiated once", not_differentiable, ("OB-01",)),
    Fault("a boundary leaves no graph in a backward that records itself", cut_off, ("AG-01", "OB-03")),
    Fault("behind a boundary are copies", copied, ("BW-12",)),
    Fault("a boundary raises an error of another fault", lambda: boundary("forward", raising), ("BW-12", "OB-01")),
    Fault("there is no boundary around outputs", on_the_outputs_alone, ("BW-12", "GO-02")),
    Fault("a write in place raises another exception", another_exception, ("BW-12",)),
    Fault("every write in place is refused", refusing_every_write, ("OB-01",), ALL),
    Fault("a namedtuple becomes a plain tuple", plain_tuples, ("OB-01", "OB-02"), ALL),
    Fault("a list becomes a tuple", tuples_for_lists, ("OB-02",), ALL),
)
