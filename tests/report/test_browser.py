"""The site in Debian's Chromium, driven by Playwright: what only a browser can tell."""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.ledger import load
from hookcheck.record.writing import write
from hookcheck.report.drawing import report

from .samples import CLAUSES, case, deviation, record, records

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is missing: pip install playwright")
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-core is missing: pip install axe-playwright-python"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on PATH: apt-get install chromium"),
]

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "index.html",
    "clauses.html",
    "kinds.html",
    "releases.html",
    "compare.html",
    "claims.html",
    "kinds/full_backward.html",
    "clauses/BW-07.html",
    "clauses/OB-05.html",
    "releases/2.13.0-cpu.html",
    "compare/2.13.0-cpu.html",
)
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
A4 = {"width": 718, "height": 1000}
"""What is between the margins of a page of paper, in pixels of CSS."""
CUT_OFF = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"
"""How many tables are wider than their place."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    front, _ = report(ROOT / "reports" / "records", tmp_path_factory.mktemp("site"), load())
    return front.parent


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of records whose every text tries to run something."""
    evil = "<script>window.ran=1</script>\"'><img src=x onerror=window.ran=1><a href=javascript:window.ran=1>x</a>"
    spoiled = replace(deviation(ledger=evil), subject=evil, expected=evil, observed=evil)
    cases = [case(evil, "backward", [spoiled], family=evil), case("bbbb", evil, outcome="crashed", reason=evil)]
    bad = record("2.0.1", cases, stopped=evil, source=evil)
    planned = [replace(c, statement=evil, source=evil, since=evil, kinds=("backward", evil)) for c in CLAUSES]
    plan = replace(bad.header.plan, clauses=tuple(planned))
    folder = tmp_path_factory.mktemp("hostile")
    for each in (*records(), replace(bad, header=replace(bad.header, plan=plan))):
        write(each, folder / "records")
    front, _ = report(folder / "records", folder)
    return front.parent


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page, and all that went wrong or was asked for while it was open."""

    def __init__(self, browser: Any, **settings: Any) -> None:
        self.page = browser.new_context(**settings).new_page()
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.given: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("requestfinished", lambda request: self.given.append(request.url))

    def go(self, site: Path, address: str) -> Any:
        self.page.goto(f"{site.as_uri()}/{address}")
        return self.page


@pytest.fixture
def visit(chromium: Any) -> Iterator[Any]:
    visits: list[Visit] = []

    def opened(**settings: Any) -> Visit:
        visits.append(Visit(chromium, **{"viewport": DESKTOP, **settings}))
        return visits[-1]

    yield opened
    for each in visits:
        each.page.context.close()


def shown(page: Any) -> int:
    count: int = page.locator("[data-row]:visible").count()
    return count


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_a_phone_shows_a_page_without_sideways_scroll_or_complaint(
    site: Path, visit: Any, address: str, scheme: str
) -> None:
    opened = visit(viewport=PHONE, color_scheme=scheme)
    page = opened.go(site, address)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(13, 17, 23)" if scheme == "dark" else "rgb(255, 255, 255)"
    )
    assert not opened.errors
    assert all(url.startswith(site.as_uri()) for url in opened.asked)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_axe_finds_nothing_serious(site: Path, visit: Any, address: str, scheme: str) -> None:
    page = visit(color_scheme=scheme).go(site, address)
    violations = axe.Axe().run(page).response["violations"]
    assert not [
        (each["id"], each["help"], [node["html"][:120] for node in each["nodes"][:3]])
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("width", [785, 1024, 1265, 1440])
@pytest.mark.parametrize(
    "address", ["index.html", "kinds/full_backward.html", "kinds/backward.html", "clauses/OB-05.html"]
)
def test_all_releases_are_on_a_screen_that_is_no_phone(site: Path, visit: Any, address: str, width: int) -> None:
    """Beside a scroll bar, which takes 15 pixels of 800 and of 1280."""
    page = visit(viewport={"width": width, "height": 900}).go(site, address)
    assert page.evaluate(CUT_OFF) == 0
    words = page.locator("td.short .word").first
    if words.count():
        assert words.is_visible()  # to a screen reader, beside the sign
        assert page.locator("td.short[title]").count() == page.locator("td.short").count()


@pytest.mark.parametrize("address", PAGES)
def test_a_page_fits_a_sheet_of_paper(site: Path, visit: Any, address: str) -> None:
    page = visit(viewport=A4).go(site, address)
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= A4["width"]
    assert page.evaluate(CUT_OFF) == 0
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_on_paper_small_print_is_small_and_a_version_stands_on_one_line(site: Path, visit: Any) -> None:
    page = visit(viewport=A4).go(site, "index.html")
    page.emulate_media(media="print")
    size = "(e) => parseFloat(getComputedStyle(e).fontSize)"
    larger = f"(all) => all.filter((e) => ({size})(e) > ({size})(e.parentElement)).length"
    assert page.locator("table.matrix small").evaluate_all(larger) == 0
    assert most_lines(page.locator("table.matrix.many thead a")) == 1
    page = visit(viewport=A4).go(site, "clauses/BW-07.html")  # whose headings are no links
    page.emulate_media(media="print")
    assert most_lines(page.locator("table.matrix.many thead th:not(:first-child)")) == 1


def most_lines(headings: Any) -> int:
    """On how many lines the text of a heading stands, of the one that takes the most; 0 where there is no heading."""
    of_text = "(e) => { const text = new Range(); text.selectNodeContents(e); return text.getClientRects().length; }"
    lines: int = headings.evaluate_all(f"(all) => Math.max(0, ...all.map({of_text}))")
    return lines


def test_the_newest_releases_are_on_the_screen(site: Path, visit: Any) -> None:
    page = visit().go(site, "index.html")
    head = page.locator("table.matrix thead th").nth(1).bounding_box()
    assert head["x"] + head["width"] < DESKTOP["width"]


def test_the_releases_above_the_first_table_lead_to_their_pages(site: Path, visit: Any) -> None:
    page = visit().go(site, "index.html")
    headings = page.locator("table.matrix.many thead th:not(:first-child)")
    assert headings.locator("a").count() == headings.count() == len(list((ROOT / "reports" / "records").iterdir()))
    headings.get_by_role("link", name="2.6.0", exact=True).click()
    assert page.locator("h1").inner_text() == "torch 2.6.0"


def test_the_keyboard_reaches_everything_and_shows_where_it_is(site: Path, visit: Any) -> None:
    page = visit().go(site, "index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    seen = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert len(seen) == 12


def test_search_and_filters_live_in_the_address(site: Path, visit: Any) -> None:
    page = visit().go(site, "clauses.html")
    every = shown(page)
    page.get_by_label("Words").fill("grad_input")
    some = shown(page)
    assert 0 < some < every
    page.get_by_label("Hook kind or chapter").select_option("full_backward")
    page.get_by_label("Release").select_option("2.6.0")
    page.get_by_label("How it stands").select_option("s")
    fewer = shown(page)
    assert 0 < fewer < some
    page.reload()
    assert shown(page) == fewer
    assert all(f"{name}=" in page.url for name in ("q", "kind", "release", "sign"))
    assert set(page.locator("[data-row]:visible td.s").all_inner_texts()) == {"✗ silently wrong"}
    page.get_by_label("Deviates in family").select_option("residual")
    assert "family=residual" in page.url
    assert shown(page) <= fewer


def test_the_front_page_searches_and_leads_to_a_hook_kind(site: Path, visit: Any) -> None:
    page = visit().go(site, "index.html")
    page.get_by_label("Search the promises").fill("keyword")
    page.keyboard.press("Enter")
    page.wait_for_url("**/clauses.html?q=keyword")
    assert shown(page) > 0
    page = visit().go(site, "index.html")
    page.get_by_label("Hook kind").select_option(label="Forward hooks")
    page.wait_for_url("**/kinds/forward.html")


def test_two_releases_are_chosen_and_compared(site: Path, visit: Any) -> None:
    page = visit().go(site, "compare.html")
    page.locator("select[name=before]").select_option("2.0.1-cpu")
    page.locator("select[name=after]").select_option("2.13.0-cpu")
    page.locator("form.chooser a").click()
    page.wait_for_url("**/compare/2.13.0-cpu.html?from=2.0.1-cpu")
    chosen = shown(page)
    assert 0 < chosen < page.locator("[data-row]").count()
    assert page.locator("[data-pair]:visible").count() == 1
    assert not page.locator("[data-row] small > span:visible", has_text="coming from").count()
    page.get_by_label("Cost").select_option("silent")
    assert 0 < shown(page) < chosen
    assert page.url.endswith("?from=2.0.1-cpu&cost=silent")


def test_changes_are_chosen_by_hook_kind(site: Path, visit: Any) -> None:
    """Of the rows that name all of their hook kinds, those are shown that name the one that is chosen."""
    page = visit().go(site, "compare/2.13.0-cpu.html")
    page.get_by_label("Hook kind").select_option("full_backward")
    rows = [
        (row.locator("small").last.text_content().partition("cases")[2], row.get_attribute("hidden") is None)
        for row in page.locator("[data-row]").all()
    ]
    named = [(text.partition("; ")[2].replace(" and ", ", ").split(", "), seen) for text, seen in rows if text]
    whole = [(kinds, seen) for kinds, seen in named if not kinds[-1].endswith("more hook kinds")]
    assert {seen for _, seen in whole} == {True, False}
    assert [kinds for kinds, seen in whole if seen != ("full backward hooks" in kinds)] == []


def test_the_address_of_a_pair_leads_to_its_changes(site: Path, visit: Any) -> None:
    page = visit().go(site, "compare/2.0.1-cpu-to-2.13.0-cpu.html")
    page.wait_for_url("**/compare/2.13.0-cpu.html?from=2.0.1-cpu")
    assert shown(page) > 0


@pytest.mark.parametrize("address", ["index.html", "clauses.html", "compare/2.13.0-cpu.html"])
def test_without_javascript_everything_is_there_to_read(site: Path, visit: Any, address: str) -> None:
    page = visit(java_script_enabled=False).go(site, address)
    assert page.locator("table tbody tr").count() == page.locator("table tbody tr:visible").count() > 5
    assert page.locator("form.filter:visible").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hostile_record_runs_nothing(hostile: Path, visit: Any, scheme: str) -> None:
    opened = visit(color_scheme=scheme)
    for path in sorted(hostile.rglob("*.html")):
        page = opened.go(hostile, path.relative_to(hostile).as_posix())
        if "-to-" in path.name:
            page.wait_for_url("**/*?from=*")
        assert page.evaluate("window.ran") is None
        assert page.locator("img").count() == 0
    assert not opened.errors
    assert all(url.startswith(hostile.as_uri()) for url in opened.asked)


def test_the_policy_holds_back_what_got_in_all_the_same(site: Path, visit: Any) -> None:
    opened = visit()
    page = opened.go(site, "index.html")
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = 1";
          document.body.append(script);
          document.body.insertAdjacentHTML("beforeend", "<img src='https://example.org/x' onerror='window.ran = 2'>");
        }"""
    )
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    assert sum("Content Security Policy" in text for text in opened.errors) >= 2
    assert not any(url.startswith("http") for url in opened.given)


def test_a_web_server_serves_it_below_any_path(site: Path, visit: Any) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site.parent)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        opened = visit()
        opened.page.goto(f"http://127.0.0.1:{server.server_port}/site/clauses.html?q=grad_input")
        assert 0 < shown(opened.page) < opened.page.locator("[data-row]").count()
        opened.page.locator("[data-row]:visible a").first.click()
        assert opened.page.locator("h1").inner_text()
        assert not opened.errors
    finally:
        server.shutdown()
        server.server_close()
