"""How definitions of a program become a script, which formatters leave as it is."""

from __future__ import annotations

import pytest

from hookcheck.repro.alone import Alone
from hookcheck.repro.search import Search
from hookcheck.repro.writing import Written

from .cases import PROGRAMS, executed

BODY = 'check.equal("{}", 1, 1)\ncheck.equal("{}", 1, 2)'
CONTEXT = "always_call=True, with_kwargs=False of the module's own hook, and many more words"


@pytest.mark.parametrize(
    ("control", "fact", "condition"),
    [
        ("short", "a", '1 if name == "a" else 2'),
        (f"forward raises: {CONTEXT}", f"forward gives 1: {CONTEXT}", '2 if name.startswith("forward raises") else 1'),
        (f"{CONTEXT}: after it", f"{CONTEXT}: within it", '2 if name.endswith("after it") else 1'),
        (f"{CONTEXT} and more", CONTEXT, '1 if name.endswith("words") else 2'),
    ],
)
def test_a_long_name_is_told_by_its_first_or_last_words(control: str, fact: str, condition: str) -> None:
    script = Written(PROGRAMS["HD-01"], "cpu", Alone()).script(BODY.format(control, fact), fact, "", "", control)
    assert f"raise SystemExit({condition})" in script


def test_a_turn_without_which_the_fact_is_another_one_stays() -> None:
    search = Search(Written(PROGRAMS["HD-01"], "cpu", Alone()), "fact", executed)
    text = "log = []\nfor n in (1, 2):\n    log.append(n)\nfor n in (3, 4):\n    n += 1\ncheck.equal('fact', log, [])"
    assert search._fewer(text) == text.replace("(3, 4)", "(4,)")
