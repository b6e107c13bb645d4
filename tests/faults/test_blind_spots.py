"""What does the contract not see yet? A fault that comes to be caught fails here, and moves to the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

import pytest
import torch
from faults.engine import (
    FULL,
    Fault,
    at_the_end_of_backward,
    called,
    each,
    fetched,
    hooks_of,
    receiving,
    release,
    replaced,
    tensors,
)
from faults.networks import BY_HAND, CALLED, V
from faults.samples import deviations, samples, sound
from packaging.specifiers import SpecifierSet

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import Entry, Idle, Ledger
from hookcheck.networks.examine import examine
from hookcheck.probe.run import observe
from hookcheck.topology.model import Backward
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values


def laid_out_anew(gradient: Any) -> Any:
    """The same numbers in another order in memory."""
    return gradient.transpose(0, -1).contiguous().transpose(0, -1)


def unasked() -> AbstractContextManager[None]:
    """Where a backward reaches a module's output and asks for no gradient of its inputs, hooks are called with None."""

    def change(module: Any, hooks: list[Any]) -> list[Any]:
        fired = vars(module)["fired"] = []

        def fire(hook: Any, *arguments: Any) -> Any:
            fired.append(hook)
            return hook(*arguments)

        return [partial(fire, hook) for hook in hooks]

    def call(forward: Any, module: Any, args: Any) -> Any:
        result = forward(*args)
        fired = vars(module)["fired"]

        def late() -> None:
            for hook in hooks_of(module) if not fired else []:
                hook(module, (None,) * len(args), (None,) * len(tensors(result)))

        for tensor in tensors(result)[:1]:
            if tensor.requires_grad:
                tensor.register_hook(lambda gradient: at_the_end_of_backward(late))
        return result

    @contextmanager
    def patch() -> Iterator[None]:
        with called(call), fetched(change):
            yield

    return patch()


BLIND_SPOTS = (
    Fault("gradients have other strides: only their numbers are copied", lambda: receiving(each(laid_out_anew)), ()),
)


@pytest.mark.slow
@pytest.mark.parametrize("fault", BLIND_SPOTS, ids=lambda fault: fault.what)
def test_a_fault_is_not_caught_yet(fault: Fault) -> None:
    new_deviations = set()
    for kind in fault.kinds:
        for topology in samples():
            before = sound(topology, kind)
            with fault.patch():
                new_deviations |= deviations(topology, kind) - before
    assert new_deviations == set()


@pytest.mark.slow
def test_hooks_that_are_called_unasked_are_seen_to_be() -> None:
    """A backward for parameters alone meets no condition of the hook, so BW-05 counts the calls; what
    they hold on to, OB-08 sees."""
    alone = BY_HAND["a backward for the parameters alone"]
    events = []
    for patch in (nullcontext, unasked):
        with patch():
            events.append(observe(alone, values(alone), "full_backward").events)
    assert [[event.path for event in each] for each in events] == [[], ["", "1"]]
    with unasked():
        unasked_deviations = deviations(alone, "full_backward")
    assert {clause for clause, *_ in unasked_deviations} == {"BW-05", "OB-08"}


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


SILENT = Entry(
    id="silent-inside",
    clauses=("BW-02",),
    kinds=FULL,
    torch=SpecifierSet(">=1.13"),
    instead=("not fired",),
    why="The hook waits for a gradient of the output, and there is none.",
    link="https://example.org",
    reviewed=date(2026, 1, 31),
    when=(("reached", ("inside",)),),
)
INSIDE = replace(BY_HAND["the gradient of an intermediate"], main=(CALLED, Backward((Ref("leaked", ("h",)),), (V,))))


@pytest.mark.skipif(release(torch.__version__) < (1, 13), reason="before 1.13 this was an error")
@pytest.mark.parametrize("families", [(), ("intermediate-loss",)])
@pytest.mark.parametrize("kind", FULL)
def test_a_deviation_that_is_mended_leaves_its_entry_without_use(kind: str, families: tuple[str, ...]) -> None:
    entry = replace(SILENT, kinds=(kind,), families=families)
    ledger = Ledger((entry,))
    before = list(examine(INSIDE, "intermediate-loss", (kind,), CLAUSES.values(), ledger))
    with mended():
        after = list(examine(INSIDE, "intermediate-loss", (kind,), CLAUSES.values(), ledger))
    stale = [ledger.stale(results, "BW-02", "intermediate-loss", kind) for results in (before, after)]
    idle = [ledger.idle(results) for results in (before, after)]
    assert stale == ([[], [entry]] if families else [[], []])
    silent = [Idle(entry, "not fired", families[0])] if families else [Idle(entry, "not fired"), Idle(entry, kind)]
    assert idle == [[], silent]
