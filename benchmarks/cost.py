"""What does hookcheck cost beside torch? Measured over a part of the corpus, in one process and on one thread.

``ratio`` is the time of everything that hookcheck does for a topology (values, oracle, the run without hooks, the runs
with its share of the hook kinds, judging, writing the part file) over the time of bare torch: build, forward and
backward of the same topologies without hooks, as often as hookcheck runs them. ``ratio_hooked`` holds the same against
torch with empty hooks of the same kinds on every module, so what is left is hookcheck's own. ``import_seconds`` is what
importing hookcheck costs beyond importing torch.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

import torch

import hookcheck.clauses
from hookcheck.cli.output import watched
from hookcheck.collector import settle
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.ledger import applying, load
from hookcheck.hooks.kinds import KINDS, HookKind
from hookcheck.oracle.trace import writes
from hookcheck.probe.compiling import compiling, marking
from hookcheck.probe.registering import put
from hookcheck.probe.run import unavailable, unsafe
from hookcheck.probe.state import preserved
from hookcheck.run.examiner import Examiner
from hookcheck.run.session import Session
from hookcheck.suite import conformance_folder
from hookcheck.topology.build import Built, _compiled, build
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read, shares
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Topology
from hookcheck.topology.values import values

IMPORTED = (
    "import time, torch, pytest; t = time.process_time(); import hookcheck.run.plugin; print(time.process_time() - t)"
)


def bare(topologies: tuple[Topology, ...], hooked: bool) -> None:
    """Builds and runs every topology once without hooks and once with each of its hook kinds, the latter with empty
    hooks or none."""
    for topology in topologies:
        for kind in (None, *(kind for kind in SHARES.get(topology, KINDS) if not unsafe(kind, writes(topology)))):
            with preserved() if hooked else nullcontext(), compiling(topology), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                built = build(topology, NUMBERS[topology])
                hooks = _hooked(KINDS[kind], built, topology) if hooked and kind else nullcontext()
                with suppress(Exception), hooks:  # some raise, and with hooks alone; hookcheck observes just that
                    built.run()


def _hooked(hook: HookKind, built: Built, topology: Topology) -> AbstractContextManager[None]:
    """While it is open, an empty hook is wherever hookcheck puts a recording one, and not for torch.compile to trace
    either: from a hook on nested tensors that it traces 2.13 ends the process."""
    return put(hook, built, lambda *_: _same if hook.scope == "run" else _empty, marking(topology))


def _same(value: object) -> object:
    """What every hook on saved tensors does here."""
    return value


def _empty(*_: object) -> None:
    """What every other hook does here."""


def hookcheck(family: str, topologies: tuple[Topology, ...]) -> None:
    """All that hookcheck does for these topologies."""
    with tempfile.TemporaryDirectory() as folder:
        clauses = tuple(CLAUSES.values())
        corpus = {family: topologies}
        here = Examiner(clauses, {"cpu": LEDGER})
        kinds = {family: {identify(topology): SHARES[topology] for topology in topologies}}
        session = Session(tuple(KINDS), clauses, here.ledgers, corpus, 0, Path(folder), "main", here, shares=kinds)
        session.replayed(family, "cpu")


def best(tasks: Iterable[Callable[[], None]], repeats: int) -> list[float]:
    """The shortest of several runs of each task, in seconds of this process; in turns, so that a machine that is slow
    for a while is so for all. What is long enough (`ENOUGH`) is not repeated."""
    rounds: list[list[float]] = []
    while len(rounds) < repeats and sum(map(sum, rounds)) < ENOUGH:
        rounds.append([seconds(task) for task in tasks])
    return [min(each) for each in zip(*rounds)]


def seconds(task: Callable[[], None]) -> float:
    """How long a task takes this process."""
    _compiled.cache_clear()  # each task compiles the source of each topology once, as a run does
    settle()  # what others have left is not for this one to search through
    start = time.process_time()
    task()
    return time.process_time() - start


def importing() -> float:
    """Seconds of importing hookcheck beyond torch and pytest, its modules compiled as an installation leaves them."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-c", IMPORTED]
        run = partial(subprocess.run, command, env=environment, capture_output=True, text=True, check=True)
        run()
        return min(float(run().stdout) for _ in range(3))


ENOUGH = 5.0
"""Seconds of a family beside which what else the machine does hardly counts."""

NUMBERS: dict[Topology, dict[str, object]] = {}
SHARES: dict[Topology, tuple[str, ...]] = {}
"""The hook kinds that a run has of each topology."""

LEDGER = applying(load(), torch.__version__, "cpu")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", choices=["pretty", "json"], default="pretty")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument(
        "--every", type=int, default=30, help="measure every so many topologies of a family (30: a minute and a half)"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("torch").setLevel(logging.ERROR)  # torch.compile tells of tensors that it cannot trace
    rows, totals = [], [0.0, 0.0, 0.0]
    folder = conformance_folder() / "corpus"
    corpus = {family: read(folder, family)[:: arguments.every] for family in FAMILIES}
    for family, members in corpus.items():
        kinds = shares(folder, family)
        SHARES.update({topology: kinds[identify(topology)] for topology in members})
    for family, some in (("single-node", 5), ("context", None), ("compiled", 1)):  # what is done once in a process
        hookcheck(family, corpus[family][:some])
    for family, members in watched([*corpus.items()], "families"):
        topologies = tuple(t for t in members if not any(unavailable(t, kind) for kind in KINDS))
        NUMBERS.update({t: values(t) for t in topologies})
        tasks: list[Callable[[], None]] = [
            lambda t=topologies: bare(t, hooked=False),  # type: ignore[misc]
            lambda t=topologies: bare(t, hooked=True),  # type: ignore[misc]
            lambda f=family, t=topologies: hookcheck(f, t),  # type: ignore[misc]
        ]
        torch_only, torch_hooked, everything = best(tasks, arguments.repeats)
        totals = [a + b for a, b in zip(totals, (torch_only, torch_hooked, everything))]
        rows.append(_row(family, torch_only, torch_hooked, everything))
        if arguments.format == "pretty":
            _say(rows[-1])
    result = {"torch": torch.__version__, **_row("all", *totals), "import_seconds": round(importing(), 3)}
    if arguments.format == "json":
        print(json.dumps({**result, "families": rows}))
        return
    _say(result)
    print(f"importing hookcheck: {result['import_seconds']} s beyond torch")


def _say(row: dict[str, object]) -> None:
    """At once: the whole takes a minute or more."""
    print(
        f"{row['family']:20} ratio {row['ratio']:5.2f}, to torch with empty hooks {row['ratio_hooked']:5.2f}",
        flush=True,
    )


def _row(family: str, torch_only: float, torch_hooked: float, everything: float) -> dict[str, object]:
    return {
        "family": family,
        "ratio": round(everything / torch_only, 3),
        "ratio_hooked": round(everything / torch_hooked, 3),
        "bare_seconds": round(torch_only, 4),
        "hooked_seconds": round(torch_hooked, 4),
        "hookcheck_seconds": round(everything, 4),
    }


if __name__ == "__main__":
    main()
