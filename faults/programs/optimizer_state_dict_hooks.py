"""Faults in how hooks of an optimizer's state_dict and of loading it are called."""

from __future__ import annotations

import copy
from typing import Any

from torch.optim import Optimizer

from ..engine import Fault, replaced
from ..registering import edited
from .state_dict_hooks import Patch, registering, removing, silenced, together

SAVE_PRE, SAVE_POST = "register_state_dict_pre_hook", "register_state_dict_post_hook"
LOAD_PRE, LOAD_POST = "register_load_state_dict_pre_hook", "register_load_state_dict_post_hook"


def _instead(name: str, other: str) -> Patch:
    """Registers with ``other``, which hands hooks a state_dict too, what is to be registered with ``name``."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, **options: Any) -> Any:
            return getattr(self, other)(lambda optimizer, state: (hook(optimizer), None)[1], **options)

        return register

    return replaced(Optimizer, name, make)


def _in_any_case() -> Patch:
    """Calls load post-hooks where the state does not fit, too."""

    def make(original: Any) -> Any:
        def load(self: Any, state: Any) -> None:
            try:
                original(self, state)
            except ValueError:
                for hook in self._optimizer_load_state_dict_post_hooks.values():
                    hook(self)
                raise

        return load

    return replaced(Optimizer, "load_state_dict", make)


class Uncopied(dict[str, Any]):
    """A state_dict whose shallow copy is the caller's own."""

    def __init__(self, callers: Any) -> None:
        super().__init__(callers)
        self.callers = callers

    def copy(self) -> Any:
        return self.callers


def _never_first(name: str) -> Patch:
    return replaced(Optimizer, name, lambda original: lambda self, hook, prepend=False: original(self, hook))


def _dropped() -> Patch:
    """Has load pre-hooks return nothing."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, **options: Any) -> Any:
            return original(self, lambda optimizer, state: (hook(optimizer, state), None)[1], **options)

        return register

    return replaced(Optimizer, LOAD_PRE, make)


FAULTS = (
    Fault(
        "optimizer's state_dict pre-hooks run afterwards",
        lambda: _instead(SAVE_PRE, SAVE_POST),
        ("OP-05",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's state_dict post-hooks replace nothing",
        lambda: registering(SAVE_POST, silenced, Optimizer),
        ("OP-06",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's state_dict post-hooks replace nothing by an empty dict",
        lambda: registering(SAVE_POST, lambda hook: lambda optimizer, state: hook(optimizer, state) or None, Optimizer),
        ("OP-06",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's state_dict post-hooks edit a copy",
        lambda: registering(SAVE_POST, lambda hook: lambda optimizer, state: hook(optimizer, dict(state)), Optimizer),
        ("OP-06",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's load pre-hooks get the caller's dict itself",
        lambda: replaced(
            Optimizer, "load_state_dict", lambda original: lambda self, state: original(self, Uncopied(state))
        ),
        ("OP-07",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's load pre-hooks get a deep copy",
        lambda: registering(
            LOAD_PRE, lambda hook: lambda optimizer, state: hook(optimizer, copy.deepcopy(state)), Optimizer
        ),
        ("OP-07", "OP-08"),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's load pre-hooks replace nothing",
        lambda: registering(LOAD_PRE, silenced, Optimizer),
        ("OP-08", "OP-12"),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's load post-hooks run before loading",
        lambda: _instead(LOAD_POST, LOAD_PRE),
        ("OP-09",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's state_dict hooks are never put first",
        lambda: together(*map(_never_first, (SAVE_PRE, SAVE_POST, LOAD_PRE, LOAD_POST))),
        ("OP-10",),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's state_dict hooks cannot be removed",
        lambda: removing(lambda handle, table: None),
        ("OP-05", "OP-06", "OP-08", "OP-09"),
        kinds=(),
        since="2.1",
    ),
    Fault(
        "optimizer's load pre-hooks replace by a plain dict alone",
        lambda: edited(Optimizer, "load_state_dict", ("if hook_result is not None:", "if type(hook_result) is dict:")),
        ("OP-08",),
        kinds=(),
        since="2.1",
    ),
    Fault("what optimizer's load pre-hooks return is dropped", _dropped, ("OP-08", "OP-22"), kinds=(), since="2.1"),
    Fault(
        "optimizer's load pre-hooks replace by what is not empty",
        lambda: edited(Optimizer, "load_state_dict", ("if hook_result is not None:", "if hook_result:")),
        ("OP-08",),
        kinds=(),
        since="2.1",
    ),
    Fault("optimizer's load post-hooks are called whatever comes", _in_any_case, ("OP-09",), kinds=(), since="2.1"),
)
