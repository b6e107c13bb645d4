"""Do siblings take turns, and do all others run with every network?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hookcheck.hooks import kinds
from hookcheck.hooks.kinds import KINDS, HookKind
from hookcheck.hooks.siblings import SIBLINGS, share
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import beside, read
from hookcheck.topology.families import FAMILIES

CORPUS: Path = conformance_folder() / "corpus"
IDS = [identify(topology) for topology in read(CORPUS, "random-graph")]


def test_a_kind_has_siblings_once() -> None:
    counts = Counter(kind for group in SIBLINGS for kind in group)
    assert set(counts.values()) == {1}
    assert counts.keys() <= KINDS.keys()


def test_of_siblings_one_has_its_turn() -> None:
    for id in IDS:
        assert [len({*share(id)} & {*group}) for group in SIBLINGS] == [1] * len(SIBLINGS)


@pytest.mark.parametrize("group", SIBLINGS, ids=lambda group: group[0])
def test_turns_are_about_as_many_for_each(group: tuple[str, ...]) -> None:
    turns = Counter(kind for id in IDS for kind in share(id) if kind in group)
    assert turns.keys() == {*group}
    assert min(turns.values()) > len(IDS) / len(group) / 2


def test_groups_take_turns_apart() -> None:
    """One group does not say which of another has its turn."""
    met = {frozenset(pair) for id in IDS for pair in zip(share(id), share(id)[1:])}
    assert len({frozenset(share(id)) for id in IDS}) > len(IDS) * 0.9
    assert len(met) > len(KINDS)


def test_of_a_rare_network_about_half_of_the_siblings_have_no_turn() -> None:
    few = [share(id, rare=True) for id in IDS]
    assert all({*kinds} <= {*share(id)} for id, kinds in zip(IDS, few))
    assert 0.4 < sum(map(len, few)) / sum(len(share(id)) for id in IDS) < 0.6
    assert {kind for kinds in few for kind in kinds} == {*KINDS}


def test_what_is_beside_a_share_is_run_as_well() -> None:
    id = IDS[0]
    missing = [kind for kind in KINDS if kind not in share(id)]
    assert set(share(id, missing[:2])) - set(share(id)) == {*missing[:2]}
    assert share(id, missing) == tuple(KINDS)


def test_a_kind_without_siblings_is_always_run(monkeypatch: pytest.MonkeyPatch) -> None:
    new = HookKind("new", kinds.FORWARD, "", "module", "module.register_forward_hook(hook, prepend=True)", "2.0")
    monkeypatch.setitem(KINDS, "new", new)
    assert all(share(id)[-1] == "new" for id in IDS)


@pytest.mark.parametrize("family", FAMILIES)
def test_lines_name_kinds_that_their_share_lacks(family: str) -> None:
    for id, named in beside(CORPUS, family).items():
        assert {*named} <= KINDS.keys() - {*share(id, rare=FAMILIES[family].rare)}
