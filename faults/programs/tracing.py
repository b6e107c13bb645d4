"""Faults in how torch.jit, torch.fx and torch.export treat hooks."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced
from ..registering import edited
from .torch_func import never_removed, past_hooks


def _without_hooks(original: Any) -> Any:
    def load(file: Any) -> Any:
        script = original(file)
        for table in (script._forward_hooks, script._forward_pre_hooks):
            table.clear()
        return script

    return load


def _inert_on_graphs(name: str) -> AbstractContextManager[None]:
    """A method of GraphModule that does no more than to refuse what cannot be called."""

    def make(original: Any) -> Any:
        def act(self: Any, f: Any) -> None:
            if not callable(f):
                original(self, f)

        return act

    return replaced(import_module("torch.fx").GraphModule, name, make)


def _without_node_hooks(original: Any) -> Any:
    def copy(self: Any, memo: Any) -> Any:
        result = original(self, memo)
        for name in ("_create_node_hooks", "_erase_node_hooks", "_replace_hooks"):
            if hasattr(result, name):
                setattr(result, name, [])
        return result

    return copy


def _scripting(name: str, change: tuple[str, str]) -> AbstractContextManager[None]:
    """Edits how a module is scripted, hooks and all."""
    return edited(import_module("torch.jit._recursive"), name, change)


def _not_beside_a_default(original: Any) -> Any:
    def stubs(module: Any) -> Any:
        parameters = inspect.signature(module.forward).parameters.values()
        return ([], []) if any(p.default is not p.empty for p in parameters) else original(module)

    return stubs


CALLED = "enumerate(script_module._c._get_forward_hooks())"


def _without_keywords(original: Any) -> Any:
    return lambda self, module, forward, args, kwargs: original(self, module, forward, args, {})


FAULTS = (
    Fault(
        "torch.jit.script: hooks are left out",
        lambda: past_hooks(torch.jit, "script"),
        ("TR-01",),
        kinds=(),
    ),
    Fault(
        "torch.jit: a removed hook is there still",
        never_removed,
        ("TR-02", "TR-03", "TR-04"),
        kinds=(),
    ),
    Fault("torch.jit.trace: hooks are left out", lambda: past_hooks(torch.jit, "trace"), ("TR-05",), kinds=()),
    Fault(
        "torch.fx: parts lose what they are given by keyword",
        lambda: replaced(import_module("torch.fx").Tracer, "call_module", _without_keywords),
        ("TR-06",),
        kinds=(),
    ),
    Fault(
        "torch.fx: leaves are traced into, and with them their hooks",
        lambda: replaced(
            import_module("torch.fx").Tracer, "is_leaf_module", lambda original: lambda self, module, name: False
        ),
        ("TR-06",),
        kinds=(),
    ),
    Fault(
        "torch.export.export: hooks are left out",
        lambda: past_hooks(import_module("torch.export"), "export"),
        ("TR-07", "TR-08"),
        kinds=(),
    ),
    Fault(
        "torch.jit.load: hooks are left out",
        lambda: replaced(torch.jit, "load", _without_hooks),
        ("TR-10",),
        kinds=(),
        since="1.8",
    ),
    Fault(
        "torch.fx: no hook is called when a Node is erased",
        lambda: _inert_on_graphs("_register_erase_node_hook"),
        ("TR-09",),
        kinds=(),
        since="2.4",
    ),
    Fault(
        "torch.fx: hooks hear of a replacement that was refused",
        lambda: edited(
            import_module("torch.fx").Node,
            "replace_all_uses_with",
            ("not delete_user_cb(use_node)", "not (delete_user_cb(use_node) or replace_hooks)"),
        ),
        ("TR-09",),
        kinds=(),
        since="2.4",
    ),
    Fault(
        "torch.fx: a hook on copies stays",
        lambda: _inert_on_graphs("_unregister_deepcopy_hook"),
        ("TR-09",),
        kinds=(),
        since="2.7",
    ),
    Fault(
        "torch.fx: copies have no hooks on their Nodes",
        lambda: replaced(import_module("torch.fx").GraphModule, "__deepcopy__", _without_node_hooks),
        ("TR-09",),
        kinds=(),
        since="2.4",
    ),
    Fault(
        "torch.jit.script: two pre-hooks of one name are taken for one",
        lambda: _scripting("get_hook_stubs", ("id(pre_hook) != id(hook_map[pre_hook.__name__])", "False")),
        ("TR-15",),
        kinds=(),
        since="1.8",
    ),
    Fault(
        "torch.jit.script: hooks run from the last to the first",
        lambda: _scripting("create_script_module_impl", (CALLED, f"{CALLED[:-1]}[::-1])")),
        ("TR-15",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.jit.script: one type for all of a class, whatever hooks they have",
        lambda: _scripting("infer_concrete_type_builder", ("concrete_type_builder.add_forward_hook(hook)", "pass")),
        ("TR-01", "TR-10", "TR-15"),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.jit.script: two hooks of one name are one",
        lambda: _scripting("get_hook_stubs", ("id(hook) != id(hook_map[hook.__name__])", "False")),
        ("TR-15",),
        kinds=(),
        since="2.13",
    ),
    Fault(
        "torch.jit.script: hooks beside an argument with a default are left out",
        lambda: replaced(import_module("torch.jit._recursive"), "get_hook_stubs", _not_beside_a_default),
        ("TR-16",),
        kinds=(),
    ),
)
