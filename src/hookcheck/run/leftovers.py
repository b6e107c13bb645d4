"""What do runs leave that were cut off? Each its folder of part files, which a later run goes on with or removes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from hookcheck.errors import HookcheckError
from hookcheck.record.errors import RecordError, UnwritableReports
from hookcheck.record.model import Torch
from hookcheck.record.parts import read_parts
from hookcheck.run.plan import Request, corpora, to_workers
from hookcheck.topology.corpus import digest

try:
    import fcntl
except ImportError:  # Windows cannot tell a run that goes on from one that is over: there none is a leftover
    fcntl = None  # type: ignore[assignment]

NAME = "run.json"
"""The file in a run's folder that says what the run is, and is locked as long as it goes on."""

_OF_ONE_RUN = ("reports", "corpus", "started", "run")
"""What a request says of its run alone: another run may go on with it from elsewhere."""


@dataclass(frozen=True)
class UnfinishedRun:
    """What a run that is over left in ``folder``: the ``identity`` of its request, when it was ``started``, and how
    many ``cases`` it had finished."""

    folder: Path
    identity: Mapping[str, Any]
    started: str
    cases: int

    @property
    def torch(self) -> str:
        """The version of torch that it ran."""
        return str(self.identity["torch"][0])


def identity(request: Request, torch: Torch) -> dict[str, Any]:
    """What two runs have in common where one can go on with the other: request, corpus, torch, and hookcheck itself."""
    asked = {name: value for name, value in to_workers(request).items() if name not in _OF_ONE_RUN}
    digests = {family: digest(topologies) for family, topologies in corpora(request).items()}
    return {**asked, "corpus": digests, "torch": [torch.version, torch.git], "hookcheck": _sources()}


def _sources() -> str:
    """A hash of hookcheck's own files: another contract or ledger would judge otherwise."""
    package = Path(__file__).resolve().parents[1]
    files = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".toml"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def hold(request: Request, torch: Torch) -> TextIO:
    """Marks the folder of ``request`` as that of a run which goes on, until the file is closed or the process ends.

    Raises:
        HookcheckError: another process goes on with it, or the folder cannot be written.
    """
    path = request.parts / NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as fault:
        raise UnwritableReports(path.parent, fault) from None
    if not _locked(file):
        raise HookcheckError(f"another process goes on with the run in {path.parent}; wait for its end")
    if not file.tell():
        json.dump({"started": request.started, "identity": identity(request, torch)}, file)
        file.flush()
    return file


def _locked(file: TextIO) -> bool:
    """Locks ``file``, which the system undoes however the process ends; whether nobody else has."""
    if fcntl is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def leftovers(reports: Path) -> list[UnfinishedRun]:
    """What runs that are over left in ``reports``, the most cases first. Where there is nothing to go on with, the
    folder is removed."""
    candidates = (_leftover(folder) for folder in sorted(reports.glob(".partial-*")) if fcntl is not None)
    return sorted(filter(None, candidates), key=lambda leftover: -leftover.cases)


def _leftover(folder: Path) -> UnfinishedRun | None:
    try:
        with (folder / NAME).open("r+", encoding="utf-8") as file:
            if not _locked(file):
                return None
            content = json.load(file)
        lines = [line for device in folder.iterdir() if device.is_dir() for line in read_parts(device)]
        cases = sum(len(line["topologies"]) * len(line["kinds"]) for line in lines if line["type"] == "case")
        left = UnfinishedRun(folder, content["identity"], content["started"], cases)
    except (OSError, ValueError, KeyError, RecordError):
        left = None
    if left is None or not left.cases:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return left


def resumed(request: Request, torch: Torch, left: Iterable[UnfinishedRun]) -> Request:
    """``request`` as the run that goes on with what an earlier one left.

    Raises:
        HookcheckError: no run that was cut off is one that this could go on with.
    """
    left, wanted = tuple(left), identity(request, torch)
    for leftover in left:
        if leftover.identity == wanted:
            return replace(request, run=leftover.folder.name[len(".partial-") :], started=leftover.started)
    others = "; ".join(f"{_shown(each)} differs in {', '.join(_differing(each.identity, wanted))}" for each in left)
    raise HookcheckError(
        f"there is nothing to resume in {request.reports}: {others or 'no run was cut off'}; "
        "run the command without --resume"
    )


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def reminders(request: Request, torch: Torch, left: Iterable[UnfinishedRun]) -> list[str]:
    """What is to be said, at the beginning of a run, of what earlier ones left."""
    left = tuple(left)
    wanted = identity(request, torch) if left else {}
    return [
        f"{_shown(each)} was cut off: "
        + (
            "--resume goes on with it; it is removed once this run is complete"
            if each.identity == wanted
            else f"its own command with --resume goes on with it; remove {each.folder} if nobody will"
        )
        for each in left
        if each.folder != request.parts
    ]


def _shown(left: UnfinishedRun) -> str:
    return f"a run on torch {left.torch} of {left.started}, with {left.cases:,} finished cases,"


def remove_superseded(request: Request, torch: Torch) -> None:
    """Removes what earlier runs left that were cut off, where the run of ``request`` has all of it."""
    left = leftovers(Path(request.reports))
    wanted = identity(request, torch) if left else {}
    for each in left:
        if each.identity == wanted:
            shutil.rmtree(each.folder, ignore_errors=True)


def run_name(started: str) -> str:
    """A name that no other run in a folder of reports has, also in a container whose processes have the same ids."""
    return f"{started.replace(':', '').replace('-', '')}-{os.getpid()}"
