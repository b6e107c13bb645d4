from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

import pytest
import torch

from hookcheck.probe import processor

SHOWN = "from hookcheck.probe.processor import arithmetic; print(*arithmetic().values(), sep='; ')"


def shown(**settings: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", SHOWN], env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    return run.stdout


def test_threads_and_the_kernel_of_openblas_are_those_that_were_asked_for() -> None:
    one, other = (shown(OPENBLAS_CORETYPE="Sandybridge", OMP_NUM_THREADS=count) for count in "12")
    assert one.strip().endswith("; 1")
    assert other.strip().endswith("; 2")
    if "openblas" in one and platform.machine() == "x86_64":
        assert "Sandybridge" in one


@pytest.mark.skipif(not hasattr(torch.backends, "cpu"), reason="this torch does not say what it takes")
def test_torch_s_capability_is_the_one_that_was_asked_for() -> None:
    assert "; DEFAULT; " in shown(ATEN_CPU_CAPABILITY="default")


def test_the_name_of_the_processor_is_read_from_the_system(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
    assert processor.arithmetic()["processor"]
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: One of two\n\nmodel name\t: Other\n", "utf-8")
    assert processor.arithmetic()["processor"] == "One of two"
