"""Every network of the corpus on a CUDA device that is none: can it be built, and do hooks see there what they should?

What this cannot show is what takes numbers or kernels: see ``LACKING``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from hookcheck.releases.numbers import release
from hookcheck.topology.families import FAMILIES

LEFT_OUT = {
    "compiled": "the compiler has fake tensors of its own",
    "tensor-class": "few classes and layouts have fake tensors; networks of other families that hold one are left out",
}

LACKING = {
    "_local_scalar_dense": "forward asks for a number, and fake tensors have none",
    "Torch not compiled with CUDA enabled": "torch has no shape function for a step, and would run its kernel",
    "'NoneType' object has no attribute 'device'": "the shape function of the fused LSTM cell asks for a bias; "
    "the kernel does not",
    "data is not allocated yet": "DistributedDataParallel compares the parameters' numbers",
    "tuple index out of range": "a dropout with a mask sets the device's generator, and there is none",
    "arguments from the 'CUDA' backend": "the mode of fake tensors is that of one thread",
    "on the CPU RuntimeError: grad_input must be contiguous": "a shape function does not check what the kernel checks",
    "does not support automatic differentiation for outputs with complex dtype": "the fused gates "
    "of LSTM and GRU have no complex derivative; before that, their kernel takes no complex numbers",
}
"""What is otherwise there than on the CPU, and why. All but the last is a matter of fake tensors; that a real device
has the last as well is said by torch's source alone."""

SOURCE = Path(__file__).with_name("fake_cuda") / "device.cpp"


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake device, compiled."""
    compiler = shutil.which("g++")
    if not compiler or sys.platform != "linux":
        pytest.skip("the fake device takes Linux and g++")
    if torch.version.cuda or release(torch.__version__) < (2, 13):
        pytest.skip("the fake device is written for torch 2.13 and later, built without CUDA")
    torch_folder, library = Path(torch.__file__).parent, tmp_path_factory.mktemp("device") / "device.so"
    libraries = torch_folder / "lib"
    command = [compiler, "-std=c++20", "-shared", "-fPIC", f"-I{torch_folder / 'include'}", str(SOURCE)]
    command += ["-o", str(library), f"-L{libraries}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{libraries}"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return library


SOUND_AND_FAULTY = """
from faults.engine import calling
from tests.probe.fake_cuda.__main__ import main

main()

def without_gradients(hook, module, grad_input, grad_output):
    return hook(module, tuple(None if g is None or g.is_cuda else g for g in grad_input), grad_output)

with calling(without_gradients):
    main()
"""
"""The torch that is here, then one whose hooks are given no gradients of inputs that lie on a CUDA device."""


def differences(device: Path, *families: str, share: int = 1, code: str = "") -> list[tuple[str, str, str]]:
    """Family, id, and what is otherwise on the fake device, of one network in ``share``; ``code`` runs in the place of
    the module."""
    environment = {**os.environ, "LD_PRELOAD": str(device), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *(("-c", code) if code else ("-m", "tests.probe.fake_cuda")), str(share), *families]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return [tuple(json.loads(line)) for line in run.stdout.splitlines()]


def reason(said: str) -> str:
    """Which of `LACKING` it is, ``alike``, or all that is said."""
    return next((raised for raised in LACKING if raised in said), said)


@pytest.mark.slow
def test_hooks_see_on_a_device_what_they_see_on_the_cpu_unless_it_has_a_fault_of_its_own(device: Path) -> None:
    said = [said for _, _, said in differences(device, "multi-node", code=SOUND_AND_FAULTY)]
    sound, faulty = said[: len(said) // 2], said[len(said) // 2 :]
    assert set(sound) == {"alike"}
    assert all(each.startswith("hooks see ") for each in faulty)


@pytest.mark.slow
def test_every_network_runs_on_a_device(device: Path, request: pytest.FixtureRequest) -> None:
    whole = request.config.getoption("whole")
    families = [family for family in FAMILIES if family not in LEFT_OUT]
    outcomes = differences(device, *families, share=1 if whole else 5)
    reasons = Counter(reason(said) for _, _, said in outcomes)
    print(*reasons.most_common(), sep="\n")
    assert reasons.keys() <= {"alike", *LACKING}
    assert not whole or reasons.keys() >= LACKING.keys()
    assert reasons["alike"] > 0.9 * len(outcomes)
    complex_gates = [family for family, _, said in outcomes if "complex dtype" in said]
    assert set(complex_gates) <= {"mixed-dtype"}
