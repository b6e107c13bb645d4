"""A fact beside the same without what makes it so, or with that done otherwise (see `hookcheck.repro.removals`).

Each fact is stated twice, the first time as a control. What comes of that only a run can tell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from hookcheck.repro.editing import replaced, start, written
from hookcheck.repro.formatting import WIDTH
from hookcheck.repro.removals import Part, Removal, further_removals, plain_removals
from hookcheck.repro.syntax import (
    CHECK,
    aims_of,
    blocks,
    comments_above,
    is_fact,
    lines_of,
    outside_of_functions,
    reads,
    without,
)

STATES = ": expected "
"""What stands between the name of a fact and what is expected in what a script says."""

FLAGS = ("hooked", "registers", "changed")
"""Names for whether what a control does without is there, of which one is free."""

TWICE = "(False, True)"
"""The turns of a script: its control, and the experiment."""

ROOM = 70
"""So long an expression with a condition may be."""

NAMES = ("name", "fact")
"""What a script calls the name of its fact where there is no room for both in the statement; one that is free."""

INDENT = " " * 4

STARTS = 6
"""So many places are tried from which a script does all twice."""


def contrasted(text: str, fact: str) -> Iterator[tuple[str, str]]:
    """The text with its statements done twice, without a hook or a context and with it; and the name of the fact
    without."""
    tree = ast.parse(text)
    for removal in plain_removals(tree):
        changed = _twice(tree, text, fact, removal, FLAGS, _acting(tree, fact))
        if changed is not None:
            yield changed, removal.name


def otherwise(text: str, fact: str) -> Iterator[tuple[str, str]]:
    """The same with any part of the text, as far as it can be left out or done otherwise; and from another statement
    on, if what comes ahead cannot be done twice."""
    tree = ast.parse(text)
    flags = ("experiment", *FLAGS)
    defined = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    for block in islice(_inner(tree, fact), STARTS):
        known = set[int]().union(*map(lines_of, [*block, *(defined if block[-1] in tree.body else ())]))
        for removal in (*plain_removals(tree), *further_removals(tree)):
            changed = _twice(tree, text, fact, removal, flags, block) if removal.lines <= known else None
            if changed is not None:
                yield changed, removal.name


def once(text: str) -> str:
    """The text of a script that does all twice with its control in the place of the experiment."""
    return text.replace(f" in {TWICE}:", " in (False, False):")


def _twice(
    tree: ast.Module, text: str, fact: str, removal: Removal, flags: Sequence[str], block: list[ast.stmt]
) -> str | None:
    """The text with what is done in a block done twice, without a part and with it."""
    aim = _aim(tree, fact)
    flag = next((flag for flag in flags if not re.search(rf"\b{flag}\b", text)), "")
    if aim is None or (removal.runs and _of_nothing(tree, aim)):
        return None
    if not block or not flag or '"""' in text or re.search(r"\bcontext\b", text):
        return None
    edits: list[tuple[tuple[int, int], Callable[[str], str]]] = []

    def put(node: ast.expr, new: str) -> None:
        edits.append((start(node), lambda text: replaced(text, node, new)))

    either = f'{written(aim)} if {flag} else "{removal.name}"'
    stating = next((n for n in ast.walk(tree) if isinstance(n, ast.Expr) and aim in getattr(n.value, "args", ())), None)
    line = f"{written(stating.value)}" if stating is not None else ""
    wide = stating is not None and stating.col_offset + len(INDENT + line + either) - len(written(aim)) > WIDTH
    called = next((name for name in NAMES if not re.search(rf"\b{name}\b", text)), "")
    if stating is not None and wide and called:
        edits.append(((stating.lineno, 0), partial(_named, stating, aim, called, either)))
    else:
        put(aim, either)
    acts = {n.value: n for n in ast.walk(tree) if isinstance(n, (ast.Expr, ast.Assign))}
    whole = {n.value for n in ast.walk(tree) if isinstance(n, (ast.Assign, ast.Expr, ast.Return, ast.keyword))}
    whole |= {given for n in ast.walk(tree) if isinstance(n, ast.Call) for given in n.args}
    for node, instead in removal.instead:
        either = f"{written(node)} if {flag} else {instead}"
        statement = acts.get(node)
        if statement is not None and len(either) > ROOM:
            ahead = "".join(f"{written(target)} = " for target in getattr(statement, "targets", []))
            other = f"{' ' * statement.col_offset}else:\n{' ' * statement.col_offset}    {ahead}{instead}"
            edits.append(((statement.lineno, -1), partial(_either, statement, f"if {flag}:", other)))
        else:
            put(node, either if node in whole else f"({either})")
    if removal.context is not None:
        row, head = removal.context.lineno, removal.context.items[0].context_expr
        line = f"{' ' * removal.context.col_offset}context = {written(head)} if {flag} else nullcontext()"
        edits.append(((row, 0), lambda text: _inserted(replaced(text, head, "context"), row, line)))
    for one in (*removal.statements, *_of_handles(tree, removal.statements)):
        edits.append(((one.lineno, -1), partial(_indented, numbers=lines_of(one), head=f"if {flag}:")))
    first, last = min(lines_of(block[0])), max(lines_of(block[-1]))
    lines = text.split("\n")
    tail = [] if block[-1] in tree.body or _in_function(tree, block[-1]) else lines[last:]
    text = "\n".join(lines[:last])
    edits.append(((first, -2), partial(_indented_from, first, f"for {flag} in {TWICE}:")))
    for _, edit in sorted(edits, key=lambda edit: edit[0], reverse=True):  # what stands above is where it was
        text = edit(text)
    return "\n".join([text, *tail])


