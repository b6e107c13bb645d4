"""Does every judge bear what modules are given and give, and what a broken torch may hand to a hook?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from hookcheck.contract.clause import CLAUSES, PROMISE, Clause, Judgement, Subject
from hookcheck.contract.explaining import unexplained
from hookcheck.contract.ledger import applying, load
from hookcheck.contract.verdict import RAN, Deviation
from hookcheck.hooks.kinds import KINDS, MULTI_GRAD, SAVED
from hookcheck.networks.case import Case
from hookcheck.networks.examine import examine
from hookcheck.probe.observation import Copy, Event, same
from hookcheck.topology.families.calling import inside
from hookcheck.topology.model import Backward, Call, Composite, Input, Topology
from hookcheck.topology.tree import Literal, Pack, Ref, Tree

from .cases import TIMES, H, V, X, Y, again, deviations
from .sound import SOUND

LEDGER = applying(load(), torch.__version__, "cpu")
TEXT = Literal("name")
AB = ("a", "b")

GIVEN: dict[str, Callable[[Ref], Tree]] = {
    "a text": lambda _: TEXT,
    "None": lambda _: Literal(None),
    "a number": lambda _: Literal(2.5),
    "a bare tensor": lambda tensor: tensor,
    "a list": lambda tensor: Pack("list", (tensor, TEXT)),
    "a tuple": lambda tensor: Pack("tuple", (tensor, Literal(None))),
    "a dict": lambda tensor: Pack("dict", (tensor, Literal(2.5)), AB),
    "a namedtuple": lambda tensor: Pack("namedtuple", (tensor, TEXT), AB),
    "a dataclass": lambda tensor: Pack("dataclass", (tensor, TEXT), AB),
    "a dict in a list in a tuple": lambda tensor: Pack(
        "tuple", (Pack("list", (Pack("dict", (tensor, TEXT), AB), TEXT)), Literal(None))
    ),
}
"""What a module may be given and may give, with a tensor in it where it can hold one."""


def network(odd: Callable[[Ref], Tree]) -> Topology:
    """A module that calls another one: both are given such a thing, by position before a tensor and by keyword, and
    give one, behind a tensor if it holds none."""
    gives = odd(H)
    gives = Pack("tuple", (H, gives)) if isinstance(gives, Literal) else gives
    takes = ("odd", "x", "named")
    inner = Composite((("a", TIMES),), takes, (Call("h", "a", (X,)),), gives)
    handing_on = Call("p", "inner", (Ref("odd"), X), (("named", Ref("named")),))
    outer = Composite((("inner", inner),), takes, (handing_on,), Ref("p"))
    called = Call("y", "", (odd(Ref("u")), X), (("named", odd(Ref("u"))),))
    (reached,) = inside(gives, {H: (1,)}, Y)
    inputs = tuple(Input(name, (1,), requires_grad=name != "v") for name in ("u", "x", "v"))
    return Topology(outer, inputs, (called, Backward((reached.ref,), (V,))))


def unexplained_of(topology: Topology) -> list[Deviation]:
    """What all clauses find with every hook kind that the ledger does not explain."""
    results = list(examine(topology, "non-tensor-argument", KINDS, CLAUSES.values(), LEDGER))
    assert RAN in {result.outcome for result in results}
    return [deviation for result in results for deviation in unexplained(result.deviations)]


@pytest.mark.parametrize("name", GIVEN)
def test_every_judge_bears_what_modules_are_given_and_give(name: str) -> None:
    assert unexplained_of(network(GIVEN[name])) == []


HANDED: dict[str, Copy] = {
    "a text": "'name'",
    "None": None,
    "a bare tensor": np.array([2.0]),
    "a tensor without axes": np.array(2.0),
    "nothing": (),
    "a list": [np.array([2.0])],
    "a tuple": (np.array([2.0]), "'name'"),
    "a dict": {"a": np.array([2.0])},
    "a dict in a list in a tuple": ([{"a": np.array([2.0])}, "'name'"], None),
}
"""What a broken torch may hand to a hook, as the probe copies it."""

PLACES: tuple[Callable[[tuple[Copy, ...], Copy], tuple[Copy, ...]], ...] = (
    lambda arguments, odd: (odd,),
    lambda arguments, odd: (odd,) * len(arguments),
    lambda arguments, odd: ((odd,),) * len(arguments),
)
"""Where: in the place of all arguments, of each one, or of what each one holds."""


def broken(odd: Copy) -> Iterator[Case]:
    """The sound cases, but that a hook is handed something else. What two kinds note, the probe makes by itself."""
    for case in (case for case in SOUND.values() if case.kind.call not in (MULTI_GRAD, SAVED)):
        for place in PLACES:

            def handed(event: Event, place: Callable[..., tuple[Copy, ...]] = place) -> Event:
                return event._replace(arguments=place(event.arguments, odd))

            events = tuple(map(handed, case.observed.events))
            if not all(same(a.arguments, b.arguments) for a, b in zip(events, case.observed.events)):
                chained = tuple((link, handed(event)) for link, event in case.observed.chained)
                yield again(case, events=events, chained=chained)


@pytest.mark.parametrize("name", HANDED)
def test_every_judge_bears_what_a_broken_torch_hands_to_a_hook(name: str) -> None:
    assert all(map(deviations, broken(HANDED[name])))


def careless(case: Case, event: Event) -> Judgement:
    """It takes whatever a hook is handed first for a tuple of tensors."""
    assert [value.shape for value in event.arguments[0]]  # type: ignore
    return None


def declare(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clause = Clause("XX-01", PROMISE, "", "1.7", "", (kind,), Subject.EVENT, careless)
    monkeypatch.setitem(CLAUSES, clause.id, clause)


@pytest.mark.parametrize("name", [name for name in GIVEN if name != "a bare tensor"])
def test_a_judge_that_takes_every_argument_for_a_tensor_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declare("forward_pre", monkeypatch)
    with pytest.raises(AttributeError, match="has no attribute 'shape'"):
        unexplained_of(network(GIVEN[name]))


@pytest.mark.parametrize("name", ["a text", "a list", "a dict"])
def test_a_judge_that_takes_every_gradient_for_a_tensor_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declare("full_backward", monkeypatch)
    with pytest.raises(AttributeError, match="has no attribute 'shape'"):
        list(map(deviations, broken(HANDED[name])))
