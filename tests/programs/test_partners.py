"""Hooks that remove one of another table: when that is still called, by hand and on the torch at hand, and faults."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from faults.engine import Fault, named, release
from faults.programs.hooks_in_hooks import OF_PARTNERS

from hookcheck.programs.situations.acts import Situation, Trigger, acts
from hookcheck.programs.situations.draw import PARTNERS, packed, ways, why_none
from hookcheck.programs.situations.fitting import why_not
from hookcheck.programs.situations.judge import finding, fitted
from hookcheck.programs.situations.model import expected

HERE = release(torch.__version__)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


GOING = "removes its partner"
TAKEN_UP = {
    # Those of a backward, as the call starts: of net, not yet of its parts.
    Situation("forward_pre of net", "full_backward of net", trouble=GOING): ("backward", [1, 0, 0]),
    Situation("forward_pre of net", "full_backward of net[0]", trouble=GOING): ("backward", [0, 0, 0]),
    Situation("forward_pre of net", "full_backward_pre of all modules", trouble=GOING): ("backward", [1, 0, 0]),
    Situation("forward_pre of net[0]", "full_backward of all modules", trouble=GOING): ("backward", [2, 0, 0]),
    Situation("forward of net", "backward of net[0]", trouble=GOING): ("backward", [1, 0, 0]),
    Situation("full_backward_pre of net", "full_backward of net[0]", trouble=GOING): ("backward", [1, 0, 0]),
    # Those of the forward when their turn comes, of all modules with those of the module.
    Situation("forward_pre of net", "forward of net", trouble=GOING): ("forward", [0, 0, 0]),
    Situation("forward_pre of net[0]", "forward of all modules", trouble=GOING): ("forward", [0, 0, 0]),
    Situation("forward of net[0]", "forward of all modules", trouble=GOING): ("forward", [1, 0, 0]),
    Situation("forward_pre of all modules", "forward_pre of net", trouble=GOING): ("forward", [1, 0, 0]),
    Situation("forward_pre of all modules", "forward_pre of net[0]", trouble=GOING): ("forward", [0, 0, 0]),
    # Those of tensors and Nodes when theirs comes, which is after what they follow from.
    Situation("output", "input", trouble=GOING): ("backward", [0, 0, 0]),
    Situation("full_backward of net", "input", trouble=GOING): ("backward", [0, 0, 0]),
    Situation("backward of net", "parameter", trouble=GOING): ("backward", [0, 0, 0]),
    Situation("parameter", "accumulating Node", trouble=GOING): ("backward", [0, 0, 0]),
    Situation("accumulating Node", "parameter", trouble=GOING): ("backward", [1, 0, 0]),
    Situation("input", "forward of net", trouble=GOING): ("forward", [1, 0, 0]),
    Situation("output", "forward of net", trouble=GOING, call="checkpoint"): ("backward", [0, 0, 0]),
    Situation("input", "forward of net", trouble=GOING, call="checkpoint"): ("backward", [1, 0, 0]),
    # Others as each table is gone through.
    Situation("step_pre of all optimizers", "optimizer's step_pre", trouble=GOING): ("step", [0, 0, 0]),
    Situation("optimizer's step_post", "optimizer's step_pre", trouble=GOING): ("step", [1, 0, 0]),
}
"""How often the partner is called in each of the events of a name, where a hook removes it in the first round."""


@pytest.mark.parametrize("situation", TAKEN_UP, ids=lambda situation: situation.name)
def test_a_partner_that_is_removed_is_called_where_it_was_taken_up(situation: Situation) -> None:
    what, times = TAKEN_UP[situation]
    assert not why_not(situation)
    events = [log for act, log in expected(acts(situation)) if isinstance(act, Trigger) and act.what == what]
    assert [sum(entry[0] == "c" for entry in log) for log in events] == times
    # Until 1.10 a call went through the tables of all modules, and then its own, as they were by then (CP-07).
    of_old = HERE < (1, 10) and situation.site.endswith("of all modules")
    if fitted(situation, HERE) == situation and not of_old:
        assert finding(situation) is None


ONLY_OF_PARTNERS = dict(
    zip(
        OF_PARTNERS,
        (
            Situation("forward_pre of net[0]", "forward of all modules", trouble=GOING),
            Situation("output", "forward_pre of net[0]", trouble=GOING),
            Situation("parameter", "post-accumulate of parameter", trouble=GOING),
        ),
    )
)
"""Faults, each with a situation that shows it."""


@pytest.mark.parametrize("fault", ONLY_OF_PARTNERS, ids=named)
def test_a_fault_of_a_removed_partner_is_caught(fault: Fault) -> None:
    if not fault.offered:
        pytest.skip("this torch lacks what the fault is about")
    situation = ONLY_OF_PARTNERS[fault]
    with fault.patch():
        assert finding(situation) is not None
        for trouble in ("", "removes itself", "removes another", "another removes it", "registers another"):
            assert finding(replace(situation, trouble=trouble)) is None
    assert finding(situation) is None


def test_what_removes_its_partner_has_one_wherever_it_is_drawn() -> None:
    chosen = (("trouble", GOING), ("host", "replica"))
    assert [dict(way)["partner"] for way in ways(chosen)] == [*PARTNERS]
    assert not why_none(chosen)
    assert why_none((("partner", ""), *chosen[:1])) == "there is no partner to remove"
    assert not any(map(why_not, packed([chosen, (("lane", "x"), *chosen)])))
    late = Situation("input", "post-accumulate of parameter", trouble=GOING)
    assert fitted(late, (2, 0)) == Situation("input")


WHY_NOT = {
    Situation("full_backward of net", "parameter", trouble=GOING): "which of two hooks in a backward comes first",
    Situation("all gradients", "input", trouble=GOING): "which of two hooks in a backward comes first",
    Situation("input", "forward with kwargs", trouble=GOING): "a hook that goes in a call may lose its keyword",
    Situation("input", "pack", trouble=GOING): "a context is closed where it was opened",
    Situation("input", "parameter"): "",
    Situation("full_backward of net", "input", trouble=GOING): "",
    Situation("full_backward of all modules", "parameter", trouble=GOING): "",
    Situation("forward with kwargs", "input", trouble=GOING): "",
}


@pytest.mark.parametrize("situation", WHY_NOT, ids=lambda situation: situation.name)
def test_a_partner_is_removed_where_it_is_known_when_that_is(situation: Situation) -> None:
    why, start = why_not(situation), WHY_NOT[situation]
    assert why.startswith(start)
    assert bool(why) is bool(start)
