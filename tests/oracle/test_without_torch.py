from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hookcheck

PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
import hookcheck.oracle.expected, hookcheck.oracle.sweep, hookcheck.oracle.tolerance, hookcheck.oracle.trace
import hookcheck.topology.codec, hookcheck.topology.corpus, hookcheck.topology.families
print([name for name in sys.modules if name.split(".")[0] in ("torch", "jax")])
"""


def test_what_is_right_is_worked_out_without_torch() -> None:
    root = str(Path(hookcheck.__path__[0]).parent)
    run = subprocess.run([sys.executable, "-c", PROGRAM, root], capture_output=True, text=True, timeout=120, check=True)
    assert run.stdout.strip() == "[]"
