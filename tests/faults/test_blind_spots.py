"""What does the contract not see yet? A fault that comes to be caught fails here, and moves to the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.examine import examine
from hookcheck.contract.ledger import applying, load
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read

from .engine import FULL, Fault, each, on_outputs, receiving, release, replaced
from .samples import BY_HAND, deviations, slices


def requiring_grad(gradient: Any) -> Any:
    return gradient.detach().requires_grad_()


def laid_out_anew(gradient: Any) -> Any:
    """The same numbers in another order in memory."""
    return gradient.transpose(0, -1).contiguous().transpose(0, -1)


def copied(output: Any) -> Any:
    return output.clone() if torch.is_grad_enabled() else output


BLIND_SPOTS = (
    Fault("the output is a copy: identity, views and memory are not observed", lambda: on_outputs(copied), ()),
    Fault("gradients require grad: only their numbers are copied", lambda: receiving(each(requiring_grad)), ()),
    Fault("gradients have other strides: only their numbers are copied", lambda: receiving(each(laid_out_anew)), ()),
)


@pytest.mark.parametrize("fault", BLIND_SPOTS, ids=lambda fault: fault.what)
def test_a_fault_is_not_caught_yet(fault: Fault) -> None:
    with fault.patch():
        found = {
            (kind, deviation)
            for kind in fault.kinds
            for family, topology in slices()[len(BY_HAND) :]
            for deviation in deviations(family, topology, kind)
        }
    assert found == set()


@contextmanager
def mended() -> Iterator[None]:
    """Where only the gradient of an intermediate reaches a module's input, the hook is called: grad_output is None."""

    def make(original: Any) -> Any:
        def set_hook(self: Any, grad_fn: Any) -> None:
            def unreached(grad_input: Any, _: Any) -> None:
                if self.grad_outputs is None:
                    given = self._pack_with_none(self.input_tensors_index, grad_input, self.n_inputs)
                    for hook in self.user_hooks:
                        hook(self.module, given, (None,) * self.n_outputs)

            grad_fn.register_hook(unreached)
            original(self, grad_fn)

        return set_hook

    with replaced(torch.utils.hooks.BackwardHook, "_set_user_hook", make):
        yield


@pytest.mark.skipif(release(torch.__version__) < (1, 13), reason="before 1.13 this was an error")
@pytest.mark.parametrize("kind", FULL)
def test_a_deviation_that_is_mended_makes_its_entry_stale(kind: str) -> None:
    ledger = applying(load(), torch.__version__, "cpu")
    family, cell = "intermediate-loss", ("BW-02", "intermediate-loss", kind)
    corpus = read(conformance_folder() / "corpus", family)
    clauses = (CLAUSES["BW-02"],)
    before = [result for t in corpus for result in examine(t, family, (kind,), clauses, ledger)]
    with mended():
        after = [result for t in corpus for result in examine(t, family, (kind,), clauses, ledger)]
    assert ledger.stale(before, *cell) == []
    assert [entry.id for entry in ledger.stale(after, *cell)] == ["full-intermediate-loss-silent"]
