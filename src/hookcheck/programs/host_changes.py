"""What does torch do to a module that it can take back? Norms, prunings and parametrizations of its weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

from hookcheck.probe.lazy import nn, torch

GROUPS = {
    "forward": ("register_forward_pre_hook", "register_forward_hook"),
    "backward": ("register_full_backward_pre_hook", "register_full_backward_hook"),
    "state": (
        "register_state_dict_pre_hook", "_register_state_dict_hook", "register_state_dict_post_hook",
        "_register_load_state_dict_pre_hook", "register_load_state_dict_pre_hook", "register_load_state_dict_post_hook",
    ),
}  # fmt: skip
"""What registers hooks of each sort on a module; what a torch lacks is left out."""


def options_of(name: str) -> tuple[str, ...]:
    """The options that this torch has where a module registers a hook by that name; none if it lacks that."""
    parameters = signature(getattr(nn.Module, name)).parameters if hasattr(nn.Module, name) else {}
    return tuple(option for option, parameter in parameters.items() if isinstance(parameter.default, bool))


Module = Any
Release = tuple[int, int]


def offered(since: Release) -> bool:
    """Whether this torch has what came with that release."""
    return tuple(map(int, torch.__version__.split(".")[:2])) >= since


def quantization() -> Any:
    """The module of torch that quantises, which has moved."""
    moved = offered((1, 11))
    return import_module("torch.ao.quantization" if moved else "torch.quantization")


@dataclass(frozen=True)
class HostChange:
    """What is done to a module, the way back, since which release there are both, and whether the weight is the same
    parameter all the way, hooks included."""

    there: Callable[[Module], Any]
    back: Callable[[Module], Any]
    since: Release = (1, 8)
    same_weight: bool = False


def _parametrize() -> Any:
    return import_module("torch.nn.utils.parametrize")


def parametrized(module: Module, times: int = 1) -> None:
    """Computes the weight by so many parametrizations, one after the other, which change nothing."""
    for _ in range(times):
        _parametrize().register_parametrization(module, "weight", nn.Identity())


def normed(name: str, module: Module) -> None:
    """Has the parametrization of that name compute the weight."""
    getattr(import_module("torch.nn.utils.parametrizations"), name)(module)


def unparametrized(module: Module, **options: bool) -> None:
    """Takes all parametrizations of the weight off."""
    _parametrize().remove_parametrizations(module, "weight", **options)


def _of_parametrizations(name: str, since: Release, same_weight: bool = True) -> HostChange:
    return HostChange(partial(normed, name), unparametrized, since, same_weight)


CHANGES = {
    "parametrized": HostChange(parametrized, unparametrized, (1, 9), same_weight=True),
    "parametrized twice": HostChange(partial(parametrized, times=2), unparametrized, (1, 9), same_weight=True),
    "parametrized, back to the original": HostChange(
        parametrized, partial(unparametrized, leave_parametrized=False), (1, 9), same_weight=True
    ),
    "parametrizations.spectral_norm": _of_parametrizations("spectral_norm", (1, 9)),
    "parametrizations.orthogonal": _of_parametrizations("orthogonal", (1, 10)),
    "parametrizations.weight_norm": _of_parametrizations("weight_norm", (2, 1), same_weight=False),
    "weight_norm": HostChange(lambda part: nn.utils.weight_norm(part), lambda part: nn.utils.remove_weight_norm(part)),
    "spectral_norm": HostChange(
        lambda part: nn.utils.spectral_norm(part), lambda part: nn.utils.remove_spectral_norm(part)
    ),
    "pruned": HostChange(
        lambda part: import_module("torch.nn.utils.prune").identity(part, "weight"),
        lambda part: import_module("torch.nn.utils.prune").remove(part, "weight"),
        same_weight=True,
    ),
}
"""What changes a module in place and can be taken back, by name."""
