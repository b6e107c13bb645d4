"""Is what a network shows under torch.compile the same, whatever was compiled before it?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hookcheck.probe import compiling
from hookcheck.releases.numbers import release


@pytest.mark.skipif(release(torch.__version__) < (2, 1), reason="no network is compiled on this torch")
@pytest.mark.parametrize("clears", [True, False], ids=["since 2.4", "up to 2.3"])
def test_where_a_reset_keeps_classes_all_of_them_are_as_after_a_hook(
    clears: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked: set[type[nn.Module]] = set()
    tracker: Any = type("Tracker", (), {"mark_class_dynamic": marked.add, **({"clear": None} if clears else {})})
    monkeypatch.setattr("torch._dynamo.mutation_guard.GenerationTracker", tracker)
    compiling._forget()
    assert (nn.Linear in marked) is not clears
