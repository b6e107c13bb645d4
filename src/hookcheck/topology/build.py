"""How does a topology become torch objects? Its source is executed, and the frozen numbers are put in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any

import torch

from hookcheck.topology.model import Input, Topology
from hookcheck.topology.primitive import Array
from hookcheck.topology.source import as_leaf, conversions_source, definitions_source, main_source, modules_source
from hookcheck.topology.values import WHOLE


@dataclass(frozen=True)
class Built:
    """A topology as torch objects, ready to run.

    ``module`` is the root, in its mode, dtype and device, and ``parameters`` are its parameters by dotted name;
    ``inputs`` are fresh leaf tensors by name; `run` executes the main statements once.
    """

    module: torch.nn.Module
    parameters: Mapping[str, torch.nn.Parameter]
    inputs: Mapping[str, torch.Tensor]
    _names: dict[str, Any]
    _main: CodeType

    @cached_property
    def modules(self) -> Mapping[str, torch.nn.Module]:
        """The root and every module below it, each once, by dotted path; the root's is empty."""
        return dict(self.module.named_modules())

    def known(self) -> frozenset[str]:
        """What has a name already: before a run all that main does not give one, the warnings of Python included."""
        return frozenset({*self._names, "__warningregistry__"})

    def run(self) -> dict[str, Any]:
        """Runs forward, losses and backward; gives everything that main has named, ``leaked`` included."""
        exec(self._main, self._names)
        return self._names


def build(topology: Topology, numbers: Mapping[str, Array], device: str = "cpu") -> Built:
    """Builds ``topology`` on ``device`` with the given values of parameters and inputs (see `values.values`).

    The global random state of torch moves on, as it does whenever a layer initialises itself.

    Raises:
        HookcheckError: never; a source that does not run is a fault of hookcheck.
    """
    definitions, modules, main = _compiled(topology, device)
    names = {**_defined(definitions)}
    exec(modules, names)
    net: torch.nn.Module = names["net"] if device == "cpu" else names["net"].to(device)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            parameter.copy_(torch.from_numpy(numbers[name]))
    exec(conversions_source(topology), names)
    parameters = dict(net.named_parameters())
    inputs = {i.name: _leaf(i, topology, numbers[i.name], device, names) for i in topology.inputs}
    names.update(inputs)
    return Built(net, parameters, inputs, names, main)


def _leaf(i: Input, topology: Topology, array: Array, device: str, names: Mapping[str, Any]) -> torch.Tensor:
    dense = torch.tensor(
        array, dtype=_dtype(i, topology), device=device, requires_grad=i.requires_grad and not i.tensor
    )
    leaf: torch.Tensor = eval(as_leaf(i, "dense"), {**names, "dense": dense}) if i.tensor else dense
    return leaf


def _dtype(i: Input, topology: Topology) -> torch.dtype | None:
    """The dtype of an input; None, that of its numbers, for integers and masks."""
    dtype: torch.dtype | None = None if i.domain in WHOLE else getattr(torch, i.dtype or topology.dtype)
    return dtype


@lru_cache(maxsize=256)
def _compiled(topology: Topology, device: str) -> tuple[str, CodeType, CodeType]:
    """The text of the definitions, the code that constructs ``net`` and that of main; tracebacks name them as files."""
    return (
        definitions_source(topology),
        compile(modules_source(topology), "<topology modules>", "exec"),
        compile(main_source(topology, device), "<topology main>", "exec"),
    )


@lru_cache(maxsize=256)
def _defined(definitions: str) -> dict[str, Any]:
    """The names that programs with these definitions begin with: made once, so that classes keep what they found."""
    names: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    exec(compile(definitions, "<topology definitions>", "exec"), names)
    return names
