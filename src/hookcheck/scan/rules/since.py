"""Rules about releases: what the oldest torch that a program must run on does not have yet."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from packaging.version import Version

from hookcheck.scan.findings import ERROR, Hit, Scanned, ScanRule
from hookcheck.scan.registrations import Registration
from hookcheck.scan.releases import below
from hookcheck.scan.source import SourceFile

_ASKS = ("hasattr", "version", "signature")


def _api(scanned: Scanned) -> Iterator[Hit]:
    for registration in scanned.registrations:
        since = min((api.since for api in registration.apis), key=Version)
        yield from _too_old(scanned, registration, f"`{registration.name}`", since)


def _keyword(scanned: Scanned) -> Iterator[Hit]:
    for registration in scanned.registrations:
        for name in registration.options:
            brought = [api.keywords[name] for api in registration.apis if name in api.keywords]
            since = min(brought, key=Version)
            if Version(since) > max(Version(api.since) for api in registration.apis):  # else HKS003 says it all
                yield from _too_old(scanned, registration, f"`{name}` of `{registration.name}`", since)


def _too_old(scanned: Scanned, registration: Registration, what: str, since: str) -> Iterator[Hit]:
    old = below(since, scanned.minors)
    if old and not _guarded(scanned.source, registration.node):
        message = f"{what} came with torch {since}, and torch {old[0]} is to be supported as well"
        yield Hit(registration.node, message, registration.sure, registration.apis[0].link)


def _guarded(source: SourceFile, node: ast.AST) -> bool:
    """Whether the program asks for the release, or for the function, before it comes here."""
    for around in source.ancestors(node):
        if isinstance(around, (ast.If, ast.IfExp)) and any(word in _words(around.test) for word in _ASKS):
            return True
        if isinstance(around, ast.Try) and any(_catches(handler) for handler in around.handlers):
            return True
        # A function may end, or raise, for other releases before it comes here.
        body = around.body if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
        if any(isinstance(s, ast.If) and any(word in _words(s.test) for word in _ASKS) for s in body):
            return True
    return False


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(
        isinstance(n, ast.Name) and n.id in ("AttributeError", "TypeError", "Exception") for n in ast.walk(handler.type)
    )


def _words(test: ast.AST) -> str:
    names = (n.id if isinstance(n, ast.Name) else getattr(n, "attr", "") for n in ast.walk(test))
    return " ".join(names).lower()


RULES = (
    ScanRule(
        "HKS003",
        ERROR,
        "A function that registers hooks is newer than the oldest release in --torch.",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html",
        _api,
        torch=">=2.0,<2.16",
        clauses=(
            "TN-02",
            "BN-02",
            "GL-03",
        ),
        bad="""\
import torch

weight = torch.ones(2, requires_grad=True)
weight.register_post_accumulate_grad_hook(lambda parameter: print(parameter.grad))
""",
        good="""\
import torch

weight = torch.ones(2, requires_grad=True)
weight.register_hook(lambda parameter: print(parameter.grad))
""",
    ),
    ScanRule(
        "HKS004",
        ERROR,
        "An option of a registration is newer than the oldest release in --torch.",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook",
        _keyword,
        torch=">=2.0,<2.16",
        clauses=(
            "FW-10",
            "FW-15",
            "FW-17",
        ),
        bad="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_forward_hook(print, always_call=True)
""",
        good="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_forward_hook(print, prepend=True)
""",
    ),
)
