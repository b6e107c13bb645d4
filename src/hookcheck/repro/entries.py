"""A text without the entries of dicts that nobody reads: what gives a dict, of which one entry is read, gives that."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from hookcheck.repro.editing import written
from hookcheck.repro.folding import same_entries
from hookcheck.repro.heading import LACKS
from hookcheck.repro.names import literal, without_name
from hookcheck.repro.parameters import calls_of
from hookcheck.repro.scopes import Key, Scopes, pairs
from hookcheck.repro.syntax import dedented, lines_of, outside_of_functions, without


def keyed(text: str) -> str | None:
    """The text with one function that gives the entry of its dict, since that is what each call of it asks for."""
    scopes = Scopes(text)
    for name, statement, value in scopes.given():
        loads, of = scopes.loads.get(name, []), same_entries(value)
        if of is not None and len(loads) == 1 and isinstance(scopes.parents[loads[0]], ast.Subscript):
            return without_name(scopes.put({loads[0]: of}), statement, name[1])
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list):
        calls, _ = calls_of(scopes, function)
        asked = [scopes.parents[call] for call in calls]
        keys = {ast.unparse(a.slice) for a in asked if isinstance(a, ast.Subscript) and literal(a.slice)}
        nodes = (n for part in function.body for n in outside_of_functions(part))
        returns = [n.value for n in nodes if isinstance(n, ast.Return)]
        named = all(isinstance(value, (ast.Dict, ast.Name)) for value in returns)
        if len(keys) != 1 or len(asked) != len(calls) or not all(isinstance(a, ast.Subscript) for a in asked):
            continue
        if not returns or not named:
            continue
        key = next(a.slice for a in asked if isinstance(a, ast.Subscript))
        new: dict[ast.expr, ast.expr] = {a: a.value for a in asked if isinstance(a, ast.Subscript)}
        new.update({value: ast.Subscript(value, key, ast.Load()) for value in returns if value is not None})
        return scopes.put(new)
    return None


def entry(text: str) -> str | None:
    """The text with the one entry of a dict that is asked for, without the dict; where it is missing, torch lacks what
    it is made of."""
    scopes = Scopes(text)
    for block in (b for n in ast.walk(scopes.tree) for b in [getattr(n, "body", None)] if isinstance(b, list)):
        for before, last in zip(block, block[1:]):
            changed = _one_entry(scopes, before, last)
            if changed is not None:
                return changed
    return None


def _one_entry(scopes: Scopes, before: ast.stmt, last: ast.stmt) -> str | None:
    """The text with the value of an entry that one statement gives to an empty dict where the next one asks for it."""
    asked = last.value if isinstance(last, (ast.Return, ast.Assign)) else None
    if not isinstance(asked, ast.Subscript) or not isinstance(asked.value, ast.Name):
        return None
    key = scopes.keys[asked.value]
    empty = next((s for k, s, v in scopes.given() if k == key and isinstance(v, ast.Dict) and not v.keys), None)
    inner = before.body[-1] if isinstance(before, ast.If) and not before.orelse else before
    fills = isinstance(inner, ast.Assign) and [written(t) for t in inner.targets] == [written(asked)]
    if empty is None or not fills or len(scopes.loads[key]) != 2 or len(empty.targets) != 1:
        return None
    lines = scopes.text.split("\n")
    indent = " " * last.col_offset
    head = "return" if isinstance(last, ast.Return) else f"{written(last.targets[0])} ="  # type: ignore[attr-defined]
    new = [f"{indent}{head} {written(inner.value)}"]  # type: ignore[attr-defined]
    if isinstance(before, ast.If):
        test = written(ast.UnaryOp(ast.Not(), before.test))
        ahead = dedented(lines[before.body[0].lineno - 1 : inner.lineno - 1])
        new = [f"{indent}if {test}:", f"{indent}    raise SystemExit({LACKS})", *ahead, *new]
    lines[before.lineno - 1 : last.end_lineno] = new
    return without("\n".join(lines), lines_of(empty))


def unfilled(text: str) -> str | None:
    """The text with one dict that lacks the entries which nobody reads; without it where one is left, and read once."""
    scopes = Scopes(text)
    for key, statement, value in scopes.given():
        if not isinstance(value, ast.Dict) or not all(k is not None and literal(k) for k in value.keys):
            continue
        uses = _uses(scopes, key)
        if uses is None:
            continue
        read, updates, stores = uses
        for each in (value, *updates):
            if not all(k is not None and literal(k) for k in each.keys):
                continue
            left = [(k, v) for k, v in zip(each.keys, each.values) if ast.unparse(k) in read]  # type: ignore[arg-type]
            if not left and each is not value:
                return _without(scopes, scopes.parents[scopes.parents[each]])
            if len(left) < len(each.keys):
                return scopes.put({each: ast.Dict([k for k, _ in left], [v for _, v in left])})
        for store in stores:
            if not _given_keys(scopes, store) & read:
                return _without(scopes, scopes.parents[store])
        by_key = {ast.unparse(k): v for k, v in zip(value.keys, value.values) if k is not None}
        loads = [scopes.parents[load] for load in scopes.loads.get(key, [])]
        items = [n for n in loads if isinstance(n, ast.Subscript) and ast.unparse(n.slice) in by_key]
        names = all(isinstance(v, ast.Name) for v in value.values)
        settled = all(len(scopes.stores.get(scopes.keys[v], [])) == 1 for v in value.values if v in scopes.keys)
        once = len(items) == len(by_key) == 1 and not scopes.repeated(items[0]) and only_made(scopes, value.values[0])
        if not updates and not stores and len(items) == len(loads) > 0 and ((names and settled) or once):
            changed = scopes.put({n: copy.deepcopy(by_key[ast.unparse(n.slice)]) for n in items})
            return without_name(changed, statement, key[1]) if once else changed
    return None


def only_made(scopes: Scopes, value: ast.expr) -> bool:
    """Whether a value is the same where it is made later: a name, a literal, a function, or a tuple or a dataclass of
    these."""
    if isinstance(value, ast.Tuple):
        return all(only_made(scopes, part) for part in value.elts)
    if not isinstance(value, ast.Call):
        return literal(value) or isinstance(value, (ast.Name, ast.Lambda))
    of = next((n for n in scopes.tree.body if getattr(n, "name", "") == ast.unparse(value.func)), None)
    plain = isinstance(of, ast.ClassDef) and any(ast.unparse(d).startswith("dataclass") for d in of.decorator_list)
    parts = (*value.args, *(keyword.value for keyword in value.keywords))
    return ast.unparse(value.func) in ("partial", "make_dataclass") or (
        plain and all(only_made(scopes, part) for part in parts)
    )


def _uses(scopes: Scopes, key: Key) -> tuple[set[str], list[ast.Dict], list[ast.Subscript]] | None:
    """The keys of a dict that are read, what it is updated with, and where it is given an entry; None if it is used
    otherwise."""
    read, updates, stores = set[str](), list[ast.Dict](), list[ast.Subscript]()
    for load in scopes.loads.get(key, []):
        parent = scopes.parents[load]
        call = scopes.parents[parent] if isinstance(parent, ast.Attribute) and parent.attr == "update" else None
        if isinstance(parent, ast.Subscript) and literal(parent.slice) and isinstance(parent.ctx, ast.Load):
            read.add(ast.unparse(parent.slice))
        elif isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load) and _keys(scopes, parent):
            read |= _keys(scopes, parent)
        elif isinstance(parent, ast.Subscript) and _given_keys(scopes, parent):
            stores.append(parent)
        elif isinstance(call, ast.Call) and len(call.args) == 1 and isinstance(call.args[0], ast.Dict):
            updates.append(call.args[0])
        else:
            return None
    return read, updates, stores


def _given_keys(scopes: Scopes, item: ast.Subscript) -> set[str]:
    """The keys of a dict that a statement gives a value; none if it does not, or they are not known."""
    statement = scopes.parents[item]
    if not isinstance(statement, ast.Assign) or statement.targets != [item]:
        return set()
    return {ast.unparse(item.slice)} if literal(item.slice) else _keys(scopes, item)


def _keys(scopes: Scopes, item: ast.Subscript) -> set[str]:
    """The keys that an item has in the turns of a loop or comprehension; none where they are not written out."""
    loops = [above for above in scopes.above(item) if isinstance(above, ast.For)]
    over = [g for above in scopes.above(item) for g in getattr(above, "generators", [])]
    return {ast.unparse(value) for loop in (*loops, *over) for value in _turns(loop, item.slice) if literal(value)}


def _turns(loop: ast.For | ast.comprehension, name: ast.expr) -> Iterator[ast.expr]:
    """What a name is in each turn of a loop that is over what is written out."""
    over = loop.iter
    listed: list[Any] = over.keys if isinstance(over, ast.Dict) else getattr(over, "elts", [])
    for element in listed if None not in listed else ():
        yield from (value for of, value in pairs(loop.target, element) if written(of) == written(name))


def _without(scopes: Scopes, statement: ast.AST) -> str:
    """The text without a statement, and without conditions and loops of which nothing is left."""
    return without(scopes.text, lines_of(scopes.all_of(statement)))
