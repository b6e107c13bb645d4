"""One step of a model: forward, loss, backward, and all that it shows."""

from __future__ import annotations

import gc
import sys
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from hookcheck.errors import HookcheckError
from hookcheck.models.containers import mapped
from hookcheck.models.keeping import Snapshot, as_before, seeded
from hookcheck.probe.copying import copied, fields_of, is_container, layouts, standings, version, view_of
from hookcheck.probe.observation import Array, Event, Observation, Raised, Standing

TORCH = str(Path(torch.__file__).parent)
OURS = str(Path(__file__).parents[1])


@dataclass(frozen=True, eq=False)
class ModelUse:
    """A model with what it is run on: arguments, a loss (None: of all outputs), and the modules that are looked at.

    ``compiled`` says that it does not run without torch.compile.
    """

    model: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    loss: Callable[[Any], torch.Tensor] | None
    seed: int
    modules: Mapping[str, torch.nn.Module]
    snapshot: Snapshot
    compiled: bool = False


@dataclass(frozen=True, eq=False)
class StepTargets:
    """What hooks are put on in one step; see `hookcheck.probe.registering.Network`."""

    modules: Mapping[str, torch.nn.Module]
    parameters: Mapping[str, torch.nn.Parameter]
    inputs: Mapping[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class ModelStep:
    """What one step showed; of an exception the innermost line that is neither torch's nor hookcheck's. The exception
    itself is not kept: its traceback holds the graph."""

    seen: Observation
    line: str = ""
    backward: bool = True

    @property
    def raised(self) -> bool:
        """Whether an exception ended it."""
        return self.seen.raised is not None


Within = Callable[[StepTargets], AbstractContextManager[Any]]
"""What a step runs in, given its modules, parameters and the inputs of this very step."""


def take(
    use: ModelUse,
    within: Within = lambda _: nullcontext(),
    events: list[tuple[int, Event]] | None = None,
    modules: Mapping[str, torch.nn.Module] | None = None,
    call: Callable[[torch.nn.Module], Callable[..., Any]] = lambda model: model,
    convert: Callable[[torch.Tensor], torch.Tensor] = lambda tensor: tensor,
    keep: Callable[[torch.Tensor], Array] = view_of,
    compiled: bool = False,
) -> ModelStep:
    """Runs one step and puts everything back as it was.

    ``within`` appends to ``events``. ``call`` gives what is called in the model's place, ``convert`` what a tensor
    among the arguments becomes, ``keep`` what stays of a ``.grad``, ``compiled`` says whether torch.compile is at work.
    An exception of the step is part of what it shows.
    """
    events = [] if events is None else events
    eager = nullcontext() if compiled or use.compiled else uncompiled()
    with as_before(use.snapshot), eager, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seeded(use.seed)
        modules = use.modules if modules is None else modules
        step, references = _taken(use, within, events, modules, call, convert, keep)
        lines = tuple((warning.category.__name__, str(warning.message).partition("\n")[0]) for warning in caught)
    step = replace(step, seen=replace(step.seen, events=tuple(event for _, event in events), warnings=lines))
    if step.raised or not any(reference() is not None for reference in references.values()):
        return step
    gc.collect()
    alive = tuple(name for name, reference in references.items() if reference() is not None)
    return replace(step, seen=replace(step.seen, alive=alive))


@contextmanager
def uncompiled() -> Iterator[None]:
    """What torch.compile has made runs as it was before: else it would compile our hooks and cuts with it."""
    frames: Any = sys.modules.get("torch._dynamo.eval_frame")
    if frames is None:
        yield
    elif hasattr(torch.compiler, "set_stance"):
        with torch.compiler.set_stance("force_eager"):
            yield
    else:  # up to 2.5
        with patch.object(frames, "set_eval_frame", lambda callback: None):
            yield


def _taken(
    use: ModelUse,
    within: Within,
    events: list[tuple[int, Event]],
    modules: Mapping[str, torch.nn.Module],
    call: Callable[[torch.nn.Module], Callable[..., Any]],
    convert: Callable[[torch.Tensor], torch.Tensor],
    keep: Callable[[torch.Tensor], Array],
) -> tuple[ModelStep, Mapping[str, weakref.ref[Any]]]:
    parameters = dict(use.model.named_parameters())
    for parameter in parameters.values():
        parameter.grad = None
    args, kwargs = mapped((use.args, dict(use.kwargs)), lambda tensor: _fresh(convert(tensor)))
    inputs = {f"input {name}": tensor for name, tensor in tensors_in({**dict(enumerate(args)), **kwargs})}
    written = {f"net.{name}": version(parameter) for name, parameter in parameters.items()}
    output, line, backward = None, "", False
    raised: Raised | None = None
    try:
        with within(StepTargets(modules, parameters, inputs)):
            output = call(use.model)(*args, **kwargs)
            backward = _backward(use, output)
    except HookcheckError:
        raise
    except Exception as caught:
        raised, line = Raised(type(caught).__name__, str(caught)), line_of(caught)
    tensors = dict(tensors_in(output, "output"))
    leaves = {**parameters, **inputs}
    named = {**{f"net.{name}": parameter for name, parameter in parameters.items()}, **inputs, **tensors}
    grads = {name: leaf.grad for name, leaf in leaves.items() if leaf.is_leaf and leaf.requires_grad}
    seen = Observation(
        events=(),
        values={"output": copied(output)},
        requires_grad={name: tensor.requires_grad for name, tensor in tensors.items()},
        gradients={name: None if grad is None else keep(grad) for name, grad in grads.items()},
        warnings=(),
        raised=raised,
        random=torch.default_generator.get_state().numpy().tobytes(),
        standings={name: _since(written.get(name), standing) for name, standing in standings(named).items()},
        layouts=layouts(grads),
    )
    tracked = {**inputs, **tensors}
    state = {id(tensor) for tensor in (*use.model.parameters(), *use.model.buffers())}
    references = {name: weakref.ref(tensor) for name, tensor in tracked.items() if id(tensor) not in state}
    return ModelStep(seen, line, backward), references


def _since(before: int | None, standing: Standing) -> Standing:
    """With the writes of this step alone: those of parameters count on from step to step, as they are put back."""
    return standing if standing.version is None else standing._replace(version=standing.version - (before or 0))


def _fresh(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _backward(use: ModelUse, output: Any) -> bool:
    """Whether there was anything to go backward from."""
    tensors = [tensor for _, tensor in tensors_in(output)]
    roots = [tensor for tensor in tensors if tensor.requires_grad]
    if tensors and not roots:
        return False
    if use.loss is not None:
        loss = use.loss(output)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise HookcheckError("loss must give a tensor of one number: return loss.mean() or loss.sum()")
        if not loss.requires_grad:
            raise HookcheckError("the loss requires no grad: it must be computed from the output, in grad mode")
        torch.autograd.backward([loss])
        return True
    if not roots:
        raise HookcheckError(
            "the model returns no tensor, and none in tuples, lists, dicts or dataclasses, but "
            f"{type(output).__name__}: pass loss=, a function from its output to a loss"
        )
    drawn = torch.Generator().manual_seed(use.seed)
    torch.autograd.backward(roots, [_cotangent(root, drawn) for root in roots])
    return True


def _cotangent(root: torch.Tensor, drawn: torch.Generator) -> torch.Tensor:
    """Random numbers: a sum has the same gradient everywhere, in which a wrong place does not show."""
    numbers = torch.randn(root.shape, generator=drawn, dtype=torch.float64)
    return numbers.to(dtype=root.dtype, device=root.device)


def tensors_in(value: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor in containers, by where it is: ``output[logits]``."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif is_container(value) and not isinstance(value, type):
        for key, item in fields_of(value):
            yield from tensors_in(item, f"{name}[{key}]" if name else str(key))


def line_of(error: BaseException) -> str:
    """The innermost line of code that is neither torch's nor hookcheck's: ``model.py:12: out += x``."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith((TORCH, OURS, "<"))]
    if not theirs:
        inner = [frame for frame in frames if frame.filename.startswith(TORCH)]
        theirs = inner[-1:]
    return f"{theirs[-1].filename}:{theirs[-1].lineno}: {(theirs[-1].line or '').strip()}" if theirs else ""
