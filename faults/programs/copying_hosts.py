"""Faults that only some host shows: what it loses where it is copied or pickled, and what else it is alone to lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

from ..engine import Fault, replaced
from .clauses_on_hosts import (
    MODULE,
    _is_traced,
    _where,
    is_marked,
    marking_copies,
    marking_unpickled,
    on_hosts,
    where_marked,
)
from .hosts import _copied_without_hooks
from .serialization import without_hooks
from .state_dict_hooks import Patch

OPTIMIZER = torch.optim.Optimizer


def _restored_without(test: Callable[[Any, dict[str, Any]], bool]) -> Patch:
    """What becomes of a module by copy, deepcopy or pickle has no hooks, if ``test(module, state)`` says so."""

    def make(original: Any) -> Any:
        def restore(self: Any, state: dict[str, Any]) -> None:
            original(self, without_hooks(state) if test(self, state) else state)

        return restore

    return replaced(MODULE, "__setstate__", make)


def _holding(table: str, name: str) -> Callable[[], Patch]:
    """The same of what holds something by that name in a table."""
    return lambda: _restored_without(lambda module, state: name in state.get(table, ()))


def _is_own(module: Any) -> bool:
    """Whether its class has methods of its own."""
    return "__reduce__" in vars(type(module))


def _is_own_and(kind: type) -> Callable[[Any], bool]:
    return lambda module: isinstance(module, kind) and _is_own(module)


def _past_attention() -> Patch:
    """An encoder layer with methods of its own takes no heed of hooks on its attention."""

    def make(original: Any) -> Any:
        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            attention = self.self_attn
            hooks = attention._forward_hooks
            attention._forward_hooks = type(hooks)() if _is_own(self) else hooks
            try:
                return original(self, *args, **kwargs)
            finally:
                attention._forward_hooks = hooks

        return forward

    return replaced(nn.TransformerEncoderLayer, "forward", make)


def _deaf_tensors() -> Patch:
    """A hook on a tensor that is marked does nothing."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any) -> Any:
            return original(self, (lambda grad: None) if is_marked(self) else hook)

        return register

    return replaced(torch.Tensor, "register_hook", make)


