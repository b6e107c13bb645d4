"""Which contexts meet each other in the corpus, and why do others not?

Two of one place nest, each within itself too; others are around the same network, in one order or the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, combinations, combinations_with_replacement

from hookcheck.coverage.members import Member
from hookcheck.coverage.pairs import WordPair
from hookcheck.coverage.rules import NOT_DRAWN
from hookcheck.topology.contexts import CONTEXTS
from hookcheck.topology.families import compiled, context
from hookcheck.topology.model import inside, nesting


def contexts_met(corpus: Iterable[Member]) -> Iterator[WordPair]:
    """Every two contexts, those that say whether autograd records among them, with what of the corpus has both."""
    counts: Counter[frozenset[str]] = Counter()
    for _, topology, _ in corpus:
        counts.update({frozenset(pair) for pair in chain(combinations(inside(topology), 2), nesting(topology))})
    for one, other in combinations_with_replacement(CONTEXTS, 2):
        count = counts[frozenset((one, other))]
        yield WordPair("context", one, "context", other, count, "" if count else refusal(one, other) or NOT_DRAWN)


def refusal(one: str, other: str) -> str:
    """Why neither of two contexts is drawn in the other or beside it; empty where nothing stands in the way."""
    place, another = CONTEXTS[one].wraps, CONTEXTS[other].wraps
    nested = [{place: (one, other)}, {place: (other, one)}]
    both = nested if place == another else [{place: (one,), another: (other,)}]
    whys = [why for outer, inner, why in compiled.NOT_AROUND if _names(outer, inner, one, other)]
    if all(map(context.apart, both)):
        whys += [why for name, others, why in context.APART if _names((name,), others, one, other)]
        whys += [why for outer, inner, why in context.NOT_WITHIN if _names(outer, inner, one, other)]
    return next(iter(whys), "")


def _names(outer: Iterable[str], inner: Iterable[str], one: str, other: str) -> bool:
    """Whether a row of a table is about the two, whichever is the outer one."""
    return (one in outer and other in inner) or (other in outer and one in inner)
