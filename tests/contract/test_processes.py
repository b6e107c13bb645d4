"""Two processes of one group: the one that is done first must not cut the other off."""

from __future__ import annotations

import subprocess
import sys

# Forked in a process of its own: one that has threads, as those of tests have, may hang in its fork.
PROGRAM = """
import multiprocessing, time
import torch
from hookcheck.contract.check import Check
from hookcheck.contract.processes import of_two

def act(rank):
    if rank == 1:
        return torch.distributed.send(torch.ones(2), 0)
    torch.distributed.recv(torch.zeros(2), 1)
    time.sleep(1)
    return len(multiprocessing.active_children())

print(of_two(Check(), act, lambda: None), len(multiprocessing.active_children()))
"""


def test_the_second_process_stays_until_the_first_is_done() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["1", "0"]
