"""The script of a program: of its own source what one fact needs, bare of types and docstrings, and a short check.

A fact that is stated on the way to it, and is so, is its control.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Optional

from hookcheck.contract.ledger import load
from hookcheck.errors import HookcheckError
from hookcheck.programs.program import WHOLE, Program
from hookcheck.repro.alone import PACKAGE, Alone, alone
from hookcheck.repro.contrast import STATES, contrasted, ended, lists_what_is_wrong, moved, once, otherwise, vain
from hookcheck.repro.heading import LACKS
from hookcheck.repro.inlining import inlined, plainer
from hookcheck.repro.opening import left_open
from hookcheck.repro.quieter import uncalled, unhooked, unlooked, unpaired, untried
from hookcheck.repro.raising import raising
from hookcheck.repro.simpler import simpler
from hookcheck.repro.slicing import sliced
from hookcheck.repro.syntax import is_fact, reads
from hookcheck.repro.turns import flat, one_turn, two_turns
from hookcheck.repro.unstated import done, past, undisturbed
from hookcheck.repro.writing import LEFT, NESTED, NUMBER, NUMBERS, PLAIN, TENSOR, Written

GIVEN = {"hookcheck.programs.check": frozenset({"Check", "NotOffered", "NotRun"})}
"""What a script does without."""

MORE = re.compile(rf"{PACKAGE}|^ *(?:from|import) (?:hypothesis|numpy|torchvision)\b", re.MULTILINE)
"""What shows that a program needs more than torch: generated acts, an oracle's arrays, whole models."""

Run = Callable[[str], "tuple[int | None, str]"]
"""Runs a script and gives its exit code and what it says."""

Change = Callable[[str], Optional[str]]
"""Gives a text that is smaller; None where it knows none."""


def program_script(program: Program, device: str | None = None, fact: str = "", run: Run | None = None) -> str:
    """The script that runs ``program`` on ``device`` (None: the one that it is about, or ``cpu``).

    It ends with exit code 1 where a fact is not so, 0 where all are, and 3 where its torch or its machine lacks what it
    needs. With a ``fact`` it is about that alone, as far as it still shows that one where it is ``run``.

    Raises:
        HookcheckError: the program is about another device, or needs more than torch, as generated acts do.
    """
    more = HookcheckError(f"no script can be written yet for program {program.id}: it needs more than torch")
    try:
        collected = alone(program.judge.__module__, program.judge.__name__, GIVEN)
    except ValueError:
        raise more from None
    if any(map(MORE.search, (*collected.imports, *collected.definitions))):
        raise more
    return script_of(program, device, fact, run, collected)


def script_of(program: Program, device: str | None, fact: str, run: Run | None, collected: Alone) -> str:
    """The same of a program that is ``collected``.

    Raises:
        HookcheckError: the program is about another device.
    """
    about = program.device if program.device != "any" else None
    device = device or about or "cpu"
    if about not in (None, device):
        raise HookcheckError(f"program {program.id} is about {about}; add --device {about}")
    text = _lacking("\n\n\n".join(collected.definitions))
    written = Written(program, device, collected)
    if not fact or run is None:
        short = sliced(text, fact) if fact else None
        return written.script(short or text, fact if short else "")
    if fact == WHOLE:
        return _of_whole(written, text, run)
    return _of_fact(written, text, fact, run) or written.script(text, "")


def _of_whole(written: Written, text: str, run: Run) -> str:
    """The script of a program that deviates as a whole: of the fact that it ends with, or of how it ends."""
    script = written.script(text, "")
    code, said = run(script)
    fact = _last(said).partition(STATES)[0] if code == 1 and STATES in _last(said) else ""
    if fact:
        return _of_fact(written, text, fact, run) or script
    search = Search(written, "", run, ends=(code, _last(said)))
    stated = raising(text, search.shows)
    script_of_call = _of_fact(written, *stated, run) if stated else None
    if script_of_call:
        return script_of_call
    short = search.changed(text, *search.smaller)
    beside = (each for name in _unsaid(search, short) for each in otherwise(short, name))
    return next(_contrasting(search, beside), None) or written.script(short, "")


def _unsaid(search: Search, text: str) -> list[str]:
    """The facts of a text that ends ahead of the first of them; none where it says one."""
    calls = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and is_fact(n) and n.args)
    names = [str(n.args[0].value) for n in calls if isinstance(n.args[0], ast.Constant)]
    return [] if STATES in search.ended(text)[1] else names


