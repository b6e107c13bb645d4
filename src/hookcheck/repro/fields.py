"""A text without what nobody reads: classes and fields that have one use, lists, contexts that only undo."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hookcheck.repro.editing import replaced, start, written
from hookcheck.repro.entries import only_made
from hookcheck.repro.names import literal
from hookcheck.repro.parameters import calls_of
from hookcheck.repro.scopes import COMPREHENSIONS, Scopes
from hookcheck.repro.syntax import LIFETIMES, dedented, lines_of, without


def hoisted(text: str) -> str | None:
    """The text with one class at its top that a function defined first, which then is shorter."""
    scopes = Scopes(text)
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef)):
        first = function.body[0]
        if not isinstance(first, ast.ClassDef) or len(function.body) < 2:
            continue
        inside = {*ast.walk(first)}
        outer = [n for n in inside if n in scopes.keys and scopes.keys[n][0] is function]
        if outer or (scopes.tree, first.name) in scopes.stores:
            continue
        if any(name == first.name for scope, name in scopes.stores if scope is not function):
            continue
        lines = text.split("\n")
        begin = min(lines_of(first))
        of_class = dedented(lines[begin - 1 : first.end_lineno])
        rest = lines[first.end_lineno or 0 :]
        while rest and not rest[0].strip():
            rest.pop(0)
        ahead = min(lines_of(function))
        return "\n".join([*lines[: ahead - 1], *of_class, "", "", *lines[ahead - 1 : begin - 1], *rest])
    return None


def made_of_class(text: str) -> str | None:
    """The text with a class in the place of one function that does nothing but make one of it; ``cache`` aside."""
    scopes = Scopes(text)
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef) and len(n.body) == 1):
        returned = function.body[0]
        cached = [ast.unparse(d) for d in function.decorator_list] == ["cache"]
        if (
            cached
            and isinstance(returned, ast.Return)
            and isinstance(returned.value, ast.Name)
            and not function.args.args
        ):
            calls, _ = calls_of(scopes, function)
            changed = scopes.put(dict.fromkeys(calls, returned.value))
            again = next(n for n in ast.parse(changed).body if getattr(n, "name", "") == function.name)
            return without(changed, lines_of(again)) if calls else None
    return None


def unpacked(text: str) -> str | None:
    """The text with the values of one dataclass in the place of its fields, if there is one of that class alone."""
    scopes = Scopes(text)
    for of in (n for n in scopes.tree.body if isinstance(n, ast.ClassDef)):
        declared = any(ast.unparse(d).startswith("dataclass") for d in of.decorator_list)
        fields = [n for n in of.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
        calls = [scopes.parents[load] for load in scopes.loads.get((scopes.tree, of.name), [])]
        call = calls[0] if len(calls) == 1 else None
        if not declared or len(fields) != len(of.body) or not isinstance(call, ast.Call):
            continue
        values = {f.target.id: f.value for f in fields}  # type: ignore[union-attr]
        values.update(zip(values, call.args))
        values.update({k.arg or "": k.value for k in call.keywords})
        asked = scopes.parents[call]
        if isinstance(asked, ast.Attribute) and only_made(scopes, call):
            field = values.get(asked.attr)
            return None if field is None else without(scopes.put({asked: field}), lines_of(of))
        target = next((g for g in scopes.given() if g[2] is call), None)
        if target is None:
            continue
        reads = [scopes.parents[load] for load in scopes.loads.get(target[0], [])]
        changed = _narrowed(scopes, [*scopes.loads.get(target[0], [])])
        if changed is not None:
            return changed
        names = [read.attr for read in reads if isinstance(read, ast.Attribute)]
        if len(names) != len(reads) or any(values.get(name) is None for name in names):
            continue
        if any(names.count(name) > 1 and not _again(values[name]) for name in names):
            continue
        new = {read: values[read.attr] for read in reads if isinstance(read, ast.Attribute)}
        return scopes.put({**new, call: ast.Constant(None)})  # type: ignore[dict-item]
    return None


def _again(value: ast.expr | None) -> bool:
    """Whether a value may stand in several places: it is short, and what makes it makes the same again."""
    makes = isinstance(value, ast.Lambda) or (isinstance(value, ast.Call) and ast.unparse(value.func) == "partial")
    return isinstance(value, (ast.Constant, ast.Name)) or (value is not None and makes and len(written(value)) < SHORT)


SHORT = 50
"""So long is what may stand in several places."""


def _narrowed(scopes: Scopes, loads: list[ast.Name]) -> str | None:
    """The text with a field in the place of its object where a function is given that, and reads that field alone."""
    for load in loads:
        call = scopes.parents[load]
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or load not in call.args:
            continue
        function = next((f for f in scopes.tree.body if getattr(f, "name", "") == call.func.id), None)
        if not isinstance(function, ast.FunctionDef) or len(calls_of(scopes, function)[0]) != 1:
            continue
        argument = function.args.args[call.args.index(load)]
        reads = [scopes.parents[n] for n in scopes.loads.get((function, argument.arg), [])]
        fields = {n.attr for n in reads if isinstance(n, ast.Attribute)}
        if len(fields) == 1 and all(isinstance(n, ast.Attribute) for n in reads):
            (field,) = fields
            new: dict[ast.expr, ast.expr] = {n: ast.Name(field, ast.Load()) for n in reads if isinstance(n, ast.expr)}
            new[load] = ast.Attribute(load, field, ast.Load())
            lines = scopes.put(new).split("\n")
            row = argument.lineno - 1
            ahead, behind = lines[row][: argument.col_offset], lines[row][argument.end_col_offset :]
            lines[row] = f"{ahead}{field}{behind}"
            return "\n".join(lines)
    return None


def attribute_put_in(text: str) -> str | None:
    """The text with a literal in the place of one attribute that is given it in one place alone, by ``self``."""
    scopes = Scopes(text)
    attributes = [n for n in ast.walk(scopes.tree) if isinstance(n, ast.Attribute)]
    for node in ast.walk(scopes.tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        several = isinstance(target, ast.Tuple) and any(isinstance(e, ast.Attribute) for e in target.elts)
        if several and isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and literal(node.value):
            lines = text.split("\n")
            indent = " " * node.col_offset
            lines[node.lineno - 1 : node.end_lineno] = [
                f"{indent}{written(of)} = {written(value)}" for of, value in zip(target.elts, node.value.elts)
            ]
            return "\n".join(lines)
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and _scalar(node.value):
            alike = [n for n in attributes if n.attr == target.attr]
            if sum(isinstance(n.ctx, ast.Store) for n in alike) == 1 and not _torchs(scopes, node):
                changed = scopes.put({n: node.value for n in alike if n is not target})
                return without(changed, lines_of(node))
    return None


def _scalar(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is not None


def _torchs(scopes: Scopes, node: ast.AST) -> bool:
    """Whether the class that a statement is in is a module of torch, which may read its attributes."""
    of = next((above for above in scopes.above(node) if isinstance(above, ast.ClassDef)), None)
    return of is not None and bool(of.bases)


KEEPS = re.compile(r"\b(?:restored|preserved|young|nullcontext)\(\)")
"""What leaves all as it was, or only saves time: a script ends; and what does nothing."""


HUSHED, HUSHES = "warnings.catch_warnings()", "warnings.simplefilter('ignore')"
"""What keeps warnings from being shown: a script may show them."""


def unguarded(text: str) -> str | None:
    """The text without one context that only leaves all of torch as it was, does nothing, or only hushes warnings."""
    for node in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.With)):
        hushes = ast.unparse(node.body[0]) == HUSHES and len(node.body) > 1 and [*map(_context, node.items)] == [HUSHED]
        if hushes or all(KEEPS.fullmatch(_context(item)) for item in node.items):
            lines = text.split("\n")
            inner = dedented(lines[node.body[hushes].lineno - 1 : node.end_lineno])
            return "\n".join([*lines[: node.lineno - 1], *inner, *lines[node.end_lineno or 0 :]])
    return None


def _context(item: ast.withitem) -> str:
    return ast.unparse(item.context_expr)


def unread(text: str) -> str | None:
    """The text without one list or dict that is only filled, or one result that no call of its function takes."""
    scopes = Scopes(text)
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef)):
        calls, _ = calls_of(scopes, function)
        last = function.body[-1]
        named = isinstance(last, ast.Return) and isinstance(last.value, ast.Name) and len(function.body) > 1
        if calls and named and all(isinstance(scopes.parents[call], ast.Expr) for call in calls):
            return without(text, lines_of(last))
    for key, statement, value in scopes.given():
        empty = (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)
        if not empty or not isinstance(statement.targets[0], ast.Name):
            continue
        lives = LIFETIMES.search(text) is not None
        fills = [_filling(scopes, load, lives) for load in scopes.loads.get(key, [])]
        if fills and all(fills):
            parts: list[ast.Assign | ast.Call] = [statement, *(fill for fill in fills if fill is not None)]
            for part in sorted(parts, key=start, reverse=True):
                acting = _acting(part) or "None" if isinstance(part, ast.Call) else ""
                text = replaced(text, part, acting) if isinstance(part, ast.Call) else without(text, lines_of(part))
            return text
    return None


def _filling(scopes: Scopes, load: ast.Name, lives: bool) -> ast.Assign | ast.Call | None:
    """What puts something into what has a name, a statement by itself or all of a lambda; None where it is used
    otherwise, where more than one call is in what it puts there, or where it is asked what still ``lives``."""
    parent = scopes.parents[load]
    above = scopes.parents[parent]
    if isinstance(parent, ast.Subscript) and isinstance(above, ast.Assign) and isinstance(above.value, ast.Name):
        return above if above.targets == [parent] and scopes.alone(above) is False else None
    fills = isinstance(parent, ast.Attribute) and parent.attr in ("append", "extend")
    if not fills or lives or not isinstance(above, ast.Call) or above.func is not parent:
        return None
    around = scopes.parents[above]
    whole = isinstance(around, ast.Expr) or (isinstance(around, ast.Lambda) and around.body is above)
    return above if whole and _acting(above) is not None else None


def _acting(fill: ast.Call) -> str | None:
    """The one call in what is put into a list; empty where there is none, None where there are more, or in a loop, or
    where the list keeps alive what it gives."""
    if any(isinstance(given, ast.Call) for given in fill.args):
        return None
    calls = [n for given in fill.args for n in _outermost(given)]
    if not calls:
        return ""
    return written(calls[0]) if isinstance(calls[0], ast.Call) and not calls[1:] else None


def _outermost(node: ast.AST) -> Iterator[ast.AST]:
    """The calls in a part that are in no other one, and the loops with calls in them."""
    loops = isinstance(node, COMPREHENSIONS) and any(isinstance(n, ast.Call) for n in ast.walk(node))
    if isinstance(node, ast.Call) or loops:
        yield node
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _outermost(child)


def idle(text: str) -> str | None:
    """The text without the calls of one function that does nothing, or without one statement that is None."""
    scopes = Scopes(text)
    statements = [n for n in ast.walk(scopes.tree) if isinstance(n, ast.Expr) and not scopes.alone(n)]
    for statement in statements:
        if isinstance(statement.value, ast.Constant) and statement.value.value is None:
            return without(text, lines_of(statement))
    for key, _, value in scopes.given():
        if isinstance(value, ast.Lambda) and isinstance(value.body, ast.Constant):
            loads = scopes.loads.get(key, [])
            calls = [n for n in statements if isinstance(n.value, ast.Call) and n.value.func in loads]
            if calls and len(calls) == len(loads):
                return without(text, set[int]().union(*map(lines_of, calls)))
    return None


LATE = re.compile(r'(?m)^( *)(\w+) = (?:getattr\()?import_module\("([\w.]+)"\)(?:, "(\w+)"\)|\.(\w+))?$')
"""A module that is imported by a call."""


def imported(text: str) -> str:
    """The text with statements that import what calls imported."""

    def statement(match: re.Match[str]) -> str:
        indent, name, module, *attributes = match.groups()
        attribute = next(filter(None, attributes), "")
        if not attribute:
            module, _, attribute = module.rpartition(".")
        return f"{indent}from {module} import {attribute}{'' if attribute == name else f' as {name}'}"

    return LATE.sub(statement, text)
