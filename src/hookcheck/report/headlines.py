"""What the records come to, in sentences: each with the page that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.report import address
from hookcheck.report.prose import many
from hookcheck.report.scopes import title
from hookcheck.report.signs import HOLDS, PARTLY, REFUTED, SIGNS
from hookcheck.report.standing import ShownVerdict, is_wrong, says_something
from hookcheck.report.view import Changes, SiteView

LEADING = ("full_backward", "backward")
"""The hook kinds that most readers come for, the recommended one first."""


@dataclass(frozen=True)
class Headline:
    """A sentence, and the address that it leads to; empty where there is none."""

    text: str
    link: str = ""


def headlines(view: SiteView, newest: Changes | None) -> list[Headline]:
    """The findings, what most readers need first; ``newest`` is what the newest release changed."""
    return [*_kinds(view), *_newest(view, newest), *_unexplained(view), *_claims(view)]


def _kinds(view: SiteView) -> Iterator[Headline]:
    newest = view.name(view.archive.runs[0])
    for kind in LEADING:
        shown = [view.verdicts[clause.id, kind][0] for clause in view.clauses_of.get(kind, ())]
        judged = [verdict for verdict in shown if says_something(verdict)]
        if judged:
            holding = sum(verdict.sign == HOLDS for verdict in judged)
            text = (
                f"{title(kind)}: on torch {newest}, {holding} of {many(len(judged), 'promise')} hold on every network"
            )
            rest = tally(judged)
            yield Headline(f"{text}; {rest}." if rest else f"{text}.", address.of_kind(kind))


def _newest(view: SiteView, changed: Changes | None) -> Iterator[Headline]:
    if changed is None:
        return
    before, after = (
        header.torch.version.partition("+")[0] for header in (changed.comparison.before, changed.comparison.after)
    )
    link = address.of_run(view.archive.runs[0])
    yield Headline(f"From {before} to {after}: {summed(changed)}.", link)


def _unexplained(view: SiteView) -> Iterator[Headline]:
    new = [(id, cause) for id, those in view.causes.items() for cause in those if cause.ledger is None]
    promised = [(id, cause) for id, cause in new if view.archive.clauses[id].rank in (PROMISE, PIN)]
    if not promised:
        yield Headline("Everything that deviates is understood: each case has a reason and an upstream link.")
    for id, cause in promised[:5]:
        clause = view.archive.clauses[id]
        where = ", ".join(view.names(sorted(cause.cases)))
        text = f"New, and not yet understood: {clause.statement} ({cause.gaps[0]} on torch {where})"
        yield Headline(text, address.of_clause(clause))
    if promised[5:]:
        yield Headline(f"And {many(len(promised) - 5, 'more cause')} not yet understood.", "clauses.html")


def _claims(view: SiteView) -> Iterator[Headline]:
    now = [view.now(clause) for clause in view.archive.clauses.values() if clause.rank == "claim"]
    counted = Counter(verdict.sign for verdict in now)
    judged = sum(says_something(verdict) for verdict in now)
    if judged:
        text = (
            f"Of {many(judged, 'claim')} that tutorials and notes make about hooks, {counted[REFUTED]} are refuted "
            f"and {counted[PARTLY]} hold in part."
        )
        yield Headline(text, "claims.html")


def tally(verdicts: Iterable[ShownVerdict]) -> str:
    """How many verdicts have each sign of what is wrong, costliest first.

    >>> from hookcheck.report.signs import SILENT
    >>> tally([ShownVerdict(SILENT), ShownVerdict(SILENT), ShownVerdict(HOLDS)])
    '2 silently wrong'
    """
    counted = Counter(verdict.sign for verdict in verdicts if is_wrong(verdict))
    return ", ".join(f"{counted[sign]} {sign.counted or sign.word}" for sign in SIGNS if counted[sign])


def summed(changed: Changes) -> str:
    """What has changed between two releases, in half a sentence."""
    parts = []
    if changed.worse:
        worse = len(changed.worse)
        silent = "" if changed.silent == worse else f"{changed.silent} of them " if changed.silent else "none "
        parts.append(f"{many(worse, 'thing')} got worse ({silent}without any error or warning)")
    else:
        parts.append("nothing got worse")
    if changed.withdrawn:
        parts.append(f"{many(len(changed.withdrawn), 'thing')} no longer offered")
    if changed.mended:
        parts.append(f"{len(changed.mended)} mended")
    if changed.other:
        parts.append(f"{len(changed.other)} changed otherwise")
    return _joined(parts)


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
