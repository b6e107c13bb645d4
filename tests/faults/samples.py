"""What faults are shown on: a slice of the corpus, and networks by hand for what its five families do not hold."""

from __future__ import annotations

from functools import lru_cache

import torch

from hookcheck.contract.case import call_features
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.examine import examine
from hookcheck.contract.ledger import applying, load
from hookcheck.oracle.expected import Expected
from hookcheck.probe.run import unavailable
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Apply, Backward, Call, Composite, Input, Literal, Pack, Ref, Topology
from hookcheck.topology.ops import Add
from hookcheck.topology.values import values

X, H, Y, V = Ref("x"), Ref("h"), Ref("y"), Ref("v")
INPUTS = (Input("x", (2, 3), requires_grad=True), Input("v", (2, 3)))
FC = (("fc", Linear(3, 3)),)
CALLED = Call("h", "fc", (X,))

BY_HAND = {
    "positions without a Tensor": Topology(
        Composite(FC, ("flag", "x", "none"), (CALLED,), Pack("tuple", (H, Literal("text")))),
        INPUTS,
        (Call("y", "", (Literal(True), X, Literal(None))), Backward((Ref("y", (0,)),), (V,))),
    ),
    "an output that is not used": Topology(
        Composite(FC, ("x",), (CALLED,), Pack("tuple", (H, X))),
        INPUTS,
        (Call("y", "", (X,)), Backward((Ref("y", (0,)),), (V,))),
    ),
    "a module that is called twice": Topology(
        Composite(FC, ("x",), (CALLED, Call("z", "fc", (H,))), Ref("z")),
        INPUTS,
        (Call("y", "", (X,)), Backward((Y,), (V,))),
    ),
    "two backwards": Topology(
        Linear(3, 3), INPUTS, (Call("y", "", (X,)), Backward((Y,), (V,), retain_graph=True), Backward((Y,), (V,)))
    ),
}

TWO = Composite(
    (("left", Linear(3, 3)), ("right", Linear(3, 3))),
    ("x", "z"),
    (Call("p", "left", (X,)), Call("q", "right", (Ref("z"),)), Apply("s", Add(), (Ref("p"), Ref("q")))),
    Ref("s"),
)
for name, grad in (("two inputs that require grad", True), ("two inputs, one of which requires grad", False)):
    BY_HAND[name] = Topology(
        TWO, (*INPUTS, Input("z", (2, 3), grad)), (Call("y", "", (X, Ref("z"))), Backward((Y,), (V,)))
    )

Caught = frozenset[tuple[str, str, str, str]]
"""(clause, topology, subject, gap) of deviations that the ledger does not explain."""


def family_of(name: str) -> str:
    """The family whose known deviations a network by hand shares; mostly there is none."""
    return "no-grad-input" if name == "two inputs, one of which requires grad" else "by hand"


@lru_cache(maxsize=1)
def slices() -> tuple[tuple[str, Topology], ...]:
    """Family and topology: those by hand, then of the corpus what adds a combination of features within its family."""
    found = [(family_of(name), topology) for name, topology in BY_HAND.items()]
    for family in FAMILIES:
        seen: set[object] = set()
        for topology in read(conformance_folder() / "corpus", family):
            new = combinations(topology) - seen
            if new and not unavailable(topology, None):
                seen |= new
                found.append((family, topology))
    return tuple(found)


def combinations(topology: Topology) -> set[object]:
    """How many calls of which features there are, and how the topology is run."""
    calls = Expected(topology, values(topology)).trace.calls
    features = [call_features(call) for call in calls]
    return {
        ("run", topology.training, topology.dtype, bool(topology.frozen), len(calls[0].args)),
        *((*(f[key] for key in ("module", "mode", "inputs", "outputs")), bool(topology.frozen)) for f in features),
        *(("last", f.get("last"), f.get("rank")) for f in features),
    }


def deviations(family: str, topology: Topology, kind: str) -> Caught:
    """What is unexplained about one topology with one hook kind, on the installed torch as it now is."""
    ledger = applying(load(), torch.__version__, "cpu")
    return frozenset(
        (d.clause, result.topology, d.subject, d.gap)
        for result in examine(topology, family, (kind,), CLAUSES.values(), ledger)
        for d in result.deviations
        if d.ledger is None
    )
