"""Acts that follow one another at random, with hooks on any of the sites: what a situation lines up once, mixed.

A sequence has hooks on a few sites of two sorts. It registers and removes them, has hooks remove and register others
as they are called, calls, differentiates, steps, saves and loads, and between forward and backward freezes, moves,
replaces data, retains gradients. What is drawn depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

from hookcheck.contract.finding import Finding
from hookcheck.programs.logs import difference
from hookcheck.programs.situations.acts import (
    BACKWARDS,
    BETWEEN,
    EVENTS,
    IN_SEQUENCES,
    Act,
    Change,
    Event,
    Leave,
    Register,
    Remove,
    Situation,
    Trouble,
)
from hookcheck.programs.situations.fitting import LATER, why_not
from hookcheck.programs.situations.model import expected
from hookcheck.programs.situations.play import play
from hookcheck.programs.situations.sites import SITES, Release

NEWEST: Release = (99, 0)
"""A release that lacks nothing."""

LENGTH = 36
"""How many acts a sequence has, most of them calls, backwards and steps."""

CHANGES = tuple(what for what in (*BETWEEN, *IN_SEQUENCES) if what not in ("", "add", "remove", "freeze and thaw"))
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
    17, 35, 41, 45, 55, 62, 64, 82, 88, 98, 102, 120, 126, 138, 163, 165, 171, 178, 184, 191, 215, 216, 218, 238,
    246, 272, 274, 288, 297, 298, 307, 345, 346, 361, 364, 371, 402, 412, 422, 431, 434, 442, 459, 460, 481, 514,
    529, 534, 538, 546, 552, 555, 557, 561, 562, 563, 574, 578, 585, 595, 599, 602, 604, 605, 610, 616, 630, 642,
    664, 666, 674, 676, 678, 693, 711, 717, 749, 758, 799, 823, 851, 861, 884, 912, 916, 938, 957, 966, 983, 1002,
    1020, 1023, 1050, 1059, 1063, 1072, 1074, 1121, 1127, 1132, 1152, 1154, 1163, 1167, 1243, 1248, 1265, 1283,
    1286, 1304, 1326, 1329, 1349, 1350, 1352, 1363, 1365, 1370, 1377, 1381, 1412, 1419, 1431, 1448, 1464, 1469,
    1474, 1496, 1502, 1511, 1526, 1534, 1536, 1541, 1551, 1560, 1609, 1610, 1632, 1635, 1638, 1653, 1673, 1678,
    1681, 1682, 1716, 1723, 1735, 1738, 1762, 1774, 1818, 1820, 1823, 1834, 1843, 1853, 1965, 1986, 1998, 2001,
    2008, 2015, 2019, 2021, 2034, 2048, 2085, 2120, 2158, 2160, 2167, 2169, 2185, 2204, 2223, 2226, 2227, 2235,
    2241, 2244, 2263, 2275, 2291, 2341, 2390, 2397, 2399, 2417, 2449, 2453, 2456, 2460, 2464, 2476, 2484, 2488,
    2489, 2495, 2496, 8709,
)  # fmt: skip
"""Of 2,500 those in which most meets (see `reached`): each was chosen for adding more than any other. The last one
retains the gradient of an output that has a hook, which none of the 2,500 does before a backward."""

ENDING = ("backward", "step", "load")
"""After which there is no backward: the graph is freed, or what it needs was written to."""

ITERATING = ("state", "registration", "optimizer")
"""Lanes whose tables must not change as they are gone through (see the ledger)."""


class Walk:
    """What is there after some acts, by which the next are possible or not."""

    def __init__(self, release: Release) -> None:
        """Nothing is registered and nothing was called."""
        self.release = release
        self.sites: dict[str, str] = {}
        self.gone: set[str] = set()
        self.waiting: set[str] = set()
        self.differentiable = self.frozen = False

    def possible(self, act: Act) -> bool:
        """Whether the act can be done, and says something of its own."""
        if isinstance(act, Register):
            return self._registrable(act)
        if isinstance(act, Remove):
            return act.hook in self.sites and act.hook not in self.gone
        if isinstance(act, Trouble):
            return self._troubling(act)
        if isinstance(act, Change):
            return self._changing(act.what)
        if isinstance(act, Event) and act.what == "forward":
            return not self.frozen
        if isinstance(act, Event) and act.what == "backward":
            late = LATER.get(act.way, (1, 7)) > self.release
            asking = act.way in ("grad", "inputs")
            pair = act.way == "grad" and "all gradients" in self.sites.values()  # MG-11 speaks of it
            return self.differentiable and not late and not pair and not (asking and self.frozen)
        return True

    def after(self, act: Act) -> None:
        """Keeps what the act does."""
        if isinstance(act, Register):
            self.sites[act.hook] = act.site
        if isinstance(act, Remove):
            self.gone.add(act.hook)
        if isinstance(act, Trouble):
            self.waiting |= {act.hook, act.other}
            if act.what == "registers another":
                self.sites[act.other] = self.sites[act.hook]
                self.gone.add(act.other)  # it comes only if the hook is called
        if isinstance(act, Change) and act.what in ("freeze", "thaw"):
            self.frozen = act.what == "freeze"
        if isinstance(act, Event) and act.what in ("forward", *ENDING):
            self.differentiable = act.what == "forward"

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
        if self.frozen and "leaf(net)" in site.register:
            return False
        return not any((site.legacy and other.full) or (site.full and other.legacy) for other in there)

    def _troubling(self, act: Trouble) -> bool:
        if self.frozen or act.hook not in self.sites or {act.hook, act.other} & (self.waiting | self.gone):
            return False
        site = SITES[self.sites[act.hook]]
        if site.lane in ITERATING or site.table in ("pack", "unpack", "any") or site.kwargs or self.release < (1, 10):
            return False
        if act.what == "registers another":
            return act.other not in self.sites and not site.graph
        return act.what == "removes itself" or self.sites.get(act.other) == site.name

    def _changing(self, what: str) -> bool:
        if LATER.get(what, (1, 7)) > self.release or (what == "retain" and not self.differentiable):
            return False
        if what in ("freeze", "thaw"):
            # Whether a hook that runs after accumulation is called where nothing is accumulated, is nowhere said;
            # before 2.0 those on the parameter itself were not.
            tables = ("accumulated w", "tensor w") if self.release < (2, 0) else ("accumulated w",)
            exempt = self.waiting or any(SITES[name].table in tables for name in self.sites.values())
            return self.frozen if what == "thaw" else self.differentiable and not exempt
        chosen = [Situation(name, between=what if what in BETWEEN else "") for name in self.sites.values()]
        ways = [replace(each, backward=way) for each in chosen for way in ("backward", "grad", "inputs")]
        return not any(map(why_not, ways))


def possible(acts: Iterable[Act], release: Release) -> Iterator[Act]:
    """Those of ``acts`` that are possible one after the other."""
    walk = Walk(release)
    for act in acts:
        if walk.possible(act):
            walk.after(act)
            yield act


def held(release: Release) -> list[tuple[Act, ...]]:
    """The sequences of `SEEDS`, as far as a torch can take them."""
    return [tuple(possible(drawn(seed), release)) for seed in SEEDS]


def reached(acts: Iterable[Act]) -> frozenset[tuple[str, str]]:
    """What meets in a sequence: sites that have hooks with what is done then, and with each other."""
    there: dict[str, str] = {}
    found: set[tuple[str, str]] = set()
    for act in acts:
        if isinstance(act, Register):
            there[act.hook] = act.site
        if isinstance(act, Remove):
            found.add((there.pop(act.hook), act.way))
        if isinstance(act, Trouble):
            found.add((there[act.hook], act.what))
        if isinstance(act, (Change, Event)):
            found.update((site, act.what) for site in there.values())
        if isinstance(act, Event):
            found.update(combinations(sorted({*there.values()}), 2))
    return frozenset(found)


def drawn(seed: int) -> tuple[Act, ...]:
    """Acts with hooks on some sites of two sorts: most are registrations, and what calls such hooks."""
    random = Random(seed)
    one_site = [*SITES][seed % len(SITES)]  # so that none is left out
    own = next(sort for sort in SORTS if SITES[one_site].lane in sort[0])
    sorts = [own, random.choice(SORTS)]
    sites = [one_site, *(name for lanes, _ in sorts for name in _some(random, lanes))]
    events = [event for _, events in sorts for event in events]
    walk = Walk(NEWEST)
    acts: list[Act] = []
    for _ in range(20 * LENGTH):
        hooks = [*walk.sites]
        one, other = f"h{len(hooks):02}", f"h{random.randrange(len(hooks) + 1):02}"
        often: tuple[Act, ...] = (
            Register(one, random.choice(sites), random.random() < 0.2),
            Event("forward"),
            *(Event(event, random.choice(BACKWARDS)) for event in events),
        )
        some = random.choice(hooks) if hooks else ""
        what = random.choice(("removes itself", "removes another", "registers another"))
        seldom: tuple[Act, ...] = (
            Event(random.choice(EVENTS)),
            Change(random.choice(CHANGES)),
            Change(random.choice(CHANGES)),
            Remove(some, random.choice(("remove", "twice", "with"))),
            Trouble(what, some, one if what == "registers another" else some if what == "removes itself" else other),
        )
        act = random.choice((*often * 2, *seldom))
        if walk.possible(act) and len(acts) < LENGTH:
            walk.after(act)
            acts.append(act)
    return (*acts, *(Change("thaw") for _ in range(walk.frozen)), Leave())


def _some(random: Random, lanes: Sequence[str]) -> list[str]:
    """Up to four sites of some lanes."""
    names = [name for name, site in SITES.items() if site.lane in lanes]
    return random.sample(names, min(4, len(names)))


def deviation(acts: Sequence[Act]) -> Finding | None:
    """How torch deviates during the first of ``acts`` during which hooks note something else."""
    steps = expected(acts)
    for (act, entries), observed in zip(steps, play(Situation("input"), acts)):
        if entries != observed:
            return difference(f"{act}, the last of {len(acts)}", entries, observed)
    return None


def shortest(acts: Sequence[Act], release: Release) -> tuple[Act, ...]:
    """What is left of acts that show a deviation once each was left out without which they show one of that gap."""
    shown = deviation(acts)
    left = tuple(acts)
    for act in acts:
        fewer = tuple(possible((each for each in left if each is not act), release))
        found = deviation(fewer)
        if shown and found and found.gap == shown.gap:
            left = fewer
    return left
