"""How does the contract run under pytest? Each item is a cell, or the exploration of one family.

Under pytest-xdist all cells of one family and device go to one worker, which runs torch once for all of them. The
controlling process alone writes the record, draws the report and prints the summary.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator
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
from hookcheck.contract.ledger import load
from hookcheck.distribution import check_distribution
from hookcheck.errors import HookcheckError
from hookcheck.probe.cuda import compute_exactly
from hookcheck.probe.run import available_devices, check_torch
from hookcheck.programs.program import PROGRAM, Program
from hookcheck.record.model import Record, Torch, record_name
from hookcheck.record.writing import write
from hookcheck.run.beginning import settings_of
from hookcheck.run.child import use_threads
from hookcheck.run.ending import check_writable, compared, idle, tables
from hookcheck.run.failures import fold
from hookcheck.run.items import CellItem, Endless, Exploration, cells_of
from hookcheck.run.leftovers import hold, leftovers, reminders, remove_superseded, resumed, run_name
from hookcheck.run.plan import (
    CUT_OFF,
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
from hookcheck.run.progress import Progress
from hookcheck.run.selection import CELLS, is_of_no_cell, scope, selected, turn
from hookcheck.run.session import Session
from hookcheck.run.soak import ROUND, Soak
from hookcheck.suite import conformance_folder

PROFILES = {"smoke": 5, "default": 33, "thorough": 2000, "soak": ROUND}
"""How many new topologies a family each Hypothesis profile explores; ``soak`` does so round after round."""

for _name, _examples in PROFILES.items():
    settings.register_profile(_name, max_examples=_examples)

REQUEST: pytest.StashKey[Request] = pytest.StashKey()
SESSION: pytest.StashKey[Session] = pytest.StashKey()
RECORDS: pytest.StashKey[list[tuple[Record, str]]] = pytest.StashKey()
IDLE: pytest.StashKey[list[str]] = pytest.StashKey()
OFFERED: pytest.StashKey[list[CellItem]] = pytest.StashKey()
BASELINES: pytest.StashKey[tuple[tuple[Path, Record], ...]] = pytest.StashKey()
REMINDERS: pytest.StashKey[list[str]] = pytest.StashKey()
HELD: pytest.StashKey[Any] = pytest.StashKey()

SELECTING = {
    "family": "topology family",
    "kind": "hook kind",
    "clause": "clause id",
    "chapter": "chapter of clauses",
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
    group.addoption("--label", default="", help="a word in the name of the record, which keeps it beside others")
    group.addoption("--threads", type=int, default=0, help="threads that torch computes on (default: 1)")
    group.addoption("--resume", action="store_true", help="go on with a run of the same command that was cut off")
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
            check_writable(Path(config.stash[REQUEST].reports))
            load()
            corpora(config.stash[REQUEST])
            _look_back(config)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        here = config.getoption("usepdb") or config.getoption("trace")
        config.stash[SESSION] = session(config.stash[REQUEST], worker, str(torch.__version__), here)
    except HookcheckError as error:
        raise pytest.UsageError(f"hookcheck: {error}") from None
    use_threads(config.stash[REQUEST].threads)
    compute_exactly()


def _look_back(config: pytest.Config) -> None:
    """What is to be said of runs that were cut off; with ``--resume`` the request becomes one of them."""
    asked = config.stash[REQUEST]
    left = leftovers(Path(asked.reports))
    if config.getoption("resume"):
        config.stash[REQUEST] = asked = resumed(asked, _under_test(), left)
    config.stash[REMINDERS] = reminders(asked, _under_test(), left)


def _under_test() -> Torch:
    return Torch(str(torch.__version__), str(torch.version.git_version), torch.version.cuda)


def pytest_sessionstart(session: pytest.Session) -> None:
    """From here on a run that is cut off leaves what another one can go on with."""
    config = session.config
    if REQUEST not in config.stash or _is_worker(config) or config.option.collectonly:
        return
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and config.option.verbose <= 0:
        config.pluginmanager.register(Progress(reporter))
    try:
        config.stash[HELD] = hold(config.stash[REQUEST], _under_test())
    except HookcheckError as error:
        raise pytest.UsageError(f"hookcheck: {error}") from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hands the plan to a worker of pytest-xdist."""
    node.workerinput["hookcheck"] = to_workers(node.config.stash[REQUEST])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Sends what shares runs of torch to one worker, whatever ``--dist`` says, in the order of the items."""
    config.option.loadscopereorder = False
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFamily(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

    return ByFamily(config, log)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Every setting of the run, so that a typo shows."""
    asked = config.stash[REQUEST]
    lines = settings_of(asked, str(torch.__version__))
    if config.getoption("resume"):
        lines.append(f"hookcheck: goes on with the run of {asked.started}")
    return lines + [f"hookcheck: {line}" for line in config.stash.get(REMINDERS, [])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item a cell for tests that take ``network_cell`` or ``program_cell``, one a family for ``exploration``."""
    if not {*CELLS, "exploration"} & set(metafunc.fixturenames):
        return
    share = metafunc.config.stash[SESSION]
    asked = metafunc.config.stash[REQUEST]
    cell = next((name for name in CELLS if name in metafunc.fixturenames), None)
    if cell is not None:
        of_programs = cell == CELLS[1]
        offered_cells = [
            CellItem(share, clause.id, family, kind, device)
            for device in asked.devices
            for family in asked.families
            if (family == PROGRAM) is of_programs
            for clause in share.clauses
            if isinstance(clause, Program) is of_programs
            for kind in asked.kinds
            if kind in clause.kinds
        ]
        metafunc.config.stash.setdefault(OFFERED, []).extend(offered_cells)
        metafunc.parametrize(cell, offered_cells, ids=lambda c: f"{c.clause}:{c.family}:{c.kind}:{c.device}")
    else:
        explorations, ids = _explorations(metafunc.config, share, asked)
        metafunc.parametrize("exploration", explorations, ids=ids)


def _explorations(config: pytest.Config, share: Session, asked: Request) -> tuple[list[Any], list[str]]:
    """The items that explore, and their ids: one a family, or for a soak one a worker."""
    if asked.profile != "soak":
        places = [(family, device) for device in asked.devices for family in asked.topology_families]
        explorations = [Exploration(share, family, device, asked.examples) for family, device in places]
        return list(explorations), [f"{e.family}:{e.device}" for e in explorations]
    workers, limit = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), config.getoption("topologies")
    capture = config.pluginmanager.getplugin("capturemanager")
    shares = [(number, device) for device in asked.devices for number in range(workers)]
    soaks = [Soak(share, asked.topology_families, device, number, workers, limit) for number, device in shares]
    return [Endless(soak, capture) for soak in soaks], [f"soak-{s.share}:{s.device}" for s in soaks]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first. Of a selection that has no cell of networks, or none of programs, pytest would show
    an empty item."""
    items.sort(key=lambda item: turn(item.nodeid))
    if not any(config.getoption(name) for name in SELECTING):
        return
    left_out = [item for item in items if is_of_no_cell(item)]
    config.hook.pytest_deselected(items=left_out)
    gone = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in gone]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Of a family only what was selected is run; and what was imported and collected stays until the end."""
    share = session.config.stash[SESSION]
    offered: list[CellItem] = session.config.stash.get(OFFERED, [])
    share.selected = selected(cells_of(session.items), offered)
    settle()


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


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Puts the record together, whole or cut short, once all workers have ended, and draws the report."""
    config = session.config
    if SESSION in config.stash:
        config.stash[SESSION].close()
    result = yield
    reporter = config.pluginmanager.getplugin("terminalreporter")
    failed = reporter.stats.get("failed", ()) if reporter is not None else ()
    if failed and config.option.verbose <= 0 and fold(failed) == len(failed):
        reporter.reportchars = reporter.reportchars.replace("f", "")  # a line each would tell the causes again
    if HELD in config.stash:
        _finish(session, config.stash[REQUEST])
        config.stash[HELD].close()
    return result


