"""Which scripts do pages show, which of them are made anew, and how long are they?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
import torch
from tests.report.samples import case, deviation, record
from tests.repro.cases import LINEAR

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.verdict import PROGRAM, Deviation
from hookcheck.programs.program import Program
from hookcheck.record.model import Counterexample, public_version
from hookcheck.record.writing import write
from hookcheck.report.address import slug
from hookcheck.report.archive import Archive, read_folder
from hookcheck.report.causes import Cause, Example, causes
from hookcheck.report.drawing import report
from hookcheck.repro.formatting import WIDTH
from hookcheck.repro.heading import LONGEST
from hookcheck.repro.verify import SHOWS, here
from hookcheck.run.reproduction import (
    Made,
    drop_others,
    kept_in,
    make,
    missing,
    reproductions,
    script_of,
    with_examples_of,
)
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import encode, identify

VERSION = public_version(str(torch.__version__))


def cause(ledger: str = "legacy-linear-last-node", clause: str = "GI-01", topology: str = "") -> Cause:
    """A cause that the smallest legacy hook on a Linear shows."""
    network = Counterexample(identify(LINEAR), encode(LINEAR), "")
    seen = Deviation(clause, "net#0", "wrong shape", "", "", ledger)
    example = Example("multi-node", "backward", 0, seen, topology or network.topology, network)
    return Cause(clause, ledger, (seen.gap,), ("backward",), ("multi-node",), {0: 1}, example)


def write_scripts(folder: Path, *causes: Cause) -> list[Made]:
    return list(make(causes, folder, conformance_folder() / "corpus", VERSION))


def archived(folder: Path, *versions: str) -> Archive:
    for version in versions:
        write(record(version, [case("aaaa", "backward")]), folder)
    return read_folder(folder)


@pytest.mark.slow
def test_a_script_is_made_once_it_was_seen_to_fail_and_kept(tmp_path: Path) -> None:
    (result,) = write_scripts(tmp_path, cause())
    assert result.why == ""
    path = tmp_path / "GI-01" / "legacy-linear-last-node.py"
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    text = path.read_text()
    assert text.count("\n") == result.lines
    assert "hookcheck" not in text.partition("\n")[2]
    assert here(path, VERSION).verdict == SHOWS
    assert script_of(cause(), tmp_path) == text == reproductions(tmp_path)(cause())


USUAL = 35
"""So many lines has the script of a network at most, as often as not."""

SCRIPTS = sorted((Path(__file__).parents[2] / "reports" / "scripts").glob("*/*.py"))


def test_the_scripts_that_are_kept_are_short() -> None:
    assert SCRIPTS
    texts = {path: path.read_text(encoding="utf-8").partition("\n")[2] for path in SCRIPTS}  # less where from
    lines = {path: text.count("\n") for path, text in texts.items()}
    assert not {path for path, count in lines.items() if count > LONGEST}
    programs = {slug(clause.id) for clause in CLAUSES.values() if isinstance(clause, Program)}
    assert median(count for path, count in lines.items() if path.parent.name not in programs) <= USUAL
    assert max(len(line) for text in texts.values() for line in text.split("\n")) <= WIDTH
    assert not [path for path, text in texts.items() if "torch.autograd.backward([])" in text]  # it goes back nowhere


def test_what_cannot_be_shown_here_leaves_no_file(tmp_path: Path) -> None:
    (result,) = write_scripts(tmp_path, cause("legacy-container-addition"))
    assert "for other causes than legacy-container-addition" in result.why
    (result,) = write_scripts(
        tmp_path, replace(cause(), example=replace(cause().example, topology="f" * 16, network=None))
    )
    assert "neither a record nor the corpus" in result.why
    assert not [*tmp_path.rglob("*.*")]


def kept_script(folder: Path, name: str = "legacy-linear-last-node") -> Path:
    path = folder / "GI-01" / f"{name}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# torch 2.6.0: hookcheck repro {identify(LINEAR)} --clause GI-01 --kind backward\nimport torch\n")
    return path


def test_a_script_of_an_entry_stays_though_records_show_it_on_another_network(tmp_path: Path) -> None:
    path = kept_script(tmp_path)
    later = cause(topology="0" * 16)
    assert script_of(later, tmp_path) == script_of(cause(), tmp_path) != ""
    assert script_of(cause("another"), tmp_path) == ""
    drop_others([later], tmp_path)
    assert path.exists()
    assert missing(archived(tmp_path / "records", "2.6.0"), [later], tmp_path, "2.6.0") == ([], [])
    drop_others([cause("another")], tmp_path)
    assert not path.exists()


def test_what_no_entry_explains_is_shown_by_its_own_network_alone(tmp_path: Path) -> None:
    path = kept_script(tmp_path, slug("wrong shape"))
    unexplained = replace(cause(), ledger=None)
    assert script_of(unexplained, tmp_path) != ""
    other = replace(cause(topology="0" * 16), ledger=None)
    assert script_of(other, tmp_path) == ""
    drop_others([unexplained], tmp_path)
    assert path.exists()
    drop_others([other], tmp_path)
    assert not path.exists()


def test_only_a_release_that_shows_it_makes_a_script(tmp_path: Path) -> None:
    archive = archived(tmp_path, "2.6.0+cpu", "2.2.2")
    both = [replace(cause(), cases={0: 3}), replace(cause("other"), cases={0: 3, 1: 1})]
    assert missing(archive, both, tmp_path, "2.6.0") == (both, [])
    assert missing(archive, both, tmp_path, "2.2.2") == (both[1:], both[:1])
    assert missing(archive, both, tmp_path, "2.15.0") == ([], both)


@pytest.mark.parametrize(("ledger", "topology"), [("linear-bias", "bbbb"), (None, "aaaa")])
def test_a_script_is_made_of_what_its_release_shows(tmp_path: Path, ledger: str | None, topology: str) -> None:
    both, one = (
        record(version, [case(name, "backward", [deviation(ledger=ledger)]) for name in names])
        for version, names in (("2.6.0", ("aaaa", "bbbb")), ("1.9.1", ("bbbb",)))
    )
    for each in (both, one):
        write(each, tmp_path)
    (seen,) = causes(read_folder(tmp_path))["BW-01"]
    assert seen.example.topology == "aaaa"
    (seen,) = with_examples_of([one.folded()], [seen])
    assert seen.example.topology == topology


def test_the_page_of_a_clause_shows_what_is_kept(tmp_path: Path) -> None:
    write(record("2.6.0", [case("aaaa", "backward", [deviation(ledger="linear-bias")])]), tmp_path / "records")
    folder = kept_in(tmp_path / "records")
    path = folder / "BW-01" / "linear-bias.py"
    path.parent.mkdir(parents=True)
    path.write_text("# torch 2.6.0: hookcheck repro aaaa --clause BW-01 --kind backward\nprint('<it>')\n")
    report(tmp_path / "records", tmp_path, reproduce=reproductions(folder))
    page = (tmp_path / "site" / "clauses" / "BW-01.html").read_text()
    assert "print('&lt;it&gt;')" in page
    assert "seen to fail on torch 2.6.0" in page


def test_a_page_says_where_its_script_is_of_another_network(tmp_path: Path) -> None:
    write(record("2.6.0", [case("aaaa", "backward", [deviation(ledger="linear-bias")])]), tmp_path / "records")
    folder = kept_in(tmp_path / "records")
    path = folder / "BW-01" / "linear-bias.py"
    path.parent.mkdir(parents=True)
    for network, words in (("aaaa", "reduced and seen"), ("bbbb", "reduced from another network and seen")):
        path.write_text(f"# torch 2.6.0: hookcheck repro {network} --clause BW-01 --kind backward\nprint('it')\n")
        report(tmp_path / "records", tmp_path, reproduce=reproductions(folder))
        assert f"{words} to fail on torch 2.6.0" in (tmp_path / "site" / "clauses" / "BW-01.html").read_text()


def of_situations(ledger: str) -> Cause:
    """A cause that a program about situations shows."""
    seen = Deviation("SI-02", "a situation", "raised", "", "", ledger)
    example = Example(PROGRAM, "situations", 0, seen, "SI-02", None)
    return Cause("SI-02", ledger, (seen.gap,), ("situations",), (PROGRAM,), {0: 1}, example)


def test_what_a_program_about_situations_shows_has_a_script_that_is_kept(tmp_path: Path) -> None:
    archive = archived(tmp_path / "records", "2.6.0")
    shown = of_situations("hooks-that-change-their-tables")
    assert reproductions(tmp_path)(shown) == ""
    assert missing(archive, [shown], tmp_path, "2.6.0") == ([shown], [])
    path = tmp_path / "SI-02" / "hooks-that-change-their-tables.py"
    path.parent.mkdir()
    path.write_text("# torch 2.6.0: hookcheck repro SI-02\nimport torch\n")
    assert reproductions(tmp_path)(shown) == path.read_text()
    assert missing(archive, [shown], tmp_path, "2.6.0") == ([], [])


@pytest.mark.slow
def test_the_script_of_a_situation_is_made_once_it_was_seen_to_fail(tmp_path: Path) -> None:
    first, other = write_scripts(tmp_path, of_situations("hooks-that-change-their-tables"), of_situations("none"))
    assert 20 < first.lines <= 60
    assert here(tmp_path / "SI-02" / "hooks-that-change-their-tables.py", VERSION).verdict == SHOWS
    assert "but for other causes than none" in other.why
