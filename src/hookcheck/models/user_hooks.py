"""One's own hooks on a model: what each receives and must receive, how often, what it returns and what that does.

The step runs with the hooks, and what they return is dropped: so each receives what the model without any gives it, and
is held to that. Then it runs once more for each hook that returned something, with that hook's results alone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch

from hookcheck.contract.ledger import Ledger
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import BACKWARD, BACKWARD_PRE, FORWARD, FORWARD_PRE, HookKind
from hookcheck.models import result
from hookcheck.models.cuts import CALLED
from hookcheck.models.judging import Truth, clauses_of, node_runs, verdicts
from hookcheck.models.reach import refusing
from hookcheck.models.reference import NodeRun, Reference
from hookcheck.models.result import Judged, OwnHook
from hookcheck.models.step import ModelStep, ModelUse, StepTargets, take
from hookcheck.models.tables import global_hooks
from hookcheck.models.watching import Honoured, Watch, Watched, watching
from hookcheck.probe.garbage import young

Register = Callable[[torch.nn.Module], Any]
"""Registers hooks on a model. It may give what removes them: handles, anything with ``remove``, a function without
arguments, or a context manager that is open during the step."""


@dataclass(frozen=True, eq=False)
class Receipts:
    """What one's own hooks received in a step in which nothing that they return counts.

    ``changed`` says for each of them (by its key) which outputs and gradients are others because of what it returned,
    ``retained`` (by key and place) how many bytes of what it was given are there afterwards, and whether with their
    graph.
    """

    step: ModelStep
    hooks: tuple[Watched, ...]
    changed: Mapping[tuple[str, str, str], tuple[str, ...]]
    retained: Mapping[tuple[tuple[str, str, str], str | None], tuple[int, bool]]
    nodes: tuple[NodeRun, ...]

    @property
    def raised(self) -> str:
        """What the step with the hooks raises, and where; empty if nothing."""
        return _raised(self.step) if self.step.raised else ""


def receive(use: ModelUse, register: Register, plain: ModelStep, call: Any = None) -> Receipts:
    """Runs the step with the hooks, once more for each that returns something, and once for what stays in memory.

    Raises:
        HookcheckError: registering them raises, or it registers none.
    """
    step, watch = _run(use, register, lambda _: False, call)
    hooks = tuple(watch.hooks.values())
    if not hooks and not step.raised:
        raise HookcheckError("hooks= registers no hook on the model: give a function that takes the model and does so")
    changed = {}
    for key in dict.fromkeys(hook.key for hook in hooks if hook.returned):
        acting, _ = _run(use, register, lambda hook, key=key: hook.key == key, call)  # type: ignore[misc]
        changed[key] = tuple(_changed(step, acting))
    for key in dict.fromkeys(hook.key for hook in hooks if hook.wrote and not hook.returned):
        changed[key] = tuple(_changed(plain, step))
    legacy = any(hook.kind.variant == "legacy" for hook in hooks)
    retained = _retained(use, register, call)
    return Receipts(step, hooks, changed, retained, node_runs(use) if legacy else ())


def _retained(
    use: ModelUse, register: Register, call: Any
) -> Mapping[tuple[tuple[str, str, str], str | None], tuple[int, bool]]:
    with young():
        step, watch = _run(use, register, lambda _: True, call, weakly=True)
        raised = step.raised
        del step  # it shares the memory of gradients
        gc.collect()
        of_model = [*use.model.parameters(), *use.model.buffers()]
        return {} if raised else {(hook.key, hook.on): hook.given.left(of_model) for hook in watch.hooks.values()}


def _raised(step: ModelStep) -> str:
    return f"{step.seen.raised}{f' at {step.line}' if step.line else ''}"


def judge_own(
    use: ModelUse, received: Receipts, truth: Truth, ledger: Ledger, device: str, forward: bool
) -> Iterator[OwnHook]:
    """Each hook with the verdicts on it; those of ``forward`` hooks need another truth than the others."""
    for hook in received.hooks:
        if (hook.kind.call in (FORWARD, FORWARD_PRE)) is not forward:
            continue
        seen = replace(received.step.seen, events=tuple(hook.events), warnings=())
        step = replace(received.step, seen=seen)
        reference = _reference(hook, use, truth, received.nodes)
        judged = [*_judged(hook, reference, step, use, truth, ledger, device)]
        retained, graph = received.retained.get((hook.key, hook.on), (0, False))
        yield OwnHook(
            kind=hook.kind.name,
            on=_on(hook),
            function=hook.function,
            place=hook.place,
            called=len(hook.events),
            due=None if hook.on is None and hook.kind.scope != "global" else _due(hook.kind, reference),
            returned=hook.returned,
            wrote=hook.wrote,
            changed=received.changed.get(hook.key, ()),
            left=hook.left,
            retained=retained,
            graph=graph,
            judged=tuple(judged),
        )


def presence(use: ModelUse, received: Receipts, truth: Truth, ledger: Ledger, device: str) -> Iterator[Judged]:
    """What is otherwise only because the hooks are there: right or known if it is so for one of their kinds."""
    if received.step.raised or any(hook.wrote for hook in received.hooks):
        return
    best: dict[tuple[str, str], Judged] = {}
    for kind in dict.fromkeys(hook.kind for hook in received.hooks):
        reference = Reference(truth.crossings, truth.plain.seen, use.modules, use.modules, received.nodes)
        # What a hook keeps alive, and how much, is told of each by itself.
        about = [clause for clause in clauses_of(kind) if clause.id.startswith("OB-") and clause.id != "OB-08"]
        for verdict in verdicts(kind, reference, received.step, truth, ledger, device, about):
            key = (verdict.clause, verdict.observed if verdict.gap == "new warning" else "")
            best[key] = max(best.get(key, verdict), verdict, key=lambda each: result.VERDICTS.index(each.verdict))
    yield from best.values()


def _run(
    use: ModelUse, register: Register, honoured: Honoured, call: Any, weakly: bool = False
) -> tuple[ModelStep, Watch]:
    box: list[Watch] = []

    @contextmanager
    def within(taken: StepTargets) -> Iterator[None]:
        watch = Watch(taken.modules, {**taken.parameters, **taken.inputs}, honoured, weakly)
        box.append(watch)
        known = {hook.key for _, hook in global_hooks()}
        with watching(watch):
            try:
                given = register(use.model)
            except Exception as error:
                text = " ".join(str(error).split())
                raise HookcheckError(f"hooks(model) raises {type(error).__name__}: {text}") from error
            try:
                with _removing(given):
                    watch.adopt(known)
                    yield
            finally:
                watch.look(use.model)

    step = take(use, within, **({"call": call} if call else {}))
    return step, box[0]


def _removing(given: Any) -> AbstractContextManager[Any]:
    """A context at whose end what was registered is removed, as far as what ``register`` gave does so."""
    return given if hasattr(given, "__enter__") and not _handle(given) else _after(given)


def _handle(given: Any) -> bool:
    """A handle of torch is a context, too: of no use here, but to be removed."""
    return isinstance(given, torch.utils.hooks.RemovableHandle)


@contextmanager
def _after(given: Any) -> Iterator[None]:
    try:
        yield
    finally:
        _remove(given)


def _remove(given: Any) -> None:
    if isinstance(given, (dict, list, tuple, set)):
        for each in [*given.values()] if isinstance(given, dict) else [*given]:
            _remove(each)
    elif hasattr(given, "remove"):
        given.remove()
    elif isinstance(given, (FunctionType, MethodType, partial)):
        given()


def _reference(hook: Watched, use: ModelUse, truth: Truth, nodes: Sequence[NodeRun]) -> Reference:
    paths, names = _site(hook, use)
    return Reference(truth.crossings, truth.plain.seen, use.modules, paths, nodes, names)


def _site(hook: Watched, use: ModelUse) -> tuple[Sequence[str], Sequence[str] | None]:
    """The modules, and the names of leaves or outputs, that a hook is about."""
    scope = hook.kind.scope
    if scope == "global":
        return [*use.modules], None
    if scope == "module":
        return [hook.on or ""], None
    name = hook.on or ""
    return [name.rpartition("[")[0]] if scope == "output" else [], [name]


def _judged(
    hook: Watched,
    reference: Reference,
    step: ModelStep,
    use: ModelUse,
    truth: Truth,
    ledger: Ledger,
    device: str,
) -> Iterator[Judged]:
    kind, of_module = hook.kind, hook.kind.scope == "module"
    skipped = Judged(_on(hook), None, kind.name, "", result.NOT_JUDGED)
    refused = refusing(truth.crossings.joined)
    if hook.on is None and kind.scope == "leaf":
        yield replace(skipped, why="it is on a tensor that is no parameter, no input and no output of a hooked module")
    elif of_module and kind.variant == "full" and hook.on in refused:
        yield replace(skipped, why=f"a full backward hook refuses the in-place operation ({refused[hook.on]})")
    elif step.raised:
        yield replace(skipped, why=f"the step raises {_raised(step)}")
    elif truth.unknown(kind):
        yield replace(skipped, why=truth.unknown(kind))
    elif of_module and not any(c.path == hook.on and c.way == CALLED for c in truth.crossings.joined.calls):
        yield replace(skipped, verdict=result.NOT_REACHED, why="the model does not call it through __call__")
    else:
        about = [clause for clause in clauses_of(kind) if not clause.id.startswith("OB-")]
        yield from verdicts(kind, reference, step, truth, ledger, device, about)


def _due(kind: HookKind, reference: Reference) -> int | None:
    """How often the hook must be called."""
    if kind.call in (FORWARD, FORWARD_PRE):
        return len(reference.trace.ended if kind.call == FORWARD else reference.trace.calls)
    if kind.call in (BACKWARD, BACKWARD_PRE):
        return len(reference.pre_firings if kind.call == BACKWARD_PRE else reference.firings)
    calls = reference.output_calls if kind.scope == "output" else reference.leaf_calls
    return None if any(call.unknown for call in calls) else len(calls)


def _on(hook: Watched) -> str:
    if hook.on is not None:
        return hook.on
    return "all modules" if hook.kind.scope == "global" else "another tensor"


def _changed(before: ModelStep, after: ModelStep) -> Iterator[str]:
    """The outputs and gradients that are not the same in two steps."""
    if after.raised:
        yield f"{result.RAISING} {after.seen.raised}"
        return
    yield from _apart(before.seen.values["output"], after.seen.values["output"], "the output")
    for name, gradient in before.seen.gradients.items():
        yield from _apart(gradient, after.seen.gradients.get(name), f"the gradient of {name}")


def _apart(one: Any, other: Any, name: str) -> Iterator[str]:
    if isinstance(one, (dict, tuple, list)) and type(one) is type(other) and len(one) == len(other):
        keys = one if isinstance(one, dict) else range(len(one))
        for key in keys:
            if not isinstance(one, dict) or key in other:
                yield from _apart(one[key], other[key], f"{name}[{key}]")
    elif isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if not np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"):
            yield name
    elif type(one) is not type(other) or (isinstance(one, str) and one != other):
        yield name
