"""Faults in how compiled autograd captures the hooks of a backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, replaced
from ..registering import edited

Call = Callable[..., Any]

OUT_OF_REACH = {
    "CA-17": "what eager gives hooks of Nodes is made in C++, and what compiled autograd gives is no tuple anyway"
}


def _captures() -> Any:
    return import_module("torch._dynamo.compiled_autograd")


def _compiler() -> Any:
    return _captures().AutogradCompilerInstance


def _calling(kind: str, change: Call) -> AbstractContextManager[None]:
    """Where a graph would call a hook of this kind, calls ``change(call, *arguments)`` in place of that."""

    def make(original: Any) -> Any:
        def call(hook: Any, *args: Any, **options: Any) -> Any:
            if kind not in ("any", options["hook_type"]):
                return original(hook, *args, **options)
            return change(lambda *given: original(hook, *given, **options), *args)

        return call

    return replaced(_captures(), "call_hook", make)


def _ignored(call: Call, *args: Any) -> Any:
    call(*args)
    return args[0]


def _not_called(call: Call, *args: Any) -> Any:
    return args[0]


def _twice(call: Call, *args: Any) -> Any:
    call(*args)
    return call(*args)


def _as_packed(call: Call, packed: Any) -> Any:
    call(packed)
    return packed[1] if type(packed) is tuple else packed


def _zeros(call: Call, grad: Any) -> Any:
    result = call(grad)
    return torch.zeros_like(grad) if result is grad else result


def _wrapped(call: Call, *args: Any) -> Any:
    try:
        return call(*args)
    except LookupError as error:
        raise RuntimeError("a hook raised") from error


def _recording(call: Call, *args: Any) -> Any:
    with torch.enable_grad():
        return call(*args)


def _first_hooks() -> AbstractContextManager[None]:
    """Runs a graph with the hooks of the backward that it was captured from."""

    def make(original: Any) -> Any:
        def end(self: Any, outputs: Any) -> Any:
            run, compiled = original(self, outputs)
            first: list[Any] = []

            def again(graph: Any, inputs: Any, sizes: Any, scalars: Any, hooks: Any, packed: Any) -> Any:
                first.append([*hooks])
                return run(graph, inputs, sizes, scalars, first[0], packed)

            return again, compiled

        return end

    return replaced(_compiler(), "end_capture", make)


@contextmanager
def _left_running() -> Iterator[None]:
    """Has a backward leave behind that it is running, until the end of this context."""
    with edited(_compiler(), "end_capture", ("in_compiled_autograd_region = False", "pass")):
        try:
            yield
        finally:
            _captures().in_compiled_autograd_region = False


def _dropped_pass(name: str) -> AbstractContextManager[None]:
    """Leaves out a pass that moves calls of hooks to where eager has them."""
    return replaced(_compiler(), name, lambda original: lambda self: None)


def _fitting(original: Any) -> Any:
    """Brings what a hook on a tensor gives to the shape and the type of the gradient."""

    def register(self: Any, hook: Any) -> Any:
        return original(self, lambda grad: hook(grad).expand_as(grad).to(grad))

    return register


def _asking(original: Any) -> Any:
    """Asks each gradient for its shape before a hook on a tensor is given it."""
    return lambda self, hook: original(self, lambda grad: hook(grad) if grad.shape is not None else None)


FAULTS = (
    Fault(
        "compiled autograd: what a tensor hook gives is ignored",
        lambda: _calling("tensor_pre_hook", _ignored),
        ("CA-01", "CA-02", "CA-08", "CA-13", "CA-14"),
        kinds=(),
    ),
    Fault(
        "compiled autograd: what a pre-hook of a Node gives is ignored",
        lambda: _calling("pre_hook", _ignored),
        ("CA-03", "CA-08", "CA-15"),
        kinds=(),
    ),
    Fault(
        "compiled autograd: what a hook of a Node gives is ignored",
        lambda: _calling("post_hook", _ignored),
        ("CA-03", "CA-08", "CA-15"),
        kinds=(),
    ),
    Fault(
        "compiled autograd: what a saved tensor is unpacked to is ignored",
        lambda: _calling("unpack_hook", _as_packed),
        ("CA-07", "CA-08", "CA-15"),
        kinds=(),
    ),
    Fault(
        "compiled autograd: post-accumulate-grad hooks are not called",
        lambda: _calling("post_acc_grad_hook", _not_called),
        ("CA-04", "CA-05", "CA-08", "CA-09", "CA-15"),
        kinds=(),
    ),
    Fault(
        "compiled autograd: hooks on tensors are called twice",
        lambda: _calling("tensor_pre_hook", _twice),
        ("CA-01", "CA-06", "CA-14"),
        kinds=(),
    ),
    Fault(
        "compiled autograd: a hook that gives nothing gives zeros",
        lambda: _calling("tensor_pre_hook", _zeros),
        ("CA-01",),
        kinds=(),
    ),
    Fault(
        "compiled autograd: another exception comes out than a hook raised",
        lambda: _calling("any", _wrapped),
        ("CA-09",),
        kinds=(),
    ),
    Fault(
        "compiled autograd: hooks record gradients",
        lambda: _calling("any", _recording),
        ("CA-14",),
        kinds=(),
    ),
    Fault(
        "compiled autograd: each call is that of the first hook",
        lambda: edited(_compiler(), "tensor_pre_hook", ("self.hooks_proxy[hook_id]", "self.hooks_proxy[0]")),
        ("CA-01", "CA-02"),
        kinds=(),
    ),
    Fault(
        "compiled autograd: a tensor hook is given the gradient of the Node's first output",
        lambda: edited(_compiler(), "tensor_pre_hook", ("    inputs[i],", "    inputs[0],")),
        ("CA-01", "CA-02"),
        kinds=(),
    ),
    Fault(
        "compiled autograd: the gradient of the Node's first output is retained",
        lambda: edited(_compiler(), "cpp_tensor_pre_hook", ("self.to_proxy(inputs[i])", "self.to_proxy(inputs[0])")),
        ("CA-02",),
        kinds=(),
    ),
    Fault(
        "compiled autograd: a hook of a Node is given its arguments the other way round",
        lambda: edited(
            _compiler(), "post_hook", ("        outputs,\n        inputs,\n", "        inputs,\n        outputs,\n")
        ),
        ("CA-03",),
        kinds=(),
    ),
    Fault(
        "compiled autograd: what was packed first is unpacked each time",
        lambda: edited(_compiler(), "unpack_hook", ("self.packed_data_proxy[data_id]", "self.packed_data_proxy[0]")),
        ("CA-07",),
        kinds=(),
    ),
    Fault(
        "compiled autograd: a graph is run with the hooks that it was captured with",
        _first_hooks,
        ("CA-08", "CA-09", "CA-15"),
        kinds=(),
    ),
    *(
        Fault(f"compiled autograd: {name} is left out", lambda name=name: _dropped_pass(name), clauses, kinds=())
        for name, clauses in {
            "reorder_tensor_pre_hook_nodes": ("CA-18",),
            "reorder_pre_hook_nodes_to_schedule_asap": ("CA-18",),
            "reorder_accumulate_grad_nodes": ("CA-18",),
            "reorder_post_acc_grad_hook_nodes": ("CA-18",),
            "reorder_post_hook_nodes": ("CA-18",),
        }.items()
    ),
    Fault(
        "compiled autograd: a backward that raised leaves it running",
        _left_running,
        ("CA-09",),
        kinds=(),
    ),
    Fault(
        "compiled autograd: it stays on",
        lambda: edited(_captures(), "_enable", ("if not prior_compiler:", "if False:")),
        ("CA-16",),
        kinds=(),
    ),
    Fault(
        "tensor hooks: what does not fit is made to fit",
        lambda: replaced(torch.Tensor, "register_hook", _fitting),
        ("CA-10",),
        kinds=(),
    ),
    Fault(
        "tensor hooks: a gradient that is not there is asked for its shape",
        lambda: replaced(torch.Tensor, "register_hook", _asking),
        ("CA-11",),
        kinds=(),
    ),
    Fault(
        "full backward hooks of modules with two outputs are dropped",
        lambda: replaced(torch.nn.Module, "register_full_backward_hook", lambda original: lambda self, hook: None),
        ("CA-12",),
        kinds=(),
    ),
)
