"""What does a function need to stand alone? Whatever it uses of hookcheck's modules, however indirectly, as source.

Sources are read, not imported: what they need need not be installed.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Union

from hookcheck.repro.bare import bare

PACKAGE = "hookcheck"
LAZY = f"{PACKAGE}.probe.lazy"
"""What it offers is torch itself."""

LATE = re.compile(rf'import_module\("({PACKAGE}[\w.]*)"\)\.(\w+)')
"""How a program gets what it needs from a module of hookcheck that is imported late."""

ITSELF = re.compile(r"(?m)^ *(\w+) = \1\n")
"""What is left where a program gives it the name that it has."""

DECLARES = ("program", "fresh")
"""Decorators that a script does without: its function is no clause, and its process has compiled nothing yet."""

INSTEAD = {(f"{PACKAGE}.programs.processes", "of_two"): f"{PACKAGE}.repro.forking"}
"""What a script has from another module than its program."""

Import = Union[ast.Import, ast.ImportFrom]


@dataclass
class Alone:
    """What a function needs: lines of ``imports``, and bare ``definitions`` in an order in which they can stand.

    ``origins`` tells of each name that is defined the module that it is from.
    """

    imports: set[str] = field(default_factory=set)
    definitions: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)


def alone(module: str, name: str, given: dict[str, frozenset[str]]) -> Alone:
    """The function ``name`` of a module of hookcheck, with all that it needs.

    ``given`` are names by the module that defines them which need no definition, since they are there already.

    Raises:
        ValueError: it needs two things of one name, or what cannot stand alone.
    """
    return together([(module, name)], given)


def together(wanted: Iterable[tuple[str, str]], given: dict[str, frozenset[str]]) -> Alone:
    """The same of several names, each with its module."""
    collected, seen = Alone(), set[tuple[str, int]]()
    for module, name in wanted:
        _collect(module, name, given, collected, seen)
    return collected


def _collect(
    module: str, name: str, given: dict[str, frozenset[str]], collected: Alone, seen: set[tuple[str, int]]
) -> None:
    """Adds what ``name`` stands for in ``module`` to ``collected``, after whatever that needs."""
    module = INSTEAD.get((module, name), module)
    room = _room(module)
    if name in room.imports:
        statement, alias = room.imports[name]
        origin = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
        if name in given.get(origin, ()):
            return
        if origin == LAZY:
            collected.imports.add("import torch" if name == "torch" else f"from torch import {name}")
        elif origin.partition(".")[0] == PACKAGE:
            if alias.name not in (of := _room(origin)).imports and alias.name not in of.defined:
                raise ValueError(f"{module} needs all of {origin}.{alias.name}")
            if alias.asname:
                raise ValueError(f"{module} calls {origin}.{alias.name} by another name")
            _collect(origin, name, given, collected, seen)
        else:
            alias_text = ast.unparse(ast.alias(alias.name, alias.asname))
            collected.imports.add(f"from {origin} import {alias_text}" if origin else f"import {alias_text}")
    elif name in room.defined:
        if collected.origins.setdefault(name, module) != module:
            raise ValueError(f"{name} is another thing in {module} than in {collected.origins[name]}")
        place = room.defined[name]
        if (module, place) not in seen:
            if name in room.changed:
                raise ValueError(f"{module} changes {name} after its definition")
            seen.add((module, place))
            definition, names = _definition(module, place)
            for used in names:
                _collect(module, used, given, collected, seen)
            collected.definitions.append(definition)


@cache
def _definition(module: str, place: int) -> tuple[str, list[str]]:
    """What a statement of ``module`` defines, bare, and the names that it uses, in the order in which they stand."""
    room = _room(module)
    text = room.text(place)
    return bare(text, room.typed), sorted(_used(text), key=lambda used: (room.defined.get(used, -1), used))


@lru_cache(maxsize=256)
def _room(module: str) -> _Room:
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text(encoding="utf-8")
    late = {name: origin for origin, name in LATE.findall(text)}
    return _Room(module, ITSELF.sub("", LATE.sub(r"\2", text)), late)


@dataclass(frozen=True)
class _Room:
    """One module of hookcheck: its text, taken apart, and from where it gets names ``late``."""

    name: str
    source: str
    late: dict[str, str]

    @property
    def typed(self) -> bool:
        """Whether its annotations are objects, which somebody reads as it runs."""
        return not any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in self.body)

    @cached_property
    def body(self) -> list[ast.stmt]:
        return ast.parse(self.source).body

    @cached_property
    def imports(self) -> dict[str, tuple[Import, ast.alias]]:
        """What is imported, by name; inside of functions only what is hookcheck's own."""
        inside = (statement for node in self.body for statement in _own_imports(node))
        here = (node for node in self.body if isinstance(node, (ast.Import, ast.ImportFrom)))
        late = [ast.ImportFrom(origin, [ast.alias(name)], 0) for name, origin in self.late.items()]
        return {a.asname or a.name: (statement, a) for statement in (*inside, *here, *late) for a in statement.names}

    @cached_property
    def defined(self) -> dict[str, int]:
        """Which statements define names."""
        return {name: place for place, node in enumerate(self.body) for name in _defines(node)}

    @cached_property
    def changed(self) -> set[str]:
        """What is in statements that define nothing, and may change it: a definition alone is not all of that."""
        acts = (ast.For, ast.While, ast.With, ast.Expr, ast.AugAssign)
        return {n.id for node in self.body if isinstance(node, acts) for n in ast.walk(node) if isinstance(n, ast.Name)}

    def text(self, at: int) -> str:
        """The source of a statement without its declaration as a clause and its imports from hookcheck, but with the
        string that follows a constant."""
        node = self.body[at]
        last = node.end_lineno or node.lineno
        after = self.body[at + 1] if at + 1 < len(self.body) else None
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(after, ast.Expr):
            last = after.end_lineno or last
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        lines, gone = self.source.split("\n"), set[int]()
        for part in (*filter(_declares, decorators), *_own_imports(node)):
            end = part.end_lineno or part.lineno
            empty = isinstance(part, ast.ImportFrom) and not lines[end].strip()  # what sets imports apart
            gone |= set(range(part.lineno, end + 1 + empty))
        text = "\n".join(lines[n - 1] for n in range(first, last + 1) if n not in gone)
        return text.replace("  # fmt: skip", "")


def _own_imports(node: ast.stmt) -> list[ast.ImportFrom]:
    """The imports from hookcheck in a statement, or that it is."""
    imports = (part for part in ast.walk(node) if isinstance(part, ast.ImportFrom))
    return [part for part in imports if (part.module or "").partition(".")[0] == PACKAGE]


def _declares(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id in DECLARES


def _defines(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def _used(text: str) -> set[str]:
    """The names of its module that a definition uses, in annotations too."""
    used: set[str] = set()
    tables = [symtable.symtable(text, "<definition>", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        used |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global())}
    for node in ast.walk(ast.parse(text)):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if annotation is not None:
                used |= {part.id for part in ast.walk(annotation) if isinstance(part, ast.Name)}
    return used
