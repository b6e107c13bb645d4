"""What can be asked of hookcheck on the command line? Each command prints for people, or as JSON for programs.

Nothing here imports torch before a command needs it, so all but ``run`` work without it; and what only some commands
need is imported by them, so that the others start fast.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from hookcheck import __version__
from hookcheck.cli_output import SCHEMAS, Row, documented, sheet, show, table, watched
from hookcheck.errors import HookcheckError

FINE, DEVIATES, WRONG_INPUT, NO_TORCH, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_CODES = """\b
Exit codes:
    0  fine
    1  deviations, or an invalid record
    2  wrong usage or input; one line on standard error says what to do
    3  torch is missing or unusable
  130  interrupted
`hookcheck run` ends with the exit code of pytest, unless it could not start it."""


class TorchUnusable(HookcheckError):
    """There is no torch, or none that hooks can be probed on."""


class _Cli(click.Group):
    """The group of commands; every fault of the input is one line on standard error."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Runs a command and ends the process with its exit code."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError):  # a stream that is no text file has none
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        try:
            status = super().main(*args, **{**extra, "standalone_mode": False}) or FINE
        except click.ClickException as error:
            status = _failed(error.format_message(), WRONG_INPUT)
        except TorchUnusable as error:
            status = _failed(str(error), NO_TORCH)
        except HookcheckError as error:
            status = _failed(str(error), WRONG_INPUT)
        except click.Abort:
            click.echo("hookcheck: interrupted", err=True)
            status = INTERRUPTED
        sys.exit(status)


def _failed(message: str, status: int) -> int:
    click.echo(f"hookcheck: error: {' '.join(message.split())}", err=True)
    return status


_HELP = {"help_option_names": ["-h", "--help"]}


@click.group(cls=_Cli, epilog=EXIT_CODES, context_settings=_HELP, no_args_is_help=False)
@click.version_option(__version__, message="hookcheck %(version)s")
def main() -> None:
    """A conformance and regression suite for PyTorch's hooks."""