@contextmanager
def _outputs_of_traces_deaf() -> Iterator[None]:
    """A tensor hook on what a GraphModule gives does nothing."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            output = original(self, *args, **kwargs)
            if _is_traced(self):
                vars(output)["marked"] = True
            return output

        return call

    with replaced(MODULE, "_call_impl", make), _deaf_tensors():
        yield


@contextmanager
def _parameters_of_copies_deaf() -> Iterator[None]:
    """A tensor hook on a parameter that was copied does nothing."""

    def make(original: Any) -> Any:
        def copied(self: Any, memo: Any) -> Any:
            new = original(self, memo)
            vars(new)["marked"] = True
            return new

        return copied

    with replaced(nn.Parameter, "__deepcopy__", make), _deaf_tensors():
        yield


def _pickled_uncompiled(original: Any) -> Any:
    """What is compiled in place is pickled without its hooks."""

    def state(self: Any) -> dict[str, Any]:
        given = original(self)
        return given if self._compiled_call_impl is None else without_hooks(given)

    return state


def _moved_anew(original: Any) -> Any:
    """Moving or casting a module that is marked gives it other parameters."""

    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        for name, parameter in self._parameters.items():
            if is_marked(self) and parameter is not None:
                self._parameters[name] = nn.Parameter(parameter.detach().clone())
        return result

    return apply


@contextmanager
def _copies_moved_anew() -> Iterator[None]:
    with marking_copies(MODULE, shallow=False), replaced(MODULE, "_apply", _moved_anew):
        yield


def _scheduled(change: Callable[[Any], None]) -> Patch:
    """A StepLR does something to its optimizer."""

    def make(original: Any) -> Any:
        def init(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(self, optimizer, *args, **kwargs)
            change(optimizer)

        return init

    return replaced(StepLR, "__init__", make)


def _losing_hooks_by_errors(optimizer: Any) -> None:
    """Has an optimizer lose its post-hooks as its step raises."""
    step = optimizer.step

    def stepping(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return step(*args, **kwargs)
        except Exception:
            self._optimizer_step_post_hooks.clear()
            raise

    optimizer.step = MethodType(stepping, optimizer)


def _lbfgs_wrapped_again(optimizer: Any) -> None:
    """Has the step of an LBFGS call the hooks once more."""
    if isinstance(optimizer, torch.optim.LBFGS):
        optimizer.step = MethodType(OPTIMIZER.profile_hook_step(type(optimizer).step), optimizer)


def _foreach_restored_deaf() -> Patch:
    """An optimizer whose options say foreach takes no step post-hooks once it was copied or pickled."""

    def make(original: Any) -> Any:
        def restore(self: Any, state: Any) -> None:
            original(self, state)
            if self.defaults.get("foreach"):
                self.register_step_post_hook = lambda hook: None

        return restore

    return replaced(OPTIMIZER, "__setstate__", make)


FAULTS: tuple[Fault, ...] = (
    *(
        on_hosts(f"{host} loses hooks where it is copied", _holding(table, name), host)
        for host, table, name in (
            ("pruned", "_buffers", "weight_mask"),
            ("weight_norm", "_parameters", "weight_g"),
            ("spectral_norm", "_buffers", "weight_u"),
            ("prepared to be quantised", "_modules", "activation_post_process"),
            ("prepared to be trained", "_modules", "weight_fake_quant"),
        )
    ),
    on_hosts(
        "what has methods of its own loses hooks where it is copied",
        lambda: _restored_without(lambda module, state: _is_own(module)),
        "own methods",
    ),
    on_hosts(
        "a replica loses hooks where it is copied",
        lambda: _restored_without(lambda module, state: "_is_replica" in state),
        "replica",
    ),
    *(
        on_hosts(
            f"a copy of {what} has no hooks",
            lambda marking=marking: where_marked(marking(), _restored_without(lambda module, state: "marked" in state)),
            host,
        )
        for what, host, marking in (
            ("a deep copy", "deep copy", lambda: marking_copies(MODULE, shallow=False)),
            ("a shallow copy", "shallow copy", lambda: marking_copies(MODULE, shallow=True)),
            ("what was unpickled", "unpickled", lambda: marking_unpickled(MODULE)),
        )
    ),
    on_hosts("a copy of what is parametrized has no forward hooks", _copied_without_hooks, "parametrized"),
    on_hosts("parameters of a deep copy take no hooks", _parameters_of_copies_deaf, "deep copy"),
    on_hosts("what a GraphModule gives takes no hooks", _outputs_of_traces_deaf, "GraphModule"),
    on_hosts(
        "a shallow copy takes no full backward hooks",
        lambda: where_marked(marking_copies(MODULE, shallow=True), _where(is_marked, "register_full_backward_hook")),
        "shallow copy",
    ),
    on_hosts("an encoder with methods of its own goes past hooks on its attention", _past_attention, "own methods"),
    on_hosts(
        "a loss with methods of its own takes no full backward hooks",
        lambda: _where(_is_own_and(nn.MSELoss), "register_full_backward_hook"),
        "own methods",
    ),
    on_hosts(
        "what has no size yet takes no forward hooks if it has methods of its own",
        lambda: _where(_is_own_and(nn.LazyLinear)),
        "own methods",
    ),
    on_hosts(
        "what is compiled in place is pickled without its hooks",
        lambda: replaced(MODULE, "__getstate__", _pickled_uncompiled),
        "Module.compile",
        clause="HO-07",
        since="2.4",
    ),
    on_hosts("a deep copy gets other parameters as it is moved", _copies_moved_anew, "deep copy"),
    on_hosts(
        "an LBFGS under a scheduler calls hooks twice",
        lambda: _scheduled(_lbfgs_wrapped_again),
        "with StepLR",
        clause="HO-04",
    ),
    on_hosts(
        "under a scheduler hooks are lost as a step raises",
        lambda: _scheduled(_losing_hooks_by_errors),
        "with StepLR",
        clause="HO-04",
    ),
    on_hosts("foreach takes no hooks once it was pickled", _foreach_restored_deaf, "foreach", clause="HO-04"),
)
