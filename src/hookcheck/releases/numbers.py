"""The numbers of a version, for comparisons with what came with which release."""

from __future__ import annotations

from functools import lru_cache


def release(version: str) -> tuple[int, int]:
    """Major and minor number of a version of torch.

    >>> release("2.13.0+cpu")
    (2, 13)
    """
    return _release(str(version))  # that of torch 1.10 itself is a text that cannot be hashed


@lru_cache(maxsize=64)
def _release(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
