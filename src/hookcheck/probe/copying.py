"""What is kept of a value that torch hands out? A copy of it as plain data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from hookcheck.probe.observation import Array, Copy, Layout, Standing


def copied(value: Any, tensor: Callable[[torch.Tensor], Array] | None = None) -> Copy:
    """A copy that what torch does to the value later does not change; see `hookcheck.probe.observation.Copy`.

    ``tensor`` is what makes an array of a tensor, `array_of` without it.
    """
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        return (tensor or array_of)(value)
    if isinstance(value, dict):
        return {str(key): copied(item, tensor) for key, item in value.items()}
    if type(value) in (tuple, list):
        items = [copied(item, tensor) for item in value]
        return tuple(items) if type(value) is tuple else items
    if is_container(value):
        return {"type": type(value).__name__, **{name: copied(item, tensor) for name, item in fields_of(value)}}
    return _PLACE.sub("", repr(value))


_PLACE = re.compile(" at 0x[0-9a-fA-F]+")
"""Where in memory an object is, which is another place in each run."""


def is_container(value: Any) -> bool:
    """Whether it is a tuple, list, dict, namedtuple or an instance of a dataclass."""
    return isinstance(value, (tuple, list, dict)) or is_dataclass(type(value))


def fields_of(value: Any) -> list[tuple[str, Any]]:
    """What a container holds, by key, by field, or by place."""
    if isinstance(value, dict):
        return list(value.items())
    if is_dataclass(value):
        return [(f.name, getattr(value, f.name)) for f in fields(value)]
    return [(str(i), item) for i, item in enumerate(value)]


_LAZY = hasattr(torch.Tensor, "resolve_neg")
"""Whether this torch has tensors that are conjugated or negated only when their numbers are asked for."""


def array_of(tensor: torch.Tensor) -> Array:
    """The tensor's numbers in its own dtype, in memory of their own.

    NumPy has no bfloat16: the 16 bits are kept as they are.
    """
    return view_of(tensor).copy()


def view_of(tensor: torch.Tensor) -> Array:
    """The tensor's numbers as `array_of` has them, in the memory of the tensor itself where that can be.

    What a transform of torch.func or a batched gradient hands out has no numbers of its own: they are those of the
    batch, which is a batch of one.
    """
    try:
        return _numbers(tensor)
    except RuntimeError:
        with _outside_transforms():
            return _numbers(_unwrapped(tensor))


def _outside_transforms() -> AbstractContextManager[Any]:
    """Where transforms of torch.func do nothing; up to 1.13 there are none."""
    if not hasattr(torch._C, "_functorch"):
        return nullcontext()
    off: Any = torch._C._DisableFuncTorch
    return off() if hasattr(off, "__enter__") else _while_held(off)


@contextmanager
def _while_held(guard: Callable[[], object]) -> Iterator[None]:
    """As long as there is such an object, which in 2.0 is no context manager."""
    held = guard()
    try:
        yield
    finally:
        del held


def _numbers(tensor: torch.Tensor) -> Array:
    plain = tensor.detach()  # the array must not keep the tensor itself alive
    if type(plain) is not torch.Tensor:
        return _converted(plain)
    try:
        return plain.numpy()  # most have their numbers in memory as they are; asking costs more
    except (RuntimeError, TypeError):
        return _converted(plain)


def _converted(plain: torch.Tensor) -> Array:
    """The numbers of a detached tensor that NumPy does not take as it is: by its class, layout, device, dtype, or since
    it is conjugated or negated only when its numbers are asked for."""
    if type(plain) is not torch.Tensor or plain.layout is not torch.strided or _odd(plain):
        plain = dense(plain)
    if plain.device.type != "cpu":
        plain = plain.cpu()
    if plain.dtype == torch.bfloat16:
        return plain.contiguous().view(torch.int16).numpy().view(np.uint16)
    if _LAZY:
        plain = plain.resolve_conj().resolve_neg()
    wider = dtype_as_copied(plain)
    array: Array = (plain if wider == _name_of(plain) else plain.to(getattr(torch, wider))).numpy()
    return array


def dtype_as_copied(tensor: torch.Tensor) -> str:
    """The name of the tensor's dtype; where NumPy has none for such numbers, of a wider one that holds each of them."""
    name = _name_of(tensor)
    return "float32" if name.startswith("float8") else "complex64" if name == "complex32" else name


