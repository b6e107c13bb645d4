"""What a run says beside another one: the last of the same torch, that of the release before, or one that is named."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import Version

from hookcheck.collector import paused
from hookcheck.contract.ledger import load, varying
from hookcheck.errors import HookcheckError
from hookcheck.record.changes import MENDED
from hookcheck.record.compare import Comparison, compare
from hookcheck.record.model import Record, build_version
from hookcheck.record.reading import read, record_files
from hookcheck.report.summary import copied


def baselines(named: Sequence[str], reports: Path, version: str, device: str) -> tuple[tuple[Path, Record], ...]:
    """The records to compare a run with: those that are ``named`` (files, or versions of torch), or else the last of
    this torch and that of the release before, where the folder ``reports`` has them.

    They are read before the run, which takes the place of the last record of the same torch.

    Raises:
        HookcheckError: one that is named is not there, or no sound record.
    """
    folder = reports / "records"
    by_version = {
        Version(path.name.split("-")[1]): path
        for path in record_files(folder)
        if path.name.startswith("torch-") and path.name.split("-")[2].partition(".")[0] == device
    }
    paths = [_path(name, by_version, folder) for name in named]
    if not named:
        here = Version(build_version(version))
        known = sorted(each for each in by_version if each <= here)
        paths = [by_version[each] for each in known[-1:] if each == here]
        paths += [by_version[each] for each in [each for each in known if each < here][-1:]]
    with paused():
        return tuple((path, read(path)) for path in paths)


def _path(name: str, by_version: dict[Version, Path], folder: Path) -> Path:
    if Path(name).is_file():
        return Path(name)
    match = next((path for version, path in by_version.items() if str(version) == build_version(name)), None)
    if match is None:
        raise HookcheckError(f"--baseline {name!r} is no file, and no version of torch with a record in {folder}")
    return match


def against(path: Path, before: Record, after: Record, written: Path, causes: int = 1) -> Iterator[str]:
    """A comparison in a few sentences: the verdict, the costliest ``causes`` of what is worse, and where all of it is.

    ``path`` is the file of the record before, unless what is after was ``written`` in its place.
    """
    comparison = compare(before, after, varying=varying(load()))
    worse = [group for group in comparison.groups if group.cause.worse]
    mended = sum(group.cause.status == MENDED for group in comparison.groups)
    of = f"torch {before.header.torch.version} ({before.header.started})"
    command = copied(shlex.join(["hookcheck", "diff", str(path), str(written)]))
    listed = f"; all: {command}" if worse[causes:] and path != written else ""
    yield f"against {of}: {_verdict(comparison)}, {mended} mended{listed}"
    for group in worse[:causes]:
        cause = group.cause
        what = ", ".join(filter(None, [cause.clause, cause.gap, cause.reason]))
        one = f"for one see: {copied(f'hookcheck explain {group.example.topology}')}"
        yield f"{cause.status}: {what}, in {group.cases:,} case{'s' * (group.cases != 1)}; {one}"


def _verdict(comparison: Comparison) -> str:
    worse = sum(group.cause.worse for group in comparison.groups)
    if worse:
        return f"{worse} cause{'s' * (worse != 1)} worse"
    return "nothing worse" if comparison.conclusive else "nothing worse in what ran in both, which is not all"
