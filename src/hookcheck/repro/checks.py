"""How does a script see that a clause deviates? One template of plain code for each clause, in ``templates/``.

A check must find a deviation exactly where the clause's own judge does; `tests/repro` holds the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.oracle.expected import Firing
from hookcheck.oracle.graph import Tensor
from hookcheck.repro.facts import Facts, Want, occasion


@dataclass(frozen=True)
class Check:
    """The template that judges a clause.

    Where a clause judges each call of the hook that is due, ``want`` gives what it wants of that call as a literal
    (None where it wants nothing), and ``side`` the argument of the hook that it looks at.
    """

    template: str
    want: Want | None = None
    side: str = ""


def _is_there(facts: Facts, firing: Firing) -> tuple[bool | None, ...]:
    return tuple(gradient is not None for gradient in firing.grad_input)


def _comes_out(facts: Facts, firing: Firing) -> tuple[bool | None, ...]:
    return tuple(None if i in firing.open else g is not None for i, g in enumerate(firing.grad_output))


def _no_tensors(facts: Facts, firing: Firing) -> tuple[tuple[int, ...], ...] | None:
    """The positions that hold no Tensor, of what the hook is told: arguments and outputs, or outputs alone."""
    places = tuple(_empty(firing.side(side)[1]) for side in facts.case.sides)
    return places if any(places) else None


def _empty(tensors: tuple[Tensor | None, ...]) -> tuple[int, ...]:
    return tuple(i for i, tensor in enumerate(tensors) if tensor is None)


CHECKS = {
    "BW-01": Check("arguments.j2"),
    "BW-02": Check("fires.j2", lambda facts, firing: "a call" if firing.certain and not firing.early else None),
    "BW-03": Check("fires.j2", lambda facts, firing: "a call" if firing.certain and firing.early else None),
    "BN-01": Check("fires.j2", lambda facts, firing: "a call" if firing.certain else None),
    "BN-02": Check("arguments.j2"),
    "BW-04": Check("never_fires.j2"),
    "BW-05": Check("fires_once.j2"),
    "BW-07": Check("lengths.j2", lambda facts, firing: len(firing.grad_input), "grad_input"),
    "BW-08": Check("no_tensors.j2", _no_tensors, "both"),
    "NG-01": Check("without_grad_mode.j2"),
    "OR-01": Check("order.j2", lambda facts, firing: occasion(firing)),
    "BW-12": Check("forbids.j2"),
    "P2-11": Check("first_outputs.j2", side="grad_output"),
    "P2-12": Check("last_nodes.j2", side="both"),
    "GI-01": Check("values.j2", Facts.grad_input, "grad_input"),
    "GI-02": Check("states.j2", _is_there, "grad_input"),
    "GO-01": Check("values.j2", Facts.grad_output, "grad_output"),
    "GO-02": Check("states.j2", _comes_out, "grad_output"),
    "GO-03": Check("lengths.j2", lambda facts, firing: len(firing.grad_output), "grad_output"),
    "GR-01": Check("without_graph.j2"),
    "OB-01": Check("raises.j2"),
    "OB-02": Check("outputs.j2"),
    "OB-03": Check("gradients.j2"),
    "OB-04": Check("none_or_zero.j2"),
    "OB-05": Check("warns.j2"),
    "OB-06": Check("random.j2"),
    "OB-07": Check("objects.j2"),
    "OB-08": Check("alive.j2"),
    "AG-01": Check("leaves.j2"),
    "AG-02": Check("results.j2"),
    "FN-01": Check("calls.j2"),
    "FN-02": Check("told_arguments.j2", side="args"),
    "FN-03": Check("told_arguments.j2", side="kwargs"),
    "FN-04": Check("told_arguments.j2", side="output"),
    "TN-01": Check("in_turn.j2"),
    "TN-02": Check("in_turn.j2"),
    "TN-03": Check("of_outputs.j2"),
    "TN-04": Check("of_outputs.j2"),
    "TN-05": Check("of_outputs.j2"),
    "TN-06": Check("of_leaves.j2"),
    "TN-07": Check("of_outputs.j2"),
    "TN-08": Check("packed.j2"),
    "CH-01": Check("chain.j2"),
}
"""The check of every clause, by its id."""
