"""The function that a registration names, where it can be found in the same file, and how it may be called."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from hookcheck.scan.source import Function, SourceFile

_DEPTH = 5
_TRANSPARENT = {"staticmethod", "classmethod", "torch.no_grad", "torch.enable_grad", "torch.inference_mode"}
_INF = 10**6


@dataclass(frozen=True)
class HookDefinition:
    """A hook that was found: its definition, and the parameters that are filled before torch fills the others.

    ``filled`` counts positional ones, such as ``self``; ``named`` are the keywords that a partial gives.
    """

    function: Function
    filled: int = 0
    named: frozenset[str] = frozenset()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the positional parameters that torch fills, in order; ``*args`` is not among them."""
        arguments = self.function.args
        return tuple(a.arg for a in [*arguments.posonlyargs, *arguments.args])[self.filled :]

    @property
    def takes(self) -> tuple[int, int]:
        """The least and the greatest number of positional arguments that it can be called with."""
        arguments = self.function.args
        names = self.parameters
        free = next((i for i, name in enumerate(names) if name in self.named), len(names))
        required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults) - self.filled
        unfilled = any(
            default is None and argument.arg not in self.named
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)
        )
        most = _INF if arguments.vararg and free == len(names) else free
        return (_INF, -1) if unfilled else (max(0, min(required, free)), most)

    @property
    def returns(self) -> tuple[ast.expr, ...]:
        """The expressions that it returns; a bare ``return`` is none."""
        if isinstance(self.function, ast.Lambda):
            return (self.function.body,)
        return tuple(node.value for node in body(self.function) if isinstance(node, ast.Return) and node.value)

    @property
    def generates(self) -> bool:
        """Whether calling it runs nothing of it, since it is a generator or a coroutine."""
        return isinstance(self.function, ast.AsyncFunctionDef) or any(
            isinstance(node, (ast.Yield, ast.YieldFrom)) for node in body(self.function)
        )


def body(function: Function) -> list[ast.AST]:
    """The nodes of a function without those of functions inside of it."""
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(function.body)
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    return nodes


def resolve(node: ast.AST | None, source: SourceFile, depth: int = _DEPTH) -> HookDefinition | None:
    """The hook that an expression stands for; None where the file does not say for certain."""
    if node is None or depth == 0:
        return None
    if isinstance(node, ast.Lambda):
        return HookDefinition(node)
    if isinstance(node, ast.Name):
        return _named(node, source, depth)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return _method(node, source)
    if isinstance(node, ast.Call):
        if source.dotted(node.func) in ("functools.partial", "partial"):
            return _partial(node, source, depth)
        return _of_call(node, source, depth)
    return None


def _named(node: ast.Name, source: SourceFile, depth: int) -> HookDefinition | None:
    meant = meaning(node, source)
    if isinstance(meant, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return HookDefinition(meant) if _plain(meant, source) else None
    return resolve(meant, source, depth - 1)


def meaning(node: ast.Name, source: SourceFile) -> ast.AST | None:
    """The function that is defined by a name, or the expression that is assigned to it; None where there is not one."""
    for scope in source.scopes(node):
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            arguments = scope.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            if any(a is not None and a.arg == node.id for a in every):
                return None
        bound = [b for b in source.scope_bodies.get(scope, ()) if _binds(b, node.id)]
        if len(bound) == 1:
            given = source.parents[bound[0]]
            assigned = isinstance(given, ast.Assign) and given.targets == bound
            return given.value if assigned else bound[0]  # type: ignore[attr-defined]
        if bound:
            return None
    return None


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name == name
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((alias.asname or alias.name.split(".")[0]) == name for alias in node.names)
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _plain(function: ast.FunctionDef | ast.AsyncFunctionDef, source: SourceFile) -> bool:
    """Whether no decorator can have changed how it is called."""
    return all(source.dotted(d.func if isinstance(d, ast.Call) else d) in _TRANSPARENT for d in function.decorator_list)


def _method(node: ast.Attribute, source: SourceFile) -> HookDefinition | None:
    """``self.hook``, ``cls.hook`` or ``Class.hook``."""
    assert isinstance(node.value, ast.Name)
    of_self = node.value.id in ("self", "cls")
    classes = [c for c in source.nodes if isinstance(c, ast.ClassDef) and c.name == node.value.id]
    definition = source.class_of(node) if of_self else (classes[0] if len(classes) == 1 else None)
    if definition is None:
        return None
    if of_self and any(_sets(inside, node.attr) for inside in ast.walk(definition)):
        return None
    methods = [m for m in definition.body if isinstance(m, ast.FunctionDef) and m.name == node.attr]
    if len(methods) != 1 or not _plain(methods[0], source):
        return None
    decorators = {source.dotted(d) for d in methods[0].decorator_list}
    bound = "staticmethod" not in decorators and (of_self or "classmethod" in decorators)
    return HookDefinition(methods[0], filled=int(bound))


def _sets(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _partial(node: ast.Call, source: SourceFile, depth: int) -> HookDefinition | None:
    if not node.args or any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    hook = resolve(node.args[0], source, depth - 1)
    if hook is None:
        return None
    named = frozenset(k.arg for k in node.keywords if k.arg)
    return HookDefinition(hook.function, hook.filled + len(node.args) - 1, hook.named | named)


def _of_call(node: ast.Call, source: SourceFile, depth: int) -> HookDefinition | None:
    """What a call makes: an object of a class of the file that can be called, or the inner function of a factory."""
    if isinstance(node.func, ast.Name):
        classes = [c for c in source.nodes if isinstance(c, ast.ClassDef) and c.name == node.func.id]
        if len(classes) == 1:
            calls = [m for m in classes[0].body if isinstance(m, ast.FunctionDef) and m.name == "__call__"]
            return HookDefinition(calls[0], filled=1) if len(calls) == 1 and _plain(calls[0], source) else None
    factory = resolve(node.func, source, depth - 1)
    if factory is None or factory.generates or len(factory.returns) != 1:
        return None
    return resolve(factory.returns[0], source, depth - 1)