def _command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with ``--format``, whose help lists the fields of its JSON."""
    fields = "\n\n".join(map(documented, SCHEMAS[name]))
    shape = click.option(
        "--format", "shape", type=click.Choice(["pretty", "json"]), default="pretty", show_default=True,
        help="For people, or one JSON object a line.",
    )  # fmt: skip
    return lambda function: main.command(name, epilog=fields, **settings)(shape(function))


@_command("list")
def list_clauses(shape: str) -> None:
    """List the clauses of the contract, and the documented sentences that have none."""
    import hookcheck.contract.chapters  # noqa: F401 -- declares the clauses
    from hookcheck.contract.clause import CLAUSES, UNSPECIFIED, described
    from hookcheck.contract.left_out import LEFT_OUT

    blank = dict.fromkeys(("class", "statement", "since", "source"), "")
    rows = [
        {**described(clause), "state": "shown" if clause.rank == UNSPECIFIED else "judged", "reason": ""}
        for clause in CLAUSES.values()
    ]
    rows += [{"id": id, **blank, "kinds": [], "state": "left-out", "reason": reason} for id, reason in LEFT_OUT.items()]
    shown = [{**row, "statement": row["statement"] or row["reason"]} for row in rows]
    show(rows, shape, lambda: table(shown, ("id", "class", "since", "state", "statement", "source")))


@_command("claims")
def list_claims(shape: str) -> None:
    """Tell what documents claim of hooks, and on which releases torch does as they say.

    A claim holds, is refuted, or is partly refuted; one with several answers over the releases has a line for each.
    `hookcheck explain ID` names the entries of the ledger that say what torch does instead.
    """
    from hookcheck.contract.claims import answers, claims
    from hookcheck.contract.ledger import load

    ledger = load()
    rows = [
        {"id": c.id, "statement": c.statement, "answer": a.answer, "torch": a.torch, "source": c.source}
        for c in claims()
        for a in answers(c, ledger)
    ]
    show(rows, shape, lambda: table(rows, ("id", "answer", "torch", "statement", "source")))


@_command("kill-matrix")
def kill_matrix(shape: str) -> None:
    """Put faults into torch's hook code, one after the other, and tell which clauses catch each.

    The faults are in a clone of the repository, in tests/faults. Clauses that catch none are listed last, with reasons.
    """
    _torch()
    tests = _tests()
    sys.path.insert(0, str(tests))
    from importlib import import_module

    matrix = import_module("faults.matrix")

    def rows() -> Iterator[Row]:
        caught: set[str] = set()
        for fault in watched(matrix.faults(), "kill-matrix"):
            with contextlib.redirect_stdout(sys.stderr):  # some programs print
                clauses = matrix.caught_by(fault)
            caught.update(clauses)
            yield {"fault": fault.what, "clauses": list(clauses), "reason": ""}
        for id, reason in matrix.questioned(caught).items():
            yield {"fault": "", "clauses": [id], "reason": reason}

    show(rows(), shape, lambda: table(rows(), ("fault", "clauses", "reason")))


def _tests() -> Path:
    """The folder of hookcheck's own tests.

    Raises:
        HookcheckError: this is not a clone.
    """
    from hookcheck.suite import conformance_folder

    tests = conformance_folder().parent / "tests"
    if not (tests / "faults").is_dir():
        raise HookcheckError("the faults are in a clone of hookcheck's repository; run this command there")
    return tests


@_command("families")
def list_families(shape: str) -> None:
    """List the families of topologies."""
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.corpus import read
    from hookcheck.topology.families import FAMILIES

    corpus = conformance_folder() / "corpus"
    rows = [
        {"name": family.name, "statement": family.statement, "corpus_size": len(read(corpus, family.name))}
        for family in FAMILIES.values()
    ]
    show(rows, shape, lambda: table(rows, ("name", "corpus_size", "statement")))


@_command("layers")
def list_layers(shape: str) -> None:
    """List the modules of torch.nn: which a topology can hold, and why not the others."""
    from hookcheck.topology.catalogue import layer_classes
    from hookcheck.topology.excused import EXCUSED

    offered = _offered_layers()
    rows = []
    for name in sorted({*layer_classes(), *EXCUSED, *offered}):
        state, reason = "left-out", EXCUSED.get(name, "newer than this hookcheck")
        if name in layer_classes():
            there = not offered or name in offered
            state, reason = ("covered", "") if there else ("not-offered", f"torch {_torch().__version__} lacks it")
        rows.append({"name": name, "state": state, "reason": reason})
    show(rows, shape, lambda: table(rows, ("name", "state", "reason")))


def _offered_layers() -> frozenset[str]:
    """The public modules of the torch that is installed; empty where none is."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return frozenset()
    nn = _torch().nn
    found = (name for name, c in vars(nn).items() if isinstance(c, type) and issubclass(c, nn.Module))
    return frozenset(name for name in found if not name.startswith("_"))


@_command("coverage")
def coverage(shape: str) -> None:
    """Tell which pairs of features the corpus reaches, and why not the others.

    The axes are hook kind, family, group of layers, grad mode, arity, None pattern, in-place, reuse, dtype and depth.
    """
    from dataclasses import asdict

    from rich.console import Group

    from hookcheck.coverage.pairs import covered
    from hookcheck.coverage.told import columns, counts, missing, summary
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.corpus import read
    from hookcheck.topology.families import FAMILIES

    corpus = {family: read(conformance_folder() / "corpus", family) for family in FAMILIES}
    pairs = covered((family, t) for family in watched(list(corpus), "coverage") for t in corpus[family])
    topologies = sum(map(len, corpus.values()))
    show(
        map(asdict, pairs),
        shape,
        lambda: Group(table(counts(pairs), columns()), *missing(pairs), "", summary(pairs, topologies)),
    )


_REPORTS = click.option(
    "--reports", type=click.Path(path_type=Path), default="reports", show_default=True,
    help="Folder with the records and the report.",
)  # fmt: skip


@_command("report")
@click.option("--records", type=click.Path(path_type=Path), default="reports/records", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default="reports", show_default=True)
def draw_report(records: Path, output: Path, shape: str) -> None:
    """Draw index.html and compatibility.md from a folder of records."""
    from hookcheck.contract.ledger import load
    from hookcheck.report.drawing import report

    rows = [{"file": str(path)} for path in report(records, output, {e.id: (e.why, e.link) for e in load()})]
    show(rows, shape, lambda: "\n".join(row["file"] for row in rows))


