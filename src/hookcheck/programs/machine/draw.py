"""How are sequences of acts drawn, and how was the corpus made? At random, and those that reach most go first.

Run ``python -m hookcheck.programs.machine.draw [--count N]`` to add to the corpus: lines that are there are kept, and
others added until there are N. What is worth a line is what no line before it reaches. What is drawn depends on the
seed alone, not on a library's release: everyone who explores plays the same, and from an empty file the corpus comes
back as it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from random import Random

from hookcheck.programs.machine.corpus import read, write
from hookcheck.programs.machine.model import (
    PARTS,
    Act,
    BackwardAct,
    CopyAct,
    FailAct,
    ForwardAct,
    GradAct,
    MachineModel,
    ModuleSite,
    RegisterAct,
    Release,
    RemoveAct,
    TrainAct,
    fitted,
    kinds,
)
from hookcheck.programs.machine.reach import Reach, combinations, reached

ACTS = 12
"""How many acts a sequence has: enough for two nets to be called and differentiated with hooks that meet."""

COUNT = 200
NEWEST: Release = (99, 0)
"""A release that lacks nothing; older ones are fitted when they play."""


def drawn(random: Random, release: Release, removing: bool, ungraded: bool) -> tuple[Act, ...]:
    """Acts that are possible one after the other, with hooks that remove hooks and calls without gradients, or not.

    A sequence has hooks of one or two kinds on one to three places, which therefore meet.
    """
    some = random.sample(kinds(release), random.choice((1, 2)))
    places = random.sample((None, *PARTS), random.choice((1, 2, 3)))
    model = MachineModel()
    acts: list[Act] = []
    while len(acts) < ACTS:
        net, hook = random.randrange(len(model.graphs)), random.randrange(len(model.hooks) + 1)
        place, number = random.choice(places), random.choice((1.0, 2.0, 5.0))
        prepend, with_kwargs, always_call = (random.random() < 0.4 for _ in range(3))
        site = None if place is None else ModuleSite(net, place)
        removes = hook if removing and random.random() < 0.4 else None
        often: tuple[Act, ...] = (
            fitted(RegisterAct(random.choice(some), site, prepend, with_kwargs, always_call, removes), release),
            ForwardAct(net, number, not ungraded or random.random() < 0.7),
            BackwardAct(net, number),
        )
        seldom = (
            GradAct(net, number),
            RemoveAct(hook),
            CopyAct(net, random.choice(("deepcopy", "pickle"))),
            FailAct(net),
        )
        act = random.choice((*often * 3, *seldom, TrainAct(net, random.random() < 0.3)))
        if model.possible(act):
            model.after(act)
            acts.append(act)
    return tuple(acts)


def curated(
    known: Sequence[tuple[Act, ...]], candidates: Sequence[tuple[Act, ...]], count: int
) -> list[tuple[Act, ...]]:
    """``known``, those of ``candidates`` that complete what is reached, and others until there are ``count`` in all."""
    chosen = [*known]
    for measure in (reached, combinations):
        seen = {reach for acts in chosen for reach in measure(acts)}
        chosen += adding({acts: measure(acts) - seen for acts in candidates}, count - len(chosen))
    return chosen


def adding(worth: dict[tuple[Act, ...], frozenset[Reach]], room: int) -> list[tuple[Act, ...]]:
    """Up to ``room`` sequences, each of which is worth more than any that is left."""
    chosen: list[tuple[Act, ...]] = []
    while len(chosen) < room and (worth := {acts: new for acts, new in worth.items() if new}):
        best = max(worth, key=lambda acts: len(worth[acts]))
        taken = worth.pop(best)
        chosen.append(best)
        worth = {acts: new - taken for acts, new in worth.items()}
    return chosen


def main() -> None:
    """Adds to the corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random, chosen = Random(arguments.seed), [*read()]
    for quarter, (removing, ungraded) in enumerate(product((False, True), repeat=2), start=1):
        candidates = [drawn(random, NEWEST, removing, ungraded) for _ in range(arguments.draws)]
        chosen = curated(chosen, candidates, arguments.count * quarter // 4)
    write(chosen)


if __name__ == "__main__":
    main()
