"""Which modules are there that torch.compile makes, or compiles in place? Hosts as `hookcheck.programs.host_kinds`."""

from __future__ import annotations

from typing import Any

from hookcheck.probe.lazy import torch
from hookcheck.programs.host_changes import Module
from hookcheck.programs.host_copying import COMPUTING, HOOKS_OF_COPIES, LOADED_BY_NAME
from hookcheck.programs.host_kinds import NAMES_AND_NUMBERS, WRAPPED, Kind
from hookcheck.programs.host_registering import ANOTHER_MODULE, OPTIMIZED
from hookcheck.programs.hosting import BY_HAND, CONTAINERS


def _compiled_in_place(module: Module) -> Module:
    module.compile(backend="eager")
    return module


def _compiled_in_place_with_its_backward(module: Module) -> Module:
    module.compile(backend="aot_eager")
    return module


def _optimized(module: Module) -> Any:
    return torch.compile(module, backend="eager")


AHEAD = {
    **dict.fromkeys(
        ("U-06: gradients *", "AC-23: gradient* of *", "AC-24: gradients *"),
        "a graph of backward gives zeros where a plain module gives None",
    ),
    **dict.fromkeys(("LB-01: *", "LB-02: *", "LB-03"), "a graph of backward is one Node"),
    "BF-02": "a graph of backward cannot be differentiated",
}
WITHOUT_BACKWARD = (
    *("handles", "FW-0[2-9]", "FW-1[02-9]", "FW-20", "always-call", "CP-01", "CP-0[46-9]"),
    *("registration-hooks", "state-dict-hooks"),
)
"""Clauses that say nothing of a backward. They are left out where compiling takes seconds in all."""

OLD = "no pickle that is so old is of what torch.compile makes"
NO_NAMED_RESULTS = {(2, 6): {"BS-05": "torch.compile raised where a named result of torch left a graph"}}
CYCLE = "what is compiled in place is part of a cycle, which only the collector frees"

_OPTIMIZED = {
    **dict.fromkeys(
        (*NAMES_AND_NUMBERS, *LOADED_BY_NAME, "SV-01", "SZ-12", *COMPUTING), "what is saved has other names"
    ),
    **dict.fromkeys((*HOOKS_OF_COPIES, "SZ-10"), "it is copied and pickled as the module in it, without its hooks"),
    "SZ-08": OLD,
    **ANOTHER_MODULE,
    **dict.fromkeys(
        ("EX-08", "backward-hook-structures"), "an OptimizedModule loses its backward hooks, as other clauses show"
    ),
    "RG-04: * for a module": "an OptimizedModule registers the module that it is made of",
    **WRAPPED,
}

COMPILED = {
    "OptimizedModule": Kind(
        _optimized,
        ("Linear", "Identity", *BY_HAND),
        (2, 1),
        {**_OPTIMIZED, **OPTIMIZED},
        before={
            (2, 4): dict.fromkeys(
                ("RG-06", "PH-05", "PH-07: program", "PH-11"),
                "an OptimizedModule takes no parameter of a name that the module in it has",
            ),
            (2, 6): {"SZ-13": "an OptimizedModule could not be pickled, and said so"},
        },
        saves=("_orig_mod.weight",),
    ),
    # By itself, since a module that torch.compile made is no longer one inside of another. Up to 2.3 it goes unnoticed
    # that hooks come and go between calls of what is compiled, as TC-02 says.
    "OptimizedModule of a container": Kind(
        _optimized,
        CONTAINERS,
        (2, 4),
        {
            **_OPTIMIZED,
            **dict.fromkeys(
                ("FW-21", *(f"{clause}: program" for clause in ("BF-05", "SD-03", "SD-06", "SD-12", "SD-14"))),
                "an OptimizedModule of a Sequential has no parts by number",
            ),
            "RG-03: containers": "the Sequential in it registers what is appended",
            "FW-08: a module inside another": "one inside of another is called as the module that it is made of",
            "U-03: in * a forward_hook that comes in a forward": "forward knows the module inside alone, without hooks",
            "LB-02: a module of one Node": "torch warns of hooks on all modules",
        },
    ),
    "Module.compile": Kind(
        _compiled_in_place,
        since=(2, 2),
        but={"HD-05": CYCLE, "SZ-08": OLD},
        before={
            (2, 4): dict.fromkeys(WRAPPED, "hooks on all modules meet the graph as well, which is called as a module"),
            **NO_NAMED_RESULTS,
        },
    ),
    "Module.compile with its backward": Kind(
        _compiled_in_place_with_its_backward,
        since=(2, 4),
        but={
            **WRAPPED,
            **AHEAD,
            "HD-05": CYCLE,
            "SZ-08": OLD,
            **dict.fromkeys(WITHOUT_BACKWARD, "it has no backward, and holds alike where forward alone is compiled"),
            "AC-10: whether *": "a backward that aot_autograd compiled cannot be differentiated",
        },
        before=NO_NAMED_RESULTS,
    ),
}
"""The hosts of modules that torch.compile makes, by name; most with the backend that runs a graph as it is."""
