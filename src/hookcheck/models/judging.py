"""One hook kind on a model: a step with it, and what the clauses about any network say of what it saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES, NOT_JUDGED, NOTHING, Clause, Subject
from hookcheck.contract.finding import Finding
from hookcheck.contract.ledger import Ledger
from hookcheck.hooks.kinds import BACKWARD, BACKWARD_PRE, FORWARD, FORWARD_PRE, KINDS, HookKind
from hookcheck.models import result
from hookcheck.models.cuts import CALLED, Cuts
from hookcheck.models.cutting import cut
from hookcheck.models.reach import left_out, reachable, refused, unjudged
from hookcheck.models.reference import Crossings, NodeRun, Reference, remembered
from hookcheck.models.result import Judged, Seen
from hookcheck.models.sharing import keeping, noticed, shared
from hookcheck.models.step import ModelStep, ModelUse, StepTargets, take
from hookcheck.models.tables import hooks_of
from hookcheck.networks.case import Case
from hookcheck.networks.judge import describe, subjects_of
from hookcheck.probe.copying import copied, view_of
from hookcheck.probe.observation import Array, Event, Observation, dtype_of, numbers
from hookcheck.probe.registering import registered

LEFT_OUT = {
    "AG-01": "OB-03 says it: a model without formulas is held to its step without hooks",
    "AG-02": "OB-02 says it",
    "CH-01": "it is about hooks that act",
    "P2-11": "what the Node that made the first output does is not known without a hook on it",
    "P2-12": "the same",
    "PL-01": "which threads, streams and devices a model's own code uses is not known",
    "PL-02": "a model is run on one device",
    "TN-08": "what is saved for backward is not known",
}
"""The clauses about any network that cannot be judged on a model without formulas, and why not."""

FAMILY = "own model"
"""Stands for the family: of what has no family of networks, only entries about all families can explain a deviation."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Steps without hooks and with cuts; ``bounded`` is one with joined cuts. ``wrong`` says why cuts cannot tell what
    backward hooks must see, or is empty; ``ended`` why nothing can be told, since a step with cuts raises; ``unsteady``
    in what two steps without hooks differ."""

    plain: ModelStep
    crossings: Crossings
    unsteady: tuple[str, ...]
    bounded: Observation
    wrong: str = ""
    ended: str = ""

    @property
    def gradients(self) -> Iterator[Array]:
        """All that crossed boundaries, and those of leaves."""
        yield from self.crossings.gradients
        yield from (gradient for gradient in self.plain.seen.gradients.values() if gradient is not None)

    def unknown(self, hook: HookKind) -> str:
        """Why cuts cannot tell what hooks of a kind must see, or empty."""
        joined = self.crossings.joined
        asks = joined.passes > 1 or "grad" in joined.nested
        if (hook.scope == "leaf" and asks) or (hook.scope == "leaves" and (asks or joined.nested)):
            return "the model calls backward itself, and which leaves it asks for there is not known"
        return self.wrong if hook.call in (BACKWARD, BACKWARD_PRE) else self.ended


@dataclass(frozen=True, eq=False)
class Judging:
    """What became of one hook kind: the verdicts, what it saw where, how the step ``ended`` if it raised, and the
    ``line`` at which an in-place operation was refused."""

    kind: str
    judged: tuple[Judged, ...]
    seen: tuple[Seen, ...]
    ended: str
    line: str = ""


def clauses_of(kind: HookKind) -> tuple[Clause, ...]:
    """The clauses about any network that are judged on hooks of a kind."""
    about = (clause for clause in CLAUSES.values() if clause.subject is not Subject.PROGRAM)
    return tuple(clause for clause in about if kind.name in clause.kinds and clause.id not in LEFT_OUT)


def cut_step(
    use: ModelUse, joined: bool, chosen: Callable[[str], bool], plain: ModelStep
) -> tuple[ModelStep, Cuts, dict[int, int]]:
    """A step with cuts on ``chosen`` modules.

    Gradients that are those of the ``plain`` step need no memory of their own.
    """
    box: list[tuple[Cuts, dict[int, int]]] = []

    @contextmanager
    def within(_: StepTargets) -> Iterator[None]:
        with cut(use.model, joined, keep=keeping() if joined else noticed, chosen=chosen) as cuts:
            box.append((cuts, {}))
            yield
            if joined:
                cuts.note_other_uses()
            box[0] = (cuts, cuts.before() if joined else {})

    known = (gradient for gradient in plain.seen.gradients.values() if gradient is not None)
    step = take(use, within, keep=shared(known))
    return (step, *box[0])


def calls_step(use: ModelUse, chosen: Callable[[str], bool]) -> tuple[ModelStep, Cuts]:
    """A step that keeps arguments and results of calls, for forward hooks; nothing is cut."""
    box: list[Cuts] = []

    @contextmanager
    def within(_: StepTargets) -> Iterator[None]:
        with cut(use.model, True, keep=noticed, remember=remembered, chosen=chosen) as cuts:
            box.append(cuts)
            yield

    return take(use, within), box[0]


def judge_kind(use: ModelUse, kind: str, truth: Truth, ledger: Ledger, device: str) -> Judging:
    """Runs hooks of ``kind`` on all modules of ``use``, and judges what they saw.

    Modules where full backward hooks refuse an in-place operation are tried by themselves first, and left out then.
    """
    hook = KINDS[kind]
    cuts = truth.crossings.joined
    refusals = refused(use, hook, cuts)
    judged: list[Judged] = []
    line = ""
    if refusals:
        step = hooked(use, hook, [*refusals])
        reference = Reference(truth.crossings, truth.plain.seen, use.modules, refusals)
        reference.trace.allowed = 0
        judged += verdicts(hook, reference, step, truth, ledger, device, clauses=[CLAUSES["BW-12"]])
        line = step.line
        place = f" at {line}" if line else ""
        why = f"a full backward hook refuses the in-place operation{place}"
        judged += [
            Judged(path, None, kind, "", result.NOT_JUDGED, why=f"{why} ({how})") for path, how in refusals.items()
        ]
    left = left_out(use, hook, cuts)
    judged += [Judged(path, None, kind, "", result.NOT_JUDGED, why=why) for path, why in left.items()]
    paths = reachable(use, hook, cuts)
    nodes = node_runs(use, shared(truth.gradients)) if hook.variant == "legacy" else ()
    forward = hook.call in (FORWARD, FORWARD_PRE)
    step = hooked(use, hook, paths, keep=view_of if forward else shared(truth.gradients))
    unknown = truth.unknown(hook) or unjudged(use, hook, refusals, cuts)
    if unknown:
        judged += [Judged(path, None, kind, "", result.NOT_JUDGED, why=unknown) for path in paths]
    else:
        reference = Reference(truth.crossings, truth.plain.seen, use.modules, paths, nodes)
        judged += verdicts(hook, reference, step, truth, ledger, device, clauses_of(hook))
    called = {call.path for call in truth.crossings.joined.calls if call.way == CALLED}
    judged += [
        Judged(path, None, kind, "", result.NOT_REACHED, why="the model does not call it through __call__")
        for path in paths
        if path not in called and not truth.ended and hook.scope in ("module", "global", "output", "node")
    ]
    seen = tuple(_seen(kind, paths if hook.scope != "leaf" else (), step.seen.events))
    return Judging(kind, tuple(judged), seen, str(step.seen.raised or ""), line)


def _seen(kind: str, paths: Iterable[str], events: Iterable[Event]) -> Iterator[Seen]:
    outlines: dict[str, list[str]] = {} if KINDS[kind].scope in ("output", "node") else {path: [] for path in paths}
    for event in events:
        outlines.setdefault(event.path, []).append(", ".join(map(outline, event.arguments)))
    for path, calls in outlines.items():
        yield Seen(kind, path, len(calls), "; ".join(dict.fromkeys(calls)))


def outline(value: Any) -> str:
    """A copied value without its numbers: ``float32[2, 3]``, ``(None, float32[])``."""
    if isinstance(value, np.ndarray):
        return f"{dtype_of(value)}{[*value.shape]}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {outline(item)}' for key, item in value.items() if key != 'type')}}}"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(outline, value))
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    return "None" if value is None else "..."


def hooked(
    use: ModelUse,
    hook: HookKind,
    paths: list[str],
    call: Callable[[torch.nn.Module], Callable[..., Any]] = lambda model: model,
    keep: Callable[[torch.Tensor], Array] = view_of,
    compiled: bool = False,
) -> ModelStep:
    """A step with hooks on the modules at ``paths``; what they saw is among its events, of tensors what ``keep`` makes
    of them. ``compiled`` says whether torch.compile is at work."""
    events: list[tuple[int, Event]] = []
    modules = use.modules if hook.scope == "global" else {path: use.modules[path] for path in paths}

    def within(taken: StepTargets) -> AbstractContextManager[None]:
        return registered(hook, taken, events, partial(copied, tensor=keep))

    step = take(use, within, events, modules, call, compiled=compiled)
    if hook.scope != "global":
        return step
    # Those on all modules are called by modules that are none of the model's, or came into it in this step.
    seen = tuple(event for event in step.seen.events if event.given is not None)
    return replace(step, seen=replace(step.seen, events=seen))


def verdicts(
    hook: HookKind,
    reference: Reference,
    step: ModelStep,
    truth: Truth,
    ledger: Ledger,
    device: str,
    clauses: Iterable[Clause],
) -> Iterator[Judged]:
    """What ``clauses`` say of what hooks of a kind saw in a step."""
    bounded = truth.bounded if hook.variant == "full" else None
    case = Case(reference.topology, hook, device, reference, step.seen, truth.plain.seen, bounded=bounded)
    for clause in clauses:
        for subject in subjects_of(case, clause.subject):
            judgement = clause.judge(case, subject)
            if judgement is NOTHING:
                continue
            module, call = _named(clause, subject)
            base = Judged(module, call, hook.name, clause.id, result.CONFORMS)
            if judgement is NOT_JUDGED:
                yield replace(base, verdict=result.NOT_JUDGED, why="what must be seen cannot be foretold")
            elif isinstance(judgement, Finding):
                yield _deviating(base, judgement, case, clause, subject, truth, ledger)
            else:
                yield base


def _deviating(
    base: Judged, finding: Finding, case: Case, clause: Clause, subject: Any, truth: Truth, ledger: Ledger
) -> Judged:
    expected, observed = finding.words()
    base = replace(base, gap=finding.gap, expected=expected, observed=observed)
    _, features = describe(case, clause.subject, subject)
    sorts = frozenset(spot.sort for spot in truth.crossings.spots)
    family = "inplace" if clause.id == "BW-12" else FAMILY
    known = ledger.explain(clause.id, family, case.kind.name, finding, {**features, "tensor": sorts})
    if known is not None:
        entry = next(entry for entry in ledger.entries if entry.id == known)
        return replace(base, verdict=result.KNOWN, why=" ".join(entry.why.split()), link=entry.link)
    if truth.unsteady and (finding.gap in ("wrong values", "other rounding") or _of_numbers(case, finding)):
        return replace(base, verdict=result.NOT_JUDGED, why="two steps without hooks give other numbers, too")
    if _meets_hooks(case, finding, base.module):
        return replace(base, verdict=result.NOT_JUDGED, why="hooks that are there already change what this one sees")
    if case.kind.variant == "legacy" and truth.crossings.joined.passes > 1:
        why = "the model calls backward itself, and what a hook on the last Node sees is known for one backward"
        return replace(base, verdict=result.NOT_JUDGED, why=why)
    return replace(base, verdict=result.NEW)


def _meets_hooks(case: Case, finding: Finding, module: str) -> bool:
    """Whether hooks that the model has may be why: those on all modules run before them where these are on forward, and
    after them in backward; one in backward is given what those before it on its module return."""
    assert isinstance(case.expected, Reference)
    if finding.gap in ("raised", "not fired"):
        return False
    if any(hooks_of(torch.nn.modules.module)):
        return True
    if case.kind.scope == "global":
        hooks = (hook for module in case.expected.modules.values() for hook in hooks_of(module))
        return any(hook.table.startswith(("_forward", "_backward")) for hook in hooks)
    backward = case.kind.scope == "module" and case.kind.call in (BACKWARD, BACKWARD_PRE)
    return backward and finding.gap == "wrong values" and module in case.expected.crossings.joined.acting


def _of_numbers(case: Case, finding: Finding) -> bool:
    """Whether it rests on numbers alone: those of tensors that a hook is given, or those by which a second hook, on the
    last Node, shows that a deviation of a legacy hook is a known one."""
    alike = outline(finding.expected)
    return case.kind.variant == "legacy" or ("[" in alike and alike == outline(finding.observed))


def _named(clause: Clause, subject: Any) -> tuple[str, int | None]:
    if clause.subject is Subject.CALL:
        return subject.path, subject.number
    if clause.subject is Subject.FIRING:
        return subject.firing.call.path, subject.firing.call.number
    if clause.subject is Subject.EVENT:
        return subject.path, subject.number
    return "", None


def node_runs(use: ModelUse, keep: Callable[[torch.Tensor], Array] = view_of) -> tuple[NodeRun, ...]:
    """What hooks on the Nodes that made the first outputs see; by that known deviations of legacy hooks are told.

    ``keep`` is what stays of a gradient."""
    runs: list[NodeRun] = []
    counts: dict[str, int] = {}
    begun: dict[str, list[int]] = {}
    nodes: dict[Any, int] = {}

    def begin(path: str, *_: Any) -> None:
        number = counts[path] = counts.get(path, -1) + 1
        begun.setdefault(path, []).append(number)

    def watch(path: str, _: Any, __: Any, output: Any) -> None:
        number = begun[path].pop()  # not that of a call before it that raised
        tensor = _first(output)
        if tensor is None or tensor.grad_fn is None:
            return
        place = tensor.output_nr
        node = nodes.setdefault(tensor.grad_fn, len(nodes))

        def note(inputs: Any, outputs: Any) -> None:
            gradients = [None if g is None else keep(g) for g in inputs]
            first = None if outputs[place] is None else keep(outputs[place])
            runs.append(
                NodeRun(
                    path,
                    number,
                    tuple(None if g is None else numbers(g) for g in gradients),
                    None if first is None else numbers(first),
                    place,
                    len(outputs),
                    "" if first is None else dtype_of(first),
                    frozenset(dtype_of(g) for g in gradients if g is not None),
                    node,
                )
            )

        tensor.grad_fn.register_hook(note)

    @contextmanager
    def within(taken: StepTargets) -> Iterator[None]:
        for path, module in taken.modules.items():
            module.register_forward_pre_hook(partial(begin, path))
            module.register_forward_hook(partial(watch, path))
        try:
            yield
        finally:
            nodes.clear()  # they hold the graph

    take(use, within)
    return tuple(runs)


def _first(value: Any) -> torch.Tensor | None:
    """The first tensor as torch's legacy hook looks for it."""
    while not isinstance(value, torch.Tensor):
        items = [*value.values()] if isinstance(value, dict) else value
        if not isinstance(items, (tuple, list)) or not items:
            return None
        value = next((i for i in items if isinstance(i, torch.Tensor)), None) if isinstance(value, dict) else items[0]
    return value
