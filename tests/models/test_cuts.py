"""Do the two oracles agree? On the corpus cuts show what the formulas give; and planted faults show."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import nn

from hookcheck.models import cutting
from hookcheck.models.cuts import CALLED, DIRECT, Boundary, Cuts
from hookcheck.models.cutting import cut
from hookcheck.networks.features import network_features
from hookcheck.oracle.expected import Expected
from hookcheck.oracle.graph import CallTrace, Node, Tensor, newest, origin
from hookcheck.oracle.sweep import Sweep
from hookcheck.probe.copying import array_of, copied
from hookcheck.probe.observation import numbers
from hookcheck.probe.run import unavailable
from hookcheck.probe.state import preserved
from hookcheck.releases.numbers import release
from hookcheck.suite import conformance_folder
from hookcheck.topology.build import build
from hookcheck.topology.codec import identify
from hookcheck.topology.contexts import CONTEXTS
from hookcheck.topology.corpus import read
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Topology, inside, tensor_classes
from hookcheck.topology.values import values

SHARE = 0.05
"""Of each family as much is run in the first stage, one network at least; the second runs all of it."""

BROKEN = "torch itself does not give what the formulas give, cuts or not"
WRITES = "writes in place to what cuts hand out, and is used by another name"
THROUGH_A_VIEW = "writes through a view to what cuts hand out, whose history is the base's then"
OVERFLOWS = "numbers on the way are too large for the dtype"
NESTED = "has a tensor without sizes, which no function of one's own may be given"
TRANSFORMED = (
    "transforms and forward mode are not given the cuts' own Function, or find no tensor that requires gradients"
)
TRANSFORMING = {"vmap", "vjp", "dual_inputs"}
COMPILED = "torch.compile traces what it compiles, the cuts and what they note too"
NEWER = "needs a newer torch"

RELEASE = release(torch.__version__)
NAMED = {
    "c421b9ca5bdba0ec": WRITES,
    "97d2ca247b7bbdb7": WRITES,
    "774b099193998534": BROKEN,  # InstanceNorm2d mistakes the layout of a gradient that was permuted
    "ecd6036043cc5c93": BROKEN,  # NLLLoss raises in backward on images that were permuted
}
"""The networks of which the corpus alone does not show why they say nothing."""


class Ran:
    """One run of a topology, with cuts or (``joined`` None) without."""

    def __init__(self, topology: Topology, joined: bool | None) -> None:
        self.raised: Exception | None = None
        self.before: dict[int, int] = {}
        self.cuts = Cuts(False, array_of)
        with preserved():
            torch.default_generator.manual_seed(0)
            built = build(topology, values(topology))
            known = built.known()
            names: dict[str, Any] = {}
            try:
                if joined is None:
                    names = built.run()
                else:
                    with cut(built.module, joined, keep=array_of) as self.cuts:
                        names = built.run()
                        self.before = self.cuts.before()
            except Exception as error:
                self.raised = error
            leaves = {**built.parameters, **built.inputs}
            self.gradients = {n: None if t.grad is None else array_of(t.grad) for n, t in leaves.items()}
            self.values = {n: copied(v) for n, v in names.items() if n not in known and isinstance(v, torch.Tensor)}


def compiles(topology: Topology) -> bool:
    """Whether torch.compile is at work."""
    return any(CONTEXTS[name].compiles for name in inside(topology))


def foreseen(topology: Topology, why: str) -> bool:
    """Whether a network that says nothing about cuts is one of those that cannot."""
    if why == NESTED:
        return "nested" in tensor_classes(topology)
    if why == TRANSFORMED:
        return not TRANSFORMING.isdisjoint(inside(topology))
    if why == COMPILED:
        return compiles(topology)
    return why in ("", NEWER, OVERFLOWS, THROUGH_A_VIEW) or NAMED.get(identify(topology)) == why


def disagreements(topology: Topology) -> tuple[str, list[str]]:
    """Why a topology says nothing about cuts, or an empty text; and in what the two oracles differ."""
    if unavailable(topology, None):
        return NEWER, []
    if compiles(topology):
        return COMPILED, []
    plain = Ran(topology, None)
    expected = Expected(topology, values(topology))
    if plain.raised or [*results(expected, plain, joined=False)]:
        zeros = expected.unused and "vjp" in inside(topology)  # where autograd gives nothing
        return OVERFLOWS if expected.overflows else TRANSFORMED if zeros else BROKEN, []
    if not TRANSFORMING.isdisjoint(inside(topology)):
        return TRANSFORMED, []
    wrong: list[str] = []
    for joined in (True, False):
        ran = Ran(topology, joined)
        if ran.raised and "NestedTensorImpl doesn't support sizes" in str(ran.raised):
            return NESTED, []
        lines = [f"raised {ran.raised!r}"] if ran.raised else [*results(expected, ran, joined)]
        if lines and expected.trace.allowed is not None:
            return WRITES, []
        lines += [] if ran.raised else crossings(expected, ran, joined)
        lines += [] if ran.raised or not joined else fired(expected, ran)
        if lines and "through a view" in network_features(expected)["writes"]:
            return THROUGH_A_VIEW, []
        wrong += [f"joined={joined}: {line}" for line in lines]
    return "", wrong


def results(expected: Expected, ran: Ran, joined: bool) -> Iterator[str]:
    """Outputs are those of the formulas, and so are the gradients of leaves, with boundaries or without."""
    due: dict[str, Any] = {}
    for swept, backward in zip(expected.hooked if joined else expected.plain, expected.trace.passes):
        for name, gradient in swept.asked.items():
            if isinstance(name, str) and backward.accumulates:
                due[name] = due[name] + gradient if name in due else gradient
    for name, observed in ran.gradients.items():
        yield from differ(expected, f"{name}.grad", observed, due.get(name))
    for name, value in ran.values.items():
        tensor = newest(expected.trace.names[name])
        if isinstance(tensor, Tensor):
            yield from differ(expected, name, value, tensor.array)


def differ(expected: Expected, what: str, observed: Any, due: Any) -> Iterator[str]:
    if (observed is None) != (due is None):
        yield f"{what} is {'None' if observed is None else 'not None'}"
    elif observed is not None and not expected.close(numbers(observed), due):
        yield f"{what} has other numbers"


def sides(expected: Expected, ran: Ran) -> Iterator[tuple[CallTrace, Boundary, Node | None, Any]]:
    for call, seen in zip(expected.trace.calls, ran.cuts.calls):
        yield call, seen.entry, call.entry, call.args
        yield call, seen.exit, call.exit, call.outputs_inside


def crossings(expected: Expected, ran: Ran, joined: bool) -> Iterator[str]:
    """What each boundary is met by: in which passes, with which gradients, in an order that the formulas allow."""
    trace, seen = expected.trace, ran.cuts.calls
    if [(c.path, c.number) for c in trace.calls] != [(c.path, c.number) for c in seen][: len(trace.calls)] or (
        len(seen) > len(trace.calls) and not trace.repeats
    ):
        yield "other calls"
        return
    sweeps = expected.hooked if joined else expected.plain
    for call, boundary, node, tensors in sides(expected, ran):
        asking = any(t is not None and t.requires_grad for t in tensors)
        if (node is not None) != (call.mode == "grad" and asking):
            yield f"{call.subject}: has no boundary"
        for number, swept in enumerate(sweeps):
            crossed = boundary.crossed(number) or {}
            by_place = {boundary.spots[i].place: g for i, g in crossed.items() if boundary.spots[i].place is not None}
            received = {} if node is None else dict(zip(node.positions, swept.received.get(node.index, ())))
            if joined and bool(crossed) != (node is not None and node.index in swept.received):
                yield f"{call.subject}: {'no ' if not crossed else ''}crossing in pass {number}"
                continue
            for place, tensor in enumerate(tensors):
                got = by_place.get(place)
                if tensor is not None and tensor.requires_grad and (joined or got is not None or asked(tensor, swept)):
                    yield from differ(expected, f"{call.subject}[{place}], {number}", got, received.get(place))
    yield from ordered(expected, ran, sweeps) if joined else ()


def asked(tensor: Tensor, swept: Sweep) -> bool:
    """Whether a pass is known to go on behind a tensor.

    One that is asked for an intermediate ends at what an identity gave out under that name, not at what went in.
    """
    source = origin(tensor)
    if swept.wanted is None:
        return True
    if any(isinstance(key, tuple) for key in swept.wanted):
        return False
    return source.name in swept.wanted if source.node is None else source.node.index in (swept.needed or ())


def ordered(expected: Expected, ran: Ran, sweeps: Any) -> Iterator[str]:
    """The order is one that the formulas allow, and what cuts say of the order is what the formulas say."""
    pairs = [(node, boundary) for _, boundary, node, _ in sides(expected, ran) if node is not None]
    for number, swept in enumerate(sweeps):
        met = [(n, b, c.turn) for n, b in pairs for c in b.crossings if c.backward == number]
        for node, boundary, turn in met:
            for other, another, when in met:
                must = bool(swept.earlier.get(node.index, 0) >> other.index & 1)
                if must and when > turn:
                    yield f"boundary {another.index} ran after {boundary.index} in pass {number}"
                if must is not bool(ran.before[boundary.index] >> another.index & 1):
                    yield f"boundary {another.index} before {boundary.index} in pass {number}: {not must}"


def fired(expected: Expected, ran: Ran) -> Iterator[str]:
    """The firings that follow from cuts are those that the formulas demand, of hooks and of pre-hooks."""
    for pre, due in ((False, expected.firings), (True, expected.pre_firings)):
        wanted = {(f.call.path, f.call.number, f.backward, f.early) for f in due}
        seen = {
            (call.path, call.number, number, not call.entry.cut)
            for call in ran.cuts.calls
            for number in range(ran.cuts.passes)
            for at in [call.exit if pre or not call.entry.cut else call.entry]
            if at.crossed(number) is not None
            and any(spot.requires_grad for spot in call.exit.spots if spot.place is not None)
        }
        if wanted != seen:
            yield f"{'pre-' if pre else ''}firings {sorted(wanted ^ seen)}"


@pytest.mark.parametrize("share", [SHARE, pytest.param(1, marks=(pytest.mark.slow, pytest.mark.one_in(2)))])
@pytest.mark.parametrize("family", FAMILIES)
def test_both_oracles_agree(family: str, share: float) -> None:
    """On the corpus: values, None or a gradient, which firings, and after what each."""
    topologies = [t for t in read(conformance_folder() / "corpus", family) if t.device != "cuda"]
    chosen = random.Random(0).sample(topologies, max(1, round(share * len(topologies))))
    outcomes = {identify(topology): (topology, *disagreements(topology)) for topology in chosen}
    assert {name: wrong for name, (_, _, wrong) in outcomes.items() if wrong} == {}
    if RELEASE >= (2, 13):  # of older ones the ledger knows more that is broken
        assert {name: why for name, (topology, why, _) in outcomes.items() if not foreseen(topology, why)} == {}


class Branches(nn.Module):
    """Two calls of one layer, a list and a keyword, a layer used by its weight, and one that writes in place."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(3, 3)
        self.many = Many()
        self.unused = nn.Linear(3, 3)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        h = self.shared(self.shared(x))
        h = self.many([h, h * 2], scale=h.sum())
        return self.relu(h) @ self.unused.weight + self.shared.forward(x)