def _of_fact(written: Written, text: str, fact: str, run: Run) -> str | None:
    """The script of a fact, with a control where that is no longer than scripts may be; None where it does not show."""
    racing = bool(varying(written.program))
    search = Search(written, fact, run if racing else lru_cache(maxsize=None)(run), tries=RACE if racing else 1)
    search = replace(search, raised=raised(search.ended(text)[1], fact))
    short = sliced(text, fact)
    if short is not None and not search.shows(short):
        text = past(text, fact, search.ended, failing)
        short = sliced(text, fact)
    if short is not None and not search.shows(short):
        text = search.turned(text)  # another turn may have ended it before
        short = sliced(text, fact)
    if short is not None and not search.shows(short):
        search = replace(search, written=search.past_others)
    if short is None or not search.shows(short):
        return None
    alone = WITHOUT
    for script in _controlled(search, text, short):
        if script.count("\n") <= LONGEST:
            return script
        alone = TOO_LONG
    shortest = search.opened(search.short(short))
    remark = "" if search.stated(shortest) else READ_ALONE if reads(ast.parse(shortest)) else alone
    return search.plainest(shortest, remark)


def _controlled(search: Search, text: str, short: str) -> Iterator[str]:
    """The scripts of a fact with another one ahead of it, or with itself without a hook, that is so."""
    text = past(text, search.fact, search.ended, failing)
    said = search.ended(text)[1]
    whole = [name for name in facts_of(said, search.fact) if search.passes(said, name)]
    names = list(dict.fromkeys(reversed(whole)))
    yield from (search.script(of, name) for of, name in _on_the_way(search, text, short, names[:NEAREST]))
    shortest = search.short(short)
    yield from _contrasting(search, contrasted(shortest, search.fact))
    yield from (search.script(of, name) for of, name in _aside(search, text, short, names[:NEAR]))
    yield from _contrasting(search, otherwise(shortest, search.fact))
    still_open = search.opened(shortest, LONGEST - ROOM)
    if still_open != shortest:
        yield from _contrasting(search, contrasted(still_open, search.fact))
        yield from _contrasting(search, otherwise(still_open, search.fact))


