"""The forms in which findings leave: rows, lines for people, SARIF, annotations of GitHub."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from hookcheck import __version__
from hookcheck.scan.findings import ERROR, NOTE, WARNING, ScanFinding, ScanRule, extent
from hookcheck.scan.registrations import Registration
from hookcheck.scan.rules import RULES
from hookcheck.scan.scanning import Result

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://docs.pytorch.org/docs/stable/notes/autograd.html"
_UNSURE = " (unsure: the receiver could not be inferred)"
_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}


def finding_row(finding: ScanFinding) -> dict[str, Any]:
    """A finding as a JSON object."""
    return {**asdict(finding), "clauses": [*RULES[finding.rule].clauses]}


def registration_row(path: str, registration: Registration) -> dict[str, Any]:
    """A registration as a JSON object."""
    line, column, _, _ = extent(registration.source, registration.node)
    return {
        "path": path,
        "line": line,
        "column": column,
        "kind": registration.kind,
        "call": registration.name,
        "receiver": registration.receiver or "",
        "sure": registration.sure,
        "hook": ", ".join(ast.unparse(node) for node in registration.given),
        "options": {name: ast.unparse(value) for name, value in registration.options.items()},
    }


def said(finding: ScanFinding) -> str:
    """What a finding says, in one line."""
    return finding.message + ("" if finding.sure else _UNSURE)


def finding_line(finding: ScanFinding) -> str:
    """A finding as ruff prints one."""
    return f"{finding.path}:{finding.line}:{finding.column}: {finding.rule} {said(finding)}"


def rule_text(rule: ScanRule, findings: Iterable[ScanFinding]) -> str:
    """What a rule says, and what its findings rest on."""
    links = dict.fromkeys(finding.link for finding in findings if finding.rule == rule.id)
    clauses = f"; hookcheck explain {' or '.join(rule.clauses)}" if rule.clauses else ""
    return f"{rule.id}: {rule.sentence} See {', '.join(links)}{clauses}"


def registration_line(row: dict[str, Any]) -> str:
    """A registration in one line."""
    on = f" on {row['receiver']}" if row["receiver"] else ""
    options = "".join(f", {name}={value}" for name, value in row["options"].items())
    return f"{row['path']}:{row['line']}:{row['column']}: {row['kind']}{on}{options}{'' if row['sure'] else _UNSURE}"


def summary(results: Sequence[Result], registrations: bool) -> str:
    """How much was found where, in one line; of findings nothing where registrations are asked for."""
    counts = Counter(finding.severity for result in results for finding in result.findings)
    parts = [_counted(counts[severity], severity) for severity in (ERROR, WARNING, NOTE) if counts[severity]]
    ignored = sum(result.ignored for result in results)
    unread = sum(bool(result.unread) for result in results)
    registered = sum(len(result.scanned.registrations) for result in results if result.scanned)
    where = f"{_counted(registered, 'registration')} in {_counted(len(results), 'file')}"
    text = where if registrations else f"{', '.join(parts) or 'no findings'}; {where}"
    text += f"; {ignored} ignored" if ignored and not registrations else ""
    return text + (f"; {_counted(unread, 'file')} not scanned" if unread else "")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def github_line(finding: ScanFinding) -> str:
    """A finding as a workflow command that annotates the line."""
    place = f"file={_escaped(finding.path, ':,')},line={finding.line},endLine={finding.end_line},col={finding.column}"
    text = _escaped(f"{said(finding)}; see {finding.link}")
    return f"::{_COMMANDS[finding.severity]} {place},title={finding.rule}::{text}"


def _escaped(text: str, more: str = "") -> str:
    for sign in ("%", "\r", "\n", *more):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def sarif(results: Iterable[Result]) -> dict[str, Any]:
    """A SARIF 2.1.0 log of one run, with the rules, the findings, and the files that were not scanned."""
    every = list(results)
    ids = list(RULES)
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.sentence},
            "help": {"text": "; ".join([rule.sentence, *(f"hookcheck explain {clause}" for clause in rule.clauses)])},
            "helpUri": rule.link if rule.link.startswith("https") else HOME,
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in RULES.values()
    ]
    unread = [
        {"level": "error", "message": {"text": result.unread}, "locations": [{"physicalLocation": _file(result.path)}]}
        for result in every
        if result.unread
    ]
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "hookcheck scan", "version": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": not unread, "toolExecutionNotifications": unread}],
                "results": [_result(finding, ids) for result in every for finding in result.findings],
            }
        ],
    }


def _file(path: str) -> dict[str, Any]:
    pure = PurePath(path)
    return {"artifactLocation": {"uri": pure.as_uri() if pure.is_absolute() else quote(pure.as_posix())}}


def _result(finding: ScanFinding, ids: list[str]) -> dict[str, Any]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    return {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": finding.severity,
        "message": {"text": said(finding)},
        "locations": [{"physicalLocation": {**_file(finding.path), "region": region}}],
    }
