"""What is the object that a method is called on? Inferred from annotations, constructors, loops and classes."""

from __future__ import annotations

import ast
from functools import cached_property

from hookcheck.scan.apis import LEAF, MODULE, NODE, OPTIMIZER, OTHER, TENSOR
from hookcheck.scan.source import SourceFile

_DEPTH = 8
_MAKERS = {
    "tensor", "randn", "rand", "zeros", "ones", "empty", "full", "arange", "linspace", "eye", "randn_like", "rand_like",
    "zeros_like", "ones_like", "from_numpy", "as_tensor", "cat", "stack", "matmul", "einsum",
}  # fmt: skip
_MODULE_LISTS = {"modules", "children"}
_NAMED_MODULES = {"named_modules", "named_children"}
_MODULE_GETTERS = {"get_submodule", "get_input_embeddings", "get_output_embeddings", "get_decoder", "get_encoder"}
_KEEPING = {"to", "cuda", "cpu", "eval", "train", "double", "float", "half", "requires_grad_"}
_TYPES = {
    "Module": MODULE, "Tensor": TENSOR, "FloatTensor": TENSOR, "Parameter": LEAF, "Optimizer": OPTIMIZER, "Node": NODE,
}  # fmt: skip


class Receivers:
    """The inference over one file. An answer of None is "unsure", never a guess."""

    def __init__(self, source: SourceFile) -> None:
        """Looks at nothing before it is asked."""
        self.source = source

    def infer(self, node: ast.AST, depth: int = _DEPTH) -> str | None:
        """One of the kinds of receiver in ``apis``, or None."""
        if depth == 0:
            return None
        if isinstance(node, ast.Name):
            return self._name(node, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, depth)
        if isinstance(node, ast.BinOp):
            sides = {self.infer(node.left, depth - 1), self.infer(node.right, depth - 1)}
            return TENSOR if sides & {TENSOR, LEAF} else None
        if isinstance(node, ast.IfExp):
            return _agreed([self.infer(node.body, depth - 1), self.infer(node.orelse, depth - 1)])
        return None

    def module_class(self, path: str, depth: int = _DEPTH) -> bool | None:
        """Whether a class, by its dotted path, is an ``nn.Module``; None where that cannot be seen in this file."""
        if path.startswith("torch.nn.") and path.rsplit(".", 1)[1][:1].isupper():
            return not path.endswith(("Parameter", "ParameterList", "Tensor"))
        definition = self.classes.get(path)
        if definition is None or depth == 0:
            return None
        bases = [self.module_class(self.source.dotted(base), depth - 1) for base in definition.bases]
        if True in bases:
            return True
        seen = all(base is False or self.source.dotted(node) == "object" for base, node in zip(bases, definition.bases))
        return False if seen else None

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes of the file, by name."""
        return {node.name: node for node in self.source.nodes if isinstance(node, ast.ClassDef)}

    def _annotation(self, node: ast.AST | None) -> str | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return None
        if isinstance(node, ast.BinOp):  # X | None
            return _agreed([self._annotation(node.left), self._annotation(node.right)])
        if isinstance(node, ast.Subscript):
            return self._annotation(node.slice) if self.source.dotted(node.value).endswith("Optional") else None
        path = self.source.dotted(node)
        if path.startswith("torch.") and path.rsplit(".", 1)[1] in _TYPES:
            return _TYPES[path.rsplit(".", 1)[1]]
        return MODULE if path and self.module_class(path) else None

    def _name(self, node: ast.Name, depth: int) -> str | None:
        for scope in self.source.scopes(node):
            kinds = self._bound(node.id, scope, depth)
            if kinds is not None:
                return _agreed(kinds)
        return None

    def _bound(self, name: str, scope: ast.AST, depth: int) -> list[str | None] | None:
        """What the bindings of a name in one scope make it; None if there is none there."""
        kinds: list[str | None] = []
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            arguments = scope.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            for index, argument in enumerate(every):
                if argument.arg == name:
                    is_self = index == 0 and isinstance(self.source.parents.get(scope), ast.ClassDef)
                    kinds.append(self._self(scope) if is_self else self._annotation(argument.annotation))
        for node in self.source.scope_bodies.get(scope, ()):
            if isinstance(node, ast.Assign) and any(_is_name(target, name) for target in node.targets):
                kinds.append(self.infer(node.value, depth - 1))
            elif isinstance(node, ast.AnnAssign) and _is_name(node.target, name):
                kinds.append(self._annotation(node.annotation))
            elif isinstance(node, ast.NamedExpr) and _is_name(node.target, name):
                kinds.append(self.infer(node.value, depth - 1))
            elif isinstance(node, (ast.For, ast.comprehension)) and name in _names(node.target):
                kinds.append(self._element(node.iter, node.target, name, depth))
        return kinds or None

    def _self(self, function: ast.AST) -> str | None:
        definition = self.source.parents[function]
        assert isinstance(definition, ast.ClassDef)
        known = self.module_class(definition.name)
        if known is None and any(self.source.dotted(base).endswith("Module") for base in definition.bases):
            return MODULE
        return {True: MODULE, False: OTHER, None: None}[known]

    def _element(self, iterable: ast.AST, target: ast.AST, name: str, depth: int) -> str | None:
        """What a loop over ``iterable`` makes of a name in its target."""
        if not isinstance(iterable, ast.Call):
            return None
        called = iterable.func.attr if isinstance(iterable.func, ast.Attribute) else self.source.dotted(iterable.func)
        inner = iterable.args[0] if iterable.args else None
        if called in ("list", "tuple", "reversed", "sorted") and inner is not None:
            return self._element(inner, target, name, depth)
        pair = isinstance(target, ast.Tuple) and len(target.elts) == 2 and target.elts[1]
        if called == "enumerate" and inner is not None and pair:
            return self._element(inner, pair, name, depth) if name in _names(pair) else None
        last = pair if pair and called in {*_NAMED_MODULES, "named_parameters"} else target
        if not _is_name(last, name):
            return None
        if called in _MODULE_LISTS or called in _NAMED_MODULES:
            return MODULE
        return LEAF if called in ("parameters", "named_parameters") else None

    def _attribute(self, node: ast.Attribute, depth: int) -> str | None:
        if node.attr == "grad_fn":
            return NODE
        if _is_name(node.value, "self"):
            kind = self._field(node, depth)
            if kind is not None:
                return kind
        if node.attr in ("weight", "bias") and self.infer(node.value, depth - 1) == MODULE:
            return LEAF
        return None

    def _field(self, node: ast.Attribute, depth: int) -> str | None:
        """What the assignments to ``self.x`` in the class make of it."""
        definition = self.source.class_of(node)
        if definition is None:
            return None
        kinds: list[str | None] = []
        for inside in ast.walk(definition):
            if isinstance(inside, ast.Assign) and any(_is_field(target, node.attr) for target in inside.targets):
                kinds.append(self.infer(inside.value, depth - 1))
            elif isinstance(inside, ast.AnnAssign) and (
                _is_field(inside.target, node.attr) or _is_name(inside.target, node.attr)
            ):
                kinds.append(self._annotation(inside.annotation))
        return _agreed(kinds)

    def _call(self, node: ast.Call, depth: int) -> str | None:
        path = self.source.dotted(node.func)
        last = path.rsplit(".", 1)[-1]
        if path and self.module_class(path):
            return MODULE
        if path.startswith("torch.nn.") and last == "Parameter":
            return LEAF
        if path.startswith("torch.optim.") and last[:1].isupper() and ".lr_scheduler" not in path:
            return OPTIMIZER
        if path.startswith("torch.") and path.count(".") == 1 and last in _MAKERS:
            return LEAF if any(k.arg == "requires_grad" and _true(k.value) for k in node.keywords) else TENSOR
        if path.endswith("get_gradient_edge"):
            return None
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in _MODULE_GETTERS:
                return MODULE
            owner = self.infer(node.func.value, depth - 1)
            if node.func.attr in _KEEPING and owner in (MODULE, TENSOR, LEAF):
                leaf = node.func.attr == "requires_grad_" and owner != MODULE
                return LEAF if leaf else (TENSOR if owner == LEAF else owner)
            return TENSOR if owner in (TENSOR, LEAF) and node.func.attr not in ("item", "tolist", "size") else None
        return TENSOR if isinstance(node.func, ast.Name) and self.infer(node.func, depth - 1) == MODULE else None

    def _subscript(self, node: ast.Subscript, depth: int) -> str | None:
        value = node.value
        if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Attribute):
            return NODE if value.value.attr == "next_functions" and _constant(node.slice) == 0 else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "list" and value.args:
            inner = value.args[0]
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                return {"parameters": LEAF}.get(inner.func.attr, MODULE if inner.func.attr in _MODULE_LISTS else None)
        return self.infer(value, depth - 1) if self.infer(value, depth - 1) in (MODULE, TENSOR) else None


def _agreed(kinds: list[str | None]) -> str | None:
    """What all that is known agrees on; a leaf tensor and a tensor agree on a tensor."""
    known = {kind for kind in kinds if kind is not None}
    if known == {TENSOR, LEAF}:
        return TENSOR
    return known.pop() if len(known) == 1 else None


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_field(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and _is_name(node.value, "self")


def _names(node: ast.AST) -> set[str]:
    return {inside.id for inside in ast.walk(node) if isinstance(inside, ast.Name)}


def _true(node: ast.AST) -> bool:
    return _constant(node) is True


def _constant(node: ast.AST) -> object:
    return node.value if isinstance(node, ast.Constant) else None
