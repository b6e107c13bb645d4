"""The same outputs and gradients however a function is run: plainly, checkpointed, compiled, under a grad mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hookcheck.errors import HookcheckError
from hookcheck.probe.lazy import nn, torch

Run = Callable[..., Any]


def same_under(contexts: Iterable[str]) -> Callable[..., None]:
    """A function that takes a function (or module) and its arguments, and fails where a context changes the results.

    Each run begins with the same random state. Results are the tensors of the output at any depth of tuples, lists and
    dicts, and the gradients of their sum by the tensors among the arguments that require grad and by a module's
    parameters; those under ``no_grad`` have outputs alone. They are held to the one table of tolerances, by the
    coarsest dtype that takes part (``bfloat16`` under autocast). A module's training mode and buffers, every ``.grad``
    and the random state are as before afterwards.

    Raises:
        AssertionError: from what it gives; names each context and result that differs.
        HookcheckError: an unknown context, one that this torch lacks, or something that cannot be run.
    """
    names = [contexts] if isinstance(contexts, str) else list(contexts)
    for name in names:
        if name not in CONTEXTS:
            raise HookcheckError(f"unknown context {name!r}; choose from {', '.join(CONTEXTS)}")

    def check(function: Any, *arguments: Any, **options: Any) -> None:
        __tracebackhide__ = True
        _runnable(function, arguments)
        plain = _results(function, "eager", arguments, options)
        if not any(where.startswith("output") for where in plain):
            raise HookcheckError("the function returns no tensor: there is nothing to compare")
        wrong = [
            line for name in names for line in _differences(name, plain, _under(name, function, arguments, options))
        ]
        assert not wrong, "\n".join(["not the same as eager:", *(f"  {line}" for line in wrong)])

    return check


def _under(name: str, function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    if not offered(name):
        raise HookcheckError(f"torch {torch.__version__} has no context {name!r}: leave it out")
    return _results(function, name, arguments, options)


def _runnable(function: Any, arguments: tuple[Any, ...]) -> None:
    if not callable(function):
        raise HookcheckError(f"same_under needs a function or module to call, not {type(function).__name__}")
    if isinstance(function, (torch.jit.ScriptModule, nn.DataParallel)):
        raise HookcheckError(f"same_under runs plain modules: pass what went into the {type(function).__name__}")
    held = [
        *_tensors(arguments),
        *(("", p) for p in (function.parameters() if isinstance(function, nn.Module) else ())),
    ]
    if any(tensor.device.type == "meta" for _, tensor in held):
        raise HookcheckError("tensors on meta have no numbers to compare: build the model on a real device")


def _no_grad(function: Run) -> Run:
    return torch.no_grad()(lambda *a, **k: function(*a, **k))


def _eval(function: Run) -> Run:
    if not isinstance(function, nn.Module):
        raise HookcheckError("eval is for modules: a function has no training mode")
    function.eval()
    return function


def _checkpointed(reentrant: bool) -> Callable[[Run], Run]:
    def context(function: Run) -> Run:
        checkpoint = import_module("torch.utils.checkpoint").checkpoint
        return lambda *a, **k: checkpoint(lambda *b: function(*b, **k), *a, use_reentrant=reentrant)

    return context


def _autocast(function: Run) -> Run:
    def run(*arguments: Any, **options: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return function(*arguments, **options)

    return run


def _compiled(backend: str) -> Callable[[Run], Run]:
    def context(function: Run) -> Run:
        compiled: Run = torch.compile(function, backend=backend)
        return compiled

    return context


def _functional(function: Run) -> Run:
    if not isinstance(function, nn.Module):
        raise HookcheckError("functional_call is for modules")
    call, names = torch.func.functional_call, {**dict(function.named_parameters()), **dict(function.named_buffers())}
    return lambda *a, **k: call(function, names, a, k)


def _in_dtype(dtype: str) -> Callable[[Run], Run]:
    """Parameters, buffers and arguments are converted; gradients flow on to those that there are."""

    def context(function: Run) -> Run:
        if not isinstance(function, nn.Module):
            raise HookcheckError(f"{dtype} is for modules: it converts their parameters")
        from hookcheck.models.containers import mapped

        class Cast(torch.autograd.Function):
            """As ``to``, whose backward takes no sparse gradient."""

            @staticmethod
            def forward(ctx: Any, tensor: Any) -> Any:
                ctx.dtype = tensor.dtype
                return tensor.to(getattr(torch, dtype))

            @staticmethod
            def backward(ctx: Any, gradient: Any) -> Any:
                return gradient.to(ctx.dtype)

        def cast(tensor: Any) -> Any:
            return Cast.apply(tensor) if tensor.is_floating_point() else tensor  # type: ignore[no-untyped-call]

        def run(*arguments: Any, **options: Any) -> Any:
            held = {**dict(function.named_parameters()), **dict(function.named_buffers())}
            converted = {name: cast(tensor) for name, tensor in held.items()}
            return torch.func.functional_call(function, converted, *mapped((arguments, options), cast))

        return run

    return context


CONTEXTS: dict[str, Callable[[Run], Run]] = {
    "eager": lambda function: function,
    "no_grad": _no_grad,
    "eval": _eval,
    "checkpoint": _checkpointed(False),
    "checkpoint_reentrant": _checkpointed(True),
    "autocast": _autocast,
    "compile_eager": _compiled("eager"),
    "compile_aot_eager": _compiled("aot_eager"),
    "compiled_autograd": lambda function: function,
    "functional_call": _functional,
    "float64": _in_dtype("float64"),
    "bfloat16": _in_dtype("bfloat16"),
}
"""What a function can be run under: each gives the function to call in its place."""


@contextmanager
def around(name: str) -> Iterator[None]:
    """What must be open during the backward pass as well."""
    if name != "compiled_autograd":
        yield
        return
    compiled = import_module("torch._dynamo.compiled_autograd")
    enable = getattr(compiled, "_enable", None) or compiled.enable
    with enable(lambda graph: graph):  # the graph as it was captured
        yield


NEEDS = {
    "checkpoint": ("inference_mode",),
    "checkpoint_reentrant": ("inference_mode",),
    "autocast": ("autocast",),
    "compile_eager": ("compile",),
    "compile_aot_eager": ("compile",),
    "compiled_autograd": ("compiler.is_compiling",),
    "functional_call": ("func",),
    "float64": ("func",),
    "bfloat16": ("func",),
}
"""What this torch must have for a context; ``use_reentrant`` came with 1.11, and compiled autograd as it is used here
with 2.3."""


def offered(name: str) -> bool:
    """Whether this torch has a context."""
    return all(_has(torch, part.split(".")) for part in NEEDS.get(name, ()))


def _has(thing: Any, parts: Sequence[str]) -> bool:
    return not parts or (hasattr(thing, parts[0]) and _has(getattr(thing, parts[0]), parts[1:]))


def _results(function: Any, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Outputs and gradients by name, None for a gradient that is absent; what the run changed is put back."""
    module = function if isinstance(function, nn.Module) else nn.Module()
    leaves = {**dict(module.named_parameters()), **{f"argument {n}": t for n, t in _tensors((arguments, options))}}
    leaves = {n: t for n, t in leaves.items() if t.requires_grad and t.is_leaf}
    modes, grads = {m: m.training for m in module.modules()}, {n: t.grad for n, t in leaves.items()}
    buffers = [(b, b.clone()) for b in module.buffers()]
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()  # type: ignore[no-untyped-call]
    try:
        for leaf in leaves.values():
            leaf.grad = None
        with torch.random.fork_rng(devices=devices), around(name):
            output = CONTEXTS[name](function)(*arguments, **options)
            outputs = {f"output {n}".strip(): t for n, t in _tensors(output)}
            losses = [t.sum().abs() if t.is_complex() else t.sum() for t in outputs.values() if t.requires_grad]
            if losses:
                torch.autograd.backward(losses)
        results: dict[str, Any] = {n: t.detach().clone() for n, t in outputs.items()}
        if name != "no_grad":
            results.update({f"gradient of {n}": None if t.grad is None else t.grad.clone() for n, t in leaves.items()})
        return results
    finally:
        for n, leaf in leaves.items():
            leaf.grad = grads[n]
        for m, training in modes.items():
            m.training = training
        with torch.no_grad():
            for buffer, content in buffers:
                buffer.copy_(content)


