"""What does a program state on this torch? It is run in this process, and nothing of it is left there."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch

from hookcheck.contract.finding import Finding
from hookcheck.contract.site import PROCESS, RAISES, Site
from hookcheck.errors import is_the_machines
from hookcheck.probe.compiling import optimizers_preserved
from hookcheck.probe.cuda import settle
from hookcheck.probe.state import preserved
from hookcheck.programs.check import Check, Fact, NotOffered, NotRun, text_of
from hookcheck.programs.program import ENDS, WHOLE, Program


def facts_of(program: Program, device: str) -> list[Fact]:
    """Runs ``program`` in this process and gives what it states; an exception that it lets out is a fact as well.

    Raises:
        NotOffered: this torch lacks what the program is about.
        NotRun: this machine lacks what it needs.
    """
    check = Check(device)
    with preserved(), optimizers_preserved(), warnings.catch_warnings(), _on(device):
        warnings.simplefilter("ignore")
        _seed(device)
        try:
            program.judge(check)
        except (NotOffered, NotRun):
            raise
        except Exception as raised:
            if is_the_machines(raised):
                raise
            check.facts.append(Fact(WHOLE, Finding(Site(PROCESS), RAISES, ENDS, text_of(raised))))
    if not check.facts:
        raise AssertionError(f"program {program.id} states nothing")
    return check.facts


def _seed(device: str) -> None:
    """Has the program draw the same numbers each time."""
    if device == "cpu":  # the function for all devices formats the stack for each one that has not been used yet
        torch.default_generator.manual_seed(0)
    else:
        torch.manual_seed(0)


@contextmanager
def _on(device: str) -> Iterator[None]:
    """Has what a program makes be made on ``device``, and garbage collected when the device holds on to none of it."""
    if device == "cpu":
        yield
        return
    collect = gc.collect

    def collected(*generation: int) -> int:
        if not generation:  # torch collects the younger ones alone, amid a compilation
            settle()
        return collect(*generation)

    with torch.device(device), mock.patch.object(gc, "collect", collected):
        yield
