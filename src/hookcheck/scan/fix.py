"""Legacy backward hooks rewritten as full ones, where the program cannot tell the difference."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from hookcheck.scan.findings import Scanned, extent
from hookcheck.scan.notebooks import SUFFIX
from hookcheck.scan.registrations import Registration
from hookcheck.scan.releases import below
from hookcheck.scan.source import Function


@dataclass(frozen=True)
class Fixed:
    """The new text of a file, how many places changed, and for the others (line, column) why they did not."""

    text: str
    count: int
    left: tuple[tuple[int, int, str], ...]


def fix(scanned: Scanned) -> Fixed:
    """Replaces ``register_backward_hook`` by ``register_full_backward_hook``, and the global one, where that is safe.

    As a module refuses hooks of both kinds, a file is rewritten wholly or not at all. Nothing but the name changes.
    """
    legacy = sorted(
        (r for r in scanned.registrations if r.kind in ("backward", "global_backward") and not r.fallback),
        key=lambda r: extent(scanned.source, r.node)[:2],
    )
    reasons = {registration.node: _hindrance(scanned, registration) for registration in legacy}
    if any(reasons.values()):
        mixed = "another legacy hook of the file cannot be rewritten, and a module refuses hooks of both kinds"
        left = tuple((*extent(scanned.source, r.node)[:2], reasons[r.node] or mixed) for r in legacy)
        return Fixed(scanned.source.text, 0, left)
    lines = list(scanned.source.lines)
    for registration in reversed(legacy):
        line, column, _, _ = extent(scanned.source, registration.node)
        text = lines[line - 1]
        rest = text[column - 1 :].replace("backward", "full_backward", 1)
        lines[line - 1] = text[: column - 1] + rest
    return Fixed("".join(lines), len(legacy), ())


def _hindrance(scanned: Scanned, registration: Registration) -> str:
    """Why a legacy hook cannot be rewritten; empty if it can."""
    if scanned.source.path.endswith(SUFFIX):
        return "it is in a notebook"
    if below("1.8", scanned.minors):
        return "torch 1.7 has no full backward hooks"
    if not registration.sure:
        return "it is not certain that it is called on a module"
    if not isinstance(registration.node.func, ast.Attribute):
        return "it is called by another name" if registration.method else "the function is imported by its name"
    if len(registration.hooks) != 1:
        return "the hook's definition is not in the file, or not the only one of its name"
    hook = registration.hooks[0]
    if hook.takes != (3, 3):
        return "the hook does not take three arguments"
    names = hook.parameters
    if any(isinstance(node, ast.Name) and node.id == names[1] for node in _inside(hook.function)):
        return f"the hook uses `{names[1]}`, which is not the same for a full hook"
    if hook.generates or any(not _is_none(value) for value in hook.returns):
        return "the hook returns something"
    if _changes_in_place(scanned):
        return "the file changes something in place, which full hooks refuse around a hooked module"
    return ""


def _inside(function: Function) -> list[ast.AST]:
    """All nodes of a function, of those inside of it as well, without its parameters."""
    parts: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    return [node for part in parts for node in ast.walk(part)]


def _is_none(node: ast.expr) -> bool:
    """Whether a value that a hook returns certainly is None."""
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.Call):
        called = node.func
        return (isinstance(called, ast.Name) and called.id == "print") or (
            isinstance(called, ast.Attribute) and called.attr in ("append", "update", "extend")
        )
    return False


def _changes_in_place(scanned: Scanned) -> bool:
    return any(
        isinstance(node, ast.keyword)
        and node.arg == "inplace"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
        for node in scanned.source.nodes
    )
