"""Hooks that remove hooks which remove hooks: what `sequences` draws too seldom.

Three hooks on a site, or with the second one on another site of its sort, remove each other as they are called: in a
ring, back and forth, two of them the same, or one that then removes itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from hookcheck.programs.situations import sequences
from hookcheck.programs.situations.acts import Act, Leave, Register, Trigger, Trouble
from hookcheck.programs.situations.sequences import SORTS, possible
from hookcheck.programs.situations.sites import SITES, Release

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
    return {**sequences.by_fact(release), **chains}


def _of_shape(pairs: tuple[str, ...], release: Release) -> Iterator[tuple[Act, ...]]:
    for lanes, events in SORTS:
        sites = [name for name, site in SITES.items() if site.lane in lanes]
        calls = [Trigger(event) for event in events]
        for one, other in zip(sites, (*sites[1:], sites[0])):
            for second in dict.fromkeys((one, other)):
                hooks = [Register(f"h0{place}", site) for place, site in enumerate((one, second, one))]
                troubles = [_removing(*pair) for pair in pairs]
                acts = tuple(possible((Trigger("forward"), *hooks, *troubles, *calls, *calls, Leave()), release, True))
                if len([act for act in acts if isinstance(act, Trouble)]) == len(pairs):
                    yield acts


def _removing(one: str, other: str) -> Trouble:
    what = "removes itself" if one == other else "removes another"
    return Trouble(what, f"h0{one}", f"h0{other}")
