"""Choices of situations that meet: counted, and each that does not meet has a reason."""

from __future__ import annotations

from hookcheck.programs.situations.acts import Situation
from hookcheck.programs.situations.corpus import read
from hookcheck.programs.situations.draw import missing_threes, packed
from hookcheck.programs.situations.fitting import REASONS
from hookcheck.programs.situations.met import NOT_DRAWN, PAIRS, THREES, counts, meetings, reasons

SITE, OUTER, HOST = "input", "autocast", "replica"


def test_what_meets_is_counted() -> None:
    twice = (Situation(SITE, outer=OUTER, host=HOST), Situation(SITE, outer=OUTER))
    by_choices = {
        meeting.choices: meeting for meeting in meetings(twice, (("site", "outer"), ("site", "outer", "host")))
    }
    assert by_choices[("site", SITE), ("outer", OUTER)].situations == 2
    assert by_choices[("site", SITE), ("outer", OUTER), ("host", HOST)].situations == 1
    alone = by_choices[("site", "output"), ("outer", OUTER)]
    assert (alone.situations, alone.reason) == (0, NOT_DRAWN)
    assert alone.row["choices"] == ["site: output", f"outer: {OUTER}"]
    judged = {meeting.choices: meeting.situations for meeting in meetings(twice, (("clause", "host"),))}
    assert judged[("clause", "SI-04"), ("host", HOST)] == judged[("clause", "SI-04"), ("host", "plain")] == 1
    assert judged[("clause", "SI-01"), ("host", HOST)] == 0
    rows = {row["axes"]: row for row in counts(by_choices.values())}
    assert rows["site × outer"]["reached"] == 1
    assert rows["site × outer × host"]["reached"] == 2


def test_every_pair_that_is_possible_is_in_some_situation_and_every_three_with_a_lane() -> None:
    pairs = tuple(meetings(read(), (*PAIRS, *THREES)))
    assert [meeting.choices for meeting in pairs if meeting.reason == NOT_DRAWN] == []
    assert {row["reason"] for row in reasons(pairs)} <= {reason.why for reason in REASONS}


def test_a_choice_that_is_in_no_situation_is_told() -> None:
    left = [situation for situation in read() if situation.host != HOST]
    choices = {meeting.choices for meeting in meetings(left, PAIRS) if meeting.reason == NOT_DRAWN}
    assert (("site", SITE), ("host", HOST)) in choices
    alone = {meeting.choices for meeting in meetings(left, THREES) if meeting.reason == NOT_DRAWN}
    assert (("lane", "x"), ("trouble", "raises"), ("host", HOST)) in alone
    assert len(missing_threes(left)) == len(alone)
    assert missing_threes([*left, *packed(missing_threes(left))]) == []
