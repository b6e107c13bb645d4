"""Faults in how ``ModuleTracker`` follows modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced
from ..registering import edited


def method(name: str, make: Any) -> AbstractContextManager[None]:
    """Replaces a method or a property of the tracker."""
    from torch.utils.module_tracker import ModuleTracker

    return replaced(ModuleTracker, name, make)


def scripts_refused() -> AbstractContextManager[None]:
    """Refuses modules that are scripted, as hooks on the module itself would."""

    def make(original: Any) -> Any:
        def enter(self: Any, module: Any, args: Any) -> Any:
            if isinstance(module, torch.jit.ScriptModule):
                raise RuntimeError("register_forward_pre_hook is not supported on ScriptModules")
            return original(self, module, args)

        return enter

    return method("_fw_pre_hook", make)


def leaving_hooks(leave: Any) -> Any:
    """Leaves without removing the hooks for backward."""
    return lambda self, *error: (self._hooks.clear(), leave(self, *error))[1]


def leaving_hooks_of_errors(leave: Any) -> Any:
    """Leaves after an error without removing the hooks for backward."""
    careless = leaving_hooks(leave)
    return lambda self, *error: (careless if any(error) else leave)(self, *error)


def naming_children() -> AbstractContextManager[None]:
    """Names the children of a module, and not what is within them."""
    from torch.utils.module_tracker import ModuleTracker

    return edited(ModuleTracker, "_get_mod_name", ("self._get_mod_name(submod)", "pass"))


def tracking(name: str, what: str) -> AbstractContextManager[None]:
    """Looks for tensors at the top alone."""
    from torch.utils.module_tracker import ModuleTracker

    at_the_top = f"args = {what} if isinstance({what}, tuple) else ({what},)"
    return edited(ModuleTracker, name, (f"args, _ = tree_flatten({what})", at_the_top))


def one_stays() -> AbstractContextManager[None]:
    """Leaves without removing the last hook for backward."""
    from torch.utils.module_tracker import ModuleTracker

    return edited(ModuleTracker, "__exit__", ("in self._hooks:", "in self._hooks[:-1]:"))


def other(module: str, name: str, *changes: tuple[str, str]) -> AbstractContextManager[None]:
    """Edits a method of a class that follows modules as well."""
    owner, _, method = name.rpartition(".")
    return edited(getattr(import_module(module), owner), method, *changes)


@contextmanager
def marked_by_errors() -> Iterator[None]:
    """Takes it that a compiled module still runs once one has raised."""
    frames = import_module("torch._dynamo.eval_frame")
    with edited(frames, "_set_in_optimized_module", ("try:", "if True:"), ("finally:", "if True:")):
        yield
    frames._in_optimized_module = False


MODES = (
    ("torch.distributed._tools.mod_tracker", "ModTracker.__exit__", "self._fw_post_handle.remove()"),
    ("torch.distributed.tensor.debug._comm_mode", "_CommModeModuleTracker.__exit__", "self._bw_handle.remove()"),
    ("torch.utils.flop_counter", "FlopCounterMode.__exit__", "self.mod_tracker.__exit__()"),
    (
        "torch.distributed._tools.mem_tracker",
        "MemTracker._deregister_param_and_optimizer_hooks",
        "grad_hook_handle.remove()",
    ),
)
"""What else follows modules: where it ends, and by which of its acts."""


def counter(name: str, change: tuple[str, str]) -> AbstractContextManager[None]:
    """Edits a method of ``FlopCounterMode``, which torch has not always had."""
    from torch.utils.flop_counter import FlopCounterMode

    return edited(FlopCounterMode, name, change)


FAULTS = (
    *(
        Fault(
            f"{name.partition('.')[0]}: leaves hooks behind",
            lambda module=module, name=name, act=act: other(module, name, (act, "pass")),
            ("MT-03",),
            (),
            "2.13",
        )
        for module, name, act in MODES
    ),
    Fault(
        "ModTracker: an error keeps a module among those that run",
        lambda: other("torch.distributed._tools.mod_tracker", "ModTracker.__enter__", ("always_call=True", "")),
        ("MT-04",),
        (),
        "2.13",
    ),
    Fault(
        "ModTracker: a hook stays when all are cleared",
        lambda: other(
            "torch.distributed._tools.mod_tracker",
            "ModTracker.clear_user_hooks",
            ("self._user_pre_fw_hook = None", "pass"),
        ),
        ("MT-05",),
        (),
        "2.13",
    ),
    Fault(
        "ModTracker: hooks are not called as a module is entered",
        lambda: other(
            "torch.distributed._tools.mod_tracker",
            "ModTracker._fw_pre_hook",
            ("self._user_pre_fw_hook(mod, input)", "pass"),
        ),
        ("MT-05", "MT-07"),
        (),
        "2.13",
    ),
    Fault(
        "ModTracker: a hook after a backward is not called",
        lambda: other(
            "torch.distributed._tools.mod_tracker",
            "ModTracker._get_pop_fn",
            ("self._user_post_bw_hook(w_mod(), args)", "pass"),
        ),
        ("MT-05",),
        (),
        "2.13",
    ),
    Fault(
        "FlopCounterMode: counts for no module in particular",
        lambda: other(
            "torch.utils.flop_counter",
            "FlopCounterMode._count_flops",
            ("set(self.mod_tracker.parents)", "['Global']"),
        ),
        ("MT-06",),
        (),
        "2.13",
    ),
    Fault(
        "flop counter: nothing is counted in inference mode",
        lambda: replaced(
            import_module("torch.utils.flop_counter").FlopCounterMode,
            "_count_flops",
            lambda original: (
                lambda self, packet, out, args, kwargs: (
                    out if torch.is_inference_mode_enabled() else original(self, packet, out, args, kwargs)
                )
            ),
        ),
        ("MT-06",),
        (),
        "2.6",
    ),
    Fault(
        "flop counter: a module that is scripted is refused",
        scripts_refused,
        ("MT-06",),
        (),
        "2.6",
    ),
    Fault(
        "module tracker: the end of a backward leaves no module",
        lambda: other(
            "torch.utils.module_tracker", "ModuleTracker._maybe_set_engine_callback", ('self.parents = {"Global"}', "")
        ),
        ("MT-06",),
        (),
        "2.6",
    ),
    Fault(
        "module tracker: modules are not left",
        lambda: method("_fw_post_hook", lambda _: lambda self, *args: None),
        ("MT-01", "MT-02"),
    ),
    Fault(
        "module tracker: backward is not told from forward",
        lambda: method("is_bw", lambda _: property(lambda self: False)),
        ("MT-01",),
    ),
    Fault(
        "module tracker: only children of modules that are called have names",
        naming_children,
        ("MT-01",),
    ),
    Fault("module tracker: hooks for backward stay", lambda: method("__exit__", leaving_hooks), ("MT-02",)),
    Fault("module tracker: is never left", lambda: method("__exit__", lambda _: lambda self, *error: None), ("MT-02",)),
    *(
        Fault(
            f"module tracker: looks into no container that a module is {what}",
            lambda name=name, kind=kind: tracking(name, kind),
            ("MT-01",),
        )
        for what, name, kind in (("given", "_fw_pre_hook", "input"), ("left with", "_fw_post_hook", "output"))
    ),
    Fault("module tracker: the last hook for backward stays", one_stays, ("MT-02",)),
    Fault(
        "torch.compile: an error leaves the mark by which a tracker looks away",
        marked_by_errors,
        ("MT-04",),
        (),
        "2.13",
    ),
    Fault(
        "FlopCounterMode counts on from an earlier use",
        lambda: counter("__enter__", ("self.flop_counts.clear()", "pass")),
        ("MT-06",),
        (),
        "2.6",
    ),
    Fault(
        "FlopCounterMode counts for three modules at once",
        lambda: counter("_count_flops", ("set(self.mod_tracker.parents)", "sorted(self.mod_tracker.parents)[:3]")),
        ("MT-06",),
        (),
        "2.6",
    ),
    Fault(
        "module tracker: hooks for backward stay after an error",
        lambda: method("__exit__", leaving_hooks_of_errors),
        ("MT-02",),
    ),
)
