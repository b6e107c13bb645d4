"""Is the topology found that is meant, and is every other text refused in one line?"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.record.writing import write as write_record
from hookcheck.repro.lookup import find
from hookcheck.topology.codec import canonical, identify
from hookcheck.topology.corpus import write
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.model import Call, Composite, Input, Recurse, Topology
from hookcheck.topology.tree import Literal, Ref

from .cases import AGAIN, LINEAR, MIXED, SHARED, record_with

ENDLESS = Call("y", "", (Ref("x"), Literal(-1)))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for family in FAMILIES:
        write(tmp_path / "corpus", family, [])
    write(tmp_path / "corpus", "multi-node", [LINEAR, SHARED])
    return tmp_path / "corpus"


def test_by_the_beginning_of_an_id(corpus: Path, tmp_path: Path) -> None:
    match = find(identify(LINEAR)[:10], corpus, tmp_path)
    assert (match.topology, match.where) == (LINEAR, "multi-node")


def test_by_file_and_by_standard_input(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.json"
    path.write_text(canonical(MIXED), encoding="utf-8")
    assert find(str(path), corpus, tmp_path).topology == MIXED
    monkeypatch.setattr("sys.stdin", io.StringIO(canonical(AGAIN)))
    match = find("-", corpus, tmp_path)
    assert (match.topology, match.where) == (AGAIN, "standard input")


def test_among_the_counterexamples_of_records(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "broken.jsonl").write_text("no record\n", encoding="utf-8")
    path = write_record(record_with(MIXED), tmp_path / "partial")
    match = find(identify(MIXED)[:12], corpus, tmp_path)
    assert (match.topology, match.where) == (MIXED, str(path))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("ffffffffffffffff", "no topology of the corpus"),
        ("nothing", "neither a file nor"),
        ("", "neither a file nor"),
    ],
)
def test_refuses_what_is_not_there(case: str, words: str, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(HookcheckError, match=words):
        find(case, corpus, tmp_path)


def test_refuses_what_may_be_several(tmp_path: Path) -> None:
    for family in FAMILIES:
        write(tmp_path, family, [])
    write(tmp_path, "multi-node", [replace(LINEAR, seed=n) for n in range(40)])
    with pytest.raises(HookcheckError, match=r"is the beginning of \d+ ids, among them"):
        find(identify(LINEAR)[:1], tmp_path, tmp_path)


@pytest.mark.parametrize(
    "topology",
    [
        replace(LINEAR, inputs=(LINEAR.inputs[0], Input("v_y", (2, 3)))),
        replace(LINEAR, module=Composite((), ("x", "n"), (Recurse("y", Ref("x"), "n"),), Ref("y")), main=(ENDLESS,)),
    ],
    ids=["backward", "recursion"],
)
def test_refuses_a_topology_that_does_not_run(topology: Topology, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(canonical(topology), encoding="utf-8")
    with pytest.raises(HookcheckError, match="does not run"):
        find(str(path), tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "this is no topology"),
        ('{"type":"Wrong"}', "unknown part 'Wrong'"),
        (
            '{"type":"Topology","module":5,"inputs":[],"main":[{"type":"Leak","name":"y","value":0}]}',
            "does not run",
        ),
    ],
)
def test_refuses_a_file_that_holds_no_topology(text: str, words: str, corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HookcheckError, match=words):
        find(str(path), corpus, tmp_path)
