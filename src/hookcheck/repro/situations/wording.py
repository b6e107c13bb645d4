"""What control and experiment have in common, so that they differ in nothing but in what the fault needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hookcheck.contract.site import ORDER
from hookcheck.programs.logs import Entry
from hookcheck.programs.situations.acts import REGISTERING, Act, Alter, Leave, Remove, Trouble
from hookcheck.programs.situations.axes import SURROUNDINGS
from hookcheck.programs.situations.sites import HookSite
from hookcheck.repro.situations.blocks import FLAG
from hookcheck.repro.situations.noting import Logs, Noting, logs
from hookcheck.repro.situations.reduced import Scene

SAVED = ("state_dict_pre", "state_dict", "optimizer state_dict_pre", "optimizer state_dict_post")
"""The tables of hooks that are called where something is saved."""

SAME = "lambda value: value"
"""What hooks on saved tensors are that change nothing."""


@dataclass(frozen=True)
class Words:
    """How a script speaks of parts of the net (``part`` has their index in the place of braces) and of the parameter.

    With ``single`` the net is a layer rather than two of them.
    """

    part: str
    leaf: str
    single: bool = False


WORDS = (
    Words("net", "net.weight", single=True),
    Words("net[{}]", "net[0].weight"),
    Words("net[{}]", "next(net[0].parameters())"),
    Words("net.module[{}]", "next(net.module[0].parameters())"),
    Words("part(net, {})", "leaf(net)"),
)
"""The plainest first; not each will do for every host."""

NOTINGS = (Noting(), Noting(closure=True), Noting(values=True), Noting(values=True, closure=True))
"""What hooks may note, the least first."""


@dataclass(frozen=True)
class Wording:
    """What both scenes have in common.

    Hooks that are ``defined`` stand in functions, and the ``handles`` of some have names. Events run ``within``
    contexts. Where it is about the ``alive`` hook nothing is noted, and where it is about what an act raises alone,
    that is what a run gives (``failing``). What is pickled must stand at the top of the script (``outside``). What the
    last act may raise is ``caught``, and what was noted before it is ``cleared``. Calls in an order that nothing
    promises are ``unordered``. What is loaded was saved ahead of all where ``saving`` calls hooks. Hooks are
    ``waiting`` to do something once, or ``registering`` others that are on all modules.
    """

    words: Words
    noting: Noting
    defined: frozenset[str]
    handles: Mapping[str, str]
    within: str
    alive: str
    failing: bool
    outside: bool
    caught: str
    cleared: bool
    unordered: bool
    saving: bool
    waiting: Mapping[str, Trouble]
    registering: bool


def wordings(scene: Scene, control: Scene | None) -> Iterator[Wording]:
    """What a scene and its control may have in common, the plainest first."""
    scenes = [scene, *([control] if control else [])]
    noted = [logs(each.acts) for each in scenes]
    sites = {hook: site for log in noted for hook, site in log.sites.items()}
    observed = scene.observed
    common = _common([act for each in scenes for act in each.acts], sites, noted, observed)
    common = replace(common, within=_within(scene, control), waiting=_waiting(scenes, noted))
    for noting in NOTINGS:
        if not common.alive and not _differs(scene, noted[0], observed, noting):
            continue
        last = [noting.entries(log.each[-1], log.sites) for log in noted]
        ahead = [noting.entries(entries, log.sites) for log in noted for entries in log.each[:-1]]
        failing = not any(last) and any(entry[0] == "raised" for entry in observed)
        if control and not (failing or last[-1] or common.alive):
            continue  # that no hook is called says little
        for words in WORDS:
            if not words.single or (not noting.values and _single(scenes, sites)):
                cleared = any(ahead) and not (common.alive or failing)
                yield replace(common, words=words, noting=noting, failing=failing, cleared=cleared)


def _common(
    acts: Sequence[Act], sites: Mapping[str, HookSite], noted: Sequence[Logs], observed: Sequence[Entry]
) -> Wording:
    """What no choice of words makes a difference to."""
    alive = next((entry[1] for entry in observed if entry[0] == "alive" and entry[1:]), "")
    outside = not alive and any(isinstance(act, Alter) and act.what.startswith("pickle") for act in acts)
    troubled = {act.hook for act in acts if isinstance(act, Trouble) and not act.what.startswith("the ")}
    opened = {hook for hook, site in sites.items() if site.table in ("pack", "unpack")}
    others = {act.other for act in acts if isinstance(act, Trouble) and act.what in REGISTERING}
    named = {hook for act in acts for hook in _handled(act)}
    left = any(isinstance(act, Leave) for act in acts)
    named |= {hook for hook, site in sites.items() if left or everywhere(site)}
    loaded = any(isinstance(act, Alter) and act.what in ("load", "assign") for act in acts)
    return Wording(
        WORDS[0],
        NOTINGS[0],
        frozenset(opened | troubled | ({alive} - {""}) | (set(sites) if outside else set())),
        _names(sorted(named - opened - others)),
        within="",
        alive=alive,
        failing=False,
        outside=outside,
        caught=_caught(acts, [*observed, *(entry for log in noted for entry in log.each[-1])]),
        cleared=False,
        unordered=any(log.unordered for log in noted),
        saving=loaded or any(site.table in SAVED for site in sites.values()),
        waiting={},
        registering=any(everywhere(sites[hook]) for hook in others),
    )


def _caught(acts: Sequence[Act], entries: Sequence[Entry]) -> str:
    """What the last act may raise."""
    if not any(entry[0] == "raised" for entry in entries):
        return ""
    interrupted = any(isinstance(act, Trouble) and "interrupts" in act.what for act in acts)
    return "BaseException" if interrupted else "Exception"


def _names(hooks: Sequence[str]) -> dict[str, str]:
    """What the handles of hooks are called."""
    return {hook: "handle" if len(hooks) == 1 else f"handle_{hook}" for hook in hooks}


def _handled(act: Act) -> set[str]:
    """The hooks whose handles an act needs."""
    if isinstance(act, Remove):
        return {act.hook}
    if isinstance(act, Trouble) and act.what in ("removes itself", "removes another"):
        return {act.hook if act.what == "removes itself" else act.other}
    return set()


def _waiting(scenes: Sequence[Scene], noted: Sequence[Logs]) -> dict[str, Trouble]:
    """What hooks do at one call and not at another."""
    each = [(log, act, at) for scene, log in zip(scenes, noted) for at, act in enumerate(scene.acts)]
    return {act.hook: act for log, act, at in each if isinstance(act, Trouble) and _conditional(log, act, at)}


def _conditional(log: Logs, act: Trouble, at: int) -> bool:
    before, after = log.calls(act.hook, 0, at), log.calls(act.hook, at)
    return not act.what.startswith("the ") and (before > 0 or (after > 1 and not act.what.startswith("removes")))


def _differs(scene: Scene, due: Logs, observed: Sequence[Entry], noting: Noting) -> bool:
    """Whether what hooks note so shows the deviation."""
    sides = [noting.entries(log, due.sites) for log in (due.each[-1], observed)]
    finding = scene.finding
    ordered = finding is not None and finding.relation == ORDER
    return sides[0] != sides[1] if ordered else sorted(map(str, sides[0])) != sorted(map(str, sides[1]))


def _single(scenes: Sequence[Scene], sites: Mapping[str, HookSite]) -> bool:
    """Whether a layer may stand for the net: no part of it is another module than the net is."""
    places = {site.where for site in sites.values()} - {""}
    plain = all(scene.situation.host == "plain" for scene in scenes)
    return len(places) <= 1 and (plain or "net[0]" not in places)


def _within(scene: Scene, control: Scene | None) -> str:
    """The contexts around what is run, and the one that only the experiment has as a choice."""
    contexts = []
    for axis in ("outer", "inner"):
        name, other = (getattr(each.situation, axis) for each in (scene, control or scene))
        if name:
            contexts.append(context(name) if other else f"{context(name)} if {FLAG} else nullcontext()")
    return ", ".join(contexts)


def context(name: str) -> str:
    """The expression that makes a context of that name."""
    return SURROUNDINGS[name].expression.replace("(same, same)", f"({SAME}, {SAME})")


def everywhere(site: HookSite) -> bool:
    """Whether a hook there is on all modules or optimizers, and must not outlast a run."""
    return "nn.modules.module" in site.register or "import_module" in site.register
