"""Is the ledger that is shipped in order, and does it excuse no more than it may?"""

from __future__ import annotations

import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.finding import Finding
from hookcheck.contract.ledger import load
from hookcheck.contract.site import CALL, COUNT, Site
from hookcheck.hooks.kinds import BACKWARD_PRE, KINDS


def test_the_shipped_ledger_is_in_order() -> None:
    entries = load()
    assert entries
    assert all(entry.link.startswith("https://") for entry in entries)
    assert {kind for entry in entries for kind in entry.kinds} >= {"backward", "full_backward"}


def test_an_exception_of_backward_hooks_is_known_to_every_clause_that_it_silences() -> None:
    known: dict[tuple[str, str], set[str]] = {}
    for entry in load():
        without_hooks_too = "AG-01" in entry.clauses
        if entry.instead == ("raised",) and not entry.families and not without_hooks_too:
            for name in entry.kinds:
                known.setdefault((entry.says, name), set()).update(entry.clauses)
    of_backward = {key: clauses for key, clauses in known.items() if KINDS[key[1]].backward}
    assert len(of_backward) > 20
    for (_, name), clauses in of_backward.items():
        of_pre_hooks = {"BN-01"} if KINDS[name].call == BACKWARD_PRE else set()
        of_observers = {"OB-01"} if KINDS[name].observes else set()
        assert clauses >= {"BW-02", "BW-03", "NG-01"} | of_pre_hooks | of_observers


@pytest.mark.parametrize(
    ("contexts", "explains"),
    [({"checkpoint", "saved_tensors_hooks"}, True), ({"saved_tensors_hooks"}, False), ({"checkpoint"}, False)],
)
def test_words_can_be_asked_for_together(contexts: set[str], explains: bool) -> None:
    """A checkpoint within hooks on saved tensors loses hooks of inputs; neither does alone."""
    entry = next(e for e in load() if e.id == "saved-tensors-hooks-and-checkpoints-lose-hooks-of-inputs")
    missing = Finding(Site(CALL), COUNT, 1, 0)
    assert entry.matches("TN-01", "context", "tensor", missing, {"inside": frozenset(contexts)}) is explains


ADVERTISED = {"BW-02", "BW-03", "BW-04", "BW-05", "BW-07", "BW-08", "GI-01", "GI-02", "GO-01", "GO-02", "GO-03"}
"""What a legacy hook advertises, and a hook on the last Node does not keep."""

FORETOLD = (
    {"legacy": "as the Node"},
    {"inside": "vmap"},
    {"layout": "reordered"},
    {"mirrored": "both"},
    {"ties": "yes"},
)
"""What an entry that excuses a legacy hook of that must ask for: that the hook was called just as the oracle says of
the Node, or that torch's numbers are wrong without hooks, or are none that a Node knows."""


def test_a_legacy_hook_is_excused_where_its_arguments_are_foretold_alone() -> None:
    for entry in load():
        about = {"backward", "global_backward"} & set(entry.kinds) and ADVERTISED & set(entry.clauses)
        if about and set(entry.instead) != {"raised"}:
            asked = dict(entry.when)
            assert any(word in asked.get(key, ()) for need in FORETOLD for key, word in need.items()), entry.id
