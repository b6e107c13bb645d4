"""A folder for an upstream report: the script of a reduced case, seen to fail, and the text of the issue."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import Clause, clause_named
from hookcheck.contract.ledger import Entry, applying, load
from hookcheck.contract.verdict import RAN
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import HookKind, kind_named
from hookcheck.programs.program import Program
from hookcheck.programs.running import examine_program
from hookcheck.record.model import public_version
from hookcheck.repro import verify
from hookcheck.repro.ablation import ablation
from hookcheck.repro.cells import Wanted
from hookcheck.repro.choice import chosen
from hookcheck.repro.issue import collected, in_records, issue, prior_issues
from hookcheck.repro.links import links
from hookcheck.repro.reduce import reduced
from hookcheck.repro.sighting import Sighting, sightings, unable
from hookcheck.repro.verify import SHOWS, Verdict
from hookcheck.repro.words import title
from hookcheck.repro.writers import SECONDS, titled_script
from hookcheck.topology.codec import identify
from hookcheck.topology.model import Topology

RUNS = 3
"""So often a script is run before it is shown."""


class UnwritableFolder(HookcheckError):
    """The folder of a report cannot be written."""

    def __init__(self, folder: Path, why: str) -> None:
        """``why`` is what the operating system says of it."""
        super().__init__(f"cannot write into {folder} ({why}); choose another folder with --output")


@dataclass(frozen=True)
class Report:
    """A ``script`` with the ``verdicts`` of the torches that it was run on, the one at hand first; and what it is
    about. ``ablation`` has what it says of the torch at hand with each backend, if it names one."""

    title: str
    clause: Clause
    kind: str
    case: str
    documentation: tuple[str, ...]
    entry: Entry | None
    script: str
    verdicts: tuple[Verdict, ...] = ()
    ablation: tuple[tuple[str, Verdict], ...] = ()


def of_a_network(
    wanted: Wanted, device: str, tried: Callable[[int], None] = lambda tried: None, cause: str = ""
) -> Report:
    """The report of a network, reduced on the torch at hand; ``tried`` is told the number of networks tried so far.

    It is about what the network shows first, or of the ``cause``: an entry of the ledger, or a way to deviate that none
    explains.

    Raises:
        HookcheckError: the torch at hand cannot run it, or it conforms there.
    """
    clause, kind = clause_named(wanted.clause), kind_named(wanted.kind)
    entries = load()
    ledger = applying(entries, torch.__version__, device)
    _check(wanted, clause, kind, device)
    seen = sightings(wanted.topology, wanted.family, kind, clause, ledger, device)
    if cause:
        seen = [s for s in seen if cause == (s.symptom.ledger or s.symptom.gap)]
    if not seen:
        raise HookcheckError(
            f"{clause.id} with {kind.name} conforms on torch {torch.__version__} for network "
            f"{identify(wanted.topology)}{f', but for other causes than {cause}' if cause else ''}: "
            "there is nothing to reproduce"
        )
    symptom = seen[0].symptom

    def alike(case: Topology, hook: HookKind) -> list[Sighting]:
        if unable(case, hook, device) or hook.name not in clause.kinds:
            return []
        return [s for s in sightings(case, wanted.family, hook, clause, ledger, device) if s.symptom == symptom]

    topology, hook = reduced(wanted.topology, kind, lambda case, hook: bool(alike(case, hook)), tried)
    sighting = alike(topology, hook)[0]
    documentation = tuple(link for link in links(clause.source) if "/issues/" not in link) or (hook.documentation,)
    entry = next((entry for entry in entries if entry.id == symptom.ledger), None)
    script, asked = chosen(sighting)
    heading = title(sighting, asked)
    return Report(heading, clause, kind.name, identify(wanted.topology), documentation, entry, script)


def _check(wanted: Wanted, clause: Clause, kind: HookKind, device: str) -> None:
    if kind.name not in clause.kinds:
        choices = ", ".join(clause.kinds)
        raise HookcheckError(f"clause {clause.id} does not speak of hook kind {kind.name!r}; choose from {choices}")
    why = unable(wanted.topology, kind, device)
    if why:
        raise HookcheckError(f"torch {torch.__version__} cannot run network {identify(wanted.topology)}: {why}")


def verified(
    report: Report, folder: Path, torches: Sequence[str], runs: int, limit: float, say: Callable[[str], None]
) -> Report:
    """The report with its script run on the torch at hand and on other releases, and then written to ``folder``.

    Raises:
        HookcheckError: the fault does not show on the torch at hand; no script is written.
        UnwritableFolder: ``folder`` cannot be written.
    """
    check_writable(folder)
    version, verdicts = public_version(str(torch.__version__)), list[Verdict]()
    with tempfile.TemporaryDirectory(prefix="hookcheck-repro-") as elsewhere:  # what is there may be somebody's
        path = Path(elsewhere) / "repro.py"
        path.write_text(report.script, encoding="utf-8")
        say(f"running the script on torch {version}")
        verdicts.append(seen_to_show(path, version, runs, limit))
        by_backend = tuple(ablation(report.script, path.parent, verdicts[0], limit))
        for other in torches:
            say(f"running the script on torch {other}")
            verdicts.append(verify.on(path, other, runs, limit, version))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "repro.py").write_text(report.script, encoding="utf-8")
    except OSError as fault:
        raise UnwritableFolder(folder, fault.strerror or str(fault)) from None
    return replace(report, verdicts=tuple(verdicts), ablation=by_backend)


def check_writable(folder: Path) -> None:
    """Makes sure that ``folder`` can be written, or made where it is to be.

    Raises:
        UnwritableFolder: it cannot.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UnwritableFolder(folder, os.strerror(errno.ENOTDIR))
    if not os.access(there, os.W_OK):
        raise UnwritableFolder(folder, os.strerror(errno.EACCES))


