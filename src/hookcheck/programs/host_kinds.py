"""Which modules are there beside plain ones? Those that torch made of a module, or did something to.

Clauses on plain modules run on them unchanged (`hookcheck.programs.chapters.clauses_on_hosts`); what a host is meant to
change is left out, with the reason.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.host_changes import CHANGES, GROUPS, Module, Release, quantization
from hookcheck.programs.hosting import BY_HAND, CONTAINERS, LAYERS, MODULES, Make


@cache
def own_methods(kind: type) -> type:
    """A subclass with methods of its own, which all do what those of ``kind`` do; it is pickled by that."""

    class Own(kind):
        def __reduce__(self) -> Any:
            return restored, (kind, self.__getstate__() if hasattr(object, "__getstate__") else vars(self))

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(*args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)

        def __setstate__(self, state: Any) -> None:
            super().__setstate__(state)

        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            super()._save_to_state_dict(destination, prefix, keep_vars)

        def _load_from_state_dict(self, *args: Any) -> None:
            super()._load_from_state_dict(*args)

    Own.__name__ = kind.__name__
    return Own


def restored(kind: type, state: Any) -> Module:
    """A module with methods of its own, of what was pickled."""
    module = own_methods(kind)()
    module.__setstate__(state)
    return module


def _with_methods(module: Module) -> Module:
    module.__class__ = own_methods(type(module))
    return module


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
    """A replica as DataParallel makes it, whose parameters are plain attributes."""
    replica = module._replicate_for_data_parallel()
    for name, parameter in module._parameters.items():
        setattr(replica, name, parameter)
    return replica


def _prepared(module: Module) -> Module:
    """The module with an observer of its outputs, as what is to be quantised has it."""
    return _in_quantising("prepare", "default_qconfig", module)


def _prepared_to_train(module: Module) -> Module:
    """The module that takes its place to be trained for quantising, which quantises nothing yet."""
    prepared = _in_quantising("prepare_qat", "default_qat_qconfig", module)
    for part in prepared.modules():
        if hasattr(part, "disable_fake_quant"):
            part.disable_fake_quant()
    return prepared


def _in_quantising(function: str, config: str, module: Module) -> Module:
    """What becomes of a module in a container that is given to a function of quantising, with that configuration."""
    quantising: Any = quantization()
    container = nn.Sequential(module).train(module.training)
    container.qconfig = getattr(quantising, config)
    return getattr(quantising, function)(container, inplace=True)[0]


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
    """What a host makes of a module that a program makes by one of ``names``, since which release it can be; which
    clauses it is meant to make untrue, by patterns of their ids or chapters, or which of their facts, by patterns of
    ``id: fact``, with the reason, and ``before`` a release which more; and what torch says where it ``refuses`` hooks
    on it, aloud."""

    make: Make
    names: tuple[str, ...] = MODULES
    since: Release = (1, 8)
    but: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[Release, Mapping[str, str]] = field(default_factory=dict)
    refuses: str = ""


AS_MADE = dict.fromkeys(
    ("RG-01", "RG-03", "RG-06"), "it is about what registers while a module is made, and each host makes more"
)
COMPUTED = {
    "state-dict-hooks": "what is saved has other names",
    "legacy-backward-hooks": "a weight that is computed has Nodes of its own, which legacy hooks meet",
}

ITERATED = {"FW-21": "each call in training comes nearer to the singular value, which moves the last bits"}
BUFFERS = ("RG-02: what is no buffer", "RG-04: * for a buffer")
OBSERVED = {
    "state-dict-hooks": "what an observer sees is saved as well",
    "EX-10": "an observer is a module too, which hooks on all modules meet",
}

WRAPPED = dict.fromkeys(
    (
        *("global-hooks", "global-backward-hooks", "EX-10", "FW-16", "AC-04", "AC-12"),
        *("BF-16: pre-hooks", "*: *register_module_*", "B[WP]-??: global ones*", "AC-01: *, a global one"),
        "AC-0[23]: *, [12] global and *",
    ),
    "hooks on all modules meet the wrapper and the module in it; torch warns of the call that is more",
)

KINDS = {
    "own methods": Kind(_with_methods),
    "hooked before": Kind(_hooked_before),
    "parametrized": Kind(
        partial(_weighty, CHANGES["parametrized"].there),
        LAYERS,
        (1, 9),
        {**COMPUTED, "EX-10": "a parametrization is a module too, which hooks on all modules meet"},
    ),
    "parametrized, undone": Kind(partial(_there_and_back, "parametrized"), since=(1, 9)),
    "pruned": Kind(partial(_weighty, CHANGES["pruned"].there), LAYERS, but=COMPUTED),
    "pruned, undone": Kind(partial(_there_and_back, "pruned")),
    "spectral_norm": Kind(partial(_weighty, _spectral_normed), LAYERS, but={**COMPUTED, **ITERATED}),
    "spectral_norm, undone": Kind(partial(_there_and_back, "spectral_norm"), LAYERS),
    "parametrizations.spectral_norm": Kind(
        partial(_weighty, _spectral_normed_by_parametrization),
        LAYERS,
        (1, 10),  # in 1.9 its vectors come with the first call
        {**COMPUTED, **ITERATED, "EX-10": "a parametrization is a module too, which hooks on all modules meet"},
    ),
    "prepared to be quantised": Kind(_prepared, ("Linear",), but=OBSERVED),
    "prepared to be trained": Kind(_prepared_to_train, ("Linear",), but=OBSERVED),
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
            "RG-04: * for a module": "an average registers the module that it is made of",
        },
    ),
    "weight_norm": Kind(partial(_weighty, CHANGES["weight_norm"].there), LAYERS, but=COMPUTED),
    "weight_norm, undone": Kind(partial(_there_and_back, "weight_norm"), LAYERS),
    "was lazy": Kind(_was_lazy, ("Linear",), (1, 13)),
    "still lazy": Kind(
        _still_lazy,
        ("Linear",),
        (1, 13),
        dict.fromkeys(("SD-0[125]: arguments *", "SD-07: calls"), "its class is LazyLinear until it is called"),
    ),
    "fused layers": Kind(
        _fused, ("Linear",), (1, 13), {"state-dict-hooks": "what is fused has a bias, which is saved as well"}
    ),
    "deep copy": Kind(copy.deepcopy, (*LAYERS, *BY_HAND)),
    "shallow copy": Kind(copy.copy),
    "unpickled": Kind(lambda module: pickle.loads(pickle.dumps(module)), LAYERS),
    "replica": Kind(_replica, (*LAYERS, *BY_HAND), but={"state-dict-hooks": "a replica has no parameters to save"}),
    "ScriptModule": Kind(
        lambda module: torch.jit.script(module),
        LAYERS,
        but={"SD-13": "it counts calls of a hook that is refused"},
        refuses="is not supported on ScriptModules",
    ),
    "GraphModule": Kind(
        _traced,
        (*LAYERS, *BY_HAND),
        but={
            "HD-05": "a GraphModule is part of a cycle, which only the collector frees",
            "GL-15": "a GraphModule is pickled by its code, and says so",
        },
    ),
}
"""The hosts of modules by name."""


def _compiled_in_place(module: Module) -> Module:
    module.compile(backend="eager")
    return module


def _optimized(module: Module) -> Any:
    return torch.compile(module, backend="eager")


_OPTIMIZED = {
    "state-dict-hooks": "what is saved has other names",
    "RG-04: * for a module": "an OptimizedModule registers the module that it is made of",
    **WRAPPED,
}

COMPILED = {
    "OptimizedModule": Kind(_optimized, (*LAYERS, *BY_HAND), (2, 1), _OPTIMIZED),
    # By itself, since a module that torch.compile made is no longer one inside of another. Up to 2.3 it goes unnoticed
    # that hooks come and go between calls of what is compiled, as TC-02 says.
    "OptimizedModule of a container": Kind(
        _optimized,
        CONTAINERS,
        (2, 4),
        {
            **_OPTIMIZED,
            **dict.fromkeys(
                ("FW-21", "BF-05: program", "SZ-05: program"),
                "an OptimizedModule of a Sequential has no parts by number",
            ),
            "FW-08: a module inside another": "one inside of another is called as the module that it is made of",
            "U-03: in * a forward_hook that comes in a forward": "forward knows the module inside alone, without hooks",
            "LB-02: a module of one Node": "torch warns of hooks on all modules",
        },
    ),
    "Module.compile": Kind(
        _compiled_in_place,
        since=(2, 2),
        but={"HD-05": "what is compiled in place is part of a cycle, which only the collector frees"},
        before={
            (2, 4): dict.fromkeys(WRAPPED, "hooks on all modules meet the graph as well, which is called as a module")
        },
    ),
}
"""The hosts of modules that torch.compile makes, by name; with the backend that runs a graph as it is."""
