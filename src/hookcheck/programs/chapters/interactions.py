"""Do hooks still do what each act promises by itself when acts follow one another?

Hooks of each kind are registered on modules and on all modules, and removed, by their handles or by each other; the net
is called, differentiated, copied, pickled, switched to evaluation, and fails. A model in plain Python tells what each
act must have hooks note (`hookcheck.programs.machine`). A corpus of sequences is played, and some that are drawn anew;
Hypothesis shrinks the first in which torch does otherwise.

Each API is promised something by itself; here their acts are mixed: registering (on one module or on all, with
``prepend``, ``with_kwargs``, ``always_call``), removing, calling, differentiating, copying and pickling. A corpus of
sequences is played, and some that are drawn anew, and a model tells what hooks must note during each act.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.machine.corpus import held
from hookcheck.programs.machine.draw import drawn
from hookcheck.programs.machine.model import Act, ForwardAct, RegisterAct
from hookcheck.programs.machine.search import deviation, shrunk
from hookcheck.programs.program import program
from hookcheck.programs.situations import chains, sequences

NEW = 40
"""Sequences that are drawn, the same wherever torch has the same kinds and options."""

SOURCE = (
    "torch.nn.Module.register_forward_hook, register_full_backward_hook: prepend, always_call, with_kwargs, the order "
    "beside global hooks, and what removes the hook"
)


def matter(acts: Sequence[Act]) -> str:
    """What a sequence is about: that, by which the releases that cannot play it are told apart."""
    removing = any(isinstance(act, RegisterAct) and act.removes is not None for act in acts)
    ungraded = any(isinstance(act, ForwardAct) and not act.grad for act in acts)
    hooks = "some hooks remove hooks" if removing else "hooks stay until they are removed"
    return f"{hooks}, {'some calls are without gradients' if ungraded else 'calls are with gradients'}"


def by_matter(release: tuple[int, int]) -> dict[str, list[tuple[Act, ...]]]:
    """The sequences that a torch plays, by the fact of SM-01 that is stated of them."""
    sequences: dict[str, list[tuple[Act, ...]]] = defaultdict(list)
    for acts in held(release):
        sequences[matter(acts)].append(acts)
    # Before 1.10 acts of these two sorts are known to fail, and luck would decide which of them are drawn.
    sorts = [(False, False), (True, False), (False, True), (True, True)] if release >= (1, 10) else [(False, False)]
    random = Random(1)
    return {**sequences, "drawn anew": [drawn(random, release, *sorts[new % len(sorts)]) for new in range(NEW)]}


@program("SM-01", PROMISE, since="1.8", source=SOURCE)
def acts_that_follow_one_another(check: Check) -> None:
    """After any acts, a call and a backward run the hooks that are registered then, in the documented order."""
    major, minor = torch.__version__.split(".")[:2]
    for name, each in by_matter((int(major), int(minor))).items():
        first_deviation = next(filter(None, map(deviation, each)), None)
        shown = first_deviation and shrunk(first_deviation)
        check.state(name, shown and shown.difference)


@program("SM-02", PROMISE, since="1.8", source=f"{SOURCE}; the same of hooks on tensors, Nodes, states and optimizers")
def acts_on_all_sites(check: Check) -> None:
    """After any acts, whatever calls hooks runs those that are registered then, on tensors, Nodes, what is saved,
    states, registrations and optimizers as on modules."""
    major, minor = torch.__version__.split(".")[:2]
    release = (int(major), int(minor))
    for name, each in chains.by_fact(release).items():
        deviating = next(filter(sequences.deviation, each), None)
        shown = deviating and sequences.deviation(sequences.shortest(deviating, release))
        check.state(name, shown)
