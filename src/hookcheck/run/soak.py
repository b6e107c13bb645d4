"""How does a run go on until it is stopped? Round after round of new topologies of every family, with progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from hookcheck.run.session import Session, Unexplained

ROUND = 100
"""How many new topologies of a family one round draws: few enough that Hypothesis forgets them soon."""

EVERY = 10.0
"""Seconds between two lines of progress."""

KERNELS = 64
"""How many compiled kernels oneDNN keeps: with its own 1,024, new shapes would add to them for an hour."""


@dataclass(frozen=True)
class Soak:
    """One of ``shares`` equal parts of a soak on ``device``, each with rounds, and so seeds, of its own.

    ``limit`` is the number of new topologies of all shares together after which it ends; 0 means never.
    """

    session: Session
    families: tuple[str, ...]
    device: str
    share: int
    shares: int
    limit: int

    def run(self, say: Callable[[str], None]) -> int:
        """Explores until the limit and gives the number of new topologies; tells ``say`` how far it is.

        Raises:
            Unexplained: for the first topology that deviates in a way that the ledger does not explain. ``say`` is told
                at once, since the other shares may go on for hours before pytest reports it.
        """
        os.environ.setdefault("DNNL_PRIMITIVE_CACHE_CAPACITY", str(KERNELS))  # read when it compiles the first one
        begun = said_at = time.monotonic()
        done = 0
        for number in count(self.share, self.shares):
            for family in self.families:
                try:
                    done += self.session.explore(family, self.device, ROUND, round=number + 1)
                except Unexplained as error:
                    say(f"{self._name} has ended with a find.\n{error}")
                    raise
                now = time.monotonic()
                over = bool(self.limit) and done * self.shares >= self.limit
                if over or now - said_at > EVERY:
                    said_at = now
                    say(self._progress(done, number, now - begun))
                if over:
                    return done
        raise AssertionError("counting never ends")

    def _progress(self, done: int, number: int, seconds: float) -> str:
        of = f" of {self.limit // self.shares:,}" if self.limit else ""
        return (
            f"{self._name}: {done:,}{of} new topologies, round {number + 1}, "
            f"{done / seconds:.0f} a second, {self.session.peak_memory():.0f} MiB at most"
        )

    @property
    def _name(self) -> str:
        return f"soak {self.share + 1}/{self.shares}, {self.device}"
