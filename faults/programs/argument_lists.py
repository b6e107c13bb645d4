"""Faults in what calls that take several tensors make of their lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.autograd import graph

from ..autograd import Patch
from ..engine import Fault, replaced
from ..registering import edited


def _at_once(original: Any) -> Any:
    """Has a hook on an empty list called as it is registered: no gradient is outstanding."""

    def register_multi_grad_hook(tensors: Any, hook: Any, *, mode: str = "all") -> Any:
        if not tensors:
            hook(())
        return original(tensors, hook, mode=mode)

    return register_multi_grad_hook


def _edited(*changes: tuple[str, str]) -> Patch:
    return edited(graph, "register_multi_grad_hook", *changes)


def _asked(name: str, change: Callable[[Any], Any]) -> Patch:
    """Has ``torch.autograd.grad`` or ``backward`` be given ``change(inputs)``."""

    def make(original: Any) -> Any:
        @wraps(original)  # for what asks which inputs it takes
        def call(tensors: Any, *args: Any, inputs: Any = None, **options: Any) -> Any:
            if args and name == "grad":
                inputs, *args = args  # type: ignore[assignment]
            given = inputs if inputs is None or isinstance(inputs, torch.Tensor) else change(inputs)
            return original(tensors, *args, inputs=given, **options)

        return call

    return replaced(torch.autograd, name, make)


def _alone(inputs: Any) -> Any:
    """The first of a list."""
    return [*inputs][:1]


def _first_of_names(inputs: Any) -> Any:
    """Of a dictionary the first entry, under each key."""
    return dict.fromkeys(inputs, next(iter(inputs.values()))) if isinstance(inputs, dict) else inputs


def _graded(inputs: Any) -> Any:
    """Those of a list that require grad."""
    return [t for t in inputs if not isinstance(t, torch.Tensor) or t.requires_grad]


def _unedged(inputs: Any) -> Any:
    """Those of a list that are no edges, or all."""
    return [entry for entry in inputs if not isinstance(entry, tuple)] or inputs


def _from(name: str, change: Callable[[Any], Any]) -> Patch:
    """Has ``torch.autograd.grad`` or ``backward`` differentiate ``change`` of the pairs of roots and gradients."""

    def make(original: Any) -> Any:
        def call(roots: Any, *args: Any, **options: Any) -> Any:
            if isinstance(roots, torch.Tensor) or not args:
                return original(roots, *args, **options)
            *rest, starting = args
            roots, starting = zip(*change([*zip(roots, starting)]))
            return original(roots, *rest, starting, **options)

        return call

    return replaced(torch.autograd, name, make)


def _distinct(pairs: Any) -> Any:
    """Those of the pairs whose root is not among those before."""
    return [pair for at, pair in enumerate(pairs) if all(pair[0] is not one for one, _ in pairs[:at])]


def _tensors(pairs: Any) -> Any:
    """Those of the pairs whose root is a tensor, or all."""
    return [pair for pair in pairs if not isinstance(pair[0], tuple)] or pairs


def _rooted(pairs: Any) -> Any:
    """Those of the pairs whose root requires grad, or all."""
    return [pair for pair in pairs if getattr(pair[0], "requires_grad", True)] or pairs


def _with_zeros(original: Any) -> Any:
    """Gives zeros where None is asked for."""

    def grad(outputs: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        gradients = original(outputs, inputs, *args, **options)
        return tuple(torch.zeros(()) if gradient is None else gradient for gradient in gradients)

    return grad


FAULTS = (
    Fault(
        "argument lists: a multi-grad hook waits for every tensor",
        lambda: _edited(("sum(", "len("), ("map(torch._C._will_engine_execute_node, grad_fns)", "grad_fns")),
        ("AL-01",),
    ),
    Fault(
        "argument lists: a multi-grad hook takes one more gradient of a tensor that comes twice",
        lambda: _edited(("if curr_count == nb_calls - 1:", "if curr_count == len(set(grad_fns) | {0}) - 2:")),
        ("AL-01",),
        since="2.3",
    ),
    Fault(
        "argument lists: mode any gives the last gradient",
        lambda: _edited(("for tensor in tensors", "for tensor in tensors[-1:]")),
        ("AL-02",),
        since="2.3",
    ),
    Fault(
        "argument lists: mode any refuses what requires no grad",
        lambda: _edited(("if tensor.requires_grad", "if True")),
        ("AL-02",),
        since="2.3",
    ),
    Fault(
        "argument lists: what requires no grad is left out in mode all",
        lambda: _edited(
            (
                'if mode == "all":',
                'tensors = [t for t in tensors if t is not None and t.requires_grad]\n    if mode == "all":',
            )
        ),
        ("AL-03",),
        since="2.3",
    ),
    Fault(
        "argument lists: an edge is left out in mode all",
        lambda: _edited(
            ('if mode == "all":', 'tensors = [t for t in tensors if not isinstance(t, tuple)]\n    if mode == "all":')
        ),
        ("AL-06",),
        since="2.13",
    ),
    Fault(
        "argument lists: an edge is left out in mode any",
        lambda: _edited(("if tensor.requires_grad", 'if getattr(tensor, "requires_grad", False)')),
        ("AL-06",),
        since="2.13",
    ),
    Fault(
        "argument lists: None is left out in mode any",
        lambda: _edited(("if tensor.requires_grad", "if tensor is not None and tensor.requires_grad")),
        ("AL-03",),
        since="2.3",
    ),
    Fault("argument lists: grad asks for the first alone", lambda: _asked("grad", _alone), ("AL-04",), since="2.0"),
    Fault("argument lists: grad skips what requires no grad", lambda: _asked("grad", _graded), ("AL-04",), since="2.0"),
    Fault(
        "argument lists: grad gives zeros for None", lambda: replaced(torch.autograd, "grad", _with_zeros), ("AL-04",)
    ),
    *(
        Fault(
            f"argument lists: of a dictionary {name} takes the first entry alone",
            lambda name=name: _asked(name, _first_of_names),
            (clause,),
            since="2.13",
        )
        for name, clause in (("grad", "AL-04"), ("backward", "AL-05"))
    ),
    Fault("argument lists: backward is for the first alone", lambda: _asked("backward", _alone), ("AL-05",)),
    Fault("argument lists: backward skips what requires no grad", lambda: _asked("backward", _graded), ("AL-05",)),
    Fault("argument lists: backward skips edges", lambda: _asked("backward", _unedged), ("AL-07",), since="2.3"),
    Fault(
        "argument lists: backward takes a root that is repeated once", lambda: _from("backward", _distinct), ("AL-08",)
    ),
    Fault("argument lists: grad takes a root that is repeated once", lambda: _from("grad", _distinct), ("AL-08",)),
    Fault("argument lists: backward leaves out roots without grad", lambda: _from("backward", _rooted), ("AL-08",)),
    Fault("argument lists: grad leaves out roots without grad", lambda: _from("grad", _rooted), ("AL-08",)),
    Fault(
        "argument lists: a root that is an edge is left out", lambda: _from("grad", _tensors), ("AL-09",), since="2.7"
    ),
    Fault(
        "argument lists: backward for nothing is one for all",
        lambda: _asked("backward", lambda inputs: inputs or None),
        ("AL-10",),
        since="2.0",
    ),
    Fault(
        "argument lists: a hook on an empty list runs at once",
        lambda: replaced(graph, "register_multi_grad_hook", _at_once),
        ("AL-10",),
        since="2.0",
    ),
)
