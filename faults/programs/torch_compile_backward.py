"""Faults in how torch.compile treats backward hooks and hooks on tensors."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from ..engine import Fault, added, replaced


def _dropped(owner: Any, name: str) -> AbstractContextManager[None]:
    """Has a method register nothing."""
    return replaced(owner, name, lambda original: lambda self, hook, *args, **kwargs: None)


FAULTS = (
    Fault(
        "torch.compile: full backward hooks are dropped",
        lambda: _dropped(torch.nn.Module, "register_full_backward_hook"),
        ("TC-04", "TC-05", "TC-08", "TC-11", "TC-13"),
        kinds=(),
    ),
    Fault(
        "torch.compile: full backward pre-hooks are dropped",
        lambda: _dropped(torch.nn.Module, "register_full_backward_pre_hook"),
        ("TC-04", "TC-12"),
        kinds=(),
    ),
    Fault(
        "torch.compile: hooks on parameters are dropped",
        lambda: _dropped(torch.Tensor, "register_hook"),
        ("TC-08",),
        kinds=(),
    ),
    Fault(
        "torch.compile: retain_grad is forgotten",
        lambda: added(torch.Tensor, "retain_grad", lambda self: None),
        ("TC-14",),
        kinds=(),
        since="2.7",
    ),
    Fault(
        "torch.compile: post-accumulate-grad hooks are dropped",
        lambda: _dropped(torch.Tensor, "register_post_accumulate_grad_hook"),
        ("TC-15",),
        kinds=(),
    ),
)
