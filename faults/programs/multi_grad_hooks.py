"""Faults in how hooks are called that wait for the gradients of several tensors."""

from __future__ import annotations

from typing import Any

from torch.autograd import graph
from torch.utils.hooks import RemovableHandle

from ..autograd import Hook, Patch, doubled, late
from ..engine import Fault, added, replaced
from ..registering import dropped, edited

NAME = "register_multi_grad_hook"


def _edited(*changes: tuple[str, str]) -> Patch:
    return edited(graph, NAME, *changes)


def _registered(change: Any) -> Patch:
    """Registers ``change(hook)``."""
    return replaced(graph, NAME, lambda original: lambda tensors, fn, **mode: original(tensors, change(fn), **mode))


def _each_once() -> Patch:
    """Takes a tensor that is listed twice once."""

    def make(original: Any) -> Any:
        return lambda tensors, fn, **mode: original(tuple({id(t): t for t in tensors}.values()), fn, **mode)

    return replaced(graph, NAME, make)


def _cloned(hook: Hook) -> Hook:
    """The hook, called with copies."""
    return lambda grads: hook([g if g is None else g.clone() for g in grads])


FAULTS = (
    Fault(
        "register_multi_grad_hook: gradients in reverse order",
        lambda: _edited(("fn(buffer[id])", "fn(buffer[id][::-1])")),
        ("MG-01", "MG-02", "MG-03", "MG-08", "MG-09", "MG-10", "MG-11", "MG-13"),
    ),
    Fault(
        "register_multi_grad_hook: waits for every tensor",
        lambda: _edited(("sum(", "len("), ("map(torch._C._will_engine_execute_node, grad_fns)", "grad_fns")),
        ("MG-01", "MG-02", "MG-03", "MG-07"),
    ),
    Fault(
        "register_multi_grad_hook: leaves out what was not computed",
        lambda: _edited(("fn(buffer[id])", "fn([g for g in buffer[id] if g is not None])")),
        ("MG-01", "MG-02", "MG-03"),
    ),
    Fault("register_multi_grad_hook: called twice", lambda: _registered(doubled), ("MG-01", "MG-04", "MG-05", "MG-07")),
    Fault("register_multi_grad_hook: called at the end of backward", lambda: _registered(late), ("MG-04", "MG-08")),
    Fault("register_multi_grad_hook: dropped", lambda: _registered(dropped), ("MG-06", "MG-11")),
    Fault("register_multi_grad_hook: called with copies", lambda: _registered(_cloned), ("MG-06",)),
    Fault(
        "register_multi_grad_hook: mode any is called for every gradient",
        lambda: _edited(("if prev:", "if False:")),
        ("MG-04", "MG-05", "MG-12"),
        since="2.3",
    ),
    Fault(
        "register_multi_grad_hook: mode any is called in one backward alone",
        lambda: _edited(("ran_hook[id] = ran_hook[id], True", "ran_hook[0] = ran_hook[0], True")),
        ("MG-04", "MG-12"),
        since="2.5",
    ),
    Fault(
        "register_multi_grad_hook: any mode but all is any",
        lambda: _edited(("if mode not in supported_modes:", "if False:"), ('elif mode == "any":', "else:")),
        ("MG-05",),
        since="2.3",
    ),
    Fault(
        "register_multi_grad_hook: the result replaces the last gradient",
        lambda: _edited(("fn(buffer[id])", "answer = fn(buffer[id])"), ("del buffer[id]", "return answer")),
        ("MG-06",),
    ),
    Fault(
        "register_multi_grad_hook: the handle removes it from the first tensor",
        lambda: replaced(graph._MultiHandle, "remove", lambda original: lambda self: self.handles[0].remove()),
        ("MG-07", "MG-12"),
        since="2.4",
    ),
    Fault(
        "register_multi_grad_hook: what has come is kept over backwards",
        lambda: _edited(("id = torch._C._current_graph_task_id()", "id = 0")),
        ("MG-09", "MG-13"),
        since="2.3",
    ),
    Fault(
        "register_multi_grad_hook: a tensor that is listed twice is taken once",
        _each_once,
        ("MG-14",),
    ),
    Fault(
        "register_multi_grad_hook: a copy of the handle refers to nothing",
        lambda: replaced(graph._MultiHandle, "__getstate__", lambda original: lambda self: ()),
        ("MG-15",),
        since="2.4",
    ),
    Fault(
        "register_multi_grad_hook: a copy of the handle has nothing to remove",
        lambda: replaced(graph._MultiHandle, "__setstate__", lambda original: lambda self, state: None),
        ("MG-15",),
        since="2.4",
    ),
    Fault(
        "register_multi_grad_hook: a deep copy of a handle is the handle",
        lambda: added(RemovableHandle, "__deepcopy__", lambda self, memo: self),
        ("MG-15",),
    ),
    Fault(
        "a multi-grad hook keeps the gradients of every backward",
        lambda: _edited(("del buffer[id]", "pass")),
        ("MG-01",),
    ),
    Fault(
        "a multi-grad hook that is called once replaces the gradient",
        lambda: _edited(("            fn(grad)", "            return fn(grad)")),
        ("MG-06",),
        since="2.3",
    ),
    Fault(
        "a multi-grad hook stays where one of its tensors is gone",
        lambda: edited(
            graph._MultiHandle,
            "remove",
            ("handle.remove()", "if handle.hooks_dict_ref() is None:\n            return\n        handle.remove()"),
        ),
        ("MG-07",),
        since="2.4",
    ),
    Fault(
        "a multi-grad hook that is called once gets a copy",
        lambda: _edited(("            fn(grad)", "            fn(grad.clone())")),
        ("MG-06",),
        since="2.3",
    ),
    Fault(
        "a multi-grad hook of all gradients replaces the last of them",
        lambda: _edited(
            (
                "fn(buffer[id])\n",
                "given = fn(buffer[id])\n",
            ),
            (
                "del buffer[id]\n",
                "del buffer[id]\n                return given if hasattr(given, 'grad_fn') else None\n",
            ),
        ),
        ("MG-06",),
        since="2.3",
    ),
    Fault(
        "the handle of a multi-grad hook takes it off two tensors",
        lambda: edited(graph._MultiHandle, "remove", ("in self.handles:", "in self.handles[:2]:")),
        ("MG-07",),
        since="2.3",
    ),
    Fault(
        "a multi-grad hook that is called once is done when it raises",
        lambda: _edited(
            (
                "            fn(grad)\n",
                "            if ran_hook[-1]:\n"
                "                return\n"
                "            ran_hook[-1] = True\n"
                "            fn(grad)\n"
                "            ran_hook[-1] = False\n",
            )
        ),
        ("MG-12",),
        since="2.3",
    ),
)
