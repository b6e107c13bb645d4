"""A text with what follows from the values that it states put in, and the branch that they take."""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from hookcheck.hooks.kinds import KINDS
from hookcheck.releases.numbers import release
from hookcheck.repro.editing import written
from hookcheck.repro.names import PURE, WIDEST, leaves, literal
from hookcheck.repro.scopes import COMPREHENSIONS, FUNCTIONS, Scopes, pairs, swapped
from hookcheck.repro.syntax import CHECK, outside_of_functions

NEWER = "99.0"
"""A release after all others: what a condition on releases says of it and of the first one, it says of all between."""


@lru_cache(maxsize=1000)
def folded(text: str, since: str) -> str | None:
    """The text with one expression worked out, as far as it is known for all releases from ``since``."""
    scopes = Scopes(text)
    known = Foreknown(scopes, (since, NEWER))
    new: dict[ast.expr, ast.expr] = {}
    for node in ast.walk(scopes.tree):
        if isinstance(node, ast.expr) and not any(over in new for over in scopes.above(node)):
            value = known.value(node) or _partly(scopes, node) or _registers(scopes, node, since)
            if isinstance(node, ast.JoinedStr) and value is not None and len(written(value)) > WIDEST - 20:
                value = value if len(written(value)) < len(written(node)) else None
            if value is not None and written(value) != written(node):
                new[node] = value
    return scopes.put(new) if new else None


