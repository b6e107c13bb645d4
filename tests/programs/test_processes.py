"""Two processes of one group: the one that is done first must not cut the other off, and none outlives the other.

A group that this process came into is left again, and nothing of it stays.
"""

from __future__ import annotations

import multiprocessing
import sys
import time

import torch

from hookcheck.programs.check import Check
from hookcheck.programs.processes import KEPT, group_left, groups_closed, of_two, process_group


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


def test_what_is_called_for_an_exception_is_put_back_with_the_group() -> None:
    uncaught = sys.excepthook
    with groups_closed(), group_left():
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    assert not torch.distributed.is_initialized()
    assert sys.excepthook is uncaught


def test_a_group_that_is_destroyed_meanwhile_is_kept() -> None:
    with groups_closed():
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
        group = torch.distributed.distributed_c10d._get_default_group()
        torch.distributed.destroy_process_group()
    assert KEPT[-1] is group


def test_a_group_that_was_there_stays() -> None:
    with groups_closed(), process_group(Check()):
        with group_left():
            assert torch.distributed.is_initialized()
        assert torch.distributed.is_initialized()
    assert not torch.distributed.is_initialized()


def test_what_is_taken_for_running_is_forgotten() -> None:
    kind = torch.nn.parallel.DistributedDataParallel
    with groups_closed():
        kind._active_ddp_module = Check()
    assert kind._active_ddp_module is None
