"""A scan over files and folders: which files, what each holds, what is ignored there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hookcheck.errors import HookcheckError
from hookcheck.scan.apis import FUNCTIONS, METHODS
from hookcheck.scan.findings import ScanFinding, Scanned, findings
from hookcheck.scan.notebooks import SUFFIX
from hookcheck.scan.private import PRIVATE
from hookcheck.scan.registrations import registrations
from hookcheck.scan.rules import RULES, UNUSED_IGNORE
from hookcheck.scan.source import Ignore, SourceFile, Unreadable

_LEFT_OUT = {"__pycache__", "node_modules", "build", "dist", "__pypackages__", "_build", "buck-out"}
_MENTIONS = re.compile("|".join([*METHODS, *FUNCTIONS, *PRIVATE, "hookcheck:"]).encode())
STDIN = "-"


@dataclass(frozen=True)
class Result:
    """What was found in one file; ``unread`` says why it could not be scanned, and is empty otherwise."""

    path: str
    scanned: Scanned | None = None
    findings: tuple[ScanFinding, ...] = ()
    ignored: int = 0
    unread: str = ""


def files(paths: Sequence[str]) -> list[str]:
    """The Python files and notebooks among and below the paths, each once, sorted.

    Below a folder, hidden folders, virtual environments, what builds leave behind and what git ignores are left out;
    the latter not if git ignores the folder itself.

    Raises:
        HookcheckError: a path is not there.
    """
    paths_to_scan: dict[str, None] = {}
    for given in paths:
        if given == STDIN or os.path.isfile(given):
            paths_to_scan[given] = None
        elif os.path.isdir(given):
            below = sorted(_below(given))
            paths_to_scan.update(dict.fromkeys(below if _ignored([given]) else _not_ignored(below)))
        else:
            raise HookcheckError(f"{given} is not there: give files, folders, or - for standard input")
    return list(paths_to_scan)


def _not_ignored(paths: Sequence[str]) -> list[str]:
    ignored = _ignored(paths)
    return [path for path in paths if path not in ignored]


def _ignored(paths: Sequence[str]) -> set[str]:
    """Those that git ignores; none where there is no git, or no repository around them."""
    git = shutil.which("git")
    if git is None or not paths:
        return set()
    at = paths[0] if os.path.isdir(paths[0]) else os.path.dirname(paths[0]) or "."
    names = {os.path.abspath(path): path for path in paths}
    command = [git, "-C", at, "check-ignore", "--stdin", "-z"]
    asked = "\0".join(names).encode(errors="surrogateescape")
    done = subprocess.run(command, input=asked, capture_output=True, check=False)
    ignored_names = done.stdout.decode(errors="surrogateescape").split("\0")
    return {names[name] for name in ignored_names if name in names}


def _below(folder: str) -> Iterator[str]:
    for at, inside, names in os.walk(folder):
        inside[:] = [
            name
            for name in inside
            if name not in _LEFT_OUT
            and not name.startswith(".")
            and not os.path.exists(os.path.join(at, name, "pyvenv.cfg"))
        ]
        yield from (os.path.join(at, name) for name in names if name.endswith((".py", ".pyi", SUFFIX)))


def chosen(select: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
    """The ids of the rules that apply: those selected, all if none is, without those ignored. ``HKS`` means all.

    Raises:
        HookcheckError: no rule's id begins so.
    """
    for prefix in (*select, *ignore):
        if not prefix or not any(id.startswith(prefix) for id in RULES):
            raise HookcheckError(f"there is no rule {prefix!r}: the rules are {', '.join(RULES)}")
    picked = {id for id in RULES if not select or id.startswith(tuple(select))}
    return frozenset(id for id in picked if not (ignore and id.startswith(tuple(ignore))))


def scan(path: str, data: bytes | None, minors: tuple[str, ...], rules: frozenset[str]) -> Result:
    """Scans one file; ``data`` is its content, read from ``path`` if None."""
    try:
        data = Path(path).read_bytes() if data is None else data
        if not _MENTIONS.search(data):
            return Result(path)
        source = SourceFile(path, data)
    except OSError as error:
        return Result(path, unread=f"it cannot be read: {error.strerror}")
    except Unreadable as error:
        return Result(path, unread=str(error))
    scanned = Scanned(source, tuple(registrations(source)), minors)
    every = [finding for rule in RULES.values() for finding in findings(rule, scanned)]
    left, ignored = _without_ignored(scanned, every)
    shown = sorted((f for f in left if f.rule in rules), key=lambda f: (f.line, f.column, f.rule))
    return Result(path, scanned, tuple(shown), ignored)


def _without_ignored(scanned: Scanned, every: list[ScanFinding]) -> tuple[list[ScanFinding], int]:
    """The findings that no comment ignores with the comments that ignore nothing, and how many were ignored."""
    silenced = {finding for finding in every for ignore in scanned.source.ignores if _silences(ignore, finding)}
    unused = []
    for ignore in scanned.source.ignores:
        hit = {finding.rule for finding in every if _silences(ignore, finding)}
        # Without --torch nobody can tell what rules about releases would find.
        idle = [
            id for id in ignore.ids if id not in hit and not (id in RULES and RULES[id].torch and not scanned.minors)
        ]
        if idle or (not ignore.ids and not hit):
            what = f"nothing to ignore for {', '.join(idle)}" if idle else "nothing to ignore"
            unused.append(_unused(scanned, ignore, f"{what} on this line"))
    return [finding for finding in every if finding not in silenced] + unused, len(silenced)


def _silences(ignore: Ignore, finding: ScanFinding) -> bool:
    return finding.line <= ignore.line <= finding.end_line and (not ignore.ids or finding.rule in ignore.ids)


def _unused(scanned: Scanned, ignore: Ignore, message: str) -> ScanFinding:
    rule = RULES[UNUSED_IGNORE]
    place = (ignore.line, ignore.column, ignore.line, ignore.column + len("# hookcheck: ignore"))
    return ScanFinding(rule.id, rule.severity, scanned.source.path, *place, message, True, rule.link)
