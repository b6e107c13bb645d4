"""The site: every page as a text with its address, from what a view says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from hookcheck.contract.verdict import COST_CLASSES, COSTS
from hookcheck.hooks.kinds import KINDS
from hookcheck.record.changes import AS_EXPECTED
from hookcheck.record.model import PlannedClause
from hookcheck.report import address
from hookcheck.report.arrival import Shared, arrival
from hookcheck.report.causes import Cause
from hookcheck.report.headlines import LEADING, headlines, summed, tally
from hookcheck.report.prose import between, is_web_link, listed, many, prose, source
from hookcheck.report.scopes import chapters, title
from hookcheck.report.signs import ABSENT, BY_COST, SIGNS, UNRUN
from hookcheck.report.standing import ShownVerdict, is_program, says_something
from hookcheck.report.view import Changes, Row, SiteView, changes, command, is_claim, sign_of

ASSETS = ("site.css", "site.js", "icon.svg")
"""What pages load, beside the templates."""

Page = tuple[str, str]
"""An address below the site, and the text there."""


def site(view: SiteView) -> Iterator[Page]:
    """All files of the site."""
    folder = files("hookcheck.report").joinpath("templates", "site")
    for name in ASSETS:
        yield name, folder.joinpath(name).read_text(encoding="utf-8")
    yield from _Site(view).pages()


class _Site:
    """Pages are drawn one after another; what several show is worked out once."""

    def __init__(self, view: SiteView) -> None:
        self.view = view
        self.runs = view.archive.runs
        self.environment = _environment(view)
        started = sorted(run.header.started[:10] for run in self.runs)
        self.facts: dict[str, Any] = {
            "view": view,
            "as_expected": AS_EXPECTED,
            "oldest": started[0] if started else "",
            "latest": started[-1] if started else "",
        }
        before = [view.archive.previous(place) for place in range(len(self.runs))]
        self.changed = [None if b is None else self.compared(b, place) for place, b in enumerate(before)]
        self.before = before

    def pages(self) -> Iterator[Page]:
        yield "index.html", self.front()
        if not self.runs:
            return
        for kind in self.view.archive.kinds:
            yield address.of_kind(kind), self.kind(kind)
        for clause in self.view.archive.clauses.values():
            yield address.of_clause(clause), self.clause(clause)
        for place, run in enumerate(self.runs):
            yield address.of_run(run), self.release(place)
        yield from self.comparisons()
        yield from self.lists()

    def draw(self, template: str, heading: str, root: str = "../", **facts: Any) -> str:
        known = {**self.facts, "heading": heading, "root": root, **facts}
        return plain_quotes(self.environment.get_template(f"site/{template}.j2", globals=known).render(known))

    def front(self) -> str:
        view = self.view
        chosen = next((kind for kind in (*LEADING, *view.archive.kinds) if kind in view.archive.kinds), "")
        changed = self.changed[0] if self.runs else None
        return self.draw(
            "index",
            "Do PyTorch's hooks keep their promises?",
            root="",
            chosen=chosen,
            rows=view.rows(chosen) if chosen else [],
            legacy=self.legacy(),
            headlines=headlines(view, changed) if self.runs else [],
            changed=changed,
            previous=self.before[0] if self.runs else None,
            signs=SIGNS,
        )

    def legacy(self) -> list[tuple[PlannedClause, ShownVerdict, ShownVerdict]]:
        """The promises that legacy and full hooks keep differently on the newest torch, or that neither keeps."""
        rows = []
        for clause in self.view.archive.clauses.values():
            full, old = (self.view.verdicts.get((clause.id, kind)) for kind in LEADING)
            if old and full and (says_something(old[0]) or says_something(full[0])) and old[0] != full[0]:
                rows.append((clause, old[0], full[0]))
        return sorted(rows, key=lambda item: SIGNS.index(item[1].sign))

    def kind(self, kind: str) -> str:
        rows = self.view.rows(kind)
        return self.draw(
            "kind",
            title(kind),
            kind=kind,
            hook=KINDS.get(kind),
            rows=rows,
            tally=tally(row.newest for row in rows),
            related=[chapter for chapter in chapters(kind) if chapter in self.view.archive.kinds],
        )

    def clause(self, clause: PlannedClause) -> str:
        rows = self.view.across(clause)
        return self.draw(
            "clause",
            clause.id,
            clause=clause,
            claim=is_claim(clause),
            program=is_program(clause),
            rows=rows,
            causes=self.causes(clause),
            judged=self.judged(clause, rows),
            unrun=self.unrun(clause),
        )

    def causes(self, clause: PlannedClause) -> list[dict[str, Any]]:
        """What a page shows of each cause; ``shown`` is the first one with its script, which several may have."""
        items, shown = [self.cause(cause) for cause in self.view.causes.get(clause.id, ())], dict[str, str]()
        return [{**item, "shown": shown.setdefault(item["script"], item["anchor"])} for item in items]

    def cause(self, cause: Cause) -> dict[str, Any]:
        places, script, copied = sorted(cause.cases), self.view.script(cause), command(cause)
        return {
            "cause": cause,
            "anchor": address.slug(cause.name),
            "sign": BY_COST[COSTS[cause.gaps[0]]],
            "where": ", ".join(self.view.ranges(places)),
            "cases": cause.cases[places[0]],
            "latest": self.view.name(self.runs[places[0]]),
            "seen": self.view.name(self.runs[cause.example.place]),
            "entry": self.view.entries.get(cause.ledger or ""),
            "drawing": self.view.drawing(cause),
            "command": copied,
            "script": script,
            "same_network": script.partition("\n")[0].endswith(copied),
        }

    def judged(self, clause: PlannedClause, rows: list[Row]) -> str:
        """How much the verdicts on the newest torch that has any rest on."""
        for place, run in enumerate(self.runs):
            those = [self.view.standings[clause.id, row.kind][place] for row in rows]
            cases, unjudged = sum(s.cases for s in those), sum(s.unjudged for s in those)
            if cases:
                what = many(sum(s.subjects for s in those), "fact" if is_program(clause) else "subject")
                wrong = sum(s.wrong for s in those)
                text = f"On torch {self.view.name(run)}: {what} judged in {many(cases, 'case')}, {wrong:,} deviate"
                return text + (
                    f"; {many(unjudged, 'case')} not judged, since nobody can foretell what is right."
                    if unjudged
                    else "."
                )
        return "No record judges it."

    def unrun(self, clause: PlannedClause) -> dict[str, list[str]]:
        """Why the clause was not judged, with the releases."""
        by_reason: dict[str, list[str]] = {}
        for place, run in enumerate(self.runs):
            reasons = {
                f"{outcome}: {reason}"
                for kind in clause.kinds
                if (clause.id, kind) in self.view.standings
                and self.view.verdicts[clause.id, kind][place].sign in (UNRUN, ABSENT)
                for outcome, reason in self.view.standings[clause.id, kind][place].outcomes
            }
            for reason in sorted(reasons):
                by_reason.setdefault(reason, []).append(self.view.name(run))
        return by_reason

    def release(self, place: int) -> str:
        run, before = self.runs[place], self.before[place]
        return self.draw(
            "release",
            f"torch {self.view.name(run)}",
            run=run,
            before=None if before is None else self.runs[before],
            changed=self.changed[place],
            accounts=self.view.accounts(place),
            tally=tally(shown[place] for shown in self.view.verdicts.values()),
        )

    def comparisons(self) -> Iterator[Page]:
        """One page for each run that others go before, and one that leads there for each pair."""
        for after, run in enumerate(self.runs):
            pairs = {
                before: self.changed[after] if before == self.before[after] else self.compared(before, after)
                for before in self.befores(after)
            }
            if not pairs:
                continue
            heading = f"What changed on the way to torch {self.view.name(run)}"
            incoming = arrival({before: changed for before, changed in pairs.items() if changed})
            yield (
                address.of_arrival(run),
                self.draw("arrival", heading, after=run, incoming=incoming, costs=COST_CLASSES),
            )
            for before, changed in incoming.pairs.items():
                earlier = self.runs[before]
                heading = f"From torch {self.view.name(earlier)} to {self.view.name(run)}"
                facts: dict[str, Any] = {"before": earlier, "after": run, "changed": changed}
                yield address.of_comparison(earlier, run), self.draw("comparison", heading, **facts)

    def compared(self, before: int, after: int) -> Changes:
        return changes(self.view.archive.compare(before, after, self.view.varying))

    def befores(self, after: int) -> list[int]:
        """The places of the runs that go before one on its device, the newest first."""
        device = self.runs[after].device
        return [place for place in range(after + 1, len(self.runs)) if self.runs[place].device == device]

    def lists(self) -> Iterator[Page]:
        view = self.view
        draw = partial(self.draw, root="")
        listed_clauses: list[dict[str, Any]] = [
            {
                "clause": clause,
                "letters": view.letters(clause),
                "families": sorted({family for cause in view.causes.get(clause.id, ()) for family in cause.families}),
                "now": view.now(clause),
            }
            for clause in view.archive.clauses.values()
        ]
        families = sorted({family for item in listed_clauses for family in item["families"]})
        facts: dict[str, Any] = {"listed_clauses": listed_clauses, "families": families, "signs": SIGNS}
        yield "clauses.html", draw("clauses", "All promises", **facts)
        yield "kinds.html", draw("kinds", "Hook kinds and chapters")
        releases = [{"run": run, "changed": self.changed[place]} for place, run in enumerate(self.runs)]
        yield "releases.html", draw("releases", "Releases", releases=releases)
        yield "compare.html", draw("compare", "Compare two releases", befores=self.befores)
        claims = [row for clause in view.archive.clauses.values() if is_claim(clause) for row in view.across(clause)]
        yield "claims.html", draw("claims", "Claims", rows=sorted(claims, key=lambda r: SIGNS.index(r.newest.sign)))


def plain_quotes(page: str) -> str:
    """The page with quotes as they are in its text, which need no escaping there: each takes four letters less.

    Values of attributes are in double quotes, so that single ones need none either.
    """
    return BETWEEN_TAGS.sub(lambda text: text[0].replace("&#34;", '"'), page.replace("&#39;", "'"))


BETWEEN_TAGS = re.compile(">[^<]*")


def _environment(view: SiteView) -> Environment:
    environment = Environment(
        loader=PackageLoader("hookcheck.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Any] = {
        "between": between,
        "bits": lambda kinds: f"{sum(1 << place for place, kind in enumerate(view.hook_kinds) if kind in kinds):x}",
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
        "judged_on": partial(_judged_on, view),
        "kind_name": lambda kind: title(kind)[:1].lower() + title(kind)[1:],
        "kind_title": title,
        "listed": listed,
        "many": many,
        "coming_from": partial(_coming_from, view),
        "of_arrival": address.of_arrival,
        "of_clause": address.of_clause,
        "of_comparison": address.of_comparison,
        "of_kind": address.of_kind,
        "of_run": address.of_run,
        "prose": prose,
        "run_slug": address.run_slug,
        "sign_of": sign_of,
        "slug": address.slug,
        "source": source,
        "summed": summed,
        "tally_of": lambda kind: tally(row.newest for row in view.rows(kind)),
    }
    environment.filters.update(filters)
    environment.tests["web_link"] = is_web_link
    return environment


def _coming_from(view: SiteView, item: Shared) -> str:
    """In how many cases a change is met, and coming from which releases."""
    least, most = min(item.cases.values()), max(item.cases.values())
    cases = many(most, "case") if least == most else f"{least:,} to {many(most, 'case')}"
    return f"{f'{cases}, ' if most else ''}coming from {', '.join(view.ranges(item.cases))}"


def _judged_on(view: SiteView, row: Row) -> str:
    """On which releases anything was judged."""
    places = [place for span in row.spans if says_something(span.verdict) for place in span.places]
    return between(view.names(places))
