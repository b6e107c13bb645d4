"""How was the corpus made? Drawn with Hypothesis, then curated: those that add most for their size go first.

Run ``python conformance/draw_corpus.py FAMILY [--count N]`` for a family that has no corpus file yet, or to add to one,
and ``--all`` for every family: lines that are there are kept, and others added until there are N. First comes what
has a layer or an operation, a setting of one, two contexts, a mode within a mode, or a class of tensors in a context,
that no line of any file has. What is worth a line then is a pair of features (see ``hookcheck coverage``), a
combination of those that the ledger names, or of layer settings, that no line before it has; the rest is filled up with
what is new. Sides of length 1 count as size: where every side is 1, a transposed gradient looks like the right one.

The files once held a third more. Of those lines stayed what shows a deviation that the ledger knows on any release, and
what adds most for the time that it takes.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import fields
from itertools import chain, product
from itertools import combinations as within
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hookcheck.coverage.axes import words
from hookcheck.coverage.pairs import meeting
from hookcheck.networks.features import call_features, firing_features
from hookcheck.oracle.expected import Expected
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import beside, read, write
from hookcheck.topology.families import FAMILIES, family_named
from hookcheck.topology.model import (
    Apply,
    Call,
    Composite,
    Topology,
    inside,
    nesting,
    size,
    statements,
    tensor_classes,
    tensor_words,
    walk,
)
from hookcheck.topology.needs import needs
from hookcheck.topology.ops.tensors import AsDense
from hookcheck.topology.primitive import Layer
from hookcheck.topology.values import values

FOLDER = Path(__file__).with_name("corpus")
COUNT = 68
COUNTS = {
    "single-layer": 601, "no-grad-evaluation": 310, "random-graph": 260, "no-grad-input": 146, "mixed-dtype": 110,
    "keyword-input": 100, "inplace": 108, "shared-module": 90, "grad-of-some": 92, "double-backward": 84,
    "multi-input": 84, "train-eval": 80, "context": 661, "compiled": 131, "tensor-class": 175, "multi-output": 69,
}  # fmt: skip
"""How many topologies the families have whose matter is wider than that of the others."""

SAME = ("hook kind", "family")
"""The axes on which all topologies of a file have the same words."""

Combinations = set[tuple[tuple[str, object], ...]]


def drawn(family: str, draws: int) -> list[Topology]:
    """Distinct topologies of a family, smallest first."""
    return drawn_from(family_named(family).topologies(), draws)


def drawn_from(topologies: st.SearchStrategy[Topology], draws: int) -> list[Topology]:
    """Distinct ones of them, smallest first."""
    chosen: dict[str, Topology] = {}

    @settings(
        max_examples=draws,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(topologies)
    def collect(topology: Topology) -> None:
        chosen[identify(topology)] = topology

    collect()
    return sorted(chosen.values(), key=rank)


def rank(topology: Topology) -> tuple[int, tuple[int, int], str]:
    """The order in which topologies are considered: few sides of length 1 first, then small ones."""
    return ones(topology), size(topology), identify(topology)


def ones(topology: Topology) -> int:
    """How many sides of the inputs have length 1."""
    return sum(side == 1 for i in topology.inputs for side in i.shape)


def cost(topology: Topology) -> int:
    """What a topology's combinations are weighed against."""
    return ones(topology) + size(topology)[0]


def combinations(topology: Topology) -> Combinations:
    """The pairs of features, the features of every call, the settings of every layer, and how the topology is run."""
    expected = Expected(topology, values(topology))
    features = [*map(call_features, expected.trace.calls), *map(firing_features, expected.firings)]
    settings_used = [
        tuple((f.name, getattr(layer, f.name) not in (f.default, 1, (1, 1))) for f in fields(layer))
        for _, layer in walk(topology.module)
        if isinstance(layer, Layer)
    ]
    uses = {tuple(each for each in use if each[0] not in SAME) for use in words("", expected)}
    features_met = {
        (("dtype", topology.dtype), ("training", topology.training)),
        *meeting(uses),
        *kind(topology),
        *classes(topology),
        *settings_used,
        *(tuple((key, tuple(sorted(each))) for key, each in sorted(features_met.items())) for features_met in features),
        *((("arguments", tuple(t is not None and t.requires_grad for t in c.args)),) for c in expected.trace.calls),
    }
    # Old releases run only a part of the corpus, and that part must not lack what the rest has.
    return {(("since", needs(topology)[0]), *combination) for combination in features_met}


def coarse(setting: object) -> object:
    """What is told apart of a setting: what it is, of a number or numbers whether any is other than 1."""
    if isinstance(setting, (bool, str)) or setting is None:
        return setting
    numbers = setting if isinstance(setting, tuple) else (setting,)
    return "1" if all(number == 1 for number in numbers) else "other"


