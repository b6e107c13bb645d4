"""Which modules of a model can hooks of a kind be put on, and held against what they must see?"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from hookcheck.hooks.kinds import BACKWARD, HookKind
from hookcheck.models.cuts import CALLED, Cuts
from hookcheck.models.step import ModelUse

ANOTHER = "torch allows no legacy and full hooks on one module, and a hook of the other kind is there already"
ANOTHER_GLOBAL = (
    "torch allows no legacy and full hooks on all modules in one process, and has seen those of the other kind"
)
COPIED = "forward copies the module, and its hooks with it: they are called for the copy, which is another module"
CHANGED = "hooks of the model's own change .grad after it is accumulated, so what leaves are given is not known"


def refusing(cuts: Cuts) -> dict[str, str]:
    """The modules whose inputs or outputs are written to in place, and how."""
    refusals = {}
    for call in cuts.calls:
        if call.way != CALLED:
            continue
        if call.written:
            refusals[call.path] = f"its forward writes to its input {', '.join(call.written)}"
        elif call.overwritten:
            refusals[call.path] = f"its output {', '.join(call.overwritten)} is written to afterwards"
    return refusals


def refused(use: ModelUse, hook: HookKind, cuts: Cuts) -> dict[str, str]:
    """The modules where hooks of a kind refuse an in-place operation, and how these write."""
    refuses = hook.variant == "full" and hook.scope in ("module", "global")
    return {path: how for path, how in refusing(cuts).items() if path in use.modules} if refuses else {}


def left_out(use: ModelUse, hook: HookKind, cuts: Cuts) -> dict[str, str]:
    """The other modules that hooks of a kind are not put on, and why not."""
    left = {path: ANOTHER for path, module in use.modules.items() if _refuses_another(hook, module)}
    copied = cuts.copied & use.modules.keys() if hook.scope == "module" else ()
    return {**left, **dict.fromkeys(copied, COPIED)}


def reachable(use: ModelUse, hook: HookKind, cuts: Cuts) -> list[str]:
    """The modules that hooks of a kind are put on."""
    without = {**refused(use, hook, cuts), **left_out(use, hook, cuts)}
    return [path for path in use.modules if path not in without]


def unjudged(use: ModelUse, hook: HookKind, refusals: Collection[str], cuts: Cuts) -> str:
    """Why hooks of a kind can be held against nothing on this model, or empty."""
    if hook.scope == "global" and refusals:
        first = next(iter(refusals)) or "the model"
        return f"hooks on all modules are on {first} as well, which they refuse"
    of: Any = torch.nn.modules.module
    full = getattr(of, "_global_is_full_backward_hook", None)
    if hook.scope == "global" and hook.call == BACKWARD and full not in (None, hook.variant == "full"):
        return ANOTHER_GLOBAL
    if hook.scope == "global" and cuts.copied:
        return COPIED
    after = (getattr(leaf, "_post_accumulate_grad_hooks", None) for leaf in use.model.parameters())
    return CHANGED if hook.scope in ("leaf", "leaves") and any(after) else ""


def _refuses_another(hook: HookKind, module: torch.nn.Module) -> bool:
    """Whether a module has backward hooks of the user's that torch allows no hook of this kind beside."""
    full = getattr(module, "_is_full_backward_hook", None)
    there = bool(module._backward_hooks) and full is not None
    return there and hook.scope == "module" and hook.call == BACKWARD and full is not (hook.variant == "full")
