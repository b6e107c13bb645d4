"""Does the check pass a right pair and find each fault of a wrong one?"""

from __future__ import annotations

import ast
import json
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from hookcheck.errors import HookcheckError
from hookcheck.models.saved import check_saved_tensors_hooks

FAMILIES = ("single-node", "multi-node", "double-backward", "inplace")
pair = getattr(getattr(torch.autograd, "graph", None), "saved_tensors_hooks", None)
pytestmark = pytest.mark.skipif(pair is None, reason="saved_tensors_hooks came with torch 1.10")


def check(make_context: Any) -> Any:
    return check_saved_tensors_hooks(make_context, share=0.05, families=FAMILIES)


@pytest.mark.parametrize(
    "make_context",
    [
        lambda: pair(lambda tensor: tensor.clone(), lambda tensor: tensor),
        lambda: torch.autograd.graph.save_on_cpu(),
    ],
)
def test_a_right_pair_changes_nothing(make_context: Any) -> None:
    seen = []
    result = check_saved_tensors_hooks(
        make_context, share=0.05, families=FAMILIES, progress=lambda done, of: seen.append((done, of))
    )
    assert result.faults == ()
    assert result.ran > len(FAMILIES)
    assert seen[-1] == (result.ran, result.ran)
    result.raise_if_faulty()


def fails(tensor: Any) -> Any:
    raise ArithmeticError("cannot pack")


STORE: list[Any] = []


def keeps(tensor: Any) -> Any:
    STORE.append(tensor)
    return tensor


def writes(tensor: Any) -> Any:
    with torch.no_grad():
        return tensor.add_(0)


@pytest.mark.parametrize(
    ("pack", "unpack", "what"),
    [
        (lambda tensor: tensor.detach().clone(), lambda tensor: 2 * tensor, "gradient"),
        (lambda tensor: tensor.detach().clone(), lambda tensor: tensor.flatten()[:1], "raised"),
        (fails, lambda tensor: tensor, "raised"),
        (lambda tensor: torch.rand(1) + tensor.detach() - tensor.detach(), lambda tensor: tensor, "random state"),
    ],
)
def test_a_wrong_pair_is_found(pack: Any, unpack: Any, what: str) -> None:
    result = check(lambda: pair(pack, unpack))
    assert what in {fault.what for fault in result.faults}
    ast.parse(result.smallest)
    assert "with make_context():" in result.smallest
    assert json.loads(result.to_json())["ran"] == result.ran
    with pytest.raises(AssertionError, match="ran otherwise with the pair"):
        result.raise_if_faulty()


def test_what_the_pair_keeps_is_found() -> None:
    result = check_saved_tensors_hooks(lambda: pair(keeps, lambda tensor: tensor), share=0.05, families=FAMILIES[:1])
    STORE.clear()  # one family will do: whatever is kept is looked for again, at length
    assert "memory" in {fault.what for fault in result.faults}


def test_a_write_to_what_is_saved_is_found() -> None:
    result = check(lambda: pair(writes, lambda tensor: tensor))
    assert {"version", "raised"} & {fault.what for fault in result.faults}


@contextmanager
def swallowing() -> Any:
    try:
        with pair(lambda tensor: tensor.detach(), lambda tensor: tensor):
            yield
    except Exception:
        pass


def test_a_context_that_swallows_exceptions_is_found() -> None:
    faults = check(swallowing).faults
    assert ("raised", "the context") in {(fault.what, fault.where) for fault in faults}


@pytest.mark.parametrize(
    ("make_context", "options", "said"),
    [
        (3, {}, "make_context is a function"),
        (lambda: 3, {}, "gives no context"),
        (lambda: pair(None, None), {"share": 0}, "share is a part"),
        (lambda: pair(None, None), {"families": ("none-such",)}, "unknown family"),
    ],
)
def test_bad_input(make_context: Any, options: Any, said: str) -> None:
    with pytest.raises(HookcheckError, match=said):
        check_saved_tensors_hooks(make_context, **options)
