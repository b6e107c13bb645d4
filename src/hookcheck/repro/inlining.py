"""Calls of functions that only return or do one thing, with that in their place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from hookcheck.repro.editing import quoted
from hookcheck.repro.scopes import Scopes

SIMPLE = (ast.Constant, ast.Name)
"""What may stand in several places, or in a function, for the argument that it was."""

WIDE = 80
"""What is wider takes fewer lines in a function that several calls share than in the place of each."""


def inlined(text: str) -> str:
    """The text without its functions of one expression, as far as calls can have that expression instead."""
    skipped: set[str] = set()
    while True:
        tree = ast.parse(text)
        function = next((f for f in _functions(tree) if f.name not in skipped), None)
        if function is None:
            return text
        changed = _without_calls(text, function.name)
        if changed is None:
            skipped.add(function.name)
        else:
            text = changed


def plainer(text: str) -> str:
    """The text with its functions without the ``**keywords`` that no call gives them."""
    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]
    for function in (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.args.kwarg and not n.decorator_list):
        calls = [n for n in nodes if isinstance(n, ast.Call) and _is(n.func, function.name)]
        more = function.args.kwarg.arg if function.args.kwarg else ""
        if len(calls) != sum(_is(n, function.name) for n in nodes) or any(call.keywords for call in calls):
            continue
        function.args.kwarg = None
        function.body = [part for part in function.body if not (isinstance(part, ast.For) and _over(part, more))]
        _without_spread(function, more)
        assigned, last = function.body[-2:] if len(function.body) > 1 else (None, None)
        if isinstance(assigned, ast.Assign) and isinstance(last, ast.Return) and _alike(assigned.targets, last.value):
            function.body[-2:] = [ast.Return(assigned.value)]
        if not any(_is(node, more) for node in ast.walk(function)):
            lines = text.split("\n")
            lines[function.lineno - 1 : function.end_lineno] = quoted(ast.unparse(function)).split("\n")
            return plainer("\n".join(lines))
    return text


def _without_spread(function: ast.FunctionDef, name: str) -> None:
    """Takes ``**name`` out of the calls and the dicts of a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            node.keywords = [given for given in node.keywords if given.arg or not _is(given.value, name)]
        elif isinstance(node, ast.Dict):
            items = [(k, v) for k, v in zip(node.keys, node.values) if k or not _is(v, name)]
            node.keys, node.values = [k for k, _ in items], [v for _, v in items]


def _over(loop: ast.For, name: str) -> bool:
    """Whether a loop is over the items of what has that name."""
    over = loop.iter
    return isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and _is(over.func.value, name)


def _alike(targets: list[ast.expr], value: ast.expr | None) -> bool:
    """Whether one name is given a value, and that is the name."""
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and value is not None and _is(value, targets[0].id)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if (
            isinstance(node, ast.FunctionDef)
            and not node.decorator_list
            and not (node.args.kwonlyargs or node.args.kwarg or node.args.posonlyargs)
            and len(node.body) == 1
            and _result(node) is not None
        ):
            yield node


def _result(function: ast.FunctionDef) -> ast.expr | None:
    """The one expression of a function: what it returns, or what it does."""
    (only,) = function.body
    return only.value if isinstance(only, (ast.Return, ast.Expr)) else None


def _without_calls(text: str, name: str) -> str | None:
    """The text without a function, or None where it must stay."""
    while True:
        scopes = Scopes(text)
        tree = scopes.tree
        function = next(node for node in _functions(tree) if node.name == name)
        if name in scopes.shared or len(scopes.stores[tree, name]) != 1:
            return None
        loads = scopes.loads.get((tree, name), [])  # not where a parameter or a local name is alike
        uses = [n for n in loads if function not in scopes.above(n)]
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.func in loads]
        if not calls and not uses:
            lines = text.split("\n")
            return "\n".join([*lines[: function.lineno - 1], *lines[function.end_lineno or 0 :]])
        acts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        if len(calls) > 1 and len(ast.unparse(function.body[0])) > WIDE:
            return None
        if len(calls) != len(uses) or (isinstance(function.body[0], ast.Expr) and not acts.issuperset(calls)):
            return None
        call = max(calls, key=lambda node: (node.lineno, node.col_offset))
        value = _value(function, call, scopes)
        if value is None:
            return None
        text = scopes.put({call: value})


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _value(function: ast.FunctionDef, call: ast.Call, scopes: Scopes) -> ast.expr | None:
    """What a call gives, as an expression in the place of the call; None where that would be another one."""
    arguments = _arguments(function, call)
    value = _result(function)
    if arguments is None or value is None:
        return None
    uses = Counter(n.id for n in ast.walk(value) if isinstance(n, ast.Name))
    inner = [n for n in ast.walk(value) if isinstance(n, (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp))]
    deferred = {n.id for part in inner for n in ast.walk(part) if isinstance(n, ast.Name)}
    bound = {n.arg for n in ast.walk(value) if isinstance(n, ast.arg)}
    bound |= {n.id for n in ast.walk(value) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    tree = scopes.tree
    turned = {n.id for loop in ast.walk(tree) if isinstance(loop, (ast.For, ast.While)) for n in _stored(loop)}
    free = set(uses) - set(arguments) - bound
    if any((scope, name) in scopes.stores for scope in scopes.above(call) if scope is not tree for name in free):
        return None
    for name, argument in arguments.items():
        read = [n for n in ast.walk(argument) if isinstance(n, ast.Name)]
        names = {n.id for n in read}
        changing = any(len(scopes.stores.get(scopes.keys[n], ())) != 1 or n.id in turned for n in read)
        part = isinstance(argument, ast.Attribute) and isinstance(argument.value, ast.Name) and uses[name] == 1
        stays = isinstance(argument, SIMPLE) or part
        if names & bound or (uses[name] > 1 and not stays) or (name in deferred and (changing or not stays)):
            return None
    result: ast.expr = _Put(arguments).visit(ast.parse(ast.unparse(value), mode="eval").body)
    return ast.fix_missing_locations(result)


def _stored(loop: ast.AST) -> Iterator[ast.Name]:
    return (n for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """What each parameter is in a call."""
    names = [argument.arg for argument in function.args.args]
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg not in names for k in call.keywords):
        return None
    by_parameter: dict[str, ast.expr] = dict(zip(reversed(names), reversed(function.args.defaults)))
    by_parameter.update(zip(names, call.args))
    by_parameter.update({k.arg: k.value for k in call.keywords if k.arg})
    more = call.args[len(names) :]
    if function.args.vararg is not None:
        by_parameter[function.args.vararg.arg] = ast.List(more, ast.Load())
    elif more:
        return None
    return by_parameter if set(names) <= set(by_parameter) else None


class _Put(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, expressions: dict[str, ast.expr]) -> None:
        self.expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.expressions.get(node.id, node)
