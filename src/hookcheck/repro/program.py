"""The script of a program: of its own source what one fact needs, bare of types and docstrings, and a short check.

A fact that is stated on the way to it, and is so, is its control.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from hookcheck.contract.ledger import load
from hookcheck.errors import HookcheckError
from hookcheck.programs.program import WHOLE, Program
from hookcheck.repro.alone import PACKAGE, Alone, alone
from hookcheck.repro.contrast import STATES, contrasted, moved, once, otherwise
from hookcheck.repro.heading import LACKS, LONGEST, TOO_LONG
from hookcheck.repro.raising import raising
from hookcheck.repro.said import amount, facts, facts_of, failing, last, raised
from hookcheck.repro.search import WITHOUT, InTime, Run, Search
from hookcheck.repro.slicing import sliced
from hookcheck.repro.syntax import is_fact, reads
from hookcheck.repro.turns import one_turn, two_turns
from hookcheck.repro.unstated import past
from hookcheck.repro.writing import Written

GIVEN = {"hookcheck.programs.check": frozenset({"Check", "NotOffered", "NotRun"})}
"""What a script does without."""

MORE = re.compile(rf"{PACKAGE}|^ *(?:from|import) (?:hypothesis|numpy|torchvision)\b", re.MULTILINE)
"""What shows that a program needs more than torch: generated acts, an oracle's arrays, whole models."""


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
    fact = last(said).partition(STATES)[0] if code == 1 and STATES in last(said) else ""
    if fact:
        return _of_fact(written, text, fact, run) or script
    search = Search(written, "", run, ends=(code, last(said)))
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
    search = replace(search, amount=amount(search.ended(short)[1], fact))
    alone = WITHOUT
    for script in _controlled(search, text, short):
        if script.count("\n") <= LONGEST:
            return script
        alone = TOO_LONG
    shortest = search.opened(search.short(short))
    alone = LATE if isinstance(run, InTime) and run.over else alone
    remark = "" if search.stated(shortest) else READ_ALONE if reads(ast.parse(shortest)) else alone
    return search.fitting(shortest, remark)


def _controlled(search: Search, text: str, short: str) -> Iterator[str]:
    """The scripts of a fact with another one ahead of it, or with itself without a hook, that is so."""
    text = past(text, search.fact, search.ended, failing)
    said = search.ended(text)[1]
    ahead = facts_of(said, search.fact) or facts(said)[:-1]  # another fact may end it before
    whole = [name for name in ahead if name != search.fact and search.passes(said, name)]
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
            yield beside.fitting(of)


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
    yield from search.showing((_with(search, text, name), name) for name in names)


def _with(search: Search, text: str, name: str) -> str | None:
    """What a fact and another one need; of a loop that states that one, where another of its turns ends all, its turn
    alone."""
    of = sliced(text, search.fact, name, needed=True)
    beside = replace(search, control=name)
    return of if of is None or beside.shows(of) else one_turn(of, name, beside.shows)


RACE = 5
"""So many times what shows now one thing and now another is run, until it shows what is looked for."""

NEAREST = 6
"""So many of the facts that are stated ahead of one are tried as its control."""

NEAR = 2
"""So many of them where each is tried to the end."""

READ_ALONE = "no control: nothing is run, only names are looked up"
LATE = "no control: the time was up before one was tried"
"""What a script says that has none, beside `WITHOUT` and `TOO_LONG`."""

ROOM = 12
"""So many of them a control takes at most that most scripts have."""


def varying(program: Program) -> frozenset[str]:
    """The facts of a program that show now one thing and now another, as the ledger knows."""
    entries = (entry for entry in load() if entry.varies and program.id in entry.clauses)
    return frozenset(fact for entry in entries for fact in dict(entry.when).get("fact", ()))


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