@_command("explain")
@click.argument("id")
@_REPORTS
def explain(id: str, reports: Path, shape: str) -> None:
    """Tell everything about a clause, an entry of the ledger, or a topology (the beginning of its id will do)."""
    from hookcheck.contract.clause import CLAUSES
    from hookcheck.contract.ledger import load

    entries = {entry.id: entry for entry in load()}
    rows = [_clause(id, [entry.id for entry in entries.values() if id in entry.clauses])] if id in CLAUSES else []
    rows += [_entry(entries[id])] if id in entries else []  # what an upstream issue is about may be both
    for row in rows or [_topology(id, reports)]:
        script = f"\n{row['script']}".rstrip("\n") if "script" in row and shape == "pretty" else None
        facts = {name: value for name, value in row.items() if name != "script"}
        show([row], shape, lambda facts=facts: sheet(facts))  # type: ignore[misc]
        show((), shape, lambda script=script: script)  # type: ignore[misc]


def _clause(id: str, ledger: list[str]) -> Row:
    from hookcheck.contract.clause import CLAUSES, described

    return {"what": "clause", **described(CLAUSES[id]), "ledger": ledger}


def _entry(entry: Any) -> Row:
    plain = ("id", "why", "link")
    lists = ("clauses", "families", "kinds", "devices", "instead")
    return {
        "what": "ledger entry",
        **{name: getattr(entry, name) for name in plain},
        **{name: list(getattr(entry, name)) for name in lists},
        "torch": str(entry.torch),
        "when": {key: list(words) for key, words in entry.when},
        "reviewed": entry.reviewed.isoformat(),
    }


def _topology(id: str, reports: Path) -> Row:
    from hookcheck.repro.lookup import find
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.codec import identify
    from hookcheck.topology.model import needs
    from hookcheck.topology.source import source

    try:
        found = find(id, conformance_folder() / "corpus", reports)
    except HookcheckError as error:
        raise HookcheckError(f"{id!r} is no clause and no entry of the ledger; as a topology: {error}") from None
    since, thing = needs(found.topology)
    return {
        "what": "topology",
        "id": identify(found.topology),
        "where": found.where,
        "device": found.topology.device,
        "since": since,
        "needs": thing,
        "script": source(found.topology).script(),
    }


@_command("validate")
@click.argument("record", type=click.Path(path_type=Path), nargs=-1, required=True)
def validate(record: tuple[Path, ...], shape: str) -> int:
    """Check that files are sound records; exit code 1 if any is not."""
    rows = [_validated(path) for path in record]
    show(rows, shape, lambda: "\n".join(f"{r['file']}: valid" if r["valid"] else r["message"] for r in rows))
    return FINE if all(row["valid"] for row in rows) else DEVIATES


def _validated(path: Path) -> Row:
    from hookcheck.record.errors import RecordError
    from hookcheck.record.reading import read

    try:
        read(path)
    except RecordError as error:
        name = type(error).__name__
        return {"file": str(path), "valid": False, "error": name, "message": f"{name}: {' '.join(str(error).split())}"}
    return {"file": str(path), "valid": True, "error": None, "message": None}


@_command("repro")
@click.argument("case")
@click.option("--clause", "clause_id", metavar="ID", help="The clause on networks that the script checks.")
@click.option("--kind", metavar="KIND", help="The hook kind.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Default: the case's own, or cpu.")
@_REPORTS
def repro(case: str, clause_id: str | None, kind: str | None, device: str | None, reports: Path, shape: str) -> None:
    """Print one script that needs torch alone and shows whether it deviates from a clause.

    CASE is the id of a clause that is a program, which needs nothing more. Or, with --clause and --kind, the id of a
    topology in the corpus or in a record, or the beginning of one; or a file that holds a topology as JSON; or - for
    standard input. The script ends with exit code 1 where the fault shows and with 0 where not.
    """
    import hookcheck.contract.chapters  # noqa: F401 -- declares the clauses
    from hookcheck.contract.clause import CLAUSES
    from hookcheck.contract.program import Program

    clause = CLAUSES.get(case)
    if isinstance(clause, Program):
        row = _program_repro(clause, clause_id, kind, device)
    else:
        row = _topology_repro(case, clause_id, kind, device, reports)
    show([row], shape, lambda: row["script"].rstrip("\n"))


