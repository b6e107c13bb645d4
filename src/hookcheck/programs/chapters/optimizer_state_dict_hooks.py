"""What do hooks on an optimizer's ``state_dict`` and ``load_state_dict`` promise?

Four kinds enclose the two: a state_dict pre-hook ``hook(optimizer)``, a post-hook ``hook(optimizer, state_dict)`` that
may change what is saved, a load pre-hook ``hook(optimizer, state_dict)`` that may change what is loaded, and a load
post-hook ``hook(optimizer)``. With ``prepend`` a hook goes before its like.
"""

from __future__ import annotations

from collections import OrderedDict
from copy import deepcopy
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

SAVE_PRE = "torch.optim.Optimizer.register_state_dict_pre_hook"
SAVE_POST = "torch.optim.Optimizer.register_state_dict_post_hook"
LOAD_PRE = "torch.optim.Optimizer.register_load_state_dict_pre_hook"
LOAD_POST = "torch.optim.Optimizer.register_load_state_dict_post_hook"


def _sgd(lr: float = 0.25) -> Any:
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=lr)


def _rate(state: Any) -> float:
    """The learning rate in a state_dict."""
    return float(state["param_groups"][0]["lr"])


@program("OP-05", PROMISE, since="2.1", source=f"{SAVE_PRE}; 'called before state_dict'")
def a_pre_hook_runs_before_state_dict(check: Check) -> None:
    """A state_dict pre-hook is called as ``(optimizer)`` before ``state_dict``, which gives what it changes."""
    optimizer = _sgd()
    log: list[Any] = []

    def changed(*arguments: Any) -> Any:
        log.append(arguments)
        optimizer.param_groups[0]["lr"] = 0.5 * len(log)
        return {}

    handle = optimizer.register_state_dict_pre_hook(changed)
    rates = [_rate(optimizer.state_dict()) for _ in range(2)]
    check.equal("learning rates in state_dict", rates, [0.5, 1])
    given = [len(arguments) == 1 and arguments[0] is optimizer for arguments in log]
    check.equal("calls with the optimizer alone", given, [True, True], "argument")
    handle.remove()
    check.equal("the learning rate once it is removed", _rate(optimizer.state_dict()), 1)
    check.calls("calls once it is removed", len(log) - 2, 0)


@program("OP-06", PROMISE, since="2.1", source=f"{SAVE_POST}; 'modify the state_dict inplace or return a new one'")
def a_post_hook_changes_the_state_dict(check: Check) -> None:
    """A state_dict post-hook is called as ``(optimizer, state_dict)`` and may edit it in place or return a new one."""
    optimizer = _sgd()
    log: list[Any] = []

    def edited(optimizer: Any, state: Any) -> None:
        log.append(sorted(state))
        state["note"] = "edited"

    def renewed(optimizer: Any, state: Any) -> Any:
        return {"note": f"renewed, {state['note']}"}

    optimizer.register_state_dict_post_hook(edited)
    state = optimizer.state_dict()
    check.equal("keys after an edit in place", sorted(state), ["note", "param_groups", "state"])
    handle = optimizer.register_state_dict_post_hook(renewed)
    optimizer.register_state_dict_post_hook(lambda given, state: log.append((given is optimizer, dict(state))))
    new = {"note": "renewed, edited"}
    check.equal("what a hook returns in its place", dict(optimizer.state_dict()), new)
    keys = ["param_groups", "state"]
    check.order("what hooks get", log, [keys, keys, (True, new)])
    handle.remove()
    check.equal("keys once that hook is removed", sorted(optimizer.state_dict()), ["note", *keys])
    optimizer.register_state_dict_post_hook(lambda optimizer, state: {})
    check.equal("what a hook returns that returns an empty one", dict(optimizer.state_dict()), {})


