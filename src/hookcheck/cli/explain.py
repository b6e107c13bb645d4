"""The command that says everything about one thing: a clause, an entry of the ledger, a topology, or another name."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.index import NameIndex, index
from hookcheck.cli.names import listed, nearest
from hookcheck.cli.output import CLAUSE_FIELDS, Row, fields, sheet, show
from hookcheck.cli.support import statements, support_data
from hookcheck.errors import HookcheckError

_RELEASES = ("array", "what came out in which releases: hook kind, device, state, since, last, note, records")
_SCHEMAS = [
    fields(
        what=("string", "clause"),
        **CLAUSE_FIELDS,
        chapter=("string", "the chapter that it belongs to"),
        ledger=("array", "ids of the ledger's entries that name it"),
        releases=_RELEASES,
    ),
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
        varies=("string", "why it shows now and then; empty where it always shows"),
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
    fields(
        what=("string", "family"),
        id=("string", "its name"),
        statement=("string", "what its topologies share"),
        corpus_size=("integer", "how many topologies of it the corpus holds"),
        deviates=("array", "the clauses that deviate in it on the newest release, each with the hook kind"),
    ),
    fields(
        what=("string", "hook kind"),
        id=("string", "its name"),
        register=("string", "the function that registers it"),
        scope=("string", "what it is registered on"),
        call=("string", "what it is called for"),
        since=("string", "the torch release that it came with"),
        acts=("boolean", "whether it changes something, rather than looks on"),
        clauses=("integer", "how many clauses speak of it, programs that register it among them"),
        newest=("object", "how many of them come out how on the newest release"),
    ),
    fields(
        what=("string", "layer"),
        id=("string", "the class in torch.nn"),
        state=("string", "covered, or left-out"),
        reason=("string", "why it is left out; empty where it is covered"),
    ),
    fields(
        what=("string", "chapter"),
        id=("string", "its name"),
        about=("string", "what it is about"),
        clauses=("array", "its clauses"),
    ),
    fields(
        what=("string", "kept out"),
        id=("string", "the condition that keeps something from being drawn or judged, by where it is written"),
        why=("string", "the reason"),
        clauses=("array", "the clauses that speak of it all the same"),
        entries=("array", "the entries of the ledger for the fault of torch that it is there for"),
    ),
    fields(
        what=("string", "release"),
        id=("string", "the version of torch"),
        python=("string", "the Python that it is run with"),
        pins=("array", "what it needs beside torch"),
        records=("array", "its records"),
        states=("object", "how many clauses with a hook kind come out how"),
        changed=("array", "what came out otherwise in the release that was run before"),
    ),
]


KEPT_OUT = "kept-out"
"""The name of the table of all conditions that keep something from being drawn or judged."""


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in _names(index()) if name.startswith(incomplete)]


@command("explain", _SCHEMAS)
@click.argument("id", shell_complete=_complete)
@REPORTS
def explain(id: str, reports: Path, shape: str) -> None:
    """Tell everything about a clause, and how it came out on every release; about an entry of the ledger, a family, a
    hook kind, a chapter, a layer, a release of torch; about all that cites an upstream issue (pytorch#61446);
    about all conditions that keep something from being drawn or judged (kept-out); or about a topology (the beginning
    of its id will do)."""
    rows = list(_named(id, index(), reports)) or [_topology(id, reports)]
    for row in rows:
        script = f"\n{row['script']}".rstrip("\n") if "script" in row and shape == "pretty" else None
        facts = {name: _words(name, value) for name, value in row.items() if name != "script"}
        show([row], shape, lambda facts=facts: sheet(facts))  # type: ignore[misc]
        show((), shape, lambda script=script: script)  # type: ignore[misc]


def _words(name: str, value: Any) -> Any:
    """What people are shown of a field."""
    if name not in ("releases", "changed"):
        return value
    from hookcheck.report.statement import period

    clauses = (f"{row['clause']} with " if name == "changed" else "" for row in value)
    sentences = (f"{c}{row['kind']} ({row['device']}): {row['state']} {period(row)}" for c, row in zip(clauses, value))
    notes = (f"; {row['note']}" if row["note"] else "" for row in value)
    return "\n".join(f"{head}{note}" for head, note in zip(sentences, notes))


def _names(known: NameIndex) -> Iterator[str]:
    yield from (clause["id"] for clause in known["clauses"])
    yield from (entry["id"] for entry in known["ledger"])
    yield KEPT_OUT
    for group in (known["families"], known["kinds"], known["chapters"], known["layers"], _releases()):
        yield from group


def _releases() -> dict[str, Any]:
    from hookcheck.releases import releases

    return {release.torch: release for release in releases()}


def _named(id: str, known: NameIndex, reports: Path) -> Iterator[Row]:
    """What has this name, or cites the upstream issue that it is: a word may be a kind and a chapter."""
    said = list(statements(_data(reports)))
    for clause in known["clauses"]:
        if clause["id"] == id or _cites(clause["source"], id):
            rows = [{name: row[name] for name in _STATED} for row in said if row["clause"] == clause["id"]]
            ledger = [entry["id"] for entry in known["ledger"] if clause["id"] in entry["clauses"]]
            about = {name: clause[name] for name in (*CLAUSE_FIELDS, "chapter")}
            yield {"what": "clause", **about, "ledger": ledger, "releases": rows}
    entries = (entry for entry in known["ledger"] if entry["id"] == id or _cites(entry["link"], id))
    yield from ({"what": "ledger entry", **entry} for entry in entries)
    if id in known["families"]:
        yield _family(id, known["families"][id], said)
    if id in known["kinds"]:
        yield _kind(id, known, said)
    if id in known["layers"]:
        reason = known["layers"][id]
        yield {"what": "layer", "id": id, "state": "left-out" if reason else "covered", "reason": reason}
    if id in known["chapters"]:
        clauses = [clause["id"] for clause in known["clauses"] if clause["chapter"] == id]
        yield {"what": "chapter", "id": id, "about": known["chapters"][id], "clauses": clauses}
    if id in _releases():
        yield _release(id, said)
    if id == KEPT_OUT:
        yield from ({"what": "kept out", **exclusion} for exclusion in known["kept_out"])


def _cites(source: str, id: str) -> bool:
    """Whether a source or link is the upstream issue or pull request ``id``, such as pytorch#61446."""
    number = re.fullmatch(r"(?:pytorch)?#(\d+)", id)
    return number is not None and re.search(rf"(?:#|/issues/|/pull/){number[1]}\b", source) is not None


_STATED = (
    *("clause", "kind", "device", "state", "since", "last", "otherwise_before", "otherwise_after", "note", "records"),
)


def _data(reports: Path) -> Any:
    """The support data; without it the rest is told all the same."""
    with contextlib.suppress(HookcheckError):
        return support_data(reports)
    return {"clauses": {}}


def _newest(said: list[Row]) -> list[Row]:
    return [row for row in said if row["otherwise_after"] is None]


def _family(name: str, statement: str, said: list[Row]) -> Row:
    from hookcheck.suite import corpus_size

    here = (row for row in _newest(said) if any(name in cause["families"] for cause in row["causes"]))
    deviates = [f"{row['clause']} with {row['kind']}" for row in here]
    return {
        "what": "family", "id": name, "statement": statement, "corpus_size": corpus_size(name), "deviates": deviates,
    }  # fmt: skip


def _kind(name: str, known: NameIndex, said: list[Row]) -> Row:
    about = {field: known["kinds"][name][field] for field in ("register", "scope", "call", "since", "acts")}
    clauses = {clause["id"] for clause in known["clauses"] if name in clause["hooks"]}
    programs = {clause["id"] for clause in known["clauses"] if clause["program"]} & clauses
    states = Counter(row["state"] for row in _newest(said) if row["kind"] == name or row["clause"] in programs)
    return {"what": "hook kind", "id": name, **about, "clauses": len(clauses), "newest": dict(states)}


def _release(version: str, said: list[Row]) -> Row:
    from packaging.version import Version

    release, here = _releases()[version], Version(version)
    covering = [row for row in said if Version(row["since"]) <= here <= Version(row["last"])]
    ran = sorted({name for row in covering for name in row["records"] if name.split("-")[1] == version})
    begun = [row for row in covering if row["since"] == version and row["otherwise_before"]] if ran else []
    return {
        "what": "release",
        "id": version,
        "python": release.python,
        "pins": list(release.pins),
        "records": ran,
        "states": dict(Counter(row["state"] for row in covering)) if ran else {},
        "changed": [{name: row[name] for name in _STATED} for row in begun],
    }


def _topology(id: str, reports: Path) -> Row:
    if not re.fullmatch("[0-9a-f]{4,16}|-", id) and not Path(id).is_file():
        near = nearest(id, _names(index()))
        hint = f"; did you mean {listed(near)}?" if near else "; `hookcheck list` shows the clauses"
        raise HookcheckError(f"{id!r} is no clause, no entry of the ledger and no other name that is known{hint}")
    from hookcheck.repro.lookup import find
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.codec import identify
    from hookcheck.topology.needs import needs
    from hookcheck.topology.source import source

    match = find(id, conformance_folder() / "corpus", reports)
    since, thing = needs(match.topology)
    return {
        "what": "topology",
        "id": identify(match.topology),
        "where": match.where,
        "device": match.topology.device,
        "since": since,
        "needs": thing,
        "script": source(match.topology).script(),
    }
