"""The record that a user names: a file, or a version of torch that has one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookcheck.cli.names import one_of
from hookcheck.errors import HookcheckError

if TYPE_CHECKING:
    from hookcheck.record.model import Record


def complete_record(name: str, reports: Path) -> Record:
    """The record that ``name`` is the file or the version of.

    Raises:
        HookcheckError: there is none, it is no sound one, or it is of a run that was cut short.
    """
    from hookcheck.collector import paused_until_exit
    from hookcheck.record.reading import read

    path = record_path(name, reports)
    with paused_until_exit():
        record = read(path)
    if not record.footer.complete:
        raise HookcheckError(
            f"{path} is of a run that was cut short ({record.footer.stopped}), so nothing can be told from what it "
            "lacks; run `pytest conformance/` on that torch again"
        )
    return record


def record_path(name: str, reports: Path) -> Path:
    """The file that ``name`` is, or that of the version of torch ``name``.

    Raises:
        HookcheckError: it is no file, and the version has no record or several.
    """
    from hookcheck.record.model import build_version

    if Path(name).is_file() or "/" in name or ".jsonl" in name:
        return Path(name)
    by_version = records_by_version(reports)
    paths = by_version.get(full_version(build_version(name), by_version), [])
    if len(paths) == 1:
        return paths[0]
    if paths:
        raise HookcheckError(f"torch {name} has several records: name the file, {' or '.join(map(str, paths))}")
    known = ", ".join(in_order(by_version))
    raise HookcheckError(
        f"{name!r} is no file, and no version with a record: {reports / 'records'} and hookcheck itself have "
        f"{known or 'none'}; run `pytest conformance/` on that torch, or name a record"
    )


def full_version(version: str, known: Iterable[str]) -> str:
    """``version``, or where it is a minor one, as 2.6, the newest patch of it among ``known`` or the releases' list."""
    from hookcheck.releases import releases

    if not re.fullmatch(r"\d+\.\d+", version):
        return version
    listed = (release.torch for release in releases())
    patches = [each for each in (*listed, *in_order(known)) if each.startswith(f"{version}.")]
    return patches[-1] if patches else version


def records_by_version(reports: Path) -> Mapping[str, list[Path]]:
    """The files of records by version of torch: those below ``reports``, and of other versions those that come with
    hookcheck."""
    from hookcheck.suite import published_reports

    here, published = _in(reports / "records"), _in(published_reports() / "records")
    return {**published, **here}


def _in(folder: Path) -> dict[str, list[Path]]:
    from hookcheck.record.reading import record_files

    by_version: dict[str, list[Path]] = {}
    for path in record_files(folder):
        prefix, _, rest = path.name.partition("-")
        if prefix == "torch":
            by_version.setdefault(rest.partition("-")[0], []).append(path)
    return by_version


def in_order(versions: Iterable[str]) -> list[str]:
    """Versions of torch, the oldest first."""
    return sorted(versions, key=_release)


def _release(version: str) -> Any:
    from packaging.version import InvalidVersion, Version

    try:
        return 1, Version(version)
    except InvalidVersion:  # any file may lie in the folder
        return 0, version


def check_kinds(kinds: Iterable[str], *records: Record) -> None:
    """Makes sure that each of ``kinds`` is a hook kind or chapter of one of the records.

    Raises:
        HookcheckError: one is none.
    """
    known = dict.fromkeys(case.kind for record in records for case in record.cases)
    for kind in kinds:
        one_of(kind, known, "hook kind or chapter")


def programs_of(kinds: Iterable[str]) -> frozenset[str]:
    """The ids of the programs that register a hook of one of ``kinds``."""
    from hookcheck.cli.index import index

    wanted = set(kinds)
    return frozenset(c["id"] for c in index()["clauses"] if c["program"] and wanted.intersection(c["hooks"]))


def corpus_lengths() -> Mapping[str, int]:
    """How long the JSON of each network of the corpus is, by id."""
    from hookcheck.suite import conformance_folder

    lengths: dict[str, int] = {}
    for path in (conformance_folder() / "corpus").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            lengths[line[7:23].decode("ascii", "replace")] = len(line)  # {"id":"0123456789abcdef",…
    return lengths
