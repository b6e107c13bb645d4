"""A virtual environment with one release of torch and what it needs beside it, made by uv and removed afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from hookcheck.errors import HookcheckError
from hookcheck.releases import Release, releases

_SETTINGS = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_CERT": "SSL_CERT_FILE",
}
"""Settings of pip, each with the one of uv that means the same: who has set up the one expects it of the other."""


class EnvironmentFailed(HookcheckError):
    """An environment could not be made: uv is missing, or it found no interpreter or no wheel, or no network."""


def release_of(version: str) -> Release:
    """What the release ``version`` of torch needs: what the newest known one of its minor version does, or of an older.

    Raises:
        HookcheckError: it is no version, or older than all that hookcheck runs on.
    """
    try:
        wanted = Version(version)
    except InvalidVersion:
        raise HookcheckError(f"{version!r} is no version of torch; write one as 2.6.0") from None
    older = [r for r in releases() if Version(r.torch).release[:2] <= wanted.release[:2]]
    if not older:
        raise HookcheckError(f"torch {version} is older than {releases()[0].torch}, the oldest that hookcheck runs on")
    return replace(older[-1], torch=str(wanted.public))


@contextmanager
def environment(release: Release, packages: Sequence[str]) -> Iterator[Path]:
    """The Python of a new environment with ``release`` and ``packages`` (requirements); it is removed at the end.

    Raises:
        EnvironmentFailed: it cannot be made; the message says why, and what to do.
    """
    uv = shutil.which("uv")
    if uv is None:
        raise EnvironmentFailed("uv is not on the path, which makes environments: pip install uv")
    with tempfile.TemporaryDirectory(prefix=f"hookcheck-torch{release.torch}-") as folder:
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        _uv(release, uv, "venv", "--quiet", "--python", release.python, folder)
        torch = f"torch=={release.torch}"
        _uv(release, uv, "pip", "install", "--quiet", "--python", str(python), torch, *release.pins, *packages)
        yield python


def _uv(release: Release, *command: str) -> None:
    done = subprocess.run(
        command, env=settings(os.environ), capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode:
        said = [line.strip(" ×╰─▶│") for line in done.stderr.splitlines() if line.strip()]
        cause = " ".join(said[:3])[:300] or f"exit code {done.returncode}"
        raise EnvironmentFailed(
            f"uv cannot make an environment with torch {release.torch} on Python {release.python}: {cause}"
        )


def settings(given: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for uv: those that are given, and what pip is told, for uv."""
    translated = {theirs: given[ours] for ours, theirs in _SETTINGS.items() if ours in given}
    return {**translated, **given}
