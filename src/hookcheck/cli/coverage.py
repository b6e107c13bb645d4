"""The command that says which pairs of features the corpus reaches."""

from __future__ import annotations

from hookcheck.cli.frame import command
from hookcheck.cli.output import fields, show, table, watched

_SCHEMAS = [
    fields(
        axis_a=("string", "an axis: one way in which networks under hooks differ"),
        word_a=("string", "a word of it"),
        axis_b=("string", "another axis"),
        word_b=("string", "a word of that"),
        topologies=("integer", "how many topologies of the corpus have both at one call of a module"),
        reason=("string", "why none has; empty where one has; 'possible, …' where nothing stands in the way"),
    )
]


@command("coverage", _SCHEMAS)
def coverage(shape: str) -> None:
    """Tell which pairs of features the corpus reaches, and why not the others.

    The axes are hook kind, family, group of layers, grad mode, arity, None pattern, in-place, reuse, dtype and depth.
    Two features meet where one call of a module has both.
    """
    from dataclasses import asdict

    from rich.console import Group

    from hookcheck.coverage.pairs import covered
    from hookcheck.coverage.told import columns, counts, missing, summary
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.corpus import read
    from hookcheck.topology.families import FAMILIES

    corpus = {family: read(conformance_folder() / "corpus", family) for family in FAMILIES}
    pairs = covered((family, t) for family in watched(list(corpus), "coverage") for t in corpus[family])
    topologies = sum(map(len, corpus.values()))
    show(
        map(asdict, pairs),
        shape,
        lambda: Group(table(counts(pairs), columns()), *missing(pairs), "", summary(pairs, topologies)),
    )