def _in_function(tree: ast.Module, statement: ast.stmt) -> bool:
    return any(isinstance(n, ast.FunctionDef) and statement in n.body for n in ast.walk(tree))


def _indented_from(first: int, head: str, text: str) -> str:
    """The text with all from a line on below a head."""
    first = comments_above(text.split("\n"), first)
    return _indented(text, set(range(first, text.count("\n") + 2)), head)


def _either(statement: ast.stmt, head: str, other: str, text: str) -> str:
    """The text with a statement under a condition, and another one else."""
    text = _indented(text, lines_of(statement), head)
    return _inserted(text, max(lines_of(statement)) + 2, other)


def _named(statement: ast.stmt, name: ast.expr, called: str, either: str, text: str) -> str:
    """The text with a name for what a fact is called, which is given that ahead of the statement."""
    indent = " " * statement.col_offset
    lines = [f"{indent}{called} = {either}"]
    if len(INDENT + lines[0]) > WIDTH:
        aim, condition, other = re.match("(.*) if (.*) else (.*)", either).groups()  # type: ignore[union-attr]
        lines = [f"{indent}{called} = {other}", f"{indent}if {condition}:", f"{indent}{INDENT}{called} = {aim}"]
    return _inserted(replaced(text, name, called), statement.lineno, "\n".join(lines))


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


def _of_nothing(tree: ast.Module, aim: ast.expr) -> bool:
    """Whether a fact may expect that nothing is there: then it says nothing where nothing is done."""
    call = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and aim in n.args)
    if written(call.func)[6:] not in ("equal", "order", "calls") or len(call.args) < 3:
        return True
    due = call.args[2]
    given = [n.value for n in ast.walk(tree) if isinstance(n, ast.Assign) and written(n.targets[0]) == written(due)]
    values = [due, *given]
    empty = (isinstance(v, (ast.List, ast.Tuple, ast.Dict)) and not [*ast.iter_child_nodes(v)][1:] for v in values)
    return any(empty) or any(isinstance(v, ast.Constant) and not v.value for v in values)


def _acting(tree: ast.Module, fact: str) -> list[ast.stmt]:
    """The statements that act, of the block in which the fact is stated, and up to that."""
    bodies = (n.body for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.FunctionDef)))
    return next(filter(None, (_up_to(body, tree, fact) for body in bodies)), [])


def _up_to(body: list[ast.stmt], tree: ast.Module, fact: str) -> list[ast.stmt]:
    """The statements of a block that act, up to the one in which the fact is stated; none where that is in no one."""
    aims = aims_of(tree, fact)
    defines = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    for place, part in enumerate(body):
        inside = [n for n in outside_of_functions(part) if isinstance(n, ast.Call)]
        if any(is_fact(n) and n.lineno in aims for n in inside):
            acts = (i for i, each in enumerate(body) if not isinstance(each, defines) and not _ends(each))
            return body[next(acts, place) : place + 1]
    return []


def _inner(tree: ast.Module, fact: str) -> Iterator[list[ast.stmt]]:
    """The statements that act, all that are of a block, those in a block within, and those from a later one on."""
    acting, around = _acting(tree, fact), list[list[ast.stmt]]()
    while acting:
        yield acting
        around.append(acting)
        within = (_up_to(block, tree, fact) for block in blocks(acting[-1]))
        acting = next(filter(None, within), [])
    for block in reversed(around):
        yield from (block[i:] for i, each in enumerate(block) if i and isinstance(each, ast.Assign))


def _ends(statement: ast.stmt) -> bool:
    """Whether it ends a script whose torch lacks something."""
    return isinstance(statement, ast.If) and "raise SystemExit" in ast.unparse(statement)


def _of_handles(tree: ast.Module, registrations: Sequence[Part]) -> list[ast.Expr]:
    """The statements that do something with the handles that registrations give."""
    handles = [n.targets[0] for n in registrations if isinstance(n, ast.Assign)]
    names = {n.id for n in handles if isinstance(n, ast.Name)} - {CHECK}
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Expr) and n not in registrations]
    handling = [n for n in uses if names & {part.id for part in ast.walk(n) if isinstance(part, ast.Name)}]
    return [n for n in handling if not any(isinstance(part, ast.Call) and is_fact(part) for part in ast.walk(n))]


def ended(text: str, fact: str) -> str | None:
    """The text without what comes after the fact at its top, under a condition or in a context: a script ends there."""
    tree = ast.parse(text)
    behind = _behind(tree.body, aims_of(tree, fact))
    return None if behind is None else without(text, behind)


def _behind(body: list[ast.stmt], aims: frozenset[int]) -> set[int] | None:
    """The lines of what comes after the fact in a block; None where that is not in it."""
    for place, part in enumerate(body):
        call = part.value if isinstance(part, ast.Expr) else None
        within = _behind(part.body, aims) if isinstance(part, (ast.If, ast.With)) else None
        if isinstance(call, ast.Call) and is_fact(call) and call.lineno in aims:
            within = set()
        if within is not None:
            return within.union(*map(lines_of, body[place + 1 :]))
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


def lists_what_is_wrong(text: str) -> bool:
    """Whether a text draws up what differs from what is due: where nothing does that is empty, and proves something."""
    filters = (part for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ListComp) for part in n.generators[0].ifs)
    return any(isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.NotEq) for part in filters)


def _is_empty(said: str, name: str) -> bool:
    lines = (line.partition(STATES)[2] for line in said.split("\n") if line.startswith(f"{name}{STATES}"))
    return re.match(r"(?:\[\]|\(\)|\{\}|0|set\(\)), observed ", next(lines, "")) is not None
