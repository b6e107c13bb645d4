"""Of a proof that is sampled, one case in so many runs; all do with `--whole`, and what is asked for by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLED = """
import pytest

@pytest.mark.parametrize("case", [pytest.param(n, marks=pytest.mark.one_in(3) if n else ()) for n in range(8)])
def test_it(case):
    pass
"""


@pytest.mark.parametrize(
    ("asked", "cases"),
    [
        ((), [0, 1, 4, 7]),
        (("--whole",), [*range(8)]),
        (("-k", "5 or 6"), [5, 6]),
        (("test_sampled.py::test_it[6]",), [6]),
    ],
)
def test_one_case_in_so_many_runs(asked: tuple[str, ...], cases: list[int], tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_bytes((Path(__file__).with_name("conftest.py")).read_bytes())
    (tmp_path / "test_sampled.py").write_text(SAMPLED, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:xdist", "-W", "ignore", "--rootdir", str(tmp_path)]
    where = [] if "::" in "".join(asked) else [str(tmp_path)]
    run = subprocess.run([*command, *asked, *where], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert [line.split()[0] for line in run.stdout.splitlines() if "PASSED" in line] == [
        f"test_sampled.py::test_it[{case}]" for case in cases
    ], run.stdout + run.stderr
