"""Torches that are broken on purpose: hooks are registered or called otherwise, and clauses must see it."""

from __future__ import annotations

import contextlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from faults.autograd import on_nodes
from faults.engine import replaced
from faults.programs.saved_tensors_hooks import pairs
from torch.utils.hooks import RemovableHandle

from hookcheck.hooks.kinds import HookKind
from hookcheck.probe.registering import owner

Change = Callable[..., Any]
"""Calls ``hook`` with what torch gives it, changed; what it returns torch takes for what the hook has returned."""


def _twice(hook: Any, module: Any, inputs: Any, outputs: Any) -> None:
    hook(module, inputs, outputs)
    hook(module, inputs, outputs)


def _doubling(hook: Any, module: Any, inputs: Any, outputs: Any) -> Any:
    hook(module, inputs, outputs)
    return tuple(None if g is None else 2 * g for g in inputs)


def _twice_of_two(hook: Any, module: Any, args: Any) -> None:
    hook(module, args)
    hook(module, args)


def _negated(values: Any) -> Any:
    return tuple(-value if isinstance(value, torch.Tensor) else value for value in values)


def _requiring(gradients: Any) -> Any:
    return tuple(g if g is None else g.detach().requires_grad_() for g in gradients)


def _of_float64(values: Any) -> Any:
    return tuple(value.double() if isinstance(value, torch.Tensor) else value for value in values)


def _filled(gradients: Any, others: Any) -> Any:
    """``gradients`` with zeros for None."""
    like = next(g for g in (*gradients, *others) if g is not None)
    return tuple(0 * like if g is None else g for g in gradients)


CHANGES: dict[str, tuple[Change, str]] = {
    "calls twice": (_twice, "BW-05"),
    "gives lists": (lambda hook, m, i, o: hook(m, list(i), list(o)), "BW-01"),
    "wrong grad_input": (lambda hook, m, i, o: hook(m, tuple(g if g is None else g + 1 for g in i), o), "GI-01"),
    "no grad_input": (lambda hook, m, i, o: hook(m, (None,) * len(i), o), "GI-02"),
    "one grad_input more": (lambda hook, m, i, o: hook(m, (*i, None), o), "BW-07"),
    "zeros for None": (lambda hook, m, i, o: hook(m, _filled(i, o), _filled(o, i)), "BW-08"),
    "wrong grad_output": (lambda hook, m, i, o: hook(m, i, tuple(g if g is None else g + 1 for g in o)), "GO-01"),
    "no grad_output": (lambda hook, m, i, o: hook(m, i, (None,) * len(o)), "GO-02"),
    "one grad_output more": (lambda hook, m, i, o: hook(m, i, (*o, None)), "GO-03"),
    "gradients require grad": (lambda hook, m, i, o: hook(m, _requiring(i), _requiring(o)), "GR-01"),
    "grad_input of float64": (lambda hook, m, i, o: hook(m, _of_float64(i), o), "GI-01"),
    "doubles gradients": (_doubling, "OB-03 AG-01"),
}
"""How a broken torch calls a hook, and the clauses that this breaks."""


def _forward(act: Callable[..., Any]) -> Callable[..., Any]:
    """A registration that puts ``act(hook, module, output)`` on forward, before the hook itself is registered."""

    def register(original: Any, module: Any, hook: Any) -> Any:
        module.register_forward_hook(lambda m, inputs, output: act(hook, m, output))
        return original(module, hook)

    return register


def _raise(hook: Any, module: Any, output: Any) -> None:
    raise ValueError("broken on purpose")


def _frozen(original: Any, module: Any, hook: Any) -> Any:
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return original(module, hook)


def _drawing(original: Any, module: Any, hook: Any) -> Any:
    torch.rand(1)
    return original(module, hook)


_references: list[Any] = []


def _keeping(original: Any, module: Any, hook: Any) -> Any:
    _references.append(module)
    return original(module, hook)


def _touching(original: Any, module: Any, hook: Any) -> Any:
    """Writes to arguments that autograd does not need, before the hook is registered."""
    module.register_forward_hook(lambda m, args, output: _touched(args))
    return original(module, hook)


def _touched(args: Any) -> None:
    for arg in args:
        if isinstance(arg, torch.Tensor) and not arg.requires_grad:
            arg.mul_(1)


def _warning(original: Any, module: Any, hook: Any) -> Any:
    warnings.warn("broken on purpose", stacklevel=1)
    return original(module, hook)


def _warning_before_it_raises(original: Any, module: Any, hook: Any) -> Any:
    """Has forward raise as well: what is warned of counts all the same."""
    module.register_forward_hook(lambda m, inputs, output: _raise(hook, m, output))
    return _warning(original, module, hook)


REGISTRATIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "never calls": (lambda original, module, hook: None, "BW-02"),
    "calls in forward": (_forward(lambda hook, m, output: hook(m, (None,), (None,))), "BW-04 NG-01"),
    "raises": (_forward(_raise), "OB-01"),
    "negates outputs": (_forward(lambda hook, m, output: -output), "OB-02"),
    "freezes": (_frozen, "OB-04"),
    "warns": (_warning, "OB-05"),
    "warns and raises": (_warning_before_it_raises, "OB-05"),
    "draws": (_drawing, "OB-06"),
    "touches": (_touching, "OB-07"),
    "keeps": (_keeping, "OB-08"),
}
"""How a broken torch registers a hook, and the clauses that this breaks."""


