"""In which of three states is a gradient? *Absent* (None), *zero*, or *a value*; the last two are arrays."""

from __future__ import annotations

from typing import Optional

import numpy as np

from hookcheck.topology.primitive import Array

Gradient = Optional[Array]


def state(gradient: Gradient) -> str:
    """``absent``, ``zero`` or ``value``."""
    if gradient is None:
        return "absent"
    return "value" if np.any(gradient) else "zero"
