"""A text with less of what a sound torch does not notice: looks that nobody reads, hooks that do nothing.

Those on modules that nobody calls as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from hookcheck.repro.editing import written
from hookcheck.repro.removals import REGISTERS
from hookcheck.repro.scopes import Scopes
from hookcheck.repro.syntax import READS, dedented, is_fact, lines_of, reads, without


def unlooked(text: str) -> str | None:
    """The text without statements that look at something, and do nothing with what they see, or give it a name that
    nobody reads."""
    scopes = Scopes(text)
    readers = _readers(scopes.tree)
    seen = (n for n in ast.walk(scopes.tree) if isinstance(n, ast.Expr) and _looks(n.value))
    looks = [_with_condition(scopes, statement, readers) for statement in seen]
    for statement in (n for n in ast.walk(scopes.tree) if isinstance(n, ast.Assign) and reads(n.value, readers)):
        if _unread(scopes, statement):
            looks.append(_with_condition(scopes, statement, readers))
    idle = [look for look in looks if not scopes.alone(look)]
    if not idle:
        return None
    fewer = without(text, set[int]().union(*map(lines_of, idle)))
    return unlooked(fewer) or fewer


def _looks(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in READS
    acts = (ast.Constant, ast.Yield, ast.YieldFrom, ast.BinOp)  # an operation calls hooks on saved tensors
    return not isinstance(value, acts) and reads(value)


def _unread(scopes: Scopes, statement: ast.Assign) -> bool:
    """Whether a statement does no more than give names that nobody reads."""
    names = [(scopes.scope(statement), t.id) for t in statement.targets if isinstance(t, ast.Name)]
    return len(names) == len(statement.targets) and not any(scopes.loads.get(key) for key in names)


def _with_condition(scopes: Scopes, statement: ast.stmt, readers: frozenset[str]) -> ast.stmt:
    """A statement, or the condition under which nothing else is done."""
    above = scopes.parents[statement]
    looks = isinstance(above, ast.If) and not above.orelse and reads(above.test, readers)
    return above if isinstance(above, ast.If) and looks and scopes.alone(statement) else statement


LOOKUPS = frozenset(("modules", "named_modules", "get", "endswith"))
"""Methods of modules, dicts and strings that change nothing; something else may have one of the name that does."""


def _readers(tree: ast.Module) -> frozenset[str]:
    """The functions at the top that read alone, and fill lists of their own."""
    readers = LOOKUPS
    for function in (n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list):
        inside = [*ast.walk(function)]
        filled = {written(n.func.value) for n in inside if isinstance(n, ast.Call) and _appends(n)}  # type: ignore[attr-defined]
        lists = {written(n.targets[0]) for n in inside if isinstance(n, ast.Assign) and isinstance(n.value, ast.List)}
        parts = [n for n in inside if isinstance(n, (ast.Attribute, ast.Subscript))]
        writes = any(isinstance(part.ctx, ast.Store) for part in parts)
        if not writes and filled <= lists and reads(function, readers | {"append"}):
            readers |= {function.name}
    return readers


def _appends(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "append"


def unhooked(text: str) -> str | None:
    """The text without hooks that return None, whatever they are given, and whose handle nobody keeps."""
    calls = [
        (n, n.value) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)
    ]
    idle = [statement for statement, call in calls if _registers(call) and any(map(_does_nothing, call.args))]
    return without(text, set[int]().union(*map(lines_of, idle))) if idle else None


def _registers(call: ast.Call) -> bool:
    return not is_fact(call) and REGISTERS.search(f"{written(call.func)}(") is not None


def _does_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Lambda) and isinstance(value.body, ast.Constant) and value.body.value is None


MODULE = re.compile(r"(?:torch\.)?nn\.[A-Z]\w+")
"""A class of torch's modules."""

CLEARED = re.compile(r"(?m)^(( *)(\w+) = \[\]\n)\2\3\.clear\(\)\n")
"""A list that is emptied when it is made."""


