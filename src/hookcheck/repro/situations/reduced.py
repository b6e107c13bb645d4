"""The smallest scene that shows the same: choices of a situation that are as plain as can be, and the fewest acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from hookcheck.contract.explaining import Located, explained
from hookcheck.contract.finding import Finding
from hookcheck.contract.ledger import Ledger
from hookcheck.contract.verdict import PROGRAM
from hookcheck.errors import HookcheckError
from hookcheck.programs.logs import Entry
from hookcheck.programs.program import Program
from hookcheck.programs.situations import chains, sequences
from hookcheck.programs.situations.acts import (
    BODY,
    GRADLESS,
    REGISTERING,
    Act,
    Enter,
    Leave,
    Register,
    Remove,
    Situation,
    Trigger,
    Trouble,
    acts,
)
from hookcheck.programs.situations.draw import AXES, PLAIN
from hookcheck.programs.situations.fitting import why_not
from hookcheck.programs.situations.judge import deviation, held
from hookcheck.programs.situations.model import expected
from hookcheck.programs.situations.play import play
from hookcheck.programs.situations.sequences import ENDING, SORTS
from hookcheck.programs.situations.sites import SITES, HookSite, Release

AROUND = ("host", "optimizer", "input", "outer", "inner")
"""The axes of a situation that are no acts."""


@dataclass(frozen=True)
class Scene:
    """What there is, of which a ``situation`` makes the choices, and the acts that are done, one after the other."""

    situation: Situation
    acts: tuple[Act, ...]

    @property
    def contexts(self) -> list[str]:
        """The contexts that are entered."""
        entered = (act for act in self.acts if isinstance(act, Enter))
        around = [(self.situation.outer, self.situation.inner), *((act.outer, act.inner) for act in entered)]
        return [name for names in around for name in names if name]

    @property
    def finding(self) -> Finding | None:
        """How torch deviates in it."""
        return deviation(self.situation, self.acts)

    @property
    def observed(self) -> list[Entry]:
        """What is noted during the last act, or that one raises."""
        try:
            return play(self.situation, self.acts)[-1]
        except Exception as error:
            return [("raised", type(error).__name__)]


@dataclass(frozen=True)
class SceneSymptom:
    """What must stay as a scene gets smaller: how torch deviates, what explains it, and the type that is raised."""

    relation: str
    gap: str
    ledger: str | None
    raised: str


def of_situation(name: str) -> Scene:
    """The scene of the situation that a fact is about."""
    situation = next((situation for situation in held(_here()) if situation.name == name), None)
    if situation is None:
        raise HookcheckError(f"torch {torch.__version__} has no situation {name!r}")
    return Scene(situation, tuple(acts(situation)))


def of_sequences(name: str) -> Scene:
    """The scene of the first sequence that deviates of those that a fact is about."""
    deviating = next(filter(sequences.deviation, chains.by_fact(_here()).get(name, ())), None)
    if deviating is None:
        raise HookcheckError(f"none of the {name} deviates on torch {torch.__version__}")
    return Scene(PLAIN, sequences.shortest(deviating, _here()))


SCENES: Mapping[str, Callable[[str], Scene]] = {
    **{f"SI-0{number}": of_situation for number in range(1, 6)},
    "SM-02": of_sequences,
}
"""What gives the scene of a fact, by the clause that states it."""


def _here() -> Release:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def symptom(program: Program, scene: Scene, ledger: Ledger) -> SceneSymptom | None:
    """How a scene deviates from a clause; None where it conforms."""
    finding = scene.finding
    if finding is None:
        return None
    name = scene.situation.name
    located = Located(program.id, name, finding, {**scene.situation.features, "fact": frozenset({name})})
    (deviating,) = explained(None, PROGRAM, program.chapter, [located], ledger)
    return SceneSymptom(str(finding.relation), finding.gap, deviating.ledger, raised(finding))


def raised(finding: Finding) -> str:
    """The type of the exception that a finding is about, if any."""
    if isinstance(finding.observed, str):
        return finding.observed.partition(":")[0]
    entries = [entry for entry in finding.observed or () if entry.startswith("('raised', ")]
    return entries[0].split("'")[3] if entries else ""


def reduced(program: Program, scene: Scene, ledger: Ledger) -> Scene:
    """A scene without whatever its symptom does not need.

    Raises:
        HookcheckError: it conforms.
    """
    shown = symptom(program, scene, ledger)
    if shown is None:
        where = f"torch {torch.__version__} in {scene.situation.name!r}"
        raise HookcheckError(f"{program.id} conforms on {where}: there is nothing to reproduce")

    def alike(candidate: Scene) -> bool:
        return symptom(program, candidate, ledger) == shown

    return _renamed(_shortest(_plainest(scene, alike), alike))


def _plainest(scene: Scene, alike: Callable[[Scene], bool]) -> Scene:
    """The scene of a situation with each choice as simple as it can be for what it shows."""
    again = True
    while again:
        again = False
        for plainer in _plainer(scene.situation):
            candidate = Scene(plainer, tuple(acts(plainer)))
            if not why_not(plainer) and alike(candidate):
                scene, again = candidate, True
                break
    return scene


def _plainer(situation: Situation) -> Iterator[Situation]:
    """The situation with the simplest choice on one axis, then with any that is simpler than its own."""
    axes = {axis: AXES[axis][: AXES[axis].index(getattr(situation, axis))] for axis in AXES if axis != "site"}
    yield from (_with_choice(situation, axis, simpler[0]) for axis, simpler in axes.items() if simpler)
    for axis, simpler in axes.items():
        yield from (_with_choice(situation, axis, choice) for choice in simpler[1:])


def _with_choice(situation: Situation, axis: str, choice: Any) -> Situation:
    chosen: dict[str, Any] = {axis: choice}
    return replace(situation, **chosen)


def _shortest(scene: Scene, alike: Callable[[Scene], bool]) -> Scene:
    """The scene up to the act that shows it, and of the others those alone that it needs, each as plain as can be."""
    prefixes = (Scene(scene.situation, scene.acts[:length]) for length in range(1, len(scene.acts)))
    scene = next(filter(alike, prefixes), scene)
    again = True
    while again:
        again = False
        for act in reversed(scene.acts):
            for fewer in filter(alike, (*without(scene, act), *_plainer_scenes(scene, act))):
                scene, again = fewer, True
                break
    return scene


def without(scene: Scene, act: Act) -> Iterator[Scene]:
    """The scene without an act, and without all that is done to a hook that it registers, if it makes sense then."""
    gone = act.hook if isinstance(act, Register) else ""
    left = tuple(each for each in scene.acts if each is not act and not (gone and gone in _hooks(each)))
    if left and sensible(left):
        yield Scene(scene.situation, left)


def _hooks(act: Act) -> set[str]:
    """The hooks that an act needs."""
    if isinstance(act, Remove):
        return {act.hook}
    if isinstance(act, Trouble) and (act.what == BODY or not act.what.startswith("the ")):
        return {act.hook, act.other} if act.what == "removes another" else {act.hook}
    return set()


def sensible(acts: Sequence[Act]) -> bool:
    """Whether what acts need is there: hooks that are registered, a graph to go back through or to hang a hook on."""
    registered = {act.hook for act in acts if isinstance(act, Register)}
    differentiable = False
    for act in acts:
        on_graph = isinstance(act, Register) and SITES[act.site].graph
        backward = isinstance(act, Trigger) and act.what == "backward"
        if not _hooks(act) <= registered or ((on_graph or backward) and not differentiable):
            return False
        if isinstance(act, Trigger) and act.what in ("forward", *ENDING):
            differentiable = act.what == "forward" and act.call not in GRADLESS
    return True


def _renamed(scene: Scene) -> Scene:
    """The scene with its hooks named in the order in which they come, those last that a hook registers."""
    registered = [act.hook for act in scene.acts if isinstance(act, Register)]
    others = [act.other for act in scene.acts if isinstance(act, Trouble) and act.what in REGISTERING]
    names = dict(zip(dict.fromkeys((*registered, *others)), "abcdefg"))
    return Scene(scene.situation, tuple(_with_names(act, names) for act in scene.acts))


def _with_names(act: Act, names: dict[str, str]) -> Act:
    if isinstance(act, Trouble):
        return replace(act, hook=names.get(act.hook, act.hook), other=names.get(act.other, act.other))
    return replace(act, hook=names[act.hook]) if isinstance(act, (Register, Remove)) else act


def controls(scene: Scene) -> Iterator[Scene]:
    """Scenes that end with the same act and differ in a single thing, where torch calls hooks as it must."""
    for candidate in _one_step_away(scene):
        if _passes(candidate, scene):
            yield candidate


def of_other_kinds(scene: Scene) -> Iterator[Scene]:
    """The same scenes with a hook of another kind, which torch calls as it must."""
    for at, act in enumerate(scene.acts):
        for other in _siblings(act) if isinstance(act, Register) else ():
            candidate = Scene(scene.situation, (*scene.acts[:at], other, *scene.acts[at + 1 :]))
            if _passes(candidate, scene):
                yield candidate


def _siblings(act: Register) -> Iterator[Register]:
    """Registrations of other hooks that are called beside the one of a registration."""
    chosen = SITES[act.site]
    for site in SITES.values():
        beside = (_sort(site), site.where, site.graph) == (_sort(chosen), chosen.where, chosen.graph)
        first = not act.first or site.prepends is not None
        if beside and first and site != chosen and site.since <= _here():
            yield replace(act, site=site.name)


def _sort(site: HookSite) -> tuple[str, ...]:
    """The lanes of hooks that the same events call."""
    return next(lanes for lanes, _ in SORTS if site.lane.replace("legacy", "calls") in lanes)


def _passes(candidate: Scene, scene: Scene) -> bool:
    """Whether a scene is a control of another one: that no hook is called says little."""
    if not _of_one_sort(candidate.acts[-1], scene.acts[-1]):
        return False
    says = bool(expected(candidate.acts)[-1][1]) or any(entry[0] == "raised" for entry in scene.observed)
    return says and candidate.finding is None


def _of_one_sort(act: Act, other: Act) -> bool:
    """Whether two acts differ at most in the way in which they are done."""
    return next(_plainer_acts(act), act) == next(_plainer_acts(other), other)


def _one_step_away(scene: Scene) -> Iterator[Scene]:
    situation = scene.situation
    for axis in AROUND:
        if getattr(situation, axis) != AXES[axis][0]:
            yield Scene(_with_choice(situation, axis, AXES[axis][0]), scene.acts)
    for act in scene.acts:
        if not isinstance(act, Leave):
            yield from (*_plainer_scenes(scene, act), *without(scene, act))


def _plainer_scenes(scene: Scene, act: Act) -> Iterator[Scene]:
    """The scene with a plainer act in the place of one."""
    for plainer in _plainer_acts(act):
        yield Scene(scene.situation, tuple(plainer if each is act else each for each in scene.acts))


def _plainer_acts(act: Act) -> Iterator[Act]:
    if isinstance(act, Trigger) and act.way != "backward":
        yield replace(act, way="backward")
    if isinstance(act, Trigger) and act.call:
        yield replace(act, call="")
    if isinstance(act, (Remove, Trouble)) and act.way != "remove":
        yield replace(act, way="remove")
    if isinstance(act, (Register, Trouble)) and act.first:
        yield replace(act, first=False)
