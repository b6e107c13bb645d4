"""Do the commands that tell what is known tell it: first steps, names, records, support, badges, what is there?"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import fastjsonschema
import pytest
from record.samples import record as sample
from test_cli import asked, in_process, lines
from test_cli_diff import WARNED, WRONG, case, of

import hookcheck.cli.index as indices
from hookcheck.cli import main
from hookcheck.cli.index import index
from hookcheck.cli.output import SCHEMAS
from hookcheck.contract.clause import CLAUSES
from hookcheck.record.writing import write
from hookcheck.releases import releases
from hookcheck.report.support import schema

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of our own, with the index in it as any command leaves it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        index()
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory; what comes with hookcheck is there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_alone_it_says_what_to_do_first() -> None:
    code, out, err = asked()
    assert (code, err) == (0, "")
    named = [line.split()[1] for line in out.splitlines() if line.startswith("  hookcheck")]
    assert {name for name in named if not name.startswith("-")} <= set(main.commands)
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_command_prints_its_schema(name: str) -> None:
    code, out, _ = asked(name, "--schema")
    assert code == 0
    assert json.loads(out)["oneOf"] == SCHEMAS[name]


@pytest.mark.parametrize("arguments", [["list"], ["claims"], ["families"], ["explain", "GI-01"], ["support", "tensor"]])
def test_a_listing_imports_neither_torch_nor_the_contract(arguments: list[str]) -> None:
    heavy = "torch", "numpy", "hypothesis", "hookcheck.clauses"
    statement = f"print([name for name in {heavy} if name in sys.modules])"
    done = in_process(*arguments, code=f"import sys, atexit; atexit.register(lambda: {statement})")
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_index_is_made_again_when_a_file_has_changed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    package = folder / "package"
    package.mkdir()
    (package / "one.py").touch()
    monkeypatch.setattr(indices, "PACKAGE", package)
    times = []
    monkeypatch.setattr(indices, "_build", lambda: times.append(time.monotonic()) or {"clauses": len(times)})
    assert [index(), index()] == [{"clauses": 1}] * 2
    (package / "one.py").write_text("changed = True\n")
    assert index() == {"clauses": 2}


def test_without_a_cache_it_is_only_slower(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "file"))
    assert [clause["id"] for clause in index()["clauses"]] == list(CLAUSES)


def test_list_selects() -> None:
    rows = lines("list", "--kind", "post_accumulate")
    ids = {row["id"] for row in rows}
    assert {id for id, clause in CLAUSES.items() if "post_accumulate" in clause.kinds} <= ids
    assert {row["id"] for row in rows if row["chapter"] == "post-accumulate-hooks"} <= ids < set(CLAUSES)
    assert {row["chapter"] for row in lines("list", "--chapter", "forward-hooks")} == {"forward-hooks"}
    matches = lines("list", "--search", "A Named RESULT of torch")
    assert [row["id"] for row in matches] == ["BS-05"]
    _, out, _ = asked("list", "--search", "a named result of torch", "--format", "pretty")
    assert out.splitlines()[-1] == "1 clause; `hookcheck explain ID` says more of one"


@pytest.mark.parametrize("columns", ["40", "80"])
def test_list_is_readable_in_few_columns(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    _, out, _ = asked("list", "--format", "pretty")
    longest = max(len(word) for clause in CLAUSES.values() for word in f"{clause.statement} [{clause.source}]".split())
    assert max(map(len, out.splitlines())) <= max(int(columns), longest + 6)
    assert len(out.splitlines()) < 8 * len(CLAUSES)


def test_explain_tells_every_name() -> None:
    (clause,) = lines("explain", "BW-03")
    full = [row for row in clause["releases"] if row["kind"] == "full_backward"]
    assert full[-1]["state"] == "partial"  # inside vmap it is never called
    assert full[0]["records"] == ["torch-1.7.1-cpu"]
    (family,) = lines("explain", "view")
    assert (family["what"], family["corpus_size"] > 0) == ("family", True)
    (kind,) = lines("explain", "full_backward")
    assert (kind["register"], kind["since"]) == ("register_full_backward_hook", "1.8")
    assert kind["newest"]["holds"] > kind["clauses"] / 2  # of clauses that came since, no record speaks
    (layer,) = lines("explain", "Linear")
    assert (layer["what"], layer["state"]) == ("layer", "covered")
    (chapter,) = lines("explain", "hook-order")
    assert chapter["clauses"]
    (release,) = lines("explain", "2.6.0")
    assert release["records"] == ["torch-2.6.0-cpu"]
    assert release["states"]["holds"] > 100
    exclusions = {row["id"]: row for row in lines("explain", "kept-out")}
    assert exclusions["probe.run.unsafe"]["entries"] == ["pytorch-196459"]
    for name in ("BW-03", "view", "full_backward", "Linear", "hook-order", "2.6.0", "kept-out"):
        assert asked("explain", name, "--format", "pretty")[0] == 0


def test_explain_tells_what_there_is_on_an_upstream_issue() -> None:
    whole = lines("explain", "pytorch#61446")
    clauses = [row for row in whole if row["what"] == "clause"]
    assert ["pytorch#61446" in row["source"] for row in clauses] == [True]
    assert {row["link"].rsplit("/", 1)[-1] for row in whole if row["what"] == "ledger entry"} == {"61446"}
    assert lines("explain", "#61446") == whole
    assert asked("explain", "#6144")[0] == 2


def test_a_release_that_was_not_run_has_no_answers() -> None:
    ran = {path.name.split("-")[1] for path in (ROOT / "reports" / "records").iterdir()}
    other = next((r.torch for r in releases() if r.torch not in ran), None)
    if other is None:
        pytest.skip("every release has been run")
    (row,) = lines("explain", other)
    assert (row["records"], row["states"], row["changed"]) == ([], {}, [])


def test_summary(folder: Path) -> None:
    path = str(write(of("2.9.0", case("aaaa", WARNED)), folder / "reports" / "records"))
    (row,) = lines("summary", path, code=1)
    assert (row["torch"], row["complete"], row["new"][0]["clause"]) == ("2.9.0+cpu", True, "BW-01")
    assert row["new"][0]["gap"] == "new warning"
    code, out, _ = asked("summary", "2.9.0", "--format", "pretty")
    assert (code, out.split(":")[0]) == (1, "torch 2.9.0+cpu on cpu")
    code, out, _ = asked("summary", "2.9.0", "--format", "markdown")
    assert out.startswith("### torch 2.9.0+cpu on cpu: 1 new deviation")
    assert "| BW-01 | It holds. | new warning | 1 | `hookcheck explain aaaa` |" in out
    write(of("2.9.0", case("aaaa", WRONG)), folder / "reports" / "records")
    assert asked("summary", "2.9.0")[0] == 0  # the ledger explains it


def test_the_summary_of_a_run_that_was_cut_short_says_so_first_and_cannot_tell(folder: Path) -> None:
    stopped = replace(of("2.9.0").footer, complete=False, stopped="interrupted")
    for deviations, status in (((), 2), ((WARNED,), 1)):
        whole = of("2.9.0", case("aaaa", *deviations))
        path = str(write(replace(whole, footer=replace(stopped, counts=whole.footer.counts)), folder))
        start = f"torch 2.9.0+cpu on cpu: the run was cut short (interrupted); so far {len(deviations)} new deviation"
        code, out, err = asked("summary", path, "--format", "pretty")
        assert (code, err) == (status, "")
        assert " ".join(out.split()).startswith(start)
        assert asked("summary", path, "--format", "markdown")[1].startswith(f"### {start}")
        (row,) = lines("summary", path, code=status)
        assert (row["complete"], row["stopped"]) == (False, "interrupted")


def test_the_summary_of_a_record_without_an_end_is_refused(folder: Path) -> None:
    path = write(of("2.9.0", case("aaaa")), folder)
    whole = gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)
    plain = folder / "torn.jsonl"
    for content, message in ((whole[:-1], "there is no footer"), ([*whole[:-1], whole[-1][:9]], "cut in the middle")):
        plain.write_text("".join(content))
        code, out, err = asked("summary", str(plain))
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


def test_a_badge_says_what_the_record_says(folder: Path) -> None:
    write(of("2.9.0", case("aaaa")), folder / "reports" / "records")
    write(of("2.10.0", case("aaaa", WARNED)), folder / "reports" / "records")
    path = write(sample(), folder / "cut")
    for name, words, colour in (
        ("2.9.0", "torch 2.9.0: as known", "#2a7d34"),
        ("2.10.0", "torch 2.10.0: 1 new deviation", "#b3261e"),
        (str(path), "torch 2.13.0: cut short", "#6b6b6b"),
    ):
        (row,) = lines("badge", name, "--label", "<hooks>")
        assert (row["message"], row["color"], row["label"]) == (words, colour, "<hooks>")
        picture = ElementTree.fromstring(asked("badge", name, "--label", "<hooks>")[1])
        assert picture.attrib["aria-label"] == f"<hooks>: {words}"


def test_support_tells_what_does_not_hold_first_and_of_the_newest_release_before_others() -> None:
    rows = lines("support", "full_backward", "--since", "2.0")
    order = ["fails", "partial", "changed", "unknown", "not offered", "holds"]
    places = [(row["otherwise_after"] is not None, order.index(row["state"])) for row in rows]
    assert places == sorted(places)
    assert {row["kind"] for row in rows} > {"full_backward", "full-backward-hooks"}
    assert not any(row["last"].startswith("1.") for row in rows)
    assert "2.0.1" in {row["since"] for row in lines("support", "--until", "2.0.1")}
    assert asked("support", "--since", "two")[2] == (
        "hookcheck: error: 'two' is no version of torch; write one as 2.6.0\n"
    )


def drawn(*arguments: str) -> list[str]:
    """The paragraphs of what `hookcheck support` draws, each on one line, in their sections."""
    _, out, _ = asked("support", *arguments, "--format", "pretty")
    return [" ".join(part.split()) for part in out.replace("\n      ", " ").splitlines()]


def sections(*arguments: str) -> dict[str, list[str]]:
    """The paragraphs of an overview by their heading, the first of all by an empty one."""
    heading = ""
    out: dict[str, list[str]] = {heading: []}
    paragraphs = drawn(*arguments)
    for before, text in zip(["", *paragraphs], paragraphs):
        if not before and text and out[""]:
            heading = text
            out[heading] = []
        elif text:
            out[heading].append(text)
    return out


def test_many_statements_have_an_overview_of_what_is_not_as_promised() -> None:
    rows = lines("support", "full_backward", "--since", "2.0")
    newest = [row for row in rows if row["otherwise_after"] is None]
    parts = sections("full_backward")
    holding = sum(row["state"] == "holds" for row in newest)
    assert f"of {len(newest)} statements {holding} hold" in " ".join(parts[""])
    named = {text.split()[0] for text in parts["not as promised"]}
    assert named == {r["clause"] for r in newest if r["state"] in ("fails", "partial") and r["class"] != "claim"}
    assert parts["not as promised"][0].split(": ")[1].startswith("wrong values")
    assert all("." in text for text in parts["not as promised"])
    assert len(drawn("full_backward")) < len(newest)


def test_support_tells_what_changed_since_a_release_and_by_which_causes() -> None:
    changed = sections("full_backward", "--since", "2.0")["changed since 2.0"]
    (warned,) = (text for text in changed if text.startswith("BF-13"))
    assert "2.8.0: came: new warning (kwargs-only-warning)" in warned
    (mended,) = (text for text in changed if text.startswith("BS-04"))
    assert mended.startswith("BS-04 holds since 2.2.2.")
    assert "2.2.2: now holds, before partial; gone: " in mended
    assert not any(text.startswith("LB-06") for text in changed)  # as in 1.8.0
    until = sections("full_backward", "--since", "2.3", "--until", "2.4.1")
    assert until[""][0].startswith("torch 2.4.1: ")
    assert not any(text.startswith("BF-13") for text in until.get("changed since 2.3", []))


def test_support_lists_all_where_that_is_asked_for_or_few() -> None:
    listed = drawn("full_backward", "--since", "2.0", "--all")
    assert sum(": holds " in text for text in listed) == sum(
        row["state"] == "holds" for row in lines("support", "full_backward", "--since", "2.0")
    )
    assert drawn("full_backward", "--clause", "BW-12")[0].startswith("BW-12 full_backward: holds since 1.9.1")
    assert drawn("--since", "99") == ["nothing is said of that: `hookcheck support` tells what was run"]


def test_support_is_written_from_the_records(folder: Path) -> None:
    write(of("2.9.0", case("aaaa")), folder / "reports" / "records")
    write(of("2.10.0", case("aaaa", WRONG)), folder / "reports" / "records")
    files = [row["file"] for row in lines("support", "--write")]
    assert files == ["reports/support.json", "reports/changes.md"]
    fastjsonschema.compile(schema())(json.loads(Path(files[0]).read_text()))
    states = [row["state"] for row in lines("support", "backward")]
    assert states == ["fails", "holds"] or states == ["partial", "holds"]
    Path(files[0]).write_text("{")
    assert "cannot be read" in asked("support")[2]


def test_doctor() -> None:
    rows = lines("doctor")
    assert {row["what"] for row in rows} >= {"torch", "interpreter", "kernels", "devices", "records", "disk", "uv"}
    done = in_process("doctor", code="import sys; sys.modules['torch'] = None")
    assert done.returncode == 3
    assert '"state": "missing"' in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("explain BS-0", {"BS-05"}),
        ("support full_b", {"full_backward", "full_backward_pre"}),
        ("list --chapter handl", {"handles"}),
        ("diff 2.9.0 2.9.0 --kinds forward,full_b", {"forward,full_backward", "forward,full_backward_pre"}),
        ("upgrade --from 2.", {"2.9.0", "2.10.0"}),
        ("summary 2.1", {"2.10.0"}),
        ("run --clause BS-0", {"BS-05"}),
        ("run --family resid", {"residual"}),
        ("run --kind handl", {"handles"}),
        ("run --hypothesis-profile sm", {"smoke"}),
        ("run --ba", {"--baseline"}),
        ("run --baseline 2.9", {"2.9.0"}),
        ("repro GI-0", {"GI-01"}),
        ("repro GI-01/shared-module/b", {"GI-01/shared-module/backward"}),
        ("repro x --clause BS-0", {"BS-05"}),
        ("support --clause BS-0", {"BS-05"}),
        ("support --since 2.6", {"2.6.0"}),
        ("verify x.py --torch 1.13.1,2.6", {"1.13.1,2.6.0"}),
        ("matrix 1.8.", {"1.8.0", "1.8.1"}),
        ("scan sr", {"sr"}),
    ],
)
def test_completion_completes_names(typed: str, offered: set[str], folder: Path) -> None:
    (folder / "reports" / "records").mkdir(parents=True)
    for version in ("2.9.0", "2.10.0"):
        (folder / "reports" / "records" / f"torch-{version}-cpu.jsonl.gz").touch()
    words = {"COMP_WORDS": f"hookcheck {typed}", "COMP_CWORD": str(len(typed.split()))}
    program = f"import os; os.environ.update({ {**words, '_HOOKCHECK_COMPLETE': 'bash_complete'}!r})"
    program += "; sys.modules['torch'] = None"
    done = in_process(code=f"import sys; {program}")
    assert offered <= {line.partition(",")[2] for line in done.stdout.splitlines()}, done.stderr


def test_completion_has_a_script() -> None:
    code, out, _ = asked("completion", "bash")
    assert (code, "_HOOKCHECK_COMPLETE=bash_complete" in out) == (0, True)


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import atexit, os, pty, sys, threading
terminal, end = pty.openpty()
os.dup2(end, 1)
os.close(end)
def copy():  # as it comes: a terminal that nobody reads is full after a few kilobytes
    try:
        while data := os.read(terminal, 9000):
            os.write(2, data)
    except OSError:  # the other end is closed
        pass
reader = threading.Thread(target=copy, daemon=True)
reader.start()
atexit.register(lambda: (sys.stdout.flush(), os.close(1), reader.join()))
"""
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in in_process("families", "--format", "pretty", code=code).stderr
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in in_process("families", "--format", "pretty", code=code).stderr
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b[" not in in_process("families", "--format", "pretty", code=code).stderr
    monkeypatch.setenv("COLUMNS", "60")
    drawn = in_process("explain", "BW-02", code=code).stderr
    assert max(map(len, drawn.replace("\r", "").splitlines())) == 60
