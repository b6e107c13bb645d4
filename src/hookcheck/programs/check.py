"""What a program states: facts. What must be seen, worked out by hand, stands beside what was.

A program goes on after a fact that is wrong, so that one run tells all of them apart.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hookcheck.contract.finding import Finding
from hookcheck.contract.site import CALL, COUNT, EQUAL, NONE, ORDER, PROCESS, RAISES, VALUE, WARNS, Site, SiteKind
from hookcheck.contract.words import stated
from hookcheck.errors import is_the_machines
from hookcheck.oracle.tolerance import as_stated


class NotOffered(Exception):
    """This torch lacks what the program is about; the text says what."""


class NotRun(Exception):
    """This machine lacks what the program needs; the text says what."""


@dataclass(frozen=True)
class Fact:
    """Something that a program states: its name, and how it is not so (None where it is).

    ``features`` are what it has in common with others, for entries of the ledger to name.
    """

    name: str
    finding: Finding | None
    features: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass
class Check:
    """What a program gets: the ``device`` to run on, and where it states its facts.

    Numbers may be tensors, in containers of any depth; they are compared as nested lists, within rounding.
    """

    device: str = "cpu"
    facts: list[Fact] = field(default_factory=list)
    _names: set[str] = field(default_factory=set, init=False, repr=False)

    def equal(self, name: str, observed: Any, expected: Any, site: SiteKind = VALUE) -> None:
        """States that ``observed`` is ``expected``: the same types and lengths, and the same numbers within rounding.

        ``site`` says what both sides are: a ``value``, an ``argument`` of a hook, what each ``call`` of a hook got, the
        ``entry`` that there is of each, or what is left of a ``process``.
        """
        observed, expected = _plain(observed), _plain(expected)
        if _same(observed, expected):
            return self.state(name, None)
        if (observed is None) is not (expected is None):
            sides = (None if side is None else stated(side) for side in (expected, observed))
            return self.state(name, Finding(Site(VALUE), NONE, *sides))
        return self.state(name, Finding(Site(site), EQUAL, stated(expected), stated(observed)))

    def true(self, name: str, observed: bool, site: SiteKind = VALUE) -> None:
        """States that ``observed`` is so."""
        self.equal(name, bool(observed), True, site)

    def calls(self, name: str, observed: int, expected: int) -> None:
        """States how often something was called."""
        self.state(name, None if observed == expected else Finding(Site(CALL), COUNT, expected, observed))

    def order(self, name: str, observed: Sequence[Any], expected: Sequence[Any]) -> None:
        """States what happened after what: both sides list it in the order in which it happened."""
        right = list(observed) == list(expected)
        sides = [[*map(str, side)] for side in (expected, observed)]
        relation = ORDER if sorted(sides[0]) == sorted(sides[1]) else COUNT
        self.state(name, None if right else Finding(Site(CALL), relation, *sides))

    def raises(self, name: str, error: type[BaseException], act: Callable[[], Any], says: str) -> None:
        """States that ``act()`` raises ``error``, with ``says`` in its text; that of another fault will not do."""
        if not says:
            raise ValueError(f"{name!r} says of no text which exception it is")
        expected = f"{error.__name__} that says {says!r}"
        raised = None
        try:
            act()
        except BaseException as other:
            as_expected = isinstance(other, error) and says in str(other)
            if not as_expected and (not isinstance(other, Exception) or is_the_machines(other)):
                raise
            if as_expected:
                return self.state(name, None)
            raised = text_of(other)
        return self.state(name, Finding(Site(PROCESS), RAISES, expected, raised))

    def works(self, name: str, act: Callable[[], Any]) -> Any:
        """States that ``act()`` raises nothing, and gives what it gives (None where it raises)."""
        try:
            result = act()
        except Exception as raised:
            if is_the_machines(raised):
                raise
            self.state(name, Finding(Site(PROCESS), RAISES, None, text_of(raised)))
            return None
        self.state(name, None)
        return result

    def warns(self, name: str, category: type[Warning], act: Callable[[], Any], says: str = "") -> Any:
        """States that ``act()`` warns with ``category``, with ``says`` in the text, and gives what it gives."""
        caught, result = _caught(act)
        right = any(issubclass(w.category, category) and says in str(w.message) for w in caught)
        expected = f"{category.__name__}{f' that says {says!r}' if says else ''}"
        observed = "; ".join(map(_shown, caught)) or None
        self.state(name, None if right else Finding(Site(PROCESS), WARNS, expected, observed))
        return result

    def silent(self, name: str, act: Callable[[], Any], says: str = "") -> Any:
        """States that ``act()`` gives no warning that has ``says`` in its text, and gives what it gives."""
        caught, result = _caught(act)
        texts = [_shown(w) for w in caught if says in str(w.message)]
        self.state(name, Finding(Site(PROCESS), WARNS, None, "; ".join(texts)) if texts else None)
        return result

    def state(self, name: str, finding: Finding | None, features: Mapping[str, frozenset[str]] | None = None) -> None:
        """States a fact: ``finding`` says how it is not so, ``features`` what it has in common with others."""
        if name in self._names:
            raise ValueError(f"two facts have the name {name!r}")
        self._names.add(name)
        self.facts.append(Fact(name, finding, features or {}))


_OWN = re.compile(r"/\S*/(?=[^/\s]+\.py\b)| at 0x[0-9A-Fa-f]+")
"""What in a text is one machine's or one run's own, and so must not be in a record: folders of files, and addresses."""


def text_of(raised: BaseException) -> str:
    """The exception's class and the first line of its text, files by name alone: records compare between machines."""
    lines = _OWN.sub("", str(raised)).strip().splitlines()
    return f"{type(raised).__name__}: {lines[0] if lines else ''}"


def _shown(warning: warnings.WarningMessage) -> str:
    """The warning's class and its text, as `text_of` has those of an exception."""
    return f"{warning.category.__name__}: {_OWN.sub('', str(warning.message))}"


def _caught(act: Callable[[], Any]) -> tuple[list[warnings.WarningMessage], Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = act()
    return caught, result


def _plain(value: Any) -> Any:
    """Tensors as nested lists, in containers too."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if type(value) in (tuple, list):
        return type(value)(_plain(item) for item in value)
    if type(value) is dict:
        return {key: _plain(item) for key, item in value.items()}
    return value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, (int, float)) and not isinstance(b, bool):
        return as_stated(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return bool(a == b)
