"""A file of source code with its syntax tree, parents, scopes, imports and the comments that ignore findings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Union

from hookcheck.scan.notebooks import SUFFIX, code_of

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_IGNORE = re.compile(r"#\s*hookcheck:\s*ignore(?:\[([^\]]*)\])?")


class Unreadable(Exception):
    """A file that cannot be scanned; the message says why, in one line."""


@dataclass(frozen=True)
class Ignore:
    """A comment that silences findings on its line: those with one of ``ids``, or all if there are none."""

    line: int
    column: int
    ids: tuple[str, ...]


class SourceFile:
    """The text of one file and what can be asked of its tree."""

    def __init__(self, path: str, data: bytes) -> None:
        """Parses ``data``.

        Raises:
            Unreadable: it is not text, or not Python that this interpreter can parse, or no notebook.
        """
        self.path = path
        try:
            data = code_of(data) if path.endswith(SUFFIX) else data
            self.encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            self.text = data.decode(self.encoding)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.tree = ast.parse(self.text)
        except SyntaxError as error:
            where = f" in line {error.lineno}" if error.lineno else ""
            raise Unreadable(f"not Python that this interpreter can parse{where}: {error.msg}") from None
        except (UnicodeDecodeError, LookupError):
            raise Unreadable("not text in the encoding that it declares") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise Unreadable(f"it cannot be parsed: {error or type(error).__name__}") from None

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their ends, cut where the parser cuts them."""
        return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", self.text)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of each node of the tree."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes, those further up first."""
        return list(ast.walk(self.tree))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around ``node``, innermost first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function around ``node``."""
        return next((a for a in self.ancestors(node) if isinstance(a, _FUNCTIONS)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around ``node``."""
        return next((a for a in self.ancestors(node) if isinstance(a, ast.ClassDef)), None)

    def scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        """The scopes in which a name at ``node`` is looked up, innermost first; a class only for its own body."""
        inside = False
        for around in self.ancestors(node):
            if isinstance(around, _FUNCTIONS):
                yield around
                inside = True
            elif isinstance(around, ast.Module) or (isinstance(around, ast.ClassDef) and not inside):
                yield around

    @cached_property
    def scope_bodies(self) -> dict[ast.AST, list[ast.AST]]:
        """For each scope the nodes that lie in it and in no scope inside of it."""
        bodies: dict[ast.AST, list[ast.AST]] = {}
        for node in self.nodes:
            scope = next(
                (a for a in self.ancestors(node) if isinstance(a, (*_FUNCTIONS, ast.ClassDef, ast.Module))), None
            )
            if scope is not None:
                bodies.setdefault(scope, []).append(node)
        return bodies

    @cached_property
    def imports(self) -> dict[str, str]:
        """What each imported name stands for, as a dotted path."""
        names: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    names[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return names

    @cached_property
    def uses_torch(self) -> bool:
        """Whether the file imports torch."""
        return any(path.split(".")[0] in ("torch", "torchvision") for path in self.imports.values())

    def dotted(self, node: ast.AST | None) -> str:
        """The dotted path that an expression names, with imports resolved; empty for any other expression."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.imports.get(node.id, node.id), *reversed(parts)])

    @cached_property
    def ignores(self) -> tuple[Ignore, ...]:
        """The comments that ignore findings."""
        if "hookcheck:" not in self.text:
            return ()
        ignores = []
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            match = _IGNORE.match(token.string) if token.type == tokenize.COMMENT else None
            if match:
                ids = tuple(id.strip() for id in (match[1] or "").split(",") if id.strip())
                ignores.append(Ignore(token.start[0], token.start[1] + 1, ids))
        return tuple(ignores)

    def column(self, line: int, offset: int) -> int:
        """The column, counted in characters from 1, of a byte offset of the tree."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return len(text.encode()[:offset].decode(errors="replace")) + 1
