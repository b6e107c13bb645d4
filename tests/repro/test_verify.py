"""What is said of a script that fails, passes, lacks something, hangs or crashes; and the search for a release."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hookcheck.errors import HookcheckError
from hookcheck.repro import verify
from hookcheck.repro.bisect import Bisection, Memory, bisect
from hookcheck.repro.environments import NoEnvironment, environment, release_named, uv
from hookcheck.repro.verify import HOLDS, SHOWS, SKIP, Verdict, checked, here


def script(folder: Path, text: str) -> Path:
    path = folder / "repro.py"
    path.write_text(text, encoding="utf-8")
    return path


ELSEWHERE = "assert False, 'torch did not expect that'"
CAUGHT = "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()"
LOGGED = f"exec(compile({CAUGHT!r}, '/site-packages/torch/_logging.py', 'exec'))\n"


@pytest.mark.parametrize(
    ("text", "verdict", "why"),
    [
        ("raise SystemExit(1)", SHOWS, ""),
        ("assert 1 == 2, 'it differs'", SHOWS, ""),
        ("def check():\n    assert 1 == 2\n\n\ncheck()", SHOWS, ""),
        ("assert 1 == 2, 'it differs:\\nin two lines'", SHOWS, ""),
        ("try:\n    int('one')\nexcept ValueError:\n    raise AssertionError", SHOWS, ""),
        ("from unittest import TestCase\nTestCase().assertEqual({'a': 1}, {'b': 2})", SHOWS, ""),
        (
            f"exec(compile({ELSEWHERE!r}, '/site-packages/torch/nn/modules.py', 'exec'))",
            SKIP,
            "crashed: AssertionError",
        ),
        ("pass", HOLDS, ""),
        (LOGGED, HOLDS, ""),
        (f"{LOGGED}raise SystemExit(1)", SHOWS, ""),
        (f"{LOGGED}int('one')", SKIP, "crashed: ValueError"),
        ("raise SystemExit(3)", SKIP, "this torch lacks the API, or this machine the device"),
        ("raise SystemExit(2)", SKIP, "its control fails"),
        ("assert 1 == 2, 'the control fails'", SKIP, "its control fails"),
        ("import nothing_of_that_name", SKIP, "import error: ModuleNotFoundError"),
        ("raise AttributeError('no such hook')", SKIP, "crashed: AttributeError: no such hook"),
        ("raise SystemExit(7)", SKIP, "crashed: exit code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", SKIP, "crashed by signal 11"),
        ("import time; time.sleep(60)", SKIP, "still running after 2 s"),
    ],
)
@pytest.mark.parametrize("torch", ["2.0.0", "1.8.0"])
def test_verdicts(text: str, verdict: str, why: str, torch: str, tmp_path: Path) -> None:
    outcome = here(script(tmp_path, text), torch, limit=2 if "sleep" in text else 60)
    assert outcome.verdict == verdict
    assert outcome.why.startswith(why)
    assert bool(outcome.why) is bool(why)


@pytest.mark.parametrize(("text", "verdict"), [("", HOLDS), ("raise SystemExit('it differs')", SHOWS)])
def test_a_script_ends_on_a_release_whose_engine_may_wait_for_ever(text: str, verdict: str, tmp_path: Path) -> None:
    text = f"import atexit, time\natexit.register(time.sleep, 60)\nprint('seen', __name__)\n{text}"
    outcome = here(script(tmp_path, text), "1.8.0", limit=30)
    assert outcome.verdict == verdict
    assert outcome.output.startswith("seen __main__")


def test_flaky_ones_say_how_often(tmp_path: Path) -> None:
    text = "import pathlib\np = pathlib.Path(__file__).with_name('n')\nn = len(p.read_text()) if p.exists() else 0\n"
    text += "p.write_text('x' * (n + 1))\nraise SystemExit(n % 2)"
    outcome = here(script(tmp_path, text), "2.0.0", runs=5)
    assert outcome.flaky
    assert outcome.text() == "shows in 2 of 5 runs"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def broken(:", "is not Python: .*; name a script that `hookcheck repro` wrote"),
        (
            "import numpy\nimport torch",
            "imports numpy: a script for a report needs torch and the standard library alone",
        ),
        ("from . import near", "imports .: a script"),
    ],
)
def test_refuses(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(HookcheckError, match=words):
        checked(script(tmp_path, text))


def test_refuses_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        HookcheckError, match=r"^\S+gone\.py cannot be read \(No such file or directory\); name a script"
    ):
        checked(tmp_path / "gone.py")
    (tmp_path / "binary.py").write_bytes(b"\xff")
    with pytest.raises(HookcheckError, match=r"cannot be read \(it is not text in UTF-8\); name a script"):
        checked(tmp_path / "binary.py")


def test_releases_by_name() -> None:
    assert release_named("2.6.0").python == "3.11"
    assert release_named("1.13.0").pins == release_named("1.13.1").pins
    for name in ("9.9.9", "newest"):
        with pytest.raises(
            HookcheckError, match=f"there is no torch '{name}' in the list of releases; choose from 1.7.1"
        ):
            release_named(name)


def test_no_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(HookcheckError, match="uv is not on PATH"):
        uv()


def fake_uv(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    path = folder / "bin" / "uv"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")


def test_an_environment_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_uv(tmp_path, monkeypatch, f'echo "$UV_FIND_LINKS: $@" >> {tmp_path}/said')
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", "/a /b")
    with environment(release_named("1.13.1")) as python:
        folder = python.parents[2]
        assert folder.exists()
    assert not folder.exists()
    creation, installed = (tmp_path / "said").read_text(encoding="utf-8").splitlines()
    assert creation.startswith("/a,/b: venv --quiet --python 3.11 ")
    assert installed.endswith(" --offline torch==1.13.1 numpy numpy<2")


def test_what_is_cached_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_uv(tmp_path, monkeypatch, f'echo "$UV_CACHE_DIR: $@" >> {tmp_path}/said')
    monkeypatch.setenv("UV_CACHE_DIR", "/cached")
    with environment(release_named("2.6.0")):
        pass
    *_, installed = (tmp_path / "said").read_text(encoding="utf-8").splitlines()
    assert installed.startswith("/cached: pip install --quiet --python ")
    assert " --offline torch==2.6.0 " in installed
    lacking = f'echo "$UV_CACHE_DIR: $@" >> {tmp_path}/said; case "$*" in *--offline*) exit 1;; esac'
    (tmp_path / "bin" / "uv").write_text(f"#!/bin/sh\n{lacking}\n", encoding="utf-8")
    with environment(release_named("2.6.0")) as python:
        temporary = python.parents[2] / "cache"
    *_, offline, installed = (tmp_path / "said").read_text(encoding="utf-8").splitlines()
    assert offline.startswith("/cached: ")
    assert installed.startswith(f"{temporary}: pip install --quiet --python ")
    assert "--offline" not in installed


def test_what_cannot_be_installed_is_a_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_uv(tmp_path, monkeypatch, 'test "$1" = venv && exit 0; echo no such wheel >&2; exit 1')
    with pytest.raises(NoEnvironment, match="no such wheel"), environment(release_named("2.6.0")):
        pass
    outcome = verify.on(script(tmp_path, "pass"), "2.6.0")
    assert (outcome.verdict, outcome.why) == (SKIP, "cannot install: no such wheel")


def test_of_much_that_uv_says_the_last_words_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_uv(tmp_path, monkeypatch, f'test "$1" = venv && exit 0; echo {"address/of/a/wheel " * 30}>&2; exit 1')
    with pytest.raises(NoEnvironment) as raised, environment(release_named("2.6.0")):
        pass
    assert str(raised.value) == "… " + " ".join(["address/of/a/wheel"] * 15)


def test_a_python_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_uv(tmp_path, monkeypatch, "echo no interpreter >&2; exit 1")
    words = r"^uv finds no Python 3\.11, or cannot use it \(put one on PATH\): no interpreter$"
    with pytest.raises(NoEnvironment, match=words), environment(release_named("2.6.0")):
        pass


RELEASES = [f"2.{n}.0" for n in range(10)]


def searched(
    folder: Path, verdicts: Callable[[int], str], find_fix: bool = False
) -> tuple[Bisection, list[str], list[int]]:
    """The answer, which releases were tried, and how many steps were left each time."""
    path = script(folder, "pass")
    tried: list[str] = []
    left: list[int] = []

    def attempt(torch: str) -> Verdict:
        tried.append(torch)
        word = verdicts(int(torch.split(".")[1]))
        return Verdict(torch, word, "no wheel" if word == SKIP else "")

    answer = bisect(RELEASES, attempt, Memory.of(path), lambda _, steps: left.append(steps), find_fix=find_fix)
    return answer, tried, left


def test_the_release_in_which_a_fault_came(tmp_path: Path) -> None:
    answer, tried, left = searched(tmp_path, lambda n: SHOWS if n >= 6 else HOLDS)
    assert (answer.before.torch, answer.after.torch) == ("2.5.0", "2.6.0")
    assert answer.specifier == ">=2.6.0,<=2.9.0"
    assert answer.text().startswith("The first torch on which the fault shows is 2.6.0; 2.5.0 is as documented.")
    assert tried[:2] == ["2.0.0", "2.9.0"]  # both ends first
    assert len(tried) <= 6
    assert left[-1] == 0


def test_the_release_that_mended_it(tmp_path: Path) -> None:
    answer, _, _ = searched(tmp_path, lambda n: SHOWS if n < 3 else HOLDS, find_fix=True)
    assert answer.specifier == ">=2.0.0,<=2.2.0"
    assert "The last torch on which the fault shows is 2.2.0; 2.3.0 is" in answer.text()


def test_what_is_skipped_is_named(tmp_path: Path) -> None:
    answer, _, _ = searched(tmp_path, lambda n: SKIP if n in (0, 4, 5) else SHOWS if n >= 6 else HOLDS)
    assert answer.first == "2.1.0"
    assert [verdict.torch for verdict in answer.skipped] == ["2.4.0", "2.5.0"]
    assert "2.4.0 (no wheel); 2.5.0 (no wheel)" in answer.text()


def test_a_search_whose_folder_cannot_be_written_goes_on(tmp_path: Path) -> None:
    (tmp_path / "repro.bisect.json").mkdir()
    answer, _, _ = searched(tmp_path, lambda n: SHOWS if n >= 6 else HOLDS)
    assert answer.after.torch == "2.6.0"


def test_a_search_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    searched(tmp_path, lambda n: SHOWS if n >= 6 else HOLDS)
    _, tried, _ = searched(tmp_path, lambda n: SHOWS if n >= 6 else HOLDS)
    assert tried == []
    (tmp_path / "repro.bisect.json").write_text("{", encoding="utf-8")  # a file that was cut off begins anew
    assert searched(tmp_path, lambda n: SHOWS if n >= 6 else HOLDS)[1]


@pytest.mark.parametrize(
    ("word", "words"),
    [
        (SHOWS, "the fault shows on both 2.0.0 and 2.9.0; give other ends"),
        (HOLDS, "the fault shows on neither 2.0.0 and 2.9.0; give other ends"),
        (SKIP, "no release can say anything"),
    ],
)
def test_nothing_to_search_for(word: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(HookcheckError, match=words):
        searched(tmp_path, lambda n: word)


def test_a_script_that_crashes_at_hand_and_at_an_end_ends_the_search(tmp_path: Path) -> None:
    tried: list[str] = []

    def attempt(torch: str) -> Verdict:
        tried.append(torch)
        return Verdict(torch, SKIP, "crashed: NameError" if torch < "2.6.0" else "crashed: AttributeError")

    memory = Memory.of(script(tmp_path, "pass"))
    words = (
        r"^the script crashes on torch 2\.0\.0 in the same way as on torch 2\.4\.0, which is at hand \(crashed: NameEr"
    )
    with pytest.raises(HookcheckError, match=words):
        bisect(RELEASES, attempt, memory, lambda *_: None, present="2.4.0")
    assert tried == ["2.4.0", "2.0.0"]
    with pytest.raises(HookcheckError, match=r"^torch 2\.0\.0 cannot be an end"):
        bisect(RELEASES, attempt, memory, lambda *_: None, named=True, present="2.4.0")
    with pytest.raises(HookcheckError, match="no release can say anything"):
        bisect(RELEASES[:6], attempt, memory, lambda *_: None, present="2.9.0")  # it is not among them


def test_a_script_that_crashes_at_hand_alone_is_searched(tmp_path: Path) -> None:
    def attempt(torch: str) -> Verdict:
        return (
            Verdict(torch, SHOWS if torch >= "2.6.0" else HOLDS)
            if torch != "2.9.0"
            else Verdict(torch, SKIP, "crashed")
        )

    answer = bisect(RELEASES, attempt, Memory.of(script(tmp_path, "pass")), lambda *_: None, present="2.9.0")
    assert (answer.after.torch, answer.last) == ("2.6.0", "2.8.0")


@pytest.mark.parametrize(
    ("find_fix", "words"),
    [
        (False, "the fault shows on 2.0.0 and not on 2.9.0: with --find-fix the release that mended it is searched"),
        (True, "the fault shows on 2.9.0 and not on 2.0.0: without --find-fix the release in which it came is search"),
    ],
)
def test_the_other_way_round_is_said_after_both_ends(find_fix: bool, words: str, tmp_path: Path) -> None:
    with pytest.raises(HookcheckError, match=words):
        searched(tmp_path, lambda n: SHOWS if (n < 3) is not find_fix else HOLDS, find_fix)
    assert set(Memory.of(tmp_path / "repro.py").verdicts) == {"2.0.0", "2.9.0"}
