"""Does a copy of a process that has imported torch run a script as a process of its own does? And for how long?"""

from __future__ import annotations

import os
import re
import sys
from textwrap import dedent
from types import SimpleNamespace

import pytest

from hookcheck.repro import prepared
from hookcheck.repro.choice import executed_alone
from hookcheck.repro.search import InTime

from .cases import PROGRAMS

SAYS = "import sys\nimport torch\nprint(sys.argv[1:], __name__, torch.ones(2).sum().item())\n"
NEEDS_FORKS = pytest.mark.skipif(sys.platform != "linux", reason="it forks with torch")


ENDS = {
    "raise SystemExit(1)": 1,
    "sys.exit('words')": 1,
    "raise ValueError": 1,
    "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)": -11,
    "x = torch.ones(1, requires_grad=True)\nx.exp().backward()": 0,
}
"""How scripts end, and the exit code."""


@NEEDS_FORKS
def test_a_copy_ends_as_a_process_of_its_own() -> None:
    with prepared.prepared() as run:
        for end, code in ENDS.items():
            assert run(SAYS + "sys.stdout.flush()\n" + end) == (code, "['--run'] __main__ 2.0\n")


@NEEDS_FORKS
@pytest.mark.slow
def test_what_hangs_is_ended_and_the_next_script_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "ALONE_HANG_LIMIT", 1.0)
    with prepared.prepared() as run:
        assert run("import time\ntime.sleep(600)") == (None, "it hangs")
        monkeypatch.setattr(prepared, "ALONE_HANG_LIMIT", 240)
        assert run(SAYS)[0] == 0


@NEEDS_FORKS
def test_what_takes_much_longer_than_the_first_script_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "LEAST", 0.5)
    monkeypatch.setattr(prepared, "SLOWER", 0)
    with prepared.prepared() as run:
        assert run(SAYS)[0] == 0
        assert run("import time\ntime.sleep(600)") == (None, "it hangs")


def test_without_forks_each_script_has_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork", raising=False)
    with prepared.prepared() as run:
        assert run is executed_alone


def test_what_a_script_imports() -> None:
    text = 'import sys\nfrom torch.nn import functional\nimport_module("torch.distributed")\nf("torch or nothing")'
    assert prepared.modules(text) == ["sys", "torch", "torch.distributed", "torch.nn", "torch.nn.functional"]


def test_after_its_time_no_script_shows_anything() -> None:
    tried: list[int] = []
    run = InTime(lambda script: (1, script), 0.0, tried.append)
    assert [run("first"), run("second")] == [(1, "first"), (None, "")]
    assert run.over
    run = InTime(lambda script: (1, script), 60.0, tried.append)
    assert [run("first"), run("second")] == [(1, "first"), (1, "second")]
    assert tried == [0, 0, 1]


def test_its_time_begins_when_the_first_script_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("hookcheck.repro.search.time", SimpleNamespace(monotonic=lambda: clock[0]))

    def slow(script: str) -> tuple[int, str]:
        clock[0] += 80.0
        return 1, script

    run = InTime(slow, 60.0)
    assert [run("first"), run("second"), run("third")] == [(1, "first"), (1, "second"), (None, "")]


def test_what_is_shortest_when_the_time_is_up_is_the_script() -> None:
    from hookcheck.contract.ledger import Ledger
    from hookcheck.programs.running import examine_program
    from hookcheck.repro.program import LATE, program_script

    from .cases import executed

    fact = examine_program(PROGRAMS["GL-13"], Ledger(()), "cpu").deviations[0].subject
    left = iter([True] * 6)

    class Few(InTime):
        def __call__(self, script: str) -> tuple[int | None, str]:
            return executed(script) if next(left, False) else (None, "")

        @property
        def over(self) -> bool:
            return True

    text = program_script(PROGRAMS["GL-13"], None, fact, Few(executed, 60.0))
    code, said = executed(text)
    assert code == 1
    assert fact in said
    assert f"# {LATE}" in text or re.search(r"SystemExit\(\d if", text)


@NEEDS_FORKS
def test_a_script_runs_two_processes_as_programs_do() -> None:
    text = """
        from hookcheck.repro.forking import of_two
        from hookcheck.programs.check import Check
        import torch

        def act(rank):
            both = [None, None]
            torch.distributed.all_gather_object(both, 10 * rank)
            return both

        print(of_two(Check(), act))
        """
    assert executed_alone(dedent(text)) == (0, "[0, 10]\n")
