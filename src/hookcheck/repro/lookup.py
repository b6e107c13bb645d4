"""Which topology is meant? The one whose id begins so, in the corpus or in a record; or the one in a file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hookcheck.errors import HookcheckError
from hookcheck.oracle.expected import Expected
from hookcheck.record.errors import RecordError
from hookcheck.record.reading import read as read_record
from hookcheck.record.reading import record_files
from hookcheck.topology.codec import decode, identify
from hookcheck.topology.corpus import read as read_corpus
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Topology
from hookcheck.topology.source import source
from hookcheck.topology.values import values


@dataclass(frozen=True)
class Match:
    """A topology and where it was found: a family of the corpus, a record, or a file."""

    topology: Topology
    where: str


def find(case: str, corpus: Path, reports: Path) -> Match:
    """The topology that ``case`` names: an id or the beginning of one, a file of JSON, or ``-`` for standard input.

    Ids are looked up in the folder ``corpus``, then among the counterexamples in the records below ``reports``.

    Raises:
        HookcheckError: there is none, or there are several; or the file holds no topology.
    """
    if case == "-":
        return Match(_parsed(sys.stdin.read(), "standard input"), "standard input")
    if Path(case).is_file():
        return Match(_parsed(_text(Path(case)), case), case)
    if not re.fullmatch("[0-9a-f]{1,16}", case):
        raise HookcheckError(f"{case!r} is neither a file nor (the beginning of) a topology id, which is hexadecimal")
    by_id = {identify(f.topology): f for f in _corpus(corpus) if identify(f.topology).startswith(case)}
    if not by_id:
        by_id = {identify(f.topology): f for f in _counterexamples(reports, case)}
    if not by_id:
        raise HookcheckError(
            f"no topology of the corpus, and no counterexample in the records below {reports}, has an id that begins "
            f"with {case!r}"
        )
    if len(by_id) > 1:
        some = ", ".join(sorted(by_id)[:4])
        raise HookcheckError(f"{case!r} is the beginning of {len(by_id)} ids, among them {some}; give more of it")
    return next(iter(by_id.values()))


def _corpus(folder: Path) -> Iterator[Match]:
    for family in FAMILIES:
        yield from (Match(topology, family) for topology in read_corpus(folder, family))


def _counterexamples(reports: Path, case: str) -> Iterator[Match]:
    """The networks in records whose id begins with ``case``, programs aside, which have no content; a file that is no
    sound record is `hookcheck validate`'s to name."""
    for path in (path for folder in sorted(reports.glob("*")) for path in record_files(folder)):
        try:
            record = read_record(path)
        except RecordError:
            continue
        examples = (e for e in record.counterexamples if e.content and e.topology.startswith(case))
        yield from (Match(decode(example.content), str(path)) for example in examples)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HookcheckError(f"{path} cannot be read: {error}") from None


def _parsed(text: str, where: str) -> Topology:
    try:
        topology = decode(json.loads(text))
    except ValueError as error:
        raise HookcheckError(f"{where} is not JSON: {error}") from None
    try:  # decode looks at names alone; here what a person wrote by hand is tried out
        source(topology)
        list(Expected(topology, values(topology)).gradients)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise HookcheckError(f"the topology in {where} does not run: {type(error).__name__}: {error}") from None
    return topology