def seen_to_show(path: Path, version: str, runs: int = 1, limit: float = verify.LIMIT) -> Verdict:
    """What a script says of the torch at hand.

    Raises:
        HookcheckError: the fault does not show; the script is removed.
    """
    here = verify.here(path, version, runs, limit)
    if here.verdict != SHOWS:
        path.unlink()
        raise HookcheckError(
            f"the script does not show the fault in a process of its own on torch {version}: {here.text()}"
        )
    return here


def write(report: Report, folder: Path, records: Path) -> None:
    """Writes the text of the issue beside the script."""
    text = issue(
        report.title,
        report.clause,
        report.documentation,
        report.script,
        report.verdicts,
        in_records(records, report.clause.id, report.kind, report.case),
        prior_issues(report.clause, report.entry),
        collected(),
        report.ablation,
    )
    (folder / "issue.md").write_text(text, encoding="utf-8")


def of_a_program(
    program: Program,
    device: str | None,
    cause: str = "",
    tried: Callable[[int], None] = lambda tried: None,
    seconds: float = SECONDS,
) -> Report:
    """The report of what a program states first that is not so, or first of the ``cause``: an entry of the ledger, or a
    way to deviate that none explains. Its script is made shorter for so many ``seconds``; ``tried`` is told how many
    scripts were run so far.

    Raises:
        HookcheckError: it conforms on the torch at hand, or cannot run there.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise HookcheckError(f"the case of {program.id} is of cuda, which this machine lacks: run it where that is")
    entries = load()
    known = applying(entries, torch.__version__, device or "cpu")
    result = examine_program(program, known, device or (program.device if program.device != "any" else "cpu"))
    if result.outcome != RAN:
        raise HookcheckError(f"{program.id} is {result.outcome} on torch {torch.__version__}: {result.reason}")
    seen = [d for d in result.deviations if cause in ("", d.ledger or d.gap)]
    if not seen:
        why = f", but for other causes than {cause}" if result.deviations else ""
        raise HookcheckError(f"{program.id} conforms on torch {torch.__version__}{why}: there is nothing to reproduce")
    first = seen[0]
    heading, script = titled_script(program, device, first, known, tried, seconds)
    entry = next((entry for entry in entries if entry.id == first.ledger), None)
    documentation = tuple(link for link in links(program.source) if "/issues/" not in link)
    return Report(heading, program, program.chapter, program.id, documentation, entry, script)
