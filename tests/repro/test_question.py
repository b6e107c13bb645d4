"""What a script asks of torch to show a finding: findings made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from networks.cases import case

from hookcheck.contract.finding import Finding, Gradients
from hookcheck.contract.site import ABSENT, ARGUMENT, AS_WITHOUT_HOOKS, CALL, PROCESS, RAISES, VALUE, Called, Site
from hookcheck.contract.site import CLOSE as NOT_CLOSE
from hookcheck.contract.site import COUNT as HOW_OFTEN
from hookcheck.networks.case import Case
from hookcheck.probe.observation import Event, Raised
from hookcheck.repro.question import CLOSE, ERROR, SAME, TYPE, Question, _of_one_call, question
from hookcheck.repro.question import VALUE as OF_A_VALUE
from hookcheck.repro.sighting import Sighting, Symptom


def asked(c: Case, finding: Finding) -> Question:
    symptom = Symptom("OB-02", "wrong values", finding.relation, finding.site.kind, None)
    return question(Sighting(symptom, c, None, finding))


def test_a_namedtuple_that_is_a_plain_tuple() -> None:
    finding = Finding(Site(VALUE, "y[type]"), AS_WITHOUT_HOOKS, "max", "nothing of that name")
    assert asked(case(), finding) == Question(OF_A_VALUE, TYPE, path="y")


@pytest.mark.parametrize(
    ("observed", "relation", "path"),
    [("kind Tensor, torch.strided", TYPE, "y"), ("kind Sub, torch.sparse_coo", SAME, "y.layout")],
)
def test_a_tensor_of_another_class_or_layout(observed: str, relation: str, path: str) -> None:
    about = asked(case(), Finding(Site(ARGUMENT, "y"), AS_WITHOUT_HOOKS, "kind Sub, torch.strided", observed))
    assert about == Question(OF_A_VALUE, relation, path=path)
    assert about.compared


def test_a_legacy_hook_that_is_called_as_often_as_is_due_but_otherwise() -> None:
    run = case(kind="backward")
    call, event = run.expected.trace.calls[0], Event("backward", "", 0, "", ([np.ones(1)], [np.ones(1)]))
    due = SimpleNamespace(gradient=np.ones(1))
    answers = SimpleNamespace(due=((due, None),), left=(event,))
    of = cast(Case, SimpleNamespace(as_nodes={call.path: answers}, events={call.path: [event]}))
    finding = Finding(Site(CALL), HOW_OFTEN, 1, 2)
    assert _of_one_call(of, call, finding).relation == ABSENT
    twice = cast(Case, SimpleNamespace(as_nodes={call.path: answers}, events={call.path: [event, event]}))
    assert _of_one_call(twice, call, finding) is finding


def test_what_a_legacy_hook_is_given_is_a_tuple() -> None:
    given = ([np.ones(1)],)
    finding = Finding(Site(VALUE, "grad_output of a call", Called("", 0, "grad_output")), ABSENT, np.ones(1), given)
    about = asked(case(), finding)
    assert (about.relation, about.expected, about.observed) == (TYPE, "tuple", "list")


def test_a_number_that_is_no_array() -> None:
    finding = Finding(Site(VALUE, "x.grad"), NOT_CLOSE, np.float64(14), np.array([7.0]))
    about = asked(case(), finding)
    assert (about.place, about.relation, about.path) == (OF_A_VALUE, CLOSE, "x.grad")
    assert about.expected == 14


def test_what_is_none_on_both_sides_is_not_asked_for() -> None:
    given = Gradients((None, np.array([7.0])), wrong=(0, 1))
    site = Site(VALUE, "grad_input", Called("", 0, "grad_input"))
    about = asked(case(), Finding(site, NOT_CLOSE, (None, np.array([14.0])), given))
    assert (about.relation, about.argument, about.index) == (CLOSE, "grad_input", "[1]")


@pytest.mark.parametrize("raised", [None, Raised("RuntimeError", "some other one")])
def test_an_error_that_must_say_something(raised: Raised | None) -> None:
    due = "RuntimeError that says 'modified inplace' where a module's input or output is written to"
    about = asked(case(), Finding(Site(PROCESS), RAISES, due, raised))
    assert (about.place, about.expected, about.argument) == (ERROR, "RuntimeError", "modified inplace")
