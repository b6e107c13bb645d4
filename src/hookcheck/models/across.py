"""What is otherwise for hooks on one's own model from one torch to another? `hookcheck check` runs on both, and what it
says is compared: promises that are kept on one alone, and what hooks saw. Torch itself is not imported here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from packaging.version import Version

from hookcheck.contract.verdict import COSTS, GAPS
from hookcheck.errors import HookcheckError
from hookcheck.releases.environment import environment, release_of
from hookcheck.suite import requirement

Row = Mapping[str, Any]
_ORDER = (*GAPS, "calls of modules", "what hooks see")
"""What a difference is about, costliest first; all else comes last."""


@dataclass(frozen=True)
class Difference:
    """What is otherwise on the later torch.

    ``cost`` is what it means for who uses the hook (``silent``: nothing but the numbers shows it), ``worse`` says that
    it is worse than on the earlier one, which alone cannot be said of what no clause speaks of. ``clause`` is empty
    where it is about none. ``before`` and ``after`` are what there is on each; ``why`` is the ledger's reason.
    """

    worse: bool
    cost: str
    kind: str
    clause: str
    modules: tuple[str, ...]
    before: str
    after: str
    why: str = ""
    link: str = ""

    def __str__(self) -> str:
        """The difference in one sentence."""
        shown = ", ".join(name or "the model" for name in self.modules[:6])
        more = f" and {len(self.modules) - 6} more" if len(self.modules) > 6 else ""
        head = " ".join(filter(None, (self.kind, self.clause)))
        where = f" on {shown}{more}" if self.modules else ""
        return f"{head}{where}: {self.before} → {self.after}{f' ({self.why})' if self.why else ''}"


@dataclass(frozen=True)
class Across:
    """The ``rows`` of `hookcheck check` on each torch and what is otherwise on the later one."""

    rows: Mapping[str, tuple[Row, ...]]
    differences: tuple[Difference, ...]

    @property
    def worse(self) -> bool:
        """Whether anything is worse."""
        return any(difference.worse for difference in self.differences)

    def __str__(self) -> str:
        """The differences, what is worse first, then by cost, silent ones first."""
        first, last = self.rows
        lines = [f"from torch {first} to {last}: {len(self.differences) or 'no'} differences for hooks on this model"]
        heading = ""
        for difference in self.differences:
            word = f"{'worse' if difference.worse else 'otherwise'}: {difference.cost}"
            lines += ["", word] if word != heading else []
            heading = word
            lines.append(f"  {difference}")
        return "\n".join(lines)


def across(
    target: str,
    torches: Sequence[str],
    packages: Sequence[str] = (),
    options: Sequence[str] = (),
    progress: Callable[[str], None] = lambda text: None,
) -> Across:
    """Runs ``hookcheck check target`` on two releases, and compares.

    The torch that is installed runs here; another one in an environment of its own with ``packages`` (requirements, as
    pip takes them), which uv makes and which is removed. ``options`` are those of the command; `progress` is told what
    comes next.

    Raises:
        HookcheckError: not two releases, no such release, uv cannot install it, or the check cannot run there.
    """
    if len(torches) != 2 or torches[0] == torches[1]:
        raise HookcheckError("name the torch that you have and the one that you want: --torch 2.6.0,2.15.0")
    by_torch = {}
    for torch, release in [(torch, release_of(torch)) for torch in torches]:
        if release.torch == _installed():
            progress(f"torch {torch}, which is installed")
            rows = _rows(Path(sys.executable), torch, target, options)
        else:
            progress(f"torch {torch}: making an environment")
            with environment(release, [requirement(), *packages]) as python:
                progress(f"torch {torch}: running the check")
                rows = _rows(python, torch, target, options)
        by_torch[torch] = rows
    return Across(by_torch, differences(*by_torch.values()))


def _installed() -> str:
    try:
        return Version(version("torch")).public
    except PackageNotFoundError:
        return ""


def _rows(python: Path, torch: str, target: str, options: Sequence[str]) -> tuple[Row, ...]:
    command = [str(python), "-W", "ignore", "-m", "hookcheck", "check", target, "--format", "json", *options]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False, env={**os.environ}
    )
    if done.returncode not in (0, 1) or not done.stdout.strip():
        said = done.stderr.strip().splitlines() or [f"it ended with exit code {done.returncode}"]
        raise HookcheckError(f"on torch {torch}: {said[-1].replace('hookcheck: error: ', '')}")
    return tuple(json.loads(line) for line in done.stdout.splitlines())


def differences(before: Iterable[Row], after: Iterable[Row]) -> tuple[Difference, ...]:
    """What is otherwise in the second of two answers of `hookcheck check`: what is worse first, then by cost."""
    one, other = _by_key(before), _by_key(after)
    by_group: dict[tuple[Any, ...], list[str]] = {}
    for key in {**one, **other}:
        if key in one and key in other and _said(one[key]) != _said(other[key]):
            a, b = one[key], other[key]
            group = (key[0], a["kind"], a.get("clause", ""), _said(a), _said(b), b.get("why", ""), b.get("link", ""))
            by_group.setdefault(group, []).append(a.get("module", a.get("on", "")))
    every = [_difference(group, modules) for group, modules in by_group.items()]
    every += _of_one(one, other)
    return tuple(sorted(every, key=lambda difference: (not difference.worse, _rank(difference), difference.kind)))


def _by_key(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    """What can be compared: verdicts, what hooks saw, and sentences."""
    by_key: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if row["what"] == "verdict":
            text = row["observed"] if row["gap"] == "new warning" else ""  # one step may have several
            by_key["verdict", row["module"], row["call"], row["kind"], row["clause"], text] = row
        elif row["what"] == "seen":
            by_key["seen", row["on"], row["kind"]] = row
        elif row["what"] == "model":
            by_key["model", ""] = {**row, "kind": ""}
            by_key["verdict", ""] = {**_OWN_HOOKS, "gap": "raised" if row["raised"] else "", "why": row["raised"]}
    return by_key


_OWN_HOOKS = {
    "what": "verdict", "module": "", "kind": "", "clause": "", "verdict": "the step with your hooks runs", "link": "",
}  # fmt: skip
"""What is compared of the step with all of the user's own hooks, beside whether it raises."""


