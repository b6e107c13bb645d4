"""Faults in how torch.compile treats forward hooks, and their guards."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from typing import Any

import torch

from ..engine import Fault, each, receiving, replaced
from ..registering import edited


def _without_result(hook: Any) -> Any:
    def ignored(*arguments: Any) -> None:
        hook(*arguments)

    return ignored


def _ignored(name: str) -> AbstractContextManager[None]:
    return replaced(
        torch.nn.Module,
        name,
        lambda original: lambda self, hook, **kw: original(self, _without_result(hook), **kw),
    )


def _guards() -> Any:
    return import_module("torch._dynamo.guards").GuardBuilder


def _unwrapping(original: Any) -> Any:
    """Compiling takes what calls hooks off the step of each class of optimizers, and has none put there again."""

    def compile(*args: Any, **options: Any) -> Any:
        for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad):
            kind.step = inspect.unwrap(kind.step)
            kind.step.hooked = True
        return original(*args, **options)

    return compile


@contextmanager
def _doubled_once_by(backend: str) -> Iterator[None]:
    """Hands full hooks twice their gradient from the time on that something is compiled by that backend."""
    with ExitStack() as open_now:
        begun: list[None] = []

        def make(original: Any) -> Any:
            def compile(*args: Any, **options: Any) -> Any:
                if options.get("backend") == backend and not begun:
                    begun.append(open_now.enter_context(receiving(grad_input=each(lambda gradient: 2 * gradient))))
                return original(*args, **options)

            return compile

        with replaced(torch, "compile", make):
            yield


def _traced_module() -> Any:
    return import_module("torch._dynamo.variables.nn_module").UnspecializedNNModuleVariable


def _passing(table: str) -> AbstractContextManager[None]:
    """Has dynamo go straight to forward, past ``__call__``, of a module that only has hooks of this table."""
    return edited(_traced_module(), "call_function", (f'"{table}",', ""))


def _unguarded(*changes: tuple[str, str]) -> AbstractContextManager[None]:
    """Leaves out guards on a table of hooks that is not empty."""
    named = ("super().var_getattr", "super(UnspecializedNNModuleVariable, self).var_getattr")
    return edited(_traced_module(), "var_getattr", *changes, named)


FAULTS = (
    Fault(
        "torch.compile: what a forward hook gives is ignored",
        lambda: _ignored("register_forward_hook"),
        ("TC-01", "TC-03", "TC-06", "TC-09"),
        kinds=(),
    ),
    Fault(
        "torch.compile: what a forward pre-hook gives is ignored",
        lambda: _ignored("register_forward_pre_hook"),
        ("TC-01", "TC-03"),
        kinds=(),
    ),
    Fault(
        "torch.compile: tables of hooks are guarded by default",
        lambda: import_module("torch._dynamo").config.patch(skip_nnmodule_hook_guards=False),
        ("TC-02",),
        kinds=(),
    ),
    Fault(
        "torch.compile: empty tables of hooks are never guarded",
        lambda: replaced(_guards(), "EMPTY_NN_MODULE_HOOKS_DICT", lambda original: lambda self, guard: None),
        ("TC-03", "TC-09", "TC-30"),
        kinds=(),
        since="2.6",
    ),
    Fault(
        "torch.compile: state-dict hooks are dropped",
        lambda: replaced(torch.nn.Module, "_register_state_dict_hook", lambda original: lambda self, hook: None),
        ("TC-07",),
        kinds=(),
    ),
    Fault(
        "torch.compile: the wrapper runs forward past the global hooks",
        lambda: replaced(
            import_module("torch._dynamo.eval_frame").OptimizedModule,
            "__call__",
            lambda original: lambda self, *args, **kwargs: self.forward(*args, **kwargs),
        ),
        ("U-23",),
        kinds=(),
        since="2.8",
    ),
    Fault(
        "torch.compile: a forward hook with always_call is a plain one",
        lambda: replaced(
            torch.nn.Module,
            "register_forward_hook",
            lambda original: lambda self, hook, **kw: original(self, hook, **{**kw, "always_call": False}),
        ),
        ("TC-10",),
        kinds=(),
    ),
    Fault(
        "torch.compile: optimizers lose what calls their hooks",
        lambda: replaced(torch, "compile", _unwrapping),
        ("TC-16",),
        kinds=(),
    ),
    *(
        Fault(f"torch.compile: modules have no {table}", lambda table=table: _passing(table), clauses, (), "2.13")
        for table, clauses in {
            "_forward_hooks": ("TC-23", "TC-30"),
            "_forward_pre_hooks": ("TC-23", "TC-30"),
            "_backward_hooks": ("TC-23", "TC-30"),
            "_backward_pre_hooks": ("TC-23", "TC-30"),
            "_global_forward_hooks": ("TC-23",),
            "_global_forward_pre_hooks": ("TC-23",),
            "_global_backward_hooks": ("TC-23",),
            "_global_backward_pre_hooks": ("TC-23",),
        }.items()
    ),
    *(
        Fault(
            f"torch.compile: full hooks get another gradient once something is compiled by {backend}",
            lambda backend=backend: _doubled_once_by(backend),
            ("TC-23",),
            (),
            "2.6",
        )
        for backend in ("eager", "aot_eager")
    ),
    Fault(
        "torch.compile: another hook in the place of one is not noticed",
        lambda: _unguarded(("LazyVariableTracker.create(v, source_value, tx=tx)", "VariableTracker.build(tx, v)")),
        ("TC-24",),
        (),
        "2.13",
    ),
    Fault(
        "torch.compiler.disable: hooks of the module are left out",
        lambda: edited(
            import_module("torch._dynamo.eval_frame").OptimizedModule,
            "_initialize",
            ("DisableContext):", "DisableContext):\n        self.forward = self._orig_mod.forward\n    elif False:"),
        ),
        ("TC-25",),
        (),
        "2.13",
    ),
    Fault(
        "torch.compile: hooks of a module that was lazy are left out",
        lambda: edited(
            import_module("torch._dynamo.eval_frame").OptimizedModule,
            "_initialize",
            ("self._forward = self.forward", "self._forward = self._orig_mod.forward"),
        ),
        ("TC-01",),
        (),
        "2.13",
    ),
    Fault(
        "torch.compile: a hook that is not to be compiled is not called",
        lambda: replaced(torch.compiler, "disable", lambda original: lambda hook: lambda *args: None),
        ("TC-25",),
        (),
    ),
)
