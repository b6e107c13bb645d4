"""Round after round: what each share of a soak draws, when it ends, and what it says meanwhile."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

import hookcheck.run.soak as module
from hookcheck.run.examiner import peak_memory
from hookcheck.run.session import Unexplained
from hookcheck.run.soak import KERNELS, ROUND, Soak


class Explorer:
    """A session that says that each round of a family has drawn 40 new topologies."""

    def __init__(self, finding: int = 0) -> None:
        self.asked: list[tuple[str, str, int, int]] = []
        self.finding = finding

    def explore(self, family: str, device: str, examples: int, round: int = 0) -> int:
        self.asked.append((family, device, examples, round))
        if len(self.asked) == self.finding:
            raise Unexplained("found")
        return 40

    def peak_memory(self) -> float:
        return 7.0


def soaked(explorer: Any, share: int = 0, shares: int = 1, limit: int = 100) -> tuple[int, list[str]]:
    said: list[str] = []
    return Soak(explorer, ("first", "second"), "cpu", share, shares, limit).run(said.append), said


def test_it_goes_through_the_families_round_after_round_until_the_limit() -> None:
    explorer = Explorer()
    done, _ = soaked(explorer)
    assert explorer.asked == [("first", "cpu", ROUND, 1), ("second", "cpu", ROUND, 1), ("first", "cpu", ROUND, 2)]
    assert done == 120


def test_shares_divide_the_limit_and_never_draw_the_same_round() -> None:
    explorers = [Explorer() for _ in range(3)]
    assert [soaked(e, share, 3, 300)[0] for share, e in enumerate(explorers)] == [120] * 3
    rounds = [{number for *_, number in e.asked} for e in explorers]
    assert rounds == [{1, 4}, {2, 5}, {3, 6}]


def test_without_a_limit_it_ends_with_what_is_not_explained_and_tells_it_at_once() -> None:
    explorer, said = Explorer(finding=50), []  # type: tuple[Explorer, list[str]]
    with pytest.raises(Unexplained, match="found"):
        Soak(explorer, ("first",), "cpu", 1, 2, 0).run(said.append)  # type: ignore[arg-type]
    assert len(explorer.asked) == 50
    assert said == ["soak 2/2, cpu has ended with a find.\nfound"]


def test_it_tells_at_the_end_and_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    _, said = soaked(Explorer(), limit=200)
    assert said == [
        "soak 1/1, cpu: 120 of 200 new topologies, round 2, 10 a second, 7 MiB at most",
        "soak 1/1, cpu: 200 of 200 new topologies, round 3, 10 a second, 7 MiB at most",
    ]


def test_without_a_limit_no_total_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", -1.0)
    said: list[str] = []
    explorer: Any = Explorer(finding=2)
    with pytest.raises(Unexplained):
        Soak(explorer, ("first",), "cuda", 1, 4, 0).run(said.append)
    assert said[0].startswith("soak 2/4, cuda: 40 new topologies, round 2, ")


def test_memory_is_told_in_mebibytes() -> None:
    assert 10 < peak_memory() < 2**20


@pytest.mark.parametrize(("asked", "due"), [(None, str(KERNELS)), ("5", "5")])
def test_few_kernels_are_kept_unless_the_user_says_how_many(
    asked: str | None, due: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "DNNL_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.setenv(name, asked or "")
    if asked is None:
        monkeypatch.delenv(name)
    soaked(Explorer())
    assert os.environ[name] == due
