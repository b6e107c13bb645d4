"""How does a program name its values? By reference, as literals, and as containers of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Ref:
    """A value by name, or what lies at ``path`` inside it (``y[1]["a"]`` is ``Ref("y", (1, "a"))``)."""

    name: str
    path: tuple[int | str, ...] = ()


@dataclass(frozen=True, eq=False)
class Literal:
    """An argument or output that is no tensor: None, a bool, an int, a float or a string.

    Two literals are equal if they print alike, so ``1``, ``True`` and ``1.0`` are three: topologies are told apart, and
    cached, by equality.
    """

    value: bool | int | float | str | None

    def __eq__(self, other: object) -> bool:
        """Whether both print alike."""
        return isinstance(other, Literal) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        """The hash of what is printed."""
        return hash(repr(self.value))


@dataclass(frozen=True)
class Pack:
    """A container of values.

    ``kind`` is ``tuple``, ``list``, ``dict``, ``namedtuple`` or ``dataclass``; the last three have ``keys``. What lies
    inside is reached by index or key, in a dataclass by ``.key``: ``Ref("y", (".a",))``.
    """

    kind: str
    items: tuple[Tree, ...]
    keys: tuple[str, ...] = ()


Tree = Union[Ref, Literal, Pack]
