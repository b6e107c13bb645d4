"""How does the contract run under pytest? Each item is a cell, or the exploration of one family.

Under pytest-xdist all cells of one family and device go to one worker, which runs torch once for all of them. The
controlling process alone writes the record, draws the report and prints the summary.
"""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

try:  # before the imports below, which need it
    import torch
except ImportError as error:
    raise pytest.UsageError(
        f"hookcheck: torch cannot be imported ({error}); install the release that you want to test, for example "
        "`python -m pip install torch==2.13.0`"
    ) from None

from hookcheck.collector import paused, settle
from hookcheck.contract.clause import CLAUSES, UNSPECIFIED
from hookcheck.contract.ledger import Ledger, load
from hookcheck.contract.verdict import CRASHED, DEVIATES, TIMED_OUT, CaseResult
from hookcheck.distribution import check_distribution
from hookcheck.errors import HookcheckError
from hookcheck.probe.run import available_devices, check_torch
from hookcheck.programs.program import PROGRAM, Program
from hookcheck.record.model import Record, Torch
from hookcheck.record.writing import write
from hookcheck.report.counterexample import program_told, told
from hookcheck.run.failures import fold
from hookcheck.run.plan import (
    Request,
    corpora,
    discard_parts,
    from_controller,
    in_chapters,
    now,
    record,
    request,
    session,
    smoke,
    stands,
    to_workers,
)
from hookcheck.run.selection import selected
from hookcheck.run.session import Session, Unexplained
from hookcheck.run.soak import ROUND, Soak
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import identify
from hookcheck.topology.model import size

PROFILES = {"smoke": 5, "default": 125, "thorough": 2000, "soak": ROUND}
"""How many new topologies a family each Hypothesis profile explores; ``soak`` does so round after round."""

for _name, _examples in PROFILES.items():
    settings.register_profile(_name, max_examples=_examples)

REQUEST: pytest.StashKey[Request] = pytest.StashKey()
SESSION: pytest.StashKey[Session] = pytest.StashKey()
RECORDS: pytest.StashKey[list[tuple[Record, str]]] = pytest.StashKey()
IDLE: pytest.StashKey[list[str]] = pytest.StashKey()
OFFERED: pytest.StashKey[list[Cell]] = pytest.StashKey()
BASELINES: pytest.StashKey[tuple[tuple[Path, Record], ...]] = pytest.StashKey()

CELLS = ("network_cell", "program_cell")
"""What a test takes to be run once a cell: of clauses on networks, or of programs."""

SYSTEMS = "systems"
"""The chapter of the worked programs in ``conformance/systems/``, whose tests are no cells."""


@dataclass(frozen=True)
class Cell:
    """One cell of the contract as a pytest item: clause × family × hook kind on a device."""

    session: Session
    clause: str
    family: str
    kind: str
    device: str

    def check(self) -> None:
        """Judges the cell: fails on what the ledger does not explain and on entries that explain nothing; a deviation
        that the ledger knows is an expected failure, and a cell without verdict is a skip."""
        cell, results = self.session.cell(self.clause, self.family, self.kind, self.device)
        if CLAUSES[self.clause].rank == UNSPECIFIED:
            pytest.skip("unspecified: shown, never judged")
        if cell.verdict in (CRASHED, TIMED_OUT):
            pytest.fail(f"{cell.verdict}: {cell.reason}", pytrace=False)
        stale = self.session.ledgers[self.device].stale(results, self.clause, self.family, self.kind)
        if stale and any(result.outcome == "ran" for result in results):
            pytest.fail(
                f"the ledger calls this cell deviating ({stale[0].id}), and no topology shows it: "
                "narrow the entry, or remove it if the deviation is gone",
                pytrace=False,
            )
        if cell.unexplained:
            pytest.fail(self._told(results), pytrace=False)
        if cell.verdict == DEVIATES:
            known = {d.ledger for r in results for d in r.deviations if d.clause == self.clause and d.ledger}
            raise pytest.xfail.Exception(f"known: {', '.join(sorted(known))}", pytrace=False)
        if not cell.judged:
            pytest.skip(f"{cell.verdict}: {cell.reason}")

    def _told(self, results: Iterable[CaseResult]) -> str:
        """What the ledger does not explain: the smallest network that shows it, or the program with all its facts."""
        deviations = [(r.topology, d) for r in results for d in r.deviations]
        unknown = [(id, d) for id, d in deviations if d.clause == self.clause and d.ledger is None]
        clause = CLAUSES[self.clause]
        if isinstance(clause, Program):
            return program_told(clause, [d for _, d in unknown])
        known = {identify(topology): topology for topology in self.session.corpus[self.family]}
        topology, deviation = min(((known[id], d) for id, d in unknown), key=lambda item: size(item[0]))
        return told(topology, self.family, self.kind, deviation)


