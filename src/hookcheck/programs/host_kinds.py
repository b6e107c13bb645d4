"""Which modules are there beside plain ones? Those that torch made of a module, or did something to.

Clauses on plain modules run on them unchanged (`hookcheck.programs.chapters.clauses_on_hosts`); what a host is meant to
change is left out, with the reason.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.host_changes import CHANGES, GROUPS, Module, Release
from hookcheck.programs.host_classes import temporary, with_methods
from hookcheck.programs.host_copying import (
    BACKWARD,
    HOOKS_OF_COPIES,
    LOADED_BY_NAME,
    NO_DEEPCOPY,
    NO_LOADING,
    NO_PARAMETER,
    PICKLED,
)
from hookcheck.programs.host_quantised import (
    fused_by_name,
    prepared,
    prepared_to_train,
    quantised,
    quantised_dynamically,
)
from hookcheck.programs.host_registering import (
    ANOTHER_MODULE,
    BUFFERS,
    COMPUTED_WEIGHT,
    COPIED,
    LAZY,
    PARTS_OF_ITS_OWN,
    SCRIPTED,
    UNDONE,
)
from hookcheck.programs.hosting import ALL_MODULES, BY_HAND, ENCODERS, LAYERS, MODULES, UNSIZED, Make


def _weighty(change: Callable[[Module], Any], module: Module) -> Module:
    """The module, to which something is done if it has a weight."""
    if "weight" in module._parameters:
        change(module)
    return module


def _there_and_back(name: str, module: Module) -> Module:
    """The module, to which something is done and taken back if it has a weight, with the numbers that that had."""
    if "weight" in module._parameters:
        change, weight = CHANGES[name], module.weight.detach().clone()
        change.there(module)
        change.back(module)
        module.weight.data.copy_(weight)
    return module


def _times(factor: float, compute: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """So many times what ``compute`` gives."""
    return factor * compute(*args, **kwargs)


def _spectral_normed(module: Module) -> None:
    """Has a pre-hook divide the weight by its largest singular value and, so that it keeps its numbers, multiply it."""
    u, s, v = torch.svd(module.weight.detach())
    nn.utils.spectral_norm(module)
    module.weight_u.copy_(u[:, 0])
    module.weight_v.copy_(v[:, 0])
    (norm,) = (hook for hook in module._forward_pre_hooks.values() if type(hook).__name__ == "SpectralNorm")
    norm.compute_weight = partial(_times, s[0].item(), norm.compute_weight)


def _spectral_normed_by_parametrization(module: Module) -> None:
    """The same by one parametrization that divides, and another one that multiplies."""
    u, s, v = torch.svd(module.weight.detach())
    CHANGES["parametrizations.spectral_norm"].there(module)
    (norm,) = module.parametrizations.weight
    norm._u.copy_(u[:, 0])
    norm._v.copy_(v[:, 0])
    multiplying: Any = nn.Identity()
    multiplying.forward = partial(_times, s[0].item(), multiplying.forward)
    import_module("torch.nn.utils.parametrize").register_parametrization(module, "weight", multiplying)


def _hooked_before(module: Module) -> Module:
    """The module, on which hooks were and are no more."""
    names = (name for group in ("forward", "state") for name in GROUPS[group] if hasattr(module, name))
    for handle in [getattr(module, name)(lambda *_: None) for name in names]:
        handle.remove()
    return module


def _was_lazy(linear: Module) -> Module:
    """A Linear of the same numbers that did not know its width until it was called."""
    lazy = nn.LazyLinear(linear.out_features, bias=linear.bias is not None)
    lazy(torch.zeros(1, linear.in_features))
    lazy.load_state_dict(linear.state_dict())
    return lazy


def _still_lazy(linear: Module) -> Module:
    """The same that has its numbers from a state dict, and is lazy until it is called."""
    lazy = nn.LazyLinear(linear.out_features, bias=linear.bias is not None)
    lazy.load_state_dict(linear.state_dict())
    return lazy


def _fused(linear: Module) -> Module:
    """What is made of a Linear and a normalisation that changes nothing."""
    from torch.nn.utils.fusion import fuse_linear_bn_eval

    norm = nn.BatchNorm1d(linear.out_features, eps=0.0).eval()
    return fuse_linear_bn_eval(linear.eval(), norm).train()


def _replica(module: Module) -> Module:
    """A replica as DataParallel makes it, but with the parameters of the module itself."""
    replica = module._replicate_for_data_parallel()
    for name, parameter in module._parameters.items():
        setattr(replica, name, parameter)
    return replica


def _converted(identity: Module) -> Module:
    """What is made of a normalisation for several processes, which computes what ``identity`` does."""
    norm: Any = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(1, affine=False, track_running_stats=False))
    norm.forward = identity.forward
    return norm


def _traced(module: Module) -> Module:
    from torch import fx

    return fx.symbolic_trace(module)


@dataclass(frozen=True)
class Kind:
    """What a host makes of a module or an optimizer that a program makes by one of ``names``, since which release it
    can be; which clauses it is meant to make untrue, by patterns of their ids or chapters, or which of their facts, by
    patterns of ``id: fact``, with the reason, and ``before`` a release which more; what torch says where it ``refuses``
    hooks on it, aloud; and, by patterns, the keys that it ``saves`` of a Linear that saves its weight."""

    make: Make
    names: tuple[str, ...] = MODULES
    since: Release = (1, 8)
    but: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[Release, Mapping[str, str]] = field(default_factory=dict)
    refuses: str = ""
    saves: tuple[str, ...] = ("weight",)


ON_NO_HOST = {
    "LB-05": "it is not so on a plain module, in any release, and what it runs there never ends",
    "SZ-29": "it starts processes, which the process of a run may not, and each of them imports torch anew",
    "HD-02": "it is about tensors; what it says of a parameter is not so on a plain module either",
    "EX-03": "it is about an operation written in Python, and makes no module",
    "GL-14": "it is about the tables of hooks on all modules, and makes no module",
    **dict.fromkeys(("PH-09", "PH-10", "PH-12"), "it is about tensors, and makes no module"),
    "CP-10": "the parts of an adaptive softmax are made by torch itself",
    "SZ-34": "it goes through the classes of torch.optim",
    "RG-07": "its module is of a class of its own",
    "SD-21": "its modules are of classes of its own, but for one",
    "HT-14": "it goes through the lazy classes of torch, of which it looks at the attributes",
    "OP-25": "its optimizer is of a class of its own",
}
"""Clauses of those chapters that run on no host, with the reason."""

NAMES_AND_NUMBERS = ("SD-0[124578]", "SD-03: its state_dict", "SD-10", "SD-17", "U-18")
"""Of the clauses on state dicts those that say what is in them; the others hold whatever is."""

COMPUTED = {
    **COMPUTED_WEIGHT,
    **NO_PARAMETER,
    **dict.fromkeys(NAMES_AND_NUMBERS, "what is saved has other names"),
    "LB-03: gradients of nn.Linear": "a weight that is computed has Nodes of its own, which legacy hooks meet",
}

PARAMETRIZED = {
    "EX-10": "a parametrization is a module too, which hooks on all modules meet",
    **dict.fromkeys((*PICKLED, "SZ-23"), "what is parametrized refuses pickle and copy.copy, aloud"),
}
PARAMETRIZED_BEFORE = {(1, 13): {"SZ-2[01]": "what is parametrized refused deepcopy as well"}}
ITERATED = {"FW-21": "each call in training comes nearer to the singular value, which moves the last bits"}
OBSERVED = {
    **dict.fromkeys((*NAMES_AND_NUMBERS, *LOADED_BY_NAME), "what an observer sees is saved as well"),
    "PH-04": "an observer is a part that has no weight",
    "EX-10": "an observer is a module too, which hooks on all modules meet",
    "U-13: the function is the same": "the hook of the observer is in the table as well",
    **dict.fromkeys(PICKLED, "its qconfig cannot be pickled, and says so"),
}

OBSERVING = "to quantise a weight an observer is called, which hooks on all modules meet"
QUANTISED = {**PARTS_OF_ITS_OWN, "GL-03: a module that is made *": OBSERVING}
PACKED = {
    **NO_PARAMETER,
    **dict.fromkeys(
        (*NAMES_AND_NUMBERS, "SD-03", "SD-14", "SD-19", "SZ-33"),
        "its weight is packed, and is nothing that these clauses could write to",
    ),
    **ANOTHER_MODULE,
    "RG-06": "its weight is packed, and is no parameter that a hook could return",
    "SZ-06: program": "its forward calls its input otherwise",
    "SD-12": "a packed weight is loaded by a method of its own, which passes strict=False on",
    "LB-03": "the same of the weight that it writes to",
    **dict.fromkeys(("FW-21", "EX-10"), "it gives no gradient, with or without hooks"),
}
TEMPORARY = {
    **dict.fromkeys(
        (
            *("FW-0[269]: the module", "FW-10: the module", "FW-17: what *"),
            *("BW-14: module of *", "BP-01: module for *", "SZ-21"),
        ),
        "hooks are given the module that is called, which is equal to that on which they are and not the same",
    ),
    **dict.fromkeys(("GL-15", *PICKLED), "its class cannot be pickled by its name"),
}
SWAPPED = {
    "PH-07: calls of register_hook after swapping, where there was no hook": (
        "a parameter from a pickle has an empty table of hooks, which swapping leaves behind, as PH-07 says"
    )
}
WRAPPED = dict.fromkeys(
    (
        *("global-hooks", "global-backward-hooks", "EX-10", "FW-16", "AC-04", "AC-12"),
        *("BF-16: pre-hooks", "*: *register_module_*", "B[WP]-??: global ones*", "AC-01: *, a global one"),
        "AC-0[23]: *, [12] global and *",
    ),
    "hooks on all modules meet the wrapper and the module in it; torch warns of the call that is more",
)

MODULE_WITHIN = ("RG-03: submodules under hooks *", "RG-04: * for a module")
"""What does not hold where a host registers the module that it is made of."""

KINDS = {
    "own methods": Kind(with_methods, ALL_MODULES),
    "hooked before": Kind(_hooked_before, ALL_MODULES),
    "parametrized": Kind(
        partial(_weighty, CHANGES["parametrized"].there),
        LAYERS,
        (1, 9),
        {**COMPUTED, **PARAMETRIZED},
        PARAMETRIZED_BEFORE,
        saves=("parametrizations.weight.original",),
    ),
    "parametrized, undone": Kind(partial(_there_and_back, "parametrized"), since=(1, 9), but=UNDONE),
    "pruned": Kind(
        partial(_weighty, CHANGES["pruned"].there),
        LAYERS,
        but={**COMPUTED, **NO_DEEPCOPY},
        saves=("weight_orig", "weight_mask"),
    ),
    "pruned, undone": Kind(partial(_there_and_back, "pruned"), but=UNDONE),
    "spectral_norm": Kind(
        partial(_weighty, _spectral_normed),
        LAYERS,
        but={**COMPUTED, **ITERATED},
        saves=("weight_orig", "weight_u", "weight_v"),
    ),
    "spectral_norm, undone": Kind(partial(_there_and_back, "spectral_norm"), LAYERS, but={**UNDONE, **NO_LOADING}),
    "parametrizations.spectral_norm": Kind(
        partial(_weighty, _spectral_normed_by_parametrization),
        LAYERS,
        (1, 10),  # in 1.9 its vectors come with the first call
        {**COMPUTED, **ITERATED, **PARAMETRIZED},
        PARAMETRIZED_BEFORE,
        saves=tuple(f"parametrizations.weight.{part}" for part in ("original", "0._u", "0._v")),
    ),
    "prepared to be quantised": Kind(
        prepared, ("Linear",), but=OBSERVED, saves=("weight", "activation_post_process.*")
    ),
    "prepared to be trained": Kind(
        prepared_to_train,
        ("Linear",),
        but={**OBSERVED, **ANOTHER_MODULE},
        saves=("weight", "weight_fake_quant.*", "activation_post_process.*"),
    ),
    "SyncBatchNorm-converted": Kind(
        _converted,
        ("Identity",),
        but=dict.fromkeys(BUFFERS, "what is made here registers buffers itself, of None"),
    ),
    "AveragedModel": Kind(
        lambda module: import_module("torch.optim.swa_utils").AveragedModel(module),
        ("Identity", "times"),
        but={
            **WRAPPED,
            **dict.fromkeys(BUFFERS, "an average registers how many it is of, while it is made"),
            **dict.fromkeys(MODULE_WITHIN, "an average registers the module that it is made of"),
        },
    ),
    "DataParallel": Kind(
        lambda module: nn.DataParallel(module),
        ("Identity", "times"),
        but={**WRAPPED, **dict.fromkeys(MODULE_WITHIN, "a DataParallel registers the module that it is made of")},
    ),
    "quantised dynamically": Kind(
        quantised_dynamically,
        ("Linear", "Identity", "times"),
        but={**PACKED, **QUANTISED},
        before={
            (1, 10): {"U-04": OBSERVING},
            (1, 12): {"SZ-28": "a packed weight is restored from numbers, of which none may be missing"},
            (2, 3): dict.fromkeys(BACKWARD, "it gave no gradient, with or without hooks"),
        },
        saves=("scale", "zero_point", "_packed_params.*"),
    ),
    "quantised": Kind(quantised, ("Identity", "times"), but=QUANTISED, before={(1, 10): {"U-04": OBSERVING}}),
    "fused by name": Kind(fused_by_name, ("Identity", "times"), but=PARTS_OF_ITS_OWN),
    "temporary": Kind(temporary, ALL_MODULES, but=TEMPORARY),
    "weight_norm": Kind(
        partial(_weighty, CHANGES["weight_norm"].there),
        LAYERS,
        but={**COMPUTED, **NO_DEEPCOPY},
        saves=("weight_g", "weight_v"),
    ),
    "weight_norm, undone": Kind(partial(_there_and_back, "weight_norm"), LAYERS, but=UNDONE),
    "was lazy": Kind(_was_lazy, ("Linear",), (1, 13), LAZY),
    "still lazy": Kind(
        _still_lazy,
        ("Linear",),
        (1, 13),
        {
            **LAZY,
            **dict.fromkeys(("SD-0[125]: arguments *", "SD-07: calls"), "its class is LazyLinear until it is called"),
        },
        {
            (2, 1): dict.fromkeys(
                ("SZ-08: hooks", "SZ-23: *_state_dict_pre_hook of the original"),
                "lazy modules were saved past register_state_dict_pre_hook, as facts of clauses on state dicts show",
            ),
            (2, 2): {"SZ-06: program": "a lazy module inferred nothing from keywords, as CP-06 says"},
        },
    ),
    "fused layers": Kind(
        _fused,
        ("Linear",),
        (1, 13),
        {
            **ANOTHER_MODULE,
            **dict.fromkeys((*NAMES_AND_NUMBERS, *LOADED_BY_NAME), "what is fused has a bias, which is saved as well"),
            "SZ-12: program": "what is fused has a bias, which requires no grad and takes no hook",
        },
        saves=("weight", "bias"),
    ),
    "deep copy": Kind(
        copy.deepcopy,
        (*LAYERS, *BY_HAND, *ENCODERS, *UNSIZED),
        but=COPIED,
        before={(2, 0): {"CP-0[67]": "what has no size yet could not be copied with deepcopy, aloud"}},
    ),
    "shallow copy": Kind(copy.copy, ALL_MODULES, but=ANOTHER_MODULE),
    "unpickled": Kind(
        lambda module: pickle.loads(pickle.dumps(module)), (*LAYERS, *ENCODERS, *UNSIZED), but={**COPIED, **SWAPPED}
    ),
    "replica": Kind(_replica, (*LAYERS, *BY_HAND, *ENCODERS), but=ANOTHER_MODULE),
    "ScriptModule": Kind(
        lambda module: torch.jit.script(module),
        LAYERS,
        but={
            **SCRIPTED,
            **dict.fromkeys(("SD-13", "SZ-08: hooks"), "it counts calls of a hook that is refused"),
            "SZ-13": "a ScriptModule is saved by torch.jit.save alone, and says so",
        },
        refuses="is not supported on ScriptModules",
    ),
    "GraphModule": Kind(
        _traced,
        (*LAYERS, *BY_HAND),
        but={
            **ANOTHER_MODULE,
            "HD-05": "a GraphModule is part of a cycle, which only the collector frees",
            "GL-15": "a GraphModule is pickled by its code, and says so",
            **dict.fromkeys(HOOKS_OF_COPIES, "a GraphModule is copied and pickled without its hooks, as HO-01 says"),
        },
    ),
}
"""The hosts of modules by name."""
