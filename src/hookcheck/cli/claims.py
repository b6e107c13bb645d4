"""The command that answers what documents claim of hooks."""

from __future__ import annotations

from hookcheck.cli.frame import command
from hookcheck.cli.output import fields, show, table

_SCHEMAS = [
    fields(
        id=("string", "the claim's id"),
        statement=("string", "what is claimed, in one sentence"),
        answer=("string", "holds, refuted, or partly where some facts of it are refuted"),
        torch=("string", "the releases that the answer is for, as a version specifier"),
        source=("string", "where it is claimed, and what it is about"),
    )
]


@command("claims", _SCHEMAS)
def list_claims(shape: str) -> None:
    """Tell what documents claim of hooks, and on which releases torch does as they say.

    A claim holds, is refuted, or is partly refuted; one with several answers over the releases has a line for each.
    `hookcheck explain ID` names the entries of the ledger that say what torch does instead.
    """
    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.contract.claims import answers, claims
    from hookcheck.contract.ledger import load

    ledger = load()
    rows = [
        {"id": c.id, "statement": c.statement, "answer": a.answer, "torch": a.torch, "source": c.source}
        for c in claims()
        for a in answers(c, ledger)
    ]
    show(rows, shape, lambda: table(rows, ("id", "answer", "torch", "statement", "source")))
