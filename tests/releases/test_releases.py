"""Does all that names releases of torch agree with the one list?"""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from packaging.version import Version

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.ledger import load
from hookcheck.releases import Release, releases

ROOT = Path(__file__).parents[2]
FACTOR = re.compile(r"torch(?:\{(?P<several>[^}]*)\}|(?P<one>[\d.]+))(?::\s*(?P<value>.*))?")


def conditional(text: str) -> list[tuple[tuple[str, ...], str]]:
    """Lines of tox.ini as the releases that each is for, and its value."""
    rows = []
    for line in filter(None, map(str.strip, text.splitlines())):
        found = FACTOR.fullmatch(line)
        assert found, line
        several = (found["several"] or found["one"]).split(",")
        rows.append((tuple(map(str.strip, several)), found["value"] or ""))
    return rows


def in_tox() -> list[Release]:
    """The releases as tox.ini has them."""
    tox = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",))
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    names = [name for several, _ in conditional(tox["tox"]["env_list"]) for name in several]
    of_python = {name: value for several, value in conditional(tox["testenv"]["base_python"]) for name in several}
    needs = conditional(tox["testenv"]["deps"])
    return [
        Release(
            name,
            of_python[name].replace("python", "", 1),
            tuple(value for several, value in needs if name in several and value != f"torch=={name}"),
        )
        for name in names
        if any(value == f"torch=={name}" and several == (name,) for several, value in needs)
    ]


def test_tox_has_an_environment_for_each_release() -> None:
    assert in_tox() == [*releases()]


def test_the_list_has_every_minor_release_once_in_order() -> None:
    versions = [Version(release.torch) for release in releases()]
    assert versions == sorted(set(versions))
    minors = [(version.major, version.minor) for version in versions]
    assert sorted({*minors}) == [*((1, minor) for minor in range(7, 14)), *((2, minor) for minor in range(16))]
    assert [str(version) for version in versions if minors.count((version.major, version.minor)) > 1] == [
        "1.8.0",
        "1.8.1",
    ]


def test_every_bound_of_the_ledger_is_a_release_of_the_list() -> None:
    """A bound that is none would split nothing: so would ``<2.3.7``, a slip for ``<2.7``."""
    known = {Version(release.torch).release[:count] for release in releases() for count in (2, 3)}
    known |= {(*release[:2], 0) for release in known} | {(2, 16)}
    bounds = {(entry.id, specifier.version.replace(".*", "")) for entry in load() for specifier in entry.torch}
    strange = [(id, bound) for id, bound in sorted(bounds) if Version(bound).release not in known]
    assert strange == []
