"""Faults in hooks on state dicts that show where a module saves what is not a parameter of its own."""

from __future__ import annotations

from contextlib import AbstractContextManager

from torch.fx import GraphModule
from torch.nn import Module

from ..engine import Fault
from ..registering import edited


def _forgotten(*tables: str) -> AbstractContextManager[None]:
    """A deep copy of a GraphModule is made without those tables of hooks."""
    return edited(GraphModule, "__deepcopy__", *((f'"{table}",', "") for table in tables))


FAULTS = (
    *(
        Fault(
            f"a deep copy of a GraphModule forgets {table}",
            lambda table=table: _forgotten(table),
            ("HO-15",),
            (),
            "2.13",
        )
        for table in (
            *("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
            *("_replace_hooks", "_create_node_hooks", "_erase_node_hooks"),
        )
    ),
    Fault(
        "a deep copy of a GraphModule has its meta after hooks have run",
        lambda: edited(
            GraphModule,
            "__deepcopy__",
            ("res.meta = ", "meta = "),
            ("in res.meta:", "in meta:"),
            ("res.meta[", "meta["),
            ("return res", "res.meta = meta\n    return res"),
        ),
        ("HO-15",),
        kinds=(),
        since="2.7",
    ),
    Fault(
        "a deep copy of a GraphModule shares tables of hooks",
        lambda: edited(
            GraphModule,
            "__deepcopy__",
            ("copy.deepcopy(self.__dict__[attr], memo)", "self.__dict__[attr]"),
        ),
        ("HO-15",),
        kinds=(),
        since="2.0",
    ),
    Fault(
        "hooks after loading are left out of children without parameters of their own",
        lambda: edited(
            Module,
            "load_state_dict",
            (
                "in module._load_state_dict_post_hooks.values():",
                "in module._load_state_dict_post_hooks.values() if module._parameters or not prefix else ():",
            ),
        ),
        ("HO-12",),
        kinds=(),
        since="1.12",
    ),
    Fault(
        "hooks on state_dict run before what is in a submodule is saved",
        lambda: edited(
            Module,
            "state_dict",
            (
                "for name, module in self._modules.items():",
                "last = [*self._modules.items()]\n    for name, module in ():",
            ),
            (
                "return destination",
                "for name, module in last:\n        module.state_dict(\n            destination=destination,"
                ' prefix=prefix + name + ".", keep_vars=keep_vars\n        )\n    return destination',
            ),
        ),
        ("HO-12",),
        kinds=(),
        since="2.0",
    ),
)
