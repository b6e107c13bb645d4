"""The script of acts that follow one another: the fewest that show a fault, beside others that are as documented.

What is noted is what the fault is about: which hooks are called, if need be on which modules, with which values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product

import torch

from hookcheck.contract.site import ORDER, RAISES
from hookcheck.errors import HookcheckError
from hookcheck.programs.chapters.interactions import by_matter
from hookcheck.programs.logs import Entry
from hookcheck.programs.machine.model import (
    PARTS,
    Act,
    BackwardAct,
    CopyAct,
    FailAct,
    ForwardAct,
    GradAct,
    ModuleSite,
    RegisterAct,
    RemoveAct,
    TrainAct,
    fitted,
    kinds,
    steps,
)
from hookcheck.programs.machine.search import DeviatingActs, deviation, simpler, without
from hookcheck.programs.program import Program
from hookcheck.releases.numbers import release
from hookcheck.repro.acts import ActLines, Cast, Noted, Played
from hookcheck.repro.formatting import formatted
from hookcheck.repro.heading import LACKS, ending, header, since_guard
from hookcheck.repro.links import links
from hookcheck.repro.runs import forked
from hookcheck.repro.search import Run

LEVELS = tuple(Noted(modules, values, results) for values, modules, results in product((False, True), repeat=3))
"""What a script may note, the least first."""


def machine_script(program: Program, device: str | None, fact: str, run: Run) -> tuple[str, str]:
    """The title and the script of a fact of the machine of acts that is not so on the torch at hand.

    Raises:
        HookcheckError: it is about another device, none of its sequences deviates, or no script shows it.
    """
    if device not in (None, "cpu"):
        raise HookcheckError(f"the acts of {program.id} are played on the CPU alone: leave --device {device} out")
    shown = next(filter(None, map(deviation, by_matter(release(torch.__version__))[fact])), None)
    if shown is None:
        raise HookcheckError(f"{program.id} conforms on torch {torch.__version__} in {fact!r}: nothing to reproduce")
    shown = reduced(shown)
    heading = title(shown)
    beside = [*controls(shown)]
    for noted, control in (*product(LEVELS, beside), *product(LEVELS, (None,))):
        text = _script(program, heading, shown, control, noted)
        if text and run(text)[0] == 1:
            return heading, text
    raise HookcheckError(f"no script that shows {program.id} can be written yet: {heading}")


def reduced(shown: DeviatingActs) -> DeviatingActs:
    """The deviation that is left once no act can go, and none be simpler, without the fault being another one."""
    while True:
        acts = [act for act, _ in shown.steps]
        smaller = filter(None, map(deviation, _smaller(acts)))
        less = next((one for one in smaller if _symptom(one) == _symptom(shown)), None)
        if less is None:
            return shown
        shown = less


def _symptom(shown: DeviatingActs) -> tuple[object, ...]:
    """What two sequences must share to show the same fault; of an exception the text, without numbers."""
    of = shown.difference
    raised = [str(entry) for entry in shown.observed if entry[0] == "raised"] if of.relation == RAISES else []
    return of.gap, of.relation, of.site.kind, *(re.sub(r"\d+", "…", text) for text in raised)


def _smaller(acts: Sequence[Act]) -> Iterator[tuple[Act, ...]]:
    """The acts with one left out, the last ones first, or with one that is simpler."""
    for place in reversed(range(len(acts))):
        yield without(acts, [*acts[:place], None, *acts[place + 1 :]])
    for place, act in enumerate(acts):
        for one in _plainer(act):
            yield without(acts, [*acts[:place], one, *acts[place + 1 :]])
    sites = [ModuleSite(0, part) for part in PARTS]
    for site, other in combinations(reversed(sites), 2):  # all that is on one module goes to a simpler one
        moved = [replace(a, site=other) if isinstance(a, RegisterAct) and a.site == site else a for a in acts]
        if moved != [*acts]:
            yield tuple(moved)


def _plainer(act: Act) -> Iterator[Act]:
    """The act in forms that are simpler."""
    if isinstance(act, RegisterAct):
        yield from simpler(act)
        sites = [ModuleSite(0, part) for part in PARTS]
        for site in sites[: sites.index(act.site)] if act.site in sites else sites:
            yield replace(act, site=site)
    if isinstance(act, ForwardAct):
        yield from (one for one in (replace(act, grad=True), replace(act, x=1.0)) if one != act)
    if isinstance(act, (BackwardAct, GradAct)) and act.v != 1.0:
        yield replace(act, v=1.0)
    if isinstance(act, GradAct):
        yield BackwardAct(act.net, act.v)
    if isinstance(act, FailAct):
        yield ForwardAct(act.net)
    if isinstance(act, CopyAct) and act.way != "deepcopy":
        yield CopyAct(act.net)


def title(shown: DeviatingActs) -> str:
    """One line that says what torch does: ``register_forward_hook, eval: …``."""
    words = list(dict.fromkeys(word for act, _ in shown.steps[:-1] for word in _words(act)))
    words = [word for word in words if not any(other.startswith(f"{word} with") for other in words)]
    return f"{', '.join(words)}: {_wrong(shown)}" if words else _wrong(shown)


def _words(act: Act) -> list[str]:
    if isinstance(act, RegisterAct):
        of = "register" if act.site else "register_module"
        removes = [] if act.removes is None else ["a hook that removes a hook"]
        options = f" with {' and '.join(act.options)}" if act.options else ""
        return [f"{of}_{act.kind}_hook{options}", *removes]
    if isinstance(act, RemoveAct):
        return ["remove()"]
    if isinstance(act, CopyAct):
        return [act.way]
    if isinstance(act, TrainAct):
        return [f"{'train' if act.mode else 'eval'}()"]
    return []


def _done(act: Act) -> str:
    """What an act is called that has hooks called."""
    if isinstance(act, ForwardAct):
        return "a call" if act.grad else "a call under no_grad"
    return {FailAct: "a call that fails", BackwardAct: "backward", GradAct: "autograd.grad"}.get(type(act), "an act")


def _wrong(shown: DeviatingActs) -> str:
    """What is wrong with the last act."""
    (act, expected), of = shown.steps[-1], shown.difference
    if of.relation == RAISES:
        raised = next((str(e[1]) for e in shown.observed if e[0] == "raised" and e not in expected), "nothing")
        return f"{_done(act)} raises {raised}"
    due, called = ([str(e[0]) for e in log if re.fullmatch(r"h\d+", str(e[0]))] for log in (expected, shown.observed))
    if len(called) != len(due):
        return f"{_done(act)} calls {len(called)} hook{'s' * (len(called) != 1)}, not {len(due)}"
    how = "in another order" if of.relation == ORDER else "with other values" if called == due else "that it must not"
    return f"{_done(act)} calls hooks {how}"


@dataclass(frozen=True)
class ConformingActs:
    """Acts that are as documented, and the ``log`` of what must be noted."""

    played: Played
    log: Sequence[Entry]


def controls(shown: DeviatingActs) -> Iterator[ConformingActs]:
    """Acts beside those that deviate that conform, and have hooks called: without one of them, or with another one."""
    acts = [act for act, _ in shown.steps]
    for quiet in (False, True):
        for place in reversed(range(len(acts))):
            for one in (*([None] if place < len(acts) - 1 else []), *_otherwise(acts[place])):
                left = [*acts[:place], one, *acts[place + 1 :]]
                other = without(acts, left)
                played = steps(other)
                if [act for act, _ in played] != [*other] or deviation(other) is not None:
                    continue
                log = [*chain.from_iterable(log for _, log in played)]
                if quiet or any(re.fullmatch(r"h\d+", str(entry[0])) for entry in log):
                    yield ConformingActs(Played(other, _cast(acts, left)), log)


def _otherwise(act: Act) -> Iterator[Act]:
    """What may be as documented in the place of an act."""
    yield from _plainer(act)
    here = release(torch.__version__)
    if isinstance(act, RegisterAct):
        for kind in kinds(here):
            if kind != act.kind:
                yield fitted(replace(act, kind=kind), here)
        for part in PARTS if act.site else ():
            if act.site and part != act.site.part:
                yield replace(act, site=replace(act.site, part=part))
    if isinstance(act, CopyAct):
        yield replace(act, way="pickle" if act.way == "deepcopy" else "deepcopy")
    if isinstance(act, TrainAct):
        yield replace(act, mode=not act.mode)


def _cast(acts: Sequence[Act], left: Sequence[Act | None]) -> Cast:
    """The names of hooks and nets once some acts are left out: those that they had before."""
    names = Cast()
    hooks = [one for act, one in zip(acts, left) if isinstance(act, RegisterAct)]
    nets = [one for act, one in zip(acts, left) if isinstance(act, CopyAct)]
    of_hooks = tuple(name for name, one in zip(names.hooks, hooks) if one is not None)
    return Cast(of_hooks, (names.nets[0], *(name for name, one in zip(names.nets[1:], nets) if one is not None)))


def _script(program: Program, heading: str, shown: DeviatingActs, control: ConformingActs | None, noted: Noted) -> str:
    """The text of a script that notes so much; empty where that shows nothing, or nothing is noted."""
    acts, beside = Played(tuple(act for act, _ in shown.steps)), control.played if control else Played()
    ahead, due = [*chain.from_iterable(log for _, log in shown.steps[:-1])], shown.steps[-1][1]
    expected, observed = (acts.cast.entries([*ahead, *log], noted) for log in (due, shown.observed))
    of_control = beside.cast.entries(control.log, noted) if control else None
    raises = any(entry[0] == "raised" and entry not in due for entry in shown.observed)
    if (expected == observed and not raises) or not (expected if of_control is None else of_control):
        return ""
    writing = ActLines(acts, noted, beside, [name for name in acts.lingering if name in beside.hooks])
    other = ActLines(beside, noted, acts, beside.lingering)
    if writing.handles != other.handles and (writing.held or other.held):
        writing.held = other.held = writing.held | other.held
    body = forked(writing.lines(), other.lines()) if control else writing.lines()
    function = _function(body, writing, raises, bool(control))
    main = "\n\n\n".join([*writing.helpers(), function, _verdict(expected, of_control, acts.acts[-1])])
    tops = [*(["calls = []"] if writing.at_the_top else [])]
    tops += ["handles = {}"] if writing.at_the_top and "handles[" in main else []
    blocks = [
        header([heading], next(iter(links(program.source)), "").partition("#")[0]),
        _imports(main),
        _guard(program, writing.registered),
        *(["\n".join(tops)] if tops else []),
    ]
    return formatted("\n\n".join([*blocks, main]))


def _function(body: Sequence[str], writing: ActLines, raises: bool, forks: bool) -> str:
    """The function that runs once, control or experiment."""
    top = writing.at_the_top
    stays = any(act.site is None for act in writing.registered)  # a hook on all modules might still append
    lines = [*body, "return [*calls]" if top or stays else "return calls"]
    if raises:
        caught = ["except Exception as error:", '    return f"{type(error).__name__}: {error}"']
        lines = ["try:", *(f"    {line}" for line in body), *caught, lines[-1]]
    handles = ["handles = {}"] if writing.handles and not top else []
    lines = ["calls.clear()" if top else "calls = []", *handles, *lines]
    return "\n".join([f"def run({'experiment' * forks}):", *(f"    {line}".rstrip() for line in lines)])


def _verdict(expected: list[object], of_control: list[object] | None, act: Act) -> str:
    """The lines at the end: both runs, what is expected, and the exit code."""
    lines = [f"# {_derivation(act)}", f"expected = {_written(expected)}"]
    control = ""
    if of_control is None:
        lines += ["experiment = run()", 'print("experiment:", experiment)']
    else:
        control = f"control == {'expected' if of_control == expected else _written(of_control)}"
        lines += [
            "control, experiment = run(experiment=False), run(experiment=True)",
            'print("control:", control, "experiment:", experiment)',
        ]
    return "\n".join([*lines, *ending("experiment == expected", control)])


def _written(value: object) -> str:
    return repr(value).replace("'", '"')


def _derivation(act: Act) -> str:
    """Why that is expected, in one line."""
    if isinstance(act, (BackwardAct, GradAct)):
        return "A backward runs the full hooks that there were at the call, each before or after its module's."
    if isinstance(act, FailAct):
        return "Where a call fails, its pre-hooks ran before, and of its hooks those with always_call run."
    return "A call runs the hooks that there are as it begins: on all modules, on its own; prepended first."


def _imports(text: str) -> str:
    """The imports of what is used."""
    standard = [f"import {name}" for name in ("copy", "pickle") if f"{name}." in text]
    standard += ["from contextlib import suppress"] if "suppress(" in text else []
    standard += ["from functools import partial"] if "partial(" in text else []
    of_all = sorted({*re.findall(r"\bregister_module_\w+(?=\()", text)})
    modules = [f"from torch.nn.modules.module import {', '.join(of_all)}"] if of_all else []
    return "\n".join([*standard, "import torch", "from torch import nn", *modules])


def _guard(program: Program, hooks: Sequence[RegisterAct]) -> str:
    """The lines that end a script where its torch lacks a kind of hook or an option."""
    releases = [release(program.since), (2, 0), (2, 1), (2, 6)]
    major, minor = next(each for each in releases if all(fitted(hook, each) == hook for hook in hooks))
    (condition,) = since_guard(f"{major}.{minor}")
    return f"if {condition}:\n    raise SystemExit({LACKS})"
