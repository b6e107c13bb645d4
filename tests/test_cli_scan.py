"""Does ``hookcheck scan`` print what people and other programs expect, and end with the code that it documents?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from test_cli import runner

import hookcheck.cli as cli
from hookcheck.cli.output import SCHEMAS
from hookcheck.scan.rules import RULES

LEGACY = "import torch\nlayer = torch.nn.Linear(2, 2)\nh = layer.register_backward_hook(lambda m, gi, go: print(go))\n"
UNSURE = "import torch\ndef f(x):\n    x.register_hook(print)\n    x.register_state_dict_pre_hook(lambda: 1)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a legacy hook, a good file, an uncertain one and one that is no Python."""
    for name, text in {"a.py": LEGACY, "b.py": "x = 1\n", "c.py": UNSURE, "d/e.py": "register_hook(("}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
    settings = {"COLUMNS": "100"}
    result = runner().invoke(cli.main, ["scan", *arguments], input=stdin, prog_name="hookcheck", env=settings)
    return result.exit_code, result.stdout, result.stderr


def rows(text: str, fields: int) -> list[dict[str, Any]]:
    """The JSON lines, each held against the schema that is documented."""
    objects = [json.loads(line) for line in text.splitlines()]
    for row in objects:
        schema = next(schema for schema in SCHEMAS["scan"] if set(schema["required"]) == set(row))
        Draft202012Validator(schema).validate(row)
    assert any(len(row) == fields for row in objects)
    return objects


GOLDEN = """\
a.py:3:11: HKS001 `register_backward_hook` is the legacy kind, whose grad_input is often wrong: use \
`register_full_backward_hook`
c.py:4:7: HKS003 `register_state_dict_pre_hook` came with torch 2.0, and torch 1.13 is to be supported as well \
(unsure: the receiver could not be inferred)
HKS001: A legacy backward hook receives the gradients of the last operation only, which often are
  not the module's. See
  https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_backward_hook;
  hookcheck explain P2-12 or LB-03
HKS003: A function that registers hooks is newer than the oldest release in --torch. See
  https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_state_dict_pre_hook;
  hookcheck explain TN-02 or BN-02 or GL-03
1 error, 1 warning; 3 registrations in 4 files; 1 file not scanned
"""


def test_text() -> None:
    code, out, err = asked("a.py", "b.py", "c.py", "d", "--torch", ">=1.13")
    assert (code, out) == (1, GOLDEN)
    assert err.startswith("d/e.py: not scanned: not Python that this interpreter can parse in line 1: ")
    assert err.count("\n") == 1


def test_registrations() -> None:
    assert asked("a.py", "c.py", "--registrations") == (
        0,
        "a.py:3:11: backward on module\n"
        "c.py:3:7: tensor or node (unsure: the receiver could not be inferred)\n"
        "c.py:4:7: state_dict_pre or optimizer_state_dict_pre (unsure: the receiver could not be inferred)\n"
        "3 registrations in 2 files\n",
        "",
    )


def test_exit_codes() -> None:
    assert asked("b.py") == (0, "no findings; 0 registrations in 1 file\n", "")
    assert asked("a.py")[0] == 1
    assert asked("a.py", "--ignore", "HKS001")[0] == 0
    assert asked("d")[0] == 1  # what could not be scanned is no pass


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.py"], "none.py is not there"),
        (["a.py", "--torch", "new"], "no version specifier"),
        (["a.py", "--torch", ">=9"], "allows no release"),
        (["a.py", "--select", "HKX"], "no rule 'HKX'"),
        (["-", "--fix"], "--fix rewrites files"),
        (["a.py", "--registrations", "--format", "sarif"], "no format sarif"),
        ([], "Missing argument"),
    ],
)
def test_wrong_input_is_one_line(arguments: list[str], says: str) -> None:
    code, out, err = asked(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_standard_input() -> None:
    assert asked("-", stdin=LEGACY)[1].startswith("-:3:11: HKS001 ")


def test_json() -> None:
    (finding,) = rows(asked("a.py", "--format", "json")[1], 11)
    assert (finding["rule"], finding["line"], finding["column"], finding["sure"]) == ("HKS001", 3, 11, True)
    assert [row["kind"] for row in rows(asked("a.py", "c.py", "--registrations", "--format", "json")[1], 9)] == [
        "backward",
        "tensor or node",
        "state_dict_pre or optimizer_state_dict_pre",
    ]
    assert rows(asked("d", "--format", "json")[1], 2)[0]["path"] == "d/e.py"


def test_github() -> None:
    out = asked("a.py", "--format", "github")[1]
    assert out.startswith("::warning file=a.py,line=3,endLine=3,col=11,title=HKS001::`register_backward_hook` is")
    assert out.endswith(f"; see {RULES['HKS001'].link}\n")
    assert out.count("\n") == 1


def test_sarif_has_what_the_standard_requires() -> None:
    code, out, err = asked("a.py", "d", "--format", "sarif")
    log = json.loads(out)
    assert (code, err, log["version"], list(log)) == (1, "", "2.1.0", ["$schema", "version", "runs"])
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    assert "hookcheck explain P2-12" in driver["rules"][0]["help"]["text"]
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    assert all(rule["shortDescription"]["text"] and rule["helpUri"].startswith("https:") for rule in driver["rules"])
    (result,) = run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "HKS001"
    assert result["level"] in ("none", "note", "warning", "error")
    assert result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a.py"
    line = LEGACY.splitlines()[2]
    columns = place["region"]
    assert line[columns["startColumn"] - 1 : columns["endColumn"] - 1] == line[line.index("register_") :]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "d/e.py" in str(invocation["toolExecutionNotifications"])


def test_fix(folder: Path) -> None:
    (folder / "f.py").write_text(LEGACY.replace("print(go)", "print(gi)"))
    (folder / "a.py").chmod(0o750)
    code, out, err = asked("a.py", "f.py", "--fix")
    assert code == 1  # that of f.py is left
    assert err == "a.py: 1 fixed\nf.py:3:11: not fixed: the hook uses `gi`, which is not the same for a full hook\n"
    assert out.startswith("f.py:3:11: HKS001")
    assert (folder / "a.py").read_text() == LEGACY.replace("register_backward", "register_full_backward")
    assert (folder / "a.py").stat().st_mode & 0o777 == 0o750
    assert sorted(path.name for path in folder.iterdir()) == ["a.py", "b.py", "c.py", "d", "f.py"]
    assert asked("a.py", "--fix") == (0, "no findings; 1 registration in 1 file\n", "")


def test_the_page_of_the_rules_says_what_the_table_says() -> None:
    page = (Path(__file__).parents[1] / "docs" / "scan.md").read_text(encoding="utf-8")
    for rule in RULES.values():
        assert f"### {rule.id}" in page
        assert all(f"`{clause}`" in page for clause in rule.clauses)
        for part in (rule.sentence, rule.link, rule.bad.strip(), rule.good.strip(), f"Severity: {rule.severity}"):
            assert part in page, (rule.id, part)
