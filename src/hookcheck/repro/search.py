"""Which text of a program still shows its fact? It is run, and made smaller as long as it does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Optional

from hookcheck.repro.contrast import STATES, ended, lists_what_is_wrong, vain
from hookcheck.repro.heading import LONGEST
from hookcheck.repro.inlining import inlined, plainer
from hookcheck.repro.opening import left_open
from hookcheck.repro.quieter import uncalled, uncleared, unhooked, unlooked, unneeded, unpaired, untried
from hookcheck.repro.said import OBSERVED, amount, facts_of, failing, is_so, last, may_hide, raised
from hookcheck.repro.simpler import simpler
from hookcheck.repro.slicing import sliced
from hookcheck.repro.turns import fewer_turns, flat, one_turn
from hookcheck.repro.unstated import done, undisturbed
from hookcheck.repro.writing import LEFT, NESTED, NUMBER, NUMBERS, PLAIN, TENSOR, Written

Run = Callable[[str], "tuple[int | None, str]"]
"""Runs a script and gives its exit code and what it says."""

Change = Callable[[str], Optional[str]]
"""Gives a text that is smaller; None where it knows none."""


@dataclass
class InTime:
    """A ``run`` for so many ``seconds``, which begin when the first script has run, since what that imports the others
    find there; after that no script shows anything any more, and what is the shortest by then stays. ``tried`` is told
    how many scripts were run."""

    run: Run
    seconds: float
    tried: Callable[[int], None] = lambda tried: None
    scripts: int = 0
    began: float | None = None

    def __call__(self, script: str) -> tuple[int | None, str]:
        """Runs a script, if there is time."""
        if self.over:
            return None, ""
        self.tried(self.scripts)
        self.scripts += 1
        result = self.run(script)
        self.began = self.began or time.monotonic()
        return result

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.began is not None and time.monotonic() - self.began >= self.seconds


WITHOUT = "no control: the fault shows whichever part is left out or changed"
"""What a script says that has none."""


@dataclass(frozen=True)
class Search:
    """What shows a ``fact`` of a program, and ahead of it a ``control``, which may be the ``same`` call; or, without a
    fact, how its script ``ends``."""

    written: Written
    fact: str
    run: Run
    control: str = ""
    same: bool = False
    ends: tuple[int | None, str] = (1, "")
    tries: int = 1
    raised: str = ""
    """The class of the exception that is in the place of what the fact expects, if that is known."""
    amount: str = ""
    """How much is observed of the fact, if that is known."""

    def ended(self, text: str, plain: str = PLAIN) -> tuple[int | None, str]:
        """Exit code of the script of a text, and what it says; None where there is no such script.

        It is run until it shows the fact, but no more than ``tries`` times.
        """
        code: int | None = None
        said = ""
        for _ in range(self.tries):
            try:
                code, said = self.run(self.written.draft(text, self.fact, plain))
            except Exception:
                return None, ""
            if code == 1 and failing(said) == self.fact:
                break
        return code, said

    def shows(self, text: str, plain: str = PLAIN) -> bool:
        """Whether a text shows it; with less than ``PLAIN`` only if that makes no difference to what is compared."""
        code, said = self.ended(text, plain)
        if not self.fact:
            ahead, _, said = said.partition("\n") if self.control else ("", "", said)
            return ahead.partition(STATES)[0] == self.control and (code, last(said)) == self.ends
        if code != 1 or failing(said) != self.fact or (self.raised and raised(said, self.fact) != self.raised):
            return False
        if self.amount and amount(said, self.fact) not in (self.amount, ""):
            return False
        if self.control and f"{self.control}{STATES}" not in said:
            return False
        if self.control and not self.passes(said, self.control):
            return False
        if self.control and vain(said, self.control, self.fact) and not (self.same and lists_what_is_wrong(text)):
            return False
        stating = "\n".join(line for line in said.split("\n") if STATES in line)  # torch may print more besides
        compared = re.split(rf"{re.escape(self.fact)}{STATES}(?:None|\[\]|\{{\}}|\(\)), ", stating)[0]  # by no element
        expected, _, observed = said.partition(f"{self.fact}{STATES}")[2].partition(OBSERVED)
        return plain == PLAIN or not (LEFT[plain].search(compared) or may_hide(text, expected, observed, plain))

    def showing(self, texts: Iterable[tuple[str | None, str]]) -> Iterator[tuple[str, str]]:
        """Those of the texts that show it ahead of which the control is so that each has beside it."""
        return ((of, name) for of, name in texts if of and replace(self, control=name).shows(of))

    def stated(self, text: str) -> list[str]:
        """The facts that are so ahead of the one that is not, if it shows."""
        code, said = self.ended(text)
        names = facts_of(said, self.fact) if code == 1 else []
        return [name for name in names if not vain(said, name, self.fact) and self.passes(said, name)]

    def passes(self, said: str, name: str) -> bool:
        """Whether a fact that a script has stated ahead of the one it is about is so: one that is not may end it."""
        return self.written.others_end or is_so(said, name)

    def changed(self, text: str, *changes: Change) -> str:
        """The text after the changes that leave it what it shows."""
        for change in changes:
            new = change(text)
            text = new if new and new != text and self.shows(new) else text
        return text

    @cached_property
    def smaller(self) -> tuple[Change, ...]:
        """What makes the text of a program smaller that is about one thing."""
        return (
            lambda text: flat(text, self.written.program.judge.__name__),
            lambda text: inlined(plainer(text)),
            self._simpler,
        )

    def script(self, text: str, control: str = "") -> str:
        """The script of a text that shows it."""
        search = replace(self, control=control)
        return search.fitting(search.short(text))

    def short(self, text: str) -> str:
        """The shortest text that shows it."""
        turned: tuple[Change, ...] = (self.turned, self._sliced, self._simpler)
        short = self.changed(text, *turned, *turned, self._sliced, *self.smaller, self._sliced, self._simpler)
        return self.changed(short, lambda text: ended(text, self.fact), unneeded, uncleared, self._simpler)

    def opened(self, text: str, longest: int = LONGEST) -> str:
        """The text with its contexts left open, and with less besides, where its script is longer otherwise."""
        disturbing = (lambda of: undisturbed(of, self.fact), unlooked, unhooked)
        for change in (left_open, unpaired, uncalled, untried, *disturbing, self._fewer):
            if self.plainest(text, WITHOUT).count("\n") > longest:
                text = self.changed(text, change, self._sliced, self._simpler)
        return text

    def _fewer(self, text: str) -> str:
        """The text with one turn alone of each loop over what is listed, if the fact is as it was: where it is another
        one, a torch without the fault might show it as well."""
        is_as_it_was = self.ended(text)
        shorter = next((of for of in fewer_turns(text) if self.ended(of) == is_as_it_was and self.shows(of)), None)
        return self._fewer(shorter) if shorter else text

    @property
    def past_others(self) -> Written:
        """What writes scripts that go on where another fact is not so."""
        return Written(self.written.program, self.written.device, self.written.code, others_end=False)

    @property
    def unwatched(self) -> Search:
        """The same of scripts that do not watch whether they crash or hang: what shows a fact does neither here."""
        of = self.written
        return replace(self, written=Written(of.program, of.device, of.code, of.others_end, watched=False))

    def plainest(self, text: str, remark: str = "") -> str:
        """The script of a text that shows it, with as little as it needs to compare."""
        if not self.written.others_end:
            of = self.written
            ending = replace(self, written=Written(of.program, of.device, of.code, watched=of.watched))
            if ending.shows(text):
                return ending.plainest(text, remark)
        fewer = (plain for plain in ("", NUMBER, TENSOR, NUMBERS, NESTED) if self.fact and self.shows(text, plain))
        plain = next(fewer, PLAIN)
        return self.written.script(text, self.fact, plain, remark, self.control)

    def fitting(self, text: str, remark: str = "") -> str:
        """The same, of a script that does not watch over itself where one that does is too long."""
        script = self.plainest(text, remark)
        is_too_long = self.written.watched and script.count("\n") > LONGEST
        return self.unwatched.plainest(text, remark) if is_too_long else script

    def turned(self, text: str) -> str:
        """The text with what is done in turns done once."""
        return one_turn(text, self.fact, self.shows, lambda candidate: self.ended(candidate)[1])

    def _sliced(self, text: str) -> str | None:
        return sliced(text, self.fact, self.control)

    def _simpler(self, text: str) -> str:
        known = [lambda text: done(text, self.fact)] if self.fact else []
        return simpler(text, self.written.program.since, self.shows, known)
