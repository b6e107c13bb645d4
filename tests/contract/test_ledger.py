"""The ledger: strict about what stands in it, about what it explains, and about what it no longer explains."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.finding import Finding
from hookcheck.contract.ledger import Entry, Idle, Ledger, LedgerError, applying, load
from hookcheck.contract.site import CALL, CLOSE, COUNT, ORDER, PROCESS, VALUE, WARNS, Site
from hookcheck.contract.verdict import NOT_RUN, PROGRAM, RAN, CaseResult, Deviation
from hookcheck.errors import HookcheckError
from hookcheck.record.reading import read
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import digest
from hookcheck.topology.corpus import read as read_corpus

TEXT = """[[deviation]]
id = "some-entry"
clauses = ["GI-01", "BW-07"]
families = ["multi-node"]
kinds = ["backward"]
torch = ">=1.13,<2.8"
when = { last = ["Linear", "Conv2d"], rank = "2" }
instead = ["wrong values"]
why = "Because."
link = "https://example.org"
reviewed = 2026-01-31
"""
FEATURES = {"last": frozenset({"Linear"}), "rank": frozenset({"2", "3"})}


def written(folder: Path, text: str) -> Path:
    path = folder / "ledger.toml"
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, text: str = TEXT) -> Entry:
    (entry,) = load(written(folder, text))
    return entry


def test_an_entry_is_read_as_it_stands(tmp_path: Path) -> None:
    assert loaded(tmp_path) == Entry(
        id="some-entry",
        clauses=("GI-01", "BW-07"),
        families=("multi-node",),
        kinds=("backward",),
        torch=SpecifierSet(">=1.13,<2.8"),
        instead=("wrong values",),
        why="Because.",
        link="https://example.org",
        reviewed=date(2026, 1, 31),
        devices=("cpu", "cuda"),
        when=(("last", ("Linear", "Conv2d")), ("rank", ("2",))),
    )


def line(key: str) -> str:
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"{key} =")]
    return row


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (line("why"), "", "entry 'some-entry' of the ledger has no 'why'; write down the reason for the deviation"),
        (line("why"), 'why = " "', "entry 'some-entry' of the ledger has no 'why'; .*"),
        (line("why"), "why = 3", "entry 'some-entry' of the ledger has no 'why'; .*"),
        (line("link"), "", "entry 'some-entry' of the ledger has no 'link'; write down the address .*"),
        (
            line("why"),
            'why = "Because."\nvaries = 3',
            "entry 'some-entry' of the ledger: 'varies' says why its families show now one thing and now another",
        ),
        (line("id"), "", "entry 'number 1' of the ledger has no 'id'; write down a short name of its own"),
        (line("torch"), "", "entry 'some-entry' of the ledger has no 'torch'; write down the releases .*"),
        (
            line("torch"),
            'torch = "1.13 and later"',
            "entry 'some-entry' of the ledger: '1.13 and later' is no version specifier; write as .*",
        ),
        (line("reviewed"), "", "entry 'some-entry' of the ledger has no 'reviewed'; write down the date .*"),
        (line("reviewed"), 'reviewed = "2026-01-31"', "entry 'some-entry' of the ledger has no 'reviewed'; .*"),
        (line("reviewed"), "reviewed = 2026-01-31T10:00:00", "entry 'some-entry' of the ledger has no 'reviewed'; .*"),
        ('"GI-01"', '"GI-99"', "entry 'some-entry' of the ledger: unknown name 'GI-99' in 'clauses'; choose from .*"),
        ('"multi-node"', '"multi"', "entry 'some-entry' of the ledger: unknown name 'multi' in 'families'; .*"),
        ('"backward"', '"sideways"', "entry 'some-entry' of the ledger: unknown name 'sideways' in 'kinds'; .*"),
        ('"wrong values"', '"odd"', "entry 'some-entry' of the ledger: unknown name 'odd' in 'instead'; .*"),
        (line("clauses"), "", "entry 'some-entry' of the ledger has no list 'clauses'; choose from .*"),
        (line("families"), "families = []", "entry 'some-entry' of the ledger has no list 'families'; .*"),
        (line("kinds"), 'kinds = "backward"', "entry 'some-entry' of the ledger has no list 'kinds'; .*"),
        (line("instead"), 'devices = ["tpu"]\n' + line("instead"), ".*unknown name 'tpu' in 'devices'; .*"),
        ("rank =", "colour =", "entry 'some-entry' of the ledger: 'when' is a table of features; choose from .*"),
        (line("when"), 'when = "always"', "entry 'some-entry' of the ledger: 'when' is a table of features; .*"),
        ("why =", "because =", r"entry 'some-entry' of the ledger has unknown fields \['because'\]; known are .*"),
        ("[[deviation]]", "[[deviations]]", r"ledger.toml has unknown tables \['deviations'\]; entries are .*"),
        (TEXT, TEXT * 2, "ledger.toml has two entries with the id 'some-entry'; give each its own"),
        (TEXT, "[[deviation", "ledger.toml cannot be read: .*"),
    ],
)
def test_an_entry_that_is_not_right_is_named_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(LedgerError, match=f"^{message}$") as caught:
        loaded(tmp_path, TEXT.replace(old, new, 1))
    assert isinstance(caught.value, HookcheckError)
    assert "\n" not in str(caught.value)


def test_a_ledger_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"ledger\.toml cannot be read: .*No such file"):
        load(tmp_path / "ledger.toml")


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "ledger.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(LedgerError, match=r"ledger\.toml cannot be read: "):
        load(tmp_path / "ledger.toml")


def test_a_ledger_may_be_empty(tmp_path: Path) -> None:
    assert load(written(tmp_path, "")) == ()


@pytest.mark.parametrize(
    ("version", "applies"),
    [
        ("1.12.1", False),
        ("1.13.0", True),
        ("1.13.1+cu117", True),
        ("2.7.1", True),
        ("2.7.1a0+gitabcdef", True),
        ("2.7.0.dev20250101+cpu", True),
        ("2.8.0.dev20250601+cpu", False),
        ("1.13.0.dev20220901", True),
        ("1.13.0rc1", True),
        ("2.8.0", False),
        ("2.8.0+cpu", False),
    ],
)
def test_an_entry_applies_to_the_releases_of_its_specifier(tmp_path: Path, version: str, applies: bool) -> None:
    assert bool(applying([loaded(tmp_path)], version, "cpu").entries) is applies


def test_an_entry_applies_to_its_devices(tmp_path: Path) -> None:
    both = loaded(tmp_path)
    cuda = replace(both, id="cuda-alone", devices=("cuda",))
    assert applying([both, cuda], "2.0.1", "cpu").entries == (both,)
    assert applying([both, cuda], "2.0.1", "cuda").entries == (both, cuda)


@pytest.mark.parametrize(
    ("changes", "explained"),
    [
        ({}, True),
        ({"clause": "BW-07"}, True),
        ({"clause": "GI-02"}, False),
        ({"family": "single-node"}, False),
        ({"kind": "full_backward"}, False),
        ({"finding": Finding(Site(VALUE), ORDER, "1", "2")}, False),
        ({"features": {**FEATURES, "last": frozenset({"Sigmoid"})}}, False),
        ({"features": {**FEATURES, "rank": frozenset({"3"})}}, False),
        ({"features": {"last": frozenset({"Linear"})}}, False),
        ({"features": {}}, False),
    ],
)
def test_an_entry_explains_what_agrees_in_every_field(tmp_path: Path, changes: dict[str, Any], explained: bool) -> None:
    finding = Finding(Site(VALUE), CLOSE, "1", "2")
    asked = {"clause": "GI-01", "family": "multi-node", "kind": "backward", "features": FEATURES, "finding": finding}
    explanation = Ledger((loaded(tmp_path),)).explain(**{**asked, **changes})
    assert explanation == ("some-entry" if explained else None)


WARNING = TEXT.replace('["wrong values"]', '["new warning"]\nsays = "is deprecated"')


@pytest.mark.parametrize(("text", "explained"), [("this is deprecated", True), ("this is slow", False)])
def test_of_a_warning_the_entry_explains_only_what_says_so(tmp_path: Path, text: str, explained: bool) -> None:
    match = loaded(tmp_path, WARNING).matches(
        "GI-01", "multi-node", "backward", Finding(Site(PROCESS), WARNS, None, text), FEATURES
    )
    assert match is explained


def test_of_a_value_the_entry_may_say_which(tmp_path: Path) -> None:
    entry = loaded(tmp_path, TEXT.replace('["wrong values"]', '["wrong values"]\nsays = "3.0"'))
    for observed, explained in (("[3.0]", True), ("[4.0]", False)):
        finding = Finding(Site(VALUE), CLOSE, "1", observed)
        assert entry.matches("GI-01", "multi-node", "backward", finding, FEATURES) is explained


@pytest.mark.parametrize(
    ("relation", "expected", "observed", "explained"),
    [
        (COUNT, 1, 2, True),
        (COUNT, 1, 3, False),
        (ORDER, ["net"], ["net", "net"], True),
        (ORDER, ["net"], ["net", "net", "net"], False),
    ],
)
def test_an_entry_may_say_how_many_calls_more(
    tmp_path: Path, relation: str, expected: Any, observed: Any, explained: bool
) -> None:
    finding = Finding(Site(CALL), relation, expected, observed)
    entry = loaded(tmp_path, TEXT.replace('["wrong values"]', f'["{finding.gap}"]\nmore = 1'))
    assert entry.matches("GI-01", "multi-node", "backward", finding, FEATURES) is explained


@pytest.mark.parametrize("more", ["0", "true", '"1"'])
def test_calls_more_are_at_least_one(tmp_path: Path, more: str) -> None:
    with pytest.raises(LedgerError, match="'more' is a number of calls, at least 1"):
        load(written(tmp_path, TEXT.replace('["wrong values"]', f'["wrong values"]\nmore = {more}')))


@pytest.mark.parametrize(
    "text", [WARNING.replace('says = "is deprecated"', ""), WARNING.replace('says = "is deprecated"', 'says = " "')]
)
def test_an_entry_says_something_of_exceptions_and_warnings(tmp_path: Path, text: str) -> None:
    with pytest.raises(LedgerError, match="entry 'some-entry' of the ledger: 'says' is a part of the text"):
        load(written(tmp_path, text))


def result(topology: str, *deviations: Deviation) -> CaseResult:
    return CaseResult("multi-node", topology, "backward", "corpus", RAN, judged={"GI-01": 1}, deviations=deviations)


KNOWN = Deviation("GI-01", "net#0", "wrong values", "1", "2", "some-entry")


@pytest.mark.parametrize(
    ("results", "cell", "stale"),
    [
        ([result("aa", KNOWN)], ("GI-01", "multi-node", "backward"), False),
        ([result("aa"), result("bb", KNOWN)], ("GI-01", "multi-node", "backward"), False),
        ([result("aa")], ("GI-01", "multi-node", "backward"), True),
        ([], ("GI-01", "multi-node", "backward"), True),
        ([result("aa", replace(KNOWN, ledger=None))], ("GI-01", "multi-node", "backward"), True),
        ([result("aa", replace(KNOWN, ledger="another"))], ("GI-01", "multi-node", "backward"), True),
        ([result("aa", KNOWN)], ("BW-07", "multi-node", "backward"), True),
        ([result("aa")], ("GI-02", "multi-node", "backward"), False),
        ([result("aa")], ("GI-01", "single-node", "backward"), False),
        ([result("aa")], ("GI-01", "multi-node", "full_backward"), False),
    ],
)
def test_an_entry_that_explains_nothing_in_its_cell_is_stale(
    tmp_path: Path, results: list[CaseResult], cell: tuple[str, str, str], stale: bool
) -> None:
    entry = loaded(tmp_path)
    assert Ledger((entry,)).stale(results, *cell) == ([entry] if stale else [])


ANYWHERE = TEXT.replace(line("families"), "")


@pytest.mark.parametrize(
    ("changes", "explained"),
    [
        ({}, True),
        ({"family": "residual"}, True),
        ({"clause": "BW-07"}, True),
        ({"clause": "GI-02"}, False),
        ({"kind": "full_backward"}, False),
        ({"finding": Finding(Site(VALUE), ORDER, "1", "2")}, False),
        ({"features": {}}, False),
    ],
)
def test_an_entry_without_families_holds_in_all_of_them(
    tmp_path: Path, changes: dict[str, Any], explained: bool
) -> None:
    finding = Finding(Site(VALUE), CLOSE, "1", "2")
    asked = {"clause": "GI-01", "family": "multi-node", "kind": "backward", "features": FEATURES, "finding": finding}
    explanation = Ledger((loaded(tmp_path, ANYWHERE),)).explain(**{**asked, **changes})
    assert explanation == ("some-entry" if explained else None)


def test_an_entry_that_names_the_family_comes_before_one_that_names_none(tmp_path: Path) -> None:
    anywhere, here = replace(loaded(tmp_path, ANYWHERE), id="anywhere"), loaded(tmp_path)
    finding = Finding(Site(VALUE), CLOSE, "1", "2")
    ledger = Ledger((anywhere, here))
    assert ledger.explain("GI-01", "multi-node", "backward", finding, FEATURES) == "some-entry"
    assert ledger.explain("GI-01", "residual", "backward", finding, FEATURES) == "anywhere"


def test_an_entry_without_families_is_stale_in_no_cell(tmp_path: Path) -> None:
    assert Ledger((loaded(tmp_path, ANYWHERE),)).stale([result("aa")], "GI-01", "multi-node", "backward") == []


ELSEWHERE = replace(result("bb", KNOWN), family="residual")


@pytest.mark.parametrize(
    ("results", "claims"),
    [
        ([], ()),
        ([result("aa")], ("wrong values", "backward")),
        ([result("aa", KNOWN)], ()),
        ([result("aa"), ELSEWHERE], ()),
        ([result("aa", replace(KNOWN, clause="BW-07"))], ()),
        ([result("aa", replace(KNOWN, ledger="another"))], ("wrong values", "backward")),
        ([result("aa", replace(KNOWN, ledger=None))], ("wrong values", "backward")),
        ([replace(result("aa", KNOWN), kind="full_backward")], ()),
        ([replace(result("aa", KNOWN), kind="full_backward"), result("bb")], ("backward",)),
    ],
)
def test_an_entry_without_families_that_explains_nothing_in_any_is_idle(
    tmp_path: Path, results: list[CaseResult], claims: tuple[str, ...]
) -> None:
    entry = loaded(tmp_path, ANYWHERE)
    assert Ledger((entry,)).idle(results) == [Idle(entry, claim) for claim in claims]


def test_it_must_show_with_each_of_its_hook_kinds(tmp_path: Path) -> None:
    entry = replace(loaded(tmp_path, ANYWHERE), clauses=("GI-01",), kinds=("backward", "global_backward"))
    silent = replace(result("aa"), kind="global_backward")
    assert Ledger((entry,)).idle([result("aa", KNOWN), silent]) == [Idle(entry, "global_backward")]
    lacking = replace(silent, outcome="not offered")
    assert Ledger((entry,)).idle([result("aa", KNOWN), lacking]) == []


def test_each_gap_of_an_entry_must_show(tmp_path: Path) -> None:
    entry = replace(loaded(tmp_path, ANYWHERE), instead=("wrong values", "wrong shape"))
    assert Ledger((entry,)).idle([result("aa", KNOWN)]) == [Idle(entry, "wrong shape")]
    assert Ledger((entry,)).idle([result("aa", KNOWN, replace(KNOWN, gap="wrong shape"))]) == []


def test_each_gap_must_show_in_each_family_that_the_entry_names_and_that_ran(tmp_path: Path) -> None:
    entry = replace(loaded(tmp_path), families=("multi-node", "residual"), instead=("wrong values", "wrong shape"))
    known = (KNOWN, replace(KNOWN, gap="wrong shape"))
    assert Ledger((entry,)).idle([result("aa", *known)]) == []
    assert Ledger((entry,)).idle([result("aa", KNOWN)]) == [Idle(entry, "wrong shape", "multi-node")]
    there = replace(result("bb", KNOWN), family="residual")
    assert Ledger((entry,)).idle([result("aa", *known), there]) == [Idle(entry, "wrong shape", "residual")]


def test_of_a_program_that_did_not_run_nothing_need_show() -> None:
    entry = next(e for e in load() if e.families == (PROGRAM,) and len(e.instead) == 1 and not e.varies)
    (id, *_), (chapter, *_) = entry.clauses, entry.kinds
    ran = CaseResult(PROGRAM, id, chapter, "corpus", RAN, judged={id: 1})
    assert Ledger((entry,)).idle([ran]) == [Idle(entry, entry.instead[0], PROGRAM)]
    assert Ledger((entry,)).idle([replace(ran, topology="another")]) == []
    assert Ledger((entry,)).idle([replace(ran, outcome=NOT_RUN, reason="no")]) == []


@cache
def of_today(family: str) -> str:
    """The digest of the corpus of a family."""
    return digest(read_corpus(conformance_folder() / "corpus", family))


RECORDS = sorted((Path(__file__).parents[2] / "reports" / "records").glob("*.jsonl.gz"))


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_what_the_ledger_claims_of_a_release_its_record_shows(path: Path) -> None:
    """As far as it tells: of entries that were reviewed before that day, and if it ran the networks of today."""
    record = read(path)
    header = record.header
    if any(file.digest != of_today(family) for family, file in header.plan.corpus.items()):
        pytest.skip("it ran other networks")
    ledger = applying(load(), header.torch.version, header.device)
    older = tuple(entry for entry in ledger.entries if entry.reviewed.isoformat() < header.started[:10])
    assert [(i.entry.id, i.claim, i.family) for i in Ledger(older).idle(record.cases)] == []


@pytest.mark.parametrize(("key", "word"), [("reached", "inside"), ("leaves", "joined")])
def test_an_entry_may_name_what_was_reached_and_how_leaves_are_joined(tmp_path: Path, key: str, word: str) -> None:
    entry = loaded(tmp_path, TEXT.replace("rank =", f'{key} = "{word}", rank ='))
    assert (key, (word,)) in entry.when
