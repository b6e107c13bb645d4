"""A script of a network without what its one network does not need: general helpers, and a function that runs once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace

from hookcheck.repro.arity import counted, entry_alone, handed_on, listed, unstarred
from hookcheck.repro.branches import one_branch
from hookcheck.repro.script import Parts, raising
from hookcheck.repro.simpler import simpler
from hookcheck.repro.syntax import dedented

Run = Callable[[str], "tuple[int | None, str]"]

RULES = (counted, unstarred, listed, entry_alone, handed_on)
"""What helps where a helper is for any number of arguments, and is called with so many."""

LEAKED = "leaked = {}"
"""The line that makes what networks leak into."""

ADDRESS = re.compile(r"0x[0-9a-f]+")


def shorter(parts: Parts, run: Run) -> Parts:
    """The parts of a script that says the same of this torch, of its control as well."""
    ends = _ended(parts, run)

    def shows(changed: Parts) -> bool:
        return _ended(changed, run) == ends

    body = one_branch(parts.body, lambda body: run(replace(parts, body=body).text), parts.hooks)
    changed = replace(parts, body=body)
    parts = changed if shows(changed) else parts
    body = simpler(parts.body, "1.7", lambda body: shows(replace(parts, body=body)), RULES)
    parts = replace(parts, body=body)
    flat = flattened(parts)
    return flat if flat and shows(flat) else parts


def _ended(parts: Parts, run: Run) -> tuple[int | None, str]:
    code, said = run(parts.text)
    return code, ADDRESS.sub("", said)


def flattened(parts: Parts) -> Parts | None:
    """The parts without the function that is run, where that is once; None where there is more to it."""
    tree = ast.parse(parts.body)
    function = tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    if function.args.args or "weakref.ref(" in parts.body:  # what it holds would live on
        return None
    lines = parts.body.split("\n")
    body = "\n".join(lines[: function.lineno - 1]).rstrip("\n")
    main = dedented(lines[function.body[0].lineno - 1 :])
    if body.startswith(LEAKED):  # it need not stand ahead of what is called later
        body = body[len(LEAKED) :].lstrip("\n")
        main = ["calls, leaked = [], {}", *main[1:]] if main[0] == "calls = []" else [LEAKED, *main]
    returned = [n for n in ast.walk(function) if isinstance(n, ast.Return) and n.lineno >= function.body[-1].lineno]
    if parts.verdict == raising("run()"):
        return replace(parts, body=body, verdict=raising("\n".join(main)))
    if returned != function.body[-1:] or function.body[-1].lineno != function.body[-1].end_lineno:
        return None
    value = main.pop().partition("return ")[2]
    return replace(parts, body=body, verdict="\n".join([*main, "", parts.verdict.replace("run()", value)]))
