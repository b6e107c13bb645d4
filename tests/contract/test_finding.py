"""Does a finding give the gap and the words that records, ledger and people go by?"""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest

from hookcheck.contract.finding import Finding, Gradients, Rounded
from hookcheck.contract.site import (
    ABSENT,
    ARGUMENT,
    AS_WITHOUT_HOOKS,
    CALL,
    CLOSE,
    COUNT,
    ENTRY,
    EQUAL,
    KEPT_ALIVE,
    NONE,
    ORDER,
    PROCESS,
    RAISES,
    VALUE,
    WARNS,
    Relation,
    Site,
    SiteKind,
)
from hookcheck.contract.verdict import GAPS
from hookcheck.contract.words import stated

ONE, TWO = np.array([1.0]), np.array([2.0])
OTHER_SHAPE = np.array([[1.0]])
CASES: list[tuple[SiteKind, Relation, Any, Any, str, tuple[str, str]]] = [
    (VALUE, CLOSE, ONE, TWO, "wrong values", ("[1.0]", "[2.0]")),
    (VALUE, CLOSE, None, TWO, "wrong values", ("None", "[2.0]")),
    (VALUE, EQUAL, (ONE, "'a'"), (ONE, "'b'"), "wrong values", ("([1.0], 'a')", "([1.0], 'b')")),
    (VALUE, EQUAL, stated([1]), stated([]), "wrong values", ("[1]", "[]")),
    (VALUE, ABSENT, ONE, (TWO,), "wrong values", ("[1.0]", "([2.0],)")),
    (VALUE, NONE, ONE, None, "None instead of a gradient", ("[1.0]", "None")),
    (VALUE, NONE, None, ONE, "a gradient instead of None", ("None", "[1.0]")),
    (VALUE, NONE, None, stated(0.0), "a gradient instead of None", ("None", "0.0")),
    (VALUE, AS_WITHOUT_HOOKS, ONE, TWO, "wrong values", ("[1.0]", "[2.0]")),
    (VALUE, AS_WITHOUT_HOOKS, ONE, Rounded(ONE), "other rounding", ("[1.0]", "[1.0]")),
    (VALUE, AS_WITHOUT_HOOKS, ONE, None, "None instead of a gradient", ("[1.0]", "None")),
    (VALUE, AS_WITHOUT_HOOKS, None, ONE, "a gradient instead of None", ("None", "[1.0]")),
    (VALUE, KEPT_ALIVE, [], ["net", "x"], "kept alive", ("nothing", "net, x")),
    (ARGUMENT, EQUAL, ("net", "tuple"), ("net", "list"), "wrong arguments", ("(net, tuple)", "(net, list)")),
    (ARGUMENT, EQUAL, stated(True), stated(False), "wrong arguments", ("True", "False")),
    (ARGUMENT, COUNT, 2, (ONE,), "wrong arguments", ("2", "([1.0],)")),
    (ARGUMENT, ABSENT, "3", "never packed", "wrong arguments", ("3", "never packed")),
    (ARGUMENT, AS_WITHOUT_HOOKS, "view False", "view True", "wrong arguments", ("view False", "view True")),
    (CALL, COUNT, 2, 1, "not fired", ("2 calls", "1 calls")),
    (CALL, COUNT, 0, 3, "fired too often", ("0 calls", "3 calls")),
    (CALL, COUNT, ["a", "b"], [], "not fired", ("a, b", "nothing")),
    (CALL, COUNT, ["a"], ["a", "b"], "fired too often", ("a", "a, b")),
    (CALL, EQUAL, stated(True), stated(False), "not fired", ("True", "False")),
    (CALL, EQUAL, stated([((1,), None)]), stated([]), "not fired", ("[((1,), None)]", "[]")),
    (CALL, EQUAL, stated([]), stated([([3],)]), "fired too often", ("[]", "[([3],)]")),
    (CALL, ORDER, ["a", "b"], ["b", "a"], "wrong order", ("a, b", "b, a")),
    (ENTRY, COUNT, (ONE,), Gradients((ONE, None)), "extra entries", ("([1.0],)", "([1.0], None)")),
    (ENTRY, COUNT, (ONE,), Gradients(()), "missing entries", ("([1.0],)", "()")),
    (ENTRY, EQUAL, stated([0, 1]), stated([0, 1, 2]), "extra entries", ("[0, 1]", "[0, 1, 2]")),
    (PROCESS, RAISES, None, "TypeError: no", "raised", ("no error", "TypeError: no")),
    (PROCESS, RAISES, "ValueError", "TypeError: no", "raised", ("ValueError", "TypeError: no")),
    (PROCESS, RAISES, "ValueError", None, "not raised", ("ValueError", "no error")),
    (PROCESS, WARNS, None, "UserWarning: so", "new warning", ("no warning", "UserWarning: so")),
    (PROCESS, WARNS, "FutureWarning", None, "no warning", ("FutureWarning", "no warning")),
    (PROCESS, WARNS, "FutureWarning", "UserWarning: so", "no warning", ("FutureWarning", "UserWarning: so")),
    (PROCESS, EQUAL, "it ends", "ended by signal 11", "crashed", ("it ends", "ended by signal 11")),
    (PROCESS, EQUAL, "it ends", None, "timed out", ("it ends", "still running")),
    (PROCESS, EQUAL, stated(["text"]), stated([]), "timed out", ("['text']", "[]")),
]


