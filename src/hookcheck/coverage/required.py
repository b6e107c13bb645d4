"""Which pairs of features must the corpus have, and which are left to exploration? One table, by axes.

Exploration draws networks anew in each run, and what it finds is offered for the corpus; so what is left to it may be
missing there. What must be there is what torch's code of hooks tells apart, or what decides what a hook is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hookcheck.coverage.pairs import WordPair
from hookcheck.coverage.rules import POSSIBLE, ExclusionRule
from hookcheck.topology.families.compiled import by_either_backend


@dataclass(frozen=True)
class PairChoice:
    """Whether the corpus must have the pairs of words of two ``axes``, of which each is a pattern, and why."""

    axes: tuple[str, str]
    required: bool
    why: str


CHOICES = (
    PairChoice(
        ("hook kind", "*"), True, "each kind is called by code of its own, which anything that it meets may break"
    ),
    PairChoice(("context", "tensor"), True, "both put something else in the place of the tensors that a hook is given"),
    PairChoice(("context", "context"), True, "each acts on what the other hands on; grad modes are among them"),
    PairChoice(("grad mode", "None pattern"), True, "the one decides which gradients the other has"),
    PairChoice(("arity", "None pattern"), True, "together they are the form of what a hook is given"),
    PairChoice(("family", "*"), False, "a family is about one feature; what its networks have beside that is as drawn"),
    PairChoice(("layer group", "*"), False, "hooks are called around a module, by code that knows no layers"),
    PairChoice(("depth", "*"), False, "code of hooks does not ask how deep a module lies"),
    PairChoice(
        ("dtype", "*"), False, "code of hooks does not ask for a dtype; what is rounded is the formulas' affair"
    ),
    PairChoice(("in-place", "*"), False, "what is forbidden is so wherever it is, by one check"),
    PairChoice(("reuse", "*"), False, "each call has its own boundary, whatever else calls the module"),
    PairChoice(("grad mode", "*"), False, "without grad no hook on gradients is called, whatever else there is"),
    PairChoice(("arity", "*"), False, "how many tensors there are shows in what a hook is given, which is required"),
    PairChoice(
        ("None pattern", "*"), False, "it follows from where the loss is and from what requires grad, not from these"
    ),
)
"""The pairs of axes, of which the first that fits decides."""

MAY_BE_MISSING = (
    ExclusionRule(
        "where no hook is called, none shows how many arguments there were",
        ("arity=0 in",),
        ("None pattern=no firing",),
    ),
)
"""Why required pairs may be missing although nothing stands in the way of them."""

ANOTHER_BACKEND = "compiling is slow, and what compiles by another backend has it"
"""The same of what compiles, as long as another backend does."""


def choice(axis: str, other: str) -> PairChoice:
    """What is chosen for pairs of words of those two axes."""
    return next(each for each in CHOICES if _fits(each, axis, other) or _fits(each, other, axis))


def _fits(each: PairChoice, axis: str, other: str) -> bool:
    return fnmatchcase(axis, each.axes[0]) and fnmatchcase(other, each.axes[1])


def missing(pairs: Iterable[WordPair]) -> dict[WordPair, str]:
    """The pairs that are required and possible, and in no line of the corpus; each with the reason why it may be so,
    which is empty where there is none."""
    pairs = tuple(pairs)
    met = {_by_either_backend(pair) for pair in pairs if pair.topologies}
    return {
        pair: ANOTHER_BACKEND if _by_either_backend(pair) in met else _allowed(pair)
        for pair in pairs
        if pair.reason in POSSIBLE and choice(pair.axis_a, pair.axis_b).required
    }


def _allowed(pair: WordPair) -> str:
    a, b = (pair.axis_a, pair.word_a), (pair.axis_b, pair.word_b)
    return next((rule.why for rule in MAY_BE_MISSING if rule.speaks_of(a, b)), "")


def _by_either_backend(pair: WordPair) -> frozenset[tuple[str, str]]:
    """A pair of which what compiles does so by whichever backend."""
    words = ((pair.axis_a, pair.word_a), (pair.axis_b, pair.word_b))
    return frozenset((axis, by_either_backend(word) if axis == "context" else word) for axis, word in words)
