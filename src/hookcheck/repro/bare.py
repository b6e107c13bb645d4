"""The source of a definition as a script has it: bare of types, docstrings and remarks to tools."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hookcheck.repro.editing import Place, end, start

REMARKS = re.compile(r"  # (?:noqa|type: ignore)[^\n]*")
"""What a comment tells tools."""


def bare(text: str, typed: bool = False) -> str:
    """A definition without docstrings, and without annotations unless it is ``typed``; comments stay, and so do the
    annotations in the body of a class, which make the fields of a dataclass."""
    text = REMARKS.sub("", text)
    lines = text.split("\n")
    for (row, column), (end_row, end_column), new in sorted(_cuts(ast.parse(text), typed), reverse=True):
        ahead, behind = lines[row - 1].encode()[:column].decode(), lines[end_row - 1].encode()[end_column:].decode()
        joined = f"{ahead}{new}{behind}"
        lines[row - 1 : end_row] = [joined] if joined.strip() else []
    text = re.sub(r"(?m)^ +$", "", "\n".join(lines))
    return re.sub(r"(?m)^( *(?:def|class) .*:)\n\n", r"\1\n", text).strip("\n")


def _cuts(tree: ast.Module, typed: bool) -> Iterator[tuple[Place, Place, str]]:
    """What is taken out: from where to where, and what stands there instead."""
    nodes = list(ast.walk(tree))
    fields = {part for node in nodes if isinstance(node, ast.ClassDef) for part in node.body}
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not typed:
            yield from _annotations(node.args)
            if node.returns is not None:
                yield _arrow(node), end(node.returns), ""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            yield start(node.body[0]), end(node.body[0]), "" if len(node.body) > 1 else "pass"
        if isinstance(node, ast.AnnAssign) and node.value is not None and not typed and node not in fields:
            yield end(node.target), start(node.value), " = "
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and not typed:
            yield from _untyped(node, node.func)
        if isinstance(node, ast.Expr) and node in tree.body and isinstance(node.value, ast.Constant):
            yield start(node), end(node), ""


CONTAINERS = {"list": "[]", "dict": "{}", "set": "set()", "defaultdict": "", "Counter": ""}
"""What is made of a class that may name the types in it, and how it is written where it is empty."""


def _untyped(call: ast.Call, of: ast.Subscript) -> Iterator[tuple[Place, Place, str]]:
    """What makes a container, without the types in it."""
    name = of.value.id if isinstance(of.value, ast.Name) else ""
    if name in CONTAINERS and CONTAINERS[name] and not call.args and not call.keywords:
        yield start(call), end(call), CONTAINERS[name]
    elif name in CONTAINERS:
        yield end(of.value), end(of), ""


def _annotations(arguments: ast.arguments) -> Iterator[tuple[Place, Place, str]]:
    """The annotations of arguments, with the space around the sign of a default."""
    ordered = [*arguments.posonlyargs, *arguments.args]
    defaults: dict[str, ast.expr] = {a.arg: d for a, d in zip(reversed(ordered), reversed(arguments.defaults))}
    defaults.update({a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d is not None})
    for argument in (*ordered, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.annotation is not None:
            default = defaults.get(argument.arg)
            if default is not None:
                yield start(argument), start(default), f"{argument.arg}="
            else:
                yield start(argument), end(argument), argument.arg


def _arrow(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Place:
    """Where ``-> type`` begins, the space before it included; it stands on the line of the type."""
    assert node.returns is not None
    return node.returns.lineno, node.returns.col_offset - len(" -> ")
