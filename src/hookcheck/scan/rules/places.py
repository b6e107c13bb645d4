"""Rules about where hooks are registered, and on what."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from hookcheck.scan.apis import LEAF, MODULE
from hookcheck.scan.findings import ERROR, NOTE, WARNING, Hit, Scanned, ScanRule
from hookcheck.scan.registrations import Registration, on_module
from hookcheck.scan.source import SourceFile

_SAVES = {"torch.save", "pickle.dump", "pickle.dumps"}
_SCRIPT = "torch.jit.script"
"""Compiles forward hooks and pre-hooks with the module, and passes other hooks by."""
_CONTEXTS = ("saved_tensors", "save_on_cpu")


def _pickled(scanned: Scanned) -> Iterator[Hit]:
    source = scanned.source
    saves = [
        (node.args[0], node) for node in source.nodes
        if isinstance(node, ast.Call) and node.args and source.dotted(node.func) in {*_SAVES, _SCRIPT}
    ]  # fmt: skip
    for registration in scanned.registrations if saves else ():
        if not on_module(registration) or _removed(source, registration):
            continue
        hook = next(iter(registration.hooks), None)
        local = hook is not None and (isinstance(hook.function, ast.Lambda) or source.function_of(hook.function))
        owner = source.dotted(registration.owner)
        if not local or not owner:
            continue
        for saved, call in saves:
            path = source.dotted(saved)
            same_scope = source.function_of(call) is source.function_of(registration.node)
            after = call.lineno > registration.node.lineno
            if source.dotted(call.func) == _SCRIPT and not registration.only("forward", "forward_pre"):
                continue
            if path and same_scope and after and (owner == path or owner.startswith(f"{path}.")):
                done = source.dotted(call.func)
                message = f"`{done}` of `{path}` fails on this hook, as it is a lambda or a local function"
                yield Hit(registration.node, message)
                break


def _removed(source: SourceFile, registration: Registration) -> bool:
    """Whether the handle is removed somewhere in the same function."""
    parent = source.parents.get(registration.node)
    if not (isinstance(parent, ast.Assign) and len(parent.targets) == 1):
        return False
    name = source.dotted(parent.targets[0])
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "remove"
        and source.dotted(node.func.value) == name
        for node in source.nodes
    )  # fmt: skip


def _dropped(scanned: Scanned) -> Iterator[Hit]:
    source = scanned.source
    for registration in scanned.registrations:
        node = registration.node
        # Hooks on other tensors, and those on several, end with the graph.
        lasting = registration.receiver == LEAF or registration.kind.startswith("global_")
        stays = on_module(registration) or (registration.sure and lasting)
        if not stays or not isinstance(source.parents.get(node), ast.Expr):
            continue
        if _lives_with(registration) or _once(source, node):
            continue
        looped = any(isinstance(a, (ast.For, ast.While, ast.AsyncFor)) for a in source.ancestors(node))
        if looped or source.function_of(node) is not None:
            message = (
                "the handle is dropped, so nothing public can remove this hook, and running this again adds another"
            )
            yield Hit(node, message)


def _lives_with(registration: Registration) -> bool:
    """Whether the hook is meant to live as long as its owner.

    So it is where an object registers it on itself or on a part of itself while it is made, and where the owner is made
    in the same function; and hooks of state dicts serve the class that registers them.
    """
    source, node = registration.source, registration.node
    if "state_dict" in registration.kind or registration.apis[0].arguments is None:
        return True
    owner = registration.owner
    while isinstance(owner, (ast.Attribute, ast.Subscript)):
        owner = owner.value
    function = source.function_of(node)
    if not isinstance(owner, ast.Name) or function is None:
        return False
    if owner.id == "self":
        return isinstance(function, ast.FunctionDef) and function.name in ("__init__", "__post_init__", "setup")
    return any(
        isinstance(n, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == owner.id for t in n.targets)
        and isinstance(n.value, ast.Call)
        for n in source.scope_bodies.get(function, ())
    )


def _once(source: SourceFile, node: ast.AST) -> bool:
    """Whether a condition around the place asks if the hook is there already."""
    return any(
        isinstance(around, ast.If) and any(word in ast.unparse(around.test).lower() for word in ("hook", "registered"))
        for around in source.ancestors(node)
    )


def _selective(scanned: Scanned) -> Iterator[Hit]:
    source = scanned.source
    if "create_selective_checkpoint_contexts" not in source.text:
        return
    for registration in scanned.registrations:
        with_ = source.parents.get(source.parents.get(registration.node, source.tree))
        if registration.kind not in _CONTEXTS or not isinstance(with_, (ast.With, ast.AsyncWith)):
            continue
        for statement in with_.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and source.dotted(node.func).endswith("checkpoint.checkpoint"):
                    keywords = {k.arg for k in node.keywords}
                    if "context_fn" in keywords and "respect_saved_tensors_hooks" not in keywords:
                        message = (
                            "what a selective checkpoint saves does not pass the hooks around it, and a later release "
                            "is to change that: give `respect_saved_tensors_hooks` (torch 2.14 and later)"
                        )
                        yield Hit(node, message)


def _in_place(scanned: Scanned) -> Iterator[Hit]:
    source = scanned.source
    for registration in scanned.registrations:
        if registration.only("full_backward", "full_backward_pre") and registration.receiver == MODULE:
            new = _constructor(source, registration)
            if new is not None:
                message = (
                    f"`{ast.unparse(new.func)}(inplace=True)` changes the view that the hook gives it, which raises"
                )
                yield Hit(registration.node, message)


def _constructor(source: SourceFile, registration: Registration) -> ast.Call | None:
    """The call that makes the hooked module in place, where nothing else is bound to its name."""
    owner: ast.AST | None = registration.owner
    if isinstance(owner, (ast.Name, ast.Attribute)):
        path = source.dotted(owner)
        field = path.startswith("self.") and path.count(".") == 1
        scope = (source.class_of(owner) if field else None) or next(source.scopes(owner))
        inside = ast.walk(scope) if field else source.scope_bodies.get(scope, [])
        bound = [n for n in inside if _stored(n) and source.dotted(n) == path]
        parent = source.parents[bound[0]] if len(bound) == 1 else None
        owner = parent.value if isinstance(parent, ast.Assign) else None
    if not isinstance(owner, ast.Call) or not source.dotted(owner.func).startswith("torch.nn."):
        return None
    on = any(k.arg == "inplace" and isinstance(k.value, ast.Constant) and k.value.value is True for k in owner.keywords)
    return owner if on else None


def _stored(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)


RULES = (
    ScanRule(
        "HKS008",
        WARNING,
        "A lambda or local function hooks a module that is pickled or scripted as a whole.",
        "https://github.com/pytorch/pytorch/issues/53421",
        _pickled,
        clauses=(
            "SZ-10",
            "TR-02",
        ),
        bad="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_forward_hook(lambda module, args, output: None)
torch.save(layer, "layer.pt")
""",
        good="""\
import torch

layer = torch.nn.Linear(2, 2)
handle = layer.register_forward_hook(lambda module, args, output: None)
torch.save(layer.state_dict(), "layer.pt")
""",
    ),
    ScanRule(
        "HKS009",
        NOTE,
        "The handle of a hook is dropped, so that nothing public can remove the hook.",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook",
        _dropped,
        clauses=("PW-4",),
        bad="""\
import torch


def watch(model: torch.nn.Module):
    model.register_forward_hook(print)
""",
        good="""\
import torch


def watch(model: torch.nn.Module):
    return model.register_forward_hook(print)
""",
    ),
    ScanRule(
        "HKS010",
        WARNING,
        "Hooks on saved tensors surround a selective checkpoint, which passes them by.",
        "https://github.com/pytorch/pytorch/issues/191236",
        _selective,
        clauses=("ST-24",),
        bad="""\
from functools import partial
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts


def run(layer, x, policy):
    contexts = partial(create_selective_checkpoint_contexts, policy)
    with save_on_cpu():
        return checkpoint(layer, x, use_reentrant=False, context_fn=contexts)
""",
        good="""\
from functools import partial
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts


def run(layer, x, policy):
    contexts = partial(create_selective_checkpoint_contexts, policy)
    with save_on_cpu():
        return checkpoint(layer, x, use_reentrant=False)
""",
    ),
    ScanRule(
        "HKS011",
        ERROR,
        "A full backward hook is put on a module that works in place, which raises in its forward.",
        "https://github.com/pytorch/pytorch/issues/61519",
        _in_place,
        clauses=("BW-12",),
        bad="""\
import torch

layer = torch.nn.ReLU(inplace=True)
handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
""",
        good="""\
import torch

layer = torch.nn.ReLU(inplace=False)
handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
""",
    ),
)
