"""Does all that names releases of torch agree with the one list?"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.ledger import load
from hookcheck.releases import NIGHTLY, Release, releases

ROOT = Path(__file__).parents[2]
FACTOR = re.compile(r"torch(?:\{(?P<several>[^}]*)\}|(?P<one>[\d.]+))(?::\s*(?P<value>.*))?")


def conditional(text: str) -> list[tuple[tuple[str, ...], str]]:
    """Lines of tox.ini as the releases that each is for, and its value."""
    rows = []
    for line in filter(None, map(str.strip, text.splitlines())):
        match = FACTOR.fullmatch(line)
        assert match, line
        several = (match["several"] or match["one"]).split(",")
        rows.append((tuple(map(str.strip, several)), match["value"] or ""))
    return rows


TOX = (ROOT / "tox.ini").read_text(encoding="utf-8")


def in_tox(text: str) -> list[Release]:
    """The releases as the text of a tox.ini has them."""
    tox = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",))
    tox.read_string(text)
    names = [name for several, _ in conditional(tox["tox"]["env_list"]) for name in several]
    of_python = {name: value for several, value in conditional(tox["testenv"]["base_python"]) for name in several}
    needs = conditional(tox["testenv"]["deps"])
    return [
        Release(
            name,
            of_python.get(name, "").replace("python", "", 1),
            tuple(value for several, value in needs if name in several and value != f"torch=={name}"),
        )
        for name in names
        if any(value == f"torch=={name}" and several == (name,) for several, value in needs)
    ]


def test_tox_has_an_environment_for_each_release() -> None:
    assert in_tox(TOX) == [*releases()]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("    torch2.4.1\n", ""),
        ("torch2.4.1: torch==2.4.1", "torch2.4.1: torch==2.4.0"),
        ("2.3.1, 2.4.1}: numpy<2", "2.3.1}: numpy<2"),
        ("setuptools<60", "setuptools<61"),
        ("torch{2.10.0, 2.11.0, 2.12.1}: python3.12", "torch{2.10.0, 2.11.0, 2.12.1}: python3.13"),
    ],
)
def test_a_tox_that_says_otherwise_is_seen(right: str, wrong: str) -> None:
    assert TOX.count(right) == 1
    assert in_tox(TOX.replace(right, wrong)) != [*releases()]


def test_tox_has_an_environment_for_the_newest_build() -> None:
    assert f"[testenv:torch{NIGHTLY}]" in TOX


def test_the_list_has_every_minor_release_once_in_order() -> None:
    versions = [Version(release.torch) for release in releases()]
    assert versions == sorted(set(versions))
    minors = [(version.major, version.minor) for version in versions]
    newest = minors[-1][1]
    assert sorted({*minors}) == [*((1, minor) for minor in range(7, 14)), *((2, minor) for minor in range(newest + 1))]
    assert [str(version) for version in versions if minors.count((version.major, version.minor)) > 1] == [
        "1.8.0",
        "1.8.1",
    ]


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