@pytest.mark.parametrize(("kind", "relation", "expected", "observed", "gap", "words"), CASES)
def test_gap_and_words_follow_from_the_relation(
    kind: SiteKind, relation: Relation, expected: Any, observed: Any, gap: str, words: tuple[str, str]
) -> None:
    finding = Finding(Site(kind), relation, expected, observed)
    assert finding.gap == gap
    assert finding.words() == words
    here = Finding(Site(kind, "x.grad"), relation, expected, observed)
    assert here.gap == gap
    assert here.words() == (f"x.grad: {words[0]}", words[1])


NAMES = ("bias", "input[0]", "unknown")


@pytest.mark.parametrize(
    ("gradients", "gap"),
    [
        (Gradients((TWO, ONE, ONE), (0,)), "wrong values"),
        (Gradients((OTHER_SHAPE, ONE, ONE), (0,)), "wrong shape"),
        (Gradients((TWO, ONE, ONE), (0,), identify=lambda: NAMES), "parameter gradients mixed in"),
        (Gradients((ONE, TWO, ONE), (1,), frozenset({1}), lambda: NAMES), "wrong slots"),
        (Gradients((TWO, TWO, ONE), (0, 1), frozenset({1}), lambda: NAMES), "parameter gradients mixed in"),
        (Gradients((TWO, ONE, TWO), (0, 2), identify=lambda: NAMES), "wrong values"),
    ],
)
def test_the_costliest_of_several_wrong_entries_is_the_gap(gradients: Gradients, gap: str) -> None:
    finding = Finding(Site(VALUE), CLOSE, (ONE, ONE, ONE), gradients)
    assert finding.gap == gap
    shown = finding.words()[1]
    assert shown.endswith(", which is (bias, input[0], unknown)") == (gradients.identify is not None)


def test_every_gap_has_a_relation() -> None:
    several = (*(gap for *_, gap, _ in CASES), "parameter gradients mixed in", "wrong slots", "wrong shape")
    assert set(several) == set(GAPS)


def test_a_relation_that_says_nothing_of_a_site_is_an_error() -> None:
    silent = {(PROCESS, CLOSE), (CALL, AS_WITHOUT_HOOKS), (ENTRY, ABSENT), (ARGUMENT, CLOSE)}
    for kind, relation in product(get_args(SiteKind), get_args(Relation)):
        finding = Finding(Site(kind), relation, "1", "2")
        if (kind, relation) in silent:
            with pytest.raises(KeyError):
                _ = finding.gap
    assert {relation for _, relation, *_ in CASES} == set(get_args(Relation))


class Net:
    def __repr__(self) -> str:
        return "Net()"


def test_what_a_program_states_leaves_its_process() -> None:
    """Objects go as their repr: the classes of a program are unknown elsewhere."""
    finding = Finding(Site(VALUE), EQUAL, stated([(Net(), {Net: 1.0})]), stated((None, "text", ...)))
    copy = pickle.loads(pickle.dumps(finding))
    assert copy.words() == finding.words() == (f"[(Net(), {{{Net!r}: 1.0}})]", "(None, 'text', Ellipsis)")
    assert copy.gap == "wrong values"
