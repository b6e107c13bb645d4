"""Sequences of acts on all sites: what is possible, what is reached, and planted faults that are seen and shortened."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain

import pytest
import torch
from faults.engine import Fault, release
from faults.programs.sequences import FAULTS

from hookcheck.programs.situations.acts import (
    BODY,
    RAISING,
    Alter,
    Enter,
    Leave,
    Register,
    Remove,
    Situation,
    Trigger,
    Trouble,
)
from hookcheck.programs.situations.axes import CONTEXTS, MODES, OTHER_CONTEXTS
from hookcheck.programs.situations.chains import by_fact
from hookcheck.programs.situations.model import expected
from hookcheck.programs.situations.script import lines
from hookcheck.programs.situations.sequences import (
    BY_HAND,
    CHANGES,
    COPIES,
    NEWEST,
    SEEDS,
    deviation,
    drawn,
    held,
    possible,
    reached,
    shortest,
)
from hookcheck.programs.situations.sites import SITES

HERE = release(torch.__version__)
ALWAYS = "always called forward of net"
COPY = Alter("deepcopy with handles")


def possible_here(acts: tuple[object, ...]) -> bool:
    """Whether nothing of ``acts`` is left out."""
    return tuple(possible(acts, NEWEST)) == acts  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_hooks_on_every_site_are_called_and_all_is_done() -> None:
    sequences = held(NEWEST)
    called, done = set(), set()
    for acts in sequences:
        sites = {act.hook: act.site for act in acts if isinstance(act, Register)}
        called |= {sites.get(entry[0]) for _, log in expected(acts) for entry in log}
        done |= {type(act) for act in acts} | {act.what for act in acts if isinstance(act, (Alter, Trigger, Trouble))}
    assert {*SITES} - called == set()
    assert {Register, Remove, Leave, Trouble, Enter} <= done
    assert {*RAISING} - done == set()
    assert {*CHANGES, *COPIES, "removes itself", "removes another", "registers another"} - done == set()


def test_what_is_drawn_is_possible_and_the_same_for_the_same_seed() -> None:
    assert len({*SEEDS}) == len(SEEDS) == len(held(NEWEST)) - len(BY_HAND)
    assert all(tuple(possible(acts, NEWEST)) == acts for acts in BY_HAND)
    for seed in SEEDS[:20]:
        acts = drawn(seed)
        assert acts == drawn(seed) == tuple(possible(acts, NEWEST))
        older = tuple(possible(acts, (1, 8)))
        assert older == tuple(possible(older, (1, 8)))
        assert all(CONTEXTS[act.outer].since <= (1, 8) for act in older if isinstance(act, Enter))
        assert all(SITES[act.site].since <= (1, 8) for act in older if isinstance(act, Register))


def test_what_meets_in_a_sequence() -> None:
    acts = (
        Register("h00", "input"),
        Register("h01", "parameter"),
        Remove("h00", "with"),
        Alter("eval"),
        Trigger("save"),
    )
    assert reached(acts) == {("input", "with"), ("parameter", "eval"), ("parameter", "save")}
    assert ("input", "parameter") in reached((*acts[:2], Trigger("save")))
    elsewhere = {("input", "removes elsewhere"), ("forward of net", "removed from elsewhere")}
    once = (*acts[:1], Register("h01", "forward of net"), Trouble("removes another", "h00", "h01"))
    assert not elsewhere & reached((*once, Trigger("forward"), Trigger("backward")))
    assert elsewhere <= reached((*once, Trigger("forward"), Trigger("backward"), Trigger("forward")))
    assert len(frozenset[object]().union(*map(reached, held(NEWEST)))) > 3000


@pytest.mark.parametrize(
    "acts",
    [
        (Register("h00", "output"),),
        (Trigger("backward"),),
        (Trigger("forward"), Trigger("step"), Trigger("backward")),
        (Trigger("forward"), Alter("freeze"), Register("h00", "parameter")),
        (Trigger("forward"), Alter("freeze"), Trigger("forward")),
        (Trigger("forward"), Alter("freeze"), Trigger("backward", "grad")),
        (Register("h00", "forward of net"), Register("h00", "forward of net")),
        (Register("h00", "backward of net"), Register("h01", "full_backward of net[0]")),
        (Register("h00", "pack"), Register("h01", "unpack")),
        (Trigger("forward"), Alter("assign"), Trigger("backward", "grad")),
        (Trigger("forward"), Alter("drop"), Trigger("backward", "inputs")),
        (Trigger("forward"), Alter("drop"), Register("h00", "parameter")),
        (Register("h00", "parameter"), Trigger("forward"), Alter("drop")),
        (Register("h00", "module registration"), Trigger("forward"), Alter("drop")),
        (Trouble("the body raises"), Alter("another call")),
        (Trouble("the body raises"), Trigger("forward"), Trigger("backward")),
        (Trouble("the closure raises"), Trigger("save optimizer")),
        (Register("h00", "input"), Trouble("raises", "h00"), Trouble("interrupts", "h00")),
        (Register("h00", "input"), Register("h01", "input"), Trouble("raises", "h00"), Trouble("raises", "h01")),
        (Register("h00", "always called forward of net"), Trouble("the body interrupts")),
        (Register("h00", "forward of net"), Trouble("interrupts", "h00"), Register("h01", ALWAYS)),
        (Register("h00", "backward of net"), Register("h01", "backward of net[0]"), Trouble("raises", "h00")),
        (Register("h00", "pack"), Enter("save_on_cpu")),
        (Enter("save_on_cpu"), Register("h00", "pack")),
        (Enter("enable_grad", "enable_grad"),),
        (Register("h00", "optimizer's step_pre"), Trouble("removes itself", "h00", "h00")),
        (Remove("h00"),),
        (Register("h00", "input"), COPY),
        (Register("h00", "forward of net"), Register("h01", "parameter"), COPY),
        (Register("h00", "backward of net"), Trigger("forward"), COPY),
        (Register("h00", "forward of net"), Alter("drop"), COPY),
        (Register("h00", "forward of net"), Trigger("forward"), COPY, Trigger("backward", "grad")),
    ],
)
def test_what_is_not_possible_is_left_out(acts: tuple[object, ...]) -> None:
    assert tuple(possible(acts, NEWEST)) == acts[:-1]  # type: ignore[arg-type]


def test_what_a_hook_raises_comes_out_and_is_over() -> None:
    acts = (
        Register("h00", "full_backward of net[0]"),
        Register("h01", "full_backward of net[0]"),
        Register("h02", "input"),
        Trouble("raises", "h00"),
        Enter("detect_anomaly", "enable_grad"),
        Trigger("forward"),
        Trigger("backward"),
        Trigger("forward"),
        Alter("drop"),
        Trigger("backward"),
        Trigger("forward"),
        Trigger("backward"),
        Leave(),
    )
    both = [(hook, "net[0]", (6.0,), (3.0,)) for hook in ("h00", "h01")]
    logs = [log for _, log in expected(acts)]
    assert logs[6] == [("raised", "Stop"), both[0]]
    assert logs[9] == [*both, ("h02", 6.0)]
    assert logs[11] == [("h02", 6.0)]
    assert possible_here(acts)
    assert deviation(acts) is None


def test_a_body_that_raises_cuts_a_call_short() -> None:
    acts = (
        Register("h00", ALWAYS),
        Register("h01", "forward of all modules"),
        Trouble("the body raises"),
        Trigger("forward"),
        Trigger("forward"),
        Leave(),
    )
    logs = [log for _, log in expected(acts)]
    assert logs[3] == [("raised", "Stop"), ("h01", "net[0]", (5.0,), 10.0), ("h00", "net", (5.0,), None)]
    assert possible_here(acts)
    if SITES[ALWAYS].since <= HERE:
        assert deviation(acts) is None


def test_a_frozen_parameter_accumulates_nothing() -> None:
    acts = (
        Register("h00", "parameter"),
        Register("h01", "accumulating Node"),
        Trigger("forward"),
        Alter("freeze"),
        Trigger("backward"),
        Alter("thaw"),
        Leave(),
    )
    assert [log for _, log in expected(acts)][4] == [("h00", 15.0), ("h01", (15.0,))]
    assert deviation(acts) is None


@pytest.mark.parametrize("copy", COPIES)
def test_handles_go_with_a_copy_and_the_graph_stays_with_the_old_net(copy: str) -> None:
    acts = (
        Register("h00", "full_backward of net[0]"),
        Register("h01", "forward of net"),
        Trigger("forward"),
        Alter(copy),
        Remove("h01"),
        Trigger("backward"),
        Trigger("forward"),
        Remove("h00"),
        Trigger("backward"),
        Trigger("forward"),
        Trigger("backward"),
        Leave(),
    )
    full = ("h00", "net[0]", (6.0,), (3.0,))
    logs = [log for _, log in expected(acts)]
    assert [logs[2], logs[5], logs[6], logs[8], logs[10]] == [[("h01", "net", (5.0,), 30.0)], [full], [], [full], []]
    assert possible_here(acts)
    assert deviation(acts) is None


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_planted_fault_is_seen_and_shortened(fault: Fault) -> None:
    if not fault.offered:
        pytest.skip("this torch lacks what the fault is about")
    # that of hooks on several gradients in inference mode is one that torch has
    each = chain.from_iterable(each for name, each in by_fact(HERE).items() if "inference_mode: all grad" not in name)
    with fault.patch():
        counterexample = next(filter(deviation, each))
        fewer = shortest(counterexample, HERE)
        assert deviation(fewer)
    assert len(fewer) <= 9
    assert deviation(fewer) is None


def test_hooks_on_every_site_come_and_go_within_each_context() -> None:
    for name, context in {**CONTEXTS, **OTHER_CONTEXTS}.items():
        if not name:
            continue
        coming = by_fact(NEWEST)[f"registered and removed within {name}"]
        sites = {act.site for acts in coming for act in acts if isinstance(act, Register)}
        assert {*SITES} - sites == ({"pack", "unpack"} if "save" in name else set())
        for acts in coming:
            run = [*lines(Situation("input"), acts)][1:]
            within = [part for act, part in zip(acts, run) if isinstance(act, (Register, Remove))]
            assert within
            assert all(part[0] == f"with {context.expression}:" for part in within)


def test_hooks_on_every_site_come_and_go_without_gradients_but_those_on_what_takes_a_graph() -> None:
    for name, mode in MODES.items():
        facts = {
            fact: each
            for fact, each in by_fact(NEWEST).items()
            if fact.startswith(f"registered and removed under {name}")
        }
        each = [*chain.from_iterable(facts.values())]
        sites = {act.site for acts in each for act in acts if isinstance(act, Register)}
        assert {*SITES} - sites == {"accumulating Node", "pre-hook of accumulating Node"}
        for acts in each:
            for act, part in zip(acts, [*lines(Situation("input"), acts)][1:]):
                comes_or_goes = isinstance(act, (Register, Remove))
                assert (part[:1] == [f"with {mode.expression}:"]) is comes_or_goes


def test_a_body_registers_a_hook_on_every_site_that_outlasts_the_call() -> None:
    each = by_fact(NEWEST)["registered by a body"]
    sites = {act.site for acts in each for act in acts if isinstance(act, Register)}
    assert {*SITES} - sites == {name for name, site in SITES.items() if site.graph} | {"pack", "unpack"}
    assert all(Trouble(BODY, "h00", "h01") in acts for acts in each)


@pytest.mark.parametrize(("site", "at_once"), [("forward of net", True), ("forward_pre of net", False)])
def test_a_hook_that_a_body_registers_is_called_when_its_turn_comes(site: str, at_once: bool) -> None:
    acts = (Register("h00", site), Trouble(BODY, "h00", "h01"), Trigger("forward"), Trigger("forward"))
    first, second = ["h01" in (entry[0] for entry in log) for _, log in expected(acts)][2:]
    assert (first, second) == (at_once, True)
