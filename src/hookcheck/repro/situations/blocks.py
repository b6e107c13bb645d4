"""Statements of a script, some of which hold others, and two lists of them as one that asks which of them to run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Union

from hookcheck.repro.formatting import WIDTH


@dataclass(frozen=True)
class Block:
    """A line that ends with a colon, and the statements below it."""

    head: str
    body: tuple[Statement, ...]


Statement = Union[str, Block]

FLAG = "experiment"
"""The name for whether a run is the experiment."""


def parsed(lines: Iterable[str]) -> list[Statement]:
    """The statements that stand in lines, each of which is one."""
    result: list[Statement] = []
    inside: list[str] = []
    for line in [*filter(None, lines), ""]:
        if line.startswith("    "):
            inside.append(line[4:])
            continue
        if inside:
            head = result.pop()
            assert isinstance(head, str)
            result.append(Block(head, tuple(parsed(inside))))
            inside = []
        result += [line] if line else []
    return result


def rendered(statements: Sequence[Statement]) -> list[str]:
    """The lines of statements, with empty ones around functions, and blocks of one head as one."""
    lines: list[str] = []
    before: Statement = ""
    for statement in _joined(statements):
        if lines and (_defines(statement) or _defines(before)):
            lines.append("")
        if isinstance(statement, Block):
            lines += [statement.head, *(f"    {line}" if line else "" for line in rendered(statement.body))]
        else:
            lines.append(statement)
        before = statement
    return lines


def _joined(statements: Sequence[Statement]) -> list[Statement]:
    """Statements with those of neighbours that enter the same in one block."""
    result: list[Statement] = []
    for statement in statements:
        last = result[-1] if result else ""
        alike = isinstance(last, Block) and last.head == _head(statement) and last.head.startswith(("with ", "if "))
        if alike and isinstance(last, Block) and isinstance(statement, Block):
            result[-1] = Block(last.head, (*last.body, *statement.body))
        else:
            result.append(statement)
    return result


def _head(statement: Statement) -> str:
    return statement.head if isinstance(statement, Block) else statement


def _defines(statement: Statement) -> bool:
    return _head(statement).startswith("def ")


def merged(control: Sequence[Statement], experiment: Sequence[Statement]) -> list[Statement]:
    """The statements of both, those of one alone where it is asked which of them is meant."""
    heads = [[_head(statement) for statement in side] for side in (control, experiment)]
    result: list[Statement] = []
    for tag, i, j, k, m in SequenceMatcher(None, heads[0], heads[1], autojunk=False).get_opcodes():
        if tag == "equal":
            result += [_both(one, other) for one, other in zip(control[i:j], experiment[k:m])]
        else:
            result += _either(control[i:j], experiment[k:m])
    return result


def _both(control: Statement, experiment: Statement) -> Statement:
    if isinstance(control, Block) and isinstance(experiment, Block):
        return Block(experiment.head, tuple(merged(control.body, experiment.body)))
    return experiment


def _either(control: Sequence[Statement], experiment: Sequence[Statement]) -> Iterator[Statement]:
    if len(control) == len(experiment) == 1 and isinstance(control[0], str) and isinstance(experiment[0], str):
        line = _chosen(control[0], experiment[0])
        if line:
            yield line
            return
    if experiment:
        yield Block(f"if {FLAG}:", tuple(experiment))
    if control:
        yield Block("else:" if experiment else f"if not {FLAG}:", tuple(control))


def _chosen(control: str, experiment: str) -> str:
    """One line that gives a name one value or the other, where there is room for it."""
    name, _, value = control.partition(" = ")
    other_name, _, other = experiment.partition(" = ")
    line = f"{name} = {other} if {FLAG} else {value}"
    plain = re.fullmatch(r"\w+", name) and " if " not in value + other
    return line if name == other_name and value and plain and len(line) <= WIDTH - 8 else ""
