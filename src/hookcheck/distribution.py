"""The name under which hookcheck is installed: the package index has another project that imports as ``hookcheck``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

from hookcheck.errors import HookcheckError

SUMMARY = "Conformance and regression suite for PyTorch's hooks"
"""What our own distributions say of themselves, also those that were installed as ``hookcheck``."""


def check_distribution(name: str = "hookcheck") -> None:
    """Makes sure that no other project's package of our import name is installed beside ours.

    Raises:
        HookcheckError: there is one, so files of both lie in one folder.
    """
    try:
        summary = distribution(name).metadata["Summary"]
    except PackageNotFoundError:
        return
    if summary != SUMMARY:
        raise HookcheckError(
            f"another project named {name} ({summary}) is installed and overwrites files of this one: "
            f"pip uninstall {name}, then pip install --force-reinstall torch-hookcheck"
        )
