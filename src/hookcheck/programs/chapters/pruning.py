"""What becomes of the pre-hooks of pruning where tensors are pruned again, in any order, and pruning is removed?

``torch.nn.utils.prune`` has one pre-hook for each tensor that is pruned, which knows the tensor by its name. Pruning it
again puts another hook in the place of that one, and ``remove`` takes it off. With other hooks they and those of norms
run in the order in which they came.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from itertools import permutations
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.hooks_of_torch import cell, computed, quietly
from hookcheck.programs.check import Check
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

PRUNE = "torch.nn.utils.prune"
MASKS = {"weight": [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], "bias": [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]}
"""The masks by which each of two tensors is pruned, one after the other."""
LEFT = {"weight": [[0.0, 0.0, 7.0]], "bias": [0.0, 7.0, 0.0]}
"""What both leave of sevens."""


def pair() -> Any:
    """A module of two tensors of three numbers."""
    module: Any = nn.Linear(3, 1)
    module.weight.data.fill_(1.0)
    module.bias = nn.Parameter(torch.ones(3))
    module.forward = lambda x: (module.weight * x).sum() + module.bias.sum()
    return module


def pruned(module: Any) -> list[str]:
    """The tensors for which the module has a pre-hook of pruning, one for each hook."""
    prune: Any = import_module(PRUNE)
    hooks = module._forward_pre_hooks.values()
    return sorted(hook._tensor_name for hook in hooks if isinstance(hook, prune.BasePruningMethod))


@program("HT-10", PIN, since="1.7", source=f"{PRUNE}.BasePruningMethod.apply, 'only 1 hook'; {PRUNE}.remove")
def prunings_of_two_tensors(check: Check) -> None:
    """Whatever the order in which two tensors are pruned, each twice, there is one pre-hook for each, which computes it
    before a call; removing the pruning of one takes off that hook alone, and other hooks stay."""
    prune: Any = import_module(PRUNE)
    for order in sorted({*permutations(("weight", "weight", "bias", "bias"))}):
        way, module, log = ", ".join(order), pair(), list[str]()
        masks = {name: iter(of_it) for name, of_it in MASKS.items()}
        module.register_forward_pre_hook(noting(log, "first"))
        for name in order:
            mask = torch.tensor(next(masks[name])).reshape(getattr(module, name).shape)
            prune.custom_from_mask(module, name, mask)
        module.register_forward_pre_hook(noting(log, "last"))
        check.equal(f"{way}: tensors that a hook computes", pruned(module), ["bias", "weight"])
        filled(module, 7.0)
        check.equal(f"{way}: what they compute of sevens", both(module), LEFT)
        removed, other = order[0], ("bias", "weight")[order[0] == "bias"]
        check.works(f"{way}: removing the first", partial(prune.remove, module, removed))
        check.equal(f"{way}: tensors that a hook computes then", pruned(module), [other])
        filled(module, 14.0)
        due = {removed: LEFT[removed], other: (2 * torch.tensor(LEFT[other])).tolist()}
        check.equal(f"{way}: what there is of fourteens", both(module), due)
        check.works(f"{way}: removing the other", partial(prune.remove, module, other))
        check.equal(f"{way}: keys of the state then", sorted(module.state_dict()), ["bias", "weight"])
        check.equal(f"{way}: what there is at last", both(module), due)
        check.order(f"{way}: other hooks", log, ["first", "last"] * 3)


def filled(module: Any, number: float, end: str = "_orig") -> None:
    """Fills the tensors of which others are computed, whose names have that end."""
    for name, parameter in module.named_parameters():
        if name.endswith(end):
            parameter.data.fill_(number)


def both(module: Any) -> dict[str, Any]:
    """The two tensors after a call."""
    module(torch.ones(1, 3))
    return {name: getattr(module, name).tolist() for name in MASKS}


@program("HT-11", PIN, since="1.7", source=f"{PRUNE}.BasePruningMethod.apply, 'roll back'")
def a_pruning_that_fails(check: Check) -> None:
    """A pruning that fails, as one of more than there is, leaves the pre-hooks of the module, and what they
    compute, as they were: none of a tensor that was not pruned before, and one of a tensor that was, once or twice."""
    prune: Any = import_module(PRUNE)

    for times in range(3):
        module, what = pair(), f"pruned {times} times before"
        for mask in MASKS["weight"][:times]:
            prune.custom_from_mask(module, "weight", torch.tensor([mask]))
        keys = sorted(module.state_dict())
        check.equal(f"{what}: hooks ahead", pruned(module), ["weight"] * min(times, 1))
        act = partial(prune.l1_unstructured, module, "weight", amount=4)
        check.raises(f"{what}: pruning", ValueError, act, "should be smaller than the number of parameters to prune")
        check.equal(f"{what}: hooks", pruned(module), ["weight"] * min(times, 1))
        check.equal(f"{what}: keys of the state", sorted(module.state_dict()), keys)
        filled(module, 7.0, "_orig" if times else "weight")
        module(torch.ones(1, 3))
        due = ([[7.0, 7.0, 7.0]], [[7.0, 0.0, 7.0]], [[0.0, 0.0, 7.0]])[times]
        check.equal(f"{what}: what is computed of sevens", module.weight, due)


@program(
    "HT-13", PIN, since="1.7", source="torch.nn.Module.register_forward_pre_hook; 'in the order they are registered'"
)
def what_comes_before_is_computed_from(check: Check) -> None:
    """What a pre-hook does to that from which a tensor is computed counts in the same call if it was registered before
    the pruning or the norm, and not yet if it came after."""
    of_4 = {"pruning": 4.0, "weight_norm": 4.0, "spectral_norm": 1.0}  # w, g * v / |v|, and w / |w|
    for name, way in computed().items():
        for first in (True, False):
            net = cell()
            acts = [
                partial(net.register_forward_pre_hook, lambda net, args, end=way.source: filled(net, -8.0, end)),
                partial(quietly, partial(way.do, net, "weight_ih")),
            ]
            for act in acts if first else acts[::-1]:
                act()
            net(torch.ones(1, 1))
            what = f"{name}: with a pre-hook that came {'before' if first else 'after'}"
            check.equal(what, net.weight_ih, [[way.of_minus_8 if first else of_4[name]]])
