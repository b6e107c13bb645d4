"""Runs each network of families on the CPU and, of fake tensors, on a fake CUDA device, and says what differs.

Fake tensors have shape, dtype and device, and no numbers. For each network a line of JSON: family, id, and ``alike`` or
what is otherwise. The process has the fake device loaded (see ``device.cpp``).
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from hookcheck.hooks.kinds import KINDS
from hookcheck.probe.copying import copied
from hookcheck.probe.observation import Event
from hookcheck.probe.registering import registered
from hookcheck.probe.run import unavailable
from hookcheck.probe.state import preserved
from hookcheck.suite import conformance_folder
from hookcheck.topology.build import Built, build
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read
from hookcheck.topology.model import tensor_classes
from hookcheck.topology.values import values

DEVICE = torch.device("cuda:0")
KIND = KINDS["full_backward"]
Trace = list[tuple[Any, ...]]


def faked(built: Built, mode: FakeTensorMode) -> Built:
    """The same network of fake tensors on the device; what is shared stays shared."""
    fakes: dict[int, torch.Tensor] = {}

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in fakes:
            with torch.no_grad(), mode:
                there = mode.from_tensor(tensor.detach()).to(DEVICE)
            is_parameter = isinstance(tensor, nn.Parameter)
            fakes[id(tensor)] = nn.Parameter(there) if is_parameter else there
            fakes[id(tensor)].requires_grad_(tensor.requires_grad)
        return fakes[id(tensor)]

    def faked_each(named: Mapping[str, Any]) -> dict[str, Any]:
        return {name: fake(tensor) for name, tensor in named.items() if tensor is not None}

    for module in built.module.modules():
        for name, parameter in faked_each(module._parameters).items():
            setattr(module, name, parameter)  # a recurrent layer lists its parameters anew
        module._buffers.update(faked_each(module._buffers))
    inputs = faked_each(built.inputs)
    parameters = dict(built.module.named_parameters())
    built._names.update(inputs)  # in place: the classes find there what main leaves
    return replace(built, inputs=inputs, parameters=parameters)


def seen(built: Built, within: AbstractContextManager[Any]) -> tuple[Trace, str, set[str]]:
    """What hooks see but for numbers, what ends the run early, and the devices of gradients."""
    chained: list[tuple[int, Event]] = []
    devices: set[str] = set()
    raised = ""

    def noted(tensor: torch.Tensor) -> Any:
        devices.add(tensor.device.type)
        return f"{tuple(tensor.shape)} {tensor.dtype}"

    with within, torch.autograd.set_multithreading_enabled(False):
        try:
            with registered(KIND, built, chained, keep=partial(copied, tensor=noted)):
                built.run()
        except Exception as error:
            raised = f"{type(error).__name__}: {error}".partition("\n")[0]
    trace = [(e.path, e.number, e.given, e.arguments, e.requires_grad) for _, e in chained]
    return trace, raised, devices


def difference(topology: Any) -> str:
    """``alike``, or what is otherwise on the fake device."""
    numbers = values(topology)
    with preserved():
        here, ended, _ = seen(build(topology, numbers), nullcontext())
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with preserved():
        there, raised, devices = seen(faked(build(topology, numbers), mode), mode)
    if raised.partition(":")[0] != ended.partition(":")[0]:
        return f"raised {raised or 'nothing'}, on the CPU {ended or 'nothing'}"
    if here != there:
        return f"hooks see {there}, on the CPU {here}"
    return "alike" if devices <= {"cuda"} else f"gradients on {sorted(devices)}"


def main() -> None:
    """Says it of one network in so many of the families that are named; few classes and layouts have fake tensors."""
    share, *families = sys.argv[1:]
    logging.disable(logging.CRITICAL)  # torch logs what shape functions raise
    warnings.simplefilter("ignore")
    for family in families:
        for topology in read(conformance_folder() / "corpus", family)[:: int(share)]:
            if not unavailable(topology, KIND.name) and not tensor_classes(topology):
                print(json.dumps([family, identify(topology), difference(topology)]), flush=True)


if __name__ == "__main__":
    main()