class Many(nn.Module):
    def forward(self, items: list[Any], scale: Any) -> Any:
        return items[0] * scale + items[1]


def small(joined: bool, backward: int = 1) -> Cuts:
    torch.manual_seed(0)
    model, x = Branches(), torch.randn(2, 3, requires_grad=True)
    with cut(model, joined) as cuts:
        out = model(x)
        for _ in range(backward):
            out.sum().backward(retain_graph=True)
    assert "forward" not in vars(model.shared)
    return cuts


def test_calls_are_told_apart() -> None:
    assert [(call.path, call.number, call.way) for call in small(True).calls] == [
        ("", 0, CALLED), ("shared", 0, CALLED), ("shared", 1, CALLED), ("many", 0, CALLED), ("relu", 0, CALLED),
        ("shared", 2, DIRECT),
    ]  # fmt: skip


def test_containers_and_keywords_are_cut_one_by_one() -> None:
    many = small(False, backward=2).calls[3]
    assert [(spot.where, spot.place) for spot in many.entry.spots] == [("0[0]", None), ("0[1]", None), ("scale", None)]
    assert all(many.entry.crossed(number).keys() == {0, 1, 2} for number in (0, 1))  # type: ignore[union-attr]
    assert not small(True).calls[3].entry.cut


def test_what_is_written_in_place_is_written_back() -> None:
    class Writes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Adds()

        def forward(self, x: Any) -> Any:
            h = x * 3
            self.inner(h)
            return h

    class Adds(nn.Module):
        def forward(self, x: Any) -> None:
            x.mul_(x.detach() + 1)

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for joined in (True, False):
        x.grad = None
        model = Writes()
        with cut(model, joined) as cuts:
            out = model(x)
            out.sum().backward()
        assert out.tolist() == [12.0, 42.0]
        assert x.grad is not None
        assert x.grad.tolist() == [12.0, 21.0]
        assert cuts.calls[1].written == ("0",)


