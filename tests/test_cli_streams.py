"""Is the exit code of every command its answer's, whoever reads what it prints, and does a signal interrupt it?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hookcheck.cli as cli

SOURCE = Path(cli.__file__).parents[2]
REPORTS = SOURCE.parent / "reports"
RECORD = str(REPORTS / "records" / "torch-2.13.0-cpu.jsonl.gz")
DIFFERENT = f"diff 2.6.0 2.13.0 --reports {REPORTS}"
MUCH = {
    f"badge {RECORD}": 0,
    "claims": 0,
    "completion bash": 0,
    DIFFERENT: 1,
    f"{DIFFERENT} --format pretty": 1,
    "doctor": 0,
    "explain BW-01": 0,
    "explain BW-01 --format pretty": 0,
    "explain BW-00": 2,
    "families --format pretty": 0,
    "layers --format pretty": 0,
    "list": 0,
    "list --format pretty": 0,
    "releases": 0,
    f"scan {SOURCE}/hookcheck/probe": 1,
    f"summary {RECORD} --format pretty": 0,
    "support full_backward --format pretty": 0,
    f"upgrade --from 2.6.0 --to 2.13.0 --reports {REPORTS}": 1,
    f"validate {RECORD}": 0,
}
"""Commands that print something, with the exit code that each has to its end."""

UNBUFFERED = {arguments: MUCH[arguments] for arguments in ("list", "list --format pretty", "explain BW-00")}
HELP = {f"{name} --help".strip(): 0 for name in ("", *cli.main.commands)}


def started(arguments: str, folder: Path, **settings: Any) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    environment |= {"PYTHONPATH": str(SOURCE), **settings.pop("environment", {})}
    command = [sys.executable, "-m", "hookcheck", *arguments.split()]
    return subprocess.run(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, check=False, **settings
    )


@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("arguments", "code", "unbuffered"),
    [(*each, "") for each in {**MUCH, **HELP}.items()] + [(*each, "1") for each in UNBUFFERED.items()],
)
def test_a_closed_pipe_changes_no_exit_code(arguments: str, code: int, unbuffered: str, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = started(arguments, tmp_path, stdout=closed, environment={"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= (code == 2)


def test_the_first_line_is_all_that_is_read(tmp_path: Path) -> None:
    program = f"{sys.executable} -m hookcheck list --format pretty | head -1; echo ${{PIPESTATUS[@]}}"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert (done.stdout.splitlines()[1:], done.stderr) == (["0 0"], "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = started("list", tmp_path, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "hookcheck: error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_stream_that_is_closed_from_the_start(closed: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m hookcheck explain BW-00 {closed}"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == (closed == ">&-")


def test_sigterm_interrupts_and_what_is_temporary_goes(tmp_path: Path) -> None:
    """As `timeout 60 hookcheck bisect` sends it, which has an environment of gigabytes."""
    code = """
import tempfile, time
from hookcheck.__main__ import run
from hookcheck.cli.frame import main

@main.command("wait")
def wait():
    with tempfile.TemporaryDirectory(dir="."):
        print("there", flush=True)
        time.sleep(60)

run()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, "wait"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said.strip()) == (130, "hookcheck: interrupted")
    assert not list(tmp_path.iterdir())
