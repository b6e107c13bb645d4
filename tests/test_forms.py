"""Does the corpus have each form of network with classes, contexts and compilers, and are faults of them seen?"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from faults.engine import replaced
from faults.samples import known

from hookcheck.contract.clause import CLAUSES
from hookcheck.networks.examine import examine
from hookcheck.probe.run import unavailable
from hookcheck.topology.corpus import read
from hookcheck.topology.model import Topology, inside, tensor_words

Seen = Callable[[tuple[Any, ...], dict[str, Any]], bool]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "conformance"))
    return importlib.import_module("forms")


@pytest.mark.parametrize("family", ["tensor-class", "compiled", pytest.param("context", marks=pytest.mark.slow)])
def test_the_corpus_has_each_form(script: Any, family: str) -> None:
    lines = read(script.FOLDER, family)
    assert script.missing(family, lines) == []
    assert script.missing(family, [])


def deviating(topology: Topology, family: str) -> set[str]:
    """The clauses by which it deviates with forward hooks, in a way that the ledger does not explain."""
    results = examine(topology, family, ("forward",), CLAUSES.values(), known())
    return {d.clause for result in results for d in result.deviations if d.ledger is None}


@pytest.mark.parametrize(
    ("family", "word", "form", "unhooked"),
    [
        ("tensor-class", "sparse COO", "two arguments", lambda args, _: len(args) > 1 and args[0].is_sparse),
        ("context", "thread", "keyword-only", lambda args, kwargs: bool(kwargs) and not args),
        ("compiled", "after_compile", "two arguments", lambda args, _: len(args) > 1),
    ],
)
def test_a_module_without_its_hooks_is_seen(script: Any, family: str, word: str, form: str, unhooked: Seen) -> None:
    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self.forward(*args, **kwargs) if unhooked(args, kwargs) else original(self, *args, **kwargs)

        return call

    shown = script.candidates(family)
    topology = next(
        t
        for t in read(script.FOLDER, family)
        if any(of == form for _, of in shown.get(t, ())) and word in (*inside(t), *tensor_words(t))
    )
    if unavailable(topology, None):
        pytest.skip("this torch cannot run it")
    assert deviating(topology, family) == set()
    with replaced(torch.nn.Module, "__call__", make):
        assert "FN-01" in deviating(topology, family)
