"""The command that says which pairs of features the corpus reaches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hookcheck.cli.frame import command
from hookcheck.cli.output import fields, show, table, watched

if TYPE_CHECKING:
    from hookcheck.topology.model import Topology

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
        choices=("array", "words of three axes of networks, each with its axis"),
        topologies=("integer", "how many topologies of the corpus have all at one call of a module"),
        reason=("string", "why none has; empty where one has; 'possible, …' where nothing stands in the way"),
    ),
    fields(
        choices=("array", "choices on two or three axes of situations, each with its axis"),
        situations=("integer", "how many situations make all of them"),
        reason=("string", "why none does; empty where one does; 'possible, ...' where nothing stands in the way"),
    ),
]


@command("coverage", _SCHEMAS)
@click.option("--triples", is_flag=True, help="Of some features by threes, instead.")
@click.option("--situations", is_flag=True, help="Of the situations that programs run, by twos and threes, instead.")
def coverage(triples: bool, situations: bool, shape: str) -> None:
    """Tell which pairs of features the corpus reaches, and why not the others.

    The axes are hook kind, family, group of layers, grad mode, arity, None pattern, in-place, reuse, dtype, depth,
    context and class of tensor. Two features meet where one call of a module has both.

    With --triples three features at a time are looked at: hook kind, context and tensor, and some axes with what hooks
    are given.

    With --situations the axes are those that hooks of every kind are met in: site, context, tensor, host, optimizer,
    what is done before, between forward and backward and in a hook, by twos and some by threes.
    """
    _of_situations(shape) if situations else _by_threes(shape) if triples else _of_networks(shape)


def _by_threes(shape: str) -> None:
    from rich.console import Group

    from hookcheck.coverage.pairs import triples
    from hookcheck.coverage.sentences import THREES, by_reason, by_threes

    rows = tuple(triples(_watched(_corpus())))
    show(
        (triple.row for triple in rows),
        shape,
        lambda: Group(table(by_threes(rows), THREES), table(by_reason(rows), ("reason", "triples"))),
    )


def _of_networks(shape: str) -> None:
    from dataclasses import asdict

    from rich.console import Group

    from hookcheck.coverage.pairs import covered
    from hookcheck.coverage.sentences import columns, counts, missing, summary

    corpus = _corpus()
    pairs, topologies = covered(_watched(corpus)), sum(map(len, corpus.values()))
    show(
        map(asdict, pairs),
        shape,
        lambda: Group(table(counts(pairs), columns()), *missing(pairs), "", summary(pairs, topologies)),
    )


def _corpus() -> dict[str, tuple[Topology, ...]]:
    """The topologies of each family."""
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.corpus import read
    from hookcheck.topology.families import FAMILIES

    return {family: read(conformance_folder() / "corpus", family) for family in FAMILIES}


def _watched(corpus: dict[str, tuple[Topology, ...]]) -> Iterator[tuple[str, Topology]]:
    """Each topology with its family."""
    for family in watched(list(corpus), "coverage"):
        yield from ((family, topology) for topology in corpus[family])


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
