"""Which families of topologies are there? A family is a Hypothesis strategy with a name and a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis.strategies import SearchStrategy

from hookcheck.errors import HookcheckError
from hookcheck.topology.families import (
    intermediate_loss,
    multi_node,
    no_grad_evaluation,
    no_grad_input,
    single_node,
)
from hookcheck.topology.model import Topology


@dataclass(frozen=True)
class Family:
    """A named set of topologies that share one feature; ``topologies`` gives the strategy that draws them."""

    name: str
    statement: str
    topologies: Callable[[], SearchStrategy[Topology]]


FAMILIES = {
    family.name: family
    for family in (
        Family("single-node", "A Conv2d, which autograd records as one Node.", single_node.topologies),
        Family(
            "multi-node",
            "Linear on inputs of one to four dimensions, alone and in containers: several Nodes of autograd.",
            multi_node.topologies,
        ),
        Family(
            "no-grad-input",
            "Modules of which no input, or not every input, requires grad; frozen modules.",
            no_grad_input.topologies,
        ),
        Family(
            "intermediate-loss",
            "A loss on a tensor made inside a module, alone or together with a loss on the output.",
            intermediate_loss.topologies,
        ),
        Family(
            "no-grad-evaluation",
            "Evaluation under no_grad or inference_mode, with enable_grad inside it, in train and eval mode.",
            no_grad_evaluation.topologies,
        ),
    )
}
"""The families by name, in the order in which reports list them."""


def family_named(name: str) -> Family:
    """The family of that name.

    Raises:
        HookcheckError: there is none.
    """
    if name not in FAMILIES:
        raise HookcheckError(f"unknown family {name!r}; choose from {', '.join(FAMILIES)}")
    return FAMILIES[name]
