"""Hooks that remove hooks which remove hooks, hooks that come and go within a context or without gradients, and hooks
that a body registers: what `sequences` draws too seldom, or not at all.

Three hooks on a site, or with the second one on another site of its sort, remove each other as they are called: in a
ring, back and forth, two of them the same, or one that then removes itself. And hooks on all sites of a lane are
registered and removed within a context, in which they are called as well as outside of it, or in a mode without
gradients, outside of which they are called. A module registers a hook as it is called, where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from hookcheck.programs.situations import sequences
from hookcheck.programs.situations.acts import (
    BODY,
    Act,
    Enter,
    Leave,
    Register,
    Remove,
    Trigger,
    Trouble,
)
from hookcheck.programs.situations.axes import CONTEXTS, MODES, OTHER_CONTEXTS
from hookcheck.programs.situations.sequences import SORTS, possible
from hookcheck.programs.situations.sites import LANES, SITES, Release

SHAPES = {
    "a ring": ("01", "12", "20"),
    "back and forth": ("01", "10"),
    "two remove one": ("02", "12"),
    "one is removed and removes itself": ("01", "11"),
}
"""Which of three hooks removes which, by name."""


def by_fact(release: Release) -> dict[str, list[tuple[Act, ...]]]:
    """The sequences that a torch can take and, of each shape, the chains, by the fact that is stated of them."""
    chains = {f"removals in a chain: {name}": [*_of_shape(pairs, release)] for name, pairs in SHAPES.items()}
    coming = {
        f"registered and removed within {name}": [*_coming_within(name, release)]
        for name, context in {**CONTEXTS, **OTHER_CONTEXTS}.items()
        if name and context.since <= release
    }
    modes = [_coming_under(name, release) for name, mode in MODES.items() if mode.since <= release]
    body = {"registered by a body": [*_by_a_body(release)]}
    return {**sequences.by_fact(release), **chains, **coming, **body, **dict(chain.from_iterable(modes))}


def _coming_within(name: str, release: Release) -> Iterator[tuple[Act, ...]]:
    """Hooks on the sites of one lane that come and go within a context, in which they are called, and then without."""
    inside, outside = Enter(name, wholly=True), Enter()
    for coming, going, events in _lanes():
        coming_in: tuple[Act, ...] = (inside, Trigger("forward"), *coming, Trigger("backward"))
        acts = (*coming_in, *_calls(events), outside, *_calls(events), inside, *going, *_calls(events))
        yield from _fitting((*acts, outside, *_calls(events), Leave()), release)


def _coming_under(name: str, release: Release) -> Iterator[tuple[str, list[tuple[Act, ...]]]]:
    """The facts of hooks on the sites of one lane that come and go in a mode, and are called without it.

    To look up the Node that accumulates takes a graph, so there is none of its hooks.
    """
    inside, outside = Enter(name, wholly=True), Enter()
    for coming, going, events in _lanes():
        coming = tuple(act for act in coming if "accumulator(" not in SITES[act.site].register)
        coming_in: tuple[Act, ...] = (Trigger("forward"), inside, *coming, outside, Trigger("backward"))
        acts = (*coming_in, *_calls(events), *_calls(events), inside, *going, outside, *_calls(events), Leave())
        if fitting := [*_fitting(acts, release)]:
            yield f"registered and removed under {name}: {coming[0].site} and the like", fitting


def _lanes() -> Iterator[tuple[tuple[Register, ...], tuple[Remove, ...], tuple[str, ...]]]:
    """Of each lane what registers a hook on each site, what removes those, and the events that call them."""
    for lanes, events in SORTS:
        for lane in lanes:
            coming = tuple(Register(f"h{number:02}", site) for number, site in enumerate(LANES[lane]))
            yield coming, tuple(Remove(hook.hook) for hook in coming), events


def _fitting(acts: Iterable[Act], release: Release) -> Iterator[tuple[Act, ...]]:
    """The acts that are possible one after the other, if hooks come in them."""
    fitting = tuple(possible(acts, release))
    if any(isinstance(act, Register) for act in fitting):
        yield fitting


def _calls(events: Iterable[str]) -> tuple[Act, ...]:
    """What calls hooks, each time as acts of their own, of which one may be left out."""
    return tuple(map(Trigger, events))


def _by_a_body(release: Release) -> Iterator[tuple[Act, ...]]:
    """A hook beside another one on a site, which the second module of the net registers in its forward."""
    for lanes, events in SORTS:
        for name, site in SITES.items():
            there = Register("h00", name)
            # What is on the graph goes with it, and what is saved was saved without the hook.
            lasting = not site.graph and site.table not in ("pack", "unpack")
            if site.lane in lanes and lasting and [*possible((there,), release)]:
                body = (Trouble(BODY, "h00", "h01"), Trigger("forward"))
                yield (Trigger("forward"), there, *body, *_calls(events), *_calls(events), Leave())


def _of_shape(pairs: tuple[str, ...], release: Release) -> Iterator[tuple[Act, ...]]:
    for lanes, events in SORTS:
        sites = [name for name, site in SITES.items() if site.lane in lanes]
        for one, other in zip(sites, (*sites[1:], sites[0])):
            for second in dict.fromkeys((one, other)):
                hooks = [Register(f"h0{place}", site) for place, site in enumerate((one, second, one))]
                troubles = [_removing(*pair) for pair in pairs]
                called: tuple[Act, ...] = (
                    Trigger("forward"),
                    *hooks,
                    *troubles,
                    *_calls(events),
                    *_calls(events),
                    Leave(),
                )
                acts = tuple(possible(called, release, True))
                if len([act for act in acts if isinstance(act, Trouble)]) == len(pairs):
                    yield acts


def _removing(one: str, other: str) -> Trouble:
    what = "removes itself" if one == other else "removes another"
    return Trouble(what, f"h0{one}", f"h0{other}")
