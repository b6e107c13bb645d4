"""How does a program run unchanged on modules and optimizers of another kind? What it makes them by is replaced.

A program makes its modules by a few names: `MODULES`, and its optimizers by those of `torch.optim`. While it runs on a
host these names give what the host makes of what they gave before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from hookcheck.contract.finding import Finding
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs import nets, watching
from hookcheck.programs.program import Program

LAYERS, BY_HAND, CONTAINERS = ("Linear", "Identity", "MSELoss"), ("times", "weighted"), ("net", "Sequential")
ENCODERS, UNSIZED = ("MultiheadAttention", "TransformerEncoderLayer", "TransformerEncoder"), ("LazyLinear",)
MODULES = (*LAYERS, *BY_HAND, *CONTAINERS)
ALL_MODULES = (*MODULES, *ENCODERS, *UNSIZED)
"""What programs make modules by: classes of ``torch.nn``, and functions of `hookcheck.programs.nets`."""

OPTIMIZERS = ("SGD", "Adam", "AdamW", "LBFGS")
"""What they make optimizers by."""

Make = Callable[[Any], Any]


class Others(ModuleType):
    """A module in which some names stand for something else."""

    def __init__(self, module: ModuleType, others: Mapping[str, Any]) -> None:
        """Whatever is not in ``others`` is that of ``module``."""
        super().__init__(module.__name__)
        vars(self).update(others, _module=module)

    def __getattr__(self, name: str) -> Any:
        """The attribute of the module itself."""
        return getattr(vars(self)["_module"], name)


def made_into(make: Make, original: Callable[..., Any]) -> Callable[..., Any]:
    """What ``make`` makes of what ``original`` gives."""
    return lambda *args, **kwargs: make(original(*args, **kwargs))


@contextmanager
def hosted(program: Program, makes: Mapping[str, Make]) -> Iterator[None]:
    """While it is open, what ``program`` makes by each name is what stands there makes of it."""
    functions = {name: getattr(nets, name) for name in ALL_MODULES if hasattr(nets, name)}

    def of(place: Any, names: Iterable[str]) -> dict[str, Any]:
        return {name: made_into(makes[name], getattr(place, name)) for name in names if name in makes}

    others = of(nets, functions)
    if layers := of(nn, {*ALL_MODULES} - {*functions}):
        others["nn"] = Others(nn, layers)
    if classes := of(torch.optim, OPTIMIZERS):
        others["torch"] = Others(torch, {"optim": Others(torch.optim, classes)})
    originals = {**functions, "nn": nn, "torch": torch}
    with ExitStack() as stack:
        for place in (sys.modules[program.judge.__module__], watching):
            names = {name: other for name, other in others.items() if vars(place).get(name) is originals[name]}
            stack.enter_context(named(vars(place), names))
        yield


@contextmanager
def named(names: dict[str, Any], others: Mapping[str, Any]) -> Iterator[None]:
    """While it is open, some names stand for others; what comes to the names meanwhile stays, since what torch.compile
    made of a function calls what it put beside it, also when it runs again later."""
    before = {name: names[name] for name in others}
    names.update(others)
    try:
        yield
    finally:
        names.update(before)


def untrue(program: Program, device: str, refusal: str = "") -> dict[str, Finding]:
    """How the facts of the program that are not so where it runs now are not, by name; but for those in the place of
    which torch says a ``refusal``."""
    from hookcheck.programs.facts import facts_of

    findings = {fact.name: fact.finding for fact in facts_of(program, device) if fact.finding}
    return {name: one for name, one in findings.items() if not refusal or refusal not in str(one.observed)}
