"""Modules that torch quantises, prepares for it, or fuses before it."""

from __future__ import annotations

from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.host_changes import Module, quantization


def prepared(module: Module) -> Module:
    """The module with an observer of its outputs, as what is to be quantised has it."""
    return _in_quantising("prepare", "default_qconfig", module)


def prepared_to_train(module: Module) -> Module:
    """The module that takes its place to be trained for quantising, which quantises nothing yet."""
    training = _in_quantising("prepare_qat", "default_qat_qconfig", module)
    for part in training.modules():
        if hasattr(part, "disable_fake_quant"):
            part.disable_fake_quant()
    return training


def _in_quantising(function: str, config: str, module: Module) -> Module:
    """What becomes of a module in a container that is given to a function of quantising, with that configuration."""
    quantising: Any = quantization()
    container = nn.Sequential(module).train(module.training)
    container.qconfig = getattr(quantising, config)
    return getattr(quantising, function)(container, inplace=True)[0]


def quantised_dynamically(module: Module) -> Module:
    """A Linear with a packed weight of half precision: that of ``module``, if it is a Linear; else one which computes
    what it does."""
    linear = module if isinstance(module, nn.Linear) else nn.Linear(1, 1)
    container = nn.Sequential(linear).train(module.training)
    other = quantization().quantize_dynamic(container, {nn.Linear}, dtype=torch.float16)[0]
    return other if linear is module else _computing(other, module)


def quantised(module: Module) -> Module:
    """A quantised Linear which computes what ``module`` does."""
    other = quantization().convert(nn.Sequential(prepared(nn.Linear(1, 1))).eval())[0]
    return _computing(other, module)


def fused_by_name(module: Module) -> Module:
    """A fused convolution, normalisation and activation which compute what ``module`` does."""
    parts = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU()).eval()
    return _computing(quantization().fuse_modules(parts, [["0", "1", "2"]])[0], module)


def _computing(other: Module, module: Module) -> Module:
    other.forward = module.forward
    return other.train(module.training)
