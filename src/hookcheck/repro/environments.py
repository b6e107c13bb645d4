"""Environments in which one release of torch can run a script: made by uv, alone, and removed afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from hookcheck.errors import HookcheckError
from hookcheck.releases import Release, releases

LIMIT = 1200
"""Seconds that an installation may take; the slowest release took 45 and brings 7 GB."""


class NoEnvironment(HookcheckError):
    """A release cannot be installed here."""


def releases_named(text: str | None) -> list[str]:
    """The releases that a text names, separated by commas; none where there is no text.

    Raises:
        HookcheckError: the text names none, or one that is no release.
    """
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise HookcheckError("--torch names no release: write --torch 1.13.1,2.15.0")
    for name in names:
        release_named(name)
    return names


def release_named(torch: str) -> Release:
    """The release of that version, or one of a listed minor version with what that needs.

    Raises:
        HookcheckError: the list has no such minor version.
    """
    known = {release.torch: release for release in releases()}
    if torch in known:
        return known[torch]
    try:
        minor = Version(torch).release[:2]
    except InvalidVersion:
        minor = ()
    near = [release for release in known.values() if Version(release.torch).release[:2] == minor]
    if not near:
        raise HookcheckError(f"there is no torch {torch!r} in the list of releases; choose from {', '.join(known)}")
    return replace(near[-1], torch=torch)


def uv() -> str:
    """The command uv.

    Raises:
        HookcheckError: there is none.
    """
    path = shutil.which("uv")
    if path is None:
        raise HookcheckError("uv is not on PATH: it makes the environments of other releases (pip install uv)")
    return path


@contextmanager
def environment(release: Release) -> Iterator[Path]:
    """The Python of a new environment that has the release; it and what uv cached for it are gone afterwards.

    What uv has in its cache already is taken from there. Where ``PIP_FIND_LINKS`` names folders of wheels uv looks
    there too, unless ``UV_FIND_LINKS`` does.

    Raises:
        NoEnvironment: with the last line of what uv said.
    """
    command = uv()
    with tempfile.TemporaryDirectory(prefix=f"hookcheck-torch{release.torch}-") as folder:
        links = os.environ.get("UV_FIND_LINKS") or os.environ.get("PIP_FIND_LINKS", "")
        settings = {**os.environ, "UV_LINK_MODE": "hardlink"}
        if links:
            settings["UV_FIND_LINKS"] = ",".join(links.split())
        python = Path(folder, "venv", "bin", "python")
        wanted = [f"torch=={release.torch}", "numpy", *release.pins]  # which torch warns of, where it is not there
        try:
            _run([command, "venv", "--quiet", "--python", release.python, str(python.parent.parent)], settings)
        except NoEnvironment as error:
            raise NoEnvironment(
                f"uv finds no Python {release.python}, or cannot use it (put one on PATH): {error}"
            ) from None
        install = [command, "pip", "install", "--quiet", "--python", str(python)]
        try:
            _run([*install, "--offline", *wanted], settings)
        except NoEnvironment:
            _run([*install, *wanted], {**settings, "UV_CACHE_DIR": f"{folder}/cache"})
        yield python


def _run(command: list[str], settings: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", env=settings, timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoEnvironment(f"uv took more than {LIMIT} s") from None
    if done.returncode:
        raise NoEnvironment(_end(done.stderr) or f"uv ended with exit code {done.returncode}")


def _end(text: str) -> str:
    """The words with which a text ends, some 300 letters of it."""
    said = " ".join(text.split())
    return said if len(said) <= 300 else f"… {said[-300:].partition(' ')[2]}"