def _finish(session: pytest.Session, asked: Request) -> None:
    config, stopped = session.config, _stopped(session)
    config.stash[RECORDS], config.stash[IDLE] = [], []
    for device in asked.devices:
        if (asked.parts / device).exists():
            with paused():
                written = record(asked, device, _under_test(), stopped)
            # A run of a part of the contract must not take the place of the record of the whole.
            folder = Path(asked.reports) / ("records" if stands(asked, written) else "partial")
            config.stash[RECORDS].append((written, str(write(written, folder))))
            if stands(asked, written):
                config.stash[IDLE] += idle(config.stash[SESSION].ledgers[device], written)
    if not stopped or not config.stash[RECORDS]:
        discard_parts(asked)
    if not stopped:
        remove_superseded(asked, _under_test())
        for device in asked.devices:
            label = "-".join(filter(None, [asked.label, CUT_OFF]))
            name = record_name(str(torch.__version__), device, label)
            (Path(asked.reports) / "partial" / name).unlink(missing_ok=True)
    if any(stands(asked, written) for written, _ in config.stash[RECORDS]):
        from hookcheck.report.archive import UnreadableFile
        from hookcheck.report.drawing import report  # its libraries would cost every start and every worker
        from hookcheck.run.reproduction import kept_in, reproductions

        def tell(fault: UnreadableFile) -> None:
            config.stash[IDLE].append(f"left out of the report: {fault.file}: {fault.text}")

        records = Path(asked.reports) / "records"
        report(records, Path(asked.reports), load(), reproductions(kept_in(records)), tell)
    if config.stash[IDLE] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The verdict in a few lines, and where record and report are; with ``-v`` the tables of all cells before it."""
    config = terminalreporter.config
    if RECORDS not in config.stash:
        return
    from hookcheck.report.summary import summary  # as above, its libraries would cost every start and every worker

    asked = config.stash[REQUEST]
    for content, path in config.stash[RECORDS]:
        terminalreporter.section(f"torch {content.header.torch.version} on {content.header.device}")
        tw = terminalreporter._tw
        if config.option.verbose > 0:
            terminalreporter.write(tables(content, tw.fullwidth, tw.hasmarkup))
        for line in summary(content, tw.fullwidth):
            terminalreporter.line(line)
        for line in compared(config.stash.get(BASELINES, ()), content, Path(path), tw.fullwidth):
            terminalreporter.line(line)
        terminalreporter.line(f"record: {path}")
    if any(not content.footer.complete for content, _ in config.stash[RECORDS]):
        arguments = [word for word in config.invocation_params.args if word != "--resume"]
        terminalreporter.line(f"go on with it: python -m pytest {shlex.join([*map(str, arguments), '--resume'])}")
    for line in config.stash[IDLE]:
        terminalreporter.line(f"FAILED {line}", red=True)
    for device in asked.devices:
        if device not in available_devices():
            terminalreporter.line(f"{device}: not run, this machine has no {device} device that torch can use")
    if any(stands(asked, content) for content, _ in config.stash[RECORDS]):
        terminalreporter.line(f"report: {Path(asked.reports) / 'site' / 'index.html'}")


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

    pairs_of = (baselines(named, Path(asked.reports), str(torch.__version__), device) for device in asked.devices)
    return tuple(pair for pairs in pairs_of for pair in pairs)


def _request(config: pytest.Config) -> Request:
    if _is_worker(config):
        return from_controller(config.workerinput["hookcheck"])  # type: ignore[attr-defined]
    option = config.getoption
    families, kinds = option("family"), option("kind")
    clauses = [*option("clause"), *in_chapters(option("chapter"))]
    started = now()
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
        started=started,
        run=run_name(started),
        label=option("label"),
        threads=option("threads"),
    )


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _stopped(session: pytest.Session) -> str:
    if session.exitstatus == pytest.ExitCode.INTERRUPTED or session.shouldstop or session.shouldfail:
        return str(session.shouldstop or session.shouldfail or "interrupted by the user")
    return "pytest failed inside" if session.exitstatus == pytest.ExitCode.INTERNAL_ERROR else ""
