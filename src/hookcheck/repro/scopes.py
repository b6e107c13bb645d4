"""Which names of a text are which: where each is given a value, and where that is read."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

from hookcheck.repro.editing import end, replaced, start, written

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.Lambda)
OPENING = (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS)
"""What opens a scope."""

ATOMS = (
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.JoinedStr,
    *COMPREHENSIONS,
)
"""Expressions that need no brackets wherever they stand."""

Key = tuple[ast.AST, str]
"""A name in the scope that it is of."""


class Scopes:
    """A text, its tree, and of each name in each scope where it is ``stores``d and where ``loads``ed."""

    def __init__(self, text: str) -> None:
        """``text`` is a whole module."""
        self.text = text
        self.tree = ast.parse(text)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.outer: dict[ast.AST, ast.AST] = {}
        self.stores: dict[Key, list[ast.AST]] = defaultdict(list)
        self.shared: set[str] = set()
        """Names that are of another scope than the one that they are in."""
        self._read: list[tuple[ast.AST, ast.Name]] = []
        self._around: dict[ast.AST, ast.AST] = {}
        self._visit(self.tree, self.tree)

    def _visit(self, node: ast.AST, scope: ast.AST) -> None:
        """Notes what is stored and read in a part."""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.stores[scope, node.name].append(node)
        elif isinstance(node, ast.arg):
            self.stores[scope, node.arg].append(node)
        elif isinstance(node, ast.alias):
            self.stores[scope, (node.asname or node.name).partition(".")[0]].append(node)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            self.stores[scope, node.name].append(node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self.shared |= set(node.names)
        elif isinstance(node, ast.NamedExpr):
            self.shared.add(node.target.id)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._read.append((scope, node))
        elif isinstance(node, ast.Name):
            self.stores[scope, node.id].append(node)
        inside = scope
        if isinstance(node, OPENING):
            self.outer[node], inside = scope, node
            self._around.update(dict.fromkeys(_outside(node), scope))
        for child in ast.iter_child_nodes(node):
            self.parents[child] = node
            if not isinstance(child, ast.expr_context):
                self._visit(child, self._around.get(child, inside))

    @cached_property
    def loads(self) -> Mapping[Key, list[ast.Name]]:
        """Where each name is read."""
        result: dict[Key, list[ast.Name]] = defaultdict(list)
        for scope, node in self._read:
            result[self._of(scope, node.id), node.id].append(node)
        return result

    @cached_property
    def keys(self) -> Mapping[ast.AST, Key]:
        """Which name each place that reads one means."""
        return {node: key for key, nodes in self.loads.items() for node in nodes}

    def _of(self, scope: ast.AST, name: str) -> ast.AST:
        """The scope that a name is of; that of the text for names that nothing defines."""
        place, first = scope, True
        while place is not self.tree:
            if (place, name) in self.stores and (first or not isinstance(place, ast.ClassDef)):
                return place
            place, first = self.outer[place], False
        return self.tree

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The parts in which a part is, the nearest first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, class or text in which a part is."""
        parent = self.parents[node]
        while not isinstance(parent, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            parent = self.parents[parent]
        return parent

    def repeated(self, node: ast.AST) -> bool:
        """Whether a part is in a loop of its function, or in a comprehension."""
        parent = self.parents[node]
        while not isinstance(parent, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            if isinstance(parent, (ast.For, ast.While, *COMPREHENSIONS)):
                return True
            parent = self.parents[parent]
        return False

    def function(self, call: ast.Call) -> ast.AST | None:
        """The function that is called, if its name means one."""
        stores = self.stores.get(self.keys[call.func], []) if isinstance(call.func, ast.Name) else []
        return stores[0] if len(stores) == 1 else None

    def alone(self, node: ast.AST) -> bool:
        """Whether a statement is the only one of its block."""
        return not any(isinstance(b, list) and node in b and len(b) > 1 for b in vars(self.parents[node]).values())

    def all_of(self, statement: ast.AST) -> ast.stmt:
        """The condition or loop of which nothing would be left without a statement; else the statement."""
        while self.alone(statement) and isinstance(self.parents[statement], (ast.If, ast.For)):
            statement = self.parents[statement]
        assert isinstance(statement, ast.stmt)
        return statement

    def beside(self, statement: ast.AST, node: ast.AST) -> bool:
        """Whether a part is in a statement of the same block as another one, and in no loop in it."""
        for above in self.above(node):
            if isinstance(above, (ast.For, ast.While, *COMPREHENSIONS)):
                return False
            if isinstance(above, ast.stmt):
                blocks = [b for b in vars(self.parents[above]).values() if isinstance(b, list) and above in b]
                return any(statement in block for block in blocks)
        return False

    def within(self, node: ast.AST, kind: type[ast.AST]) -> ast.AST | None:
        """The outermost part of that kind in which a part is."""
        result = None
        while node in self.parents:
            node = self.parents[node]
            result = node if isinstance(node, kind) else result
        return result

    def given(self) -> Iterator[tuple[Key, ast.Assign, ast.expr]]:
        """Each name that is given a value in one place alone, with the statement and the value."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                scope = self.scope(node)
                for target, value in pairs(node.targets[0], node.value):
                    if not isinstance(target, ast.Name) or target.id in self.shared or isinstance(scope, ast.ClassDef):
                        continue
                    if len(self.stores[scope, target.id]) == 1:
                        yield (scope, target.id), node, value

    def put(self, new: Mapping[ast.expr, ast.expr]) -> str:
        """The text with other expressions in the place of some; what is in a pattern of text changes with it."""
        outermost: dict[ast.expr, str] = {}
        for node, value in new.items():
            pattern = self.within(node, ast.JoinedStr)
            if pattern is None:
                outermost[node] = self._bracketed(node, value)
        for pattern in {self.within(node, ast.JoinedStr) for node in new} - {None}:
            assert isinstance(pattern, ast.JoinedStr)
            outermost[pattern] = written(swapped(pattern, new))
        text, first = self.text, (10**9, 0)
        for node in sorted(outermost, key=lambda node: (start(node), end(node)), reverse=True):
            if end(node) <= first:
                text, first = replaced(text, node, outermost[node]), start(node)
        return text

    def _bracketed(self, node: ast.expr, value: ast.expr) -> str:
        parent = self.parents.get(node)
        loose = isinstance(parent, (ast.stmt, ast.keyword, ast.List, ast.Tuple, ast.Dict))
        loose = loose or (isinstance(parent, ast.Call) and node is not parent.func)
        text = written(value)
        number = (
            isinstance(value, ast.Constant) and not isinstance(value.value, str) and isinstance(parent, ast.Attribute)
        )
        return text if (isinstance(value, ATOMS) and not number) or loose else f"({text})"


class _Swap(ast.NodeTransformer):
    def __init__(self, new: Mapping[ast.expr, ast.expr]) -> None:
        self.new = new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new[node] if isinstance(node, ast.expr) and node in self.new else self.generic_visit(node)


def swapped(node: ast.expr, new: Mapping[ast.expr, ast.expr]) -> ast.expr:
    """An expression with others in the place of some of its parts; the tree changes."""
    result = _Swap(new).visit(node)
    assert isinstance(result, ast.expr)
    return ast.fix_missing_locations(result)


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each name of a target and what it is given, as far as that is written out."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for inner, of in zip(target.elts, value.elts):
            yield from pairs(inner, of)
    else:
        yield target, value


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """What is written in a part that opens a scope, but belongs to the scope around it."""
    if isinstance(node, FUNCTIONS):
        yield from (*node.args.defaults, *filter(None, node.args.kw_defaults))
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield from node.decorator_list
    if isinstance(node, ast.ClassDef):
        yield from (*node.bases, *node.keywords)
    if isinstance(node, COMPREHENSIONS):
        yield node.generators[0].iter
