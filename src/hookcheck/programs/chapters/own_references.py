"""What becomes of a hook that refers to what it is registered on?

The two refer to each other. Python's collector frees such a pair once nothing else refers to it, if it can see every
reference of the circle. It does not see those that only C++ holds: from a tensor to its Node, and between Nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.garbage import Note, survivors
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.handles import KINDS, LEAF, MODULE, NODE, OUTPUT, SEVERAL, call_hooked, kinds, restored
from hookcheck.programs.program import program

SOURCE = "RemovableHandle.remove; pytorch#12863"

SUBJECTS = {
    MODULE: ("its module", "an output of its module"),
    LEAF: ("its leaf", "a result of its leaf"),
    OUTPUT: ("its tensor", "the Node of its tensor"),
    NODE: ("its Node", "the tensor of its Node"),
    SEVERAL: ("its tensor",),
}
"""What a hook may refer to, by what it is registered on."""


def _referring(kind: str, subject: str, after: Callable[[Any, Any], None]) -> list[str]:
    """What is left of a hook that refers to ``subject`` when ``after(output, handle)`` was done and all is dropped."""

    def play(note: Note) -> None:
        module, x, held = nn.Linear(1, 1), torch.tensor([[2.0]], requires_grad=True), list[Any]()

        def hook(*given: Any) -> None:
            len(held)  # makes the hook refer to what is held

        note("hook", hook)
        y, handle = call_hooked(kind, module, x, hook)
        things = {"its module": module, "its leaf": x, "its Node": y.grad_fn, "the Node of its tensor": y.grad_fn}
        held.append(things.get(subject, y))
        after(y, handle)

    with restored():
        return survivors(play)


def _cases() -> list[tuple[str, str]]:
    """Each kind of hook that is not on all modules, with all that it may refer to."""
    return [
        (kind, subject) for kind in kinds(MODULE, LEAF, OUTPUT, NODE, SEVERAL) for subject in SUBJECTS[KINDS[kind][0]]
    ]


@program("LT-15", PIN, since="1.7", source=SOURCE)
def what_refers_to_itself_is_freed(check: Check) -> None:
    """A hook that refers to what it is registered on, or to what is made of that, is freed with it, with a backward or
    without one."""
    for kind, subject in _cases():
        what = f"{kind} that refers to {subject}"
        check.equal(f"{what}, without a backward", _referring(kind, subject, lambda y, handle: None), [])
        check.equal(f"{what}, after a backward", _referring(kind, subject, lambda y, handle: (y * y).backward()), [])


@program("LT-16", PROMISE, since="1.7", source=SOURCE)
def what_refers_to_itself_is_freed_once_removed(check: Check) -> None:
    """So it is if the hook is removed, whatever it refers to."""
    for kind, subject in _cases():
        left = _referring(kind, subject, lambda y, handle: handle.remove())
        check.equal(f"{kind} that refers to {subject}, removed", left, [])


@program("LT-18", PIN, since="1.8", source="torch.nn.utils.prune; torch.nn.utils.weight_norm; pytorch#34257")
def pre_hooks_of_torch_hold_no_tensors(check: Check) -> None:
    """A pre-hook by which torch computes a tensor refers to no tensor itself: what it needs is in the module, so that
    it is moved, saved and freed with that."""
    prune = import_module("torch.nn.utils.prune")
    mask = torch.tensor([[1.0, 0.0]])
    acts: dict[str, Callable[[Any], Any]] = {
        "weight_norm": nn.utils.weight_norm,
        "spectral_norm": nn.utils.spectral_norm,
        "identity": lambda part: prune.identity(part, "weight"),
        "random_unstructured": lambda part: prune.random_unstructured(part, "weight", amount=1),
        "l1_unstructured": lambda part: prune.l1_unstructured(part, "weight", amount=1),
        "ln_structured": lambda part: prune.ln_structured(part, "weight", amount=1, n=1, dim=1),
        "l1_unstructured, twice": lambda part: [prune.l1_unstructured(part, "weight", amount=1) for _ in range(2)],
        "custom_from_mask": lambda part: prune.custom_from_mask(part, "weight", mask=mask),
        "global_unstructured": lambda part: prune.global_unstructured(
            [(part, "weight")], pruning_method=prune.L1Unstructured, amount=1
        ),
    }
    for name, act in acts.items():
        part = nn.Linear(2, 1)
        act(part)
        part(torch.ones(1, 2))
        (hook,) = part._forward_pre_hooks.values()
        held = [*vars(hook).items()]
        for other in vars(hook).get("_pruning_methods", ()):
            held += vars(other).items()
        check.equal(f"{name}: what it holds", sorted(key for key, value in held if torch.is_tensor(value)), [])
