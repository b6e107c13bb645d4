"""Rules about what should not be called or touched at all: legacy hooks, private names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookcheck.scan.findings import WARNING, Hit, Scanned, ScanRule
from hookcheck.scan.private import PRIVATE
from hookcheck.scan.source import SourceFile

_LEGACY = ("backward", "global_backward")


def _legacy(scanned: Scanned) -> Iterator[Hit]:
    for registration in scanned.registrations:
        if registration.kind in _LEGACY and not registration.fallback:
            full = registration.name.replace("backward", "full_backward")
            message = f"`{registration.name}` is the legacy kind, whose grad_input is often wrong: use `{full}`"
            yield Hit(registration.node, message, registration.sure)


def _private(scanned: Scanned) -> Iterator[Hit]:
    source = scanned.source
    classes = [node for node in source.nodes if isinstance(node, ast.ClassDef)]
    defined = {m.name for c in classes for m in c.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef))}
    defined |= {
        n.attr for n in source.nodes
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
        and isinstance(n.value, ast.Name) and n.value.id == "self"
    }  # fmt: skip
    for node in source.nodes:
        for place, name in _named(source, node):
            if name in PRIVATE and name not in defined:
                since, remark, link = PRIVATE[name]
                message = f"`{name}` is private to torch; it is as it is since torch {since}: {remark}"
                yield Hit(place, message, source.uses_torch, link)


def _named(source: SourceFile, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The names that a node takes from something: an attribute, in a string, or imported from torch."""
    if isinstance(node, ast.Attribute):
        parent = source.parents.get(node)
        yield (parent if isinstance(parent, ast.Call) and parent.func is node else node), node.attr
    elif isinstance(node, ast.Call):
        yield node, _by_string(node)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
        yield from ((node, alias.name) for alias in node.names)


def _by_string(node: ast.Call) -> str:
    """The private name in ``getattr(x, "_backward_hooks")`` or ``setattr``; ``hasattr`` alone relies on nothing."""
    if not (isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr") and len(node.args) > 1):
        return ""
    value = node.args[1]
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


RULES = (
    ScanRule(
        "HKS001",
        WARNING,
        "A legacy backward hook receives the gradients of the last operation only, which often are not the module's.",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_backward_hook",
        _legacy,
        clauses=(
            "P2-12",
            "LB-03",
        ),
        bad="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
""",
        good="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
""",
    ),
    ScanRule(
        "HKS002",
        WARNING,
        "A private name of torch's hooks is used, which may change in any release.",
        "https://github.com/pytorch/pytorch/pull/131690",
        _private,
        clauses=("U-21",),
        bad="""\
import torch

layer = torch.nn.Linear(2, 2)
print(len(layer._forward_hooks))
""",
        good="""\
import torch

layer = torch.nn.Linear(2, 2)
print(hasattr(layer, "_forward_hooks"))
""",
    ),
)
