"""The command that answers whether one may upgrade torch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import DEVIATES, FINE, REPORTS, WRONG_INPUT, command, words
from hookcheck.cli.index import index, varying
from hookcheck.cli.names import one_of
from hookcheck.cli.output import Row, echo, fields, show, watched
from hookcheck.cli.records import complete_record, corpus_lengths, full_version, programs_of, records_by_version
from hookcheck.cli.support import statements, support_data
from hookcheck.errors import HookcheckError

if TYPE_CHECKING:
    from hookcheck.record.model import Record
    from hookcheck.report.upgrade import OwnChange, Upgrade

_SCHEMAS = [
    fields(
        what=("string", "verdict"),
        verdict=("string", "safe, safe with notes, do not upgrade, or cannot tell"),
        kinds=("array", "the hook kinds that were looked at; empty for all"),
        compared=("integer", "how many cases ran in both"),
        earlier=("object", "torch, commit, cuda, device, python, made, hookcheck and seed of the first record"),
        later=("object", "the same of the second"),
    ),
    fields(
        what=("string", "change"),
        number=("integer", "its number on the page"),
        worse=("boolean", "whether it is worse than before"),
        grave=("boolean", "whether it alone forbids the upgrade"),
        cost=("string", "what it costs the user of a hook; empty where it is no deviation"),
        clause=("string", "the clause's id; empty where it is about none"),
        kind=("string", "promise, claim, pin, unspecified, or empty"),
        kinds=("array", "the hook kinds or chapters that show it"),
        cases=("integer", "how many cases show it"),
        text=("string", "what has become of which promise, and where"),
        since=("string", "since which release; empty where no record tells"),
        do=("string", "filter, adapt, report or decide"),
        code=("string", "code or a command for that; empty where there is none"),
        link=("string", "what the reason rests on; empty where nobody has explained it"),
        repro=("string", "the command that writes a script which shows it"),
    ),
    fields(
        what=("string", "count"),
        kind=("string", "the hook kind"),
        context=("string", "eager, inside another context, compile, checkpoint or parallel"),
        ran=("integer", "how many cases ran in both"),
        worse=("integer", "how many causes are worse"),
    ),
    fields(
        what=("string", "answer"),
        question=("string", "a question"),
        lines=("array", "its answer"),
    ),
    fields(
        what=("string", "call site"),
        path=("string", "a file of yours"),
        line=("integer", "the line that registers a hook, or touches a private name"),
        kind=("string", "the hook kind, or the rule of `hookcheck scan`"),
        text=("string", "which changes concern it, or what the rule says"),
    ),
    fields(
        what=("string", "own model"),
        worse=("boolean", "whether it is worse on the later torch"),
        cost=("string", "what it means for who uses the hook"),
        text=("string", "what is otherwise for hooks on your model, and where"),
    ),
]


@command("upgrade", _SCHEMAS, shapes=("pretty", "markdown", "json"))
@click.option(
    "--from",
    "earlier",
    required=True,
    metavar="A",
    shell_complete=completing.records,
    help="The torch that you have: a version, or a record.",
)
@click.option(
    "--to",
    "later",
    required=True,
    metavar="B",
    shell_complete=completing.records,
    help="The torch that you want: a version, or a record.",
)
@click.option(
    "--kinds",
    callback=words(),
    default="",
    metavar="KIND,...",
    shell_complete=completing.kinds,
    help="Only these hook kinds.",
)
@click.option("--code", multiple=True, metavar="PATH", help="Your source code: which of its places are concerned.")
@click.option("--check", "target", metavar="MODULE:MAKE", help="Run your own model on both, as `hookcheck check` does.")
@click.option("--with", "packages", metavar="PACKAGES", default="", help="What --check needs beside torch.")
@click.option("--no-run", is_flag=True, help="Do not make a record that is missing; say how to.")
@REPORTS
def upgrade(
    earlier: str,
    later: str,
    kinds: tuple[str, ...],
    code: tuple[str, ...],
    target: str | None,
    packages: str,
    no_run: bool,
    reports: Path,
    shape: str,
) -> int:
    """Answer on one page whether one may upgrade torch from A to B, and what there is to do.

    A version that has no record is run in an environment of its own, which uv makes and which is removed afterwards:
    some minutes, and up to 10 GiB of disk. Exit code: 0 safe, or safe with notes; 1 do not upgrade; 2 cannot tell (also
    for wrong input).

    With --check your own model is run on both as well, and the page says what is otherwise for hooks on it; where that
    is a silent wrong value, a hook that is not called, or an exception, the answer is: do not upgrade.
    """
    from hookcheck.cli.check import parted
    from hookcheck.record.compare import compare
    from hookcheck.report.upgrade import CANNOT_TELL, NOT_SAFE, Known
    from hookcheck.report.upgrade import upgrade as answered

    known = index()
    for kind in kinds:
        one_of(kind, known["kinds"], "hook kind")
    if target:
        parted(target)  # before minutes go into records
    if packages and not target:
        raise HookcheckError("--with is for the environments of --check: name your model, or leave it out")
    earlier, later = (_provided(name, reports, no_run) for name in (earlier, later))
    before, after = (complete_record(name, reports) for name in watched((earlier, later), "reading"))
    comparison = compare(before, after, kinds, programs_of(kinds), corpus_lengths().get, varying())
    facts = Known(
        statements=list(statements(support_data(reports))),
        ledger={entry["id"]: entry for entry in known["ledger"]},
        hooks={clause["id"]: clause["hooks"] for clause in known["clauses"] if clause["program"]},
    )
    model_changes = _model_changes(target, before, after, packages, kinds) if target else None
    answer = answered(before, after, comparison, kinds, facts, model_changes)
    sites = list(_sites(code, answer, facts.hooks)) if code else None
    show(_rows(answer, sites or ()), "json" if shape == "json" else "pretty", lambda: _page(answer, sites, shape))
    return {NOT_SAFE: DEVIATES, CANNOT_TELL: WRONG_INPUT}.get(answer.verdict, FINE)


def _provided(name: str, reports: Path, no_run: bool) -> str:
    """The record ``name``, or the version that is meant, whose record is made where there is none."""
    from hookcheck.record.model import build_version
    from hookcheck.releases.environment import EnvironmentFailed, environment, release_of
    from hookcheck.run.ending import check_writable
    from hookcheck.suite import requirement

    if Path(name).is_file() or "/" in name or ".jsonl" in name:
        return name
    name = full_version(build_version(name), records_by_version(reports))
    if name in records_by_version(reports):
        return name
    release = release_of(name)
    if no_run:
        raise HookcheckError(
            f"torch {name} has no record in {reports / 'records'}; in an environment with Python {release.python} and "
            f"{', '.join([f'torch=={release.torch}', *release.pins])} run `hookcheck run --reports {reports}`"
        )
    check_writable(reports)
    echo(f"hookcheck: torch {name} has no record: making an environment, then running the suite on it", err=True)
    try:
        with environment(release, [requirement()]) as python:
            done = subprocess.run(
                [str(python), "-m", "hookcheck", "run", "--reports", str(reports.resolve()), "-q"],
                stdout=sys.stderr, check=False,
            )  # fmt: skip
    except EnvironmentFailed as error:
        yourself = "make the record yourself: in an environment with that torch run `hookcheck run`"
        raise EnvironmentFailed(f"{error}; {yourself}") from None
    if name not in records_by_version(reports):
        raise HookcheckError(
            f"the run on torch {name} left no record (exit code {done.returncode}); what it had is in "
            f"{reports / 'partial'}, and what it said is above"
        )
    return name


def _model_changes(
    target: str, before: Record, after: Record, packages: str, kinds: tuple[str, ...]
) -> tuple[OwnChange, ...]:
    """What is otherwise for hooks on the user's model; each release has its own environment where it is not here."""
    from hookcheck.cli.check import requirements
    from hookcheck.models.across import across
    from hookcheck.record.model import public_version
    from hookcheck.report.upgrade import OwnChange

    torches = [public_version(record.header.torch.version) for record in (before, after)]
    options = [word for kind in kinds for word in ("--kinds", kind)]
    comparison = across(
        target, torches, requirements(packages), options, lambda text: echo(f"hookcheck: {text}", err=True)
    )
    return tuple(OwnChange(each.worse, each.cost, str(each)) for each in comparison.differences)


