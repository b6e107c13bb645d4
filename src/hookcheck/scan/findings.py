"""What a rule says about a place in a file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hookcheck.scan.registrations import Registration
from hookcheck.scan.source import SourceFile

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Scanned:
    """A file as the rules see it, with the minor releases of torch that it must run on (none where nobody says)."""

    source: SourceFile
    registrations: tuple[Registration, ...]
    minors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hit:
    """A place that a rule speaks of; without a link of its own the rule's is meant."""

    node: ast.AST
    message: str
    sure: bool = True
    link: str = ""


@dataclass(frozen=True)
class ScanRule:
    """One thing that is known to go wrong: stable id, severity, sentence, link, and two examples an edit apart.

    ``clauses`` of the contract say what holds there, and since which release.

    ``bad`` is a program that it speaks of, ``good`` the same put right; ``needs_torch`` rules are silent without
    ``--torch``, which their examples set to ``torch``.
    """

    id: str
    severity: str
    sentence: str
    link: str
    check: Callable[[Scanned], Iterable[Hit]]
    bad: str
    good: str
    torch: str = ""
    clauses: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScanFinding:
    """A rule at a place: lines and columns from 1, the end exclusive."""

    rule: str
    severity: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    sure: bool
    link: str


def findings(rule: ScanRule, scanned: Scanned) -> Iterator[ScanFinding]:
    """What a rule finds in a file."""
    for hit in rule.check(scanned):
        line, column, end_line, end_column = extent(scanned.source, hit.node)
        yield ScanFinding(
            rule.id, rule.severity, scanned.source.path, line, column, end_line, end_column, hit.message, hit.sure,
            hit.link or rule.link,
        )  # fmt: skip


def extent(source: SourceFile, node: ast.AST) -> tuple[int, int, int, int]:
    """First line and column, last line and column of a node; of a method's call those of its name and arguments.

    A chain of calls over several lines is so reported where the method is named.
    """
    place = node.func if isinstance(node, ast.Call) else node
    end_line, end_offset = node.end_lineno or 1, node.end_col_offset or 0  # type: ignore[attr-defined]
    if isinstance(place, ast.Attribute):
        last = place.end_lineno or 1
        start = source.column(last, place.end_col_offset or 0) - len(place.attr)
        return last, start, end_line, source.column(end_line, end_offset)
    line, offset = place.lineno, place.col_offset  # type: ignore[attr-defined]
    return line, source.column(line, offset), end_line, source.column(end_line, end_offset)
