"""How do programs run torch in several processes? In a process group of one, or of two that are forked, over gloo."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from hookcheck.contract.check import Check, NotRun
from hookcheck.probe.lazy import torch

Result = TypeVar("Result")

SECONDS = 30
"""How long a process waits for another one."""

KEPT: list[Any] = []
"""Groups that are destroyed. One that goes waits for its threads while it holds the GIL, which they may wait for."""


@contextmanager
def process_group(check: Check, rank: int = 0, size: int = 1, store: Any = None) -> Iterator[None]:
    """Makes this process one of ``size`` that meet at a store and talk by gloo; alone it needs no store.

    Raises:
        NotRun: this is no run on the CPU, this torch has no gloo, or the process belongs to a group already.
    """
    distributed: Any = torch.distributed
    if check.device != "cpu":
        raise NotRun("it is about processes on the CPU")
    if not distributed.is_available() or not getattr(distributed, "is_gloo_available", lambda: True)():
        raise NotRun("this torch is built without torch.distributed or without gloo")
    if distributed.is_initialized():
        raise NotRun("this process belongs to a process group already")
    store, timeout = store or distributed.HashStore(), timedelta(seconds=SECONDS)
    distributed.init_process_group("gloo", rank=rank, world_size=size, store=store, timeout=timeout)
    KEPT.append(distributed.distributed_c10d._get_default_group())
    try:
        yield
    finally:
        distributed.destroy_process_group()


def of_two(check: Check, act: Callable[[int], Result], warm_up: Callable[[], Any]) -> Result:
    """What ``act`` gives in the first of two processes of a group, which both call it with their rank.

    The second one is forked, so that it need not import torch again: a program that asks for it runs alone. ``warm_up``
    imports, in a group of one, what both would import.

    Raises:
        NotRun: as `process_group` does; and where the system has no fork.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise NotRun("this system has no fork, which makes a process that need not import torch again")
    with process_group(check):
        warm_up()
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        other = multiprocessing.get_context("fork").Process(target=_second, args=(check, act, store), daemon=True)
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


def _second(check: Check, act: Callable[[int], Any], store: str) -> None:
    """What the second process does until it is killed; the alarm ends it whatever it waits for."""
    signal.alarm(SECONDS + 5)

    def stay(rank: int) -> None:
        act(rank)
        signal.pause()  # its going would cut off what the first process has not read yet

    _one(check, stay, store, 1)