def _program_repro(program: Any, clause_id: str | None, kind: str | None, device: str | None) -> Row:
    from hookcheck.repro.program import program_script

    if clause_id not in (None, program.id) or kind not in (None, program.chapter):
        raise HookcheckError(f"{program.id} is itself the clause, a program: leave --clause and --kind out")
    device = device or (program.device if program.device != "any" else "cpu")
    text = program_script(program, device)
    return {"clause": program.id, "chapter": program.chapter, "device": device, "script": text}


def _topology_repro(case: str, clause_id: str | None, kind: str | None, device: str | None, reports: Path) -> Row:
    from hookcheck.contract.clause import CLAUSES, clause_named
    from hookcheck.contract.program import Program
    from hookcheck.probe.kinds import kind_named
    from hookcheck.repro.lookup import find
    from hookcheck.repro.script import script
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.codec import identify

    if case in CLAUSES:
        raise HookcheckError(f"{case} is a clause on networks: give a topology, with --clause {case} and --kind")
    if clause_id is None or kind is None:
        raise HookcheckError(f"{case!r} is no program; for a topology give --clause and --kind")
    clause = clause_named(clause_id)
    if isinstance(clause, Program):
        raise HookcheckError(f"{clause_id} is a program, which runs on no topology: hookcheck repro {clause_id}")
    hook = kind_named(kind)
    found = find(case, conformance_folder() / "corpus", reports)
    device = device or (found.topology.device if found.topology.device != "any" else "cpu")
    return {
        "topology": identify(found.topology),
        "where": found.where,
        "clause": clause.id,
        "kind": kind,
        "device": device,
        "script": script(found.topology, clause, hook, device),
    }


@_command("run", context_settings={"ignore_unknown_options": True})
@click.option("--device", type=click.Choice(["cpu", "cuda", "all"]), default="cpu", show_default=True)
@_REPORTS
@click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED)
def run(device: str, reports: Path, pytest_args: tuple[str, ...], shape: str) -> int:
    """Run the suite on the torch that is installed, as `pytest conformance/` does in a clone.

    PYTEST_ARGS go to pytest: --family, --kind and --clause select (each may be given several times),
    --hypothesis-profile is smoke (a first look), default or thorough. The exit code is pytest's: 0 all is as the ledger
    says, 1 it is not, 2 interrupted, 3 a fault in pytest, 4 wrong usage of pytest, 5 nothing was selected.
    """
    from hookcheck.suite import conformance_folder

    _check_torch()
    import pytest

    folder, before = conformance_folder(), _written(reports)
    # In parallel, as in a clone; and no cache, which would go into the installed package. The user's own wins.
    defaults = ("-n", "auto", "-p", "no:cacheprovider")
    arguments = [str(folder), *defaults, f"--device={device}", f"--reports={reports}", *pytest_args]
    # With JSON on standard output, what pytest tells people goes to standard error.
    with contextlib.redirect_stdout(sys.stderr) if shape == "json" else contextlib.nullcontext():
        status = int(pytest.main(arguments))
    new = [path for path, changed in _written(reports).items() if before.get(path) != changed]
    show(map(_recorded, new), shape, lambda: None)
    return status


def _written(reports: Path) -> dict[Path, int]:
    """The records below a folder, each with the time of its last change."""
    return {path: path.stat().st_mtime_ns for path in sorted(reports.glob("*/*.jsonl"))}


def _recorded(path: Path) -> Row:
    from hookcheck.record.reading import read

    record = read(path)
    verdicts = [cell.verdict for cell in record.cells()]
    return {
        "record": str(path),
        "torch": record.header.torch.version,
        "device": record.header.device,
        "complete": record.footer.complete,
        "verdicts": {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
    }


def _torch() -> Any:
    """The torch that is installed, one that hooks can be probed on."""
    _check_torch()
    import torch

    return torch


def _check_torch() -> None:
    try:
        from hookcheck.probe.run import check_torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise TorchUnusable(f"torch cannot be imported: {error}") from None
        raise TorchUnusable("torch is not installed: pip install torch (any release from 1.7)") from None
    except (ImportError, OSError) as error:  # OSError: one of its libraries is missing
        raise TorchUnusable(f"torch cannot be imported: {error}") from None
    try:
        check_torch()
    except HookcheckError as error:
        raise TorchUnusable(str(error)) from None
