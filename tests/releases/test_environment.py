"""Is an environment made as a release needs it, removed, and every failure one line that says what to do?"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.releases import Release
from hookcheck.releases.environment import EnvironmentFailed, environment, release_of, settings

RELEASE = Release("2.6.0", "3.11", ("numpy<2",))


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A uv that writes down how it is called, and fails where it is told to install torch 9.9.9."""
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\necho "$@ links=$UV_FIND_LINKS" >> "$(dirname "$0")/calls"\n'
        'case "$*" in *9.9.9*) printf "  × No solution\\n  ╰─▶ there is no torch==9.9.9\\n" >&2; exit 1;; esac\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    return program


def test_it_has_the_release_its_pins_and_what_is_asked_for(uv: Path) -> None:
    with environment(RELEASE, ["./here"]) as python:
        folder = python.parents[1]
        assert folder.is_dir()
    assert not folder.exists()
    creation, installed = (uv.parent / "calls").read_text().splitlines()
    assert creation.startswith("venv --quiet --python 3.11 ")
    assert f"--python {python} torch==2.6.0 numpy<2 ./here links=/wheels" in installed


def test_what_cannot_be_made_is_one_line(uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = r"torch 9\.9\.9 on Python 3\.11: No solution there is no torch==9\.9\.9$"
    with pytest.raises(EnvironmentFailed, match=said), environment(Release("9.9.9", "3.11", ()), []):
        pass
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentFailed, match="pip install uv"), environment(RELEASE, []):
        pass


def test_what_pip_is_told_uv_is_told() -> None:
    variables = settings({"PIP_INDEX_URL": "a", "PIP_FIND_LINKS": "b", "UV_FIND_LINKS": "c", "HOME": "d"})
    assert variables == {
        "PIP_INDEX_URL": "a", "PIP_FIND_LINKS": "b", "UV_DEFAULT_INDEX": "a", "UV_FIND_LINKS": "c", "HOME": "d",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("version", "like"), [("2.6.0", "2.6.0"), ("2.5.0", "2.5.1"), ("2.99.0", "2.15.0"), ("1.12.0+cpu", "1.12.1")]
)
def test_an_unlisted_release_needs_what_its_neighbour_needs(version: str, like: str) -> None:
    release, known = release_of(version), release_of(like)
    assert (release.python, release.pins) == (known.python, known.pins)
    assert release.torch == version.partition("+")[0]


@pytest.mark.parametrize(("version", "words"), [("two", "is no version of torch"), ("1.4.0", "is older than 1.7.1")])
def test_what_is_no_release_is_refused(version: str, words: str) -> None:
    with pytest.raises(HookcheckError, match=words):
        release_of(version)
