"""A text with fewer parameters: those that each call gives the same, or that no call gives."""

from __future__ import annotations

import ast
import copy
from typing import Optional

from hookcheck.repro.editing import quoted, written
from hookcheck.repro.names import free_of_names, literal, settled
from hookcheck.repro.scopes import FUNCTIONS, Key, Scopes, swapped
from hookcheck.repro.syntax import lines_of, without

Given = dict[str, Optional[ast.expr]]


def specialised(text: str) -> str | None:
    """The text with one parameter less: one that all calls give the same literal, or that none gives."""
    scopes = Scopes(text)
    for function in (n for n in ast.walk(scopes.tree) if isinstance(n, ast.FunctionDef) and not n.decorator_list):
        calls, skipped = calls_of(scopes, function)
        if not calls or function.args.vararg or function.args.kwarg or function.args.posonlyargs:
            continue
        given = [arguments_of(function, call, skipped) for call in calls]
        for argument in [*function.args.args[skipped:], *function.args.kwonlyargs]:
            values = [by_name.get(argument.arg) if by_name is not None else None for by_name in given]
            alike = {ast.dump(value) if value is not None else "" for value in values}
            value = values[0]
            once = len(scopes.stores[function, argument.arg]) == 1
            if (
                len(alike) == 1
                and value is not None
                and once
                and _same_anywhere(scopes, value, len(calls), function, argument.arg)
            ):
                return _fixed(scopes, function, calls, argument.arg, value, skipped)
    return None


