"""Does the garbage collector run again after it stood still?"""

from __future__ import annotations

import gc

import pytest

from hookcheck.collector import paused


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


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
