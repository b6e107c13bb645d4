"""The command that says everything about one thing: a clause, an entry of the ledger, a topology."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.output import CLAUSE_FIELDS, Row, fields, sheet, show
from hookcheck.errors import HookcheckError

_SCHEMAS = [
    fields(what=("string", "clause"), **CLAUSE_FIELDS, ledger=("array", "ids of the ledger's entries that name it")),
    fields(
        what=("string", "ledger entry"),
        id=("string", "the entry's id"),
        clauses=("array", "the clauses that it concerns"),
        families=("array", "the families; all is one word for every family"),
        kinds=("array", "the hook kinds"),
        devices=("array", "the devices"),
        torch=("string", "the releases, as a version specifier"),
        when=("object", "the features that a subject must have, each with the words that will do"),
        instead=("array", "how it deviates"),
        says=("string", "a part of the text of the exception or warning; empty where there is none"),
        why=("string", "the reason"),
        link=("string", "what the reason rests on"),
        reviewed=("string", "the date of the last review"),
    ),
    fields(
        what=("string", "topology"),
        id=("string", "the topology's id"),
        where=("string", "its family; for one that is not in the corpus the record or file that holds it"),
        device=("string", "any, or the one kind of device that it is about"),
        since=("string", "the first torch release that can run it"),
        needs=("string", "what it uses that came with that release"),
        script=("string", "the program, which needs torch alone"),
    ),
]


@command("explain", _SCHEMAS)
@click.argument("id")
@REPORTS
def explain(id: str, reports: Path, shape: str) -> None:
    """Tell everything about a clause, an entry of the ledger, or a topology (the beginning of its id will do)."""
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.clause import CLAUSES
    from hookcheck.contract.ledger import load

    entries = {entry.id: entry for entry in load()}
    rows = [_clause(id, [entry.id for entry in entries.values() if id in entry.clauses])] if id in CLAUSES else []
    rows += [_entry(entries[id])] if id in entries else []  # what an upstream issue is about may be both
    for row in rows or [_topology(id, reports)]:
        script = f"\n{row['script']}".rstrip("\n") if "script" in row and shape == "pretty" else None
        facts = {name: value for name, value in row.items() if name != "script"}
        show([row], shape, lambda facts=facts: sheet(facts))  # type: ignore[misc]
        show((), shape, lambda script=script: script)  # type: ignore[misc]


def _clause(id: str, ledger: list[str]) -> Row:
    from hookcheck.contract.clause import CLAUSES, described

    return {"what": "clause", **described(CLAUSES[id]), "ledger": ledger}


def _entry(entry: Any) -> Row:
    lists = ("clauses", "kinds", "devices", "instead")
    return {
        "what": "ledger entry",
        "id": entry.id,
        "why": " ".join(entry.why.split()),
        "link": entry.link,
        **{name: list(getattr(entry, name)) for name in lists},
        "says": entry.says,
        "families": list(entry.families) or ["all"],
        "torch": str(entry.torch),
        "when": {key: list(words) for key, words in entry.when},
        "reviewed": entry.reviewed.isoformat(),
    }


def _topology(id: str, reports: Path) -> Row:
    from hookcheck.repro.lookup import find
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.codec import identify
    from hookcheck.topology.model import needs
    from hookcheck.topology.source import source

    try:
        found = find(id, conformance_folder() / "corpus", reports)
    except HookcheckError as error:
        raise HookcheckError(f"{id!r} is no clause and no entry of the ledger; as a topology: {error}") from None
    since, thing = needs(found.topology)
    return {
        "what": "topology",
        "id": identify(found.topology),
        "where": found.where,
        "device": found.topology.device,
        "since": since,
        "needs": thing,
        "script": source(found.topology).script(),
    }
