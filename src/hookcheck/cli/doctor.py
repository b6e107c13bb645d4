"""The command that says whether all is here that hookcheck needs, and what numbers of a run may depend on."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hookcheck import __version__
from hookcheck.cli.frame import FINE, NO_TORCH, REPORTS, TorchUnusable, command, installed_torch
from hookcheck.cli.output import Row, fields, show, wrapped
from hookcheck.errors import HookcheckError

FREE = 10 * 2**30
"""Bytes that an environment of the largest releases takes on disk, with its share of uv's cache."""

_SCHEMAS = [
    fields(
        what=("string", "what was looked at"),
        state=("string", "fine, note (something cannot be done), or missing (nothing can be run)"),
        text=("string", "what was seen, and what to do"),
    )
]
_SIGNS = {"fine": "ok  ", "note": "note", "missing": "MISS"}


@command("doctor", _SCHEMAS)
@REPORTS
def doctor(reports: Path, shape: str) -> int:
    """Look at torch, interpreter, kernels, devices, suite, records, disk, and what `hookcheck upgrade` needs.

    Exit code 3 where torch is missing or unusable.
    """
    rows = [{"what": what, "state": state, "text": text} for what, state, text in _looked_at(reports)]
    show(rows, shape, lambda: "\n".join(_drawn(row) for row in rows))
    return NO_TORCH if any(row["state"] == "missing" for row in rows) else FINE


def _drawn(row: Row) -> str:
    return wrapped(f"{_SIGNS[row['state']]}  {row['what']}: {row['text']}", 0, 6)


def _looked_at(reports: Path) -> Iterator[tuple[str, str, str]]:
    packages = ", ".join(f"{name} {_version(name)}" for name in ("numpy", "pytest", "hypothesis"))
    yield "hookcheck", "fine", f"{__version__} with {packages}"
    yield "interpreter", "fine", f"Python {platform.python_version()} at {sys.executable}, {platform.platform()}"
    yield from _torch()
    yield _suite()
    yield _records(reports)
    yield _disk(reports)
    yield _uv()


def _torch() -> Iterator[tuple[str, str, str]]:
    try:
        torch = installed_torch()
    except TorchUnusable as error:
        yield "torch", "missing", str(error)
        return
    from hookcheck.probe.processor import arithmetic
    from hookcheck.probe.run import available_devices

    yield "torch", "fine", f"{torch.__version__} ({torch.version.git_version}) at {Path(torch.__file__).parent}"
    yield "kernels", "fine", ", ".join(f"{name} {value}" for name, value in arithmetic().items())
    devices = available_devices()
    lacking = "" if "cuda" in devices else "; what is about cuda is not run"
    yield "devices", "note" if lacking else "fine", ", ".join(devices) + lacking


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(missing)"


def _suite() -> tuple[str, str, str]:
    from hookcheck.suite import conformance_folder

    try:
        folder = conformance_folder()
    except HookcheckError as error:
        return "suite", "missing", str(error)
    return "suite", "fine", f"{len(list((folder / 'corpus').glob('*.jsonl')))} files of networks in {folder / 'corpus'}"


def _records(reports: Path) -> tuple[str, str, str]:
    from hookcheck.cli.records import in_order, records_by_version

    known = in_order(records_by_version(reports))
    if not known:
        return "records", "note", f"none in {reports / 'records'}; `hookcheck run` makes one"
    return "records", "fine", f"of torch {', '.join(known)}"


def _disk(reports: Path) -> tuple[str, str, str]:
    folder = next(path for path in (reports.resolve(), *reports.resolve().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    few = "" if free > FREE else f"; an environment with another torch takes up to {FREE >> 30} GiB"
    return "disk", "note" if few else "fine", f"{free >> 30} GiB free at {folder}{few}"


def _uv() -> tuple[str, str, str]:
    path = shutil.which("uv")
    if path:
        return "uv", "fine", f"at {path}, for environments of `hookcheck upgrade`"
    return "uv", "note", "missing; `hookcheck upgrade` needs it for releases that have no record: pip install uv"
