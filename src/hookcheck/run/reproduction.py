"""The scripts that pages show for causes: of a program its own; of what is reduced one that is made once, and kept."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.verdict import PROGRAM
from hookcheck.errors import HookcheckError
from hookcheck.programs.program import Program
from hookcheck.record.errors import UnwritableReports
from hookcheck.record.model import Folded, public_version
from hookcheck.report.address import slug
from hookcheck.report.archive import Archive, archive
from hookcheck.report.causes import Cause, causes
from hookcheck.report.view import Reproduce, command
from hookcheck.repro.program import program_script
from hookcheck.repro.writers import WRITERS

if TYPE_CHECKING:
    from hookcheck.topology.model import Topology


def kept_in(records: Path) -> Path:
    """The folder of the scripts that belong to a folder of records."""
    return records.resolve().parent / "scripts"


def reproductions(folder: Path) -> Reproduce:
    """What gives the script of a cause, which needs torch alone; of what is reduced that which ``folder`` has, if any.

    It raises HookcheckError where a program needs more than torch.
    """

    def reproduction(cause: Cause) -> str:
        clause = CLAUSES.get(cause.clause)
        if isinstance(clause, Program) and clause.id not in WRITERS:
            return _of_program(clause)
        return script_of(cause, folder)

    return reproduction


def _is_reduced(cause: Cause) -> bool:
    """Whether the script of a cause is reduced: of a network, and of a program that has a writer of its own."""
    clause = CLAUSES.get(cause.clause)
    return cause.example.family != PROGRAM or (isinstance(clause, Program) and clause.id in WRITERS)


@cache
def _of_program(program: Program) -> str:
    return program_script(program)


def script_of(cause: Cause, folder: Path) -> str:
    """The script of a cause in ``folder``; empty where there is none.

    A script that was seen to show an entry of the ledger stays, though a later record has a smaller network of it. What
    no entry explains is known by the way alone in which it deviates, as other faults may: only its own network will do.
    """
    try:
        text = _file(cause, folder).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return text if cause.ledger or text.partition("\n")[0].endswith(_origin(cause)) else ""


def _file(cause: Cause, folder: Path) -> Path:
    return folder / slug(cause.clause) / f"{slug(cause.name)}.py"


def _origin(cause: Cause) -> str:
    """How the first line of a script ends, which says of which network it was made."""
    return f": {command(cause)}"


def missing(records: Archive, every: Iterable[Cause], folder: Path, torch: str) -> tuple[list[Cause], list[Cause]]:
    """The causes whose reduced script ``folder`` lacks: those that ``torch`` shows, and those that it does not."""
    showing = {i for i, run in enumerate(records.runs) if public_version(run.header.torch.version) == torch}
    lacking = [cause for cause in every if _is_reduced(cause) and not script_of(cause, folder)]
    here = [cause for cause in lacking if showing.intersection(cause.cases)]
    return here, [cause for cause in lacking if cause not in here]


def with_examples_of(records: Iterable[Folded], shown: Iterable[Cause]) -> list[Cause]:
    """The causes that ``records`` show, each with an example of theirs, since one of another release may not run there.

    What no entry explains is known by its example, which it keeps.
    """
    there = {(cause.clause, cause.name): cause for those in causes(archive(records)).values() for cause in those}
    return [there[cause.clause, cause.name] if cause.ledger else cause for cause in shown]


@dataclass(frozen=True)
class Made:
    """What became of the script of a cause: it has so many ``lines``, or cannot be written, and ``why``."""

    cause: Cause
    lines: int = 0
    why: str = ""


def make(causes: Iterable[Cause], folder: Path, corpus: Path, torch: str) -> Iterator[Made]:
    """Reduces what shows each cause on the ``torch`` at hand, and keeps its script, once it was seen to fail in a
    process of its own.

    Raises:
        UnwritableReports: ``folder`` cannot be written.
    """
    from hookcheck.repro.report import seen_to_show
    from hookcheck.topology.codec import TopologyError

    for cause in causes:
        path = _file(cause, folder)
        try:
            text = f"# torch {torch}{_origin(cause)}\n{reduced_script(cause, corpus)}"
            unseen = path.with_suffix(".unseen")
            unseen.parent.mkdir(parents=True, exist_ok=True)
            unseen.write_text(text, encoding="utf-8")
            seen_to_show(unseen, torch)
            unseen.replace(path)
        except (HookcheckError, TopologyError) as error:
            yield Made(cause, why=str(error))
        except OSError as error:
            raise UnwritableReports(folder, error) from None
        else:
            yield Made(cause, text.count("\n"))


def reduced_script(cause: Cause, corpus: Path) -> str:
    """The script of what shows a cause, reduced on the torch at hand for as long as it takes, so that a slower machine
    makes the same.

    Raises:
        HookcheckError: this torch does not show it.
    """
    from hookcheck.repro.cells import Wanted
    from hookcheck.repro.report import of_a_network, of_a_program
    from hookcheck.topology.codec import decode

    clause, example = CLAUSES[cause.clause], cause.example
    if isinstance(clause, Program):
        return of_a_program(clause, "cpu", cause.name, seconds=math.inf).script
    content = example.network.content if example.network else None
    topology = decode(content) if content else _of_corpus(corpus, example.topology)
    wanted = Wanted(topology, example.family, example.family, cause.clause, example.kind)
    return of_a_network(wanted, "cpu", cause=cause.name).script


def drop_others(causes: Iterable[Cause], folder: Path) -> None:
    """Removes the scripts in ``folder`` that belong to none of the causes."""
    wanted = {_file(cause, folder) for cause in causes if script_of(cause, folder)}
    for path in folder.glob("*/*"):
        if path not in wanted:
            path.unlink()


def _of_corpus(corpus: Path, topology: str) -> Topology:
    topology_of = _by_id(corpus).get(topology)
    if topology_of is None:
        raise HookcheckError(f"neither a record nor the corpus has network {topology}")
    return topology_of


@lru_cache(maxsize=1)
def _by_id(corpus: Path) -> dict[str, Topology]:
    from hookcheck.topology.codec import identify
    from hookcheck.topology.corpus import read
    from hookcheck.topology.families import FAMILIES

    return {identify(topology): topology for family in FAMILIES for topology in read(corpus, family)}
