"""Do the examples of docs/guards.md run, and print what is shown?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hookcheck.releases.numbers import release

DOCS = (Path(__file__).parents[2] / "docs" / "guards.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", DOCS, re.S)
CODE = [text for language, text in BLOCKS if language == "python"]
SHOWN = [text for language, text in BLOCKS if not language]
SILENT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Tanh()

def test_it(assert_fires):
    with assert_fires(Net(), "forward"):
        pass
"""
HEAD = """
import hookcheck, torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

def look(*arguments):
    return None

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.BatchNorm1d(2)
        self.encoder, self.head = self.a, self.b

    def forward(self, x):
        return self.head(self.encoder(self.encoder(x)))

def my_tool(model):
    model.a.register_forward_hook(look)

shared_model = model = Net()
x = torch.randn(3, 2)
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(release(torch.__version__) < (2, 2), reason="same_under compiles there"),
]


def run(folder: Path, code: str, *command: str) -> str:
    (folder / "test_it.py").write_text(HEAD + code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    ran = subprocess.run([sys.executable, "-W", "ignore", *command, "test_it.py"], cwd=folder, env=environment,
                         capture_output=True, text=True)  # fmt: skip
    return ran.stdout + ran.stderr


def suite(folder: Path, code: str) -> str:
    printed = run(folder, code, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider")
    return "\n".join(line[1:].strip() if line.startswith("E ") else line for line in printed.splitlines())


def lines(text: str) -> list[str]:
    return [re.sub(r"registered at \S+", "registered at …", line.strip()) for line in text.splitlines() if line.strip()]


def test_a_hook_that_is_left(tmp_path: Path) -> None:
    printed = lines(suite(tmp_path, CODE[0]))
    assert all(any(line.endswith(shown) for line in printed) for shown in lines(SHOWN[0]))


def test_firing(tmp_path: Path) -> None:
    printed = suite(tmp_path, "model.a, model.b = None, None\n" + CODE[1])
    assert "1 passed" in printed
    silent = {line.rpartition("AssertionError: ")[2] for line in lines(suite(tmp_path, SILENT))}
    assert set(lines(SHOWN[1])) <= silent


def test_contexts(tmp_path: Path) -> None:
    layer = "layer = nn.Sequential(nn.Linear(2, 2))\n"
    assert "1 passed" in suite(tmp_path, layer + CODE[2])
    printed = lines(suite(tmp_path, layer + CODE[2].replace('"checkpoint",', '"checkpoint_reentrant",')))
    assert all(any(line.endswith(shown) for line in printed) for shown in lines(SHOWN[2]))


def test_a_conversion(tmp_path: Path) -> None:
    model = "model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))\nfor m in model: m.register_forward_hook(look)\n"
    printed = run(tmp_path, model + CODE[3])
    assert lines(printed)[:3] == lines(SHOWN[3])
    assert "AssertionError" in printed  # a hook was left behind


def test_a_pair(tmp_path: Path) -> None:
    printed = run(tmp_path, CODE[4])
    summary = next(line for line in printed.splitlines() if "ran otherwise with the pair" in line)
    assert re.search(r"\d+ networks ran, \d+ need a newer torch; \d+ ran otherwise with the pair", summary)
    assert re.search(r"\d+ x gradient of \S+: \S+, not \S+", printed)
    assert "with make_context():  # and once without it" in printed
    assert all(shown in printed for shown in ("import torch\nfrom torch import nn", "torch.no_grad()"))
