"""How definitions of a program become a script, which formatters leave as it is."""

from __future__ import annotations

from hookcheck.repro.alone import Alone
from hookcheck.repro.writing import Written

from .cases import PROGRAMS

LONG = "forward raises: always_call=True, with_kwargs=False of the module's own hook"


def test_a_long_name_of_a_control_is_told_by_its_first_words() -> None:
    written = Written(PROGRAMS["HD-01"], "cpu", Alone())
    text = 'check.equal("{}", 1, 1)\ncheck.equal("forward gives {}", 1, 2)'
    script = written.script(text.format(LONG, "a" * 80), f"forward gives {'a' * 80}", "", "", LONG)
    assert '2 if name.startswith("forward raises") else 1' in script
    script = written.script(text.format("short", "a"), "forward gives a", "", "", "short")
    assert '2 if name == "short" else 1' in script
