"""A fact beside the same without what makes it so: a hook that is not registered, a context that is not entered.

Each fact is stated twice, the first time as a control. What comes of that only a run can tell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Union

from hookcheck.repro.editing import replaced, written
from hookcheck.repro.syntax import (
    CHECK,
    aims_of,
    comments_above,
    is_fact,
    lines_of,
    outside_of_functions,
    reads,
    without,
)

STATES = ": expected "
"""What stands between the name of a fact and what is expected in what a script says."""

REGISTERS = re.compile(r"\bregister_\w+|\bretain_grad\(")
"""What registers a hook, or has one registered."""

ASIDE = re.compile(r"\bcatch_warnings\b|\bsuppress\b|\bno_grad\b")
"""Contexts that a fact is not about."""

UTILITIES = re.compile(r"\bnn\.utils\.|\bprune\.")
"""What changes a module and gives it back."""

FLAGS = ("hooked", "registers", "changed")
"""Names for whether what a control does without is there, of which one is free."""

Registration = Union[ast.Expr, ast.Assign]


@dataclass(frozen=True)
class Removal:
    """What a control does without: registrations, a context, or what a name is made with; and how that is said."""

    name: str
    registrations: tuple[Registration, ...] = ()
    context: ast.With | None = None
    assigned: ast.Assign | None = None
    instead: str = ""


def contrasted(text: str, fact: str) -> Iterator[tuple[str, str]]:
    """The text with its statements done twice, without a part of them and with it; and the name of the fact without."""
    tree = ast.parse(text)
    for removal in _removals(tree):
        changed = _twice(tree, text, fact, removal)
        if changed is not None:
            yield changed, removal.name


def _removals(tree: ast.Module) -> Iterator[Removal]:
    nodes = [*ast.walk(tree)]
    registering = [n for n in nodes if isinstance(n, (ast.Expr, ast.Assign)) and _registers(n)]
    if registering:
        yield Removal("without hooks" if registering[1:] else "without a hook", tuple(registering))
    for one in registering if registering[1:] else []:
        yield Removal(f"without {_called(one)}", (one,))
    for assigned in (n for n in nodes if isinstance(n, ast.Assign)):
        instead = _unchanged(assigned) or _handed_on(nodes, assigned)
        if instead:
            yield Removal(f"without {_called(assigned)}", assigned=assigned, instead=instead)
    for context in (n for n in nodes if isinstance(n, ast.With) and len(n.items) == 1 and _enters(n.items[0])):
        yield Removal(f"outside of {_called(context)}", context=context)


def _registers(statement: Registration) -> bool:
    """Whether a statement registers a hook, and gives nothing but its handle a name."""
    named = isinstance(statement, ast.Expr) or isinstance(statement.targets[0], ast.Name)
    call = statement.value
    if not named or not isinstance(call, ast.Call) or is_fact(call):
        return False
    return bool(REGISTERS.search(f"{_function(call)}("))


def _function(call: ast.Call) -> str:
    return ast.unparse(call.func)


def _enters(item: ast.withitem) -> bool:
    of = item.context_expr
    return item.optional_vars is None and isinstance(of, ast.Call) and not ASIDE.search(ast.unparse(of))


def _called(part: ast.AST) -> str:
    """The last name of the first function that is called in a part."""
    call = next(n for n in ast.walk(part) if isinstance(n, ast.Call))
    return str(re.findall(r"\w+", _function(call))[-1])


def _unchanged(assigned: ast.Assign) -> str:
    """The module that one of torch's utilities changes; empty where none does."""
    of = assigned.value
    if not isinstance(of, ast.Call) or not of.args or not UTILITIES.search(_function(of)):
        return ""
    return written(of.args[0])


def _handed_on(nodes: list[ast.AST], assigned: ast.Assign) -> str:
    """A function that does no more than call one with what it is given, where that is what a name is used for."""
    target = assigned.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(assigned.value, ast.Call):
        return ""
    uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == target.id and n is not target]
    calls = [n for n in nodes if isinstance(n, ast.Call) and n.func in uses]
    hands = all(len(c.args) > 1 and not c.keywords and isinstance(c.args[0], (ast.Lambda, ast.Name)) for c in calls)
    return "lambda of, *args: of(*args)" if calls and len(calls) == len(uses) and hands else ""


def _twice(tree: ast.Module, text: str, fact: str, removal: Removal) -> str | None:
    """The text with what is done in it done twice, without a part and with it."""
    aim, block = _aim(tree, fact), _acting(tree, fact)
    flag = next((flag for flag in FLAGS if not re.search(rf"\b{flag}\b", text)), "")
    if aim is None or not block or not flag or '"""' in text or re.search(r"\bcontext\b", text):
        return None
    edits: list[tuple[int, Callable[[str], str]]] = []

    def put(node: ast.expr, new: str) -> None:
        edits.append((node.lineno, lambda text: replaced(text, node, new)))

    put(aim, f'{written(aim)} if {flag} else "{removal.name}"')
    if removal.assigned is not None:
        put(removal.assigned.value, f"{written(removal.assigned.value)} if {flag} else {removal.instead}")
    if removal.context is not None:
        row, head = removal.context.lineno, removal.context.items[0].context_expr
        line = f"{' ' * removal.context.col_offset}context = {written(head)} if {flag} else nullcontext()"
        edits.append((row, lambda text: _inserted(replaced(text, head, "context"), row, line)))
    for one in (*removal.registrations, *_of_handles(tree, removal.registrations)):
        edits.append((one.lineno, lambda text, one=one: _indented(text, lines_of(one), f"if {flag}:")))  # type: ignore[misc]
    text = "\n".join(text.split("\n")[: block[-1].end_lineno])
    for _, edit in sorted(edits, key=lambda edit: -edit[0]):  # what stands above is where it was
        text = edit(text)
    first = comments_above(text.split("\n"), min(lines_of(block[0])))
    return _indented(text, set(range(first, text.count("\n") + 2)), f"for {flag} in (False, True):")


