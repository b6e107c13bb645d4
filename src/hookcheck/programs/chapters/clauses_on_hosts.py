"""Does what holds for hooks of plain modules and optimizers hold on every host?

The programs of the other chapters run unchanged, but what they make their modules or optimizers by gives something else
(see `hookcheck.programs.hosting`): a module that is parametrized, whose norm was undone, that is or was lazy, that is a
copy, that was fused, that has its own methods, that takes no hooks and says so, that is compiled; an optimizer that is
fused, a subclass, a copy. Each fact of theirs must be what it is on the plain one. What a host is meant to change is
left out, with the reason.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.contract.finding import Finding
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.hosts import GROUPS
from hookcheck.programs.chapters.torch_compile import fresh
from hookcheck.programs.check import Check, NotOffered, NotRun
from hookcheck.programs.host_changes import CHANGES, Release, offered
from hookcheck.programs.hosting import BY_HAND, LAYERS, MODULES, Make, hosted, untrue
from hookcheck.programs.program import Program, program, programs

Module = Any


@cache
def own_methods(kind: type) -> type:
    """A subclass with methods of its own, which all do what those of ``kind`` do; it is pickled by that."""

    class Own(kind):
        def __reduce__(self) -> Any:
            return restored, (kind, self.__getstate__() if hasattr(object, "__getstate__") else vars(self))

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(*args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)

        def __setstate__(self, state: Any) -> None:
            super().__setstate__(state)

        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            super()._save_to_state_dict(destination, prefix, keep_vars)

        def _load_from_state_dict(self, *args: Any) -> None:
            super()._load_from_state_dict(*args)

    Own.__name__ = kind.__name__
    return Own


def restored(kind: type, state: Any) -> Module:
    """A module with methods of its own, of what was pickled."""
    module = own_methods(kind)()
    module.__setstate__(state)
    return module


def _with_methods(module: Module) -> Module:
    module.__class__ = own_methods(type(module))
    return module


def _weighty(change: Callable[[Module], Any]) -> Make:
    """Does something to a module that has a weight."""

    def make(module: Module) -> Module:
        if "weight" in module._parameters:
            change(module)
        return module

    return make


def _there_and_back(name: str) -> Make:
    def make(module: Module) -> Any:
        CHANGES[name].there(module)
        CHANGES[name].back(module)

    return _weighty(make)


def _hooked_before(module: Module) -> Module:
    """The module, on which hooks were and are no more."""
    names = (name for group in ("forward", "state") for name in GROUPS[group] if hasattr(module, name))
    for handle in [getattr(module, name)(print) for name in names]:
        handle.remove()
    return module


def _was_lazy(linear: Module) -> Module:
    """A Linear of the same numbers that did not know its width until it was called."""
    lazy = nn.LazyLinear(linear.out_features, bias=linear.bias is not None)
    lazy(torch.zeros(1, linear.in_features))
    lazy.load_state_dict(linear.state_dict())
    return lazy


def _still_lazy(linear: Module) -> Module:
    """The same that has its numbers from a state dict, and is lazy until it is called."""
    lazy = nn.LazyLinear(linear.out_features, bias=linear.bias is not None)
    lazy.load_state_dict(linear.state_dict())
    return lazy


def _fused(linear: Module) -> Module:
    """What is made of a Linear and a normalisation that changes nothing."""
    from torch.nn.utils.fusion import fuse_linear_bn_eval

    norm = nn.BatchNorm1d(linear.out_features, eps=0.0).eval()
    return fuse_linear_bn_eval(linear.eval(), norm).train()


def _replica(module: Module) -> Module:
    """A replica as DataParallel makes it, whose parameters are plain attributes."""
    replica = module._replicate_for_data_parallel()
    for name, parameter in module._parameters.items():
        setattr(replica, name, parameter)
    return replica


def _traced(module: Module) -> Module:
    from torch import fx

    return fx.symbolic_trace(module)


@dataclass(frozen=True)
class Kind:
    """What a host makes of a module that a program makes by one of ``names``, since which release it can be; which
    clauses it is meant to make untrue, by patterns of their ids or chapters, or which of their facts, by patterns of
    ``id: fact``, with the reason, and ``before`` a release which more; and what torch says where it ``refuses`` hooks
    on it, aloud."""

    make: Make
    names: tuple[str, ...] = MODULES
    since: Release = (1, 8)
    but: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[Release, Mapping[str, str]] = field(default_factory=dict)
    refuses: str = ""


CHAPTERS = (
    "handles", "hook-order", "call-path", "forward-pre-hooks", "forward-hooks", "always-call", "full-backward-hooks",
    "full-backward-pre-hooks", "legacy-backward-hooks", "backward-hook-firing", "backward-hook-results",
    "acting-backward-hooks", "global-hooks", "global-backward-hooks", "registration-hooks", "state-dict-hooks",
    "copying", "serialization",
)  # fmt: skip
"""The chapters on registering, removing, ordering, calls, state dicts and copies."""

AS_MADE = dict.fromkeys(
    ("RG-01", "RG-03", "RG-06"), "it is about what registers while a module is made, and each host makes more"
)
COMPUTED = {
    "state-dict-hooks": "what is saved has other names",
    "legacy-backward-hooks": "a weight that is computed has Nodes of its own, which legacy hooks meet",
}

KINDS = {
    "own methods": Kind(_with_methods),
    "hooked before": Kind(_hooked_before),
    "parametrized": Kind(
        _weighty(CHANGES["parametrized"].there),
        LAYERS,
        (1, 9),
        {**COMPUTED, "EX-10": "a parametrization is a module too, which hooks on all modules meet"},
    ),
    "parametrized, undone": Kind(_there_and_back("parametrized"), since=(1, 9)),
    "pruned": Kind(_weighty(CHANGES["pruned"].there), LAYERS, but=COMPUTED),
    "pruned, undone": Kind(_there_and_back("pruned")),
    "weight_norm": Kind(_weighty(CHANGES["weight_norm"].there), LAYERS, but=COMPUTED),
    "weight_norm, undone": Kind(_there_and_back("weight_norm"), LAYERS),
    "was lazy": Kind(_was_lazy, ("Linear",), (1, 13)),
    "still lazy": Kind(
        _still_lazy,
        ("Linear",),
        (1, 13),
        dict.fromkeys(("SD-0[125]: arguments *", "SD-07: calls"), "its class is LazyLinear until it is called"),
    ),
    "fused layers": Kind(
        _fused, ("Linear",), (1, 13), {"state-dict-hooks": "what is fused has a bias, which is saved as well"}
    ),
    "deep copy": Kind(copy.deepcopy, (*LAYERS, *BY_HAND)),
    "shallow copy": Kind(copy.copy),
    "unpickled": Kind(lambda module: pickle.loads(pickle.dumps(module)), LAYERS),
    "replica": Kind(_replica, (*LAYERS, *BY_HAND), but={"state-dict-hooks": "a replica has no parameters to save"}),
    "ScriptModule": Kind(
        lambda module: torch.jit.script(module),
        LAYERS,
        but={"SD-13": "it counts calls of a hook that is refused"},
        refuses="is not supported on ScriptModules",
    ),
    "GraphModule": Kind(
        _traced,
        (*LAYERS, *BY_HAND),
        but={
            "HD-05": "a GraphModule is part of a cycle, which only the collector frees",
            "GL-15": "a GraphModule is pickled by its code, and says so",
        },
    ),
}
"""The hosts of modules by name."""


def _first_steps(optimizer: Any) -> Any:
    """The optimizer, as one of a subclass whose ``step`` calls that of its parent."""

    class Calling(type(optimizer)):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    return Calling(optimizer.param_groups, **optimizer.defaults)


def _with(**options: bool) -> Make:
    """An optimizer of the same class and numbers, with options."""
    return lambda optimizer: type(optimizer)(optimizer.param_groups, **{**optimizer.defaults, **options})


def _scheduled(optimizer: Any) -> Any:
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return optimizer


def _stepped(optimizer: Any) -> Any:
    """The optimizer, after a step with hooks that were removed again."""
    handles = [optimizer.register_step_pre_hook(print), optimizer.register_step_post_hook(print)]
    for handle in handles:
        handle.remove()
    return optimizer


def _copied(make: Make) -> Make:
    """A copy that steps the parameters of the original."""

    def copied(optimizer: Any) -> Any:
        other = make(optimizer)
        for copied_group, group in zip(other.param_groups, optimizer.param_groups):
            copied_group["params"] = group["params"]
        return other

    return copied


OPTIMIZERS = {
    "with super().step()": Kind(_first_steps),
    "foreach": Kind(_with(foreach=True)),
    "fused": Kind(
        _with(fused=True), since=(2, 4), but={"OP-13": "a fused optimizer takes a GradScaler's numbers on CUDA alone"}
    ),
    "with a scheduler": Kind(_scheduled),
    "hooked before": Kind(_stepped),
    "deep copy": Kind(_copied(copy.deepcopy)),
    "unpickled": Kind(_copied(lambda optimizer: pickle.loads(pickle.dumps(optimizer)))),
}
"""The hosts of optimizers by name."""


def _meet_more(reason: str) -> Mapping[str, str]:
    """The clauses on hooks on all modules, which count their calls, or act once by each."""
    return dict.fromkeys(
        (
            *("global-hooks", "global-backward-hooks", "EX-10", "FW-16", "AC-04", "AC-12"),
            *("BF-16: pre-hooks", "*: *register_module_*", "B[WP]-??: global ones*", "AC-01: *, a global one"),
            "AC-0[23]: *, [12] global and *",
        ),
        reason,
    )


def _compiled_in_place(module: Module) -> Module:
    module.compile(backend="eager")
    return module


COMPILED = {
    "OptimizedModule": Kind(
        lambda module: torch.compile(module, backend="eager"),
        (*LAYERS, *BY_HAND),
        (2, 1),
        {
            "state-dict-hooks": "what is saved has other names",
            "RG-04: * for a module": "an OptimizedModule registers the module that it is made of",
            **_meet_more(
                "hooks on all modules meet the OptimizedModule and the module in it; torch warns of the additional call"
            ),
        },
    ),
    "Module.compile": Kind(
        _compiled_in_place,
        (*LAYERS, *BY_HAND),
        (2, 2),
        {"HD-05": "what is compiled in place is part of a cycle, which only the collector frees"},
        {(2, 4): _meet_more("hooks on all modules meet the graph as well, which is called as a module up to 2.3")},
    ),
}
"""The hosts of modules that torch.compile makes, by name; with the backend that runs a graph as it is."""


def is_meant(kind: Kind, *words: str) -> str | None:
    """Why a host of that kind is meant to make untrue what has one of ``words``: an id, a chapter, a fact; or None."""
    earlier = [reasons.items() for release, reasons in kind.before.items() if not offered(release)]
    reasons = dict(chain(AS_MADE.items(), kind.but.items(), *earlier))
    return next((reasons[p] for p in reasons for word in words if fnmatchcase(word, p)), None)


def fitting(kind: Kind, chapters: tuple[str, ...]) -> Iterator[Program]:
    """The programs of those chapters that hold on such hosts."""
    for chapter in chapters:
        for one in programs(chapter):
            major, minor = map(int, one.since.split("."))
            if offered((major, minor)) and not one.alone and not is_meant(kind, one.id, chapter):
                yield one


@dataclass(frozen=True)
class OnHost:
    """What of a program does not hold on a host and does elsewhere, by the names of its facts."""

    host: str
    program: str
    findings: Mapping[str, Finding]


def seen(
    check: Check, kinds: Mapping[str, Kind], chapters: tuple[str, ...], of_optimizers: bool = False
) -> Iterator[OnHost]:
    """Runs the programs on each host."""
    plain: dict[str, Mapping[str, Finding]] = {}
    for name, kind in kinds.items():
        modules = {} if of_optimizers else dict.fromkeys(kind.names, kind.make)
        for one in fitting(kind, chapters) if offered(kind.since) else ():
            with suppress(NotOffered, NotRun):
                if one.id not in plain:
                    plain[one.id] = untrue(one, check.device)
                with hosted(one, modules, kind.make if of_optimizers else None):
                    deviating = untrue(one, check.device, kind.refuses)
                new = {fact: finding for fact, finding in deviating.items() if fact not in plain[one.id]}
                yield OnHost(name, one.id, {f: new[f] for f in new if not is_meant(kind, f"{one.id}: {f}")})


def states(check: Check, all: Iterator[OnHost]) -> None:
    """States of each program on each host that all facts that hold elsewhere hold on it."""
    for one in all:
        check.equal(f"{one.host}: {one.program}", sorted(one.findings), [])


@program("HO-03", PIN, since="1.8", source="each clause's own")
def clauses_hold_on_hosts_of_modules(check: Check) -> None:
    """What holds of hooks on plain modules holds on modules that were changed, changed back, copied or traced."""
    states(check, seen(check, KINDS, CHAPTERS))


@program("HO-04", PIN, since="2.0", source="each clause's own")
def clauses_hold_on_hosts_of_optimizers(check: Check) -> None:
    """What holds of hooks on a plain optimizer holds on subclasses, on fused and foreach ones, and on copies."""
    states(check, seen(check, OPTIMIZERS, ("optimizer-hooks", "optimizer-state-dict-hooks"), of_optimizers=True))


@program("HO-07", PIN, since="2.1", source="each clause's own; pytorch#152740")
@fresh()
def clauses_hold_on_compiled_modules(check: Check) -> None:
    """What holds of hooks on plain modules holds on what torch.compile makes of them, and on what Module.compile
    compiles in place."""
    for one in seen(check, COMPILED, CHAPTERS):
        if not one.findings:
            check.state(f"{one.host}: {one.program}", None)
        for fact, finding in one.findings.items():
            # each by itself: of the hooks of one program some are lost, and others must not be
            features = {"host": frozenset({one.host}), "program": frozenset({one.program})}
            check.state(f"{one.host}: {one.program}: {fact}", finding, features)
