"""What hooks does a code base register, and what is known to go wrong with them? The command ``scan``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hookcheck.cli import completing
from hookcheck.cli.frame import DEVIATES, FINE, command
from hookcheck.cli.output import echo, fields, watched, wrapped
from hookcheck.errors import HookcheckError

if TYPE_CHECKING:
    from hookcheck.scan.scanning import Result

_MANY = 200
"""From so many files on a bar says how far the scan is."""


_SCHEMAS = [
    fields(
        rule=("string", "the rule's id"),
        severity=("string", "error, warning or note"),
        path=("string", "the file"),
        line=("integer", "the first line of the place, from 1"),
        column=("integer", "its first column, from 1"),
        end_line=("integer", "the last line of the place"),
        end_column=("integer", "the column after its last"),
        message=("string", "what is wrong there"),
        sure=("boolean", "whether the receiver was inferred"),
        link=("string", "what the rule rests on"),
        clauses=("array", "the clauses that say what holds there, for `hookcheck explain`"),
    ),
    fields(
        path=("string", "the file"),
        line=("integer", "the line of the registration, from 1"),
        column=("integer", "its column, from 1"),
        kind=("string", "the hook kind, or all that it can be"),
        call=("string", "the function or method that registers"),
        receiver=("string", "what it is registered on; empty where that is unknown"),
        sure=("boolean", "whether the receiver was inferred"),
        hook=("string", "the hook's expression; two for saved tensors"),
        options=("object", "the options that are given, such as prepend"),
    ),
    fields(path=("string", "a file that was not scanned"), unread=("string", "why not")),
]


@command("scan", _SCHEMAS, piped="pretty", shapes=("pretty", "json", "sarif", "github"))
@click.argument("paths", nargs=-1, required=True, shell_complete=completing.files)
@click.option("--torch", "specifier", help="Releases that the code must run on, such as '>=2.4,<2.16'.")
@click.option(
    "--select", multiple=True, help="Only rules whose id begins so; may be given several times, or with commas."
)
@click.option("--ignore", multiple=True, help="Not the rules whose id begins so.")
@click.option("--registrations", is_flag=True, help="List every registration of a hook instead of findings.")
@click.option("--fix", "mend", is_flag=True, help="Rewrite legacy backward hooks as full ones where that is safe.")
def scan(
    paths: tuple[str, ...], specifier: str | None, select: tuple[str, ...], ignore: tuple[str, ...],
    registrations: bool, mend: bool, shape: str,
) -> int:  # fmt: skip
    """Find the hooks that Python files register, and what is known to go wrong with them.

    PATHS are files, folders, or - for standard input. Nothing of them is imported, and torch is not needed.
    `# hookcheck: ignore[ID]` at the end of a line ignores a finding there, `# hookcheck: ignore` all.
    Ends with 1 if there are findings or files that could not be scanned.
    """
    from hookcheck.scan import scanning
    from hookcheck.scan.releases import allowed

    if mend and (scanning.STDIN in paths or registrations):
        raise HookcheckError("--fix rewrites files: give files or folders, and no --registrations")
    if registrations and shape not in ("pretty", "json"):
        raise HookcheckError(f"--registrations has no format {shape}: take pretty or json")
    minors = allowed(specifier) if specifier is not None else ()
    rules = scanning.chosen(_listed(select), _listed(ignore))
    names = scanning.files(paths)
    results = []
    for name in watched(names, "scanning") if len(names) >= _MANY else names:
        data = sys.stdin.buffer.read() if name == scanning.STDIN else None
        result = scanning.scan(name, data, minors, rules)
        results.append(scanning.scan(name, None, minors, rules) if mend and _mended(result) else result)
    (_show_registrations if registrations else _show_findings)(results, shape)
    wrong = any(result.unread or (result.findings and not registrations) for result in results)
    return DEVIATES if wrong else FINE


def _listed(given: Sequence[str]) -> list[str]:
    return [id.strip() for part in given for id in part.split(",")]


def _mended(result: Result) -> bool:
    """Rewrites a file where ``--fix`` can, says what it could not, and tells whether it changed."""
    if result.scanned is None:
        return False
    from hookcheck.scan.fix import fix

    fixed = fix(result.scanned)
    for line, column, why in fixed.left:
        echo(f"{result.path}:{line}:{column}: not fixed: {why}", err=True)
    if not fixed.count:
        return False
    temporary = Path(f"{result.path}.hookcheck")
    try:
        temporary.write_bytes(fixed.text.encode(result.scanned.source.encoding))
        temporary.chmod(os.stat(result.path).st_mode)
        temporary.replace(os.path.realpath(result.path))
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise HookcheckError(f"{result.path} cannot be rewritten: {error.strerror}") from None
    echo(f"{result.path}: {fixed.count} fixed", err=True)
    return True


def _show_findings(results: list[Result], shape: str) -> None:
    from hookcheck.scan import writing
    from hookcheck.scan.rules import RULES

    findings = [finding for result in results for finding in result.findings]
    if shape == "sarif":
        echo(json.dumps(writing.sarif(results), indent=2))
        return
    if shape == "json":
        for finding in findings:
            echo(json.dumps(writing.finding_row(finding)))
    for finding in findings if shape == "github" else ():
        echo(writing.github_line(finding))
    for finding in findings if shape == "pretty" else ():
        echo(writing.finding_line(finding).replace(finding.rule, click.style(finding.rule, fg="red", bold=True), 1))
    for id in sorted({finding.rule for finding in findings}) if shape == "pretty" else ():
        echo(wrapped(writing.rule_text(RULES[id], findings)))
    _show_rest(results, shape, False)


def _show_registrations(results: list[Result], shape: str) -> None:
    from hookcheck.scan import writing

    for result in results:
        rows = [
            writing.registration_row(result.path, r) for r in (result.scanned.registrations if result.scanned else ())
        ]
        for row in sorted(rows, key=lambda row: (row["line"], row["column"])):
            echo(json.dumps(row) if shape == "json" else writing.registration_line(row))
    _show_rest(results, shape, True)


def _show_rest(results: list[Result], shape: str, registrations: bool) -> None:
    """The files that could not be scanned, and the summary."""
    from hookcheck.scan import writing

    for result in results:
        if result.unread and shape == "json":
            echo(json.dumps({"path": result.path, "unread": result.unread}))
        elif result.unread:
            echo(f"{result.path}: not scanned: {result.unread}", err=True)
    if shape == "pretty":
        echo(writing.summary(results, registrations))
