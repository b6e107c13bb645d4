"""A text with the value of a name in its place: a literal, another name, what is read once."""

from __future__ import annotations

import ast
import builtins
import itertools

from hookcheck.repro.editing import written
from hookcheck.repro.scopes import Scopes, pairs
from hookcheck.repro.syntax import LIFETIMES, lines_of, without

PURE = {
    name: getattr(builtins, name)
    for name in (
        *("len", "list", "tuple", "dict", "set", "sorted", "bool", "int", "float", "str", "repr"),
        *("any", "all", "max", "min", "sum", "zip", "range", "enumerate", "map"),
    )
} | {"product": itertools.product}
"""What gives the same for the same, and changes nothing."""

READING = frozenset(("items", "keys", "values", "get", "index", "count"))
"""Methods that change nothing."""

WIDEST = 90
"""So wide is a value at most that is put in for what gives it."""

MODULES = ("copy", "nn", "torch")
"""Of which a part may stand where its name is read."""


def literal(node: ast.expr) -> bool:
    """Whether an expression is a value that is written out."""
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return not any(isinstance(part, (ast.Set, ast.BinOp)) for part in ast.walk(node))


def put_in(text: str) -> str | None:
    """The text with the value of one name in its place: a literal, another name that stays what it is, or a part of a
    module; what is read once may be a list or a function too. None where there is none."""
    scopes = Scopes(text)
    for key, statement, value in scopes.given():
        loads = scopes.loads.get(key, [])
        if loads and _stands(scopes, statement, value, loads):
            changed = scopes.put(dict.fromkeys(loads, value))
            return without_name(changed, statement, key[1])
    return _overwritten(scopes)


def _overwritten(scopes: Scopes) -> str | None:
    """The text with a literal put in that one statement of its block reads, and gives its name another value."""
    for node in ast.walk(scopes.tree):
        for block in (b for b in vars(node).values() if isinstance(b, list)):
            for place, part in enumerate(block):
                if not isinstance(part, ast.Assign) or not isinstance(part.value, ast.Constant):
                    continue
                if len(part.targets) != 1 or not isinstance(part.targets[0], ast.Name):
                    continue
                name = part.targets[0].id
                uses = (
                    [n for n in ast.walk(p) if isinstance(n, ast.Name) and n.id == name] for p in block[place + 1 :]
                )
                following = next(((p, u) for p, u in zip(block[place + 1 :], uses) if u), None)
                if following is None or not isinstance(following[0], ast.Assign):
                    continue
                loads = [n for n in following[1] if isinstance(n.ctx, ast.Load)]
                if len(loads) < len(following[1]) and not any(
                    isinstance(n, ast.Lambda) for n in ast.walk(following[0])
                ):
                    return without(scopes.put(dict.fromkeys(loads, part.value)), lines_of(part))
    return None


def without_name(text: str, statement: ast.Assign, name: str) -> str:
    """The text without one name in a statement that gives it a value."""
    again = next(
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Assign) and n.lineno == statement.lineno
    )  # a statement is not moved by what comes after it
    left = [(of, value) for of, value in pairs(again.targets[0], again.value) if written(of) != name]
    if not left:
        return without(text, lines_of(again))
    joined = f"{', '.join(written(of) for of, _ in left)} = {', '.join(written(value) for _, value in left)}"
    lines = text.split("\n")
    lines[again.lineno - 1 : again.end_lineno] = [f"{' ' * again.col_offset}{joined}"]
    return "\n".join(lines)


def _stands(scopes: Scopes, statement: ast.Assign, value: ast.expr, loads: list[ast.Name]) -> bool:
    """Whether a value may stand wherever its name is read."""
    if isinstance(value, ast.Constant):
        return len(written(value)) <= WIDEST // 2 or len(loads) == 1
    if len(loads) == 1 and _asked_next(scopes, statement, loads[0]):
        return len(written(value)) <= WIDEST - 20
    if len(loads) == 1 and (
        _made_for_later(scopes, value, loads[0]) or _first_of_next(scopes, statement, value, loads[0])
    ):
        return len(written(value)) <= WIDEST - 20
    if isinstance(value, ast.Attribute):
        root = value
        while isinstance(root, ast.Attribute):
            root = root.value  # type: ignore[assignment]
        return (
            len(loads) < 3
            and isinstance(root, ast.Name)
            and root.id in MODULES
            and not scopes.stores.get(scopes.keys[root])
        )
    if isinstance(value, ast.Name):
        return settled(scopes, value) and not scopes.repeated(statement)
    if isinstance(value, ast.Lambda) and len(loads) == 1:
        inside = isinstance(scopes.parents[loads[0]], ast.Call)
        here = scopes.scope(statement) is scopes.scope(loads[0]) and not scopes.repeated(loads[0])
        return inside and (here or free_of_names(scopes, value))
    if literal(value) and isinstance(value, (ast.Tuple, ast.List, ast.Dict)):
        short = len(written(value)) <= WIDEST // 4 and isinstance(value, ast.Tuple)
        read = isinstance(value, ast.Tuple) or all(leaves(scopes, load) for load in loads)
        return read and (short or len(loads) == 1)
    return False


