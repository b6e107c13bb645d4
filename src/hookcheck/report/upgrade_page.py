"""The one page that answers whether one may upgrade torch, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from hookcheck.record.model import public_version
from hookcheck.report.changes import markdown
from hookcheck.report.upgrade import ADAPT, CANNOT_TELL, DECIDE, FILTER, NOT_SAFE, NOTES, REPORT, SAFE, Upgrade

ROWS = 10
"""How many changes the page lists, silent ones first."""

SAYS = {
    SAFE: "Nothing that ran in both is worse.",
    NOTES: "No promise is broken in a way that gives wrong results or ends a program, but there is something to do.",
    NOT_SAFE: "A promise that your hooks may rely on is broken: silently, or with an exception.",
    CANNOT_TELL: "The later run does not answer for all that the earlier one does, so nothing may be called safe.",
}

NATURES = {
    "promise": "a documented promise broken",
    "claim": "no longer as tutorials say",
    "pin": "drift in what nothing promises",
    "unspecified": "where the documents promise nothing",
    "": "what torch offers",
}

DOING = {
    FILTER: "the warning is no sign of a wrong value; hide it where it is in the way.",
    ADAPT: "torch is known to do otherwise here. See it with the script, and change the code that relies on it.",
    REPORT: "nobody has explained this yet. Make the script, look whether it is known upstream, and report it.",
    DECIDE: "it costs little, or nothing promised it, or it was so before. Look whether your code relies on it.",
}


def page(upgrade: Upgrade, sites: Sequence[Mapping[str, Any]] | None) -> str:
    """The page; ``sites`` are the call sites that are concerned (path, line, kind, text), None where none is sought."""
    environment = Environment(
        loader=PackageLoader("hookcheck.report"), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters["md"] = markdown
    kinds = f" --kinds {','.join(upgrade.kinds)}" if upgrade.kinds else ""
    versions = " ".join(public_version(header.torch.version) for header in (upgrade.before, upgrade.after))
    text: str = environment.get_template("upgrade.md.j2").render(
        u=upgrade,
        says=SAYS[upgrade.verdict],
        natures=NATURES,
        doing=DOING,
        todo=todo(upgrade),
        rows=ROWS,
        sites=sites,
        diff=f"hookcheck diff {versions}{kinds}",
        contexts=list(next(iter(upgrade.counts.values()), ())),
        commands=list(dict.fromkeys(c.repro for c in upgrade.changes if c.repro and c.group.cause.worse))[:ROWS],
    )
    return text


def todo(upgrade: Upgrade) -> list[tuple[str, str, list[int]]]:
    """What there is to do, with the code for it and the numbers of the changes; equal code once."""
    order = (REPORT, ADAPT, FILTER, DECIDE)
    grouped: dict[tuple[str, str], list[int]] = {}
    for change in upgrade.changes:
        if change.group.cause.worse:
            code = change.code if change.do == FILTER else ""
            grouped.setdefault((change.do, code), []).append(change.number)
    return [(do, code, numbers) for (do, code), numbers in sorted(grouped.items(), key=lambda i: order.index(i[0][0]))]
