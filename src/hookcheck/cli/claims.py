"""The command that answers what documents claim of hooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.index import index
from hookcheck.cli.output import Row, entries, fields, show
from hookcheck.errors import HookcheckError

NOT_RUN = "not run"
"""The answer for a release whose record does not have the claim."""

_SCHEMAS = [
    fields(
        id=("string", "the claim's id"),
        statement=("string", "what is claimed, in one sentence"),
        answer=("string", "holds, refuted, partly where some facts of it are refuted, or not run"),
        torch=("array", "the releases that the answer is for: only such as have a record"),
        source=("string", "where it is claimed, and what it is about"),
    )
]


@command("claims", _SCHEMAS)
@REPORTS
def list_claims(reports: Path, shape: str) -> None:
    """Tell what documents claim of hooks, and on which releases torch does as they say.

    A claim holds, is refuted, or is partly refuted; one with several answers over the releases has a line for each.
    Only releases that have a record are spoken of; a claim that a record does not have is not run. `hookcheck explain
    ID` names the entries of the ledger that say what torch does instead.
    """
    rows = list(_rows(_with_record(reports)))
    items = ((f"{r['id']}  {r['answer']} ({', '.join(r['torch'])})", f"{r['statement']} [{r['source']}]") for r in rows)
    show(rows, shape, lambda: entries(items))


def _rows(ran: Mapping[str, frozenset[str]]) -> Iterator[Row]:
    for claim in index()["claims"]:
        answers = {
            torch: said if claim["id"] in ran[torch] else NOT_RUN
            for torch, said in claim["answers"].items()
            if torch in ran
        }
        about = {name: claim[name] for name in ("id", "statement", "source")}
        for answer, stretch in groupby((torch for torch in ran if torch in answers), key=lambda torch: answers[torch]):
            yield {**about, "answer": answer, "torch": list(stretch)}


def _with_record(reports: Path) -> dict[str, frozenset[str]]:
    """The releases of the list that have a record, each with the ids of the clauses that its records judge by.

    Raises:
        HookcheckError: none has.
    """
    from hookcheck.cli.records import records_by_version
    from hookcheck.record.reading import clauses_of
    from hookcheck.releases import releases

    known = records_by_version(reports)
    ran = {
        each.torch: frozenset().union(*map(clauses_of, known[each.torch])) for each in releases() if each.torch in known
    }
    if not ran:
        raise HookcheckError(
            f"{reports / 'records'} has no records, and a claim is answered for releases that were run: "
            "`hookcheck run` first"
        )
    return ran
