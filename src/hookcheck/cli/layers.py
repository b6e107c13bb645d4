"""The command that lists the modules of torch.nn."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

from hookcheck.cli.frame import command
from hookcheck.cli.index import index
from hookcheck.cli.output import fields, show, table

_SCHEMAS = [
    fields(
        name=("string", "the class in torch.nn"),
        state=("string", "covered, left-out, or not-offered by the torch that is installed"),
        reason=("string", "why it is left out or not offered; empty where it is covered"),
    )
]


@command("layers", _SCHEMAS)
def list_layers(shape: str) -> None:
    """List the modules of torch.nn: which a topology can hold, and why not the others."""
    known, there = index()["layers"], offered()
    rows = []
    for name in sorted({*known, *there}):
        reason = known.get(name, "newer than this hookcheck")
        lacking = bool(there) and name not in there and not reason
        state = "not-offered" if lacking else "left-out" if reason else "covered"
        rows.append(
            {"name": name, "state": state, "reason": "the torch that is installed lacks it" if lacking else reason}
        )
    show(rows, shape, lambda: table(rows, ("name", "state", "reason")))


def offered() -> frozenset[str]:
    """The modules that the torch that is installed offers, as its source lists them; empty where none is installed.

    The source is read, since importing torch takes seconds. A class that has no base is no module.
    """
    spec = find_spec("torch")
    folder = Path(spec.origin).with_name("nn") / "modules" if spec and spec.origin else None
    if folder is None or not (folder / "__init__.py").is_file():
        return frozenset()
    body = _parsed(folder / "__init__.py")
    names = [name for node in body if isinstance(node, ast.Assign) for name in _listed(node)]
    files = {alias.name: node.module for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    strange = [name for name in names if name not in index()["layers"] and files.get(name)]
    bare = {name for name in strange if _without_base(name, folder / f"{files[name]}.py")}
    return frozenset(names) - bare


def _parsed(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def _listed(node: ast.Assign) -> list[str]:
    """The names in ``__all__``, where it is that."""
    named = any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
    return list(ast.literal_eval(node.value)) if named else []


def _without_base(name: str, path: Path) -> bool:
    classes = (node for node in _parsed(path) if isinstance(node, ast.ClassDef)) if path.is_file() else ()
    return any(node.name == name and not node.bases for node in classes)