@dataclass(frozen=True)
class Exploration:
    """New topologies of one family on a device, as a pytest item."""

    session: Session
    family: str
    device: str
    examples: int

    def check(self) -> None:
        """Fails with the smallest new topology that deviates in a way that the ledger does not explain."""
        _held(lambda: self.session.explore(self.family, self.device, self.examples))


@dataclass(frozen=True)
class Endless:
    """One share of a soak, as a pytest item."""

    soak: Soak
    capture: Any

    @property
    def device(self) -> str:
        """The device that it runs on."""
        return self.soak.device

    def check(self) -> None:
        """Fails with the smallest new topology that deviates in a way that the ledger does not explain."""
        _held(lambda: self.soak.run(self._say))

    def _say(self, line: str) -> None:
        """Progress goes past pytest's capture to standard error, from workers too."""
        with self.capture.global_and_fixture_disabled():
            print(line, file=sys.stderr, flush=True)


def _held(explore: Callable[[], int]) -> None:
    """Fails with what ``explore`` finds, told once: within the ``except`` pytest would tell the cause as well."""
    try:
        explore()
        return
    except Unexplained as found:
        unexplained = str(found)
    pytest.fail(unexplained, pytrace=False)


SELECTING = {
    "family": "topology family",
    "kind": "hook kind",
    "clause": "clause id",
    "chapter": f"chapter of clauses, or {SYSTEMS}",
}
"""The options that select a part of the contract, with what each names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the options of the suite."""
    group = parser.getgroup("hookcheck", "hookcheck: conformance of PyTorch's hooks")
    group.addoption("--device", default="cpu", help="cpu (default), cuda or all; one that is not there is not run")
    for name, what in SELECTING.items():
        group.addoption(f"--{name}", action="append", default=[], help=f"only this {what}; may be given several times")
    group.addoption("--topologies", type=int, default=0, help="profile soak: end after so many new ones (0: never)")
    group.addoption(
        "--baseline", action="append", default=[], metavar="RECORD",
        help="compare with this record at the end (a file, or a version of torch); may be given several times; "
        "a whole run is compared with the last of its torch, and that of the release before, without being asked",
    )  # fmt: skip
    group.addoption("--reports", default="reports", help="folder for records and report (default: reports)")


def pytest_configure(config: pytest.Config) -> None:
    """Checks the request before anything runs, and makes the plan."""
    try:
        settings.load_profile(_profile(config))
        check_distribution()
        check_torch()
        config.stash[REQUEST] = _request(config)
        if not _is_worker(config):
            config.stash[BASELINES] = _baselines(config)
            _writable(Path(config.stash[REQUEST].reports))
            load()
            corpora(config.stash[REQUEST])
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        config.stash[SESSION] = session(config.stash[REQUEST], worker, str(torch.__version__))
    except HookcheckError as error:
        raise pytest.UsageError(f"hookcheck: {error}") from None
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hands the plan to a worker of pytest-xdist."""
    node.workerinput["hookcheck"] = to_workers(node.config.stash[REQUEST])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Sends what shares runs of torch to one worker, whatever ``--dist`` says."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFamily(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

    return ByFamily(config, log)


def scope(nodeid: str) -> str:
    """What an item shares runs of torch with: family and device for a cell, of programs the chapter as well, for any
    other item itself."""
    parts = nodeid.rpartition("[")[2].rstrip("]").split(":")
    if len(parts) != 4:
        return nodeid
    _, family, kind, device = parts
    return f"{family}:{kind}:{device}" if family == PROGRAM else f"{family}:{device}"


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Every setting of the run, so that a typo shows."""
    asked = config.stash[REQUEST]
    return [
        f"hookcheck: torch {torch.__version__}, device {', '.join(asked.devices)}, profile {asked.profile} "
        f"({asked.examples} new topologies a family, seed {asked.seed}), reports in {asked.reports}",
        f"hookcheck: families {', '.join(asked.families)}; hook kinds {', '.join(asked.kinds)}; "
        f"{len(asked.clauses)} clauses",
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item a cell for tests that take ``network_cell`` or ``program_cell``, one a family for ``exploration``."""
    if not {*CELLS, "exploration"} & set(metafunc.fixturenames):
        return
    share = metafunc.config.stash[SESSION]
    asked = metafunc.config.stash[REQUEST]
    cell = next((name for name in CELLS if name in metafunc.fixturenames), None)
    if cell is not None:
        of_programs = cell == CELLS[1]
        found = [
            Cell(share, clause.id, family, kind, device)
            for device in asked.devices
            for family in asked.families
            if (family == PROGRAM) is of_programs
            for clause in share.clauses
            if isinstance(clause, Program) is of_programs
            for kind in asked.kinds
            if kind in clause.kinds
        ]
        metafunc.config.stash.setdefault(OFFERED, []).extend(found)
        metafunc.parametrize(cell, found, ids=lambda c: f"{c.clause}:{c.family}:{c.kind}:{c.device}")
    else:
        explorations, ids = _explorations(metafunc.config, share, asked)
        metafunc.parametrize("exploration", explorations, ids=ids)


def _explorations(config: pytest.Config, share: Session, asked: Request) -> tuple[list[Any], list[str]]:
    """The items that explore, and their ids: one a family, or for a soak one a worker."""
    if asked.profile != "soak":
        places = [(family, device) for device in asked.devices for family in asked.topology_families]
        found = [Exploration(share, family, device, asked.examples) for family, device in places]
        return list(found), [f"{e.family}:{e.device}" for e in found]
    workers, limit = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), config.getoption("topologies")
    capture = config.pluginmanager.getplugin("capturemanager")
    shares = [(number, device) for device in asked.devices for number in range(workers)]
    soaks = [Soak(share, asked.topology_families, device, number, workers, limit) for number, device in shares]
    return [Endless(soak, capture) for soak in soaks], [f"soak-{s.share}:{s.device}" for s in soaks]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A selection selects systems too: they run where their chapter is named, or nothing is selected."""
    if not any(config.getoption(name) for name in SELECTING):
        return
    named = config.getoption("chapter")
    wanted = {True: SYSTEMS in named, False: {*named} != {SYSTEMS}}
    left_out = [item for item in items if not wanted[_of_systems(item)] or _of_no_cell(item)]
    config.hook.pytest_deselected(items=left_out)
    gone = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in gone]


