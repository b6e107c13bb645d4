"""What do hooks on state dicts promise on modules that save something else than their weight?

The clauses on state dicts name the keys of a plain module, so that they cannot run unchanged where a weight is
computed, observed, packed or wrapped. Here the same is stated of whatever keys a host is declared to save.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import offered
from hookcheck.programs.host_compiled import COMPILED
from hookcheck.programs.host_kinds import KINDS, Kind
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

SAVE_PRE, SAVE_POST = "register_state_dict_pre_hook", "_register_state_dict_hook"
LOAD_PRE, LOAD_POST = "_register_load_state_dict_pre_hook", "register_load_state_dict_post_hook"

NEVER_STRICT = ("quantised dynamically",)
"""Hosts that take their own numbers out of what is loaded before any hook meets it, and are never strict."""


def elsewhere() -> Iterator[tuple[str, Kind]]:
    """The hosts of a Linear, by name, that save something else than its weight."""
    for name, kind in {**KINDS, **COMPILED}.items():
        if kind.saves != ("weight",) and offered(kind.since):
            yield name, kind


def host(kind: Kind, weight: float) -> Any:
    """``y = weight * x`` on such a host."""
    linear: Any = nn.Linear(1, 1, bias=False)
    nn.init.constant_(linear.weight, weight)
    return kind.make(linear)


def fitting(keys: Any, kind: Kind, prefix: str = "") -> bool:
    """Whether ``keys`` are those that hosts of that kind are declared to save under ``prefix``."""
    patterns = [f"{prefix}{pattern}" for pattern in kind.saves]
    declared = all(any(fnmatchcase(key, pattern) for key in keys) for pattern in patterns)
    return declared and all(any(fnmatchcase(key, pattern) for pattern in patterns) for key in keys)


@program("HO-12", PIN, since="1.8", source="torch.nn.Module.state_dict, load_state_dict and their hooks", device="cpu")
def hooks_meet_what_a_host_saves(check: Check) -> None:
    """Hooks on the state dict of a module that saves something else than its weight meet what that is, and so do those
    on loading, which may mend it and decide about what is missing or too much."""
    for name, kind in elsewhere():
        met_by_saving(check, name, kind)
        if name not in NEVER_STRICT:
            met_by_loading(check, name, kind)
            at_odds(check, name, kind)


def met_by_saving(check: Check, name: str, kind: Kind) -> None:
    """States what hooks on ``state_dict`` meet, as SD-01, SD-02 and SD-04 do of a plain module."""
    part = host(kind, 3.0)
    net: Any = nn.Sequential(part)
    log: list[Any] = []

    def early(module: Any, prefix: str, keep_vars: bool) -> None:
        log.append((module is part, prefix, keep_vars))
        module.register_buffer("late", torch.tensor(2.0))

    def renamed(module: Any, state: Any, prefix: str, local_metadata: Any) -> None:
        log.append((module is part, fitting(state, kind, prefix), prefix))
        for key in list(state):
            state[f"{key}!"] = state.pop(key)

    handle = part._register_state_dict_hook(renamed)
    state = net.state_dict(prefix="net.")
    check.order(f"{name}: what a hook on state_dict meets", log, [(True, True, "net.0.")])
    check.true(f"{name}: keys that it edits", fitting([key[:-1] for key in state], kind, "net.0."))
    net._register_state_dict_hook(lambda module, state, *others: {"keys": len(state)})
    check.equal(f"{name}: what the root's hook puts in their place", dict(net.state_dict()), {"keys": len(state)})
    handle.remove()
    if hasattr(part, SAVE_PRE):
        log.clear()
        getattr(part, SAVE_PRE)(early)
        state = part.state_dict(prefix="part.", keep_vars=True)
        check.order(f"{name}: what a hook before state_dict gets", log, [(True, "part.", True)])
        check.equal(f"{name}: what it adds", state.get("part.late"), 2)


def met_by_loading(check: Check, name: str, kind: Kind) -> None:
    """States that a load pre-hook meets and mends what is loaded, as SD-05 and U-18 do of a plain module."""
    parts = {"1": host(kind, 3.0), "10": host(kind, 5.0)}  # the second one's name begins as the other's
    net: Any = nn.Sequential(OrderedDict(parts))
    state = nn.Sequential(OrderedDict({"1": host(kind, 7.0), "10": host(kind, 9.0)})).state_dict()
    numbers = {key: value.tolist() for key, value in state.items()}
    for key in list(state):
        state[key.replace("1", "+", 1)] = state.pop(key)
    given: dict[str, bool] = {}
    log: list[str] = []

    def mended(state: Any, prefix: str, *others: Any) -> None:
        for key in list(state):
            state[key.replace("+", "1", 1)] = state.pop(key)

    def seen(name: str, state: Any, prefix: str, *others: Any) -> None:
        given[name] = fitting(state, kind, prefix)

    net._register_load_state_dict_pre_hook(mended)
    for word, part in net.named_children():
        part._register_load_state_dict_pre_hook(partial(seen, word))
        if hasattr(part, LOAD_POST):
            getattr(part, LOAD_POST)(lambda module, keys, word=word: log.append(word))
    if hasattr(net, LOAD_POST):
        getattr(net, LOAD_POST)(lambda module, keys: log.append("net"))
    check.works(f"{name}: loading what a hook mends", partial(net.load_state_dict, state))
    check.equal(f"{name}: what is loaded then", dict(net.state_dict()), numbers)
    if offered((1, 13)):  # before, every module loads from one dict, as U-18 has it
        check.equal(f"{name}: hooks that meet their own keys alone", given, {"1": True, "10": True})
    if offered((1, 12)):
        check.order(f"{name}: hooks after loading", log, ["1", "10", "net"])


def at_odds(check: Check, name: str, kind: Kind) -> None:
    """States what load post-hooks meet and decide, as SD-07, SD-08, SD-10 and SD-17 do of a plain module."""
    part = host(kind, 3.0)
    net: Any = nn.Sequential(part)
    if not hasattr(net, LOAD_POST):
        return
    state = net.state_dict()
    state["0.extra"] = torch.zeros(1)
    missing = next(iter(state))
    del state[missing]
    log: list[Any] = []

    def forgiving(module: Any, keys: Any) -> None:
        del keys.missing_keys[:], keys.unexpected_keys[:]

    def noted(module: Any, keys: Any) -> None:
        log.append((module is part, [*keys.missing_keys], [*keys.unexpected_keys]))

    getattr(part, LOAD_POST)(noted)
    check.raises(f"{name}: what is at odds", RuntimeError, partial(net.load_state_dict, state), "0.extra")
    check.equal(f"{name}: what a hook after loading meets", log, [(True, [missing], ["0.extra"])])
    getattr(part, LOAD_POST)(forgiving)
    getattr(part, LOAD_POST)(noted)
    result = check.works(f"{name}: loading under a hook that empties both lists", partial(net.load_state_dict, state))
    check.equal(f"{name}: what a later hook meets", log[2:], [(True, [], [])])
    check.equal(f"{name}: what loading gives", result and [*map(list, result)], [[], []])


@program("HO-15", PIN, since="2.0", source="torch.fx.GraphModule.__deepcopy__, its comment on state_dict related hooks")
def a_copy_of_a_graph_module_keeps_some_hooks(check: Check) -> None:
    """A deep copy of a GraphModule calls its private hooks on the state dict and on loading; and those on the nodes of
    its graph."""
    log: list[str] = []
    net: Any = import_module("torch.fx").symbolic_trace(nn.Sequential(nn.Linear(1, 1)))
    for name in (SAVE_POST, LOAD_PRE, LOAD_POST):
        getattr(net, name)(noting(log, name))
    other = copy.deepcopy(net)
    other.load_state_dict(other.state_dict())
    check.order("hooks on the state of a copy", log, [SAVE_POST, LOAD_PRE, LOAD_POST])
    log.clear()
    getattr(other, SAVE_POST)(noting(log, "of the copy alone"))
    net.state_dict()
    check.order("hooks on the state of the original once the copy has another", log, [SAVE_POST])
    if offered((2, 13)):  # which earlier release is the first is not known; 2.6 raises
        log.clear()
        for kind in ("create", "erase", "replace"):
            getattr(net, f"_register_{kind}_node_hook")(lambda *nodes, kind=kind, **named: log.append(kind))
        graph = copy.deepcopy(net).graph
        first = next(iter(graph.nodes))
        graph.erase_node(graph.call_function(abs, (first,)))
        first.replace_all_uses_with(first)
        check.order("hooks on the nodes of a copy", sorted({*log}), ["create", "erase", "replace"])
    if hasattr(net, "_register_deepcopy_hook"):
        log.clear()
        net.meta["word"] = "mine"
        net._register_deepcopy_hook(lambda module: log.append(module.meta.get("word")))
        copy.deepcopy(net)
        check.order("the meta of a copy as hooks on copies meet it", log, ["mine"])