def steps(topology: Topology) -> set[Hashable]:
    """The layers and operations that a topology is made of, what is told apart of their settings, any one or two
    contexts that it runs inside of, modes that are within modes, classes of tensors in contexts, and the contexts that
    call a part of it."""
    parts: list[Any] = [module for _, module in walk(topology.module) if isinstance(module, Layer)]
    parts += [statement.op for statement in statements(topology) if isinstance(statement, Apply)]
    names: set[Hashable] = {type(step).__name__ for step in parts}
    contexts = inside(topology)
    if "enable_grad" in contexts:  # which switches on again what no_grad has switched off
        contexts = tuple(name for name in contexts if name != "no_grad")
    names |= {each for count in (1, 2) for each in within(contexts, count)}
    bodies = (module.body for _, module in walk(topology.module) if isinstance(module, Composite))
    names |= {("class", *pair) for pair in product(tensor_words(topology), contexts)}
    names |= {("within", *modes) for modes in nesting(topology)}
    names |= {("inside", s.context) for body in bodies for s in body if isinstance(s, Call) and s.context}
    return names | {
        (type(step).__name__, f.name, coarse(getattr(step, f.name))) for step in parts for f in fields(step)
    }


def kind(topology: Topology) -> tuple[tuple[tuple[str, object], ...], ...]:
    """What a topology is at a glance: its root, and how many dimensions its inputs have."""
    root = topology.module
    ranks = tuple(len(i.shape) for i in topology.inputs)
    return ((("root", type(root).__name__), ("bias", getattr(root, "bias", None)), ("ranks", ranks)),)


def classes(topology: Topology) -> tuple[tuple[tuple[str, object], ...], ...]:
    """Of what classes tensors are, and where: inputs that require grad or not, parameters, values, the net's output."""
    if not tensor_classes(topology):
        return ()
    given = tuple((i.tensor, i.requires_grad) for i in topology.inputs)
    read = any(isinstance(statement, Apply) and isinstance(statement.op, AsDense) for statement in topology.main)
    return ((("given", given), ("of parameters", topology.classes), ("read", read), ("all", tensor_classes(topology))),)


def adding(worth: Mapping[Topology, Set[Hashable]], room: int) -> list[Topology]:
    """Up to ``room`` topologies, each of which adds more of its worth for its size than any that is left."""
    chosen: list[Topology] = []
    left = {topology: set(worths) for topology, worths in worth.items() if worths}
    while left and len(chosen) < room:
        best = max(left, key=lambda topology: len(left[topology]) / cost(topology))
        new = left.pop(best)
        chosen.append(best)
        left = {topology: rest for topology, worths in left.items() for rest in [worths - new] if rest}
    return chosen


def curated(
    known: tuple[Topology, ...], candidates: list[Topology], count: int, others: Iterable[Topology] = ()
) -> list[Topology]:
    """``known``, those of ``candidates`` that add steps or combinations, and more until there are ``count`` in all.

    ``others`` are the topologies of the other files: what they are made of is no longer new.
    """
    new = [topology for topology in candidates if topology not in known]
    room = max(0, count - len(known))
    made_of = set().union(*map(steps, (*known, *others)))
    chosen = adding({topology: steps(topology) - made_of for topology in new}, room)
    seen = set().union(*map(combinations, (*known, *chosen)))
    chosen += adding({t: combinations(t) - seen for t in new if t not in chosen}, room - len(chosen))
    turns: Counter[object] = Counter()
    rest = []
    for topology in (topology for topology in new if topology not in chosen):
        turns[kind(topology)] += 1
        rest.append((turns[kind(topology)], topology))
    rest.sort(key=lambda item: item[0])  # the kinds take turns, so that none fills the file alone
    chosen += [topology for _, topology in rest][: room - len(chosen)]
    return [*known, *sorted(chosen, key=lambda topology: (size(topology), identify(topology)))]


def add(family: str, count: int, draws: int) -> None:
    """Adds to the corpus file of one family."""
    held = {name: read(FOLDER, name) for name in FAMILIES if (FOLDER / f"{name}.jsonl").exists()}
    known = held.pop(family, ())
    chosen = curated(known, drawn(family, draws) if len(known) < count else [], count, chain(*held.values()))
    write(FOLDER, family, chosen, beside(FOLDER, family) if known else None)
    print(f"{family}: {len(chosen)} topologies, {len(chosen) - len(known)} of them new", flush=True)


def main() -> None:
    """Adds to the corpus file of one family, or of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("family", nargs="?")
    which.add_argument("--all", action="store_true")
    parser.add_argument("--count", type=int, help=f"default: {COUNT}; {COUNTS}")
    parser.add_argument("--draws", type=int, default=2500)
    arguments = parser.parse_args()
    for family in FAMILIES if arguments.all else [arguments.family]:
        add(family, arguments.count or COUNTS.get(family, COUNT), arguments.draws)


if __name__ == "__main__":
    main()
