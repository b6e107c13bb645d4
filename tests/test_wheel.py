"""Does an installed wheel do what the clone does? It is built, installed beside the torch that is here, and run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hookcheck.record.reading import read

REPOSITORY = Path(__file__).parents[1]


def run(*command: object, cwd: Path) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_the_wheel_carries_the_suite_and_its_corpus(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", REPOSITORY, "--no-deps", "-w", tmp_path, cwd=tmp_path)
    (wheel,) = tmp_path.glob("torch_hookcheck-*.whl")
    run(sys.executable, "-m", "venv", "--system-site-packages", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    # The interpreter that made a virtual environment may itself be in one, whose packages the new one does not see.
    seen = [path for path in sys.path if path.endswith("site-packages")]
    home = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    (Path(home) / "here.pth").write_text("\n".join(seen))
    run(python, "-m", "pip", "install", "--no-deps", "--force-reinstall", wheel, cwd=tmp_path)

    origin = run(python, "-c", "import hookcheck; print(hookcheck.__file__)", cwd=tmp_path)
    assert origin.startswith(home)
    reports = tmp_path / "reports"
    options = ["--reports", reports, "--family", "single-node", "--hypothesis-profile", "smoke"]
    output = run(python, "-m", "hookcheck", "run", *options, cwd=tmp_path)
    assert "passed" in output
    (record,) = (reports / "partial").glob("torch-*.jsonl.gz")
    assert read(record).footer.complete
