"""How does a script see that a clause deviates? One template of plain code for each clause, in ``templates/``.

A check must find a deviation exactly where the clause's own judge does; `tests/repro` holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hookcheck.oracle.expected import Firing
from hookcheck.oracle.graph import Tensor
from hookcheck.repro.facts import numbers, occasion


@dataclass(frozen=True)
class Check:
    """The template that judges a clause.

    Where a clause judges each call of the hook that is due, ``want`` gives what it wants of that call as a literal
    (None where it wants nothing), and ``side`` the argument of the hook that it looks at.
    """

    template: str
    want: Callable[[Firing], Any] | None = None
    side: str = ""


def _input(firing: Firing) -> tuple[Any, ...]:
    return numbers(firing.grad_input)


def _output(firing: Firing) -> tuple[Any, ...]:
    return numbers(firing.grad_output)


def _is_there(gradients: tuple[Any, ...]) -> tuple[bool, ...]:
    return tuple(gradient is not None for gradient in gradients)


def _no_tensors(firing: Firing) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The positions of arguments and of outputs that hold no Tensor."""
    places = _empty(firing.call.args), _empty(firing.call.outputs)
    return places if any(places) else None


def _empty(tensors: tuple[Tensor | None, ...]) -> tuple[int, ...]:
    return tuple(i for i, tensor in enumerate(tensors) if tensor is None)


CHECKS = {
    "BW-01": Check("arguments.j2"),
    "BW-02": Check("fires.j2", lambda firing: None if firing.early else "a call"),
    "BW-03": Check("fires.j2", lambda firing: "a call" if firing.early else None),
    "BW-04": Check("never_fires.j2"),
    "BW-05": Check("fires_once.j2"),
    "BW-07": Check("lengths.j2", lambda firing: len(firing.grad_input), "grad_input"),
    "BW-08": Check("no_tensors.j2", _no_tensors, "both"),
    "NG-01": Check("without_grad_mode.j2"),
    "OR-01": Check("order.j2", occasion),
    "P2-11": Check("first_outputs.j2", side="grad_output"),
    "GI-01": Check("values.j2", _input, "grad_input"),
    "GI-02": Check("states.j2", lambda firing: _is_there(firing.grad_input), "grad_input"),
    "GO-01": Check("values.j2", _output, "grad_output"),
    "GO-02": Check("states.j2", lambda firing: _is_there(firing.grad_output), "grad_output"),
    "GO-03": Check("lengths.j2", lambda firing: len(firing.grad_output), "grad_output"),
    "OB-01": Check("raises.j2"),
    "OB-02": Check("outputs.j2"),
    "OB-03": Check("gradients.j2"),
    "OB-04": Check("none_or_zero.j2"),
    "OB-05": Check("warns.j2"),
    "OB-06": Check("random.j2"),
    "AG-01": Check("leaves.j2"),
}
"""The check of every clause, by its id."""
