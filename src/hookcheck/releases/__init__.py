"""The releases of torch that hookcheck runs on, and what each needs beside it: one list, in ``releases.toml``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = Path(__file__).with_name("releases.toml")


NIGHTLY = "nightly"
"""The name of the newest build, which is no release: it is not in the list, and has an environment beside theirs."""


@dataclass(frozen=True)
class Release:
    """A release of ``torch``, the minor version of ``python`` that it is run with, and the requirements ``pins``."""

    torch: str
    python: str
    pins: tuple[str, ...]


def releases() -> tuple[Release, ...]:
    """Every release, the oldest first."""
    content = tomllib.loads(PATH.read_text(encoding="utf-8"))
    return tuple(Release(row["torch"], row["python"], tuple(row["pins"])) for row in content["release"])
