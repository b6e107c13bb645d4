"""Does the garbage collector run again after it stood still?"""

from __future__ import annotations

import gc
import weakref

import pytest

from hookcheck.collector import eased, paused, paused_until_exit, settle


def test_it_stands_still_inside_and_runs_afterwards_whatever_happens() -> None:
    def fails() -> None:
        with paused():
            inside.append(gc.isenabled())
            raise ZeroDivisionError

    inside: list[bool] = []
    with pytest.raises(ZeroDivisionError):
        fails()
    assert inside == [False]
    assert gc.isenabled()


def test_what_is_there_at_the_end_is_left_alone_for_good() -> None:
    try:
        with paused_until_exit():
            assert not gc.isenabled()
            survivor: list[list[int]] = [[]]
        assert gc.isenabled()
        assert all(thing is not survivor for thing in gc.get_objects())
    finally:
        gc.unfreeze()


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_collections_are_rarer_inside_and_as_they_were_afterwards_whatever_happens() -> None:
    def fails() -> None:
        with eased():
            inside.append(gc.get_threshold())
            raise ZeroDivisionError

    inside: list[tuple[int, int, int]] = []
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError):
        fails()
    assert inside[0][0] > before[0]
    assert gc.get_threshold() == before


def test_what_is_there_is_collected_and_then_left_alone() -> None:
    class Loop:
        def __init__(self) -> None:
            self.me = self

    lost, survivor = weakref.ref(Loop()), Loop()
    try:
        settle()
        assert lost() is None
        assert all(thing is not survivor for thing in gc.get_objects())
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
    assert any(thing is survivor for thing in gc.get_objects())