def _inserted(text: str, row: int, line: str) -> str:
    lines = text.split("\n")
    return "\n".join([*lines[: row - 1], line, *lines[row - 1 :]])


def _indented(text: str, numbers: set[int], head: str) -> str:
    """The text with lines one level further in, below a head."""
    lines = text.split("\n")
    first, last = min(numbers), max(numbers)
    ahead = next(line for line in lines[first - 1 : last] if line)
    indent = ahead[: len(ahead) - len(ahead.lstrip())]
    lines[first - 1 : last] = [f"{indent}{head}", *(f"    {line}" if line else "" for line in lines[first - 1 : last])]
    return "\n".join(lines)


def _aim(tree: ast.Module, fact: str) -> ast.expr | None:
    """Where the name of the fact stands, if it is written out and on one line."""
    names = [n.args[0] for n in ast.walk(tree) if isinstance(n, ast.Call) and is_fact(n) and n.args]
    return next((n for n in names if isinstance(n, ast.Constant) and n.value == fact), None)


def _acting(tree: ast.Module, fact: str) -> list[ast.stmt]:
    """The statements that act, of the block in which the fact is stated, and up to that."""
    aims = aims_of(tree, fact)
    defines = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    for of in (n for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.FunctionDef))):
        for place, part in enumerate(of.body):
            inside = [n for n in outside_of_functions(part) if isinstance(n, ast.Call)]
            if any(is_fact(n) and n.lineno in aims for n in inside):
                acts = (i for i, each in enumerate(of.body) if not isinstance(each, defines) and not _ends(each))
                return of.body[next(acts, place) : place + 1]
    return []


def _ends(statement: ast.stmt) -> bool:
    """Whether it ends a script whose torch lacks something."""
    return isinstance(statement, ast.If) and "raise SystemExit" in ast.unparse(statement)


def _of_handles(tree: ast.Module, registrations: tuple[Registration, ...]) -> list[ast.Expr]:
    """The statements that do something with the handles that registrations give."""
    handles = [n.targets[0] for n in registrations if isinstance(n, ast.Assign)]
    names = {n.id for n in handles if isinstance(n, ast.Name)} - {CHECK}
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Expr) and n not in registrations]
    handling = [n for n in uses if names & {part.id for part in ast.walk(n) if isinstance(part, ast.Name)}]
    return [n for n in handling if not any(isinstance(part, ast.Call) and is_fact(part) for part in ast.walk(n))]


def ended(text: str, fact: str) -> str | None:
    """The text without what comes after the fact at its top: a script ends there."""
    tree = ast.parse(text)
    aims = aims_of(tree, fact)
    for place, part in enumerate(tree.body):
        call = part.value if isinstance(part, ast.Expr) else None
        if isinstance(call, ast.Call) and is_fact(call) and call.lineno in aims:
            return without(text, set[int]().union(*map(lines_of, tree.body[place + 1 :])))
    return None


def moved(text: str, fact: str) -> Iterator[str]:
    """The text with another fact ahead of this one that is stated right behind it, and changes nothing."""
    tree = ast.parse(text)
    aims = aims_of(tree, fact)
    for block in (b for n in ast.walk(tree) for b in vars(n).values() if isinstance(b, list)):
        place = next((i for i, part in enumerate(block) if _mere(part) and part.lineno in aims), len(block))
        for other in block[place + 1 :]:
            if not _mere(other):
                break
            lines = text.split("\n")
            first, last = other.lineno - 1, other.end_lineno
            ahead = block[place].lineno - 1
            yield "\n".join([*lines[:ahead], *lines[first:last], *lines[ahead:first], *lines[last:]])


def _mere(part: ast.AST) -> bool:
    """Whether it states a fact, and changes nothing."""
    call = part.value if isinstance(part, ast.Expr) else None
    return isinstance(call, ast.Call) and is_fact(call) and reads(part)


def vain(said: str, control: str, fact: str) -> bool:
    """Whether a control proves nothing: that something is empty, where the fact is about what there is."""
    return _is_empty(said, control) and not _is_empty(said, fact)


def _is_empty(said: str, name: str) -> bool:
    lines = (line.partition(STATES)[2] for line in said.split("\n") if line.startswith(f"{name}{STATES}"))
    return re.match(r"(?:\[\]|\(\)|\{\}|0|set\(\)), observed ", next(lines, "")) is not None
