"""Every place in a file that registers a hook, with its kind and what it is registered on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hookcheck.scan.apis import FUNCTIONS, LEAF, METHODS, MODULE, OTHER, TENSOR, UNRELATED_TOO, Api
from hookcheck.scan.hooks import HookDefinition, meaning, resolve
from hookcheck.scan.receivers import Receivers
from hookcheck.scan.source import SourceFile

_OTHER_FRAMEWORKS = {"paddle", "oneflow", "mindspore", "jittor", "tensorflow", "mxnet"}


@dataclass(frozen=True)
class Registration:
    """One call that registers a hook.

    ``apis`` are all that the call can be: one, unless ``sure`` is false. ``receiver`` is None where it is unknown.
    ``method`` is the expression of the method that is called, None of a function.
    """

    source: SourceFile
    node: ast.Call
    apis: tuple[Api, ...]
    receiver: str | None
    sure: bool
    method: ast.Attribute | None = None

    @property
    def name(self) -> str:
        """The name of the function or method that is called."""
        return self.apis[0].name

    @property
    def kind(self) -> str:
        """The hook kind, or all that it can be."""
        return " or ".join(api.kind for api in self.apis)

    @property
    def owner(self) -> ast.AST | None:
        """The expression that the method is called on; None for a function."""
        return self.method.value if self.method is not None and self.apis[0].owner else None

    @cached_property
    def fallback(self) -> bool:
        """Whether it is reached only where torch lacks the full kind: in ``else`` of a question for that by hasattr."""
        inner: ast.AST = self.node
        for around in self.source.ancestors(self.node):
            if isinstance(around, (ast.If, ast.IfExp)):
                without = isinstance(around.test, ast.UnaryOp) and isinstance(around.test.op, ast.Not)
                asked = around.test.operand if isinstance(around.test, ast.UnaryOp) else around.test
                branch = around.body if without else around.orelse
                if _asks_for_full(asked) and (inner in branch if isinstance(branch, list) else inner is branch):
                    return True
            inner = around
        return False

    @cached_property
    def options(self) -> dict[str, ast.expr]:
        """The keywords of the call that choose how the hook is called, ``mode`` and ``with_module`` among them."""
        known = {keyword for api in self.apis for keyword in api.keywords}
        return {k.arg: k.value for k in self.node.keywords if k.arg in known}

    @property
    def given(self) -> tuple[ast.expr, ...]:
        """The hooks: two for saved tensors, one for the others, none where the call does not show them."""
        if self.apis[0].arguments is None or any(isinstance(a, ast.Starred) for a in self.node.args):
            return ()
        if self.name == "saved_tensors_hooks":
            named = [k.value for k in self.node.keywords if k.arg in ("pack_hook", "unpack_hook")]
            return (*self.node.args, *named)
        place = 1 if self.name == "register_multi_grad_hook" else 0
        named = [k.value for k in self.node.keywords if k.arg in ("hook", "fn")]
        return (*self.node.args[place : place + 1], *named)

    @cached_property
    def hooks(self) -> tuple[HookDefinition, ...]:
        """Those of the given hooks whose definition is in the file."""
        resolved = (resolve(node, self.source) for node in self.given)
        return tuple(hook for hook in resolved if hook is not None)

    def flag(self, name: str) -> bool | None:
        """Whether an option is on; None where the file does not say."""
        value = self.options.get(name)
        if value is None:
            return None if any(k.arg is None for k in self.node.keywords) else False
        return value.value if isinstance(value, ast.Constant) and isinstance(value.value, bool) else None

    def only(self, *kinds: str) -> bool:
        """Whether it certainly is of one of these kinds."""
        return self.sure and all(api.kind in kinds for api in self.apis)


def registrations(source: SourceFile) -> Iterator[Registration]:
    """The registrations of a file, in no particular order."""
    receivers = Receivers(source)
    for node in source.nodes:
        if isinstance(node, ast.Call):
            registration = _function(source, node) or _method(source, receivers, node)
            if registration is not None:
                yield registration


def _function(source: SourceFile, node: ast.Call) -> Registration | None:
    path = source.dotted(node.func)
    api = FUNCTIONS.get(path.rsplit(".", 1)[-1])
    if api is None or not path.startswith("torch."):
        return None
    return Registration(source, node, (api,), None, True)


def _asks_for_full(node: ast.expr) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"):
        return False
    names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    return any(name in ("register_full_backward_hook", "register_module_full_backward_hook") for name in names)


def _called(source: SourceFile, node: ast.Call) -> ast.Attribute | None:
    """The method that is called: by itself, or by the only name that it is given."""
    called = meaning(node.func, source) if isinstance(node.func, ast.Name) else node.func
    return called if isinstance(called, ast.Attribute) else None


def _method(source: SourceFile, receivers: Receivers, node: ast.Call) -> Registration | None:
    method = _called(source, node)
    if method is None or method.attr not in METHODS:
        return None
    name = method.attr
    if name != "retain_grad" and not node.args and not node.keywords:
        return None  # each takes a hook
    if _super(method.value) or _defined(source, method) or _another_framework(source):
        return None
    receiver = receivers.infer(method.value)
    apis = METHODS[name]
    if receiver == OTHER:
        return None
    wanted = TENSOR if receiver == LEAF else receiver
    fitting = tuple(api for api in apis if api.owner == wanted)
    if fitting:
        return Registration(source, node, fitting, receiver, True, method)
    if receiver is not None:
        return None  # torch has no such method on it
    if name in UNRELATED_TOO:
        fits = source.uses_torch and len(node.args) + len(node.keywords) == (name != "retain_grad")
        return Registration(source, node, apis, None, False, method) if fits else None
    sure = len(apis) == 1 and source.uses_torch  # no other library is known to have a method of that name
    return Registration(source, node, apis, apis[0].owner if sure else None, sure, method)


def _super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _defined(source: SourceFile, method: ast.Attribute) -> bool:
    """Whether the method is one that the class around it defines itself."""
    if not (isinstance(method.value, ast.Name) and method.value.id == "self"):
        return False
    around = source.class_of(method)
    return around is not None and any(isinstance(m, ast.FunctionDef) and m.name == method.attr for m in around.body)


def _another_framework(source: SourceFile) -> bool:
    roots = {path.split(".")[0] for path in source.imports.values()}
    return "torch" not in roots and bool(roots & _OTHER_FRAMEWORKS)


def on_module(registration: Registration) -> bool:
    """Whether it certainly is a hook of a module, local to it."""
    return registration.sure and all(api.owner == MODULE for api in registration.apis)
