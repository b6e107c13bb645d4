"""The command that says which pairs of features the corpus reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import REPORTS, command
from hookcheck.cli.output import fields, show, table, watched
from hookcheck.cli.records import record_path

if TYPE_CHECKING:
    from hookcheck.coverage.members import Member
    from hookcheck.coverage.pairs import WordPair

_SCHEMAS = [
    fields(
        axis_a=("string", "an axis: one way in which networks under hooks differ"),
        word_a=("string", "a word of it"),
        axis_b=("string", "another axis, or that of contexts again"),
        word_b=("string", "a word of that"),
        topologies=("integer", "how many topologies of the corpus have both"),
        reason=("string", "why none has; empty where one has; 'possible, ...' where nothing stands in the way"),
        required=("boolean", "whether the corpus must have the pairs of these axes; else they are left to exploration"),
        choice=("string", "why they are required, or left to exploration"),
        may_be_missing=("string", "of one that is required and possible, why it may be missing; else empty"),
    ),
    fields(
        choices=("array", "words of three axes of networks, each with its axis"),
        topologies=("integer", "how many topologies of the corpus have all at one call of a module"),
        reason=("string", "why none has; empty where one has; 'possible, …' where nothing stands in the way"),
    ),
    fields(
        choices=("array", "a clause and words of one or two axes of networks, each with its axis"),
        cases=("integer", "in how many cases of the record the clause judged a network that has all of them"),
        reason=("string", "why in none; empty where in some"),
    ),
    fields(
        clause=("string", "the id of a clause that runs unchanged on hosts"),
        host=("string", "a module or an optimizer that torch made, or did something to"),
        reason=("string", "why the clause does not run on it; empty where it does"),
        without=("array", "patterns of its facts that are left out there"),
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
@click.option("--hosts", is_flag=True, help="Which clauses run on which hosts, instead.")
@click.option(
    "--judged", "record", metavar="RECORD", shell_complete=completing.records,
    help="What each clause judged in this record, a file or a version of torch, instead.",
)  # fmt: skip
@REPORTS
def coverage(triples: bool, situations: bool, hosts: bool, record: str | None, reports: Path, shape: str) -> None:
    """Tell which pairs of features the corpus reaches, and why not the others.

    The axes are hook kind, family, group of layers, grad mode, arity, None pattern, in-place, reuse, dtype, depth,
    context and class of tensor. Two features meet where one call of a module has both; two contexts, where one is
    within the other or beside it. Some pairs of axes are required: the corpus has each of their pairs that is possible,
    or there is a reason. The others are left to exploration.

    With --triples three features at a time are looked at: hook kind, context and tensor, and some axes with what hooks
    are given. None is required: they are left to exploration.

    With --situations the axes are those that hooks of every kind are met in: site, context, tensor, host, optimizer,
    what is done before, between forward and backward and in a hook, and the clause that judges it, by twos and some by
    threes.

    With --hosts it is which clauses run on modules and optimizers of other kinds, in the newest torch.

    With --judged RECORD it is what clauses found to judge in that run: by hook kind, context and class of tensor, by
    twos and threes.
    """
    if sum(map(bool, (triples, situations, hosts, record))) > 1:
        raise click.UsageError(
            "--triples, --situations, --hosts and --judged are each for themselves: give one of them"
        )
    if record:
        _by_clause(record_path(record, reports), shape)
    elif hosts:
        _on_hosts(shape)
    elif situations:
        _of_situations(shape)
    elif triples:
        _by_threes(shape)
    else:
        _of_networks(shape)


def _by_clause(path: Path, shape: str) -> None:
    from rich.console import Group

    from hookcheck.record.judged import BY_AXES, BY_CLAUSE, by_axes, by_clause, judged
    from hookcheck.record.reading import read_folded

    rows = tuple(judged(read_folded(path), (member.topology for member in chain.from_iterable(_corpus().values()))))
    show(
        (row.row for row in rows),
        shape,
        lambda: Group(table(by_axes(rows), BY_AXES), table(by_clause(rows), BY_CLAUSE)),
    )


def _on_hosts(shape: str) -> None:
    from dataclasses import asdict

    from rich.console import Group

    import hookcheck.clauses  # noqa: F401 -- declares the clauses
    from hookcheck.programs.on_hosts import BY_HOST, by_host, by_reason, clauses_on_hosts

    rows = tuple(clauses_on_hosts())
    show(
        map(asdict, rows),
        shape,
        lambda: Group(table(by_host(rows), BY_HOST), table(by_reason(rows), ("reason", "clauses"))),
    )


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

    from hookcheck.coverage import required
    from hookcheck.coverage.contexts import contexts_met
    from hookcheck.coverage.pairs import covered
    from hookcheck.coverage.sentences import CHOSEN, chosen, columns, counts, missing, required_and_missing, summary

    corpus = _corpus()
    members = tuple(chain.from_iterable(corpus.values()))
    pairs = (*covered(_watched(corpus)), *contexts_met(members))
    allowed = required.missing(pairs)

    def row(pair: WordPair) -> Mapping[str, Any]:
        choice = required.choice(pair.axis_a, pair.axis_b)
        more = {"required": choice.required, "choice": choice.why, "may_be_missing": allowed.get(pair, "")}
        return {**asdict(pair), **more}

    show(
        map(row, pairs),
        shape,
        lambda: Group(
            table(counts(pairs), columns()),
            *missing(pairs),
            "",
            table(chosen(pairs), CHOSEN),
            *required_and_missing(pairs),
            "",
            summary(pairs, len(members)),
        ),
    )


def _corpus() -> dict[str, tuple[Member, ...]]:
    """The networks of each family."""
    from hookcheck.coverage.members import members
    from hookcheck.suite import conformance_folder
    from hookcheck.topology.families import FAMILIES

    return {family: members(conformance_folder() / "corpus", family) for family in FAMILIES}


def _watched(corpus: dict[str, tuple[Member, ...]]) -> Iterator[Member]:
    """Each of them, with progress by family."""
    for family in watched(list(corpus), "coverage"):
        yield from corpus[family]


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