def unneeded(text: str) -> str | None:
    """The text without modules that are made, given parts and hooks, and used nowhere."""
    scopes = Scopes(text)
    for (_, name), statement, value in scopes.given():
        if not (isinstance(statement.targets[0], ast.Name) and isinstance(value, ast.Call)):
            continue
        uses = [_statement(scopes, load) for key, loads in scopes.loads.items() if key[1] == name for load in loads]
        hooked = any(isinstance(use, ast.Expr) for use in uses)
        if hooked and MODULE.fullmatch(written(value.func)) and all(_furnishes(use, name) for use in uses):
            return without(text, set[int]().union(*map(lines_of, [statement, *uses])))
    return None


def _statement(scopes: Scopes, node: ast.AST) -> ast.stmt:
    return next(part for part in scopes.above(node) if isinstance(part, ast.stmt))


def _furnishes(statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a module of that name parts or a hook, and does no more."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        return isinstance(call, ast.Call) and _registers(call) and written(call.func).startswith(f"{name}.")
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return bool(parts) and all(written(part).startswith(f"{name}.") for part in parts)


def uncleared(text: str) -> str:
    """The text without what empties a list as soon as it is made."""
    return CLEARED.sub(r"\1", text)


def uncalled(text: str) -> str | None:
    """The text with a hook that does nothing, where the last statement registers one: nothing calls it after that."""
    scopes = Scopes(text)
    last: ast.AST = scopes.tree.body[-1]
    while isinstance(last, ast.FunctionDef):
        last = last.body[-1]
    for function in (n for n in ast.walk(scopes.tree) if isinstance(n, ast.FunctionDef)):
        loads = scopes.loads.get((scopes.scope(function), function.name), [])
        call = scopes.parents[loads[0]] if len(loads) == 1 else None
        if isinstance(call, ast.Call) and _registers(call) and last in scopes.above(call) and loads[0] in call.args:
            nothing = ast.parse("lambda *args: None", mode="eval").body
            return without(scopes.put({loads[0]: nothing}), lines_of(function))
    return None


def unpaired(text: str) -> str | None:
    """The text with a statement for each name, where one gives several names what has nothing to do with them."""
    tree = ast.parse(text)
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.Assign) and len(n.targets) == 1):
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
            continue
        names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
        reads = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        if len(target.elts) == len(value.elts) and not names & reads:
            lines = text.split("\n")
            each = zip(target.elts, value.elts)
            apart = [f"{' ' * node.col_offset}{written(name)} = {written(of)}" for name, of in each]
            lines[node.lineno - 1 : node.end_lineno] = apart
            return "\n".join(lines)
    return None


def untried(text: str) -> str | None:
    """The text with what is done in a ``try``, and without what is done about an exception: here none comes.

    What stands for an exception must be asked for nowhere: where it is, a sound torch may well come to one.
    """
    tree = ast.parse(text)
    tries = (n for n in ast.walk(tree) if isinstance(n, ast.Try) and not n.finalbody and not n.orelse)
    node = next(tries, None)
    within = {*ast.walk(node)} if node is not None else set()
    if node is None or _given_instead(node) & _constants(n for n in ast.walk(tree) if n not in within):
        return None
    lines = text.split("\n")
    inner = lines[node.body[0].lineno - 1 : node.body[-1].end_lineno]
    lines[node.lineno - 1 : node.end_lineno] = dedented(inner)
    return "\n".join(lines)


def _given_instead(node: ast.Try) -> set[object]:
    """The constants that stand for an exception."""
    handling = [n for handler in node.handlers for n in ast.walk(handler)]
    return _constants(n.value for n in handling if isinstance(n, (ast.Return, ast.Assign)) and n.value) - {None}


def _constants(nodes: Iterable[ast.AST]) -> set[object]:
    return {n.value for n in nodes if isinstance(n, ast.Constant)}