@program("OP-07", PROMISE, since="2.1", source=f"{LOAD_PRE}; 'a shallow copy of the state_dict'")
def a_load_pre_hook_gets_a_shallow_copy(check: Check) -> None:
    """A load pre-hook is called as ``(optimizer, state_dict)`` with a shallow copy of what is to be loaded."""
    optimizer = _sgd()
    state = _sgd(lr=0.125).state_dict()
    given: list[Any] = []

    def seen(optimizer: Any, state: Any) -> None:
        given.append((optimizer, state, optimizer.param_groups[0]["lr"]))
        state["added"] = 1
        state["param_groups"][0]["nested"] = 1

    optimizer.register_load_state_dict_pre_hook(seen)
    optimizer.load_state_dict(state)
    check.calls("calls", len(given), 1)
    check.true("the optimizer is given", given[0][0] is optimizer, "argument")
    check.true("the dict is a copy", given[0][1] is not state, "argument")
    shared = given[0][1]["param_groups"] is state["param_groups"]
    check.true("the copy is shallow", shared, "argument")
    check.equal("the learning rate at the call", given[0][2], 0.25)
    check.equal("keys of the caller's dict", sorted(state), ["param_groups", "state"])
    check.equal("an edit below the top, in the caller's dict", state["param_groups"][0].get("nested"), 1)


@program("OP-08", PROMISE, since="2.1", source=f"{LOAD_PRE}; 'modify the state_dict inplace or return a new one'")
def a_load_pre_hook_changes_what_is_loaded(check: Check) -> None:
    """What a load pre-hook writes into the dict, or returns for it, is what later hooks get and what is loaded."""
    optimizer = _sgd()
    log: list[float] = []

    def edited(optimizer: Any, state: Any) -> None:
        state["param_groups"] = [{**state["param_groups"][0], "lr": 0.125}]

    def renewed(optimizer: Any, state: Any) -> Any:
        return {**state, "param_groups": [{**state["param_groups"][0], "lr": 0.0625}]}

    optimizer.register_load_state_dict_pre_hook(edited)
    optimizer.load_state_dict(optimizer.state_dict())
    check.equal("the learning rate after an edit in place", _rate(optimizer.state_dict()), 0.125)
    handle = optimizer.register_load_state_dict_pre_hook(renewed)
    optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: log.append(_rate(state)))
    optimizer.load_state_dict(optimizer.state_dict())
    check.equal("the learning rate of what is returned", _rate(optimizer.state_dict()), 0.0625)
    check.order("what a later hook gets", log, [0.0625])
    handle.remove()
    optimizer.load_state_dict(optimizer.state_dict())
    check.equal("the learning rate once that hook is removed", _rate(optimizer.state_dict()), 0.125)
    optimizer.register_load_state_dict_pre_hook(lambda *given: OrderedDict(renewed(*given)))
    optimizer.load_state_dict(optimizer.state_dict())
    check.equal("the learning rate of an OrderedDict that is returned", _rate(optimizer.state_dict()), 0.0625)
    optimizer.register_load_state_dict_pre_hook(lambda *given: {})
    load = partial(optimizer.load_state_dict, optimizer.state_dict())
    check.raises("an empty dict that is returned", KeyError, load, "param_groups")


@program("OP-09", PROMISE, since="2.1", source=f"{LOAD_POST}; 'called after load_state_dict'")
def a_load_post_hook_runs_after_loading(check: Check) -> None:
    """A load post-hook is called as ``(optimizer)`` after ``load_state_dict``, whose effect it can see and change."""
    optimizer = _sgd()
    state = _sgd(lr=0.125).state_dict()
    log: list[Any] = []

    def changed(*arguments: Any) -> None:
        log.append((len(arguments), arguments[0] is optimizer, optimizer.param_groups[0]["lr"]))
        optimizer.param_groups[0]["lr"] = 0.5

    handle = optimizer.register_load_state_dict_post_hook(changed)
    optimizer.load_state_dict(state)
    optimizer.load_state_dict(state)
    check.order("calls, with the learning rate", log, [(1, True, 0.125)] * 2)
    check.equal("the learning rate that a hook sets", optimizer.param_groups[0]["lr"], 0.5)
    handle.remove()
    optimizer.load_state_dict(state)
    check.equal("the learning rate once it is removed", optimizer.param_groups[0]["lr"], 0.125)
    check.calls("calls once it is removed", len(log) - 2, 0)
    optimizer.register_load_state_dict_post_hook(lambda optimizer: log.append("after an error"))
    refused = partial(optimizer.load_state_dict, {"state": {}, "param_groups": []})
    check.raises("a state that does not fit", ValueError, refused, "different number of parameter groups")
    check.calls("calls after a state that does not fit", len(log) - 2, 0)


