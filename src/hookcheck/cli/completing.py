"""What a shell offers where the name of a hook kind, a chapter or a record is due."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from hookcheck.cli.index import index
from hookcheck.cli.records import in_order, records_by_version


def kinds(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Hook kinds and chapters; of several with commas between them, the last."""
    ahead, comma, last = incomplete.rpartition(",")
    names = index()
    return [
        CompletionItem(f"{ahead}{comma}{name}")
        for name in (*names["kinds"], *names["chapters"])
        if name.startswith(last)
    ]


def chapters(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Chapters."""
    return [CompletionItem(name) for name in index()["chapters"] if name.startswith(incomplete)]


def records(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The versions of torch that have a record; files where none begins so."""
    versions = in_order(records_by_version(context.params.get("reports") or Path("reports")))
    items = [CompletionItem(version) for version in versions if version.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="file")]
