"""How are pairs of features told to people? Counts for every two axes, and the pairs that are missing, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hookcheck.coverage.axes import axes
from hookcheck.coverage.pairs import WordPair, WordTriple
from hookcheck.coverage.required import CHOICES, PairChoice, choice
from hookcheck.coverage.required import missing as missing_of_required
from hookcheck.coverage.rules import POSSIBLE


def columns() -> tuple[str, ...]:
    """The columns of `counts`: below the diagonal is all there is to tell, so the last axis needs none."""
    return ("pairs", *(axis.name for axis in axes()[:-1]))


def counts(pairs: Iterable[WordPair]) -> list[Mapping[str, str]]:
    """A row for each axis but the first: reached and all pairs with each axis before it, and of contexts."""
    total: Counter[tuple[str, str]] = Counter()
    reached: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        total[pair.axis_a, pair.axis_b] += 1
        reached[pair.axis_a, pair.axis_b] += bool(pair.topologies)
    names = [axis.name for axis in axes()]
    return [
        {"pairs": b, **{a: f"{reached[a, b]}/{total[a, b]}" if (a, b) in total else "" for a in names[:-1]}}
        for b in names[1:]
    ]


CHOSEN = ("axes", "required", "reached", "ruled out", "missing", "why")
"""The columns of `chosen`."""


def chosen(pairs: Iterable[WordPair]) -> list[Mapping[str, str]]:
    """A row for each choice of axes: whether their pairs are required, how many are there, and how many are not."""
    rows: dict[PairChoice, Counter[str]] = {each: Counter() for each in CHOICES}
    for pair in pairs:
        rows[choice(pair.axis_a, pair.axis_b)][_outcome(pair)] += 1
    return [
        {
            "axes": " × ".join(each.axes).replace("*", "any other"),
            "required": "yes" if each.required else "no",
            **{column: f"{row[column]:,}" for column in ("reached", "ruled out")},
            "missing": f"{row['possible']:,}",
            "why": each.why,
        }
        for each, row in rows.items()
    ]


def required_and_missing(pairs: Iterable[WordPair]) -> list[str]:
    """What is required and missing, by the reason why it may be."""
    why = Counter(missing_of_required(pairs).values())
    return ["", *(f"required and missing, {reason or 'without a reason'}: {_plural(why[reason])}" for reason in why)]


def by_threes(triples: Iterable[WordTriple]) -> list[Mapping[str, str]]:
    """A row for each three axes: how many of their words meet, cannot, or could and do not."""
    rows: dict[str, Counter[str]] = {}
    for triple in triples:
        rows.setdefault(" × ".join(axis for axis, _ in triple.words), Counter())[_outcome(triple)] += 1
    return [{"axes": axes, **{column: f"{row[column]:,}" for column in THREES[1:]}} for axes, row in rows.items()]


THREES = ("axes", "reached", "ruled out", "possible")
"""The columns of `by_threes`."""


def by_reason(triples: Iterable[WordTriple]) -> list[Mapping[str, Any]]:
    """Each reason why three words do not meet, and of how many it is the reason."""
    why = Counter(triple.reason for triple in triples if triple.reason)
    return [{"reason": reason, "triples": count} for reason, count in why.most_common()]


def missing(pairs: Iterable[WordPair]) -> list[str]:
    """Each reason with the pairs that it is the reason of; words that miss the same ones stand together."""
    by_reason: dict[str, dict[tuple[str, str], dict[str, list[str]]]] = {}
    for pair in pairs:
        if pair.reason:
            between = by_reason.setdefault(pair.reason, {}).setdefault((pair.axis_a, pair.axis_b), {})
            between.setdefault(pair.word_a, []).append(pair.word_b)
    lines = []
    for reason in sorted(by_reason, key=POSSIBLE.count):
        by_axes = by_reason[reason]
        lines += ["", f"{reason} ({_plural(sum(len(bs) for each in by_axes.values() for bs in each.values()))}):"]
        for (a, b), each in by_axes.items():
            alike: dict[tuple[str, ...], list[str]] = {}
            for word, others in each.items():
                alike.setdefault(tuple(others), []).append(word)
            lines += [f"  {a} {_listed(a, words)} with {b} {_listed(b, others)}" for others, words in alike.items()]
    return lines


def summary(pairs: Iterable[WordPair], topologies: int) -> str:
    """How many pairs are reached, ruled out, and neither."""
    numbers = Counter("reached" if pair.topologies else pair.reason in POSSIBLE for pair in pairs)
    return (
        f"{numbers['reached']:,} of {_plural(sum(numbers.values()))} reached by {topologies:,} topologies; "
        f"{numbers[False]:,} ruled out, {numbers[True]:,} possible"
    )


def _outcome(met: WordPair | WordTriple) -> str:
    return "reached" if met.topologies else "possible" if met.reason in POSSIBLE else "ruled out"


def _listed(axis: str, words: Iterable[str]) -> str:
    shown, every = tuple(words), next(each.words for each in axes() if each.name == axis)
    return "(any)" if len(shown) == len(every) > 1 else ", ".join(shown)


def _plural(count: int) -> str:
    return f"{count:,} pair" if count == 1 else f"{count:,} pairs"
