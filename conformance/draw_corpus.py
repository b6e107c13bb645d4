"""How was the corpus made? Drawn with Hypothesis, then curated: small topologies first, and none that adds nothing.

Run ``python conformance/draw_corpus.py FAMILY [--count N]`` for a family that has no corpus file yet, or to add to one:
lines that are there are kept. What is worth a line is a combination of features (as the ledger names them) or of layer
settings that no line before it has; the rest is filled up with what is new. Topologies whose tensors have no side of
length 1 go first: where every side is 1, a transposed gradient looks like the right one.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import fields
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from hookcheck.contract.case import call_features, firing_features
from hookcheck.oracle.expected import Expected
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read, write
from hookcheck.topology.families import family_named
from hookcheck.topology.model import Layer, Topology, needs, size, walk
from hookcheck.topology.values import values

FOLDER = Path(__file__).with_name("corpus")


def drawn(family: str, draws: int) -> list[Topology]:
    """Distinct topologies of a family, smallest first."""
    found: dict[str, Topology] = {}

    @settings(
        max_examples=draws,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(family_named(family).topologies())
    def collect(topology: Topology) -> None:
        found[identify(topology)] = topology

    collect()
    return sorted(found.values(), key=rank)


def rank(topology: Topology) -> tuple[int, tuple[int, int], str]:
    """The order in which topologies are considered: few sides of length 1 first, then small ones."""
    ones = sum(side == 1 for i in topology.inputs for side in i.shape)
    return ones, size(topology), identify(topology)


def combinations(topology: Topology) -> set[tuple[tuple[str, object], ...]]:
    """The features of every call, the settings of every layer, and how the topology is run."""
    expected = Expected(topology, values(topology))
    features = [*map(call_features, expected.trace.calls), *map(firing_features, expected.firings)]
    settings_used = [
        tuple((f.name, getattr(layer, f.name) not in (f.default, 1, (1, 1))) for f in fields(layer))
        for _, layer in walk(topology.module)
        if isinstance(layer, Layer)
    ]
    found = {
        (("dtype", topology.dtype), ("training", topology.training)),
        *kind(topology),
        *settings_used,
        *(tuple((key, tuple(sorted(words))) for key, words in sorted(found.items())) for found in features),
        *((("arguments", tuple(t is not None and t.requires_grad for t in c.args)),) for c in expected.trace.calls),
    }
    # Old releases run only a part of the corpus, and that part must not lack what the rest has.
    return {(("since", needs(topology)[0]), *combination) for combination in found}


def kind(topology: Topology) -> tuple[tuple[tuple[str, object], ...], ...]:
    """What a topology is at a glance: its root, and how many dimensions its inputs have."""
    root = topology.module
    ranks = tuple(len(i.shape) for i in topology.inputs)
    return ((("root", type(root).__name__), ("bias", getattr(root, "bias", None)), ("ranks", ranks)),)


def curated(known: tuple[Topology, ...], candidates: list[Topology], count: int) -> list[Topology]:
    """``known``, those of ``candidates`` that add a combination, and others until there are ``count`` in all."""
    seen = set().union(*map(combinations, known)) if known else set()
    adding, rest = [], []
    turns: Counter[object] = Counter()
    for topology in (t for t in candidates if t not in known):
        new = combinations(topology) - seen
        seen |= new
        if new:
            adding.append(topology)
        else:
            turns[kind(topology)] += 1
            rest.append((turns[kind(topology)], topology))
    rest.sort(key=lambda item: item[0])  # the kinds take turns, so that none fills the file alone
    chosen = [*adding, *(topology for _, topology in rest)][: max(len(adding), count - len(known))]
    return [*known, *sorted(chosen, key=lambda topology: (size(topology), identify(topology)))]


def main() -> None:
    """Adds to the corpus file of one family."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family")
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--draws", type=int, default=2500)
    arguments = parser.parse_args()
    there = (FOLDER / f"{arguments.family}.jsonl").exists()
    known = read(FOLDER, arguments.family) if there else ()
    chosen = curated(known, drawn(arguments.family, arguments.draws), arguments.count)
    write(FOLDER, arguments.family, chosen)
    print(f"{arguments.family}: {len(chosen)} topologies, {len(chosen) - len(known)} of them new")


if __name__ == "__main__":
    main()
