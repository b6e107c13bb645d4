from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.ledger import Entry, load
from hookcheck.contract.verdict import COST_CLASSES
from hookcheck.record.model import Record
from hookcheck.report.address import slug
from hookcheck.report.archive import Archive, UnreadableFile, archive
from hookcheck.report.drawing import report
from hookcheck.report.site import site
from hookcheck.report.view import SiteView
from hookcheck.run.reproduction import kept_in, reproductions

from .pages import Document, documents
from .samples import CLAUSES, case, deviation, record, records

ROOT = Path(__file__).resolve().parents[2]
EVIL = "<script>alert('1')</script>\"><img src=x onerror=alert(1)>"


def entry(
    why: str = "the last Node adds the bias", link: str = "https://example.org/598", id: str = "linear-bias"
) -> Entry:
    return Entry(id, ("BW-01",), ("backward",), SpecifierSet(">=1.7"), ("wrong values",), why, link, date(2026, 1, 31))


def archived(given: list[Record], faults: tuple[UnreadableFile, ...] = ()) -> Archive:
    return archive([each.folded() for each in given], faults)


def drawn(given: list[Record], *entries: Entry, faults: tuple[UnreadableFile, ...] = ()) -> dict[str, str]:
    return dict(site(SiteView(archived(given, faults), {each.id: each for each in entries})))


def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    pages = drawn(records(), entry())
    for address, text in pages.items():
        path = tmp_path / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    by_path = documents(tmp_path)
    for path, document in by_path.items():
        assert len(document.ids) == len(set(document.ids))
        for link in document.links:
            if link.startswith("https://example.org"):
                continue
            there, _, anchor = link.partition("#")
            target = Path(os.path.normpath(path.parent / there.partition("?")[0])) if there else path
            assert target.is_file(), (path, link)
            if anchor:
                assert anchor in by_path[target].ids, (path, link)


def test_pages_load_nothing_from_elsewhere_and_say_so() -> None:
    for address, text in drawn(records(), entry()).items():
        if address.endswith(".html"):
            document = Document(text)
            root = "../" * address.count("/")
            assert set(document.loads) == {f"{root}{name}" for name in ("icon.svg", "site.css", "site.js")}
            assert not any(name.startswith("on") or name == "style" for _, a in document.tags for name in a)
            assert "default-src 'none'; style-src 'self'; script-src 'self'" in text
        assert "@import" not in text
        assert "url(http" not in text


def test_addresses_go_by_ids_and_stay_when_records_come_and_go() -> None:
    some, more = drawn(records()[:2]), drawn(records())
    assert set(some) < set(more)
    assert {"clauses/BW-01.html", "kinds/full_backward.html", "releases/1.13.1-cpu.html"} <= set(some)
    assert "compare/1.7.1-cpu-to-2.13.0-cpu.html" in more
    assert {"not-fired-10eaca", "linear-bias"} & set(Document(some["clauses/BW-01.html"]).ids)


def test_a_clause_says_all_that_is_known() -> None:
    text = drawn(records(), entry())["clauses/BW-01.html"]
    for shown in ("Values are those of the inputs.", "net.fc#1", "1.0 × 2", "0.0", "the last Node adds the bias"):
        assert shown in text
    assert "hookcheck repro aaaa --clause BW-01 --kind backward" in text
    assert "https://example.org/598" in Document(text).links
    assert "Not yet understood" in text
    assert "import torch" in text


def test_a_script_of_several_causes_is_shown_once() -> None:
    view = SiteView(archived(records()), {}, lambda cause: f"# {cause.clause}")
    text = dict(site(view))["clauses/BW-01.html"]
    assert text.count("# BW-01") == 1
    assert text.count("that of the cause above") == len(view.causes["BW-01"]) - 1 > 0
    assert f"#{slug(view.causes['BW-01'][0].name)}" in Document(text).links


def test_a_verdict_is_a_symbol_and_a_word_and_says_what_it_costs() -> None:
    text = drawn(records())["kinds/full_backward.html"]
    assert '<span class="sign" aria-hidden="true">∅</span> <span class="word">not called' in text
    assert '<span class="sign" aria-hidden="true">✓</span> <span class="word">holds' in text
    assert '<span class="sign" aria-hidden="true">·</span> <span class="word">not offered' in text


def test_within_a_sentence_a_hook_kind_has_no_capital() -> None:
    text = drawn(records(), entry())["clauses/BW-01.html"]
    assert ", with legacy backward hooks" in text
    assert ">Legacy backward hooks</a>" in text
    assert "with Legacy" not in text


def test_a_lost_case_ends_only_what_it_would_have_judged() -> None:
    lost = case("bbbb", "backward", outcome="crashed", reason="signal 11")
    verdicts = SiteView(archived([record("2.0.1", [case("aaaa", "backward"), lost])]), {}).verdicts
    words = {clause.id: verdicts[clause.id, "backward"][0].sign.word for clause in CLAUSES}
    assert words == {"BW-01": "ended", "BW-02": "ended", "BW-03": "not run"}
    alone = SiteView(archived([record("2.0.1", [lost])]), {}).verdicts  # nothing says what it would have judged
    assert {alone[clause.id, "backward"][0].sign.word for clause in CLAUSES} == {"ended"}