def _page(answer: Upgrade, sites: list[Row] | None, shape: str) -> Any:
    from hookcheck.report.upgrade_page import page

    text = page(answer, sites)
    if shape == "markdown":
        return text.rstrip("\n")
    from rich.markdown import Markdown

    return Markdown(text, hyperlinks=False)


def _rows(answer: Upgrade, sites: Any) -> Iterator[Row]:
    yield {
        "what": "verdict",
        "verdict": answer.verdict,
        "kinds": list(answer.kinds),
        "compared": answer.compared,
        "earlier": _header(answer.before),
        "later": _header(answer.after),
    }
    for change in answer.changes:
        cause = change.group.cause
        yield {
            "what": "change",
            "number": change.number,
            "worse": cause.worse,
            "grave": change.grave,
            "cost": cause.cost,
            "clause": cause.clause,
            "kind": change.kind,
            "kinds": list(change.group.kinds),
            "cases": change.group.cases,
            **{name: getattr(change, name) for name in ("text", "since", "do", "code", "link", "repro")},
        }
    for kind, counts in answer.counts.items():
        for context, (ran, worse) in counts.items():
            yield {"what": "count", "kind": kind, "context": context, "ran": ran, "worse": worse}
    for model_change in answer.model_changes or ():
        yield {"what": "own model", "worse": model_change.worse, "cost": model_change.cost, "text": model_change.text}
    for each in answer.answers:
        yield {"what": "answer", "question": each.question, "lines": list(each.lines)}
    yield from sites


