from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hookcheck.report.html import html
from hookcheck.report.page import Fault, page

from .samples import KINDS, case, deviation, record, records

EVIL = "<script>alert('1')</script>\"><img src=x onerror=alert(1)>"
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Document(HTMLParser):
    """The tags with their attributes, the ids, the local links, and whether what opens is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open
        self.ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        self.links = [attributes["href"] for _, attributes in self.tags if "href" in attributes]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


LEDGER = {"linear-bias": ("the last Node adds the bias", "https://example.org/598")}


def test_the_document_needs_no_other() -> None:
    text = html(page(records(), ledger=LEDGER))
    document = Document(text)
    assert not {tag for tag, _ in document.tags} & {"script", "link", "img", "iframe", "object", "embed", "base"}
    assert not any(name == "src" or name.startswith("on") for _, attributes in document.tags for name in attributes)
    assert "url(" not in text
    assert "@import" not in text
    assert [link for link in document.links if not link.startswith("#")] == ["https://example.org/598"]


def test_every_deviating_box_leads_to_its_evidence() -> None:
    drawn = page(records())
    document = Document(html(drawn))
    assert len(document.ids) == len(set(document.ids))
    assert {link[1:] for link in document.links if link.startswith("#")} <= set(document.ids)
    rows = [row for matrix in drawn.matrices for section in matrix.sections for row in section.rows]
    boxes = [box for row in rows for boxes in row.boxes for box in boxes]
    telling = [box for box in boxes if box.mark and box.mark.word in ("deviates", "changed", "known", "crashed")]
    assert len(telling) == 8
    for box in telling:
        assert box.link
        assert f"#{box.link}" in document.links


def test_a_verdict_is_a_symbol_and_a_word() -> None:
    text = html(page(records()))
    for shown in ("✗<small>deviates", "≠<small>changed", "~<small>known", "✓<small>conforms", "!<small>crashed"):
        assert shown in text


def test_evidence_says_all_that_is_known() -> None:
    text = html(page(records(), ledger=LEDGER))
    for told in (
        "net.fc#1",
        "1.0 × 2",
        "linear-bias",
        "the last Node adds the bias",
        "import torch",
        "2 judged, 1 deviating",
    ):
        assert told in text


def test_only_clauses_that_ask_for_attention_are_open() -> None:
    quiet = [case("aaaa", "backward", [deviation(ledger="linear-bias")])]
    for loud, opened in ((quiet, []), ([case("aaaa", "backward")], ["clause-1-1"])):
        tags = Document(html(page([record("2.0.1", quiet), record("2.13.0", loud)]))).tags
        assert [a["id"] for tag, a in tags if tag == "details" and "id" in a and "open" in a] == opened


def test_a_report_on_many_families_stays_small() -> None:
    entries = ("one", "two", None)
    cases = [
        case(f"t{number}{family}", kind, [deviation(ledger=entries[number])], family=f"family-{family}")
        for family in range(35)
        for number in range(3)
        for kind in KINDS
    ]
    made = [record(version, cases, source="x = 1\n" * 100) for version in ("1.8.0", "2.0.1", "2.13.0", "2.15.0")]
    drawn = page(made)
    assert len(drawn.evidence) == len(KINDS) * len(entries)
    text = html(drawn)
    assert text.count("<tr") < 100
    assert len(text) < 100_000


def test_counts_and_runs_cut_short_are_stated() -> None:
    text = html(page(records()))
    assert "cut short: interrupted by the user" in text
    assert "this torch has no full_backward hooks" in text
    assert "%" not in text.split("</style>")[1]


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x"])
def test_a_link_that_could_run_a_script_is_only_text(link: str) -> None:
    document = Document(html(page(records(), ledger={"linear-bias": (EVIL, link)})))
    assert link not in document.links


def test_no_text_of_a_record_becomes_markup() -> None:
    spoiled = replace(deviation(ledger=EVIL), subject=EVIL, expected=EVIL, observed=EVIL)
    cases = [
        case(EVIL, "backward", [spoiled], family=EVIL),
        case("bbbb", EVIL, outcome="crashed", reason=EVIL),
    ]
    evil = record("2.0.1", cases, device=EVIL, stopped=EVIL, source=EVIL)
    clauses = tuple(
        replace(c, statement=EVIL, source=EVIL, since=EVIL, kinds=("backward", EVIL)) for c in evil.header.plan.clauses
    )
    header = replace(evil.header, plan=replace(evil.header.plan, clauses=clauses), environment={"python": EVIL})
    text = html(page([replace(evil, header=header)], [Fault(EVIL, EVIL)], {EVIL: (EVIL, EVIL)}))
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
    Document(text)
