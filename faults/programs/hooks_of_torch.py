"""Faults in the hooks that torch registers itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from typing import Any

from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrize, prune
from torch.nn.utils.spectral_norm import SpectralNorm, SpectralNormLoadStateDictPreHook, SpectralNormStateDictHook
from torch.nn.utils.weight_norm import WeightNorm

from ..engine import Fault, replaced
from ..registering import edited

Patch = AbstractContextManager[None]


def _undone_for_all(owner: Any, name: str, of: type) -> Patch:
    """Has undoing for one tensor take the pre-hooks for the others off as well."""

    def make(original: Any) -> Any:
        def undo(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            for key in [key for key, hook in module._forward_pre_hooks.items() if isinstance(hook, of)]:
                del module._forward_pre_hooks[key]
            return result

        return undo

    return replaced(owner, name, make)


def _twice(of: Any) -> Patch:
    """Has a norm not see that it is there already."""

    def make(original: Any) -> Any:
        def apply(module: Any, *args: Any, **kwargs: Any) -> Any:
            hidden, module._forward_pre_hooks = module._forward_pre_hooks, type(module._forward_pre_hooks)()
            try:
                return original(module, *args, **kwargs)
            except AttributeError:  # what it computes is no parameter any more
                return None
            finally:
                hidden.update(module._forward_pre_hooks)
                module._forward_pre_hooks = hidden

        return staticmethod(apply)

    return replaced(of, "apply", make)


def _inert(owner: Any, name: str) -> Patch:
    """A method that does nothing."""
    return replaced(owner, name, lambda original: lambda self, *args, **kwargs: None)


def _masks_are_not_saved() -> Patch:
    def make(original: Any) -> Any:
        def register(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            return original(self, name, *args, **{**kwargs, "persistent": not name.endswith("_mask")})

        return register

    return replaced(nn.Module, "register_buffer", make)


def _only_the_last_method_counts() -> Patch:
    def make(original: Any) -> Any:
        def compute(self: Any, t: Any, default_mask: Any) -> Any:
            return original(self, t, default_mask * 0 + 1)

        return compute

    return replaced(prune.PruningContainer, "compute_mask", make)


def _keeps_lazy() -> Patch:
    """Leaves a lazy module of its class."""

    def make(original: Any) -> Any:
        def infer(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
            lazy = module.__class__
            result = original(self, module, *args, **kwargs)
            module.__class__ = lazy
            return result

        return infer

    return replaced(LazyModuleMixin, "_infer_parameters", make)


def _wrapper() -> Any:
    return import_module("torch.distributed.algorithms._checkpoint.checkpoint_wrapper")


def _passed_by(original: Callable[..., Any]) -> Callable[..., Any]:
    """Calls ``forward`` of the wrapped module, and no hook of it."""
    return lambda self, *args, **kwargs: self._checkpoint_wrapped_module.forward(*args, **kwargs)


def _in_backward(*changes: tuple[str, str]) -> Callable[[], Patch]:
    """Edits what applies an optimizer in backward."""

    def patch() -> Patch:
        name = "_apply_optimizer_in_backward"
        return _both(import_module("torch.distributed.optim.apply_optimizer_in_backward"), name, *changes)

    return patch


@contextmanager
def _both(owner: Any, name: str, *changes: tuple[str, str]) -> Iterator[None]:
    """Edits a function, for its package as well, which offers it too."""
    with edited(owner, name, *changes):
        changed = getattr(owner, name)
        with replaced(import_module(owner.__name__.rpartition(".")[0]), name, lambda original: changed):
            yield


OF_STATES = "isinstance(hook, SpectralNormStateDictHook)"


def _without_a_norm(*changes: tuple[str, str]) -> Patch:
    """Edits what takes a spectral norm off."""
    return _both(import_module("torch.nn.utils.spectral_norm"), "remove_spectral_norm", *changes)


def _quantize() -> Any:
    return import_module("torch.ao.quantization.quantize")


def _observers_come_last() -> Patch:
    def make(original: Any) -> Any:
        def register(module: Any, pre_hook: bool = False) -> None:
            original(module, pre_hook)
            table = module._forward_pre_hooks if pre_hook else module._forward_hooks
            table.move_to_end(next(iter(table)))

        return register

    return replaced(_quantize(), "_register_activation_post_process_hook", make)


def _swapped_with_observers() -> Patch:
    """Has the hook that observes go into what a module is converted to."""

    def make(original: Any) -> Any:
        def swap(module: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(module, *args, **kwargs)
            if result is not module:
                result._forward_hooks.update(module._forward_hooks)
            return result

        return swap

    return replaced(_quantize(), "swap_module", make)


def _list_without_hooks() -> Patch:
    """Where another parametrization comes to a list, that loses its hooks."""
    parametrize = import_module("torch.nn.utils.parametrize")

    def make(original: Any) -> Any:
        def register(module: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            result = original(module, name, *args, **kwargs)
            if len(module.parametrizations[name]) > 1:
                module.parametrizations[name]._forward_hooks.clear()
            return result

        return register

    return replaced(parametrize, "register_parametrization", make)


FAULTS = (
    Fault("parametrizations: their list loses its hooks", _list_without_hooks, ("HT-12",), kinds=(), since="1.9"),
    Fault(
        "parametrizations: nothing is cached",
        lambda: replaced(import_module("torch.nn.utils.parametrize"), "cached", lambda _: nullcontext),
        ("HT-12",),
        kinds=(),
        since="1.9",
    ),
    Fault(
        "weight_norm is undone for every tensor",
        lambda: _undone_for_all(nn.utils, "remove_weight_norm", WeightNorm),
        ("HT-01",),
        kinds=(),
    ),
    Fault(
        "pruning is undone for every tensor",
        lambda: _undone_for_all(prune, "remove", prune.BasePruningMethod),
        ("HT-01",),
        kinds=(),
    ),
    Fault("weight_norm is put on a tensor twice", lambda: _twice(WeightNorm), ("HT-02",), kinds=()),
    Fault("pruning forgets what was pruned before", _only_the_last_method_counts, ("HT-03",), kinds=()),
    Fault("pruning saves no masks", _masks_are_not_saved, ("HT-03",), kinds=()),
    Fault(
        "spectral_norm saves no version",
        lambda: _inert(SpectralNormStateDictHook, "__call__"),
        ("HT-04",),
        kinds=(),
    ),
    Fault(
        "spectral_norm does not divide",
        lambda: replaced(
            SpectralNorm,
            "compute_weight",
            lambda original: lambda self, module, do_power_iteration: getattr(module, f"{self.name}_orig") * 1,
        ),
        ("HT-01",),
        kinds=(),
    ),
    Fault(
        "the newer weight_norm loads the older one's state at the root alone",
        lambda: edited(
            import_module("torch.nn.utils.parametrizations"),
            "weight_norm",
            ('f"{prefix}{name}_g"', 'f"{name}_g"'),
            ('f"{prefix}{name}_v"', 'f"{name}_v"'),
        ),
        ("HT-04",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "spectral_norm loads no state of its first form",
        lambda: _inert(SpectralNormLoadStateDictPreHook, "__call__"),
        ("HT-04",),
        kinds=(),
    ),
    Fault(
        "a spectral_norm that is gone is in states still",
        lambda: _without_a_norm(("del module._state_dict_hooks[k]", "pass")),
        ("HT-01",),
        kinds=(),
    ),
    Fault(
        "spectral_norm of another tensor is in states no longer",
        lambda: _without_a_norm((f"{OF_STATES} and hook.fn.name == name", OF_STATES)),
        ("HT-01",),
        kinds=(),
    ),
    Fault("lazy modules stay lazy", _keeps_lazy, ("HT-05",), kinds=(), since="1.13"),
    Fault(
        "a lazy module's first call uses up what makes it ordinary, though it fails",
        lambda: edited(
            LazyModuleMixin,
            "_infer_parameters",
            ("module.initialize_parameters", "module._initialize_hook.remove()\n    module.initialize_parameters"),
        ),
        ("HT-05",),
        kinds=(),
        since="2.2",
    ),
    Fault(
        "lazy modules keep the handles of what made them lazy",
        lambda: edited(LazyModuleMixin, "_infer_parameters", ("delattr(", "(lambda *_: None)(")),
        ("HT-05",),
        kinds=(),
        since="2.2",
    ),
    Fault(
        "lazy modules load no sizes",
        lambda: _inert(LazyModuleMixin, "_lazy_load_hook"),
        ("HT-05",),
        kinds=(),
        since="1.13",
    ),
    Fault(
        "checkpoint_wrapper shows in states",
        lambda: replaced(
            _wrapper().ActivationWrapper,
            "_post_state_dict_hook",
            lambda original: staticmethod(lambda module, state, *args: state),
        ),
        ("HT-06",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "checkpoint_wrapper passes by the module's hooks",
        lambda: replaced(_wrapper().CheckpointWrapper, "forward", _passed_by),
        ("HT-06",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "an optimizer in backward steps twice",
        _in_backward(("opt.step()", "opt.step(); opt.step()")),
        ("HT-07",),
        (),
        "2.0",
    ),
    Fault(
        "an optimizer in backward leaves the gradient",
        _in_backward(("param.grad = None", "pass")),
        ("HT-07",),
        (),
        "2.0",
    ),
    Fault(
        "an optimizer in backward steps before the gradient is there",
        _in_backward(("param_to_acc_grad_map[param].register_hook", "param.register_hook")),
        ("HT-07",),
        (),
        "2.0",
    ),
    Fault(
        "the first optimizer in backward alone steps",
        _in_backward(("in param._in_backward_optimizers:", "in param._in_backward_optimizers[:1]:")),
        ("HT-07",),
        (),
        "2.0",
    ),
    Fault("observers come after a user's hooks", _observers_come_last, ("HT-08",), kinds=(), since="2.0"),
    Fault("observers go into what is converted", _swapped_with_observers, ("HT-08",), kinds=(), since="2.0"),
    Fault(
        "observers stay on what is not converted",
        lambda: replaced(_quantize(), "_remove_activation_post_process", lambda original: lambda module: None),
        ("HT-08",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "observers hand nothing on",
        lambda: replaced(
            _quantize(),
            "_observer_forward_hook",
            lambda original: wraps(original)(lambda self, given, output: (original(self, given, output), None)[1]),
        ),
        ("HT-08",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "spectral_norm moves its vectors in eval as well",
        lambda: edited(SpectralNorm, "__call__", ("do_power_iteration=module.training", "do_power_iteration=True")),
        ("HT-09",),
        kinds=(),
    ),
    Fault(
        "spectral_norm computes with vectors that the next call writes to",
        lambda: edited(SpectralNorm, "compute_weight", ("if self.n_power_iterations > 0:", "if False:")),
        ("HT-09",),
        kinds=(),
    ),
    Fault(
        "what was cached of a parametrization counts for all modules",
        lambda: edited(parametrize, "_inject_property", ("key = (id(module), tensor_name)", "key = tensor_name")),
        ("HT-12",),
        kinds=(),
    ),
)
