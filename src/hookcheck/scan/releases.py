"""The releases of torch that a specifier such as ``>=2.4,<2.16`` allows."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from hookcheck.errors import HookcheckError
from hookcheck.releases import releases

MINORS = tuple(dict.fromkeys(".".join(release.torch.split(".")[:2]) for release in releases()))
"""The minor releases that hookcheck knows, oldest first, as ``2.4``."""
_PATCHES = 10


def allowed(specifier: str) -> tuple[str, ...]:
    """The minor releases, oldest first, of which the specifier allows at least one patch.

    Raises:
        HookcheckError: it is no specifier, or allows none of the known releases.
    """
    try:
        chosen = SpecifierSet(specifier)
    except InvalidSpecifier:
        raise HookcheckError(f"--torch {specifier!r} is no version specifier: write it like '>=2.4,<2.16'") from None
    minors = tuple(m for m in MINORS if any(chosen.contains(f"{m}.{patch}") for patch in range(_PATCHES)))
    if not minors:
        raise HookcheckError(f"--torch {specifier!r} allows no release of torch from {MINORS[0]} to {MINORS[-1]}")
    return minors


def below(since: str, minors: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``minors`` that are older than the release ``since``."""
    return tuple(minor for minor in minors if Version(minor) < Version(since))
