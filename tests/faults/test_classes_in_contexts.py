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
from hookcheck.topology.model import inside, tensor_words
from hookcheck.topology.tensors import SPARSE_GRADIENT

DEVICES = ("default_device", "meta_device")

LINES = [t for family in ("context", "compiled") for t in read(conformance_folder() / "corpus", family)]


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


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OWNERS, *LASTING])
def test_a_context_that_loses_the_hooks_of_a_class_is_seen(name: str) -> None:
    """On each line where a module with such a tensor is called in the context, and on no other."""
    seen = 0
    for word in OF_CLASS:
        for topology in (t for t in LINES if word in tensor_words(t) and name in inside(t)):
            if unavailable(topology, None) or (word == "MKLDNN" and name in TRACING):
                continue  # what is traced has no such layout, so that the fault itself is lost
            fault, before = Past(word), sound(topology, "forward")
            with broken_for(name, fault.takes, fault.has):
                deviates = deviations(topology, "forward") != before
            # What the fault puts in the place of a class of torch, torch itself asks for: other lines raise.
            assert deviates == fault.met or (deviates and name in DEVICES), (word, topology)
            seen += fault.met
    assert seen or name in GRAD_MODES