@program("OP-10", PROMISE, since="2.1", source=f"{SAVE_PRE}, {SAVE_POST}, {LOAD_PRE}, {LOAD_POST}; 'prepend'")
def prepend_puts_a_hook_first(check: Check) -> None:
    """A hook on state_dict or its loading goes after those of its kind, and before them with ``prepend=True``."""
    for name in (api.rpartition(".")[2] for api in (SAVE_PRE, SAVE_POST, LOAD_PRE, LOAD_POST)):
        optimizer = _sgd()
        log: list[str] = []
        register = getattr(optimizer, name)
        for who, options in (("a", {}), ("b", {}), ("c", {"prepend": True}), ("d", {"prepend": True}), ("e", {})):
            register(lambda *arguments, log=log, who=who: log.append(who), **options)
        optimizer.load_state_dict(optimizer.state_dict())
        check.order(f"hooks of {name}", log, ["d", "c", "a", "b", "e"])


@program("OP-12", PROMISE, since="2.6", source="torch.optim.Optimizer.load_state_dict; note on 'param_names'")
def a_load_pre_hook_goes_by_names(check: Check) -> None:
    """Loading goes by place, whatever parameters are named; a load pre-hook can make it go by name."""

    def optimizer_of(*names: str) -> Any:
        named = [(name, nn.Parameter(torch.zeros(1))) for name in names]
        for name, parameter in named:
            parameter.grad = torch.tensor([float(ord(name))])
        return torch.optim.SGD(named, lr=0.25, momentum=0.5)

    def momenta(optimizer: Any) -> list[float]:
        return [optimizer.state[p]["momentum_buffer"].item() for p in optimizer.param_groups[0]["params"]]

    def by_name(optimizer: Any, state: Any) -> Any:
        (group,) = state["param_groups"]
        saved = dict(zip(group["param_names"], group["params"]))
        names = optimizer.param_groups[0]["param_names"]
        moved = {place: state["state"][saved[name]] for place, name in enumerate(names)}
        return {"state": moved, "param_groups": [{**group, "params": [*range(len(names))], "param_names": names}]}

    source = optimizer_of("a", "b")
    source.step()  # the first step's momentum is the gradient: 97 of a, 98 of b
    plain, adapted = optimizer_of("b", "a"), optimizer_of("b", "a")
    adapted.register_load_state_dict_pre_hook(by_name)
    for optimizer in (plain, adapted):
        optimizer.load_state_dict(source.state_dict())
    check.equal("momenta of b and a without the hook", momenta(plain), [97, 98])
    check.equal("names without the hook: as loaded", plain.param_groups[0]["param_names"], ["a", "b"])
    check.equal("momenta of b and a under the hook", momenta(adapted), [98, 97])
    check.equal("names under the hook", adapted.param_groups[0]["param_names"], ["b", "a"])


@program(
    "OP-22",
    PIN,
    since="1.7",
    source="load_state_dict; relied on by copies of optimizers; pytorch#196083",
)
def loaded_state_is_its_own(check: Check) -> None:
    """The state that an optimizer loads is its own: a step of the one that it came from leaves it as it was, be the
    dict loaded as it is or copied by a load pre-hook."""
    kinds: dict[str, Any] = {
        "SGD": lambda p: torch.optim.SGD([p], lr=0.5, momentum=0.5),
        "Adam": lambda p: torch.optim.Adam([p], lr=0.5),
        "RMSprop": lambda p: torch.optim.RMSprop([p], lr=0.5),
    }
    names = {"SGD": "momentum_buffer", "Adam": "exp_avg", "RMSprop": "square_avg"}
    copies = (False, True) if hasattr(torch.optim.Optimizer, "register_load_state_dict_pre_hook") else (False,)
    for kind, make in kinds.items():
        for copied in copies:
            one, other = (nn.Parameter(torch.zeros(1)) for _ in range(2))
            source, target = make(one), make(other)
            one.grad = torch.ones(1)
            source.step()
            if copied:
                target.register_load_state_dict_pre_hook(lambda optimizer, state: deepcopy(state))
            target.load_state_dict(source.state_dict())
            before = target.state[other][names[kind]].tolist()
            one.grad = torch.full((1,), 4.0)
            source.step()
            what = f"{kind}, {'copied by a hook' if copied else 'as it is'}"
            check.equal(f"{what}: state after a step of the source", target.state[other][names[kind]], before)
