"""Faults in what torch.fx does to hooks where a graph is run, changed, copied or taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from torch.nn import Module

from ..engine import Fault, replaced
from ..registering import edited

Patch = AbstractContextManager[None]


def _graph(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of GraphModule."""
    return edited(import_module("torch.fx").GraphModule, name, *changes)


def _called_past_hooks() -> Patch:
    call = import_module("torch.fx.graph_module")._WrappedCall
    return edited(call, "__call__", ("super(self.cls, obj).__call__(*args, **kwargs)", "obj.forward(*args, **kwargs)"))


def _run_as_a_call(original: Any) -> Any:
    """An Interpreter calls the module whose graph it is to run."""
    return lambda self, *args, **kwargs: self.module(*args)


def _parts_past_hooks() -> Patch:
    interpreter = import_module("torch.fx").Interpreter
    return edited(interpreter, "call_module", ("return submod(*args", "return submod.forward(*args"))


def _parts_are_copied() -> Patch:
    """A GraphModule has copies of the parts that its graph calls."""
    module = import_module("torch.fx.graph_module")
    return edited(
        module,
        "_copy_attr",
        ("orig = getattr(from_module, field)", "orig = copy.deepcopy(getattr(from_module, field))"),
    )


def _added_anew(original: Any) -> Any:
    """Adds another module of the same class."""
    return lambda self, target, m: original(self, target, type(m)())


@contextmanager
def _call_stays() -> Iterator[None]:
    """What tracing puts in the place of a call of a module stays there after an error."""
    tracing = import_module("torch.fx._symbolic_trace")
    with ExitStack() as restored:
        restored.callback(setattr, tracing, "CURRENT_PATCHER", tracing.CURRENT_PATCHER)
        for name in ("__call__", "__getattr__"):
            restored.callback(setattr, Module, name, vars(Module)[name])
        change = ("finally:", "except ZeroDivisionError:\n        raise\n    else:")
        restored.enter_context(edited(tracing, "_new_patcher", change))
        yield


def _by_keyword(original: Any) -> Any:
    """What calls a GraphModule loses what it is given by keyword."""
    return lambda self, module, *args, **kwargs: original(self, module, *args)


@contextmanager
def _goes_on() -> Iterator[None]:
    """torch.fx takes itself to be tracing after an error."""
    tracing: Any = import_module("torch.fx._symbolic_trace")

    def make(original: Any) -> Any:
        def trace(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except ValueError:
                tracing._is_fx_tracing_flag = True
                raise

        return trace

    before = tracing._is_fx_tracing_flag
    try:
        with replaced(tracing.Tracer, "trace", make):
            yield
    finally:
        tracing._is_fx_tracing_flag = before


fault = partial(Fault, kinds=(), since="2.13")

FAULTS = (
    fault("torch.fx: a GraphModule is called past its hooks", _called_past_hooks, ("TR-11",)),
    fault(
        "torch.fx: compiling a GraphModule again takes its forward hooks",
        lambda: _graph("recompile", ("self._recompile_submodules()", "self._forward_hooks.clear()")),
        ("TR-11",),
    ),
    fault(
        "torch.fx: an Interpreter calls the whole module",
        lambda: replaced(import_module("torch.fx").Interpreter, "run", _run_as_a_call),
        ("TR-11",),
    ),
    fault("torch.fx: an Interpreter calls parts past their hooks", _parts_past_hooks, ("TR-12",)),
    fault("torch.fx: a GraphModule copies its parts", _parts_are_copied, ("TR-12",)),
    fault(
        "torch.fx: another part is added",
        lambda: replaced(import_module("torch.fx").GraphModule, "add_submodule", _added_anew),
        ("TR-12",),
    ),
    fault(
        "torch.fx: a GraphModule loses keyword arguments",
        lambda: replaced(import_module("torch.fx.graph_module")._WrappedCall, "__call__", _by_keyword),
        ("TR-11",),
    ),
    fault("torch.fx: tracing goes on after an error", _goes_on, ("TR-13",)),
    fault("torch.fx: an error leaves modules as they are called in tracing", _call_stays, ("TR-13",)),
    fault(
        "torch.fx: a hook that is set for a while stays after an error",
        lambda: _graph("_set_replace_hook", ("finally:", "except ZeroDivisionError:\n        raise\n    else:")),
        ("TR-14",),
    ),
    fault(
        "torch.fx: no hook is called where one input is replaced",
        lambda: edited(
            import_module("torch.fx").Node,
            "replace_input_with",
            ("for replace_hook in m._replace_hooks:", "for replace_hook in ():"),
        ),
        ("TR-14",),
    ),
    fault(
        "torch.fx: hooks are not called with a copy",
        lambda: _graph("__deepcopy__", ("for hook in self._deepcopy_hooks:", "for hook in ():")),
        ("TR-14",),
    ),
)
