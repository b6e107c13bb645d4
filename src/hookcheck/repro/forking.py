"""What a script has in the place of what programs run several processes by: the same in fewer lines, for one run."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any, TypeVar

from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check, NotRun

Result = TypeVar("Result")


def of_two(check: Check, act: Callable[[int], Result]) -> Result:
    """What ``act`` gives in the first of two processes of a group, as `hookcheck.programs.processes.of_two` has it.

    Raises:
        NotRun: this torch has no gloo, or this system no forks.
    """
    dist: Any = torch.distributed
    if not dist.is_available() or not dist.is_gloo_available() or not hasattr(os, "fork"):
        raise NotRun("it needs two processes that talk by gloo")
    folder, other = tempfile.mkdtemp(), os.fork()
    rank, store = int(other == 0), dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", rank=rank, world_size=2, store=store)
    result = act(rank)
    if rank:
        time.sleep(60)  # the first process, which may still read what this one has, ends it
    dist.destroy_process_group()
    os.kill(other, 9)
    return result
