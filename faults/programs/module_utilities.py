"""Faults in what utilities of modules do to hooks, and in those that are made of hooks."""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from typing import Any

from torch.nn import Module, Parameter, RNNBase, Sequential
from torch.nn.utils import prune
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.optim import swa_utils

from ..engine import Fault, replaced
from ..registering import edited
from .state_dict_hooks import Patch, together


def _dropping(owner: Any, name: str) -> Patch:
    """Takes the forward hooks off the module that a method or function is first given."""

    def make(original: Any) -> Any:
        def act(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            module._forward_hooks.clear()
            return result

        return act

    return replaced(owner, name, make)


def _apply_from_above(self: Any, act: Any) -> Any:
    act(self)
    for child in self.children():
        child.apply(act)
    return self


def _input_fn_is_ignored() -> Patch:
    def make(original: Any) -> Any:
        def distribute(
            module: Any, mesh: Any, partition: Any = None, input_fn: Any = None, output_fn: Any = None
        ) -> Any:
            return original(module, mesh, partition, None, output_fn)

        return distribute

    return replaced(import_module("torch.distributed.tensor"), "distribute_module", make)


def _sliced(change: Any) -> Patch:
    """Has a slice of a Sequential be what ``change(slice, whole)`` makes of it."""

    def make(original: Any) -> Any:
        def get(self: Any, index: Any) -> Any:
            part = original(self, index)
            return change(part, self) if isinstance(index, slice) else part

        return get

    return replaced(Sequential, "__getitem__", make)


def _with_hooks_of(part: Any, whole: Any) -> Any:
    part._forward_hooks = whole._forward_hooks
    return part


def _parametrize() -> Any:
    return import_module("torch.nn.utils.parametrize")


def _hooks_called(original: Any) -> Any:
    """Averaging calls the forward hooks of the model that is averaged."""

    def update(self: Any, model: Any) -> None:
        original(self, model)
        for hook in model._forward_hooks.values():
            hook(model, (), None)

    return update


def _averages_lose_hooks(original: Any) -> Any:
    """Averaging takes the model anew, without the hooks that the average has."""

    def update(self: Any, model: Any) -> None:
        original(self, model)
        for module in self.modules():
            module._forward_hooks.clear()

    return update


def _recurrent_layers_take_parameters_alone() -> Patch:
    """The list of weights of a recurrent layer goes without what has the name of one and is no parameter."""

    def putting(original: Any) -> Any:
        def put(self: Any, name: str, value: Any) -> None:
            listed = name in vars(self).get("_flat_weights_names", ()) and not isinstance(value, Parameter)
            (Module.__setattr__ if listed else original)(self, name, value)

        return put

    patches = [replaced(RNNBase, "__setattr__", putting)]
    if hasattr(RNNBase, "_weights_have_changed"):
        patches.append(replaced(RNNBase, "_weights_have_changed", lambda original: lambda self: False))
    return together(*patches)


FAULTS = (
    Fault("conversions drop a module's hooks", lambda: _dropping(Module, "_apply"), ("MU-01", "MU-02"), kinds=()),
    Fault("freezing drops a module's hooks", lambda: _dropping(Module, "requires_grad_"), ("MU-02",), kinds=()),
    Fault(
        "apply comes to parents first",
        lambda: replaced(Module, "apply", lambda original: _apply_from_above),
        ("MU-03",),
        kinds=(),
    ),
    Fault("a slice copies the modules", lambda: _sliced(lambda part, whole: deepcopy(part)), ("MU-06",), kinds=()),
    Fault("a slice takes the container's hooks", lambda: _sliced(_with_hooks_of), ("MU-06",), kinds=()),
    Fault(
        "parametrizing drops a module's hooks",
        lambda: _dropping(_parametrize(), "_inject_new_class"),
        ("MU-04",),
        kinds=(),
        since="1.9",
    ),
    Fault(
        "parametrizing calls no hooks of the parametrization",
        lambda: replaced(
            _parametrize().ParametrizationList,
            "forward",
            lambda original: lambda self: self[0].forward(self.original),
        ),
        ("MU-05",),
        kinds=(),
        since="1.9",
    ),
    Fault(
        "pruning computes no weight",
        lambda: replaced(prune.BasePruningMethod, "__call__", lambda original: lambda self, module, args: None),
        ("PN-01",),
        kinds=(),
    ),
    Fault(
        "pruning knows no pruned module",
        lambda: replaced(prune, "is_pruned", lambda original: lambda module: False),
        ("PN-01",),
        kinds=(),
    ),
    Fault(
        "spectral_norm computes no weight",
        lambda: replaced(SpectralNorm, "__call__", lambda original: lambda self, module, args: None),
        ("PN-02",),
        kinds=(),
    ),
    Fault(
        "recurrent layers take no weight that a pre-hook computes",
        _recurrent_layers_take_parameters_alone,
        ("PN-02",),
        kinds=(),
    ),
    Fault("distribute_module ignores input_fn", _input_fn_is_ignored, ("DS-17",), kinds=(), since="2.5"),
    Fault("taking new memory drops a module's hooks", lambda: _dropping(Module, "to_empty"), ("MU-01",), (), "1.10"),
    Fault("a dtype given to type drops a module's hooks", lambda: _dropping(Module, "type"), ("MU-01",), kinds=()),
    Fault(
        "the second parametrization of a weight is called past its hooks",
        lambda: edited(
            _parametrize().ParametrizationList, "forward", ("self[curr_idx](x)", "self[curr_idx].forward(x)")
        ),
        ("MU-05",),
        (),
        "1.9",
    ),
    Fault(
        "the list of parametrizations is called past its hooks",
        lambda: edited(_parametrize(), "_inject_property", ("parametrization()", "parametrization.forward()")),
        ("MU-05",),
        (),
        "1.9",
    ),
    Fault(
        "what is cached stays for the next time",
        lambda: edited(_parametrize(), "cached", ("_cache = {}", "pass")),
        ("MU-04",),
        (),
        "1.9",
    ),
    Fault(
        "an error within cached leaves the cache on",
        lambda: edited(_parametrize(), "cached", ("try:", "if True:"), ("finally:", "if True:")),
        ("MU-05",),
        (),
        "1.9",
    ),
    Fault(
        "a sequence times a number is made of copies",
        lambda: replaced(Sequential, "__mul__", lambda original: lambda self, number: deepcopy(original(self, number))),
        ("MU-06",),
        (),
        "2.0",
    ),
    Fault(
        "update_bn calls a model past its hooks",
        lambda: edited(swa_utils, "update_bn", ("model(input)", "model.forward(input)")),
        ("MU-07",),
        kinds=(),
    ),
    Fault(
        "update_bn leaves the momentum as it needs it",
        lambda: edited(swa_utils, "update_bn", ("bn_module.momentum = momenta[bn_module]", "pass")),
        ("MU-07",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "averaging calls hooks",
        lambda: replaced(swa_utils.AveragedModel, "update_parameters", _hooks_called),
        ("MU-07",),
        kinds=(),
    ),
    Fault(
        "averaging drops hooks of the average",
        lambda: replaced(swa_utils.AveragedModel, "update_parameters", _averages_lose_hooks),
        ("MU-07",),
        kinds=(),
    ),
    Fault(
        "a parametrization of two tensors is called past its hooks",
        lambda: edited(
            _parametrize().ParametrizationList, "forward", ("self[0](*originals)", "self[0].forward(*originals)")
        ),
        ("MU-05",),
        (),
        "1.10",
    ),
)
