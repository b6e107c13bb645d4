"""A module that is imported twice by calls gets a name."""

from __future__ import annotations

import pytest

from hookcheck.repro.importing import named

IMPORTED = 'import_module("torch.distributed.tensor")'


@pytest.mark.parametrize(
    ("text", "of"),
    [
        (f"f()\ny = {IMPORTED}.a({IMPORTED}.b)", f"f()\ntensor = {IMPORTED}\ny = tensor.a(tensor.b)"),
        (f"y = {IMPORTED}.a()", f"y = {IMPORTED}.a()"),
        (f"tensor = 1\ny = {IMPORTED}.a({IMPORTED}.b)", f"tensor = 1\ny = {IMPORTED}.a({IMPORTED}.b)"),
        (f"def f():\n    {IMPORTED}.a({IMPORTED}.b)", f"def f():\n    {IMPORTED}.a({IMPORTED}.b)"),
    ],
    ids=["twice", "once", "the name is taken", "in a definition"],
)
def test_a_module_that_is_imported_twice_gets_a_name(text: str, of: str) -> None:
    assert named(text) == of