def _of_systems(item: pytest.Item) -> bool:
    """Whether an item of the suite is a test of worked programs, which is no cell and no exploration."""
    return item.path.name.startswith(f"test_{SYSTEMS}")


def _of_no_cell(item: pytest.Item) -> bool:
    """Whether an item is what pytest leaves of a test where no cell is selected."""
    values = item.callspec.params if hasattr(item, "callspec") else {}
    return any(name in values and not isinstance(values[name], Cell) for name in CELLS)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Of a family only what was selected is run; and what was imported and collected stays until the end."""
    share = session.config.stash[SESSION]
    offered: list[Cell] = session.config.stash.get(OFFERED, [])
    share.selected = selected(_cells(session.items), offered)
    settle()


def _cells(items: Iterable[pytest.Item]) -> list[Cell]:
    values = (value for item in items if hasattr(item, "callspec") for value in item.callspec.params.values())
    return [value for value in values if isinstance(value, Cell)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A device that is not there is *not run*, and said to be."""
    for name in (*CELLS, "exploration"):
        asked = getattr(item, "callspec", None) and item.callspec.params.get(name)  # type: ignore[attr-defined]
        if asked and asked.device not in available_devices():
            pytest.skip(f"not run: this machine has no {asked.device} device that torch can use")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Ctrl-C may come at an instruction that belongs to no line, and pytest would fail in telling where it was."""
    try:
        return (yield)
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Puts the record together, whole or cut short, and draws the report."""
    config = session.config
    if SESSION in config.stash:
        config.stash[SESSION].close()
    reporter = config.pluginmanager.getplugin("terminalreporter")
    failed = reporter.stats.get("failed", ()) if reporter is not None else ()
    if failed and config.option.verbose <= 0 and fold(failed) == len(failed):
        reporter.reportchars = reporter.reportchars.replace("f", "")  # a line each would tell the causes again
    if _is_worker(config) or config.option.collectonly or REQUEST not in config.stash:
        return
    asked = config.stash[REQUEST]
    stopped = _stopped(session)
    under_test = Torch(str(torch.__version__), str(torch.version.git_version), torch.version.cuda)
    config.stash[RECORDS], config.stash[IDLE] = [], []
    for device in asked.devices:
        if (asked.parts / device).exists():
            with paused():
                made = record(asked, device, under_test, stopped)
            # A run of a part of the contract must not take the place of the record of the whole.
            folder = Path(asked.reports) / ("records" if stands(asked, made) else "partial")
            config.stash[RECORDS].append((made, str(write(made, folder))))
            if stands(asked, made):
                config.stash[IDLE] += idle(config.stash[SESSION].ledgers[device], made)
    discard_parts(asked)
    if config.stash[IDLE] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if any(stands(asked, made) for made, _ in config.stash[RECORDS]):
        from hookcheck.report.drawing import report  # its libraries would cost every start and every worker
        from hookcheck.run.reproduction import reproduction

        report(Path(asked.reports) / "records", Path(asked.reports), load(), reproduction)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The verdict in a few lines, and where record and report are; with ``-v`` the tables of all cells before it."""
    config = terminalreporter.config
    if RECORDS not in config.stash:
        return
    from hookcheck.report.summary import summary  # as above, its libraries would cost every start and every worker

    asked = config.stash[REQUEST]
    for made, path in config.stash[RECORDS]:
        terminalreporter.section(f"torch {made.header.torch.version} on {made.header.device}")
        tw = terminalreporter._tw
        if config.option.verbose > 0:
            terminalreporter.write(_tables(made, tw.fullwidth, tw.hasmarkup))
        for line in summary(made, tw.fullwidth):
            terminalreporter.line(line)
        for line in _compared(config, made, tw.fullwidth):
            terminalreporter.line(line)
        terminalreporter.line(f"record: {path}")
    for line in config.stash[IDLE]:
        terminalreporter.line(f"FAILED {line}", red=True)
    for device in asked.devices:
        if device not in available_devices():
            terminalreporter.line(f"{device}: not run, this machine has no {device} device that torch can use")
    if any(stands(asked, made) for made, _ in config.stash[RECORDS]):
        terminalreporter.line(f"report: {Path(asked.reports) / 'site' / 'index.html'}")


def _compared(config: pytest.Config, made: Record, width: int) -> list[str]:
    """What is new against the baselines, in lines of ``width``; a run of few cells against what they were."""
    from hookcheck.run.baseline import against

    told = (against(path, before, made) for path, before in config.stash.get(BASELINES, ()))
    return [line for texts in told for text in texts for line in textwrap.wrap(text, width, subsequent_indent="  ")]


def _tables(made: Record, width: int, colours: bool) -> str:
    """The tables of a run, for people who ask for all of it."""
    from rich.console import Console

    from hookcheck.report.terminal import print_summary

    text = io.StringIO()
    print_summary(made, Console(file=text, width=width, force_terminal=colours, highlight=False))
    return text.getvalue()


def idle(ledger: Ledger, made: Record) -> list[str]:
    """What is to be said of entries for all families that explain nothing in a whole run."""
    return [
        f"ledger: {entry.id} says that {', '.join(entry.clauses)} deviate under {kind} hooks, and no family shows it: "
        "narrow the entry, or remove it if the deviation is gone"
        for entry, kind in ledger.idle(made.cases)
    ]


def _profile(config: pytest.Config) -> str:
    """The Hypothesis profile that is asked for.

    Raises:
        HookcheckError: there is none of that name.
    """
    name: str = config.getoption("hypothesis_profile", None) or "default"
    if name not in PROFILES:
        raise HookcheckError(f"unknown profile {name!r}; choose from {', '.join(PROFILES)}")
    return name


def _baselines(config: pytest.Config) -> tuple[tuple[Path, Record], ...]:
    """The records that the run is compared with at its end; a run of a part is compared with what is named alone."""
    asked, named = config.stash[REQUEST], config.getoption("baseline")
    if config.option.collectonly or not (named or (asked.whole and asked.profile in ("default", "thorough"))):
        return ()
    from hookcheck.run.baseline import baselines

    found = (baselines(named, Path(asked.reports), str(torch.__version__), device) for device in asked.devices)
    return tuple(pair for pairs in found for pair in pairs)


def _request(config: pytest.Config) -> Request:
    if _is_worker(config):
        return from_controller(config.workerinput["hookcheck"])  # type: ignore[attr-defined]
    option = config.getoption
    families, kinds = option("family"), option("kind")
    clauses = [*option("clause"), *in_chapters(name for name in option("chapter") if name != SYSTEMS)]
    if option("hypothesis_profile", None) == "smoke" and not (families or kinds or clauses):
        families, clauses = map(list, smoke())
    return request(
        families,
        kinds,
        clauses,
        option("device"),
        reports=str(Path(option("reports")).resolve()),
        corpus=str(conformance_folder() / "corpus"),
        profile=_profile(config),
        examples=settings().max_examples,
        seed=int(option("hypothesis_seed", None) or 0),
        started=now(),
        run=f"{os.getpid()}",
    )


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise HookcheckError(f"the reports folder cannot be written ({error}); choose another with --reports") from None


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _stopped(session: pytest.Session) -> str:
    if session.exitstatus == pytest.ExitCode.INTERRUPTED or session.shouldstop:
        return str(session.shouldstop or "interrupted by the user")
    return "pytest failed inside" if session.exitstatus == pytest.ExitCode.INTERNAL_ERROR else ""
