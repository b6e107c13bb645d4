"""What copies, traces, saves or averages a module leaves that module alone: does it leave its hooks?

Such functions look at a module, call it or read its numbers, and give something else. What they give is judged by the
chapter hosts.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.hosts import hooked, tables
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import GROUPS
from hookcheck.programs.host_makes import row, rows
from hookcheck.programs.program import program


def average(net: Any) -> Any:
    """What averages the numbers of ``net``."""
    return import_module("torch.optim.swa_utils").AveragedModel(net)


READING: Mapping[str, Callable[[Any], Any]] = {
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "symbolic_trace": lambda net: import_module("torch.fx").symbolic_trace(net),
    "jit.trace": lambda net: torch.jit.trace(net, row().detach()),
    "state dict, there and back": lambda net: net.load_state_dict(net.state_dict()),
    "AveragedModel": average,
    "updating an average from it": lambda net: average(rows()).update_parameters(net),
    "DataParallel": lambda net: nn.DataParallel(net)(row()),
    "moving it": lambda net: net.to("cpu").float(),
    "changing its mode": lambda net: net.train().eval().requires_grad_(False).requires_grad_(True).zero_grad(),
}
"""What reads a module, by name."""


@program(
    "HO-14", PIN, since="1.8", source="torch.jit.trace, torch.fx.symbolic_trace and the others, which give a module"
)
def what_reads_a_module_leaves_its_hooks(check: Check) -> None:
    """What reads a module leaves each hook on it where it was, and the parameters that it has, also where it refuses to
    read one with hooks; and an average that is updated keeps the hooks and the parameters that it has."""
    acts = {name: (rows, act) for name, act in READING.items()}
    acts["updating an average"] = (lambda: average(rows()), lambda net: net.update_parameters(rows()))
    for name, (make, act) in acts.items():
        for group in GROUPS:
            net = make()
            hooked(net, group)
            hooks, parameters = [*tables(net)], [*map(id, net.parameters())]
            with warnings.catch_warnings(), suppress(RuntimeError, ValueError):  # jit.trace refuses backward hooks
                warnings.simplefilter("ignore")
                act(net)
            check.true(f"{name}: {group} hooks", [*tables(net)] == hooks)
            check.true(f"{name}: parameters under {group} hooks", [*map(id, net.parameters())] == parameters)
