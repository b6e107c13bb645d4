"""Faults in what runs a network on behalf of a program: its hooks are lost, called twice, or told something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib import import_module
from typing import Any

import torch

from .engine import ALL, Fault, calling, each, receiving, replaced
from .programs.checkpointing import checkpoints, doubled, hooks_off, hooks_off_in


@contextmanager
def functional_calls_without_hooks() -> Iterator[None]:
    def make(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with hooks_off():
                return original(*args, **kwargs)

        return call

    with replaced(torch.func, "functional_call", make):
        yield


def unhooked(run: Any) -> Any:
    """Runs a region without its hooks."""

    def region(*args: Any) -> Any:
        with hooks_off():
            return run(*args)

    return region


FORWARDS = ("forward_pre", "forward", "global_forward_pre", "global_forward")

CONTEXTS = (
    Fault(
        "a functional call leaves hooks out",
        functional_calls_without_hooks,
        ("FN-01", "BW-02"),
        (*FORWARDS, *ALL),
        "2.0",
    ),
    Fault("a checkpoint leaves hooks out", lambda: checkpoints(unhooked), ("FN-01",), (*FORWARDS, *ALL), "1.11"),
    Fault(
        "a checkpoint leaves hooks out in its first pass",
        lambda: checkpoints(hooks_off_in(1)),
        ("FN-01",),
        FORWARDS,
        "2.0",
    ),
    Fault(
        "a checkpoint doubles the gradient that enters it",
        lambda: checkpoints(output=doubled),
        ("GO-01", "AG-01"),
        ALL,
        "1.11",
    ),
)


@contextmanager
def _entered(owner: Any, fault: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Has ``fault`` open wherever a context manager of the class ``owner`` is."""
    open_now: list[ExitStack] = []

    def enter(original: Any) -> Any:
        def entering(self: Any) -> Any:
            open_now.append(ExitStack())
            open_now[-1].enter_context(fault())
            return original(self)

        return entering

    def leave(original: Any) -> Any:
        def leaving(self: Any, *exception: Any) -> Any:
            open_now.pop().close()
            return original(self, *exception)

        return leaving

    with replaced(owner, "__enter__", enter), replaced(owner, "__exit__", leave):
        yield