def _header(header: Any) -> dict[str, Any]:
    return {
        "torch": header.torch.version,
        "commit": header.torch.git,
        "cuda": header.torch.cuda,
        "device": header.device,
        "python": header.environment.get("python", ""),
        "made": header.started,
        "hookcheck": header.hookcheck,
        "seed": header.plan.seed,
    }


def _sites(paths: tuple[str, ...], answer: Upgrade, hooks: Any) -> Iterator[Row]:
    """The places of the user's code that a change concerns, and what the scan knows of them."""
    from hookcheck.record.model import public_version
    from hookcheck.scan import scanning
    from hookcheck.scan.releases import MINORS
    from hookcheck.scan.writing import registration_row, said

    ends = [public_version(header.torch.version).split(".")[:2] for header in (answer.before, answer.after)]
    first, last = ([int(part) for part in end] for end in ends)
    minors = tuple(minor for minor in MINORS if first <= [int(part) for part in minor.split(".")] <= last)
    concerned: dict[str, list[str]] = {}
    for change in answer.changes:
        of_programs = hooks.get(change.group.example.topology, ())
        for kind in {*change.group.kinds, *of_programs}:
            concerned.setdefault(kind, []).append(str(change.number))
    for name in scanning.files(paths):
        result = scanning.scan(name, None, minors, scanning.chosen([], []))
        for registration in result.scanned.registrations if result.scanned else ():
            row = registration_row(name, registration)
            numbers = [n for kind in row["kind"].split(" or ") for n in concerned.get(kind, ())]
            if numbers:
                text = f"change {', '.join(dict.fromkeys(numbers))}"
                yield {"what": "call site", "path": name, "line": row["line"], "kind": row["kind"], "text": text}
        for each in result.findings:
            yield {"what": "call site", "path": name, "line": each.line, "kind": each.rule, "text": said(each)}
