"""Faults by which a module is changed that is only to be read."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.optim import swa_utils

from ..engine import Fault, replaced


def _tracing_takes_hooks() -> AbstractContextManager[None]:
    """A module that was traced has no forward hooks any more."""

    def make(original: Any) -> Any:
        def trace(function: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(function, *args, **kwargs)
            if isinstance(function, nn.Module):
                function._forward_hooks.clear()
            return result

        return trace

    return replaced(torch.jit, "trace", make)


def _averages_replaced() -> AbstractContextManager[None]:
    """The first update of an average gives it other parameters."""

    def make(original: Any) -> Any:
        def update(self: Any, model: Any) -> None:
            first = self.n_averaged == 0
            original(self, model)
            for module in self.module.modules() if first else ():
                for name, parameter in module._parameters.items():
                    module._parameters[name] = nn.Parameter(parameter.detach().clone())

        return update

    return replaced(swa_utils.AveragedModel, "update_parameters", make)


FAULTS = (
    Fault("jit.trace takes the hooks of the module", _tracing_takes_hooks, ("HO-14",), kinds=()),
    Fault("an average gets other parameters as it is updated", _averages_replaced, ("HO-14",), kinds=()),
)
