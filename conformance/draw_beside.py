"""Which hook kinds is a network of the corpus run with beside its share of siblings? As few as show what all would.

Run ``python conformance/draw_beside.py`` where lines are new, and before the records are made anew. In each family:

* every feature of its networks (see ``hookcheck coverage``) meets every hook kind;
* in tensor-class so does every class of tensors in every place, where no other family has the three;
* on each release in ``reports/records`` every clause judges with each hook kind with which the record has it judge;
* each entry of the ledger shows there with the same clauses, hook kinds and gaps;
* each cell that deviates there has the same counterexample.

What lines name already stays.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path

from draw_corpus import FOLDER

from hookcheck.coverage.axes import words
from hookcheck.hooks.kinds import KINDS
from hookcheck.oracle.expected import Expected
from hookcheck.record.model import CORPUS
from hookcheck.record.reading import read_folded, record_files
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import beside, read, shares, write
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.families.tensors_in_contexts import GIVEN, MADE, place_in
from hookcheck.topology.model import Apply, Composite, Topology, tensor_words, walk
from hookcheck.topology.ops.tensors import AsTensor
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Ref
from hookcheck.topology.values import values

RECORDS = Path(__file__).parents[1] / "reports" / "records"

Case = tuple[str, str]
"""The id of a topology, and a hook kind."""

Shown = dict[Case, set[Hashable]]
"""What each case shows."""

PLACED = "tensor-class"
"""The family whose networks are outside of contexts, where a class of tensors in a place meets a hook kind first."""

OUTPUT = "output"
"""The place of a tensor of a class that a module makes and gives back."""


def features(family: str, topologies: Iterable[Topology]) -> Shown:
    """The features of each topology with each hook kind."""
    shown: Shown = {}
    for topology in topologies:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NaN or not, whether a gradient is there is what counts
            uses = words(family, Expected(topology, values(topology)), ())
        met = {(axis, word) for use in uses for axis, those in use for word in those}
        if family == PLACED:
            met |= {*classes_in_places(topology)}
        shown.update({(identify(topology), kind): {(kind, word) for word in met} for kind in KINDS})
    if family == PLACED:
        met_elsewhere = elsewhere()
        shown = {case: those - met_elsewhere for case, those in shown.items()}
    return shown


def classes_in_places(topology: Topology) -> Iterator[tuple[str, str]]:
    """Each class of tensors that the network has, with the place that such a tensor has in it: one that is given counts
    where it can have a gradient, and one that is made is an output of a module, or is not."""
    place = place_in(topology)
    counts = any(i.tensor and (i.requires_grad or TENSORS[i.tensor].constant) for i in topology.inputs)
    for word in tensor_words(topology) if counts or place != GIVEN else ():
        yield OUTPUT if place == MADE and word in outputs(topology) else place, word


def outputs(topology: Topology) -> set[str]:
    """The classes of tensors that bodies of modules make and give back."""
    bodies = (module for _, module in walk(topology.module) if isinstance(module, Composite))
    results = ((s.op, s.out, body.gives) for body in bodies for s in body.body if isinstance(s, Apply))
    return {op.tensor for op, out, gives in results if isinstance(op, AsTensor) and gives == Ref(out)}


def elsewhere() -> set[Hashable]:
    """Each hook kind with a class of tensors in a place that it meets in a context, but for those that compile."""
    kinds, topologies = shares(FOLDER, "context"), read(FOLDER, "context")
    return {(kind, met) for t in topologies for met in classes_in_places(t) for kind in kinds[identify(t)]}


def recorded(records: Iterable[Path]) -> dict[str, Shown]:
    """By family which clauses have their say in each case on each release, what is known to deviate, and which cells
    the case is the counterexample of."""
    shown: dict[str, Shown] = defaultdict(lambda: defaultdict(set))
    for path in records:
        record = read_folded(path)
        smallest = {counterexample.topology for counterexample in record.counterexamples}
        for alike in record.alike:
            said = {*alike.judged, *((d.clause, d.gap, d.ledger) for d in alike.deviations)}
            for topology, kind in product(alike.topologies, alike.kinds) if alike.origin == CORPUS else ():
                of_case = {(path.name, kind, each) for each in said}
                if topology in smallest:
                    of_case |= {(path.name, cell) for cell in alike.worded if cell[2] == kind}
                shown[alike.family][topology, kind] |= of_case
    return shown


def adding(shown: Mapping[Case, set[Hashable]], chosen: Iterable[Case]) -> list[Case]:
    """The fewest more cases, or nearly, that show with those ``chosen`` all that any shows."""
    left = set().union(*shown.values()) - set().union(*(shown.get(case, set()) for case in chosen))
    more = []
    while left:
        best = max(shown, key=lambda case: (len(shown[case] & left), case))
        more.append(best)
        left -= shown[best]
    return more


def main() -> None:
    """Writes the file of each family anew."""
    known = recorded(record_files(RECORDS))
    for family in FAMILIES:
        topologies, named = read(FOLDER, family), beside(FOLDER, family)
        shown = features(family, topologies)
        for case, those in known[family].items():
            if case in shown:
                shown[case] |= those
        chosen = [(id, kind) for id, kinds in shares(FOLDER, family).items() for kind in kinds]
        more = adding(shown, chosen)
        for id in dict.fromkeys(id for id, _ in more):
            named[id] = tuple(k for k in KINDS if k in named.get(id, ()) or (id, k) in more)
        write(FOLDER, family, topologies, named)
        print(f"{family}: {len(chosen) + len(more)} cases, {len(more)} of them new", flush=True)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    main()
