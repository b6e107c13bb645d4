"""Faults in what layers compute, which programs about their settings catch."""

from __future__ import annotations

from typing import Any

import torch

from ..engine import Fault, replaced

FUNCTIONAL = torch.nn.functional


def _doubled(original: Any) -> Any:
    return lambda *args, **kwargs: 2 * original(*args, **kwargs)


def _raising(original: Any) -> Any:
    def raises(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("planted")

    return raises


FAULTS = (
    Fault(
        "a transposed convolution is doubled", lambda: replaced(FUNCTIONAL, "conv_transpose1d", _doubled), ("LY-01",)
    ),
    Fault("a convolution of volumes is doubled", lambda: replaced(FUNCTIONAL, "conv3d", _doubled), ("LY-02",)),
    Fault("a pool is doubled", lambda: replaced(FUNCTIONAL, "max_pool1d", _doubled), ("LY-03",)),
    Fault("a cosine is doubled", lambda: replaced(FUNCTIONAL, "cosine_similarity", _doubled), ("LY-04",)),
    Fault("a loss is doubled", lambda: replaced(FUNCTIONAL, "gaussian_nll_loss", _doubled), ("LY-05",), since="1.8"),
    Fault(
        "a transposed convolution raises",
        lambda: replaced(FUNCTIONAL, "conv_transpose1d", _raising),
        ("LY-06",),
        since="1.12",
    ),
    Fault("a normalisation raises", lambda: replaced(FUNCTIONAL, "layer_norm", _raising), ("LY-07",), since="2.3"),
    Fault("a padding raises", lambda: replaced(FUNCTIONAL, "pad", _raising), ("LY-08",), since="2.1"),
)