def _registers(scopes: Scopes, node: ast.expr, since: str) -> ast.expr | None:
    """``True`` for whether a module, or ``nn.Module``, has what registers hooks on it, by a name or each of some that a
    loop is over, where all releases from ``since`` have that."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "hasattr":
        return None
    if not isinstance(node.args[0], ast.Name) and ast.unparse(node.args[0]) != "nn.Module":
        return None
    of = node.args[1]
    names = [of]
    if isinstance(of, ast.Name):
        loops = (n for n in scopes.above(node) if isinstance(n, ast.For) and written(n.target) == of.id)
        over = next((loop.iter for loop in loops), None)
        names = over.elts if isinstance(over, (ast.Tuple, ast.List)) else []
    there = (isinstance(n, ast.Constant) and release(OF_MODULES.get(n.value, NEWER)) <= release(since) for n in names)
    return ast.Constant(True) if names and all(there) else None


OF_MODULES: dict[object, str] = {}
for _kind in (kind for kind in KINDS.values() if kind.owner == "nn.Module"):
    OF_MODULES[_kind.register] = min(_kind.since, OF_MODULES.get(_kind.register, _kind.since), key=release)
"""What registers hooks on modules, and since which release."""


class Foreknown:
    """What can be worked out of a text without torch."""

    def __init__(self, scopes: Scopes, releases: Sequence[str] = ()) -> None:
        """With ``releases``, what depends on the release of torch is known too where it is the same for all of them."""
        self.scopes = scopes
        self.releases = releases
        self.literals = {
            key: value
            for key, _, value in scopes.given()
            if literal(value)
            and (
                not isinstance(value, (ast.List, ast.Dict))
                or all(leaves(scopes, load) for load in scopes.loads.get(key, []))
            )
        }
        self.functions: dict[str, ast.FunctionDef] = {}
        while True:
            more = [f for f in scopes.tree.body if isinstance(f, ast.FunctionDef) and f.name not in self.functions]
            more = [f for f in more if self._pure(f)]
            if not more:
                break
            self.functions.update((f.name, f) for f in more)

    def _pure(self, function: ast.FunctionDef) -> bool:
        refused = (ast.Global, ast.Nonlocal, ast.Raise, ast.Try, ast.With, ast.Import, ast.ImportFrom, ast.ClassDef)
        inside = [*ast.walk(function)]
        if function.decorator_list or len(self.scopes.stores[self.scopes.tree, function.name]) != 1:
            return False
        return not any(isinstance(n, refused) for n in inside) and self._known(function, inside)

    def _known(self, node: ast.AST, inside: list[ast.AST]) -> bool:
        """Whether all names in a part are those that it gives values, or known."""
        for name in (n for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
            scope, _ = key = self.scopes.keys[name]
            local = scope in inside or scope is node
            of = self.scopes.parents[name]
            if self.releases and name.id == "torch" and isinstance(of, ast.Attribute) and of.attr == "__version__":
                continue
            builtin = key not in self.scopes.stores or name.id == "product"
            function = scope is self.scopes.tree and name.id in self.functions
            if not local and not function and not (builtin and name.id in PURE) and key not in self.literals:
                return False
        return True

    def value(self, node: ast.expr) -> ast.expr | None:
        """What an expression gives, where that can be worked out; sums of numbers stay, since they say why."""
        worth = (ast.Call, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Subscript, ast.JoinedStr)
        starred = isinstance(node, (ast.Tuple, ast.List)) and any(isinstance(e, ast.Starred) for e in node.elts)
        if not isinstance(node, (*worth, ast.ListComp, ast.GeneratorExp)) and not starred:
            return None
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return None
        inside = [*ast.walk(node)]
        if any(isinstance(n, (ast.Lambda, ast.NamedExpr, ast.Yield)) for n in inside) or not self._known(node, inside):
            return None
        try:
            result, *others = [self._run(node, release) for release in self.releases or ("",)]
            if isinstance(self.scopes.parents.get(node), ast.If):
                result, *others = map(bool, (result, *others))
        except Exception:
            return None
        if any(other != result for other in others):
            return None
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) and not isinstance(result, (str, bool, tuple, list)):
            return None
        if isinstance(node, ast.GeneratorExp) or type(result).__name__ in ("map", "zip", "product", "enumerate"):
            result = tuple(result)
        given = ast.parse(repr(result), mode="eval").body if _plain(result) else None
        return given if given is not None and len(repr(result)) <= WIDEST else None

    def _run(self, node: ast.expr, release: str = "") -> Any:
        names: dict[str, Any] = {**PURE, "torch": SimpleNamespace(__version__=release)}
        for function in self.functions.values():
            exec(ast.unparse(function), names)
        top = {name: value for (scope, name), value in self.literals.items() if scope is self.scopes.tree}
        names.update((name, ast.literal_eval(value)) for name, value in top.items())
        here = {
            n: self.literals[self.scopes.keys[n]]
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and n in self.scopes.keys and self.scopes.keys[n] in self.literals
        }
        copies: dict[int, Any] = {}
        twin = copy.deepcopy(node, copies)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # of a value that is put in: 'a text' is not None
            return eval(written(swapped(twin, {copies[id(n)]: value for n, value in here.items()})), names)

    def turns(self, loop: ast.For) -> list[str]:
        """What a loop is over, where that can be worked out."""
        return self.listed(loop.iter)

    def listed(self, node: ast.expr) -> list[str]:
        """What an expression lists, where that can be worked out."""
        if not isinstance(node, (ast.Call, ast.Tuple, ast.List, ast.Name)) or not self._known(node, [*ast.walk(node)]):
            return []
        try:
            result = [*self._run(node)]
        except Exception:
            return []
        return [written(ast.parse(repr(turn), mode="eval").body) for turn in result] if _plain(result) else []


def _plain(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return type(value) in (tuple, list) and all(map(_plain, value))
    if type(value) is dict:
        return all(map(_plain, (*value, *value.values())))
    return value is None or type(value) in (str, int, float, bool)


def _partly(scopes: Scopes, node: ast.expr) -> ast.expr | None:
    """What an expression becomes by a part of it that is known."""
    if isinstance(node, ast.IfExp) and literal(node.test):
        return node.body if ast.literal_eval(node.test) else node.orelse
    if isinstance(node, ast.BoolOp) and (said := _of_parts(scopes, node)) is not None:
        return said
    if isinstance(node, ast.Compare) and _of_a_display(scopes, node):
        return ast.Constant(isinstance(node.ops[0], ast.IsNot))
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict) and literal(node.slice):
        by_key = {ast.unparse(key): value for key, value in zip(node.value.keys, node.value.values) if key}
        acts = (n.func for value in node.value.values for n in outside_of_functions(value) if isinstance(n, ast.Call))
        harmless = all(ast.unparse(act) in ("partial", "make_dataclass") for act in acts)
        return by_key.get(ast.unparse(node.slice)) if harmless and all(node.value.keys) else None
    if isinstance(node, ast.Subscript) and literal(node.slice) and (alike := same_entries(node.value)) is not None:
        return ast.Subscript(alike, node.slice, node.ctx)
    if isinstance(node, ast.JoinedStr):
        return _merged(node)
    if isinstance(node, ast.Call) and any(k.arg is None and _options(k.value) is not None for k in node.keywords):
        options = [_options(k.value) if k.arg is None else [k] for k in node.keywords]
        if None not in options:
            return ast.Call(node.func, node.args, [k for each in options for k in each or ()])
    if isinstance(node, ast.Call) and any(map(_lists, node.args)):
        written_out = (a.value.elts if _lists(a) else [a] for a in node.args)  # type: ignore[attr-defined]
        return ast.Call(node.func, [argument for each in written_out for argument in each], node.keywords)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Lambda):
        return _applied(node.func, node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) and ast.unparse(node.func.func) == "partial":
        function, *given = node.func.args
        return ast.Call(function, [*given, *node.args], [*node.func.keywords, *node.keywords])
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "partial" and _called_at_once(scopes, node):
        nothing = ast.arguments([], [], None, [], [], None, [])
        return ast.Lambda(nothing, ast.Call(node.args[0], node.args[1:], node.keywords))
    if isinstance(node, (ast.ListComp, ast.DictComp)):
        return _written_out(node)
    if isinstance(node, ast.Call) and _of_two(node):
        return ast.Attribute(node.args[0], node.args[1].value, ast.Load())  # type: ignore[attr-defined]
    return None


def _called_at_once(scopes: Scopes, act: ast.expr) -> bool:
    """Whether an act is handed to the check, which calls it once, to see that it works."""
    call = scopes.parents.get(act)
    return isinstance(call, ast.Call) and act in call.args and ast.unparse(call.func) == f"{CHECK}.works"


def _of_parts(scopes: Scopes, node: ast.BoolOp) -> ast.expr | None:
    """What an ``and`` or an ``or`` becomes by a part that is known: the first one, or, of a condition, any."""
    asked = isinstance(scopes.parents.get(node), ast.If)
    for part in filter(literal, node.values if asked else node.values[:1]):
        decides = bool(ast.literal_eval(part)) is isinstance(node.op, ast.Or)
        rest = [value for value in node.values if value is not part]
        if part is node.values[0] and decides:
            return part
        if not decides:
            return rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    return None


DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


def _of_a_display(scopes: Scopes, node: ast.Compare) -> bool:
    """Whether something that is written out as a list or the like, and no other value has its name, is None."""
    asked = isinstance(node.ops[0], (ast.Is, ast.IsNot)) and ast.unparse(node.comparators[0]) == "None"
    if not asked or node.comparators[1:] or not isinstance(node.left, ast.Name):
        return False
    return any(key == scopes.keys.get(node.left) and isinstance(value, DISPLAYS) for key, _, value in scopes.given())


def _lists(argument: ast.expr) -> bool:
    """Whether an argument is a star and what it stands for, written out."""
    return isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.Tuple, ast.List))


def _options(given: ast.expr) -> list[ast.keyword] | None:
    """The keyword arguments that a dict stands for which is written out, or of which others are part; None where it is
    neither."""
    if not isinstance(given, ast.Dict):
        return None
    names = [k.value if isinstance(k, ast.Constant) else k for k in given.keys]
    if not all(name is None or isinstance(name, str) for name in names):
        return None
    return [ast.keyword(name, v) for name, v in zip(names, given.values)]  # type: ignore[arg-type]


def same_entries(of: ast.expr) -> ast.expr | None:
    """The dict of which another one, ``dict(it)`` or some of its items, has entries."""
    if isinstance(of, ast.Call) and ast.unparse(of.func) == "dict" and len(of.args) == 1 and not of.keywords:
        pairs_of = isinstance(of.args[0], ast.Call) and ast.unparse(of.args[0].func) in PURE
        return None if pairs_of else of.args[0]
    if isinstance(of, ast.DictComp) and len(of.generators) == 1:
        over, items = of.generators[0], f"({ast.unparse(of.key)}, {ast.unparse(of.value)})"
        given = isinstance(over.iter, ast.Call) and isinstance(over.iter.func, ast.Attribute)
        if given and over.iter.func.attr == "items" and ast.unparse(over.target) == items:  # type: ignore[attr-defined]
            return over.iter.func.value  # type: ignore[attr-defined,no-any-return]
    return None


def _of_two(call: ast.Call) -> bool:
    """Whether a call is ``getattr`` with a name that is written out."""
    named = isinstance(call.func, ast.Name) and call.func.id == "getattr" and len(call.args) == 2
    return named and isinstance(call.args[1], ast.Constant)


def _merged(pattern: ast.JoinedStr) -> ast.expr | None:
    """A pattern of text with the strings in it that are known."""
    values: list[ast.expr] = []
    for part in pattern.values:
        if isinstance(part, ast.FormattedValue) and part.conversion == -1 and part.format_spec is None:
            part = ast.Constant(str(part.value.value)) if isinstance(part.value, ast.Constant) else part
        before = values[-1] if values else None
        if isinstance(part, ast.Constant) and isinstance(before, ast.Constant):
            part = ast.Constant(str(before.value) + str(part.value))
            values.pop()
        values.append(part)
    if len(values) == 1 and isinstance(values[0], ast.Constant):
        return values[0]
    return ast.JoinedStr(values) if len(values) < len(pattern.values) else None


def _applied(function: ast.Lambda, call: ast.Call) -> ast.expr | None:
    """What a function gives that is called where it is written."""
    names = [argument.arg for argument in function.args.args]
    others = (function.args.vararg, function.args.kwarg, *function.args.kwonlyargs)
    given = [*call.args, *function.args.defaults[len(function.args.defaults) - len(names) + len(call.args) :]]
    if any(others) or call.keywords or len(given) != len(names) or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    inner = [n for n in ast.walk(function.body) if isinstance(n, (*FUNCTIONS, *COMPREHENSIONS))]
    uses = [n for n in ast.walk(function.body) if isinstance(n, ast.Name) and n.id in names]
    simple = all(isinstance(a, (ast.Constant, ast.Name)) for a in given)
    if inner or (not simple and any(sum(n.id == name for n in uses) != 1 for name in names)):
        return None
    by_name = dict(zip(names, given))
    return swapped(copy.deepcopy(function.body), {}) if not uses else _with(function.body, by_name)


def _with(body: ast.expr, by_name: dict[str, ast.expr]) -> ast.expr:
    twin = copy.deepcopy(body)
    return swapped(
        twin, {n: copy.deepcopy(by_name[n.id]) for n in ast.walk(twin) if isinstance(n, ast.Name) and n.id in by_name}
    )


FEW = 3
"""A comprehension over so many is written out."""


def _written_out(node: ast.ListComp | ast.DictComp) -> ast.expr | None:
    """A comprehension over a few literals, as the list or the dict that it gives."""
    over = node.generators[0]
    one = len(node.generators) == 1 and not over.ifs and isinstance(over.iter, (ast.Tuple, ast.List))
    if not one or not literal(over.iter) or len(over.iter.elts) > FEW:  # type: ignore[attr-defined]
        return None
    parts_of = []
    for element in over.iter.elts:  # type: ignore[attr-defined]
        given = [*pairs(over.target, element)]
        if not all(isinstance(name, ast.Name) for name, _ in given):
            return None
        by_name = {name.id: value for name, value in given}  # type: ignore[attr-defined]
        parts = (node.elt,) if isinstance(node, ast.ListComp) else (node.key, node.value)
        parts_of.append([_with(part, by_name) for part in parts])
    if isinstance(node, ast.ListComp):
        return ast.List([part for (part,) in parts_of], ast.Load())
    return ast.Dict([key for key, _ in parts_of], [value for _, value in parts_of])