def _asked_next(scopes: Scopes, statement: ast.Assign, load: ast.Name) -> bool:
    """Whether the statement after one that gives a name a value is a condition on that, compared with something."""
    compared = scopes.parents[load]
    condition = scopes.parents[compared]
    if not isinstance(compared, ast.Compare) or compared.left is not load or not isinstance(condition, ast.If):
        return False
    blocks = [b for b in vars(scopes.parents[statement]).values() if isinstance(b, list) and statement in b]
    return compared is condition.test and any(condition in b[b.index(statement) + 1 :][:1] for b in blocks)


def _made_for_later(scopes: Scopes, value: ast.expr, load: ast.Name) -> bool:
    """Whether a value is a function with some of its arguments, which are what they are when it is called, once."""
    if not isinstance(value, ast.Call) or written(value.func) != "partial" or scopes.repeated(load):
        return False
    of = scopes.parents[load]
    given = [*value.args, *(keyword.value for keyword in value.keywords)]
    names = [n for n in given if isinstance(n, ast.Name) and n in scopes.keys and scopes.keys[n] in scopes.stores]
    simple = all(isinstance(n, (ast.Name, ast.Constant)) for n in given)
    here = scopes.scope(value) is scopes.scope(load)
    return isinstance(of, ast.Call) and of.func is load and here and simple and all(settled(scopes, n) for n in names)


def _first_of_next(scopes: Scopes, statement: ast.Assign, value: ast.expr, load: ast.Name) -> bool:
    """Whether the statement after one that gives a name a value begins with that: it enters what a call gives as a
    context, or calls an attribute; or calls something by names with it, and nothing in it is called before. Where a
    script asks what is still there, a name may hold something."""
    if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name) or LIFETIMES.search(scopes.text):
        return False
    above = scopes.parents[load]
    if isinstance(value, ast.Call) and isinstance(above, ast.withitem):
        following = scopes.parents[above]
        begins = isinstance(following, ast.With) and following.items[0].context_expr is load
    elif isinstance(value, ast.Dict) and isinstance(above, ast.keyword):
        call = scopes.parents[above]
        following = scopes.parents[call]
        begins = not any(isinstance(n, ast.Call) for n in ast.walk(call) if n is not call)
    else:
        following = scopes.parents[above]
        begins = isinstance(above, ast.Call) and above.func is load and isinstance(value, ast.Attribute)
        begins &= isinstance(following, (ast.Expr, ast.Assign)) and following.value is above
    blocks = [b for b in vars(scopes.parents[statement]).values() if isinstance(b, list) and statement in b]
    return begins and any(following in b[b.index(statement) + 1 :][:1] for b in blocks)


def free_of_names(scopes: Scopes, function: ast.Lambda) -> bool:
    """Whether a function reads no names but its own, those of functions and classes of the text, and imported ones."""
    inside = {*ast.walk(function)}
    keys = (scopes.keys[n] for n in inside if n in scopes.keys)
    others = (scopes.stores.get(key, []) for key in keys if key[0] not in inside)
    return all(isinstance(store, (ast.FunctionDef, ast.ClassDef)) for stores in others for store in stores)


def settled(scopes: Scopes, name: ast.Name) -> bool:
    """Whether a name is given one value, and that once."""
    key = scopes.keys.get(name)
    if key is None or name.id in scopes.shared:
        return False
    stores = scopes.stores.get(key, [])
    return len(stores) == 1 and not (isinstance(stores[0], (ast.Name, ast.FunctionDef)) and scopes.repeated(stores[0]))


def leaves(scopes: Scopes, load: ast.Name) -> bool:
    """Whether what reads a list or a dict leaves it as it is."""
    parent = scopes.parents[load]
    if isinstance(parent, ast.Attribute):
        return parent.attr in READING and isinstance(scopes.parents[parent], ast.Call)
    if isinstance(parent, ast.keyword):
        return parent.arg is None
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id in PURE and load is not parent.func
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load) and load is parent.value
    return isinstance(parent, (ast.Compare, ast.For, ast.comprehension, ast.Starred, ast.FormattedValue))
