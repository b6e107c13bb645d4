"""Which files are scanned, what do comments ignore, and is no file too strange?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.scan.rules import RULES
from hookcheck.scan.scanning import Result, chosen, files, scan

EVERY = frozenset(RULES)
LINE = "import torch\nlayer = torch.nn.Linear(2, 2)\nh = layer.register_backward_hook(print)"


def one(text: str | bytes, rules: frozenset[str] = EVERY) -> Result:
    return scan("x.py", text.encode() if isinstance(text, str) else text, (), rules)


def ids(text: str, rules: frozenset[str] = EVERY) -> list[str]:
    return [finding.rule for finding in one(text, rules).findings]


@pytest.mark.parametrize(
    ("comment", "rules"),
    [
        ("", ["HKS001"]),
        ("  # hookcheck: ignore", []),
        ("  # hookcheck: ignore[HKS001]", []),
        ("  # hookcheck:ignore[HKS001, HKS002]", ["HKS100"]),
        ("  # hookcheck: ignore[HKS002]", ["HKS001", "HKS100"]),
        ("  # hookcheck: ignore[HKS003]", ["HKS001"]),  # nobody can tell without --torch
        ("  # hookcheck: ignore[nonsense]", ["HKS001", "HKS100"]),
        ("\n# hookcheck: ignore", ["HKS001", "HKS100"]),
        ("\ntext = '# hookcheck: ignore'", ["HKS001"]),
    ],
)
def test_comments(comment: str, rules: list[str]) -> None:
    assert ids(f"{LINE}{comment}\n") == rules


def notebook(*cells: str, indent: int | None = 1, language: str = "python") -> bytes:
    entries = [
        {"cell_type": kind, "outputs": [{"text": [LINE]}], "source": source.splitlines(keepends=True)}
        for kind, source in [("markdown", "# Hooks"), *(("code", cell) for cell in cells)]
    ]
    text = {"cells": entries, "metadata": {"language_info": {"name": language}}, "nbformat": 4}
    return json.dumps(text, indent=indent, ensure_ascii=False).encode()


def of_notebook(data: bytes) -> Result:
    return scan("x.ipynb", data, (), EVERY)


@pytest.mark.parametrize("magic", ["%matplotlib inline", "!pip list", "layer?", "files = !ls", "%%time", "x = 100 % 7"])
def test_notebooks_are_scanned_at_the_lines_of_their_file(magic: str) -> None:
    data = notebook("", f"{magic}\n{LINE}", "x = 1  # hookcheck: ignore[HKS001]")
    findings = of_notebook(data).findings
    assert [finding.rule for finding in findings] == ["HKS001", "HKS100"]
    lines = data.decode().split("\n")
    assert "layer.register_backward_hook(print)" in lines[findings[0].line - 1]
    assert "hookcheck: ignore" in lines[findings[1].line - 1]


def test_what_of_a_notebook_is_no_python_is_left_out() -> None:
    assert of_notebook(notebook(f"%%bash\n{LINE}")).findings == ()
    assert of_notebook(notebook(LINE, language="julia")).findings == ()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"register_backward_hook", "it cannot be parsed"),
        (b'["register_backward_hook"]', "no notebook of version 4"),
        (notebook(LINE, indent=None), "does not stand on lines of its own"),
        (notebook(f"{LINE}\nif"), "not Python that this interpreter can parse in line"),
    ],
)
def test_a_notebook_that_cannot_be_read_is_told(data: bytes, why: str) -> None:
    assert why in of_notebook(data).unread


def test_a_comment_in_a_call_of_several_lines() -> None:
    text = LINE.replace("(print)", "(\n    print,  # hookcheck: ignore[HKS001]\n)")
    assert (one(text).findings, one(text).ignored) == ((), 1)


def test_rules_are_chosen_by_the_beginning_of_their_ids() -> None:
    assert ids(LINE, chosen(["HKS001"], [])) == ["HKS001"]
    assert ids(LINE, chosen(["HKS"], ["HKS001"])) == []
    assert ids(LINE, chosen([], ["HKS00"])) == []
    assert ids(f"{LINE}  # hookcheck: ignore[HKS001]", chosen([], ["HKS001"])) == []
    with pytest.raises(HookcheckError, match="no rule 'E5'"):
        chosen(["E5"], [])


def test_files(tmp_path: Path) -> None:
    for name in ("a.py", "b/c.pyi", "b/d.txt", ".git/e.py", "env/pyvenv.cfg", "env/f.py", "b/__pycache__/g.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    paths = [Path(name).relative_to(tmp_path).as_posix() for name in files([str(tmp_path), str(tmp_path / "a.py")])]
    assert paths == ["a.py", "b/c.pyi"]
    assert files([str(tmp_path / "b/d.txt"), "-"]) == [str(tmp_path / "b/d.txt"), "-"]
    assert len(files([str(tmp_path / "env")])) == 1  # it was asked for
    with pytest.raises(HookcheckError, match="not there"):
        files([str(tmp_path / "none")])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"register_hook(", "not Python"),
        (b"\xff\xfe register_hook", "not "),
        (b"# coding: klingon\nregister_hook", "not "),
        (b"register_hook\0", ""),
        (b"register_hook(" * 3000 + b")" * 3000, ""),
        (b"# coding: latin-1\nx.register_hook('\xe9')", None),
        (b"# coding: utf-8\nx.register_hook('\xe9')", "not "),
    ],
)
def test_strange_files(data: bytes, why: str | None) -> None:
    result = one(data)
    assert bool(result.unread) == (why is not None)
    assert "\n" not in result.unread
    assert (why or "") in result.unread


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in scan(str(tmp_path), None, (), EVERY).unread


def test_deep_nesting_is_no_crash() -> None:
    assert not one("import torch\nx.register_hook(" + "+".join(["1"] * 500) + ")").unread
    one("import torch\nx = " + "y." * 400 + "z\nx.register_hook(print)")


def test_columns_count_characters_where_the_method_is_named() -> None:
    text = 'import torch\né = torch.nn.Linear(2, 2)\n"é"; h = (é\n  .register_backward_hook(print))\n'
    finding = one(text).findings[0]
    assert (finding.line, finding.column) == (4, 4)
    text = 'import torch\né = torch.nn.Linear(2, 2)\nh = "é"; é.register_backward_hook(print)\n'
    assert one(text).findings[0].column == 12


def test_torch_is_not_imported() -> None:
    import subprocess

    script = (
        "import sys, json; sys.modules['torch'] = None\n"
        "from hookcheck.scan.scanning import scan\n"
        "from hookcheck.scan.rules import RULES\n"
        f"result = scan('x', {LINE.encode()!r}, (), frozenset(RULES))\n"
        "print(json.dumps([finding.rule for finding in result.findings]))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(out) == ["HKS001"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in ("kept.py", "made/one.py", "made/two.py", "local_settings.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("made/\nlocal_*.py\n")

    def below(*names: str) -> list[str]:
        return [Path(path).name for path in files([str(tmp_path.joinpath(*names))])]

    assert below() == ["kept.py"]
    assert below("made") == ["one.py", "two.py"]  # who names it wants it
    assert below("local_settings.py") == ["local_settings.py"]
