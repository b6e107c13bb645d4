"""The command that lists the families of networks."""

from __future__ import annotations

from hookcheck.cli.frame import command
from hookcheck.cli.index import index
from hookcheck.cli.output import entries, fields, show

_SCHEMAS = [
    fields(
        name=("string", "the family's name"),
        statement=("string", "what its topologies share"),
        corpus_size=("integer", "how many topologies of it the corpus holds"),
    )
]


@command("families", _SCHEMAS)
def list_families(shape: str) -> None:
    """List the families of topologies."""
    from hookcheck.suite import corpus_size

    rows = [
        {"name": name, "statement": statement, "corpus_size": corpus_size(name)}
        for name, statement in index()["families"].items()
    ]
    heads = ((f"{row['name']}  {row['corpus_size']} in the corpus", str(row["statement"])) for row in rows)
    show(rows, shape, lambda: entries(heads))