def test_a_model_is_as_before_after_an_exception() -> None:
    model = Branches()
    items = [torch.zeros(2, requires_grad=True).exp()]
    given = items[0]
    model.shared.forward = forward = model.shared.forward  # type: ignore[method-assign]
    with pytest.raises(TypeError), cut(model, False):
        model.many(items, scale=None)
    assert items[0] is given
    assert vars(model.shared)["forward"] is forward
    assert "forward" not in vars(model.many)


def proof_fails(families: Sequence[str] = ("single-node", "multi-output", "nested"), most: int = 20) -> bool:
    """Whether the proof fails on some of the corpus."""
    topologies = [t for f in families for t in read(conformance_folder() / "corpus", f)]
    drawn = random.Random(0).sample(topologies, min(most, len(topologies)))
    return any(disagreements(topology)[1] for topology in drawn)


def test_a_cut_that_drops_a_gradient_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = cutting._CutIdentity.backward
    assert not proof_fails()

    def drops(ctx: Any, *gradients: Any) -> Any:
        return (*right(ctx, *gradients)[:-1], None)

    monkeypatch.setattr(cutting._CutIdentity, "backward", staticmethod(drops))
    assert proof_fails()


def test_a_cut_that_tells_another_gradient_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Cuts.crossed

    def doubles(self: Cuts, boundary: Any, spots: Any, gradients: Any) -> None:
        right(self, boundary, spots, tuple(g if g is None else 2 * g for g in gradients))

    monkeypatch.setattr(Cuts, "crossed", doubles)
    assert proof_fails()


def test_a_cut_that_gives_none_for_zeros_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joined boundaries hand zeros on; without them a leaf behind an unused output has no gradient."""
    right = cutting._CutIdentity.backward

    def hands_on(ctx: Any, *gradients: Any) -> Any:
        right(ctx, *gradients)
        return (None, None, None, *gradients)

    monkeypatch.setattr(cutting._CutIdentity, "backward", staticmethod(hands_on))
    assert proof_fails(["multi-output"], most=80)


def test_an_order_that_is_told_wrong_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Cuts.before
    monkeypatch.setattr(Cuts, "before", lambda self: {index: mask >> 1 for index, mask in right(self).items()})
    assert proof_fails()


def test_a_call_that_has_no_cut_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = cutting._Crosser.cut
    monkeypatch.setattr(cutting._Crosser, "cut", lambda self: None if self.boundary.index == 0 else right(self))
    assert proof_fails()
