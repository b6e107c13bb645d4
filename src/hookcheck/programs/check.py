"""What does a program state? Facts: what must be seen, worked out by hand, beside what was.

A program goes on after a fact that is wrong, so that one run tells all of them apart.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hookcheck.contract.clause import Mismatch
from hookcheck.errors import exhausted
from hookcheck.oracle.tolerance import as_stated


class NotOffered(Exception):
    """This torch lacks what the program is about; the text says what."""


class NotRun(Exception):
    """This machine lacks what the program needs; the text says what."""


@dataclass(frozen=True)
class Fact:
    """Something that a program states: its name, and how it is not so (None where it is)."""

    name: str
    mismatch: Mismatch | None


@dataclass
class Check:
    """What a program gets: the ``device`` to run on, and where it states its facts.

    Numbers may be tensors, in containers of any depth; they are compared as nested lists, within rounding.
    """

    device: str = "cpu"
    facts: list[Fact] = field(default_factory=list)

    def equal(self, name: str, observed: Any, expected: Any, gap: str = "wrong values") -> None:
        """States that ``observed`` is ``expected``: the same types and lengths, and the same numbers within rounding.

        ``gap`` says how it differs if it does, where None on one side does not tell.
        """
        observed, expected = _plain(observed), _plain(expected)
        if _same(observed, expected):
            return self._state(name, None)
        if (observed is None) is not (expected is None):
            gap = "None instead of a gradient" if observed is None else "a gradient instead of None"
        return self._state(name, Mismatch(gap, repr(expected), repr(observed)))

    def true(self, name: str, observed: bool, gap: str = "wrong values") -> None:
        """States that ``observed`` is so."""
        self.equal(name, bool(observed), True, gap)

    def calls(self, name: str, observed: int, expected: int) -> None:
        """States how often something was called."""
        gap = "not fired" if observed < expected else "fired too often"
        mismatch = Mismatch(gap, f"{expected} calls", f"{observed} calls")
        self._state(name, None if observed == expected else mismatch)

    def order(self, name: str, observed: Sequence[Any], expected: Sequence[Any]) -> None:
        """States what happened after what: both sides list it in the order in which it happened."""
        observed, expected = list(observed), list(expected)
        gap = "wrong order" if sorted(map(str, observed)) == sorted(map(str, expected)) else None
        gap = gap or ("not fired" if len(observed) < len(expected) else "fired too often")
        mismatch = Mismatch(gap, ", ".join(map(str, expected)), ", ".join(map(str, observed)) or "nothing")
        self._state(name, None if observed == expected else mismatch)

    def raises(self, name: str, error: type[BaseException], act: Callable[[], Any], says: str = "") -> None:
        """States that ``act()`` raises ``error``, with ``says`` in its text."""
        expected = f"{error.__name__}{f' that says {says!r}' if says else ''}"
        try:
            act()
        except BaseException as raised:
            as_expected = isinstance(raised, error) and says in str(raised)
            if not as_expected and (not isinstance(raised, Exception) or exhausted(raised)):
                raise
            self._state(name, None if as_expected else Mismatch("raised", expected, told(raised)))
        else:
            self._state(name, Mismatch("not raised", expected, "no error"))

    def works(self, name: str, act: Callable[[], Any]) -> Any:
        """States that ``act()`` raises nothing, and gives what it gives (None where it raises)."""
        try:
            result = act()
        except Exception as raised:
            if exhausted(raised):
                raise
            self._state(name, Mismatch("raised", "no error", told(raised)))
            return None
        self._state(name, None)
        return result

    def warns(self, name: str, category: type[Warning], act: Callable[[], Any], says: str = "") -> Any:
        """States that ``act()`` warns with ``category``, with ``says`` in the text, and gives what it gives."""
        caught, result = _caught(act)
        found = any(issubclass(w.category, category) and says in str(w.message) for w in caught)
        expected = f"{category.__name__}{f' that says {says!r}' if says else ''}"
        observed = "; ".join(map(_shown, caught)) or "no warning"
        self._state(name, None if found else Mismatch("no warning", expected, observed))
        return result

    def silent(self, name: str, act: Callable[[], Any], says: str = "") -> Any:
        """States that ``act()`` gives no warning that has ``says`` in its text, and gives what it gives."""
        caught, result = _caught(act)
        texts = [_shown(w) for w in caught if says in str(w.message)]
        self._state(name, Mismatch("new warning", "no warning", "; ".join(texts)) if texts else None)
        return result

    def _state(self, name: str, mismatch: Mismatch | None) -> None:
        if any(fact.name == name for fact in self.facts):
            raise ValueError(f"two facts have the name {name!r}")
        self.facts.append(Fact(name, mismatch))


_OWN = re.compile(r"/\S*/(?=[^/\s]+\.py\b)| at 0x[0-9A-Fa-f]+")
"""What in a text is one machine's or one run's own, and so must not be in a record: folders of files, and addresses."""


def told(raised: BaseException) -> str:
    """The exception's class and the first line of its text, files by name alone: records compare between machines."""
    lines = _OWN.sub("", str(raised)).strip().splitlines()
    return f"{type(raised).__name__}: {lines[0] if lines else ''}"


def _shown(warning: warnings.WarningMessage) -> str:
    """The warning's class and its text, as `told` has those of an exception."""
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
