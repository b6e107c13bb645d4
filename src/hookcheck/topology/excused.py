"""Which public modules of ``torch.nn`` does no topology hold as a layer, and why?"""

from __future__ import annotations

_LAZY = "at its first call it turns into the class that its name ends in, which is covered"
_CONTAINER = "a container, which topologies have as a module of its own kind"
_BASE = "a base class, which computes nothing"

EXCUSED = {
    "AdaptiveLogSoftmaxWithLoss": "which of its children it calls, and on what, depends on the values of the targets",
    "Container": "deprecated; a Module under another name",
    "DataParallel": "it runs replicas of another module: a context, not a layer",
    "LazyBatchNorm1d": _LAZY,
    "LazyBatchNorm2d": _LAZY,
    "LazyBatchNorm3d": _LAZY,
    "LazyConv1d": _LAZY,
    "LazyConv2d": _LAZY,
    "LazyConv3d": _LAZY,
    "LazyConvTranspose1d": _LAZY,
    "LazyConvTranspose2d": _LAZY,
    "LazyConvTranspose3d": _LAZY,
    "LazyInstanceNorm1d": _LAZY,
    "LazyInstanceNorm2d": _LAZY,
    "LazyInstanceNorm3d": _LAZY,
    "LazyLinear": _LAZY,
    "Module": _BASE,
    "ModuleDict": _CONTAINER,
    "ModuleList": _CONTAINER,
    "ParameterDict": _CONTAINER,
    "ParameterList": _CONTAINER,
    "RNNBase": _BASE,
    "RNNCellBase": _BASE,
    "Sequential": _CONTAINER,
    "SyncBatchNorm": "it normalises over several processes, and runs on GPUs alone",
}
"""Each with the reason why it is left out."""
