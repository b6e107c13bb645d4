"""Contexts in which hooks on a model see something else, and one test for each clause."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import hookcheck
from hookcheck.errors import HookcheckError
from hookcheck.models.result import ModelCheck
from hookcheck.models.same_under import NEEDS, offered

fused = nn.functional.linear
pytestmark = pytest.mark.filterwarnings("ignore")
MODERN = all(hasattr(torch, part) for name in ("checkpoint_reentrant", "compile_eager") for part in NEEDS[name])


def network() -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 2)), torch.randn(2, 3)


def said(result: ModelCheck, context: str) -> set[tuple[str, str]]:
    return {(kind, r.text) for r in result.remarks if r.topic == f"in the context {context}" for kind in r.kinds}


@pytest.mark.skipif(not MODERN, reason="this torch lacks some of these contexts")
def test_contexts_are_compared_with_eager() -> None:
    names = ["eager", "no_grad", "eval", "checkpoint", "checkpoint_reentrant", "functional_call", "compile_eager"]
    result = hookcheck.check_module(*network(), kinds=["full_backward", "forward"], contexts=names)
    assert said(result, "no_grad") == {("full_backward", "called never and not once")}
    assert said(result, "eval") == set()
    assert said(result, "functional_call") == set()
    assert said(result, "compile_eager") == set()
    assert ("forward", "called 2 times and not once") in said(result, "checkpoint")
    assert ("full_backward", "called never and not once") in said(result, "checkpoint_reentrant")
    assert not result.deviations


@pytest.mark.skipif(not offered("compiled_autograd"), reason="this torch lacks some of these contexts")
def test_compiled_autograd_and_other_dtypes_are_compared() -> None:
    kinds = ["full_backward", "forward", "tensor"]
    result = hookcheck.check_module(*network(), kinds=kinds, contexts=["compiled_autograd", "float64", "bfloat16"])
    assert not any(r.topic.startswith("in the context") for r in result.remarks)


class ByDtype(nn.Module):
    """Goes another way in another dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x) if x.dtype == torch.float32 else fused(x, self.layer.weight, self.layer.bias)


@pytest.mark.skipif(not offered("float64"), reason="this torch lacks torch.func")
def test_what_another_dtype_changes_shows() -> None:
    result = hookcheck.check_module(ByDtype(), torch.randn(2, 3), kinds=["forward"], contexts=["float64"])
    (remark,) = [r for r in result.remarks if r.topic == "in the context float64"]
    assert (remark.text, remark.modules) == ("called never and not once", ("layer",))


@pytest.mark.skipif(not offered("compiled_autograd"), reason="this torch lacks compiled autograd")
def test_what_compiled_autograd_changes_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = import_module("torch._dynamo.compiled_autograd")
    instance = compiled.AutogradCompilerInstance
    if not hasattr(instance, "tensor_pre_hook"):
        pytest.skip("the fault is planted into a function that this torch lacks")
    # Drops the hooks of tensors from what is captured.
    monkeypatch.setattr(instance, "tensor_pre_hook", lambda self, inputs, hook, i: inputs)
    result = hookcheck.check_module(*network(), kinds=["tensor"], contexts=["compiled_autograd"])
    (remark,) = [r for r in result.remarks if r.topic == "in the context compiled_autograd"]
    assert remark.text == "called never and not once"


class Fused(nn.Module):
    """Goes another way where nothing is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x) if torch.is_grad_enabled() else fused(x, self.layer.weight, self.layer.bias)


def test_a_fused_path_shows() -> None:
    result = hookcheck.check_module(Fused(), torch.randn(2, 3), kinds=["forward"], contexts=["no_grad"])
    (remark,) = [r for r in result.remarks if r.topic == "in the context no_grad"]
    assert (remark.text, remark.modules) == ("called never and not once", ("layer",))


def test_an_unknown_context_is_refused() -> None:
    with pytest.raises(HookcheckError, match="unknown context 'fast'; choose from eager"):
        hookcheck.check_module(*network(), contexts=["fast"])


SUITE = """
import hookcheck, torch
from torch import nn

def plain():
    return nn.Linear(2, 2), torch.randn(1, 2)

class Faulty(nn.Linear):
    def forward(self, x):
        return super().forward(x) * (2 if self._forward_hooks else 1)

def faulty():
    return Faulty(2, 2), torch.randn(1, 2)

@hookcheck.parametrize_with_clauses([plain, faulty], kinds=["forward", "backward"])
def test_hooks(check):
    check()

@hookcheck.parametrize_with_clauses([faulty], kinds=["forward"], expected_failures={
    "OB-02": "it doubles under a hook", "FN-01": "it does not"})
def test_expected(check):
    check()
"""


@pytest.mark.slow
def test_one_test_for_each_clause_and_model(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "-n", "0", "test_own.py"]
    ran = subprocess.run(command, cwd=tmp_path, env={**os.environ}, capture_output=True, text=True, check=False)
    lines = {line.split(" - ")[0] for line in ran.stdout.splitlines()}
    assert "PASSED test_own.py::test_hooks[plain-FN-01]" in lines
    assert "PASSED test_own.py::test_hooks[plain-OB-02]" in lines
    assert "FAILED test_own.py::test_hooks[faulty-OB-02]" in lines
    assert any(line.startswith("XFAIL test_own.py::test_hooks[plain-BW-07]") for line in lines)
    assert any(line.startswith("XFAIL test_own.py::test_expected[faulty-OB-02]") for line in lines)
    assert "FAILED test_own.py::test_expected[faulty-FN-01]" in lines  # it was to fail, and does not


def test_expected_failures_need_a_reason() -> None:
    with pytest.raises(HookcheckError, match="needs a reason"):
        hookcheck.parametrize_with_clauses([network], expected_failures={"OB-02": " "})
    with pytest.raises(HookcheckError, match="no hook kind here is judged by XX-01"):
        hookcheck.parametrize_with_clauses([network], expected_failures={"XX-01": "because"})
    with pytest.raises(HookcheckError, match="give functions"):
        hookcheck.parametrize_with_clauses([])


@pytest.mark.skipif(not offered("compile_eager"), reason="this torch has no torch.compile")
def test_that_recorders_are_compiled_again_and_again_is_not_logged() -> None:
    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("torch._dynamo")
    logger.addHandler(handler)
    try:
        model = nn.Sequential(*(nn.Tanh() for _ in range(10)))  # more than the 8 times that a function is compiled
        hookcheck.check_module(model, torch.ones(1), kinds=["forward"], contexts=["compile_eager"])
        assert not logged
        assert not logging.root.manager.disable
    finally:
        logger.removeHandler(handler)