def _name_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).partition(".")[2]


def _unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """What is in the tensor of a transform."""
    functorch = getattr(torch._C, "_functorch", None)  # part of torch since 2.0
    if functorch is None or not functorch.is_functorch_wrapped_tensor(tensor):
        return torch._remove_batch_dim(tensor, 1, 1, 0)[0]
    held: torch.Tensor = functorch.get_unwrapped(tensor)
    if functorch.is_functorch_wrapped_tensor(held):  # a transform within another
        held = _unwrapped(held)
    return held.select(functorch.maybe_get_bdim(tensor), 0) if functorch.is_batchedtensor(tensor) else held


def _odd(plain: torch.Tensor) -> bool:
    """Whether it is quantised, or nested though its layout is strided."""
    return plain.is_quantized or (_NESTED and plain.is_nested)


_NESTED = hasattr(torch.Tensor, "is_nested")
"""Whether this torch has tensors of tensors."""


def dense(plain: torch.Tensor) -> torch.Tensor:
    """The numbers of a detached tensor of any class and layout in a strided one; rows of nested ones stacked, or one
    after another where some are longer."""
    if hasattr(plain, "is_nested") and plain.is_nested:
        if len({row.shape for row in plain.unbind()}) > 1:
            return torch.cat([*plain.unbind()])
        padded: torch.Tensor = torch.nested.to_padded_tensor(plain, 0.0)
        return padded
    if hasattr(plain, "__tensor_flatten__"):  # torch's own protocol of tensors that hold others
        names, _ = plain.__tensor_flatten__()
        return dense(getattr(plain, names[0]))
    if plain.is_quantized:
        return plain.dequantize()
    return plain if plain.layout is torch.strided else plain.to_dense()


def strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides of a tensor; none of one whose layout has none."""
    plain = tensor.layout is torch.strided and not (_NESTED and tensor.is_nested)
    return tensor.stride() if plain else ()


def kind(tensor: torch.Tensor) -> str:
    """The class and the layout of a tensor."""
    return f"{type(tensor).__name__}, {tensor.layout}"


def layouts(gradients: Mapping[str, torch.Tensor | None]) -> dict[str, Layout]:
    """What each ``.grad`` that there is is beside its numbers."""
    return {n: Layout(strides(g), g.requires_grad, kind(g)) for n, g in gradients.items() if g is not None}


def tensors_among(values: Iterable[Any]) -> list[torch.Tensor]:
    """The tensors among ``values``, and those in a tuple or dict of them."""
    tensors: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, (tuple, dict)):
            tensors += tensors_among(value.values() if isinstance(value, dict) else value)
    return tensors


def asks(tensors: list[torch.Tensor]) -> bool:
    """Whether any of ``tensors`` requires grad."""
    return True in [tensor.requires_grad for tensor in tensors]


def version(tensor: torch.Tensor) -> int | None:
    """How often the memory of ``tensor`` was written to; None for a tensor of inference mode, where nobody counts.

    Torch 1.9 has the mode and no way to ask a tensor whether it is of it.
    """
    try:
        return tensor._version
    except RuntimeError:
        return None


def devices(tensors: list[torch.Tensor]) -> tuple[str, ...]:
    """The kinds of device that ``tensors`` lie on, each once."""
    return tuple(dict.fromkeys([_type_of(tensor.device) for tensor in tensors]))


@lru_cache(maxsize=64)
def _type_of(device: torch.device) -> str:
    """Kept, since torch makes the text anew for each that asks."""
    return device.type


def standings(tensors: Mapping[str, torch.Tensor]) -> dict[str, Standing]:
    """What each tensor is beside its numbers; it may be the same object as one before it."""
    first: dict[int, str] = {}
    return {
        name: Standing(
            first.setdefault(id(tensor), name),
            tensor._is_view(),
            tensor.is_leaf,
            version(tensor),
            strides(tensor),
            kind(tensor),
        )
        for name, tensor in tensors.items()
    }