def _same_anywhere(scopes: Scopes, value: ast.expr, calls: int, function: ast.FunctionDef, name: str) -> bool:
    """Whether a value means the same in the function as where it is called: a literal, or a name of the whole text."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Name) and value in scopes.keys:
        other = {(of, stored) for of, stored in scopes.stores if of is function and stored != name}
        stores = scopes.stores.get(scopes.keys[value], [])
        still = all(isinstance(s, (ast.FunctionDef, ast.ClassDef)) for s in stores) or settled(scopes, value)
        return scopes.keys[value][0] is scopes.tree and still and (function, value.id) not in other
    if isinstance(value, ast.Lambda):
        return calls == 1 and free_of_names(scopes, value)
    return isinstance(value, ast.Tuple) and literal(value) and calls == 1


def calls_of(scopes: Scopes, function: ast.FunctionDef) -> tuple[list[ast.Call], int]:
    """All calls of a function if it is only called; and how many arguments go ahead of those that calls give."""
    scope, name = scopes.scope(function), function.name
    of_class = isinstance(scope, ast.ClassDef)
    if of_class and name != "__init__":
        return [], 0
    key = (scopes.scope(scope), scope.name) if isinstance(scope, ast.ClassDef) else (scope, name)
    if len(scopes.stores.get(key, [])) != 1:
        return [], 0
    loads = scopes.loads.get(key, [])
    parents = [scopes.parents[load] for load in loads]
    calls = [p for p, load in zip(parents, loads) if isinstance(p, ast.Call) and p.func is load]
    return (calls if len(calls) == len(loads) else []), int(of_class)


def arguments_of(function: ast.FunctionDef, call: ast.Call, skipped: int = 0) -> Given | None:
    """What each parameter is in a call; None where that is not written out."""
    names = [a.arg for a in function.args.args][skipped:]
    by_name: Given = dict(zip(reversed(names), reversed(function.args.defaults)))
    by_name.update({a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults) if d is not None})
    known = {*names, *(a.arg for a in function.args.kwonlyargs)}
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg not in known for k in call.keywords):
        return None
    if len(call.args) > len(names) or function.args.vararg or function.args.kwarg:
        return None
    by_name.update(zip(names, call.args))
    by_name.update({k.arg: k.value for k in call.keywords if k.arg})
    return by_name if known <= set(by_name) else None


def _fixed(
    scopes: Scopes, function: ast.FunctionDef, calls: list[ast.Call], name: str, value: ast.expr, skipped: int
) -> str:
    """The text with ``value`` in the place of a parameter, and calls that no longer give it."""
    place = [a.arg for a in function.args.args].index(name) - skipped if name in names_of(function) else None
    new: dict[ast.expr, ast.expr] = dict.fromkeys(scopes.loads.get((function, name), []), value)
    for call in calls:
        positional = [a for i, a in enumerate(call.args) if i != place]
        left = ast.Call(call.func, positional, [k for k in call.keywords if k.arg != name])
        if len(left.args) != len(call.args) or len(left.keywords) != len(call.keywords):
            new[call] = left
    function_line = function.lineno
    lines = scopes.put(new).split("\n")
    again = next(
        n
        for n in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(n, ast.FunctionDef) and n.lineno >= function_line and n.name == function.name
    )
    arguments = less(again.args, name)
    lines[again.lineno - 1 : again.body[0].lineno - 1] = [
        f"{' ' * again.col_offset}def {again.name}({quoted(ast.unparse(arguments))}):",
        *(line for line in lines[again.lineno - 1 : again.body[0].lineno - 1] if line.strip().startswith(("#", "@"))),
    ]
    return "\n".join(lines)


def names_of(function: ast.FunctionDef) -> list[str]:
    """The parameters that may be given by position."""
    return [a.arg for a in function.args.args]


def spread(text: str) -> str | None:
    """The text without one function of one expression, where calls have it: what they give by name is handed on."""
    scopes = Scopes(text)
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef) and n.args.kwarg is not None):
        calls, _ = calls_of(scopes, function)
        returned = function.body[0]
        if not calls or len(function.body) > 1 or not isinstance(returned, (ast.Return, ast.Expr)):
            continue
        done = isinstance(returned, ast.Expr) and not all(isinstance(scopes.parents[call], ast.Expr) for call in calls)
        if returned.value is None or done:
            continue
        names = names_of(function)
        more = function.args.kwarg.arg  # type: ignore[union-attr]
        given = [k for n in ast.walk(returned.value) if isinstance(n, ast.Call) for k in n.keywords if not k.arg]
        plain = all(len(c.args) == len(names) and all(k.arg for k in c.keywords) for c in calls)
        if not plain or [written(k.value) for k in given] != [more] or function.decorator_list or function.args.vararg:
            continue
        reads = [n.id for n in ast.walk(returned.value) if isinstance(n, ast.Name)]
        if any(reads.count(name) != 1 for name in (*names, more)) or any(
            n in scopes.keys for n in ast.walk(function.args)
        ):
            continue
        new: dict[ast.expr, ast.expr] = {}
        for call in calls:
            value = copy.deepcopy(returned.value)
            for part in (n for n in ast.walk(value) if isinstance(n, ast.Call)):
                part.keywords = [k for key in part.keywords for k in (call.keywords if key.arg is None else [key])]
            by_name = dict(zip(names, call.args))
            new[call] = swapped(
                value, {n: by_name[n.id] for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in by_name}
            )
        changed = scopes.put(new)
        again = next(n for n in ast.parse(changed).body if getattr(n, "name", "") == function.name)
        return without(changed, lines_of(again))
    return None


def undefaulted(text: str) -> str | None:
    """The text with one function that reads a name, where it was handed it as a default: no loop changes that name."""
    scopes = Scopes(text)
    for node in ast.walk(scopes.tree):
        if isinstance(node, FUNCTIONS) and not scopes.repeated(node):
            ordered = [*node.args.posonlyargs, *node.args.args]
            defaults = [*zip(reversed(ordered), reversed(node.args.defaults))]
            defaults += [(a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults) if d is not None]
            for argument, default in defaults:
                if isinstance(default, ast.Name) and settled(scopes, default) and _never_given(scopes, node, argument):
                    reads = scopes.loads.get((node, argument.arg), [])
                    if argument.arg != default.id and any(scopes.stores.get((node, default.id), [])):
                        continue
                    return _without_argument(scopes, node, argument, dict.fromkeys(reads, default))
    return None


def _never_given(scopes: Scopes, function: ast.FunctionDef | ast.Lambda, argument: ast.arg) -> bool:
    """Whether no call hands an argument on, as far as the text shows: it is given its own name, as in loops."""
    calls = []
    if isinstance(function, ast.FunctionDef):
        key: Key = (scopes.scope(function), function.name)
        calls = [p for load in scopes.loads.get(key, []) if getattr(p := scopes.parents[load], "func", None) is load]
    place = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs].index(argument)
    return len(scopes.stores[function, argument.arg]) == 1 and not any(
        isinstance(call, ast.Call)
        and (len(call.args) > place or any(k.arg in (None, argument.arg) for k in call.keywords))
        for call in calls
    )


def _without_argument(
    scopes: Scopes, function: ast.FunctionDef | ast.Lambda, argument: ast.arg, new: dict[ast.expr, ast.expr]
) -> str:
    """The text with a function that lacks an argument, and reads something else where it read it."""
    place = function.lineno, function.col_offset
    text = scopes.put({node: value for node, value in new.items() if written(value) != written(node)})
    again = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, FUNCTIONS) and (n.lineno, n.col_offset) == place)
    arguments = less(again.args, argument.arg)
    if isinstance(again, ast.Lambda):
        return _relambda(text, again, arguments)
    lines = text.split("\n")
    lines[again.lineno - 1 : again.body[0].lineno - 1] = [
        f"{' ' * again.col_offset}def {again.name}({quoted(ast.unparse(arguments))}):",
        *_comments(lines[again.lineno - 1 : again.body[0].lineno - 1]),
    ]
    return "\n".join(lines)


def _comments(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip().startswith("#")]


def _relambda(text: str, function: ast.Lambda, arguments: ast.arguments) -> str:
    scopes = Scopes(text)
    again = next(
        n
        for n in ast.walk(scopes.tree)
        if isinstance(n, ast.Lambda) and (n.lineno, n.col_offset) == (function.lineno, function.col_offset)
    )
    return scopes.put({again: ast.Lambda(arguments, again.body)})


def less(arguments: ast.arguments, name: str) -> ast.arguments:
    """The arguments without one."""
    left = copy.deepcopy(arguments)
    for place, argument in enumerate(left.args):
        if argument.arg == name:
            behind = len(left.args) - place
            if behind <= len(left.defaults):
                del left.defaults[len(left.defaults) - behind]
            del left.args[place]
            return left
    for place, argument in enumerate(left.kwonlyargs):
        if argument.arg == name:
            del left.kwonlyargs[place], left.kw_defaults[place]
            break
    return left
