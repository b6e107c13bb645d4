"""Do hooks still do what each act promises by itself when acts follow one another?

Hooks of each kind are registered on modules and on all modules, and removed, by their handles or by each other; the net
is called, differentiated, copied, pickled, switched to evaluation, and fails. A model in plain Python tells what each
act must have hooks note (`hookcheck.contract.machine`); Hypothesis looks for acts during which torch does otherwise.
"""

from __future__ import annotations

from hookcheck.contract.check import Check
from hookcheck.contract.clause import PROMISE
from hookcheck.contract.machine.search import found, sequences
from hookcheck.contract.program import program
from hookcheck.probe.lazy import torch

EXAMPLES = 60
"""Sequences that are drawn for each fact."""

SOURCE = (
    "torch.nn.Module.register_forward_hook, register_full_backward_hook: prepend, always_call, with_kwargs, the order "
    "beside global hooks, and what removes the hook"
)


@program("SM-01", PROMISE, since="1.8", source=SOURCE)
def acts_that_follow_one_another(check: Check) -> None:
    """After any acts, a call and a backward run the hooks that are registered then, in the documented order."""
    major, minor = torch.__version__.split(".")[:2]
    for name, going in {
        "acts on hooks that stay until they are removed, with gradients": False,
        "acts on hooks that may remove hooks, some without gradients": True,
    }.items():
        deviation = found(sequences((int(major), int(minor)), going), EXAMPLES)
        check.equal(name, deviation or "none deviates", "none deviates", deviation.gap if deviation else "wrong values")
