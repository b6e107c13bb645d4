"""The command that lists the clauses."""

from __future__ import annotations

from hookcheck.cli.frame import command
from hookcheck.cli.output import CLAUSE_FIELDS, fields, show, table

_SCHEMAS = [
    fields(
        **CLAUSE_FIELDS,
        state=("string", "judged, shown (never judged), or left-out where no clause speaks of the sentence"),
        reason=("string", "why it is left out; empty where it is not"),
    )
]


@command("list", _SCHEMAS)
def list_clauses(shape: str) -> None:
    """List the clauses of the contract, and the documented sentences that have none."""
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.clause import CLAUSES, UNSPECIFIED, described
    from hookcheck.contract.left_out import LEFT_OUT

    blank = dict.fromkeys(("class", "statement", "since", "source"), "")
    rows = [
        {**described(clause), "state": "shown" if clause.rank == UNSPECIFIED else "judged", "reason": ""}
        for clause in CLAUSES.values()
    ]
    rows += [{"id": id, **blank, "kinds": [], "state": "left-out", "reason": reason} for id, reason in LEFT_OUT.items()]
    shown = [{**row, "statement": row["statement"] or row["reason"]} for row in rows]
    show(rows, shape, lambda: table(shown, ("id", "class", "since", "state", "statement", "source")))