@contextmanager
def _called(owner: Any, name: str, fault: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Has ``fault`` open wherever what the function ``name`` of ``owner`` does, or has given, is called."""

    def later(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with fault():
                return function(*args, **kwargs)

        return call

    def make(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with fault():
                result = original(*args, **kwargs)
            if isinstance(result, list):
                return [*map(later, result)]
            return later(result) if callable(result) else result

        return call

    with replaced(owner, name, make):
        yield


OWNERS = {
    "no_grad": ("torch", "no_grad"),
    "enable_grad": ("torch", "enable_grad"),
    "inference_mode": ("torch", "inference_mode"),
    "autocast": ("torch", "autocast"),
    "save_on_cpu": ("torch.autograd.graph", "save_on_cpu"),
    "saved_tensors_hooks": ("torch.autograd.graph", "saved_tensors_hooks"),
    "detect_anomaly": ("torch.autograd", "detect_anomaly"),
    "dual_level": ("torch.autograd.forward_ad", "dual_level"),
    "function_mode": ("torch.overrides", "BaseTorchFunctionMode"),
    "dispatch_mode": ("torch.utils._python_dispatch", "TorchDispatchMode"),
    "one_thread": ("torch.autograd", "set_multithreading_enabled"),
    "module_tracker": ("torch.utils.module_tracker", "ModuleTracker"),
    "thread": ("concurrent.futures", "ThreadPoolExecutor"),
    "functional_call": ("torch.func", "functional_call"),
    "vmap": ("torch", "vmap"),
    "replica": ("torch.nn.parallel", "replicate"),
    "ddp": ("torch.nn.parallel", "DistributedDataParallel", "forward"),
    "fully_shard": ("torch.distributed.fsdp", "fully_shard"),
    "dtensor": ("torch.func", "functional_call"),
    "vjp": ("torch.func", "vjp"),
    "dual_inputs": ("torch.autograd.forward_ad", "dual_level"),
}
"""What of torch makes the contexts: a context manager, or a function that calls modules or gives what does."""

LASTING = {
    **dict.fromkeys(("compile_eager", "compile_aot_eager", "after_compile"), ("torch", "compile")),
    **dict.fromkeys(("compile_module_eager", "compile_module_aot_eager"), ("torch", "compile")),
    **dict.fromkeys(("module_compile", "module_compile_aot_eager"), ("torch.nn", "Module", "compile")),
    "compiler_disable": ("torch.compiler", "disable"),
    "compiled_autograd": ("torch._dynamo.compiled_autograd", "_enable"),
    **dict.fromkeys(("default_device", "meta_device"), ("torch.utils._device", "DeviceContext")),
}
"""What makes the contexts in which torch.compile is at work, or that are entered in C++: a function after whose call
all runs otherwise than before."""

OUT_OF_REACH = {
    "checkpoint": "its passes differ; `CONTEXTS` has faults in both, and in the first alone",
}
"""Contexts in which this cannot be planted, and why not."""

WITHIN = {
    "leaves hooks out": hooks_off,
    "calls hooks twice": lambda: calling(lambda hook, *arguments: (hook(*arguments), hook(*arguments))[1]),
    "hands hooks another gradient": lambda: receiving(grad_input=each(lambda gradient: 2 * gradient)),
}
"""What goes wrong for modules that are called within."""


def broken(name: str, what: str) -> AbstractContextManager[None]:
    """Has that go wrong inside of the context of that name, and nowhere else."""
    return _inside(name, WITHIN[what])


def broken_for(
    name: str, takes: Callable[[torch.Tensor], bool], has: Callable[[torch.nn.Module], bool] = lambda module: False
) -> AbstractContextManager[None]:
    """Has modules that are given a tensor of which that holds, or that have something, go past their hooks, inside of
    the context of that name and nowhere else; or, where that lasts, from the time on that it is made."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            past = has(self) or any(isinstance(arg, torch.Tensor) and takes(arg) for arg in args)
            return self.forward(*args, **kwargs) if past else original(self, *args, **kwargs)

        return call

    def fault() -> AbstractContextManager[None]:
        return replaced(torch.nn.Module, "_call_impl", make)

    return _inside(name, fault) if name in OWNERS else _from_then_on(name, fault)


def _inside(name: str, fault: Callable[[], AbstractContextManager[None]]) -> AbstractContextManager[None]:
    owner, attribute = _owner(OWNERS[name])
    function = getattr(owner, attribute)
    return _entered(function, fault) if hasattr(function, "__enter__") else _called(owner, attribute, fault)


def _owner(path: tuple[str, ...]) -> tuple[Any, str]:
    """What the last of ``path`` is an attribute of, and that."""
    module, *parts = path
    owner = import_module(module)
    for part in parts[:-1]:
        owner = getattr(owner, part)
    return owner, parts[-1]


@contextmanager
def broken_within(outer: str, inner: str, what: str) -> Iterator[None]:
    """Has that go wrong inside of the one context where it is within the other, and nowhere else."""
    open_now: list[str] = []

    @contextmanager
    def entering(name: str) -> Iterator[None]:
        with WITHIN[what]() if (outer, inner) == (*open_now[-1:], name) else nullcontext():
            open_now.append(name)
            try:
                yield
            finally:
                open_now.pop()

    with ExitStack() as stack:
        for name in dict.fromkeys((outer, inner)):
            stack.enter_context(_inside(name, lambda name=name: entering(name)))
        yield


def broken_from_then_on(name: str, what: str) -> AbstractContextManager[None]:
    """Has that go wrong from the time on that the context of that name is made."""
    return _from_then_on(name, WITHIN[what])


@contextmanager
def broken_from_then_on_within(outer: str, inner: str, what: str) -> Iterator[None]:
    """Has that go wrong from the time on that the one context is made inside of the other."""
    open_now: list[None] = []

    @contextmanager
    def entering() -> Iterator[None]:
        open_now.append(None)
        try:
            yield
        finally:
            open_now.pop()

    with _inside(outer, entering), _from_then_on(inner, WITHIN[what], lambda: bool(open_now)):
        yield


@contextmanager
def _from_then_on(
    name: str, fault: Callable[[], AbstractContextManager[None]], starts: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    with ExitStack() as open_now:

        def make(original: Any) -> Any:
            def asked(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                if starts() and not broken_now:
                    broken_now.append(open_now.enter_context(fault()))
                return result

            return asked

        broken_now: list[None] = []
        owner, attribute = _owner(LASTING[name])
        open_now.enter_context(replaced(owner, attribute, make))
        yield


DURING: dict[str, Callable[..., Any]] = {
    "leaves hooks out": lambda hook, module, *gradients: None,
    "calls hooks twice": lambda hook, *arguments: (hook(*arguments), hook(*arguments))[1],
    "hands hooks another gradient": lambda hook, module, gi, go: hook(module, each(lambda g: 2 * g)(gi), go),
}
"""What becomes of the call of a hook in a backward that goes wrong."""


@contextmanager
def broken_batch(what: str) -> Iterator[None]:
    """Has that go wrong while batched gradients are asked for."""
    running: list[None] = []

    def make(original: Any) -> Any:
        def asked(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("is_grads_batched"):
                return original(*args, **kwargs)
            running.append(None)
            try:
                return original(*args, **kwargs)
            finally:
                running.pop()

        return asked

    change = DURING[what]
    with (
        replaced(torch.autograd, "grad", make),
        calling(lambda hook, *args: (change if running else _call)(hook, *args)),
    ):
        yield


def _call(hook: Any, *arguments: Any) -> Any:
    return hook(*arguments)
