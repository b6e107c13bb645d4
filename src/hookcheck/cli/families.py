"""The command that lists the families of networks."""

from __future__ import annotations

from hookcheck.cli.frame import command
from hookcheck.cli.output import fields, show, table

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
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.corpus import read
    from hookcheck.topology.families import FAMILIES

    corpus = conformance_folder() / "corpus"
    rows = [
        {"name": family.name, "statement": family.statement, "corpus_size": len(read(corpus, family.name))}
        for family in FAMILIES.values()
    ]
    show(rows, shape, lambda: table(rows, ("name", "corpus_size", "statement")))
