"""What does torch make of a module? Conversions, fusions, copies, wrappers, and what is done to it in place.

What is made of hooked ones is judged by `hookcheck.programs.chapters.hosts`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.host_changes import CHANGES, Module, Release, parametrized, quantization


def images() -> Module:
    """A convolution, a normalisation and an activation, ready to be fused."""
    return nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU()).eval()


def rows() -> Module:
    """A Linear in a container."""
    return nn.Sequential(nn.Linear(2, 2)).eval()


def normed_rows() -> Module:
    """A Linear and its normalisation."""
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()


def lazy_rows() -> Module:
    """A Linear that does not know its width yet."""
    return nn.Sequential(nn.LazyLinear(2)).eval()


def row() -> Any:
    """What a Linear takes."""
    return torch.ones(1, 2, requires_grad=True)


def image() -> Any:
    """What a convolution takes."""
    return torch.ones(1, 1, 2, 2, requires_grad=True)


def quantised() -> Any:
    """The same, as what is quantised takes it."""
    return torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.5, 0, torch.quint8)


def _prepared(net: Module, inplace: bool = False) -> Module:
    net.qconfig = quantization().get_default_qconfig("fbgemm")
    return quantization().prepare(net, inplace=inplace)


def _converted(net: Module) -> Module:
    prepared = _prepared(net)
    prepared(torch.ones(1, 1, 2, 2))
    return quantization().convert(prepared)


def _prepared_to_train(net: Module, inplace: bool = False) -> Module:
    net.train().qconfig = quantization().get_default_qat_qconfig("fbgemm")
    return quantization().prepare_qat(net, inplace=inplace)


def _fused_by_name(net: Module) -> Module:
    return quantization().fuse_modules(net, [["0", "1", "2"]])


def _fused(name: str) -> Callable[[Module], Module]:
    """What that function makes of the two parts of a net."""
    return lambda net: getattr(import_module("torch.nn.utils.fusion"), name)(net[0], net[1])


def _traced(net: Module) -> Module:
    return import_module("torch.fx").symbolic_trace(net)


def _averaged(net: Module) -> Module:
    return import_module("torch.optim.swa_utils").AveragedModel(net)


def _called(net: Module) -> Module:
    net(torch.ones(1, 2))
    return net


def _changed(change: Callable[[Module], Any]) -> Callable[[Module], Module]:
    """Does something to the first part, which stays where it is."""

    def make(net: Module) -> Module:
        change(net[0])
        return net

    return make


@dataclass(frozen=True)
class Host:
    """What is made of a net, since which release it can be, which of the net's modules go into it (all if none), what
    it is given in a call, and whether its parameters are copies of those of the net."""

    make: Callable[[Module], Module]
    base: Callable[[], Module] = rows
    since: Release = (1, 8)
    sites: tuple[str, ...] = ()
    given: Callable[[], Any] = row
    copies: bool = False


HOSTS = {
    "convert_sync_batchnorm": Host(lambda net: nn.SyncBatchNorm.convert_sync_batchnorm(net), images, given=image),
    "fuse_conv_bn_eval": Host(_fused("fuse_conv_bn_eval"), images, sites=("0", "1"), given=image, copies=True),
    "fuse_linear_bn_eval": Host(_fused("fuse_linear_bn_eval"), normed_rows, (1, 13), ("0", "1"), copies=True),
    "symbolic_trace": Host(_traced),
    "fuse_modules": Host(_fused_by_name, images, given=image, copies=True),
    "quantize_dynamic": Host(lambda net: quantization().quantize_dynamic(net, {nn.Linear}), copies=True),
    "prepare": Host(_prepared, images, given=image, copies=True),
    "convert": Host(_converted, images, given=quantised, copies=True),
    "prepare_qat": Host(_prepared_to_train, images, given=image, copies=True),
    "to_mkldnn": Host(lambda net: import_module("torch.utils.mkldnn").to_mkldnn(net)),
    "compile": Host(lambda net: torch.compile(net, backend="eager"), since=(2, 1)),
    "AveragedModel": Host(_averaged, copies=True),
    "DataParallel": Host(lambda net: nn.DataParallel(net)),
    "replica": Host(lambda net: net._replicate_for_data_parallel()),
    "deepcopy": Host(copy.deepcopy, copies=True),
    "lazy, called": Host(_called, lazy_rows, (1, 13)),
    **{name: Host(_changed(change.there), since=change.since) for name, change in CHANGES.items()},
    "deepcopy of symbolic_trace": Host(copy.deepcopy, lambda: _traced(rows()), copies=True),
    "deepcopy of parametrized": Host(copy.deepcopy, lambda: _changed(parametrized)(rows()), (1, 13), copies=True),
    "deepcopy of AveragedModel": Host(copy.deepcopy, lambda: _averaged(rows()), copies=True),
    "deepcopy of DataParallel": Host(copy.deepcopy, lambda: nn.DataParallel(rows()), copies=True),
    "deepcopy of fuse_modules": Host(copy.deepcopy, lambda: _fused_by_name(images()), given=image, copies=True),
    "deepcopy of convert": Host(copy.deepcopy, lambda: _converted(images()), (1, 9), given=quantised, copies=True),
    "deepcopy of compile": Host(copy.deepcopy, lambda: torch.compile(rows(), backend="eager"), (2, 6), copies=True),
    "copy": Host(copy.copy),
    "copy of symbolic_trace": Host(copy.copy, lambda: _traced(rows())),
    "copy of AveragedModel": Host(copy.copy, lambda: _averaged(rows())),
    "copy of DataParallel": Host(copy.copy, lambda: nn.DataParallel(rows())),
    "copy of fuse_modules": Host(copy.copy, lambda: _fused_by_name(images()), given=image),
    "copy of convert": Host(copy.copy, lambda: _converted(images()), (1, 9), given=quantised),
}
"""What makes modules of modules, by name; of what is made by those that have a class, a ``__deepcopy__`` or modules of
their own a deepcopy is made as well, and a shallow copy, which shares what they hold, but of what is parametrized: that
refuses to be copied so."""

IN_PLACE = {
    "prepare, in place": Host(partial(_prepared, inplace=True), images, given=image),
    "prepare_qat, in place": Host(partial(_prepared_to_train, inplace=True), images, given=image),
}
"""Hosts that make no copy where they are told so, by name."""

CALLED_SINCE: dict[str, Release] = {
    "convert_sync_batchnorm": (2, 0),
    "compile": (99, 0),
    "deepcopy of compile": (99, 0),
}
"""Hosts that are not called on every release: SyncBatchNorm was about CUDA alone before 2.0, and compiling takes
seconds; the chapter torch-compile speaks of it."""

NO_BACKWARD = {
    "to_mkldnn": "torch has no backward for what is in that layout, with or without hooks",
    "copy of convert": "the same of what is quantised",
}
"""Hosts that are called and no more, with the reason."""

UNINITIALISED = {"lazy, called": "a parameter that has no shape yet refuses hooks, aloud"}
"""Hosts of which the parameters take no hooks before, with the reason."""
