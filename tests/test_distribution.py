from __future__ import annotations

from pathlib import Path

import pytest

from hookcheck.distribution import SUMMARY, check_distribution
from hookcheck.errors import HookcheckError

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def installed(folder: Path, summary: str) -> None:
    information = folder / "hookcheck-1.0.0.dist-info"
    information.mkdir()
    text = f"Metadata-Version: 2.1\nName: hookcheck\nVersion: 1.0.0\nSummary: {summary}\n"
    (information / "METADATA").write_text(text)


def test_another_project_of_that_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "Webhooks for Flask")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(HookcheckError, match=r"\(Webhooks for Flask\) .*: pip uninstall hookcheck, then"):
        check_distribution()


def test_our_own_under_its_former_name_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, SUMMARY)
    monkeypatch.syspath_prepend(str(tmp_path))
    check_distribution()


def test_none_of_that_name_is_as_it_should_be() -> None:
    check_distribution("a-name-that-nothing-is-installed-under")


def test_the_summary_is_that_of_the_project() -> None:
    assert f'description = "{SUMMARY}"' in PYPROJECT.read_text(encoding="utf-8")
