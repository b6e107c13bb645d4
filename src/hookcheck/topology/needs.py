"""Which release does a topology need? That of the newest thing that it uses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import MISSING, fields, replace
from functools import lru_cache
from itertools import product
from typing import Any

from hookcheck.topology.contexts import COMPILES_WITHIN_SINCE, COMPILING, CONTEXTS
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Grad,
    Topology,
    Within,
    inside,
    nesting,
    statements,
    tensor_classes,
    tensor_words,
    walk,
    worked_out_once,
)
from hookcheck.topology.primitive import Drawn, Layer
from hookcheck.topology.tensors import TENSORS

DTYPES = {
    "float64": "1.7",
    "float32": "1.7",
    "complex128": "1.9",
    "complex64": "1.9",
    "bfloat16": "2.2",
    "float16": "2.6",
}
"""The floating dtypes, each with the first release in which the CPU computes with it in all steps that are drawn."""


def about(topology: Topology) -> str:
    """The one kind of device that the topology, or a tensor in it, is about; or ``any``."""
    devices = [topology.device, *(TENSORS[name].device for name in tensor_classes(topology))]
    return next((device for device in devices if device != "any"), "any")


@worked_out_once
def needs(topology: Topology) -> tuple[str, str]:
    """The newest thing that the topology uses: the first torch release that can run it, and the thing's name."""
    dtypes = {topology.dtype, *(i.dtype for i in topology.inputs if i.dtype in DTYPES)}
    steps: list[Drawn] = [module for _, module in walk(topology.module) if isinstance(module, Layer)]
    used = []
    for statement in statements(topology):
        if isinstance(statement, Apply):
            steps.append(statement.op)
            dtypes.add(statement.op.casts or topology.dtype)
        elif isinstance(statement, Within):
            used.append((CONTEXTS[statement.mode].since, statement.mode))
        elif isinstance(statement, (Call, Grad)) and statement.context:
            used.append((CONTEXTS[statement.context].since, statement.context))
        elif isinstance(statement, Backward) and statement.inputs:
            used.append(("1.10" if statement.out else "1.8", "backward(inputs=…)"))
    used += [(step.since, _newest(step)) for step in steps]
    used += [(TENSORS[name].since, name) for name in tensor_classes(topology)]
    if tensor_classes(topology):
        around = ((CONTEXTS[name].classes_since, name) for name in inside(topology))
        used += [(since, f"{name} on tensors of classes") for since, name in around if since]
    used += [
        (CONTEXTS[name].later[word], f"{name} on a tensor of the class {word}")
        for name, word in product(inside(topology), tensor_words(topology))
        if word in CONTEXTS[name].later
    ]
    within = ((CONTEXTS[outer].nests_since, CONTEXTS[inner].nests_since) for outer, inner in nesting(topology))
    used += [(max(each, key=_numbers), "hooks on saved tensors within others") for each in within if all(each)]
    if {*inside(topology)}.intersection(COMPILING) and {*inside(topology)}.difference(COMPILING):
        used.append((COMPILES_WITHIN_SINCE, "torch.compile within other contexts"))
    used += [
        (step.unbatched_since, f"{type(step).__name__} without a batch axis") for step in steps if step.unbatched_since
    ]
    used += [(DTYPES[dtype], dtype) for dtype in sorted(dtypes)]
    if any(dtype.startswith("complex") for dtype in dtypes):
        used += [
            (step.complex_since, f"{type(step).__name__} on complex tensors") for step in steps if step.complex_since
        ]
        around = ((CONTEXTS[name].complex_since, name) for name in inside(topology))
        used += [(since, f"{name} on complex tensors") for since, name in around if since]
    return max(used, key=lambda item: _numbers(item[0]), default=("1.7", "hooks"))


@lru_cache(maxsize=512)
def _newest(step: Any) -> str:
    """What of a step came with the release that it needs: the setting without which it would need an older one, or the
    step itself."""
    for field in fields(step):
        value = getattr(step, field.name)
        if field.default is MISSING or value == field.default:
            continue
        with suppress(ValueError, TypeError):
            older = replace(step, **{field.name: field.default})
            if _numbers(older.since) < _numbers(step.since):
                return f"{type(step).__name__}(…, {field.name}={value!r})"
    return type(step).__name__


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
