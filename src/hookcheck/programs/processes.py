"""How do programs run torch in several processes? In a new one; or in a process group of one, or of two, over gloo."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from unittest.mock import patch

from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check, NotRun

Result = TypeVar("Result")

SECONDS = 90
"""How long a process waits for another one: a step took 52 seconds beside fourteen busy processes on two cores."""

KEPT: deque[Any] = deque(maxlen=64)
"""Groups that are destroyed. One that goes waits for its threads while it holds the GIL, which they may wait for: it
stays until so many others have come, and its threads have long let go of all tensors."""


@contextmanager
def process_group(check: Check, rank: int = 0, size: int = 1, store: Any = None) -> Iterator[None]:
    """Makes this process one of ``size`` that meet at a store and talk by gloo; alone it needs no store.

    Raises:
        NotRun: this is no run on the CPU, this torch has no gloo, or the process is one of several of a group already.
    """
    dist: Any = torch.distributed
    if check.device != "cpu":
        raise NotRun("it is about processes on the CPU")
    if not dist.is_available() or not getattr(dist, "is_gloo_available", lambda: True)():
        raise NotRun("this torch is built without torch.distributed or without gloo")
    if dist.is_initialized():
        if dist.get_world_size() > 1:
            raise NotRun("this process belongs to a process group already")
        _destroy()  # a network in DistributedDataParallel has left the group of one that it was in
    waits = {} if store is None else {"timeout": timedelta(seconds=SECONDS)}
    dist.init_process_group("gloo", rank=rank, world_size=size, store=store or dist.HashStore(), **waits)
    try:
        yield
    finally:
        _destroy()


@contextmanager
def groups_closed() -> Iterator[None]:
    """Takes this process out of a group that it is in, and on leaving, of one that it came into meanwhile. One that is
    destroyed meanwhile is kept, too (see `KEPT`). What then still runs in DistributedDataParallel is forgotten."""
    if _in_a_group():
        _destroy()
    if not torch.distributed.is_available():
        yield
        return
    keeping = partial(_keep, torch.distributed.destroy_process_group)
    running = patch("torch.nn.parallel.DistributedDataParallel._active_ddp_module", None, create=True)
    with group_left(), patch("torch.distributed.destroy_process_group", keeping), running:
        yield


def _keep(destroy: Callable[..., None], *args: Any, **options: Any) -> None:
    """Destroys a group as torch does, and keeps the one that this process is in."""
    if _in_a_group():
        KEPT.append(torch.distributed.distributed_c10d._get_default_group())
    destroy(*args, **options)


@contextmanager
def group_left() -> Iterator[None]:
    """On leaving, takes this process out of a group that it came into meanwhile, and puts back what is called for an
    exception that nothing catches: torch names the rank there."""
    before, uncaught = _in_a_group(), sys.excepthook
    try:
        yield
    finally:
        if _in_a_group() and not before:
            _destroy()
            sys.excepthook = uncaught


def _in_a_group() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def _destroy() -> None:
    """Takes this process out of its group, which is kept (see `KEPT`)."""
    _keep(torch.distributed.destroy_process_group)


def anew(act: Callable[[Any], Result], value: Any) -> Result:
    """What ``act`` gives of ``value`` in a new process, which imports torch anew; pickle must find ``act``."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply_async(act, (value,)).get(2 * SECONDS)


def of_two(check: Check, act: Callable[[int], Result]) -> Result:
    """What ``act`` gives in the first of two processes of a group, which both call it with their rank.

    A fork has none of the threads that torch's state speaks of: on torch 2.15 one in thirty died in its backward. So a
    program that asks for it runs alone, and before it has run anything of torch. Pickle must find ``act``, a function
    of a module, for systems without forks.

    Raises:
        NotRun: as `process_group` does.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        other = context.Process(target=_second, args=(act, store), daemon=True)
        other.start()
        try:
            return _one(check, act, store, 0)
        finally:
            other.kill()
            other.join()


def _one(check: Check, act: Callable[[int], Result], store: str, rank: int) -> Result:
    distributed: Any = torch.distributed
    with process_group(check, rank, 2, distributed.FileStore(store, 2)):
        return act(rank)


def _second(act: Callable[[int], Any], store: str) -> None:
    """What the second process does until the first one has ended; the watchdog ends it whatever it waits for.

    That is late: it would also end a process whose first one is only slow, which then had its connection cut.
    """
    faulthandler.dump_traceback_later(2 * SECONDS, exit=True)

    def stay(rank: int) -> None:
        act(rank)
        first = multiprocessing.parent_process()
        assert first is not None
        first.join()  # its going would cut off what the first process has not read yet; and it does not stay behind

    _one(Check(), stay, store, 1)
