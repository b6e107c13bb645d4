"""Which features meet in the corpus, two by two or three by three, in how many topologies, and why do others not?"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, product
from typing import Any

from hookcheck.coverage.axes import Word, Words, axes, words
from hookcheck.coverage.members import Member
from hookcheck.coverage.rules import APART, NOT_DRAWN, RULES, ExclusionRule
from hookcheck.oracle.expected import Expected
from hookcheck.topology.families import FAMILIES
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


@dataclass(frozen=True)
class WordTriple:
    """Words of three axes, how many topologies have all at one use, and the reason where none has (else empty)."""

    words: tuple[Word, ...]
    topologies: int
    reason: str

    @property
    def row(self) -> Mapping[str, Any]:
        """As a line of JSON has it."""
        named = [f"{axis}: {word}" for axis, word in self.words]
        return {"choices": named, "topologies": self.topologies, "reason": self.reason}


TRIPLES = (
    ("hook kind", "context", "tensor"), ("layer group", "context", "None pattern"),
    ("layer group", "tensor", "None pattern"), ("arity", "context", "None pattern"),
)  # fmt: skip
"""The axes of which three are looked at together: where hooks are called, and what they are then given."""


def meeting(uses: Iterable[Words]) -> set[tuple[Word, Word]]:
    """Every two words of different axes that one of the uses has."""
    sides = {pair for use in uses for pair in combinations(use, 2)}
    return {
        ((axis, word), (other, another))
        for (axis, those), (other, beside) in sides
        for word, another in product(those, beside)
    }


def covered(corpus: Iterable[Member], rules: tuple[ExclusionRule, ...] = RULES) -> tuple[WordPair, ...]:
    """All pairs there are, axis by axis, with what of the corpus has them."""
    named = [[(axis.name, word) for word in axis.words] for axis in axes()]
    counts = {pair: 0 for one, other in combinations(named, 2) for pair in product(one, other)}
    for member in corpus:
        for pair in meeting(_words(member)):
            counts[pair] += 1
    return tuple(
        WordPair(*a, *b, count, "" if count else reason(a, b, rules=rules)) for (a, b), count in counts.items()
    )


def triples(corpus: Iterable[Member], rules: tuple[ExclusionRule, ...] = RULES) -> Iterator[WordTriple]:
    """All there are of the words of each three of `TRIPLES`, with what of the corpus has them."""
    counts: Counter[tuple[Word, ...]] = Counter()
    for member in corpus:
        uses = [dict(use) for use in _words(member)]
        counts.update({met for names in TRIPLES for use in uses for met in together(names, use)})
    every = {axis.name: axis.words for axis in axes()}
    for met in chain.from_iterable(together(names, every) for names in TRIPLES):
        yield WordTriple(met, counts[met], "" if counts[met] else reason(*met, rules=rules))


def together(names: Iterable[str], words: Mapping[str, Iterable[str]]) -> Iterator[tuple[Word, ...]]:
    """Every choice of one word of each of those axes."""
    return product(*([(name, word) for word in words[name]] for name in names))


def _words(member: Member) -> frozenset[Words]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NaN or not, whether a gradient is there is what counts
        return words(member.family, Expected(member.topology, values(member.topology)), member.kinds)


def reason(*met: Word, rules: tuple[ExclusionRule, ...] = RULES) -> str:
    """Why no topology has those words at one use."""
    apart = frozenset[str]().union(*(_without(word, rules) for word in met)) == {*FAMILIES}
    why = (rule.why for a, b in combinations(met, 2) for rule in rules if rule.speaks_of(a, b))
    return next(why, APART if apart else NOT_DRAWN)


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