def _said(row: Row) -> str:
    """What a row says, in words that two releases share."""
    if row["what"] == "seen":
        return f"called {row['times']} times with {row['given']}" if row["times"] else "never called"
    if row["what"] == "model":
        return f"{sum(row['calls'].values())} calls of {len(row['calls'])} modules"
    if row["gap"] == "new warning":
        return f"{row['gap']}: {row['observed'].partition('. ')[0]}"
    return row["gap"] or row["verdict"]  # type: ignore[no-any-return]


def _difference(group: tuple[Any, ...], modules: list[str]) -> Difference:
    what, kind, clause, before, after, why, link = group
    names = tuple(dict.fromkeys(modules))
    if what != "verdict":
        cost = "calls of modules" if what == "model" else "what hooks see"
        return Difference(False, cost, kind, "", names if what == "seen" else (), before, after)
    gap, former = (text.partition(":")[0] for text in (after, before))
    worse = gap in GAPS and (former not in GAPS or GAPS.index(gap) < GAPS.index(former))
    cost = COSTS.get(gap) or COSTS.get(former) or after
    return Difference(worse, cost, kind, clause, names, before, after, why, link)


def _of_one(one: Mapping[tuple[Any, ...], Row], other: Mapping[tuple[Any, ...], Row]) -> Iterator[Difference]:
    """Deviations about what there is on one of them alone, and hook kinds that one lacks."""
    kinds = [{row["kind"] for row in rows.values() if row["what"] == "seen"} for rows in (one, other)]
    for kind in sorted(kinds[0] ^ kinds[1]):
        words = ("there", "not there") if kind in kinds[0] else ("not there", "there")
        yield Difference(kind in kinds[0], "not called", kind, "", (), *words)
    gone: dict[tuple[str, ...], list[str]] = {}
    for rows, others, there in ((one, other, 0), (other, one, 1)):
        for key, row in rows.items():
            both = row["kind"] in kinds[0] and row["kind"] in kinds[1]
            if key not in others and both and row["what"] == "verdict" and row["gap"]:
                nothing = "no such warning" if row["gap"] == "new warning" else "nothing to judge"
                words = (nothing, _said(row)) if there else (_said(row), nothing)
                said = (row["why"], row["link"]) if there else ("", "")
                gone.setdefault((row["kind"], row["clause"], *words, *said), []).append(row["module"])
    for group, modules in gone.items():
        yield _difference(("verdict", *group), modules)


def _rank(difference: Difference) -> int:
    words = [text.partition(":")[0] for text in (difference.after, difference.before, difference.cost)]
    return min((_ORDER.index(word) for word in words if word in _ORDER), default=len(_ORDER))