@contextmanager
def broken(register: str, how: str) -> Iterator[None]:
    """A torch whose ``nn.Module.<register>`` is broken in one of the ways above."""
    from torch import nn

    original = getattr(nn.Module, register)

    def patched(module: Any, hook: Any) -> Any:
        if how in REGISTRATIONS:
            return REGISTRATIONS[how][0](original, module, hook)
        change = CHANGES[how][0]
        return original(module, lambda *arguments: change(hook, *arguments))

    setattr(nn.Module, register, patched)
    try:
        yield
    finally:
        setattr(nn.Module, register, original)


NEW_CHANGES: dict[str, tuple[str, Change | None, str]] = {
    "pre-hook is never called": ("full_backward_pre", None, "BN-01"),
    "pre-hook gets a list": ("full_backward_pre", lambda hook, m, o: hook(m, list(o)), "BN-02"),
    "pre-hook gets other values": ("full_backward_pre", lambda hook, m, o: hook(m, tuple(g + 1 for g in o)), "GO-01"),
    "forward pre-hook is called twice": ("forward_pre", _twice_of_two, "FN-01"),
    "forward hook is never called": ("forward", None, "FN-01"),
    "forward hook gets an argument more": ("forward", lambda hook, m, a, o: hook(m, (*a, None), o), "FN-02"),
    "forward pre-hook gets other values": ("forward_pre", lambda hook, m, a: hook(m, _negated(a)), "FN-02"),
    "no keyword arguments": ("forward_kwargs", lambda hook, m, a, k, o: hook(m, a, {"key": 1}, o), "FN-03"),
    "forward hook gets another output": ("forward", lambda hook, m, a, o: hook(m, a, (o,)), "FN-04"),
    "tensor hook gets other values": ("tensor", lambda hook, g: hook(2 * g), "TN-01"),
    "tensor hook is never called": ("tensor", None, "TN-01"),
    "tensor hook gets what requires grad": ("tensor", lambda hook, g: hook(g.detach().requires_grad_()), "GR-01"),
    "leaf hook is called twice": ("post_accumulate", lambda hook, leaf: (hook(leaf), hook(leaf))[0], "TN-02"),
    "forward hook gets float64": ("forward", lambda hook, m, a, o: hook(m, a, *_of_float64((o,))), "FN-04"),
    "tensor hook gets float64": ("tensor", lambda hook, g: hook(*_of_float64((g,))), "TN-01"),
    "output hook gets other values": ("output_tensor", lambda hook, g: hook(2 * g), "TN-03"),
    "output hook is never called": ("output_tensor", None, "TN-03"),
    "node hook gets other values": ("output_node", lambda hook, i, o: hook(i, _negated(o)), "TN-04"),
    "node pre-hook is called twice": ("output_node_pre", lambda hook, o: (hook(o), hook(o))[0], "TN-05"),
    "multi-grad hook gets other values": ("multi_grad", lambda hook, g: hook([*_negated(g)]), "TN-06"),
    "multi-grad hook is never called": ("multi_grad", None, "TN-06"),
    "no gradient is retained": ("output_retain_grad", None, "TN-07"),
    "another number is unpacked": ("saved_tensors", lambda hook, number: hook(-1), "TN-08"),
    "new output is dropped": ("acting_forward", lambda hook, *args: (hook(*args), None)[1], "AG-01 AG-02"),
    "new argument is dropped": ("acting_forward_pre", lambda hook, *args: (hook(*args), None)[1], "AG-02"),
    "new grad_input is dropped": ("acting_full_backward", lambda hook, *args: (hook(*args), None)[1], "AG-01 CH-01"),
    "new grad_output is dropped": ("acting_full_backward_pre", lambda hook, *args: (hook(*args), None)[1], "AG-01"),
}
"""How a broken torch calls hooks of other kinds (None: not at all), and the clauses that this breaks."""


@contextmanager
def changed(kind: HookKind, change: Change | None) -> Iterator[None]:
    """A torch that calls hooks of ``kind`` in another way."""

    def otherwise(original: Any) -> Any:
        def register(*arguments: Any, **settings: Any) -> Any:
            *owner, hook = arguments
            if change is None:
                return RemovableHandle(OrderedDict())
            return original(*owner, lambda *args: change(hook, *args), **settings)

        return register

    def called(hook: Any) -> Any:
        return lambda *args: change and change(hook, *args)

    with contextlib.ExitStack() as stack:
        if kind.scope == "node":
            stack.enter_context(on_nodes(called, called))
        elif kind.scope == "run":
            stack.enter_context(pairs(unpack=called))
        else:
            stack.enter_context(replaced(owner(kind), kind.register, otherwise))
        if kind.then:
            stack.enter_context(replaced(torch.nn.Module, kind.then, otherwise))
        yield
