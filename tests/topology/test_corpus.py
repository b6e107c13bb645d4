from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.topology.codec import canonical, identify
from hookcheck.topology.corpus import CorpusError, beside, digest, read, write
from hookcheck.topology.model import Topology

from .samples import SAMPLES, SMALL

SEVERAL = tuple(SAMPLES.values())


def lines(folder: Path, content: Sequence[str]) -> Path:
    (folder / "single-node.jsonl").write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    return folder


def line(topology: Topology, id: str = "") -> str:
    return f'{{"id":"{id or identify(topology)}","topology":{canonical(topology)}}}'


def test_what_is_written_is_read_back_in_order(tmp_path: Path) -> None:
    write(tmp_path / "corpus", "single-node", SEVERAL)
    assert read(tmp_path / "corpus", "single-node") == SEVERAL


def test_a_line_is_the_id_and_the_canonical_text(tmp_path: Path) -> None:
    write(tmp_path, "single-node", [SMALL])
    assert (tmp_path / "single-node.jsonl").read_text() == line(SMALL) + "\n"


def test_writing_again_replaces_the_file(tmp_path: Path) -> None:
    write(tmp_path, "single-node", SEVERAL)
    write(tmp_path, "single-node", [SMALL])
    assert read(tmp_path, "single-node") == (SMALL,)


def test_an_empty_corpus_is_a_corpus(tmp_path: Path) -> None:
    write(tmp_path, "single-node", [])
    assert read(tmp_path, "single-node") == ()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"single-node\.jsonl cannot be read .*; restore it from the repository"):
        read(tmp_path, "single-node")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "single-node.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(CorpusError, match=r"single-node\.jsonl cannot be read"):
        read(tmp_path, "single-node")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("", "line 2 does not parse .*restore it from the repository or remove the line"),
        ('{"id": "cut', "line 2 does not parse"),
        ("[]", "line 2 does not parse"),
        ('{"id":"0123456789abcdef"}', "line 2 does not parse .*topology"),
        (f'{{"topology":{canonical(SMALL)}}}', "line 2 does not parse .*id"),
        ('{"id":"0","topology":{"type":"Quantum"}}', "line 2: unknown part 'Quantum'"),
        ('{"id":"0","topology":{"type":"Topology","colour":1}}', "line 2: the fields of 'Topology'"),
        ('{"id":"0","topology":[]}', "line 2: this is no topology but list"),
        (line(SMALL, "0123456789abcdef"), "line 2: the id is '0123456789abcdef' but the content hashes to .*edited"),
        (line(SEVERAL[1]), f"line 2: topology {identify(SEVERAL[1])} is there twice; remove one of the two lines"),
    ],
)
def test_a_line_that_is_not_right_is_named(tmp_path: Path, second: str, message: str) -> None:
    with pytest.raises(CorpusError, match=message) as caught:
        read(lines(tmp_path, [line(SEVERAL[1]), second]), "single-node")
    assert str(caught.value).startswith("single-node.jsonl, ")
    assert isinstance(caught.value, HookcheckError)


def test_the_digest_tells_content_and_order_apart() -> None:
    assert digest(SEVERAL) == digest(list(SEVERAL))
    assert len({digest(SEVERAL), digest(SEVERAL[::-1]), digest(SEVERAL[:-1]), digest([])}) == 4
    assert len(digest([])) == 16


def test_what_a_line_is_run_with_beside_its_share(tmp_path: Path) -> None:
    first, second = SEVERAL[:2]
    write(tmp_path, "single-node", [first, second], {identify(second): ["forward", "tensor"]})
    assert read(tmp_path, "single-node") == (first, second)
    assert beside(tmp_path, "single-node") == {identify(second): ("forward", "tensor")}
    written = (tmp_path / "single-node.jsonl").read_text()
    assert f'"{identify(second)}","beside":["forward","tensor"],"topology":' in written
    assert written.count("beside") == 1
