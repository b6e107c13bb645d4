"""Do the lists of hook kinds that chapters of programs have by hand hold all kinds there are?"""

from __future__ import annotations

import pytest

from hookcheck.hooks.kinds import KINDS
from hookcheck.programs.chapters import handles, lifetime

OWNERS = {
    "module": (lifetime.MODULE,),
    "global": (lifetime.GLOBAL,),
    "leaf": (lifetime.LEAF,),
    "leaves": (lifetime.SEVERAL,),
    "output": (lifetime.OUTPUT,),
    "node": (lifetime.NODE,),
}
"""What lifetime.py calls the scopes of kinds."""

WITHOUT_HANDLE = {
    "output_retain_grad": "retain_grad gives no handle, and calls no function",
    "saved_tensors": "it is a context: LT-09",
}
NOT_IN_HANDLES = {
    **WITHOUT_HANDLE,
    "multi_grad": "its handle removes several hooks: MG-07",
    "global_backward": "it excludes global full hooks, which are there: LB-07",
    "output_node_pre": "ND-08",
}
"""Kinds that a list has not, with the reason or the clause that speaks of them."""


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.observes])
def test_what_is_kept_alive_is_asked_of_each_kind(name: str) -> None:
    kind = KINDS[name]
    here = {(owner, kind.register) for owner in OWNERS.get(kind.scope, ())} & {*lifetime.KINDS.values()}
    assert bool(here) is not (name in WITHOUT_HANDLE)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.observes])
def test_handles_are_tried_of_each_kind(name: str) -> None:
    """``register_hook`` of tensors and of Nodes has one name; handles of Nodes are tried by other chapters."""
    named = (*handles.OF_MODULES, *handles.OF_TENSORS, *handles.OF_ALL_MODULES)
    assert (KINDS[name].register in named) is not (name in NOT_IN_HANDLES)


def test_reasons_are_of_kinds() -> None:
    assert {*NOT_IN_HANDLES} <= {*KINDS}
