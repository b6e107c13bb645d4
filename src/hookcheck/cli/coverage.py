"""The command that says which pairs of features the corpus reaches."""

from __future__ import annotations

import click

from hookcheck.cli.frame import command
from hookcheck.cli.output import fields, show, table, watched

_SCHEMAS = [
    fields(
        axis_a=("string", "an axis: one way in which networks under hooks differ"),
        word_a=("string", "a word of it"),
        axis_b=("string", "another axis"),
        word_b=("string", "a word of that"),
        topologies=("integer", "how many topologies of the corpus have both at one call of a module"),
        reason=("string", "why none has; empty where one has; 'possible, ...' where nothing stands in the way"),
    ),
    fields(
        choices=("array", "choices on two or three axes of situations, each with its axis"),
        situations=("integer", "how many situations make all of them"),
        reason=("string", "why none does; empty where one does; 'possible, ...' where nothing stands in the way"),
    ),
]


@command("coverage", _SCHEMAS)
@click.option("--situations", is_flag=True, help="Of the situations that programs run, by twos and threes, instead.")
def coverage(situations: bool, shape: str) -> None:
    """Tell which pairs of features the corpus reaches, and why not the others.

    The axes are hook kind, family, group of layers, grad mode, arity, None pattern, in-place, reuse, dtype, depth,
    context and class of tensor. Two features meet where one call of a module has both.

    With --situations the axes are those that hooks of every kind are met in: site, context, tensor, host, optimizer,
    what is done before, between forward and backward and in a hook, by twos and some by threes.
    """
    _of_situations(shape) if situations else _of_networks(shape)


def _of_networks(shape: str) -> None:
    from dataclasses import asdict

    from rich.console import Group

    from hookcheck.coverage.pairs import covered
    from hookcheck.coverage.sentences import columns, counts, missing, summary
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


def _of_situations(shape: str) -> None:
    from rich.console import Group

    from hookcheck.programs.situations.corpus import read
    from hookcheck.programs.situations.met import counts, meetings, reasons

    rows = tuple(meetings(read()))
    show(
        (meeting.row for meeting in rows),
        shape,
        lambda: Group(
            table(counts(rows), ("axes", "reached", "ruled out", "possible")),
            table(reasons(rows), ("reason", "choices")),
        ),
    )
