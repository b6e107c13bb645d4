"""Where something can be wrong, and which relations can fail there: what a record keeps of a finding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SiteKind = Literal["value", "argument", "call", "entry", "process"]
VALUE: SiteKind = "value"
ARGUMENT: SiteKind = "argument"
CALL: SiteKind = "call"
ENTRY: SiteKind = "entry"
PROCESS: SiteKind = "process"
"""Where something is wrong: the numbers of a gradient or another value; what a hook is called with, or a tensor is, its
numbers aside; the calls of hooks; the entries of a tuple; the process that runs a program."""

Relation = Literal[
    "equal", "close", "None", "absent", "count", "order", "raises", "warns", "kept alive", "same as without hooks"
]
EQUAL: Relation = "equal"
CLOSE: Relation = "close"
NONE: Relation = "None"
ABSENT: Relation = "absent"
COUNT: Relation = "count"
ORDER: Relation = "order"
RAISES: Relation = "raises"
WARNS: Relation = "warns"
KEPT_ALIVE: Relation = "kept alive"
AS_WITHOUT_HOOKS: Relation = "same as without hooks"
"""What must hold: both sides are of the same types, with numbers as near as CLOSE has them; the numbers are as near as
rounding explains; both are None or neither is; what is expected is not absent among what is observed; there are as many
(of what both sides list, or number); they come in that order; just that is raised, or warned of; nothing is kept alive;
it is bit by bit what it is without hooks."""


@dataclass(frozen=True)
class Called:
    """The call of a hook that something is wrong about, so that a script finds it again.

    The hook is the one on ``path`` (a module, a leaf, an output of a module; ``pack`` or ``unpack``), and of a chain of
    hooks there that at the place ``link``. The call is its ``number``-th, counted from 0. ``argument`` is the name of
    the hook's parameter that matters; ``requires_grad`` stands for that of any gradient, an empty one for all of them.
    """

    path: str
    number: int = 0
    argument: str = ""
    link: int = 0


@dataclass(frozen=True)
class Site:
    """Where something is wrong: what is there, and its name where the subject of the deviation does not say it.

    ``call`` is the call of a hook at which it shows, where neither subject nor name say it: scripts look there.
    """

    kind: SiteKind
    name: str = ""
    call: Called | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Kind and name, for people.

        >>> print(Site(VALUE, "grad_input[0]"))
        value grad_input[0]
        """
        return f"{self.kind} {self.name}".rstrip()
