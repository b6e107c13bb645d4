"""What a shell offers where the name of a hook kind, a clause, a cell or a record is due."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from hookcheck.cli.index import index
from hookcheck.cli.records import in_order, records_by_version
from hookcheck.errors import HookcheckError

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def kinds(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Hook kinds and chapters; of several with commas between them, the last."""
    ahead, comma, last = incomplete.rpartition(",")
    names = index()
    return [
        CompletionItem(f"{ahead}{comma}{name}")
        for name in (*names["kinds"], *names["chapters"])
        if name.startswith(last)
    ]


def from_index(*parts: str) -> Completer:
    """Completes the names of these parts of the index."""

    def names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        known = index()
        named = (each["id"] if isinstance(each, dict) else each for part in parts for each in known[part])  # type: ignore[literal-required]
        return [CompletionItem(name) for name in dict.fromkeys(named) if name.startswith(incomplete)]

    return names


def one_of(*names: str) -> Completer:
    """Completes these names, beside which others will do."""
    return lambda context, parameter, incomplete: [CompletionItem(n) for n in names if n.startswith(incomplete)]


def files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leaves files and folders to the shell."""
    return [CompletionItem(incomplete, type="file")]


def releases(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The releases of torch that there are; of several with commas between them, the last."""
    from hookcheck.releases import releases

    ahead, comma, last = incomplete.rpartition(",")
    return [CompletionItem(f"{ahead}{comma}{r.torch}") for r in releases() if r.torch.startswith(last)]


def cells(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The clauses that deviate on the torch that is installed, and the cells of the one that is written out."""
    deviating = list(_deviating(context.params.get("reports") or Path("reports")))
    clauses = dict.fromkeys(row["clause"] for row in deviating)
    names = list(clauses) or [clause["id"] for clause in index()["clauses"]]
    chosen = incomplete.partition("/")[0]
    places = ((row["kind"], cause) for row in deviating if row["clause"] == chosen for cause in row["causes"])
    names += sorted(
        {f"{chosen}/{family}/{kind}" for kind, cause in places for family in cause["families"] if family != "program"}
    )
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _deviating(reports: Path) -> Iterator[dict[str, Any]]:
    """The statements on what deviates, of the newest release if no torch is installed; none without support data."""
    from packaging.version import Version

    from hookcheck.cli.support import statements, support_data  # completes its own arguments by this module

    def holds_here(since: str, until: str | None) -> bool:
        if here is None:
            return until is None
        return Version(since) <= here and (until is None or here < Version(until))

    try:
        here = Version(version("torch"))
    except PackageNotFoundError:
        here = None
    with contextlib.suppress(HookcheckError):
        for row in statements(support_data(reports)):
            if row["causes"] and holds_here(row["since"], row["otherwise_after"]):
                yield dict(row)


def records(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The versions of torch that have a record; files where none begins so."""
    versions = in_order(records_by_version(context.params.get("reports") or Path("reports")))
    items = [CompletionItem(version) for version in versions if version.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="file")]
