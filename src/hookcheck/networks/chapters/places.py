"""Where is a hook called, and is what it sees the same on every device?

A backward on the CPU runs in the thread that calls it. One on a CUDA device runs in a thread of the device's own, under
the streams that forward ran under. Gradients lie where the tensors lie that they stand for. For all else the device
makes no difference.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from hookcheck.contract.clause import NOTHING, PIN, PROMISE, Judgement, Subject, clause
from hookcheck.contract.finding import Finding
from hookcheck.contract.site import ARGUMENT, CALL, COUNT, EQUAL, NONE, ORDER, PROCESS, RAISES, VALUE, Site
from hookcheck.hooks.kinds import SAVED, HookKind
from hookcheck.networks.case import Case
from hookcheck.networks.chapters.gradients import takes_gradients
from hookcheck.networks.gradients import named
from hookcheck.probe.observation import Copy, Event, dtype_of, numbers, same
from hookcheck.topology.model import inside
from hookcheck.topology.primitive import Array

PLACES = (
    "torch.Tensor.backward, 'matching type and location'; notes on autograd, 'Multithreaded Autograd'; "
    "notes on CUDA, 'Stream semantics of backward passes'"
)
AGNOSTIC = "notes on autograd, which speak of hooks without regard to devices"


def _of_any_kernel(kind: HookKind) -> bool:
    """Hooks whose calls do not depend on which Nodes a device's kernels make, and what those save."""
    return kind.variant != "legacy" and kind.call != SAVED


@clause("PL-01", PROMISE, Subject.RUN, "1.7", PLACES, of=takes_gradients)
def called_where_the_network_runs(case: Case, _: None) -> Judgement:
    """A hook is given gradients on the device of the tensors that they stand for; it is called in the thread that calls
    backward where that is on the CPU or torch is told to use one thread, and on a CUDA device under the stream that
    forward ran under."""
    if not case.observed.events:
        return NOTHING
    return next(filter(None, (_misplaced(case, event) for event in case.observed.events)), None)


def _misplaced(case: Case, event: Event) -> Finding | None:
    run, around = case.observed, inside(case.topology)
    expected: dict[str, object] = {"device": (case.device,) if event.devices else ()}
    observed: dict[str, object] = {"device": event.devices}
    if case.device == "cpu" or "one_thread" in around:
        expected["thread"], observed["thread"] = (
            "that of backward",
            _which(event.thread == run.thread, "that of backward"),
        )
    expected["stream"], observed["stream"] = (
        "that of forward",
        _which(event.stream == run.stream, "that of forward"),
    )
    wrong = next((name for name in expected if observed[name] != expected[name]), None)
    if wrong is None:
        return None
    return Finding(Site(ARGUMENT, f"{named(event.path)}: {wrong}"), EQUAL, expected[wrong], observed[wrong])


def _which(the_same: bool, name: str) -> str:
    return name if the_same else "another"


@clause("PL-02", PIN, Subject.RUN, "1.7", AGNOSTIC, of=_of_any_kernel)
def the_same_on_every_device(case: Case, _: None) -> Judgement:
    """On a CUDA device hooks are called as on the CPU: as often, in that order, with None in the same places, with
    tensors of the same shapes and dtypes whose numbers differ by no more than rounding; the same leaves have a
    gradient, and the same exceptions are raised."""
    if case.elsewhere is None or case.opaque:  # its kernels make other Nodes, which lead elsewhere
        return NOTHING
    here, there = case.observed, case.elsewhere
    if here.raised or there.raised:
        alike = here.raised and there.raised and here.raised.type == there.raised.type
        return None if alike else Finding(Site(PROCESS), RAISES, there.raised, here.raised)
    calls, due = (list(run.chained or ((0, event) for event in run.events)) for run in (here, there))
    observed, expected = ([f"{named(event.path)}, hook {link}" for link, event in each] for each in (calls, due))
    if Counter(observed) != Counter(expected):
        return Finding(Site(CALL), COUNT, expected, observed)
    if case.nodes_unspecified:  # what backward makes is numbered by the device's thread
        return None
    if observed != expected:
        return Finding(Site(CALL), ORDER, expected, observed)
    for event, other in zip(here.events, there.events):
        if not _alike(case, event.arguments, other.arguments):
            site = Site(VALUE, f"{named(event.path)}, event {event.number}")
            return Finding(site, EQUAL, other.arguments, event.arguments)
    for name, gradient in here.gradients.items():
        if (gradient is None) != (there.gradients.get(name) is None):
            return Finding(Site(VALUE, f"{name}.grad"), NONE, there.gradients.get(name), gradient)
    return None


def _near(case: Case, here: Array, there: Array) -> bool:
    """Whether the numbers are the same up to rounding; at a second look, whether both are near to one tensor of the
    oracle's as this very network rounds."""
    arrays = case.expected.arrays if case.measured else ()
    fitting = (array for array in arrays if array is not None and array.shape == numbers(here).shape)
    return case.alike(here, numbers(there)) or any(case.alike(here, a) and case.alike(there, a) for a in fitting)


def _alike(case: Case, here: Copy, there: Copy) -> bool:
    """Whether two copies are of one structure, shape and dtype, and the same within what rounding explains."""
    if isinstance(here, np.ndarray) and isinstance(there, np.ndarray):
        rounded = numbers(here).dtype.kind in "fc"
        return dtype_of(here) == dtype_of(there) and (_near(case, here, there) if rounded else same(here, there))
    if type(here) is not type(there):
        return False
    if isinstance(here, (tuple, list)) and isinstance(there, (tuple, list)):
        return len(here) == len(there) and all(_alike(case, a, b) for a, b in zip(here, there))
    if isinstance(here, dict) and isinstance(there, dict):
        return here.keys() == there.keys() and all(_alike(case, item, there[key]) for key, item in here.items())
    return here == there
