"""Acts that follow one another at random, with hooks on any of the sites: what a situation lines up once, mixed.

A sequence has hooks on a few sites of two sorts. It registers and removes them, has hooks remove and register others
as they are called, has hooks, bodies and closures raise, calls, differentiates, steps, saves and loads, enters and
leaves contexts, and between forward and backward freezes, moves, replaces data, retains gradients, drops the net. It
goes on with a copy of net and handles. What is drawn depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from random import Random

from hookcheck.contract.finding import Finding
from hookcheck.programs.situations import judge
from hookcheck.programs.situations.acts import (
    BACKWARDS,
    BODY,
    EVENTS,
    RAISING,
    Act,
    Alter,
    Enter,
    Leave,
    Register,
    Remove,
    Situation,
    Trigger,
    Trouble,
)
from hookcheck.programs.situations.axes import CONTEXTS, SURROUNDINGS
from hookcheck.programs.situations.fitting import LATER, why_not
from hookcheck.programs.situations.model import SituationModel, expected
from hookcheck.programs.situations.sites import SITES, Release

NEWEST: Release = (99, 0)
"""A release that lacks nothing."""

LENGTH = 36
"""How many acts a sequence has, most of them calls, backwards and steps."""

PER_FACT = 50
"""So many sequences are one fact."""

CHANGES = (
    "collect", "eval", "new data", "another call", "copy", "assign", "clear gradients", "write to output",
    "write to input", "freeze", "thaw", "retain", "move", "write to gradients", "drop",
)  # fmt: skip
"""What is done to a net, an input or an output."""

COPIES = ("deepcopy with handles", "pickle with handles")
"""What goes on with a copy of the net, to which the handles of hooks on modules belong then."""

TAME = ("removes itself", "removes another", "registers another")
"""What hooks do without raising."""

SORTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("calls",), ("forward", "backward")),
    (("legacy",), ("forward", "backward")),
    (("state",), ("save", "load")),
    (("registration",), ("attach",)),
    (("x", "w", "y", "multi", "any"), ("forward", "backward")),
    (("pack", "unpack"), ("forward", "backward")),
    (("optimizer",), ("step", "save optimizer", "load optimizer")),
)
"""The sorts of sites, by their lanes, each with the events that call hooks there."""

SEEDS = (
    6, 18, 32, 40, 55, 65, 82, 89, 90, 95, 129, 141, 145, 161, 168, 171, 176, 182, 194, 199, 203, 208, 213, 230,
    232, 248, 250, 262, 264, 270, 272, 280, 281, 284, 286, 295, 302, 308, 312, 317, 329, 335, 340, 343, 359,
    363, 373, 374, 377, 405, 410, 417, 424, 448, 456, 463, 484, 487, 492, 493, 514, 519, 530, 531, 535, 552,
    573, 602, 612, 616, 623, 624, 632, 633, 653, 666, 682, 698, 728, 731, 740, 747, 778, 790, 799, 806, 823,
    825, 826, 827, 829, 849, 853, 859, 868, 872, 920, 933, 935, 950, 954, 982, 995, 1020, 1023, 1029, 1043,
    1083, 1144, 1156, 1157, 1165, 1167, 1185, 1196, 1208, 1210, 1214, 1250, 1254, 1260, 1271, 1290, 1299, 1300,
    1323, 1348, 1349, 1351, 1381, 1453, 1462, 1466, 1468, 1489, 1495, 1496, 1509, 1528, 1553, 1557, 1560, 1576,
    1581, 1598, 1615, 1616, 1632, 1665, 1682, 1695, 1703, 1741, 1755, 1809, 1811, 1845, 1854, 1869, 1877, 1899,
    1936, 1944, 1974, 1990, 2005, 2037, 2055, 2087, 2088, 2114, 2133, 2153, 2160, 2189, 2281, 2284, 2308, 2315,
    2319, 2326, 2356, 2372, 2374, 2420, 2424, 2432, 2439, 2443, 2446, 2447, 2504, 2525, 2533, 2536, 2540, 2542,
    2582, 2590, 2596, 2607, 2619, 2622, 2647, 2672, 2689, 2693, 2707, 2712, 2729, 2744, 2749, 2814, 2842, 2860,
    2907, 2922, 2974, 2982, 2988,
)  # fmt: skip
"""Of 3,000 those in which most meets (see `reached`): each was chosen for adding more than any other, first those in
which hooks remove hooks on other sites."""

BY_HAND: tuple[tuple[Act, ...], ...] = (
    (Trigger("forward"), Register("h00", "output"), Alter("retain"), Trigger("backward"), Leave()),
    (
        Register("h00", "forward of net"), Enter("dispatch mode"), Trouble("the body raises"), Trigger("forward"),
        Trigger("forward"), Trigger("backward"), Leave(),
    ),
    (
        Register("h00", "register_state_dict_pre_hook of net"),
        Register("h01", "register_load_state_dict_post_hook of net"), Trouble("raises", "h00"), Trigger("save"),
        Trigger("load"), Leave(),
    ),
)  # fmt: skip
"""What planted faults showed that none of the seeds does."""

ENDING = ("backward", "step", "load")
"""After which there is no backward: the graph is freed, or what it needs was written to."""

ITERATING = ("state", "registration", "optimizer")
"""Lanes whose tables must not change as they are gone through (see the ledger)."""


class Walk:
    """What is there after some acts, by which the next are possible or not."""

    def __init__(self, release: Release, chained: bool = False) -> None:
        """Nothing is registered and nothing was called; where removals are ``chained``, a hook takes part in many."""
        self.release, self.chained = release, chained
        self.sites: dict[str, str] = {}
        self.gone: set[str] = set()
        self.waiting: set[str] = set()
        self.model = SituationModel()
        self.context = Enter()
        self.differentiable = self.frozen = self.replaced = self.dropped = False

    def possible(self, act: Act) -> bool:
        """Whether the act can be done, and says something of its own."""
        for waiting, event in (("body", "forward"), ("closure", "step")):
            if waiting in self.model.once:
                return act == Trigger(event) or isinstance(act, Leave)
        if isinstance(act, Register):
            return self._registrable(act)
        if isinstance(act, Remove):
            return act.hook in self.sites and act.hook not in self.gone
        if isinstance(act, Trouble):
            return act.hook in self.sites if act.what == BODY else self._troubling(act)
        if isinstance(act, Alter):
            return self._changing(act.what)
        if isinstance(act, Trigger) and act.what == "forward":
            return not self.frozen
        if isinstance(act, Trigger) and act.what == "backward":
            late = LATER.get(act.way, (1, 7)) > self.release
            asking = act.way in ("grad", "inputs") and (self.frozen or self.replaced)
            pair = act.way == "grad" and "all gradients" in self.sites.values()  # MG-11 speaks of it
            return self.differentiable and not late and not pair and not asking
        return not isinstance(act, Enter) or self._enterable(act)

    def after(self, act: Act) -> None:
        """Keeps what the act does."""
        self.model.after(act)
        if isinstance(act, Register):
            self.sites[act.hook] = act.site
        if isinstance(act, Remove):
            self.gone.add(act.hook)
        if isinstance(act, Trouble):
            self.waiting |= {act.hook, act.other}
            if act.what == "registers another":
                self.sites[act.other] = self.sites[act.hook]
                self.gone.add(act.other)  # it comes only if the hook is called
        if isinstance(act, Alter) and act.what in ("freeze", "thaw"):
            self.frozen = act.what == "freeze"
        if isinstance(act, Alter) and act.what in ("assign", "drop", *COPIES):
            self.replaced = True
        if isinstance(act, Alter) and act.what == "drop":
            self.dropped = True
        if isinstance(act, Enter):
            self.context = act
        if isinstance(act, Trigger) and act.what in ("forward", *ENDING):
            self.differentiable = act.what == "forward" and self.model.graph is not None
        if isinstance(act, Trigger) and act.what == "forward":
            self.replaced = False

    def _registrable(self, act: Register) -> bool:
        site = SITES[act.site]
        there = [SITES[name] for name in self.sites.values()]
        if act.hook in self.sites or site.since > self.release:
            return False
        if act.first and (site.prepends is None or site.prepends > self.release):
            return False
        if site.graph and not self.differentiable:
            return False
        if site.table in ("pack", "unpack") and any(other.table in ("pack", "unpack") for other in there):
            return False
        if (self.frozen or self.replaced) and "leaf(net)" in site.register:
            return False
        waiting = [(self.sites.get(hook, site.name), trouble.what) for hook, trouble in self.model.once.items()]
        if any(_apart(one, site.name, what) for one, what in waiting):
            return False
        if why_not(Situation(site.name, outer=self.context.outer, inner=self.context.inner)):
            return False
        return not any((site.legacy and other.full) or (site.full and other.legacy) for other in there)

    def _troubling(self, act: Trouble) -> bool:
        if any(waiting.what in RAISING for waiting in self.model.once.values()):
            return False  # whether it is called before what raises is nowhere said
        if act.what in RAISING:
            return not self.model.once and self._raising(act)
        taken = self.model.once.keys() & {act.hook} if self.chained else {act.hook, act.other} & self.waiting
        if self.frozen or act.hook not in self.sites or taken or {act.hook, act.other} & self.gone:
            return False
        site = SITES[self.sites[act.hook]]
        if site.lane in ITERATING or site.table in ("pack", "unpack", "any") or site.kwargs or self.release < (1, 10):
            return False
        if act.what == "registers another":
            refused = site.table == "multi" and self.release < (2, 1)  # as the ledger has of situations
            return act.other not in self.sites and not site.graph and not refused
        return act.what == "removes itself" or self._removable(site.name, self.sites.get(act.other))

    def _removable(self, site: str, other: str | None) -> bool:
        """Whether it is known what follows where a hook on one site removes one on the ``other``, if there is one."""
        apart = Situation(site, partner=other or "", trouble="removes its partner")
        return other == site or not why_not(apart)

    def _raising(self, act: Trouble) -> bool:
        """Whether it is known what comes out, and which hooks are called nevertheless."""
        if act.what in RAISING[:2] and act.hook not in {*self.sites} - self.waiting - self.gone:
            return False
        if self.release < (2, 0) and SITES[self.sites.get(act.hook, "input")].table in ("pack", "unpack"):
            return False  # ST-25 speaks of it
        return not any(_apart(self.sites.get(act.hook, name), name, act.what) for name in self.sites.values())

    def _enterable(self, act: Enter) -> bool:
        chosen = [Situation(name, outer=act.outer, inner=act.inner) for name in ("input", *self.sites.values())]
        late = any(SURROUNDINGS[name].since > self.release for name in (act.outer, act.inner))
        return act != self.context and not late and not any(map(why_not, chosen))

    def _changing(self, what: str) -> bool:
        if LATER.get(what, (1, 7)) > self.release or (what == "retain" and not self.differentiable):
            return False
        if what in ("freeze", "thaw"):
            # Whether a hook that runs after accumulation is called where nothing is accumulated, is nowhere said;
            # before 2.0 those on the parameter itself were not.
            tables = ("accumulated w", "tensor w") if self.release < (2, 0) else ("accumulated w",)
            exempt = self.model.once or any(SITES[name].table in tables for name in self.sites.values())
            return self.frozen if what == "thaw" else self.differentiable and not exempt
        if what in COPIES and not self._copyable():
            return False
        if what == "drop" and self.frozen:
            return False
        copying = what in COPIES
        chosen = [Situation(name, before=what * copying, between=what * (not copying)) for name in self.sites.values()]
        return not any(map(why_not, chosen))

    def _copyable(self) -> bool:
        """Whether there are hooks to copy, with handles that can be, and no backward needs the old net."""
        sites = [SITES[name] for name in self.sites.values()]
        legacy = self.differentiable and any(site.legacy for site in sites)  # it raises once its module is gone
        return any(site.where for site in sites) and not self.dropped and not legacy


def _apart(site: str, other: str, what: str) -> bool:
    """Whether ``other`` hooks stand in the way of what a hook on a site does."""
    pair = Situation(site, partner="" if other == site else other)
    return what in RAISING and why_not(replace(pair, trouble=what)) != why_not(pair)


def possible(acts: Iterable[Act], release: Release, chained: bool = False) -> Iterator[Act]:
    """Those of ``acts`` that are possible one after the other."""
    walk = Walk(release, chained)
    for act in acts:
        if walk.possible(act):
            walk.after(act)
            yield act


def held(release: Release) -> list[tuple[Act, ...]]:
    """The sequences of `SEEDS` and those by hand, as far as a torch can take them."""
    return [tuple(possible(acts, release)) for acts in (*map(with_copy, SEEDS), *BY_HAND)]


def by_fact(release: Release) -> dict[str, list[tuple[Act, ...]]]:
    """The sequences that a torch can take, by the fact that is stated of so many of them."""
    mixed = held(release)
    return {f"sequences from {first} on": mixed[first : first + PER_FACT] for first in range(0, len(mixed), PER_FACT)}


def reached(acts: Iterable[Act]) -> frozenset[tuple[str, str]]:
    """What meets in a sequence: sites that have hooks with what is done then, and with each other."""
    there: dict[str, str] = {}
    pairs: set[tuple[str, str]] = set()
    around = Enter()
    going: dict[str, str] = {}
    gone: list[tuple[str, str]] = []
    for act, log in expected(acts):
        if isinstance(act, Register):
            there[act.hook] = act.site
        if isinstance(act, Remove):
            pairs.add((there.pop(act.hook), act.way))
        if isinstance(act, Trouble) and act.hook in there:
            pairs.add((there[act.hook], act.what))
            if act.what == "removes another" and there[act.other] != there[act.hook]:
                going[act.hook] = act.other
        if isinstance(act, Enter):
            around = act
        if isinstance(act, (Alter, Trigger)):
            pairs.update((site, act.what) for site in there.values())
        if isinstance(act, Trigger):
            for one, other in gone:
                if act.what in _events(other):
                    pairs |= {(one, "removes elsewhere"), (other, "removed from elsewhere")}
            now = {hook: going.pop(hook) for hook in {entry[0] for entry in log} & going.keys()}
            gone += [(there[hook], there[other]) for hook, other in now.items() if {hook, other} <= there.keys()]
            raised = [f"{act.what} raises"] * any(entry[0] == "raised" for entry in log)
            contexts = [context for context in (around.outer, around.inner) if context]
            pairs.update(product((*there.values(), *raised), contexts))
            pairs.update(product(there.values(), raised))
            pairs.update(combinations(sorted({*there.values()}), 2))
    return frozenset(pairs)


def _events(site: str) -> tuple[str, ...]:
    """What calls hooks on a site."""
    return next(events for lanes, events in SORTS if SITES[site].lane in lanes)


def drawn(seed: int) -> tuple[Act, ...]:
    """Acts with hooks on some sites of two sorts: most are registrations, and what calls such hooks."""
    random = Random(seed)
    one_site = [*SITES][seed % len(SITES)]  # so that none is left out
    sort_of_one = next(sort for sort in SORTS if SITES[one_site].lane in sort[0])
    sorts = [sort_of_one, random.choice(SORTS)]
    sites = [one_site, *(name for lanes, _ in sorts for name in _some(random, lanes))]
    events = [event for _, events in sorts for event in events]
    walk = Walk(NEWEST)
    acts: list[Act] = []
    for _ in range(20 * LENGTH):
        hooks = [*walk.sites]
        one, other = f"h{len(hooks):02}", f"h{random.randrange(len(hooks) + 1):02}"
        often: tuple[Act, ...] = (
            Register(one, random.choice(sites), random.random() < 0.2),
            Trigger("forward"),
            *(Trigger(event, random.choice(BACKWARDS)) for event in events),
        )
        some, any_other = (random.choice(hooks) if hooks else "" for _ in range(2))
        what = random.choice((*TAME * 2, *RAISING[:2] * 2, *RAISING[2:]))
        context = [random.choice(("", *CONTEXTS)) for _ in range(2)]
        seldom: tuple[Act, ...] = (
            Trigger(random.choice(EVENTS)),
            Alter(random.choice(CHANGES)),
            Alter(random.choice(CHANGES)),
            Enter(context[0], context[1]),
            Remove(some, random.choice(("remove", "twice", "with"))),
            _trouble(what, some, one, other),
            Trouble("removes another", some, any_other),
        )
        act = random.choice((*often * 2, *seldom))
        if walk.possible(act):
            walk.after(act)
            acts.append(act)
        if len(acts) == LENGTH:
            break
    return (*acts, *(Alter("thaw") for _ in range(walk.frozen)), Leave())


def with_copy(seed: int) -> tuple[Act, ...]:
    """What is drawn, with a copy at one of the places at which nothing must be left out for it."""
    acts, random = drawn(seed), Random(f"a copy in {seed}")
    act, walk = Alter(random.choice(COPIES)), Walk(NEWEST)
    places = []
    for at, each in enumerate(acts):
        if walk.possible(act):
            places.append(at)
        walk.after(each)
    for at in random.sample(places, len(places)):
        longer = (*acts[:at], act, *acts[at:])
        if tuple(possible(longer, NEWEST)) == longer:
            return longer
    return acts


def _trouble(what: str, some: str, new: str, other: str) -> Trouble:
    """What ``some`` hook does, to a new one, to itself or to another; bodies and closures are no hooks."""
    if what in RAISING[2:]:
        return Trouble(what)
    others = {"removes another": other, "registers another": new}
    return Trouble(what, some, others.get(what, some))


def _some(random: Random, lanes: Sequence[str]) -> list[str]:
    """Up to four sites of some lanes."""
    names = [name for name, site in SITES.items() if site.lane in lanes]
    return random.sample(names, min(4, len(names)))


def deviation(acts: Sequence[Act]) -> Finding | None:
    """How torch deviates during the first of ``acts`` during which hooks note something else."""
    return judge.deviation(Situation("input"), acts)


def shortest(acts: Sequence[Act], release: Release) -> tuple[Act, ...]:
    """What is left of acts that show a deviation once each was left out without which they show one of that gap."""
    shown = deviation(acts)
    left = tuple(acts)
    for act in acts:
        fewer = tuple(possible((each for each in left if each is not act), release, chained=True))
        other = deviation(fewer)
        if shown and other and other.gap == shown.gap:
            left = fewer
    return left