def _differences(name: str, plain: dict[str, Any], other: dict[str, Any]) -> Iterator[str]:
    from hookcheck.oracle.tolerance import close, coarsest, tolerance
    from hookcheck.probe.copying import array_of
    from hookcheck.probe.observation import dtype_of, numbers

    coarse = ["bfloat16"] if name in ("autocast", "bfloat16") else []
    for where, expected in plain.items():
        if where not in other:
            if name != "no_grad" or where.startswith("output"):
                yield f"{name}: {where} is not there"
            continue
        observed = other[where]
        if expected is None or observed is None:
            if expected is not observed:
                yield f"{name}: {where} is {_word(observed)}, not {_word(expected)}"
            continue
        if observed.shape != expected.shape:
            yield f"{name}: {where} has shape {tuple(observed.shape)}, not {tuple(expected.shape)}"
            continue
        a, b = array_of(observed), array_of(expected)
        dtype, device = coarsest([dtype_of(a), dtype_of(b), *coarse]), expected.device.type
        a, b = numbers(a), numbers(b)
        if not close(a, b, dtype, device):
            most = tolerance(b, dtype, device)
            yield f"{name}: {where} differs by {abs(a - b).max():.3g}, of which rounding explains {most:.3g}"
    for where in other.keys() - plain.keys():
        yield f"{name}: {where} is there, and not in eager"


def _word(gradient: Any) -> str:
    return "None" if gradient is None else "a tensor"


def _tensors(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every tensor in tuples, lists and dicts, by where it is."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (tuple, list, dict)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _tensors(item, f"{name}[{key}]")