def test_every_cost_has_a_sign_of_its_own() -> None:
    from hookcheck.report.signs import BY_COST

    assert tuple(BY_COST) == COST_CLASSES
    assert len({(sign.symbol, sign.word, sign.style) for sign in BY_COST.values()}) == len(COST_CLASSES)


def test_the_style_sheet_puts_its_sign_before_each_change() -> None:
    from hookcheck.report.signs import BY_COST, CRASH, SILENT

    sheet = drawn(records())["site.css"]
    for sign in {CRASH, *BY_COST.values()}:
        place = ".changes .tag" if sign is SILENT else f".changes .{sign.style}"
        assert re.search(rf'{re.escape(place)}::before {{[^}}]*content: "{re.escape(sign.symbol)}" / ""; }}', sheet), (
            sign
        )


def test_a_front_page_says_what_is_new_and_what_was_cut_short() -> None:
    text = drawn(records())["index.html"]
    assert "New, and not yet understood" in text
    assert "cut short: interrupted by the user" in text
    assert "From 1.13.1 to 2.13.0" in text


def test_a_change_that_several_releases_share_stands_once_with_all_of_them() -> None:
    pages = drawn([*records(), record("2.2.2", records()[1].cases)], entry())
    text = pages["compare/2.13.0-cpu.html"]
    assert text.count("net.fc") == 0
    assert 'data-from="1-2:1"' in text
    assert "1 case, coming from 2.2.2 to 1.13.1" in text
    assert "compare/1.7.1-cpu.html" not in pages


def test_every_pair_has_an_address_that_leads_to_its_changes() -> None:
    pages = drawn(records(), entry())
    pairs = [("1.7.1", "1.13.1"), ("1.7.1", "2.13.0"), ("1.13.1", "2.13.0")]
    for before, after in pairs:
        text = pages[f"compare/{before}-cpu-to-{after}-cpu.html"]
        assert f'content="0; url={after}-cpu.html?from={before}-cpu"' in text
        assert f'<option value="{before}-cpu"' in pages[f"compare/{after}-cpu.html"]


def test_the_pages_of_all_pairs_grow_with_the_releases_not_with_the_pairs() -> None:
    newest, older, _ = records()

    def size(count: int) -> int:
        others = [record(f"2.{minor}.0", older.cases) for minor in range(count)]
        pages = drawn([newest, *others], entry())
        return max(len(text) for address, text in pages.items() if address.startswith("compare/"))

    assert size(10) < 2 * size(1)


def test_what_a_page_says_of_a_change_is_what_diff_says() -> None:
    from hookcheck.record.compare import compare

    newest, older, _ = records()
    shown = archived(records()).compare(1, 0)
    said = compare(older, newest)
    assert [(g.cause, g.cases, g.families, g.kinds) for g in shown.groups] == [
        (g.cause, g.cases, g.families, g.kinds) for g in said.groups
    ]
    assert (shown.compared, set(shown.left_out)) == (said.compared, set(said.left_out))


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x"])
def test_a_link_that_could_run_a_script_is_only_text(link: str) -> None:
    text = drawn(records(), entry(EVIL, link))["clauses/BW-01.html"]
    assert link not in Document(text).links
    assert link in text


def test_no_text_of_a_record_becomes_markup_or_leaves_the_folder() -> None:
    spoiled = replace(deviation(ledger=EVIL), subject=EVIL, expected=EVIL, observed=EVIL)
    cases = [
        case(EVIL, "backward", [spoiled], family=EVIL),
        case("bbbb", EVIL, outcome="crashed", reason=EVIL),
    ]
    evil = record("2.0.1", cases, device="../../up", stopped=EVIL, source=EVIL)
    planned = [replace(c, statement=EVIL, source=EVIL, since=EVIL, kinds=("backward", EVIL)) for c in CLAUSES]
    clauses = (*planned, replace(planned[0], id="../../etc"))
    header = replace(evil.header, plan=replace(evil.header.plan, clauses=clauses), environment={"python": EVIL})
    pages = drawn([replace(evil, header=header)], entry(EVIL, EVIL, EVIL), faults=(UnreadableFile(EVIL, EVIL),))
    assert any("&lt;script&gt;" in text for text in pages.values())
    for address, text in pages.items():
        assert ".." not in address
        assert "<" not in address
        if address.endswith(".html"):
            assert sum(tag == "script" for tag, _ in Document(text).tags) == 1
            assert "<img" not in text


@pytest.mark.slow
def test_the_committed_records_make_a_site_that_is_small(tmp_path: Path) -> None:
    records = ROOT / "reports" / "records"
    front, summary = report(records, tmp_path, load(), reproductions(kept_in(records)))
    files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    sizes = {path.relative_to(tmp_path): path.stat().st_size for path in files}
    assert front.stat().st_size < 200_000
    assert max(sizes.values()) < 500_000
    assert sum(sizes.values()) < 16_000_000
    assert len(summary.read_text(encoding="utf-8").splitlines()) < 40
