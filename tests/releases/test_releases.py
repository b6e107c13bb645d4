"""Does all that names releases of torch agree with the one list?"""

from __future__ import annotations

import configparser
import json
from collections.abc import Callable, Iterable, Sequence
from difflib import ndiff
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.ledger import load
from hookcheck.releases import NIGHTLY, Release, releases

TOX = (Path(__file__).parents[2] / "tox.ini").read_text(encoding="utf-8")
TO_DO = {"+": "write", "-": "take out"}
"""What is to be done with a line, by the sign that it has in a difference."""


def due(listed: Sequence[Release]) -> dict[tuple[str, str], list[str]]:
    """What tox.ini is to say of the releases, line by line, by section and key."""

    def shared(values_of: Callable[[Release], Iterable[str]]) -> list[str]:
        values = dict.fromkeys(value for release in listed for value in values_of(release))
        return [f"{factor([r.torch for r in listed if value in values_of(r)])}: {value}" for value in values]

    return {
        ("tox", "env_list"): [f"torch{release.torch}" for release in listed],
        ("testenv", "base_python"): shared(lambda release: [f"python{release.python}"]),
        ("testenv", "deps"): [
            *(f"torch{release.torch}: torch=={release.torch}" for release in listed),
            *shared(lambda release: release.pins),
        ],
    }


def factor(names: Sequence[str]) -> str:
    """How tox writes the environments of several releases, or of one."""
    return f"torch{names[0]}" if len(names) == 1 else f"torch{{{', '.join(names)}}}"


def corrections(text: str, listed: Sequence[Release]) -> list[str]:
    """What is to be changed in the text of a tox.ini, to be pasted, so that it has an environment for each release."""
    tox = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",))
    tox.read_string(text)
    return [
        f"tox.ini, {key} of [{section}], {TO_DO[line[0]]}:\n    {line[2:]}"
        for (section, key), lines in due(listed).items()
        for line in ndiff(tox[section][key].strip().splitlines(), lines)
        if line[0] in TO_DO
    ]


def test_tox_has_an_environment_for_each_release() -> None:
    wrong = corrections(TOX, releases())
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("    torch2.4.1\n", ""),
        ("    torch2.4.1\n    torch2.5.1\n", "    torch2.5.1\n    torch2.4.1\n"),
        ("torch2.4.1: torch==2.4.1", "torch2.4.1: torch==2.4.0"),
        ("2.3.1, 2.4.1}: numpy<2", "2.3.1}: numpy<2"),
        ("setuptools<60", "setuptools<61"),
        ("torch{2.10.0, 2.11.0, 2.12.1}: python3.12", "torch{2.10.0, 2.11.0, 2.12.1}: python3.13"),
    ],
)
def test_a_tox_that_says_otherwise_is_seen(right: str, wrong: str) -> None:
    assert TOX.count(right) == 1
    assert corrections(TOX.replace(right, wrong), releases())


def test_what_a_new_release_needs_is_said_to_be_pasted() -> None:
    listed = [Release("2.15.0", "3.11", ()), Release("2.16.0", "3.11", ("numpy<3",))]
    text = "[tox]\nenv_list =\n    torch2.15.0\n[testenv]\nbase_python =\n    torch2.15.0: python3.11\n"
    assert corrections(f"{text}deps =\n    torch2.15.0: torch==2.15.0\n", listed) == [
        "tox.ini, env_list of [tox], write:\n    torch2.16.0",
        "tox.ini, base_python of [testenv], take out:\n    torch2.15.0: python3.11",
        "tox.ini, base_python of [testenv], write:\n    torch{2.15.0, 2.16.0}: python3.11",
        "tox.ini, deps of [testenv], write:\n    torch2.16.0: torch==2.16.0",
        "tox.ini, deps of [testenv], write:\n    torch2.16.0: numpy<3",
    ]


def test_tox_has_an_environment_for_the_newest_build() -> None:
    assert f"[testenv:torch{NIGHTLY}]" in TOX


def missing(listed: Sequence[Release]) -> list[str]:
    """The rows that releases.toml lacks, to be pasted: one for each minor release that was left out before another."""
    minors = {Version(release.torch).release[:2] for release in listed}
    newest = max(minors)[1]
    every = [*((1, minor) for minor in range(7, 14)), *((2, minor) for minor in range(newest + 1))]
    like = listed[-1]
    return [
        f'[[release]]\ntorch = "{major}.{minor}.0"\npython = "{like.python}"\npins = {json.dumps(like.pins)}'
        for major, minor in every
        if (major, minor) not in minors
    ]


def test_the_list_has_every_minor_release_once_in_order() -> None:
    rows = missing(releases())
    assert not rows, "releases.toml lacks:\n" + "\n\n".join(rows)
    versions = [Version(release.torch) for release in releases()]
    assert versions == sorted(set(versions))
    minors = [version.release[:2] for version in versions]
    assert [str(version) for version in versions if minors.count(version.release[:2]) > 1] == ["1.8.0", "1.8.1"]


def test_a_row_that_is_missing_is_said_to_be_pasted() -> None:
    listed = [release for release in releases() if release.torch != "2.14.1"]
    assert missing(listed) == ['[[release]]\ntorch = "2.14.0"\npython = "3.11"\npins = []']


def strange_bounds(entries: Iterable[tuple[str, SpecifierSet]]) -> list[tuple[str, str]]:
    """The bounds of ``entries`` (id and specifier) that are neither a release of the list, nor a minor one, nor the
    minor release that comes next."""
    newest = Version(releases()[-1].torch)
    known = {Version(release.torch).release[:count] for release in releases() for count in (2, 3)}
    known |= {(newest.major, newest.minor + 1)}
    known |= {(*release[:2], 0) for release in known}
    bounds = {(id, specifier.version.replace(".*", "")) for id, torch in entries for specifier in torch}
    return [(id, bound) for id, bound in sorted(bounds) if Version(bound).release not in known]


def test_every_bound_of_the_ledger_is_a_release_of_the_list() -> None:
    """A bound that is none would split nothing: so would ``<2.3.7``, a slip for ``<2.7``."""
    assert strange_bounds((entry.id, entry.torch) for entry in load()) == []


@pytest.mark.parametrize("bound", ["<2.3.7", ">=1.6", "<2.99", "==2.6.1"])
def test_a_bound_that_is_no_release_is_seen(bound: str) -> None:
    assert strange_bounds([("planted", SpecifierSet(bound))]) == [("planted", bound.lstrip("<>="))]
