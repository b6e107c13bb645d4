"""Faults in the tools around a checkpoint: sequences, contexts, groups, wrappers and policies."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import torch.utils.checkpoint

from ..engine import Fault, replaced
from ..registering import edited

CHECKPOINT: Any = torch.utils.checkpoint
Patch = AbstractContextManager[None]


def _of(name: str, *changes: tuple[str, str]) -> Patch:
    """Edits a function of ``torch.utils.checkpoint``."""
    return edited(CHECKPOINT, name, *changes)


def _pass(*changes: tuple[str, str]) -> Patch:
    """Edits what runs a region that is not reentrant."""
    return _of("_checkpoint_without_reentrant_generator", *changes)


def _wrapper(kind: str, change: tuple[str, str]) -> Patch:
    """Edits how a wrapper calls what is in it."""
    return edited(getattr(_wrappers(), kind), "forward", change)


def _wrapper_made(change: tuple[str, str]) -> Patch:
    """Edits how a wrapper that checkpoints is made."""
    named = ("super().__init__(mod)", "ActivationWrapper.__init__(self, mod)")
    return edited(_wrappers().CheckpointWrapper, "__init__", named, change)


def _deaf(function: str) -> Patch:
    """A wrapper that checkpoints by that function does not pass its options on."""
    return _wrapper_made((f"{function}\n            **checkpoint_fn_kwargs,", function))


def _wrappers() -> Any:
    return import_module("torch.distributed.algorithms._checkpoint.checkpoint_wrapper")


def _names_stay() -> Patch:
    """A wrapper saves what is in it under its own attribute's name."""
    return replaced(
        _wrappers().ActivationWrapper,
        "_post_state_dict_hook",
        lambda original: staticmethod(lambda module, state, prefix, *args: state),
    )


@contextmanager
def _composable(*changes: tuple[str, str]) -> Iterator[None]:
    """Edits the checkpoint that is made of hooks, which is a function with a decorator."""
    module = import_module("torch.distributed._composable.checkpoint_activation")
    package = import_module("torch.distributed._composable")
    sound = vars(module)["checkpoint"]
    source = (
        "@contract(_CheckpointState)\ndef checkpoint(" + inspect.getsource(module).partition("\ndef checkpoint(")[2]
    )
    for old, new in changes:
        assert old in source, f"checkpoint has no {old!r}"
        source = source.replace(old, new)
    exec(source, vars(module))
    vars(package)["checkpoint"] = vars(module)["checkpoint"]
    try:
        yield
    finally:
        vars(module)["checkpoint"] = vars(package)["checkpoint"] = sound


def _never_off() -> Patch:
    """The hooks of a composed checkpoint stay off after an error in the second pass."""
    return edited(
        import_module("torch.distributed._composable.checkpoint_activation"),
        "_no_hook",
        ("finally:", "except ZeroDivisionError:\n            raise\n        else:"),
    )


@contextmanager
def _switch_stays(name: str, variable: str) -> Iterator[None]:
    """A switch for all checkpoints is not put back where its context is left."""
    before = getattr(CHECKPOINT, variable)
    with _of(name, (f"{variable} = prev\n", "pass\n")):
        try:
            yield
        finally:
            setattr(CHECKPOINT, variable, before)


@contextmanager
def _group_stays() -> Iterator[None]:
    """A group is not closed where it ends with an error."""
    closed = "torch._C._set_graph_exec_group(None)"
    with edited(CHECKPOINT.GraphExecGroup, "__exit__", (closed, f"{closed} if args[0] is None else None")):
        try:
            yield
        finally:
            torch._C._set_graph_exec_group(None)  # type: ignore[attr-defined]


SAVES = ("policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)", "policy is CheckpointPolicy.MUST_SAVE")
KEYWORDS = ("                *args,\n                **kwargs,\n", "                *args,\n")

fault = partial(Fault, kinds=(), since="2.13")

