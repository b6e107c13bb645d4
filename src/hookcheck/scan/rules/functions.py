"""Rules about what hooks take: their parameters, and what they believe these to be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hookcheck.scan.apis import Api
from hookcheck.scan.findings import ERROR, WARNING, Hit, Scanned, ScanRule
from hookcheck.scan.hooks import body
from hookcheck.scan.registrations import Registration

_GRADIENT = re.compile(r"(\w*_)?(g|gr|grads?|gradients?)(_\w*)?")


def _signature(scanned: Scanned) -> Iterator[Hit]:
    for registration in scanned.registrations:
        if not registration.sure:
            continue
        due = {_arguments(api, registration) for api in registration.apis}
        if None in due:
            continue
        for hook in registration.hooks:
            least, most = hook.takes
            if not any(count is not None and least <= count <= most for count in due):
                counts = " or ".join(str(count) for count in sorted(count for count in due if count is not None))
                s = "" if counts == "1" else "s"
                takes = "no positional arguments alone" if most < 0 else _range(least, most)
                message = f"a {registration.kind} hook is called with {counts} argument{s}, and this one takes {takes}"
                yield Hit(registration.node, message, True, registration.apis[0].link)


def _arguments(api: Api, registration: Registration) -> int | None:
    """How many arguments the hook is called with; None where an option leaves that open."""
    more = [registration.flag(name) for name in ("with_kwargs", "with_module") if name in api.keywords]
    if api.arguments is None or None in more:
        return None
    return api.arguments + sum(map(bool, more))


def _range(least: int, most: int) -> str:
    if most >= 10**6:
        return f"at least {least}"
    return str(most) if least == most else f"{least} to {most}"


def _parameter_as_gradient(scanned: Scanned) -> Iterator[Hit]:
    for registration in scanned.registrations:
        if not registration.only("post_accumulate_grad"):
            continue
        for hook in registration.hooks:
            names = hook.parameters
            if not names or not _GRADIENT.fullmatch(names[0]):
                continue
            inside = body(hook.function)
            reads = [n for n in inside if isinstance(n, ast.Name) and n.id == names[0] and isinstance(n.ctx, ast.Load)]
            attributes = [scanned.source.parents.get(n) for n in reads]
            if reads and not any(isinstance(a, ast.Attribute) and a.attr == "grad" for a in attributes):
                message = f"`{names[0]}` is the parameter itself, not its gradient: that is `{names[0]}.grad`"
                yield Hit(registration.node, message)


RULES = (
    ScanRule(
        "HKS005",
        ERROR,
        "A hook does not take the arguments that hooks of its kind are called with.",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html",
        _signature,
        clauses=(
            "BW-01",
            "BN-02",
            "FN-02",
        ),
        bad="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_forward_hook(lambda module, args: print(args))
""",
        good="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_forward_hook(lambda module, args, output: print(args))
""",
    ),
    ScanRule(
        "HKS006",
        WARNING,
        "A post-accumulate hook is called with the parameter, and this one takes it for the gradient.",
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_post_accumulate_grad_hook.html",
        _parameter_as_gradient,
        clauses=("PA-05",),
        bad="""\
import torch

weight = torch.ones(2, requires_grad=True)
handle = weight.register_post_accumulate_grad_hook(lambda grad: print(grad.norm()))
""",
        good="""\
import torch

weight = torch.ones(2, requires_grad=True)
handle = weight.register_post_accumulate_grad_hook(lambda grad: print(grad.grad.norm()))
""",
    ),
)
