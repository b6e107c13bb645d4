"""A text made simpler as long as it says the same: what is known is put in, what is used once is in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from hookcheck.repro.cutting import cut, dropped
from hookcheck.repro.entries import entry, keyed, unfilled
from hookcheck.repro.fields import (
    attribute_put_in,
    hoisted,
    idle,
    imported,
    made_of_class,
    unguarded,
    unpacked,
    unread,
)
from hookcheck.repro.folding import folded
from hookcheck.repro.inlining import inlined, plainer
from hookcheck.repro.names import put_in
from hookcheck.repro.parameters import specialised, spread, undefaulted
from hookcheck.repro.placing import defined_ahead, placed, thunk
from hookcheck.repro.turns import unrolled
from hookcheck.repro.unstated import unnoted
from hookcheck.repro.yielding import yielded

Rule = Callable[[str], "str | None"]

RULES: tuple[Rule, ...] = tuple(map(lru_cache(maxsize=1000), (
    unguarded, imported, unread, idle, unrolled, yielded, cut, dropped, undefaulted, put_in,
    specialised, hoisted, made_of_class, unpacked,
    keyed, entry, attribute_put_in, unfilled, plainer, unnoted, placed, defined_ahead, spread, thunk, inlined,
)))  # fmt: skip
"""Each gives a text that is simpler in one place, or None. It remembers what it gave: the same texts come up again."""

STEPS = 400
"""So many places are made simpler at most."""


def simpler(text: str, since: str, shows: Callable[[str], bool], more: Sequence[Rule] = ()) -> str:
    """The simplest text that the rules and some ``more`` lead to, as far as each still ``shows`` what it is about.

    The last text is tried first; where it does not show it, a rule has gone too far, and the others go on without it.
    """
    rules: list[Rule] = [lambda text: folded(text, since), *more, *RULES]
    while True:
        texts, by = [text], list[Rule]()
        while len(by) < STEPS:
            step = next(((rule, new) for rule in rules if (new := rule(texts[-1])) and new != texts[-1]), None)
            if step is None:
                break
            by.append(step[0])
            texts.append(step[1])
        if len(texts) == 1 or shows(texts[-1]):
            return texts[-1]
        good, bad = 0, len(texts) - 1
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if shows(texts[middle]) else (good, middle)
        text = texts[good]
        rules = [rule for rule in rules if rule is not by[good]]
