"""Faults on each axis of situations: hosts, contexts, inputs and optimizers that lose hooks, and all that is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from ..engine import Fault, calling, engine, fetched, replaced
from .interactions import _called_plainly, _in_backward_only, _looked_up_late, _once

MODULE, HANDLE = nn.Module, torch.utils.hooks.RemovableHandle
CALLS, STATE, REGISTRATION, GRAPH, OPTIMIZERS = (f"SI-0{number}" for number in range(1, 6))
TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")


def _forgetting(owner: Any, name: str, tables: tuple[str, ...] = TABLES) -> AbstractContextManager[None]:
    """A method of modules that empties tables of hooks."""

    def make(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            for table in tables:
                vars(self).get(table, {}).clear()
            return original(self, *args, **kwargs)

        return method

    return replaced(owner, name, make)


def _within(mode: Callable[[], bool]) -> Callable[[], AbstractContextManager[None]]:
    """Calls modules without hooks in a mode."""
    return lambda: _called_plainly(lambda module: mode())


def _dispatching() -> bool:
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    return _get_current_dispatch_mode() is not None


def _in_a_function_mode() -> bool:
    return torch._C._len_torch_function_stack() > 0


def _given(test: Callable[[Any], bool]) -> AbstractContextManager[None]:
    """Calls modules without hooks where their first argument is such."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return (self.forward if args and test(args[0]) else original.__get__(self))(*args, **kwargs)

        return call

    return replaced(MODULE, "__call__", make)


@contextmanager
def _undone_for_good() -> Iterator[None]:
    """Calls modules without hooks once a norm was taken off them."""

    def make(original: Any) -> Any:
        def remove(module: Any, *args: Any) -> Any:
            vars(module)["undone"] = True
            return original(module, *args)

        return remove

    with replaced(nn.utils, "remove_weight_norm", make), _called_plainly(lambda module: "undone" in vars(module)):
        yield


def _plain(original: Any) -> Any:
    """A call of the host that goes past its hooks."""
    return lambda self, *args, **kwargs: self.forward(*args, **kwargs)


def _without_exit(original: Any) -> Any:
    return lambda self, *_: None


def _at_once(original: Any) -> Any:
    """A handle that cannot be used again once it removed its hook."""

    def remove(self: Any) -> None:
        del self.hooks_dict_ref()[self.id]

    return remove


def _detached(original: Any) -> Any:
    """A handle that comes from a copy removes nothing."""

    def restore(self: Any, state: Any) -> None:
        original(self, state)
        self.hooks_dict_ref = lambda: None

    return restore


