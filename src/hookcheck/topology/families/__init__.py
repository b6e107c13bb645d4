"""Which families of topologies are there? A family is a Hypothesis strategy with a name and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from hypothesis.strategies import SearchStrategy

from hookcheck.errors import HookcheckError
from hookcheck.topology.model import Topology


@dataclass(frozen=True)
class Family:
    """A named set of topologies that share one feature.

    Where others explore so many new ones, it explores one in ``rarity``; one that is ``rare`` is run with fewer kinds.
    """

    name: str
    statement: str
    rarity: int = 1

    @property
    def rare(self) -> bool:
        """Whether its topologies take long to run."""
        return self.rarity > 1

    def topologies(self) -> SearchStrategy[Topology]:
        """The strategy that draws them: that of the module of this folder which has the family's name."""
        strategy: SearchStrategy[Topology] = import_module(f"{__name__}.{self.name.replace('-', '_')}").topologies()
        return strategy


RARE = {"compiled": 42}
"""The families that are rare, each with its rarity."""

FAMILIES = {
    name: Family(name, statement, RARE.get(name, 1))
    for name, statement in {
        "single-node": "A Conv2d, which autograd records as one Node.",
        "multi-node": "Linear on inputs of one to four dimensions, alone and in containers: several Nodes of autograd.",
        "no-grad-input": "Modules of which no input, or not every input, requires grad; frozen modules.",
        "intermediate-loss": "A loss on a tensor made inside a module, alone or together with a loss on the output.",
        "no-grad-evaluation": "Evaluation under no_grad or inference_mode, with enable_grad inside, in train and eval.",
        "single-layer": "Each layer of torch.nn by itself, in all its settings.",
        "residual": "What a block makes of its input is added to that input, or laid beside it.",
        "branch-and-merge": "One value goes two or three ways, which meet again; another way may lead nowhere.",
        "nested": "Modules in modules to depth four, in every kind of container.",
        "shared-module": "One module is called several times, under one name or two, or calls itself.",
        "shared-parameter": "Two modules hold one parameter, or one body uses a parameter twice.",
        "multi-input": "Modules with two to four tensors as inputs, of which some may require grad and others not.",
        "multi-output": "Modules that give several values: unused, repeated, detached, integer tensors, other things.",
        "non-tensor-argument": "Ints, floats, strings, None and bools before, between and after tensors.",
        "keyword-input": "Tensors passed by keyword, to parameters that may be positional and to those that may not.",
        "container-output": "Modules that give a list, a dict, a namedtuple, a dataclass, or tuples in tuples.",
        "container-input": "Tensors passed inside a tuple, a list or a dict.",
        "inplace": "Something is overwritten: inside a module, what it was given or has given, or a view of that.",
        "view": "Modules whose input or output shares memory with another tensor, and modules that make views alone.",
        "pass-through": "What a module gives back is its input itself.",
        "unused-input": "Forward leaves one of its inputs alone.",
        "frozen-parameters": "Some or all parameters do not require grad: single ones, biases, whole layers, the net.",
        "partial-grad-inputs": "Several inputs of which some require grad; also of modules inside, in either order.",
        "detached-inside": "A part of the way that gradients would take is cut, by detach or by no_grad.",
        "scalar-and-empty": "Tensors without dimensions or without elements, as inputs, between steps and as outputs.",
        "broadcast": "Operands of different shapes that broadcast, between modules; tensors that are expanded.",
        "mixed-dtype": "Tensors of several dtypes in one network, complex networks, and networks of 16 bits.",
        "train-eval": "Training and evaluation in one program, with running statistics and dropout.",
        "several-losses": "Two or three losses on outputs and leaked intermediates, in one backward or in one each.",
        "accumulate": "Two or three training steps on one net whose gradients add up in .grad, never zeroed.",
        "retain-graph-twice": "One graph that two or three backwards go through.",
        "grad-of-some": "torch.autograd.grad, or a backward with inputs, for some of the tensors that have gradients.",
        "double-backward": "A gradient that has a graph of its own, a loss on it, and a second backward.",
        "parameter-as-input": "A parameter is an argument of a module call: one's own, a child's, or the net's.",
        "context": "A network inside of what must change nothing: a checkpoint, autocast, functional_call and others.",
        "compiled": "torch.compile is at work on a network, on a part of it, on all but a part, or on its backward.",
        "tensor-class": "Tensors that are sparse, nested, quantised, strided otherwise or of another class.",
        "random-graph": "Anything that the grammar allows, modules in modules, values used more than once.",
    }.items()
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
