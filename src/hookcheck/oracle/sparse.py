"""Sparse tensors that are read back: what of a gradient gets through to what they were made of."""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.oracle.graph import Tensor, origin
from hookcheck.topology.ops.elementwise import Scale
from hookcheck.topology.ops.tensors import AsDense, AsTensor
from hookcheck.topology.primitive import Array, Primitive
from hookcheck.topology.tensors import TENSORS


@dataclass(frozen=True)
class Stored(AsDense):
    """The numbers of a sparse tensor that was made of a dense one. Zeros are not stored, and get no gradient.

    Source: ``masked_grad`` in the documentation of ``torch.Tensor.to_dense``.
    """

    def pull(self, v: Array, x: Array) -> Array:
        """``v`` where ``x`` is not 0."""
        gradient: Array = v * (x != 0)
        return gradient


def as_read(primitive: Primitive, operands: tuple[Tensor, ...]) -> Primitive:
    """``primitive`` as it is on ``operands``: what reads a sparse tensor may be given a plain one."""
    return Stored(primitive.tensor) if isinstance(primitive, AsDense) and _is_sparse(operands[0]) else primitive


def _is_sparse(tensor: Tensor) -> bool:
    node = origin(tensor).node
    if node is None:
        return False
    if isinstance(node.primitive, Scale):  # by a hook; of zeros there are as many
        return _is_sparse(node.inputs[0])
    return isinstance(node.primitive, AsTensor) and TENSORS[node.primitive.tensor].sparse
