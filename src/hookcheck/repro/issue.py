"""The text of an upstream issue, after the one of PyTorch's two bug forms that it is for.

What compiles has a form of its own, ``pt2-bug-report.yml``: it asks for an ablation and has a box for error logs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from hookcheck.contract.clause import CLAIM, PIN, Clause
from hookcheck.contract.ledger import Entry
from hookcheck.contract.verdict import RAN
from hookcheck.record.errors import RecordError
from hookcheck.record.model import Folded, public_version
from hookcheck.record.reading import read_folded, record_files
from hookcheck.repro.ablation import compiles
from hookcheck.repro.heading import FAILS, LACKS, ends_with
from hookcheck.repro.links import links
from hookcheck.repro.verify import Verdict


def issue(
    title: str,
    clause: Clause,
    documentation: Sequence[str],
    script: str,
    verdicts: Sequence[Verdict],
    releases: tuple[Sequence[str], Sequence[str]],
    prior: Iterable[str],
    environment: str,
    ablation: Sequence[tuple[str, Verdict]] = (),
) -> str:
    """The whole text, in Markdown.

    ``verdicts`` are of scripts that were run, the first of the torch at hand; ``releases`` are those that fail and
    those that pass in the records; ``prior`` names issues that speak of the same; ``ablation`` has backends of
    ``torch.compile`` and the verdicts of the script with them.
    """
    compiled = compiles(script)
    here = verdicts[0]
    said = "\n\n".join([f"> {clause.statement}", *filter(None, ["\n".join(f"- {link}" for link in documentation)])])
    ran = "\n".join(f"| {verdict.torch} | {verdict.text()} |" for verdict in verdicts)
    outputs = "\n\n".join(f"torch {v.torch}:\n\n{_fenced(v.output)}" for v in verdicts if v.output)
    failing, passing = (", ".join(names) or "none" for names in releases)
    known = "\n".join(f"- {link}" for link in prior) or "None that we know of."
    parts = [
        f"# {title}",
        "### 🐛 Describe the bug",
        f"{_promised(clause, documentation)} ({clause.source}):\n\n{said}",
        f"This script needs torch alone. It ends with exit code 1 where the fault shows ({_often(here)}), 0 where it "
        f"does not{_other_codes(script)}.",
        _fenced(script.rstrip("\n"), "python"),
        _ablation(ablation, here.torch) if compiled else f"**Observed and expected**\n\n{outputs}",
        f"**Releases**\n\nIn the records of hookcheck the same case fails on: {failing}. It passes on: {passing}.\n\n"
        f"| torch | the script |\n| --- | --- |\n{ran}",
        f"**Related issues**\n\n{known}",
        *(["### Error logs", outputs or "The script printed nothing."] if compiled else []),
        "### Versions",
        _fenced(environment.rstrip("\n") or "Please add the output of `python -m torch.utils.collect_env`."),
    ]
    return "\n\n".join(parts) + "\n"


def _ablation(ran: Sequence[tuple[str, Verdict]], torch: str) -> str:
    """With which backends the fault shows, as far as the script was run with them."""
    if not ran:
        return "**Ablation**\n\nThe script names no backend in whose place it could be run with another one."
    rows = "\n".join(f"| `{backend}` | {verdict.text()} |" for backend, verdict in ran)
    return f"**Ablation**\n\n| backend | the script on torch {torch} |\n| --- | --- |\n{rows}"


def _promised(clause: Clause, documentation: Sequence[str]) -> str:
    """Who says what is quoted."""
    if clause.rank == PIN:
        return "What is documented nowhere, but relied on"
    if clause.rank == CLAIM:
        return "What is claimed of hooks"
    return "What the documentation promises" if documentation else "What should hold"


def _other_codes(script: str) -> str:
    """The exit codes beside 0 and 1, as far as the script has them."""
    codes = {FAILS: "where its control fails", LACKS: "where torch or machine lack what it needs"}
    return "".join(f", {code} {when}" for code, when in codes.items() if ends_with(script, code))


def _often(verdict: Verdict) -> str:
    return verdict.text() if verdict.flaky else f"{verdict.runs} of {verdict.runs} runs on torch {verdict.torch}"


def _fenced(text: str, language: str = "") -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text}\n{fence}"


def in_records(folder: Path, clause: str, kind: str, topology: str) -> tuple[list[str], list[str]]:
    """The releases on which a case deviates from a clause, and those on which it conforms, by the records below."""
    failing: list[str] = []
    passing: list[str] = []
    for path in record_files(folder):
        try:
            record = read_folded(path)
        except RecordError:
            continue  # `hookcheck validate` names what is wrong with it
        deviates = _deviates(record, clause, kind, topology)
        if deviates is not None:
            (failing if deviates else passing).append(public_version(record.header.torch.version))
    return _in_order(failing), _in_order(passing)


def _in_order(versions: list[str]) -> list[str]:
    return sorted(versions, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])


def _deviates(record: Folded, clause: str, kind: str, topology: str) -> bool | None:
    """Whether the case deviates in a record; None where it did not run or the clause had no say."""
    for group in record.alike:
        if group.outcome == RAN and kind in group.kinds and topology in group.topologies and clause in group.judged:
            return any(deviation.clause == clause for deviation in group.deviations)
    return None


def prior_issues(clause: Clause, entry: Entry | None) -> list[str]:
    """What the clause's source and the ledger name: addresses of issues, and of what the deviation rests on.

    An issue and a pull request do not have the same number: one that is named as both is named once.
    """
    named = [link for link in links(clause.source) if "/issues/" in link]
    named += [entry.link] if entry is not None and "github.com" in entry.link else []
    return list({re.sub(r"/(?:issues|pull)/", "/", link): link for link in named}.values())


def collected() -> str:
    """What ``torch.utils.collect_env`` says of this environment; empty where it says nothing within two minutes."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "torch.utils.collect_env"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return re.sub(r"(?m)^(Vulnerability .*|CPU:|Flags:.*)\n?", "", done.stdout).strip() if not done.returncode else ""
