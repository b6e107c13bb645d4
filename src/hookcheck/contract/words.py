"""Values in words: what a clause expects and what it observes, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookcheck.probe.observation import numbers


class Named(str):
    """An object of which only its ``repr`` is kept."""

    def __repr__(self) -> str:
        """The text that it is, without quotes."""
        return str(self)


_LITERALS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


@dataclass(frozen=True)
class Stated:
    """What a program states: a value of plain Python, in words its ``repr``."""

    value: Any


def stated(value: Any) -> Stated:
    """``value`` as a program states it: every object in it that is no plain Python by its ``repr`` alone."""
    return Stated(_plain(value))


def _plain(value: Any) -> Any:
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value if type(value) in _LITERALS else Named(repr(value))


def shown(value: Any) -> str:
    """A value in its containers: of tensors the numbers if they are few, and else their shape; texts as they are."""
    if isinstance(value, Stated):
        return repr(value.value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return _array(value) if isinstance(value, np.ndarray) else str(value)


def joined(values: Iterable[Any]) -> str:
    """What happened or was there, one after the other."""
    return ", ".join(map(str, values))


def _array(array: np.ndarray[Any, Any]) -> str:
    plain = numbers(array)
    plain = plain.astype(complex if plain.dtype.kind == "c" else float)
    if array.size <= 6:
        return str(np.round(plain, 6).tolist())
    first: Sequence[str] = [f"{x:.6g}" for x in plain.reshape(-1)[:3]]
    return f"[{', '.join(first)}, …] of shape {array.shape}"
