"""Two processes of one group: the one that is done first must not cut the other off, and none outlives the other."""

from __future__ import annotations

import multiprocessing
import time

import torch

from hookcheck.programs.check import Check
from hookcheck.programs.processes import of_two


def _hand_over(rank: int) -> int:
    """The second process sends and is done; the first waits long enough to see whether it is still there."""
    if rank == 1:
        torch.distributed.send(torch.ones(2), 0)
        return 0
    torch.distributed.recv(torch.zeros(2), 1)
    time.sleep(1)
    return len(multiprocessing.active_children())


def test_the_second_process_stays_until_the_first_is_done() -> None:
    assert of_two(Check(), _hand_over) == 1
    assert not multiprocessing.active_children()
