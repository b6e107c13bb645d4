"""Does the text of an issue follow the form that PyTorch has for such a bug, with the boxes that it asks for?"""

from __future__ import annotations

from pathlib import Path

import pytest

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import clause_named
from hookcheck.repro import verify
from hookcheck.repro.ablation import ablation, compiles, variants
from hookcheck.repro.issue import issue
from hookcheck.repro.verify import HOLDS, SHOWS, SKIP, Verdict

EAGER = "import torch\nraise SystemExit(0 if experiment == control else 1)\n"
COMPILED = 'import torch\ntorch.compile(net, backend="eager")\nraise SystemExit(0 if experiment == control else 1)\n'
SHOWN = Verdict("2.13.0", SHOWS, shows=3, runs=3, output="experiment: 0")


def text(script: str, by_backend: tuple[tuple[str, Verdict], ...] = ()) -> str:
    return issue(
        "A title", clause_named("GI-01"), [], script, [SHOWN], ([], []), [], "PyTorch version: such", by_backend
    )


def parts(of: str) -> list[str]:
    return [line for line in of.splitlines() if line.startswith(("### ", "**"))]


def test_a_bug_of_eager_mode() -> None:
    of = text(EAGER)
    assert parts(of) == [
        "### 🐛 Describe the bug", "**Observed and expected**", "**Releases**", "**Related issues**", "### Versions",
    ]  # fmt: skip
    assert of.index("**Observed") < of.index("experiment: 0") < of.index("**Releases**")


def test_a_bug_of_what_is_compiled() -> None:
    """The headings are those of pt2-bug-report.yml."""
    of = text(COMPILED, (("eager", SHOWN), ("aot_eager", Verdict("2.13.0", HOLDS))))
    assert parts(of) == [
        "### 🐛 Describe the bug", "**Ablation**", "**Releases**", "**Related issues**",
        "### Error logs", "### Versions",
    ]  # fmt: skip
    assert "| backend | the script on torch 2.13.0 |\n| --- | --- |\n| `eager` | shows |\n" in of
    assert "\n| `aot_eager` | as documented |\n" in of
    assert of.index("### Error logs") < of.index("experiment: 0") < of.index("### Versions")


def test_a_script_without_a_backend_says_so() -> None:
    assert "The script names no backend in whose place" in text("torch.compile(net)")


@pytest.mark.parametrize(
    ("script", "so"),
    [
        ("torch.compile(net)", True),
        ("@torch.compile\ndef f(x): ...", True),
        ("net.compile()", True),
        ("from torch._dynamo.compiled_autograd import _enable", True),
        ("re.compile('x')", False),
        ("net(x).backward()", False),
    ],
)
def test_what_compiles(script: str, so: bool) -> None:
    assert compiles(script) is so


def test_each_backend_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def here(path: Path, torch: str, runs: int, limit: float) -> Verdict:
        ran.append((path.read_text(encoding="utf-8"), torch, runs, limit))
        return Verdict(torch, SKIP, "its control fails")

    monkeypatch.setattr(verify, "here", here)
    assert [*ablation(COMPILED, tmp_path, SHOWN, 60)] == [
        ("eager", SHOWN),
        ("aot_eager", Verdict("2.13.0", SKIP, "its control fails")),
    ]
    assert ran == [(COMPILED.replace('"eager"', '"aot_eager"'), "2.13.0", 1, 60)]


def test_a_script_that_names_no_backend_is_not_run(tmp_path: Path) -> None:
    assert variants(EAGER) == {}
    assert not [*ablation(EAGER, tmp_path, SHOWN, 60)]