def _contrasting(search: Search, texts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The scripts of the texts that do all twice, of which the first turn is so, both times if it is done twice."""
    for of, name in texts:
        beside = replace(search, control=name, same=True)
        if beside.shows(of) and beside.ended(once(of))[0] == 0:
            yield beside.plainest(of)


def _on_the_way(search: Search, text: str, short: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """What of a program shows a fact and, ahead of it, another one that is so; and the name of that.

    It is one that is stated on the way in any case, the nearest of ``names`` that asks for nothing besides, or one
    right behind it.
    """
    alone = search.turned(short)
    yield from ((alone, name) for name in reversed(search.stated(alone)[-NEAR:]))
    besides = ((sliced(text, search.fact, name), name) for name in names)
    yield from islice(search.showing((of, name) for of, name in besides if of != short), 1)
    for ahead in moved(text, search.fact):
        stated = search.stated(ahead)[-1:]
        yield from search.showing((sliced(ahead, search.fact, name), name) for name in stated)


def _aside(search: Search, text: str, short: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """The same of another turn, or of a fact of ``names`` that asks for more."""
    if not search.written.program.alone:
        for of in two_turns(short, search.fact, search.shows, lambda candidate: search.ended(candidate)[1]):
            stated = search.stated(of)
            yield from ((of, name) for name in reversed(stated[-NEAR:]))
            if stated:
                break
    yield from search.showing((sliced(text, search.fact, name, needed=True), name) for name in names)


RACE = 5
"""So many times what shows now one thing and now another is run, until it shows what is looked for."""

NEAREST = 6
"""So many of the facts that are stated ahead of one are tried as its control."""

NEAR = 2
"""So many of them where each is tried to the end."""

READ_ALONE = "no control: nothing is run, only names are looked up"
TOO_LONG = "no control: with one the script would pass 60 lines"
WITHOUT = "no control: the fault shows whichever part is left out or changed"
"""What a script says where it has none."""

LONGEST = 60
"""So many lines a script has at most."""

ROOM = 12
"""So many of them a control takes at most that most scripts have."""


def facts_of(said: str, fact: str) -> list[str]:
    """The names of the facts that a script said ahead of one."""
    names = _stated(said)
    return names[: names.index(fact)] if fact in names else []


def is_so(said: str, fact: str) -> bool:
    """Whether a script observed what it expects of a fact, each time."""
    ends = [line[len(fact) + len(STATES) :] for line in said.split("\n") if line.startswith(f"{fact}{STATES}")]
    halves = [end[: (len(end) - len(OBSERVED)) // 2] for end in ends]
    return all(end == f"{half}{OBSERVED}{half}" for end, half in zip(ends, halves))


OBSERVED = ", observed "


def failing(said: str) -> str:
    """The name of the fact that a script ended with."""
    return (_stated(said) or [""])[-1]


def _stated(said: str) -> list[str]:
    return [line.partition(STATES)[0] for line in said.split("\n") if STATES in line]


def raised(said: str, fact: str) -> str:
    """The class of the exception that a script observed where the fact expects none; empty where there is none."""
    match = re.search(rf"(?m)^{re.escape(fact)}{STATES}None, observed (\w+): ", said)
    return match[1] if match else ""


def varying(program: Program) -> frozenset[str]:
    """The facts of a program that show now one thing and now another, as the ledger knows."""
    entries = (entry for entry in load() if entry.varies and program.id in entry.clauses)
    return frozenset(fact for entry in entries for fact in dict(entry.when).get("fact", ()))


def may_hide(text: str, expected: str, observed: str, plain: str) -> bool:
    """Whether a torch that does what is ``expected`` may give tensors that ``plain`` leaves, where this one gives none.

    A tensor is expected as the list of its numbers. What a program makes numbers of itself is none.
    """
    lists = {TENSOR: WITHIN, NESTED: OF_DICTS}.get(plain, LISTED)
    return bool(lists.search(expected)) and not re.search(r"\d", observed) and not UNPACKED.search(text)


LISTED = re.compile(r"[\[(][^\])]*-?\d")
WITHIN = re.compile(r"[\[({][^\])]*[\[(][^\])]*-?\d")
OF_DICTS = re.compile(r"\{[^}]*[\[(][^\])]*-?\d")
"""Numbers in a list or tuple, in one that is in another, in one that is in a dict."""

UNPACKED = re.compile(r"\.(?:tolist|item)\(|\bfloat\(")
"""What makes numbers of tensors."""


def _last(said: str) -> str:
    return said.strip().split("\n")[-1]


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

    def ended(self, text: str, plain: str = PLAIN) -> tuple[int | None, str]:
        """Exit code of the script of a text, and what it says; None where there is no such script.

        It is run until it shows the fact, but no more than ``tries`` times.
        """
        code: int | None = None
        said = ""
        for _ in range(self.tries):
            try:
                code, said = self.run(self.written.script(text, self.fact, plain))
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
            return ahead.partition(STATES)[0] == self.control and (code, _last(said)) == self.ends
        if code != 1 or failing(said) != self.fact or (self.raised and raised(said, self.fact) != self.raised):
            return False
        if self.control and f"{self.control}{STATES}" not in said:
            return False
        if self.control and not self.passes(said, self.control):
            return False
        if self.control and vain(said, self.control, self.fact) and not (self.same and lists_what_is_wrong(text)):
            return False
        compared = re.split(rf"{re.escape(self.fact)}{STATES}(?:None|\[\]|\{{\}}|\(\)), ", said)[0]  # by no element
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
        return search.plainest(search.short(text))

    def short(self, text: str) -> str:
        """The shortest text that shows it."""
        turned: tuple[Change, ...] = (self.turned, self._sliced, self._simpler)
        short = self.changed(text, *turned, *turned, self._sliced, *self.smaller, self._sliced, self._simpler)
        return self.changed(short, lambda text: ended(text, self.fact), self._simpler)

    def opened(self, text: str, longest: int = LONGEST) -> str:
        """The text with its contexts left open, and with less besides, where its script is longer otherwise."""
        disturbing = (lambda of: undisturbed(of, self.fact), unlooked, unhooked)
        for change in (left_open, unpaired, uncalled, untried, *disturbing):
            if self.plainest(text, WITHOUT).count("\n") > longest:
                text = self.changed(text, change, self._sliced, self._simpler)
        return text

    @property
    def past_others(self) -> Written:
        """What writes scripts that go on where another fact is not so."""
        return Written(self.written.program, self.written.device, self.written.code, others_end=False)

    def plainest(self, text: str, remark: str = "") -> str:
        """The script of a text that shows it, with as little as it needs to compare."""
        if not self.written.others_end:
            ending = replace(self, written=Written(self.written.program, self.written.device, self.written.code))
            if ending.shows(text):
                return ending.plainest(text, remark)
        fewer = (plain for plain in ("", NUMBER, TENSOR, NUMBERS, NESTED) if self.fact and self.shows(text, plain))
        plain = next(fewer, PLAIN)
        return self.written.script(text, self.fact, plain, remark)

    def turned(self, text: str) -> str:
        """The text with what is done in turns done once."""
        return one_turn(text, self.fact, self.shows, lambda candidate: self.ended(candidate)[1])

    def _sliced(self, text: str) -> str | None:
        return sliced(text, self.fact, self.control)

    def _simpler(self, text: str) -> str:
        known = [lambda text: done(text, self.fact)] if self.fact else []
        return simpler(text, self.written.program.since, self.shows, known)


def _lacking(text: str) -> str:
    """The text with the exit code of a script in the place of the exceptions by which a program ends early."""
    raises = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Raise) and re.match(r"(NotOffered|NotRun)\b", ast.unparse(node.exc) if node.exc else "")
    ]
    for node in sorted(raises, key=lambda node: -node.lineno):
        lines = text.split("\n")
        lines[node.lineno - 1 : node.end_lineno] = [f"{' ' * node.col_offset}raise SystemExit({LACKS})"]
        text = "\n".join(lines)
    return re.sub(r"(?m)^( *)if check\.device != .cpu.:\n.*\n", "", text)
