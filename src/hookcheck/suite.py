"""Where is the suite itself? In a clone beside the package's sources; in a wheel inside the package."""

from __future__ import annotations

from pathlib import Path

from hookcheck.errors import HookcheckError


def conformance_folder() -> Path:
    """The folder with the chapters of the suite and the corpus.

    Raises:
        HookcheckError: it is in neither place.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "conformance", package.parents[1] / "conformance"):
        if (folder / "conftest.py").is_file():
            return folder
    raise HookcheckError("the conformance suite is not beside the package; reinstall hookcheck")