FAULTS = (
    fault(
        "checkpoint_sequential: the last segment is a checkpoint too",
        lambda: _of(
            "checkpoint_sequential", ("range(0, segment_size * (segments - 1)", "range(0, segment_size * segments")
        ),
        ("CK-28",),
    ),
    fault(
        "checkpoint_sequential: preserve_rng_state is not heard",
        lambda: _of("checkpoint_sequential", ("preserve_rng_state=preserve,", "")),
        ("CK-28",),
    ),
    fault(
        "checkpoint: the second pass leaves its random numbers behind",
        lambda: _pass(
            ("with torch.random.fork_rng(", "with contextlib.nullcontext() if True else torch.random.fork_rng(")
        ),
        ("CK-28",),
    ),
    fault(
        "checkpoint_sequential: reentrant whatever is asked",
        lambda: _of("checkpoint_sequential", ("use_reentrant=use_reentrant,\n", "use_reentrant=True,\n")),
        ("CK-28",),
    ),
    fault(
        "checkpoint_sequential: a segment of two loses its second module",
        lambda: _of(
            "checkpoint_sequential", ("range(start, end + 1)", "range(start, end if end - start == 1 else end + 1)")
        ),
        ("CK-28",),
    ),
    fault(
        "checkpoint: the second pass has no keyword arguments",
        lambda: _pass(("fn(*args, **kwargs)\n\n    new_frame", "fn(*args)\n\n    new_frame")),
        ("CK-29",),
    ),
    fault(
        "checkpoint: the contexts of the passes are swapped",
        lambda: _pass(("forward_context, recompute_context = ", "recompute_context, forward_context = ")),
        ("CK-29", "CK-30"),
    ),
    fault(
        "checkpoint: there is a context without grad mode",
        lambda: _pass(("if not torch.is_grad_enabled():", "if False:")),
        ("CK-29",),
    ),
    fault(
        "checkpoint: an error leaves the context of the first pass open",
        lambda: _of("checkpoint", ("gen.throw(e)", "pass")),
        ("CK-30",),
    ),
    fault(
        "checkpoint: the context of the first pass is left without the error",
        lambda: _of("checkpoint", ("gen.throw(e)", "gen.close(); raise")),
        ("CK-30",),
    ),
    fault("composable checkpoint: keyword arguments are lost", lambda: _composable(KEYWORDS), ("CK-29",)),
    fault(
        "composable checkpoint: context_fn is not heard",
        lambda: _composable(("if user_context_fns is not None:", "if False:")),
        ("CK-29", "CK-30"),
    ),
    fault(
        "composable checkpoint: an error in the first pass is not noticed",
        lambda: _composable((", always_call=True", "")),
        ("CK-30",),
    ),
    fault("composable checkpoint: an error in the second pass is the last pass", _never_off, ("CK-30",)),
    fault(
        "composable checkpoint: determinism_check is not heard",
        lambda: _composable(("                determinism_check,\n", "                _DEFAULT_DETERMINISM_MODE,\n")),
        ("CK-31",),
    ),
    fault(
        "checkpoint: dtypes are not compared",
        lambda: replaced(
            CHECKPOINT,
            "_allowed_determinism_checks_to_fns",
            lambda checks: {**checks, "default": lambda x: {"shape": x.shape}},
        ),
        ("CK-31",),
    ),
    fault(
        "GraphExecGroup: each backward computes again",
        lambda: replaced(CHECKPOINT.GraphExecGroup, "_get_current_group", lambda _: classmethod(lambda cls: None)),
        ("CK-32",),
    ),
    fault("GraphExecGroup: not closed by an error", _group_stays, ("CK-32",)),
    fault("wrappers: names that are saved keep the prefix", _names_stay, ("CK-33",)),
    fault(
        "checkpoint_wrapper: the hooks of the module are passed by",
        lambda: _wrapper(
            "CheckpointWrapper",
            ("self._checkpoint_wrapped_module, *args", "self._checkpoint_wrapped_module.forward, *args"),
        ),
        ("CK-33",),
    ),
    fault(
        "checkpoint_wrapper: hooks are passed by where there are keyword arguments",
        lambda: _wrapper(
            "CheckpointWrapper",
            ("return self._checkpoint_wrapped_module(\n", "return self._checkpoint_wrapped_module.forward(\n"),
        ),
        ("CK-33",),
    ),
    fault(
        "apply_activation_checkpointing: nothing is checkpointed",
        lambda: replaced(_wrappers(), "apply_activation_checkpointing", lambda _: lambda network, **options: None),
        ("CK-33",),
    ),
    fault(
        "checkpoint_wrapper: its options are not passed on",
        lambda: _deaf("use_reentrant=(self.checkpoint_impl == CheckpointImpl.REENTRANT),"),
        ("CK-29", "CK-31"),
    ),
    fault(
        "checkpoint_wrapper: options are not passed on to the caller's function",
        lambda: _deaf("checkpoint_fn,"),
        ("CK-29",),
    ),
    fault(
        "checkpoint_wrapper: the caller's function is not heard",
        lambda: _wrapper_made(("if checkpoint_fn is None:", "if True:")),
        ("CK-29",),
    ),
    fault(
        "offload_wrapper: the hooks of the module are passed by",
        lambda: _wrapper(
            "OffloadWrapper",
            ("return self._checkpoint_wrapped_module(", "return self._checkpoint_wrapped_module.forward("),
        ),
        ("CK-33",),
    ),
    fault(
        "offload_wrapper: nothing is offloaded",
        lambda: _wrapper("OffloadWrapper", ("with save_on_cpu(pin_memory=True):", "if True:")),
        ("CK-33",),
    ),
    fault(
        "selective checkpointing: each result is the first",
        lambda: edited(
            CHECKPOINT._CachedTorchDispatchMode, "__torch_dispatch__", ("self.func_counter[key] += 1", "pass")
        ),
        ("CK-34",),
    ),
    fault(
        "selective checkpointing: keyword arguments of operations are lost",
        lambda: edited(
            CHECKPOINT._CachingTorchDispatchMode,
            "__torch_dispatch__",
            ("out = func(*args, **kwargs)", "out = func(*args)"),
        ),
        ("CK-34",),
    ),
    fault(
        "selective checkpointing: the policy is not told the output",
        lambda: edited(
            CHECKPOINT._CachingTorchDispatchMode, "__torch_dispatch__", ("op_output=out", "op_output=out * 0")
        ),
        ("CK-34",),
    ),
    fault(
        "selective checkpointing: what is preferably saved is not",
        lambda: edited(CHECKPOINT._CachingTorchDispatchMode, "__torch_dispatch__", SAVES),
        ("CK-34",),
    ),
    fault(
        "checkpoint: debugging goes on",
        lambda: _switch_stays("set_checkpoint_debug_enabled", "_checkpoint_debug_enabled"),
        ("CK-35",),
    ),
)
