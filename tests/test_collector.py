"""Does the garbage collector run again after it stood still?"""

from __future__ import annotations

import gc

import pytest

from hookcheck.collector import paused


def test_it_stands_still_inside_and_runs_afterwards_whatever_happens() -> None:
    with pytest.raises(ZeroDivisionError), paused():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()


def test_one_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
