"""Faults in what modules of attention compute on their fast paths and off them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from ..engine import Fault, replaced
from ..registering import edited


def _binary(mask: Any) -> Any:
    """A float mask as a binary one, as fast paths take it."""
    return mask if mask is None or mask.dtype == torch.bool else mask != 0


def _given(change: Callable[[Any], Any]) -> AbstractContextManager[None]:
    """Attention that takes what ``change`` makes of its masks."""

    def make(original: Any) -> Any:
        def forward(self: Any, *tensors: Any, key_padding_mask: Any = None, attn_mask: Any = None, **other: Any) -> Any:
            masks = {"key_padding_mask": change(key_padding_mask), "attn_mask": change(attn_mask)}
            return original(self, *tensors, **masks, **other)

        return forward

    return replaced(nn.MultiheadAttention, "forward", make)


def _marked(original: Any) -> Any:
    """A nested tensor of what the mask leaves out, too."""
    return lambda tensor, mask, **options: original(tensor, torch.ones_like(mask), **options)


FAULTS = (
    Fault(
        "attention takes a float mask for a binary one",
        lambda: _given(_binary),
        ("FP-01", "FP-02", "FP-03"),
        since="2.5",
    ),
    Fault(
        "attention leaves out what no mask marks",
        lambda: _given(lambda mask: ~mask if mask is not None and mask.dtype == torch.bool else mask),
        ("FP-01",),
    ),
    Fault(
        "fast paths forget the mask",
        lambda: replaced(nn.MultiheadAttention, "merge_masks", lambda original: lambda *masks: (None, None)),
        ("FP-01", "FP-02", "FP-03", "FP-04"),
        since="2.5",
    ),
    Fault(
        "an encoder puts padding into its nested tensor",
        lambda: replaced(torch, "_nested_tensor_from_mask", _marked),
        ("FP-03",),
    ),
    Fault(
        "a layer that hooks keep off its fast path forgets the mask",
        lambda: edited(nn.TransformerEncoderLayer, "_sa_block", ("attn_mask=attn_mask", "attn_mask=None")),
        ("FP-02", "FP-03", "FP-04"),
        since="2.5",
    ),
    Fault(
        "a layer that hooks keep off its fast path forgets the activation",
        lambda: edited(
            nn.TransformerEncoderLayer, "_ff_block", ("self.activation(self.linear1(x))", "self.linear1(x)")
        ),
        ("FP-04",),
        since="2.5",
    ),
)
