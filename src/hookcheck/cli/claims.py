"""The command that answers what documents claim of hooks."""

from __future__ import annotations

from pathlib import Path

from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.output import fields, show, table
from hookcheck.errors import HookcheckError

_SCHEMAS = [
    fields(
        id=("string", "the claim's id"),
        statement=("string", "what is claimed, in one sentence"),
        answer=("string", "holds, refuted, or partly where some facts of it are refuted"),
        torch=("array", "the releases that the answer is for: only such as have a record"),
        source=("string", "where it is claimed, and what it is about"),
    )
]


@command("claims", _SCHEMAS)
@REPORTS
def list_claims(reports: Path, shape: str) -> None:
    """Tell what documents claim of hooks, and on which releases torch does as they say.

    A claim holds, is refuted, or is partly refuted; one with several answers over the releases has a line for each.
    Only releases that have a record are spoken of. `hookcheck explain ID` names the entries of the ledger that say what
    torch does instead.
    """
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.claims import answers, claims
    from hookcheck.contract.ledger import load

    ran, ledger = _with_record(reports / "records"), load()
    rows = [
        {"id": c.id, "statement": c.statement, "answer": a.answer, "torch": list(a.torch), "source": c.source}
        for c in claims()
        for a in answers(c, ledger, ran)
    ]
    shown = [{**row, "torch": ", ".join(row["torch"])} for row in rows]
    show(rows, shape, lambda: table(shown, ("id", "answer", "torch", "statement", "source")))


def _with_record(folder: Path) -> list[str]:
    """The releases of the list that have a record in ``folder``.

    Raises:
        HookcheckError: none has.
    """
    from hookcheck.record.reading import record_files
    from hookcheck.releases import releases

    names = [path.name for path in record_files(folder)]
    ran = [each.torch for each in releases() if any(name.startswith(f"torch-{each.torch}-") for name in names)]
    if not ran:
        raise HookcheckError(
            f"{folder} has no records, and a claim is answered for releases that were run: "
            "run it in a clone, or `hookcheck run` first"
        )
    return ran
