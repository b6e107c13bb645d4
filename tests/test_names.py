"""Does every name say what the data is? None is a bare participle, and no two classes have one name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = {"told", "found", "own", "winding", "through", "kept", "made"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def files(*folders: str) -> dict[str, ast.Module]:
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return {path.relative_to(ROOT).as_posix(): parsed(path) for path in paths}


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that the code gives, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, (ast.ExceptHandler, ast.alias)):
            name = node.name if isinstance(node, ast.ExceptHandler) else node.asname
            yield from [(name, node.lineno)] if name else []


def classes(tree: ast.AST) -> Iterator[str]:
    """The classes of a module; those within a function are examples of that function alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from classes(node)


def banned(file: str, tree: ast.AST) -> list[str]:
    stem = Path(file).stem
    return [*([file] if stem.strip("_") in BANNED else [])] + [
        f"{file}:{line}: {name}" for name, line in names(tree) if name.strip("_") in BANNED
    ]


def shared(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for file, tree in trees.items():
        for name in classes(tree):
            places[name].append(file)
    return {name: where for name, where in places.items() if len(where) > 1}


def test_names_say_what_the_data_is() -> None:
    trees = files("src", "faults", "conformance", "tests")
    assert [line for file, tree in trees.items() for line in banned(file, tree)] == []


def test_each_class_has_its_own_name() -> None:
    assert shared(files("src", "faults", "conformance")) == {}


@pytest.mark.parametrize(
    "code",
    [
        "told = 1",
        "def _made(): ...",
        "def f(own): ...",
        "f = lambda kept: kept",
        "class A:\n    found: int = 0",
        "self.through = 1",
        "import x as winding",
        "try: ...\nexcept E as found: ...",
    ],
)
def test_a_name_that_says_nothing_is_seen(code: str) -> None:
    assert len(banned("a.py", ast.parse(code))) == 1


def test_a_module_and_a_shared_class_are_seen() -> None:
    assert banned("src/told.py", ast.parse("")) == ["src/told.py"]
    one, other = ast.parse("class A: ..."), ast.parse("if x:\n    class A: ...\ndef f():\n    class B: ...")
    assert shared({"one.py": one, "other.py": other, "third.py": ast.parse("class B: ...")}) == {
        "A": ["one.py", "other.py"]
    }
