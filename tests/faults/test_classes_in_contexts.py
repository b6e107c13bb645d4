"""Does the corpus show a context that loses the hooks of modules with one class of tensors, for each of both?"""

from __future__ import annotations

import pytest
import torch
from faults.contexts import LASTING, OWNERS, broken_for
from faults.samples import deviations, sound
from faults.tensors import OF_CLASS

from hookcheck.probe.run import unavailable
from hookcheck.suite import conformance_folder
from hookcheck.topology.contexts import GRAD_MODES
from hookcheck.topology.corpus import read
from hookcheck.topology.families.tensors_in_contexts import TRACING
from hookcheck.topology.model import Topology, inside, tensor_words
from hookcheck.topology.tensors import SPARSE_GRADIENT

DEVICES = ("default_device", "meta_device")

ALWAYS = ("forward_pre", "forward_pre_kwargs", "forward_kwargs", "global_forward_pre", "global_forward")
WHERE_DUE = (
    *("backward", "full_backward", "full_backward_pre", "global_backward", "global_full_backward"),
    *("global_full_backward_pre", "acting_forward_pre", "acting_forward"),
    *("acting_full_backward", "acting_full_backward_pre"),
)
"""The other hook kinds of modules, which a line is run with in turn: those that are called at each call, and those that
backward calls, or that act where there are numbers to scale. Those of tensors the fault leaves alone."""

LINES = [t for family in ("context", "compiled") for t in read(conformance_folder() / "corpus", family)]

WITHOUT_CLASSES = (*GRAD_MODES, "module_compile_aot_eager")
"""The contexts in which no line has such a tensor; a class meets a way to compile by one backend or the other."""

CASES = {
    word: [(t, name) for t in LINES if word in tensor_words(t) for name in (*OWNERS, *LASTING) if name in inside(t)]
    for word in OF_CLASS
}
"""The lines that have a tensor of each class, with each context that they are in."""


def turn(word: str, topology: Topology, name: str) -> str:
    """The other kind that a line is run with in a context: the cases of a class have one after the other."""
    kinds = (*ALWAYS, *WHERE_DUE)
    return kinds[CASES[word].index((topology, name)) % len(kinds)]


class Past:
    """A fault for modules that are given such a tensor or have one, and whether any was called."""

    def __init__(self, word: str) -> None:
        self.word, self.met = word, False

    def takes(self, tensor: torch.Tensor) -> bool:
        holds = OF_CLASS[self.word](tensor)
        self.met = self.met or holds
        return holds

    def has(self, module: torch.nn.Module) -> bool:
        if self.word == SPARSE_GRADIENT:
            self.met = self.met or getattr(module, "sparse", False)
            return bool(getattr(module, "sparse", False))
        weights = () if self.word == "parameter" else module._parameters.values()
        return any(self.takes(weight) for weight in weights if weight is not None)


def shows(topology: Topology, kind: str, name: str, word: str) -> tuple[bool, bool]:
    """Whether the fault shows with that kind, and whether it met any module."""
    fault, before = Past(word), sound(topology, kind)
    with broken_for(name, fault.takes, fault.has):
        return deviations(topology, kind) != before, fault.met


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [*OWNERS, *LASTING])
def test_a_context_that_loses_the_hooks_of_a_class_is_seen(name: str) -> None:
    """On each line where a module with such a tensor is called in the context, and on no other. Some
    hooks show it where they are due."""
    seen = 0
    for word in OF_CLASS:
        for topology in (t for t, within in CASES[word] if within == name):
            if unavailable(topology, None) or (word == "MKLDNN" and name in TRACING):
                continue  # what is traced has no such layout, so that the fault itself is lost
            for kind in ("forward", turn(word, topology, name)):
                deviates, met = shows(topology, kind, name, word)
                # What the fault puts in the place of a class of torch, torch itself asks for: other lines raise.
                assert met <= deviates or kind in WHERE_DUE, (word, kind, topology)
                assert deviates <= met or name in DEVICES, (word, kind, topology)
                seen += met
    assert seen or name in WITHOUT_CLASSES


@pytest.mark.parametrize("word", OF_CLASS)
def test_each_kind_is_run_with_each_class(word: str) -> None:
    assert {turn(word, *case) for case in CASES[word]} == {*ALWAYS, *WHERE_DUE}
