"""What a run does for a CUDA device, as far as that can be seen without one."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

import hookcheck.run.examiner as examiner
from hookcheck import record
from hookcheck.contract.verdict import CRASHED, NOT_RUN, RAN, CaseResult
from hookcheck.errors import device_is_full, is_the_machines
from hookcheck.oracle.tolerance import STEPS, UNIT
from hookcheck.probe.cuda import accelerator, in_threads_too, settle
from hookcheck.probe.observation import Observation
from hookcheck.probe.run import observe
from hookcheck.run.examiner import Examiner, Lost, Task, outcomes
from hookcheck.suite import conformance_folder
from hookcheck.topology.corpus import read
from hookcheck.topology.layers.activation import Tanh
from hookcheck.topology.model import Call, Input, Topology, Within
from hookcheck.topology.source import main_source
from hookcheck.topology.tree import Ref

FULL = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.10 GiB total capacity)"
FAILED = "CUDA error: device-side assert triggered"
TOPOLOGY = read(conformance_folder() / "corpus", "multi-node")[0]
TASK = Task("multi-node", TOPOLOGY, ("full_backward", "forward"), "cpu", "corpus", "share")


def test_float32_is_multiplied_as_float32() -> None:
    """In a process of its own, since the settings stay."""
    code = """
import torch
from hookcheck.probe.cuda import compute_exactly
torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
compute_exactly()
cudnn = torch.backends.cudnn
print(cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32, cudnn.benchmark, cudnn.deterministic)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "False", "False", "True"]


def test_a_device_is_held_to_what_the_processor_is_held_to() -> None:
    for dtype in STEPS:
        assert UNIT[dtype, "cuda"] == UNIT[dtype, "cpu"]


@pytest.mark.parametrize(
    ("error", "full", "machines"),
    [
        (RuntimeError(FULL), True, True),
        (RuntimeError(FAILED), False, True),
        (MemoryError(), False, True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), False, True),
        (RuntimeError("CUDA graphs cannot be captured here"), False, False),
        (ValueError("a hook's own"), False, False),
    ],
)
def test_whose_an_exception_is(error: Exception, full: bool, machines: bool) -> None:
    assert (device_is_full(error), is_the_machines(error)) == (full, machines)


def test_a_full_device_leaves_cases_that_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> Observation:
        raise RuntimeError(FULL)

    monkeypatch.setattr("hookcheck.networks.examine.observe", full)
    results = Examiner((), {"cpu": ()}).perform(TASK)  # type: ignore[dict-item]
    assert [(r.kind, r.outcome, r.reason) for r in results] == [
        (kind, NOT_RUN, "cpu has no memory left for it") for kind in TASK.kinds
    ]


def test_a_device_that_failed_costs_one_case_and_a_new_process() -> None:
    """What lets the exception out is lost; the runner that takes its place runs the rest."""

    class Failing:
        failed = False

        def perform(self, task: Task) -> list[CaseResult]:
            if not self.failed:
                self.failed = True
                raise Lost(CRASHED, f"the case let out RuntimeError: {FAILED}", 0)
            return [CaseResult(task.family, task.id, kind, task.origin, RAN) for kind in task.kinds]

        def peak_memory(self) -> float:
            return 0.0

        def close(self) -> None:
            pass

    assert [r.outcome for r in outcomes(Failing(), TASK)] == [CRASHED, RAN]


def test_a_hook_that_meets_a_failed_device_lets_its_exception_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no observation of torch, as other exceptions are."""

    def failing(*arguments: object, **options: object) -> object:
        raise RuntimeError(FAILED)

    monkeypatch.setattr("hookcheck.probe.run.registered", failing)
    with pytest.raises(RuntimeError, match="device-side assert"):
        examiner.Examiner((), {"cpu": ()}).perform(TASK)  # type: ignore[dict-item]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a device")
def test_without_a_device_there_is_nothing_to_say_of_one() -> None:
    assert accelerator() == {}


def test_a_header_says_what_a_device_computes_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H100")
    monkeypatch.setattr("torch.utils.collect_env.run", lambda command: (0, "Driver Version: 570.86.10 ", ""))
    monkeypatch.setattr("torch.utils.collect_env.get_nvidia_smi", lambda: "nvidia-smi")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    said = accelerator()
    assert said["gpu"] == "NVIDIA H100, compute capability 9.0"
    assert said["driver"] == "570.86.10"
    assert (said["tf32"], said["deterministic"], said["cublas"]) == ("off", "where there are such", ":4096:8")
    schema = json.loads(Path(record.__file__).with_name("schema.json").read_text("utf-8"))
    assert said.keys() <= schema["$defs"]["header"]["properties"]["environment"]["properties"].keys()


def test_threads_that_a_run_starts_are_on_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for a stream notes in which thread it is current."""
    seen: list[int] = []

    @contextmanager
    def current(stream: object) -> Iterator[None]:
        seen.append(threading.get_ident())
        yield

    monkeypatch.setattr(torch.cuda, "stream", current)
    with in_threads_too("a stream"), ThreadPoolExecutor(1) as pool:  # type: ignore[arg-type]
        inside = pool.submit(threading.get_ident).result()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threading.get_ident).result()
    assert seen == [inside]


@pytest.mark.parametrize("in_use", [False, True])
def test_a_backward_settles_what_a_device_in_use_still_holds(monkeypatch: pytest.MonkeyPatch, in_use: bool) -> None:
    outputs: list[torch.Tensor] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: in_use)
    monkeypatch.setattr(torch, "zeros", lambda *shape, device, **rest: torch.empty(*shape, device="meta", **rest))
    monkeypatch.setattr(torch.autograd, "grad", lambda output, leaf: outputs.append(output))
    with torch.no_grad():
        settle()
    assert [(output.device.type, output.requires_grad) for output in outputs] == [("meta", True)] * in_use


def test_what_the_device_warns_of_by_itself_is_no_warning_of_hooks() -> None:
    @contextmanager
    def warning() -> Iterator[None]:
        warnings.warn("cumsum_cuda_kernel does not have a deterministic implementation, but you set …", stacklevel=1)
        warnings.warn("Attempting to run cuBLAS, but there was no current CUDA context!", stacklevel=1)
        warnings.warn("of a hook", stacklevel=1)
        yield

    topology = Topology(Tanh(), (Input("x", (1,)),), (Call("y", "", (Ref("x"),)),))
    seen = observe(topology, {"x": np.ones(1)}, None, "cpu", warning)
    assert [text for _, text in seen.warnings] == ["of a hook"]


def test_autocast_is_that_of_the_device() -> None:
    inside = Within("autocast", (Call("y", "", (Ref("x"),)),))
    topology = Topology(Tanh(), (Input("x", (1,)),), (inside,))
    assert "with torch.autocast('cpu'):" in main_source(topology)
    assert "with torch.autocast('cuda'):" in main_source(topology, "cuda")