def _held(original: Any) -> Any:
    """What registers a hook keeps it for ever."""
    alive: list[Any] = []

    def register(self: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
        alive.append(hook)
        return original(self, hook, *args, **kwargs)

    return register


@contextmanager
def _of_one_thread() -> Iterator[None]:
    """Calls full hooks in the thread alone that registers them."""
    registering_thread = threading.get_ident()
    with calling(lambda hook, *given: hook(*given) if threading.get_ident() == registering_thread else None):
        yield


def _swallowed(hook: Any, *given: Any) -> Any:
    """A full hook whose error is lost."""
    try:
        return hook(*given)
    except Exception:
        return None


def _of_another_type(hook: Any, *given: Any) -> Any:
    """A full hook whose error becomes another."""
    try:
        return hook(*given)
    except Exception as error:
        raise RuntimeError(str(error)) from None


def _gone_after_an_error(module: Any, hooks: list[Any]) -> list[Any]:
    """An error of a full hook takes all hooks of the module away."""

    def guarded(hook: Any) -> Any:
        def call(*given: Any) -> Any:
            try:
                return hook(*given)
            except BaseException:
                module._backward_hooks.clear()
                raise

        return call

    return [guarded(hook) for hook in hooks]


def _past(table: str) -> Callable[[Any], Any]:
    """A method of optimizers that does not see a table of its hooks."""

    def make(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            hooks, vars(self)[table] = vars(self)[table], {}
            try:
                return original(self, *args, **kwargs)
            finally:
                vars(self)[table] = hooks

        return method

    return make


def _step_hooks(change: Callable[[Any, Any], Any]) -> AbstractContextManager[None]:
    """Registers ``change(optimizer, hook)`` where a hook on the step of an optimizer is registered."""

    def make(original: Any) -> Any:
        return lambda self, hook: original(self, change(self, hook))

    stack = ExitStack()
    for name in ("register_step_pre_hook", "register_step_post_hook"):
        stack.enter_context(replaced(torch.optim.Optimizer, name, make))
    return stack


def _state_hooks_after_an_error(original: Any) -> Any:
    """Saving swallows the error of a hook."""

    def save(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except Exception:
            return {}

    return save


def _tensor(change: Callable[[Any, Any], Any]) -> AbstractContextManager[None]:
    """Registers ``change(tensor, hook)`` where a hook on a tensor is registered."""

    def make(original: Any) -> Any:
        return lambda self, hook: original(self, change(self, hook))

    return replaced(torch.Tensor, "register_hook", make)


def _unless(test: Callable[[Any], bool]) -> Callable[[Any, Any], Any]:
    """A hook that is silent where its owner is such."""
    return lambda owner, hook: lambda *given: None if test(owner) else hook(*given)


def _as_it_was(tensor: Any, hook: Any) -> Any:
    """A hook that is silent once the result that it is on was written to."""
    version = tensor._version
    return lambda *given: hook(*given) if tensor.is_leaf or tensor._version == version else None


@contextmanager
def _silent_once_asked_for_data() -> Iterator[None]:
    """A hook on an input is silent once its ``data`` was asked for, by which it is written to."""
    data = torch.Tensor.data

    def get(self: Any) -> Any:
        vars(self)["asked"] = not isinstance(self, nn.Parameter)
        return data.__get__(self)

    prop = property(get, lambda self, value: data.__set__(self, value))
    with replaced(torch.Tensor, "data", lambda original: prop), _tensor(_unless(lambda t: vars(t).get("asked", False))):
        yield


def _node(original: Any) -> Any:
    """Asks for the accumulating Node anew, of another tensor of the same data."""
    return lambda tensor: original(tensor.detach().requires_grad_())


def _unhooked_buffer(original: Any) -> Any:
    return lambda self, name, tensor: self._buffers.update({name: tensor})


def _fault(what: str, patch: Callable[[], AbstractContextManager[None]], *clauses: str, since: str = "2.1") -> Fault:
    return Fault(f"situations: {what}", patch, clauses, since=since)


FAULTS = (
    _fault(
        "a lazy module forgets its hooks as it infers its shapes",
        lambda: _forgetting(nn.LazyLinear, "initialize_parameters"),
        CALLS,
    ),
    _fault("a GraphModule is called past its hooks", lambda: replaced(torch.fx.GraphModule, "__call__", _plain), CALLS),
    _fault("DataParallel is called past its hooks", lambda: replaced(nn.DataParallel, "__call__", _plain), CALLS),
    _fault("load_state_dict forgets hooks", lambda: _forgetting(MODULE, "load_state_dict"), CALLS),
    _fault(
        "load_state_dict forgets hooks on the state",
        lambda: _forgetting(MODULE, "load_state_dict", ("_state_dict_hooks",)),
        STATE,
    ),
    _fault("a cast forgets hooks", lambda: _forgetting(MODULE, "_apply"), CALLS),
    _fault(
        "a cast forgets hooks on the state",
        lambda: _forgetting(MODULE, "_apply", ("_load_state_dict_pre_hooks",)),
        STATE,
    ),
    _fault("eval forgets hooks", lambda: _forgetting(MODULE, "train"), CALLS),
    _fault("freezing forgets hooks", lambda: _forgetting(MODULE, "requires_grad_"), CALLS),
    _fault("sharing memory forgets hooks", lambda: _forgetting(MODULE, "share_memory"), CALLS),
    _fault("a dispatch mode loses hooks", _within(_dispatching), CALLS),
    _fault("anomaly detection loses hooks", _within(torch.is_anomaly_enabled), CALLS),
    _fault(
        "a level of forward AD loses hooks",
        _within(lambda: torch.autograd.forward_ad._current_level >= 0),
        CALLS,
    ),
    _fault(
        "hooks on saved tensors lose hooks on modules",
        _within(lambda: bool(torch._C._autograd._saved_tensors_hooks_is_enabled()) is False),
        CALLS,
    ),
    _fault("a function mode loses hooks", _within(_in_a_function_mode), CALLS),
    _fault("a subclass of Tensor loses hooks", lambda: _given(lambda x: type(x).__name__ == "Sub"), CALLS),
    _fault(
        "a tensor with its own functions loses hooks", lambda: _given(lambda x: type(x).__name__ == "Handling"), CALLS
    ),
    _fault("a module whose norm was undone loses hooks", _undone_for_good, CALLS),
    _fault("a Parameter as the input loses hooks", lambda: _given(lambda x: isinstance(x, nn.Parameter)), CALLS),
    _fault("a negative view loses hooks", lambda: _given(torch.is_neg), CALLS),
    _fault("large strides lose hooks", lambda: _given(lambda x: 0 not in x.stride() and x.stride()[0] > 1), CALLS),
    _fault("an expanded input loses hooks", lambda: _given(lambda x: x.dim() > 0 and x.stride()[0] == 0), CALLS),
    _fault("three dimensions lose hooks", lambda: _given(lambda x: x.dim() == 3), CALLS),
    _fault("a hook on a subclass is silent", lambda: _tensor(_unless(lambda t: type(t).__name__ == "Sub")), GRAPH),
    _fault("a hook on an expanded tensor is silent", lambda: _tensor(_unless(lambda t: t.stride() == (0, 0))), GRAPH),
    _fault("a hook on what is written to meanwhile is silent", lambda: _tensor(_as_it_was), GRAPH),
    _fault("a hook on an input is silent once its data was asked for", _silent_once_asked_for_data, GRAPH),
    _fault(
        "a multi-grad hook asks for another Node",
        lambda: replaced(torch.autograd.graph, "_get_grad_fn_or_grad_acc", _node),
        GRAPH,
        since="2.4",
    ),
    _fault(
        "leaving a handle as a context removes nothing",
        lambda: replaced(HANDLE, "__exit__", _without_exit),
        STATE,
        GRAPH,
    ),
    _fault("removing twice raises", lambda: replaced(HANDLE, "remove", _at_once), STATE, GRAPH),
    _fault("a handle that was copied removes nothing", lambda: replaced(HANDLE, "__setstate__", _detached), STATE),
    _fault("a forward hook is kept for ever", lambda: replaced(MODULE, "register_forward_hook", _held), CALLS),
    _fault(
        "a hook on the state is kept for ever",
        lambda: replaced(MODULE, "register_load_state_dict_post_hook", _held),
        STATE,
    ),
    _fault("a tensor hook is kept for ever", lambda: replaced(torch.Tensor, "register_hook", _held), GRAPH),
    _fault(
        "a step hook is kept for ever",
        lambda: replaced(torch.optim.Optimizer, "register_step_pre_hook", _held),
        OPTIMIZERS,
    ),
    _fault("full hooks are those of now", lambda: engine("__init__", _looked_up_late), CALLS),
    _fault("full hooks run in one backward of a graph", lambda: engine("__init__", _once), CALLS),
    _fault("full hooks do not run in autograd.grad", _in_backward_only, CALLS),
    _fault("full hooks run in one thread alone", _of_one_thread, CALLS),
    _fault("the error of a full hook is lost", lambda: calling(_swallowed), CALLS),
    _fault("the error of a full hook becomes another", lambda: calling(_of_another_type), CALLS),
    _fault("an error takes the other full hooks away", lambda: fetched(_gone_after_an_error), CALLS),
    _fault(
        "saving swallows the error of a hook",
        lambda: replaced(MODULE, "state_dict", _state_hooks_after_an_error),
        STATE,
    ),
    _fault(
        "saving an optimizer goes past its hooks",
        lambda: replaced(torch.optim.Optimizer, "state_dict", _past("_optimizer_state_dict_post_hooks")),
        OPTIMIZERS,
        since="2.2",
    ),
    _fault(
        "foreach loses step hooks", lambda: _step_hooks(_unless(lambda o: bool(o.defaults.get("foreach")))), OPTIMIZERS
    ),
    _fault(
        "fused loses step hooks",
        lambda: _step_hooks(_unless(lambda o: bool(o.defaults.get("fused")))),
        OPTIMIZERS,
        since="2.4",
    ),
    _fault(
        "step hooks of an own optimizer are lost",
        lambda: _step_hooks(_unless(lambda o: type(o).__name__ == "OwnOptimizer")),
        OPTIMIZERS,
    ),
    _fault(
        "the error of a step hook is lost",
        lambda: _step_hooks(lambda optimizer, hook: lambda *given: _swallowed(hook, *given)),
        OPTIMIZERS,
    ),
    _fault(
        "registering a buffer goes past the hooks",
        lambda: replaced(MODULE, "register_buffer", _unhooked_buffer),
        REGISTRATION,
    ),
)
