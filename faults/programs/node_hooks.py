"""Faults in how hooks on Nodes of the graph are called."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import graph

from ..autograd import Change, Hook, Patch, copied, doubled, ignored, late, on_nodes, removing
from ..engine import Fault, added, replaced
from ..registering import dropped, every_second


def _both(change: Change) -> Patch:
    return on_nodes(change, change)


def _in_a_tuple(hook: Hook) -> Hook:
    """The hook, with a tensor that it returns taken for a tuple."""

    def call(*args: Any) -> Any:
        result = hook(*args)
        return (result, None)[: len(args[0])] if isinstance(result, torch.Tensor) else result

    return call


def _as_long(hook: Hook) -> Hook:
    """The hook, with what it returns cut or filled to the right length."""

    def call(*args: Any) -> Any:
        result = hook(*args)
        return result if result is None else (*result, None, None)[: len(args[0])]

    return call


def _while_running(hook: Hook) -> Hook:
    """The hook, with its result ignored if it was registered in a backward."""
    return hook if torch._C._current_graph_task_id() == -1 else ignored(hook)


class OfTensor:
    """A Node whose post-hooks are hooks on a tensor."""

    def __init__(self, node: Any, tensor: Any) -> None:
        self.node, self.tensor = node, tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node, name)

    def register_hook(self, hook: Hook) -> Any:
        return self.tensor.register_hook(lambda grad: hook((), (grad,)) and None)


def _as_tensor_hooks() -> Patch:
    grad_fn = torch.Tensor.grad_fn
    return added(torch.Tensor, "grad_fn", property(lambda self: OfTensor(grad_fn.__get__(self), self)))


class Callbacks:
    """An engine that calls callbacks at once."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        callback()


def _leaf_of_its_own(find: Any) -> Any:
    """Gives for a leaf the Node of a view."""

    def node_of(tensor: Any) -> Any:
        with torch.enable_grad():
            return tensor.grad_fn or tensor.view_as(tensor).grad_fn

    return node_of


FAULTS = (
    Fault(
        "Node hooks: post-hooks get their arguments in the other order",
        lambda: on_nodes(lambda hook: lambda grad_inputs, grad_outputs: hook(grad_outputs, grad_inputs)),
        ("ND-01", "ND-02", "ND-05"),
    ),
    Fault(
        "Node hooks: post-hooks get no grad_outputs",
        lambda: on_nodes(lambda hook: lambda grad_inputs, grad_outputs: hook(grad_inputs, ())),
        ("ND-01", "ND-02", "ND-05"),
    ),
    Fault(
        "Node hooks: post-hooks get no None",
        lambda: on_nodes(lambda hook: lambda *sides: hook(*(tuple(g for g in s if g is not None) for s in sides))),
        ("ND-01", "ND-05"),
    ),
    Fault("Node hooks: results of post-hooks ignored", lambda: on_nodes(ignored), ("ND-02", "ND-04", "ND-06")),
    Fault("Node hooks: a tensor is taken for a tuple", lambda: _both(_in_a_tuple), ("ND-02", "ND-07")),
    Fault("Node hooks: tuples of any length are taken", lambda: _both(_as_long), ("ND-02", "ND-07")),
    Fault("Node hooks: called with copies", lambda: _both(copied), ("ND-03", "ND-08")),
    Fault(
        "Node hooks: called every second time",
        lambda: _both(every_second),
        ("ND-01", "ND-02", "ND-04", "ND-07", "ND-08", "ND-09"),
    ),
    Fault(
        "Node hooks: called twice",
        lambda: _both(doubled),
        ("ND-01", "ND-07", "ND-09", "ND-11", "ND-12"),
    ),
    Fault("Node hooks: called at the end of backward", lambda: _both(late), ("ND-02", "ND-06", "ND-07")),
    Fault(
        "Node hooks: results of those registered in a backward ignored", lambda: on_nodes(_while_running), ("ND-06",)
    ),
    Fault("Node hooks: results of pre-hooks ignored", lambda: on_nodes(pre=ignored), ("ND-07", "ND-08")),
    Fault("Node hooks: pre-hooks dropped", lambda: on_nodes(pre=dropped), ("ND-07", "ND-08", "ND-11", "ND-12")),
    Fault(
        "Node hooks: post-hooks are tensor hooks",
        _as_tensor_hooks,
        ("ND-10", "ND-15"),
    ),
    Fault("Node hooks: remove() does nothing", lambda: removing(lambda handle: None), ("ND-04", "ND-08")),
    Fault(
        "Node hooks: remove() takes off all",
        lambda: removing(lambda handle: handle.hooks_dict_ref().clear()),
        ("ND-04", "ND-08"),
    ),
    Fault("Node hooks: Nodes are of another class", on_nodes, ("ND-13",)),
    Fault(
        "Node hooks: the Node of a leaf is not found",
        lambda: replaced(graph, "_get_grad_fn_or_grad_acc", _leaf_of_its_own),
        ("ND-14",),
        since="2.3",
    ),
    Fault(
        "Node hooks: callbacks are called at once",
        lambda: replaced(torch.autograd.Variable, "_execution_engine", lambda engine: Callbacks()),
        ("U-22",),
    ),
    Fault(
        "Node hooks: all backwards have one id",
        lambda: replaced(torch._C, "_current_graph_task_id", lambda original: lambda: min(original(), 0)),
        ("U-22",),
    ),
    Fault(
        "Node hooks: the engine says that it runs every Node",
        lambda: replaced(torch._C, "_will_engine_execute_node", lambda original: lambda node: original(node) or True),
        ("U-22",),
    ),
)
