"""Which pairs of features does the corpus reach, with how many topologies, and why does it not reach the others?"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

from hookcheck.coverage.axes import Word, Words, axes, words
from hookcheck.coverage.rules import APART, NOT_DRAWN, RULES, ExclusionRule
from hookcheck.oracle.expected import Expected
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Topology
from hookcheck.topology.values import values


@dataclass(frozen=True)
class WordPair:
    """Words of two axes, how many topologies have both at one use, and the reason where none has (else empty)."""

    axis_a: str
    word_a: str
    axis_b: str
    word_b: str
    topologies: int
    reason: str


def meeting(uses: Iterable[Words]) -> set[tuple[Word, Word]]:
    """Every two words of different axes that one of the uses has."""
    sides = {pair for use in uses for pair in combinations(use, 2)}
    return {
        ((axis, word), (other, another))
        for (axis, those), (other, beside) in sides
        for word, another in product(those, beside)
    }


def covered(corpus: Iterable[tuple[str, Topology]], rules: tuple[ExclusionRule, ...] = RULES) -> tuple[WordPair, ...]:
    """All pairs there are, axis by axis, with what of the corpus (each topology with its family) has them."""
    named = [[(axis.name, word) for word in axis.words] for axis in axes()]
    counts = {pair: 0 for one, other in combinations(named, 2) for pair in product(one, other)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NaN or not, whether a gradient is there is what counts
        for family, topology in corpus:
            for pair in meeting(words(family, Expected(topology, values(topology)))):
                counts[pair] += 1
    return tuple(WordPair(*a, *b, count, "" if count else reason(a, b, rules)) for (a, b), count in counts.items())


def reason(a: Word, b: Word, rules: tuple[ExclusionRule, ...] = RULES) -> str:
    """Why no topology has both words at one use."""
    why = next((rule.why for rule in rules if rule.speaks_of(a, b)), "")
    apart = _without(a, rules) | _without(b, rules) == {*FAMILIES}
    return why or (APART if apart else NOT_DRAWN)


@cache
def _without(word: Word, rules: tuple[ExclusionRule, ...]) -> frozenset[str]:
    """The families that never have the word."""
    return frozenset(name for name in FAMILIES if any(rule.speaks_of(("family", name), word) for rule in rules))


def untrue(pairs: Iterable[WordPair], rules: tuple[ExclusionRule, ...] = RULES) -> list[str]:
    """The reasons that do not hold: a pair that they call impossible is reached, or they give no pair its reason."""
    pairs = tuple(pairs)
    reached = [((p.axis_a, p.word_a), (p.axis_b, p.word_b)) for p in pairs if p.topologies]
    given = {pair.reason for pair in pairs}
    return [rule.why for rule in rules if rule.why not in given or any(rule.speaks_of(a, b) for a, b in reached)]
