"""Where is the suite itself? In a clone beside the package's sources; in a wheel inside the package."""

from __future__ import annotations

from pathlib import Path

from hookcheck import __version__
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


def corpus_size(family: str) -> int:
    """How many topologies the corpus holds of a family: the lines of its file, which are not read any further.

    Raises:
        HookcheckError: the file is missing.
    """
    path = conformance_folder() / "corpus" / f"{family}.jsonl"
    try:
        return path.read_bytes().count(b"\n")
    except OSError as error:
        raise HookcheckError(
            f"the corpus file {path} cannot be read ({error}); restore it from the repository"
        ) from None


def published_reports() -> Path:
    """The folder with the records that come with hookcheck, and what is drawn from them; it may be missing."""
    package = Path(__file__).resolve().parent
    return next((f for f in (package / "reports", package.parents[1] / "reports") if f.is_dir()), package / "reports")


def requirement() -> str:
    """What pip and uv install as this very hookcheck: the clone, or the version of the wheel."""
    clone = conformance_folder().parent
    return str(clone) if (clone / "pyproject.toml").is_file() else f"torch-hookcheck=={__version__}"
