"""Faults in how the hooks of a module's state_dict and of loading it are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from torch.nn import Module
from torch.utils.hooks import RemovableHandle

from ..engine import Fault, replaced
from ..registering import edited

Patch = AbstractContextManager[None]


def registering(name: str, change: Callable[[Any], Any], owner: Any = Module) -> Patch:
    """Registers ``change(hook)`` where ``owner.name`` is to register a hook."""

    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, *others: Any, **options: Any) -> Any:
            return original(self, change(hook), *others, **options)

        return register

    return replaced(owner, name, make)


def silenced(hook: Any) -> Any:
    """The hook without what it returns."""
    return lambda *arguments: (hook(*arguments), None)[1]


@contextmanager
def together(*patches: Patch) -> Iterator[None]:
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def removing(remove: Callable[[Any, Any], Any]) -> Patch:
    """Calls ``remove(handle, table)`` where a handle is to remove its hook."""
    return replaced(RemovableHandle, "remove", lambda original: lambda self: remove(self, self.hooks_dict_ref()))


def _save_pre_hooks_last() -> Patch:
    def make(original: Any) -> Any:
        def state_dict(self: Any, *args: Any, prefix: str = "", keep_vars: bool = False, **kwargs: Any) -> Any:
            hooks = dict(self._state_dict_pre_hooks)
            self._state_dict_pre_hooks.clear()
            result = original(self, *args, prefix=prefix, keep_vars=keep_vars, **kwargs)
            self._state_dict_pre_hooks.update(hooks)
            for hook in hooks.values():
                hook(self, prefix, keep_vars)
            return result

        return state_dict

    return replaced(Module, "state_dict", make)


def _children_replace() -> Patch:
    def make(original: Any) -> Any:
        def state_dict(self: Any, *args: Any, destination: Any = None, **kwargs: Any) -> Any:
            result = original(self, *args, destination=destination, **kwargs)
            if destination is not None and result is not destination:
                destination.clear()
                destination.update(result)
            return result

        return state_dict

    return replaced(Module, "state_dict", make)


def _load_pre_hooks_on_a_copy() -> Patch:
    def make(original: Any) -> Any:
        def register(self: Any, hook: Any, with_module: bool = False) -> Any:
            def copied(*arguments: Any) -> Any:
                first, (state, *others) = arguments[:with_module], arguments[with_module:]
                return hook(*first, dict(state), *others)

            return original(self, copied, with_module)

        return register

    return replaced(Module, "_register_load_state_dict_pre_hook", make)


def _load_pre_hooks_last() -> Patch:
    def make(original: Any) -> Any:
        def load(self: Any, *arguments: Any) -> None:
            hooks = dict(self._load_state_dict_pre_hooks)
            self._load_state_dict_pre_hooks.clear()
            original(self, *arguments)
            self._load_state_dict_pre_hooks.update(hooks)
            for hook in hooks.values():
                hook(*arguments)

        return load

    return replaced(Module, "_load_from_state_dict", make)


def _children_load_from_all() -> Patch:
    root: list[Any] = []

    def make(original: Any) -> Any:
        def load(self: Any, state: Any, prefix: str, *others: Any) -> None:
            if not prefix:
                root[:] = [state]
            original(self, root[0], prefix, *others)

        return load

    return replaced(Module, "_load_from_state_dict", make)


def _hooks_are_told_strict() -> Patch:
    values: list[bool] = []

    def remember(original: Any) -> Any:
        def load_state_dict(self: Any, state: Any, strict: bool = True, **options: Any) -> Any:
            values[:] = [strict]
            return original(self, state, strict, **options)

        return load_state_dict

    def tell(original: Any) -> Any:
        def load(self: Any, state: Any, prefix: str, meta: Any, strict: bool, *lists: Any) -> None:
            original(self, state, prefix, meta, values[0], *lists)

        return load

    return together(
        replaced(Module, "load_state_dict", remember),
        replaced(Module, "_load_from_state_dict", tell),
    )


def _marked(hook: Any) -> Any:
    hook._registered = True
    return hook


SAVE_PRE, SAVE_POST, PRIVATE = (
    "register_state_dict_pre_hook",
    "register_state_dict_post_hook",
    "_register_state_dict_hook",
)
LOAD_POST = "register_load_state_dict_post_hook"

FAULTS = (
    Fault("state_dict pre-hooks run once the state_dict is collected", _save_pre_hooks_last, ("SD-01",), kinds=()),
    Fault(
        "state_dict pre-hooks are told no prefix",
        lambda: registering(SAVE_PRE, lambda hook: lambda module, prefix, keep_vars: hook(module, "", keep_vars)),
        ("SD-01",),
        kinds=(),
    ),
    Fault(
        "state_dict post-hooks get a copy of the state_dict",
        lambda: registering(SAVE_POST, lambda hook: lambda m, state, *others: hook(m, dict(state), *others)),
        ("SD-02",),
        kinds=(),
    ),
    Fault(
        "state_dict post-hooks are told no prefix",
        lambda: registering(SAVE_POST, lambda hook: lambda m, state, prefix, meta: hook(m, state, "", meta)),
        ("SD-02",),
        kinds=(),
    ),
    Fault(
        "state_dict post-hooks may return what they like",
        lambda: registering(SAVE_POST, silenced),
        ("SD-03",),
        kinds=(),
    ),
    Fault("state_dict is replaced by private hooks of children too", _children_replace, ("SD-04",), kinds=()),
    Fault(
        "state_dict is not replaced by what private hooks return",
        lambda: registering(PRIVATE, silenced),
        ("SD-04", "SD-15"),
        kinds=(),
    ),
    Fault("state_dict marks private hooks", lambda: registering(PRIVATE, _marked), ("SD-13",), kinds=()),
    Fault(
        "load_state_dict pre-hooks get a copy of the state_dict",
        _load_pre_hooks_on_a_copy,
        ("SD-05", "SD-14"),
        kinds=(),
    ),
    Fault("load_state_dict pre-hooks run after loading", _load_pre_hooks_last, ("SD-05",), kinds=()),
    Fault(
        "load_state_dict pre-hooks always get the module",
        lambda: replaced(
            Module,
            "_register_load_state_dict_pre_hook",
            lambda original: lambda self, hook, with_module=False: original(self, hook, True),
        ),
        ("SD-06",),
        kinds=(),
    ),
    Fault("load_state_dict pre-hooks get the keys of all modules", _children_load_from_all, ("U-18",), kinds=()),
    Fault("load_state_dict pre-hooks are told strict as it was given", _hooks_are_told_strict, ("SD-12",), kinds=()),
    Fault(
        "load_state_dict post-hooks get no unexpected keys",
        lambda: registering(LOAD_POST, lambda hook: lambda m, keys: hook(m, keys._replace(unexpected_keys=[]))),
        ("SD-07", "SD-08"),
        kinds=(),
    ),
    Fault(
        "load_state_dict post-hooks get copies of the lists",
        lambda: registering(LOAD_POST, lambda hook: lambda m, keys: hook(m, type(keys)(*map(list, keys)))),
        ("SD-08", "SD-09", "SD-10", "SD-17"),
        kinds=(),
    ),
    Fault(
        "state_dict and loading give handles that remove the newest hook",
        lambda: removing(lambda handle, table: table and table.popitem()),
        ("SD-11",),
        kinds=(),
    ),
    Fault(
        "state_dict and loading give handles that remove nothing",
        lambda: removing(lambda handle, table: None),
        ("SD-01", "SD-02", "SD-04", "SD-05", "SD-07", "SD-11", "SD-16"),
        kinds=(),
    ),
    Fault(
        "state_dict post-hooks get a copy of the metadata",
        lambda: edited(
            Module,
            "state_dict",
            ("hook(self, destination, prefix, local_metadata)", "hook(self, destination, prefix, {**local_metadata})"),
        ),
        ("SD-02",),
        kinds=(),
    ),
    Fault(
        "state_dict passes over children without tensors",
        lambda: edited(
            Module,
            "state_dict",
            ("if module is not None:", "if module is not None and (module._parameters or module._modules):"),
        ),
        ("SD-02",),
        kinds=(),
    ),
    Fault(
        "load pre-hooks of a child get what begins as its name",
        lambda: edited(Module, "load_state_dict", ("k.startswith(child_prefix)", "k.startswith(child_prefix[:-1])")),
        ("U-18",),
        kinds=(),
        since="1.13",
    ),
    Fault(
        "load pre-hooks of children get no metadata",
        lambda: edited(Module, "load_state_dict", ("metadata.get(prefix[:-1], {})", "metadata.get(prefix, {})")),
        ("U-18",),
        kinds=(),
        since="1.13",
    ),
    Fault(
        "load pre-hooks get an OrderedDict of the caller itself",
        lambda: edited(
            Module,
            "load_state_dict",
            (
                "state_dict = OrderedDict(state_dict)",
                "state_dict = state_dict if isinstance(state_dict, OrderedDict) else OrderedDict(state_dict)",
            ),
        ),
        ("SD-05",),
        kinds=(),
        since="2.5",
    ),
    Fault(
        "what a load pre-hook registers is not loaded",
        lambda: edited(
            Module,
            "_load_from_state_dict",
            ("for hook in self._load", "buffers = {**self._buffers}\n    for hook in self._load"),
            ("in self._buffers.items()", "in buffers.items()"),
        ),
        ("SD-05",),
        kinds=(),
        since="2.5",
    ),
    Fault(
        "state_dict stops at a child that is None",
        lambda: edited(
            Module, "state_dict", ("if module is not None:", "if module is None:\n            break\n        else:")
        ),
        ("SD-02",),
        kinds=(),
        since="2.5",
    ),
    Fault(
        "state_dict calls private hooks first",
        lambda: edited(
            Module,
            "state_dict",
            (
                "in self._state_dict_hooks.values():",
                "in sorted(self._state_dict_hooks.values(), key=lambda h: getattr(h, '_from_public_api', False)):",
            ),
        ),
        ("SD-13",),
        kinds=(),
        since="2.5",
    ),
)
