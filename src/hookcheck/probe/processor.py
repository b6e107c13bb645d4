"""What computes? The processor, and what numpy's and torch's arithmetic takes of it."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import torch
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

CPUINFO = Path("/proc/cpuinfo")


def arithmetic() -> dict[str, str]:
    """What the numbers of a run may depend on, each as text for a record's header.

    ``processor``: its name; ``blas``: numpy's library for matrices and the kernel that it takes; ``aten``: torch's
    vector instructions ("unknown" before torch 2.1, which does not say); ``threads``: how many compute one operation of
    torch.
    """
    names = re.findall(r"^model name\s*: (.*)$", CPUINFO.read_text("utf-8"), re.MULTILINE) if CPUINFO.exists() else []
    libraries = {
        f"{library['internal_api']} {library['version']} {library.get('architecture', '')}".strip()
        for library in threadpool_info()
        if library["user_api"] == "blas" and "numpy" in library["filepath"]
    }
    capability = getattr(torch.backends, "cpu", None) and torch.backends.cpu.get_cpu_capability()
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "blas": ", ".join(sorted(libraries)) or "unknown",
        "aten": capability or "unknown",
        "threads": str(torch.get_num_threads()),
    }
