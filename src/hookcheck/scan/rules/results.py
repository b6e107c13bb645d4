"""Rules about what hooks return."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookcheck.scan.findings import ERROR, Hit, Scanned, ScanRule
from hookcheck.scan.hooks import HookDefinition, body

_TUPLES = {
    "backward": (1, 2), "full_backward": (1, 2), "full_backward_pre": (1,), "node": (0, 1), "node_pre": (0,),
    "global_backward": (1, 2), "global_full_backward": (1, 2), "global_full_backward_pre": (1,),
}  # fmt: skip
"""For each kind that must return a tuple, which of the hook's parameters are tuples of gradients."""

_SAME = {
    "abs", "add", "add_", "clamp", "clamp_", "clip", "clone", "contiguous", "cpu", "cuda", "detach", "div", "div_",
    "double", "exp", "fill_", "float", "half", "mean", "mul", "mul_", "neg", "relu", "reshape", "sign", "sub", "sub_",
    "sum", "to", "view", "zero_",
}  # fmt: skip
"""Methods of a tensor that return a tensor."""
_FUNCTIONS = {
    "abs",
    "add",
    "clamp",
    "clip",
    "mul",
    "ones_like",
    "rand_like",
    "randn_like",
    "relu",
    "sign",
    "where",
    "zeros_like",
}
_DEPTH = 6


class _Tensors:
    """Which expressions in a hook certainly are one tensor, given the parameters that are tuples or tensors."""

    def __init__(self, hook: HookDefinition, tuples: tuple[str, ...], tensors: tuple[str, ...]) -> None:
        self.tuples, self.tensors = tuples, tensors
        self.bound: dict[str, list[ast.expr | None]] = {}
        for node in body(hook.function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.bound.setdefault(node.id, []).append(None)
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.bound.setdefault(node.targets[0].id, []).append(node.value)

    def certain(self, node: ast.expr | None, depth: int = _DEPTH) -> bool:
        if node is None or depth == 0:
            return False
        if isinstance(node, ast.Name):
            values = self.bound.get(node.id)
            if values is None:
                return node.id in self.tensors
            one = [value for value in values if value is not None]
            return len(values) == 2 and len(one) == 1 and self.certain(one[0], depth - 1)
        if isinstance(node, ast.Subscript):
            plain = (
                isinstance(node.value, ast.Name) and node.value.id in self.tuples and node.value.id not in self.bound
            )
            index = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
            return plain and isinstance(index, ast.Constant) and isinstance(index.value, int)
        if isinstance(node, ast.BinOp):
            return self.certain(node.left, depth - 1) or self.certain(node.right, depth - 1)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub) and self.certain(node.operand, depth - 1)
        if isinstance(node, ast.Attribute):
            return node.attr in ("grad", "data") and self.certain(node.value, depth - 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "F"):
                return node.func.attr in _FUNCTIONS and any(self.certain(a, depth - 1) for a in node.args)
            return node.func.attr in _SAME and self.certain(node.func.value, depth - 1)
        return False


def _bare_tensor(scanned: Scanned) -> Iterator[Hit]:
    for registration in scanned.registrations:
        if not registration.sure or len(registration.apis) > 1 or registration.kind not in _TUPLES:
            continue
        for hook in registration.hooks:
            names = hook.parameters
            tuples = tuple(names[place] for place in _TUPLES[registration.kind] if place < len(names))
            tensors = _Tensors(hook, tuples, ())
            for value in hook.returns:
                if not hook.generates and tensors.certain(value):
                    text = ast.unparse(value)
                    message = f"a {registration.kind} hook returns a tuple or None, not one tensor: `return ({text},)`"
                    yield Hit(value, message, True, registration.apis[0].link)


def _value(scanned: Scanned) -> Iterator[Hit]:
    for registration in scanned.registrations:
        if not registration.sure or any(not api.returns_none for api in registration.apis):
            continue
        for hook in registration.hooks:
            names = hook.parameters
            tensors = _Tensors(hook, (), names[:1] if registration.only("post_accumulate_grad") else ())
            for value in hook.returns:
                passed = isinstance(value, ast.Name) and value.id in names and value.id not in tensors.bound
                if not hook.generates and (passed or tensors.certain(value)):
                    message = (
                        f"a {registration.kind} hook must return None, and this one returns `{ast.unparse(value)}`"
                    )
                    yield Hit(value, message, True, registration.apis[0].link)


RULES = (
    ScanRule(
        "HKS007",
        ERROR,
        "A backward hook of a module or Node returns a tensor where a tuple of gradients is due.",
        "https://github.com/TransformerLensOrg/TransformerLens/issues/1160",
        _bare_tensor,
        clauses=(
            "BR-04",
            "BR-05",
        ),
        bad="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: grad_input[0] * 2)
""",
        good="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 2,))
""",
    ),
    ScanRule(
        "HKS012",
        ERROR,
        "A hook returns a value where torch raises on anything but None.",
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_post_accumulate_grad_hook.html",
        _value,
        clauses=(
            "PA-06",
            "SD-03",
        ),
        bad="""\
import torch

weight = torch.ones(2, requires_grad=True)


def halve(parameter):
    return parameter.grad.mul_(0.5)


handle = weight.register_post_accumulate_grad_hook(halve)
""",
        good="""\
import torch

weight = torch.ones(2, requires_grad=True)


def halve(parameter):
    parameter.grad.mul_(0.5)


handle = weight.register_post_accumulate_grad_hook(halve)
""",
    ),
)
