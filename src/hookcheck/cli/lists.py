"""What is there? The commands that list clauses, claims, faults, families, layers and what the corpus reaches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from hookcheck.cli.frame import command, installed_torch
from hookcheck.cli.output import Row, show, table, watched
from hookcheck.errors import HookcheckError


@command("list")
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


@command("claims")
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


@command("kill-matrix")
def kill_matrix(shape: str) -> None:
    """Put faults into torch's hook code, one after the other, and tell which clauses catch each.

    The faults are in a clone of the repository, in faults/. Clauses that catch none are listed last, with reasons.
    """
    installed_torch()
    sys.path.insert(0, str(_clone()))
    from importlib import import_module

    matrix = import_module("faults.matrix")

    def rows() -> Iterator[Row]:
        caught: set[str] = set()
        for fault in watched(matrix.faults(), "kill-matrix"):
            with contextlib.redirect_stdout(sys.stderr):  # some programs print
                clauses = matrix.caught_by(fault)
            caught.update(clauses)
            yield {"fault": fault.what, "clauses": list(clauses), "reason": ""}
        for id, reason in matrix.questioned(caught).items():
            yield {"fault": "", "clauses": [id], "reason": reason}

    show(rows(), shape, lambda: table(rows(), ("fault", "clauses", "reason")))


def _clone() -> Path:
    """The clone of hookcheck's repository that this is.

    Raises:
        HookcheckError: this is not a clone.
    """
    from hookcheck.suite import conformance_folder

    clone = conformance_folder().parent
    if not (clone / "faults").is_dir():
        raise HookcheckError("the faults are in a clone of hookcheck's repository; run this command there")
    return clone


@command("families")
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


@command("layers")
def list_layers(shape: str) -> None:
    """List the modules of torch.nn: which a topology can hold, and why not the others."""
    from hookcheck.topology.catalogue import layer_classes
    from hookcheck.topology.excused import EXCUSED

    offered = _offered_layers()
    rows = []
    for name in sorted({*layer_classes(), *EXCUSED, *offered}):
        state, reason = "left-out", EXCUSED.get(name, "newer than this hookcheck")
        if name in layer_classes():
            there = not offered or name in offered
            state, reason = (
                ("covered", "") if there else ("not-offered", f"torch {installed_torch().__version__} lacks it")
            )
        rows.append({"name": name, "state": state, "reason": reason})
    show(rows, shape, lambda: table(rows, ("name", "state", "reason")))


def _offered_layers() -> frozenset[str]:
    """The public modules of the torch that is installed; empty where none is."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return frozenset()
    nn = installed_torch().nn
    found = (name for name, c in vars(nn).items() if isinstance(c, type) and issubclass(c, nn.Module))
    return frozenset(name for name in found if not name.startswith("_"))


@command("coverage")
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
