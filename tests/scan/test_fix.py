"""Is a legacy hook rewritten only where the program cannot tell, and is nothing else of the file changed?"""

from __future__ import annotations

import pytest

from hookcheck.scan.findings import Scanned
from hookcheck.scan.fix import Fixed, fix
from hookcheck.scan.registrations import registrations
from hookcheck.scan.releases import allowed
from hookcheck.scan.source import SourceFile

HEAD = "import torch\nlayer = torch.nn.Linear(2, 2)\n"
SAFE = f"{HEAD}h = layer.register_backward_hook( lambda m,gi,go: print(go) )  # so\n"


def fixed(text: str, torch: str = "") -> Fixed:
    source = SourceFile("x.py", text.encode())
    return fix(Scanned(source, tuple(registrations(source)), allowed(torch) if torch else ()))


def test_the_name_alone_changes_and_a_second_time_nothing() -> None:
    first = fixed(SAFE)
    assert first == Fixed(SAFE.replace("register_backward", "register_full_backward"), 1, ())
    assert fixed(first.text) == Fixed(first.text, 0, ())


@pytest.mark.parametrize(
    "text",
    [
        SAFE.replace("\n", "\r\n"),
        SAFE.replace("h = ", "ä = 'ö'; h = "),
        SAFE.replace("layer.reg", "layer \\\n  .reg"),
        SAFE.rstrip("\n"),
        f"{HEAD}def f(m, gi, go):\n    pass\nlayer.register_backward_hook(f); layer.register_backward_hook(f)\n",
        f"{HEAD}def f(m, gi, go):\n    return None\nfor n in layer.children():\n\tn.register_backward_hook(f)\n",
        f"{HEAD}torch.nn.modules.module.register_module_backward_hook(lambda m, gi, go: print(go))\n",
    ],
)
def test_formatting_stays(text: str) -> None:
    result = fixed(text)
    assert result.left == ()
    assert result.count == text.count("_backward_hook(")
    assert result.text == text.replace("backward_hook(", "full_backward_hook(")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SAFE.replace("print(go)", "print(gi)"), "uses `gi`"),
        (SAFE.replace("print(go)", "(go[0],)"), "returns something"),
        (SAFE.replace("m,gi,go", "*a").replace("print(go)", "print(a)"), "three arguments"),
        (SAFE.replace("lambda m,gi,go: print(go)", "hook"), "definition"),
        ("from there import layer\n" + SAFE.replace(HEAD, ""), "not certain"),
        (SAFE + "torch.nn.ReLU(inplace=True)\n", "in place"),
        (f"{HEAD}r = layer.register_backward_hook\nr(lambda m, gi, go: print(go))\n", "by another name"),
        ("from torch.nn.modules.module import register_module_backward_hook as r\nr(print)\n", "by its name"),
    ],
)  # fmt: skip
def test_what_is_left_with_the_reason(text: str, why: str) -> None:
    result = fixed(text)
    assert (result.text, result.count, len(result.left)) == (text, 0, 1)
    assert why in result.left[0][2]


def test_what_runs_where_torch_has_no_full_hooks_stays() -> None:
    text = SAFE.replace("h = layer", "h = 1 if hasattr(layer, 'register_full_backward_hook') else layer")
    assert fixed(text) == Fixed(text, 0, ())


def test_one_that_cannot_be_rewritten_keeps_all_of_the_file() -> None:
    result = fixed(SAFE + "k = layer.register_backward_hook(elsewhere)\n")
    assert result.count == 0
    assert result.left[0][2].startswith("another legacy hook")


def test_a_torch_without_full_hooks() -> None:
    assert "1.7" in fixed(SAFE, ">=1.7").left[0][2]
    assert fixed(SAFE, ">=1.8").count == 1
