"""What should the user of hooks on a model know of it? Sentences, what costs most first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import nn

from hookcheck.contract.verdict import GAPS
from hookcheck.hooks.kinds import KINDS
from hookcheck.models.cuts import CALLED, CutCall
from hookcheck.models.judging import Judging, Truth
from hookcheck.models.result import KNOWN, NEW, NOT_JUDGED, Judged, Remark, by_module
from hookcheck.models.step import ModelUse
from hookcheck.releases.numbers import release

NEVER_CALLED = "hooks on these modules are never called"
CALLS = "modules that are called several times"
SILENT = "hook kinds that do not fire"
NONE = "gradients that hooks get as None"
HIDDEN = "tensors that hooks on backward never see"
IN_PLACE = "in-place operations that full backward hooks refuse"
LEGACY = "what legacy hooks report instead"
PRESENCE = "what changes because a hook is there"
ORDER = "order"
UNSTEADY = "the model itself"
RELEASE = release(torch.__version__)
CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


def remarks(use: ModelUse, truth: Truth, judgings: Sequence[Judging], backward: bool) -> tuple[Remark, ...]:
    """All that there is to say, most costly first; ``backward`` says whether any hook is called there."""
    of_backward = (*_silent(truth, judgings), *_none(truth), *_hidden(truth)) if backward else ()
    calls = (*_never_called(use, truth), *_several_times(truth), *of_backward)
    every = (
        *(() if truth.ended else calls),  # what a step that raised showed is not all
        *_refused(judgings),
        *_legacy(judgings),
        *presence(verdict for judging in judgings for verdict in judging.judged),
        *_order(judgings),
        *_model(truth),
    )
    return said_once(every)


def said_once(every: Iterable[Remark]) -> tuple[Remark, ...]:
    """What is said of several hook kinds is said once, and what is about one topic together."""
    kinds: dict[tuple[str, str, tuple[str, ...]], tuple[str, ...]] = {}
    for remark in every:
        key = (remark.topic, remark.text, remark.modules)
        kinds[key] = (*kinds.get(key, ()), *remark.kinds)
    topics = list(dict.fromkeys(topic for topic, _, _ in kinds))
    return tuple(Remark(*key, of) for key, of in sorted(kinds.items(), key=lambda item: topics.index(item[0][0])))


def _never_called(use: ModelUse, truth: Truth) -> Iterator[Remark]:
    calls = truth.crossings.joined.calls
    called = {call.path for call in calls if call.way == CALLED}
    direct = {call.path for call in calls} - called
    if direct:
        yield Remark(
            NEVER_CALLED, "forward is called itself, not the module", tuple(p for p in use.modules if p in direct)
        )
    left = {
        path: module
        for path, module in use.modules.items()
        if path not in called | direct and not isinstance(module, CONTAINERS)
    }
    gradients = truth.plain.seen.gradients
    used: list[str] = []
    unused: list[str] = []
    for path, module in left.items():
        names = [f"{path}.{name}" for name, _ in module.named_parameters(recurse=False)]
        (used if any(gradients.get(name) is not None for name in names) else unused).append(path)
    if used:
        yield Remark(
            NEVER_CALLED,
            "their parameters are used, but by other code (a fused path, or the weight itself)",
            tuple(used),
        )
    if unused:
        yield Remark(NEVER_CALLED, "nothing shows that this step uses them", tuple(unused))


def _several_times(truth: Truth) -> Iterator[Remark]:
    counts = Counter(call.path for call in truth.crossings.joined.calls if call.way == CALLED)
    for times in sorted({count for count in counts.values() if count > 1}):
        those = tuple(path for path, count in counts.items() if count == times)
        text = (
            f"{times} calls in one forward; a hook does not say which call it is for, and backward meets the last first"
        )
        yield Remark(CALLS, text, those)


def _silent(truth: Truth, judgings: Sequence[Judging]) -> Iterator[Remark]:
    calls = _by_path(truth.crossings.joined.calls)
    if not truth.plain.backward:
        yield Remark(SILENT, "nothing that the model returns requires grad: no backward hook fires")
        return
    single = truth.crossings.single.calls
    by_any_way = {call.path for call in single if call.exit.crossings or call.entry.crossings}
    for judging in judgings:
        hook = KINDS[judging.kind]
        if not hook.backward or hook.scope != "module":
            continue
        refused = {verdict.module for verdict in judging.judged if verdict.verdict == NOT_JUDGED}
        fired = {seen.on for seen in judging.seen if seen.times}
        reasons: dict[str, list[str]] = {}
        for path, of in calls.items():
            if path not in fired and path not in refused:
                reasons.setdefault(_why_silent(of[0], path in by_any_way, judging), []).append(path)
        for why, paths in reasons.items():
            yield Remark(SILENT, why, tuple(paths), (judging.kind,))


def _why_silent(call: CutCall, comes_by: bool, judging: Judging) -> str:
    """``comes_by`` says whether backward has a gradient for anything that goes in or comes out."""
    if judging.ended:
        return f"the step ends with {judging.ended}"
    if not call.grad:
        return "called under no_grad"
    tensors = [spot for spot in call.exit.spots if spot.place is not None]
    if not tensors and call.container == "tuple":
        return "no item of the output, a tuple, is a tensor itself"
    if not tensors:
        return f"the output is a {call.container}, neither a tensor nor a tuple of tensors"
    if not any(spot.requires_grad for spot in tensors):
        inside = ", as nothing inside of torch.vmap does, though a gradient may come by" if call.batched else ""
        return f"no output requires grad{inside}"
    if not comes_by:
        return "backward does not come by: the loss does not depend on the output"
    asking = any(spot.requires_grad for spot in call.entry.spots if spot.place is not None)
    if RELEASE < (1, 9) and KINDS[judging.kind].variant == "full" and not asking:
        return "no positional argument requires grad, and torch 1.8 calls full hooks with the gradients of these alone"
    return "the gradient does not go through a tensor that the hook sits on"


def _none(truth: Truth) -> Iterator[Remark]:
    no_input, unused = [], []
    for path, calls in _by_path(truth.crossings.joined.calls).items():
        first = calls[0]
        if not first.exit.crossings:
            continue
        tensors = [spot for spot in first.entry.spots if spot.place is not None]
        if tensors and not any(spot.requires_grad for spot in tensors):
            no_input.append(path)
        crossed = first.exit.crossed(0) or {}
        if any(gradient is None for gradient in crossed.values()):
            unused.append(path)
    if no_input and RELEASE >= (1, 9):
        yield Remark(
            NONE,
            "grad_input is None since no positional argument requires grad (a full hook then fires when the gradients "
            "of the outputs are there)",
            tuple(no_input),
        )
    if unused:
        yield Remark(NONE, "some of grad_output is None, since the loss does not depend on that output", tuple(unused))
    absent = [name for name, gradient in truth.plain.seen.gradients.items() if gradient is None]
    if absent:
        yield Remark(NONE, "no gradient reaches these leaves: hooks on them are not called", tuple(absent))


def _hidden(truth: Truth) -> Iterator[Remark]:
    keywords, containers, objects = [], [], []
    for path, calls in _by_path(truth.crossings.joined.calls).items():
        first = calls[0]
        asking = [spot for spot in first.entry.spots if spot.requires_grad]
        hidden = [spot for spot in asking if spot.place is None]
        if any(spot.where.isidentifier() for spot in hidden):
            keywords.append(path)
        if any("[" in spot.where for spot in hidden):
            containers.append(path)
        if not first.exit.spots:
            objects.append(path)
    if keywords:
        yield Remark(HIDDEN, "passed by keyword, so never in grad_input", tuple(keywords))
    if containers:
        yield Remark(
            HIDDEN, "inside of a list, tuple or dict among the arguments, so never in grad_input", tuple(containers)
        )
    if objects:
        yield Remark(HIDDEN, "what comes out holds no tensor that hooks or cuts look at", tuple(objects))


def _refused(judgings: Sequence[Judging]) -> Iterator[Remark]:
    for judging in judgings:
        refused = [v for v in judging.judged if v.verdict == NOT_JUDGED and "in-place" in v.why and v.call is None]
        for why in dict.fromkeys(verdict.why.rpartition(" (")[2].rstrip(")") for verdict in refused):
            those = [verdict for verdict in refused if verdict.why.endswith(f"({why})")]
            first = f"; the first is {judging.line}" if judging.line else ""
            yield Remark(IN_PLACE, f"{why}{first}", by_module(those), (judging.kind,))


def _legacy(judgings: Sequence[Judging]) -> Iterator[Remark]:
    for judging in judgings:
        if KINDS[judging.kind].variant != "legacy":
            continue
        wrong = [v for v in judging.judged if v.verdict in (KNOWN, NEW) and v.call is not None]
        for gap in sorted({verdict.gap for verdict in wrong}, key=GAPS.index):
            those = [verdict for verdict in wrong if verdict.gap == gap]
            example = those[0]
            count = len({verdict.subject for verdict in those})
            text = f"{gap} at {count} {'call' if count == 1 else 'calls'}, such as {example.subject}: "
            text += f"{example.observed} instead of {example.expected}"
            yield Remark(LEGACY, text, by_module(those), (judging.kind,))


def presence(verdicts: Iterable[Judged]) -> Iterator[Remark]:
    """What is otherwise only because hooks are there."""
    for verdict in verdicts:
        if verdict.clause.startswith("OB-") and verdict.verdict in (KNOWN, NEW):
            seen = verdict.observed.partition(". ")[0]
            why = f" ({verdict.why})" if verdict.why else ""
            text = f"{verdict.gap}: {seen} instead of {verdict.expected}{why}"
            yield Remark(PRESENCE, text, kinds=(verdict.kind,))


def _order(judgings: Sequence[Judging]) -> Iterator[Remark]:
    for judging in judgings:
        for verdict in judging.judged:
            if verdict.clause == "OR-01" and verdict.verdict in (KNOWN, NEW):
                text = f"{verdict.observed}, where the graph demands {verdict.expected}"
                yield Remark(ORDER, text.replace("net.", "").replace("net#", "the model#"), kinds=(judging.kind,))


def _model(truth: Truth) -> Iterator[Remark]:
    if truth.unsteady:
        more = f" and {len(truth.unsteady) - 1} more" if len(truth.unsteady) > 1 else ""
        yield Remark(UNSTEADY, f"two steps from one random state differ: {truth.unsteady[0]}{more}")
    if truth.wrong:
        yield Remark(UNSTEADY, f"backward hooks are not judged: {truth.wrong}")


def _by_path(calls: Iterable[CutCall]) -> dict[str, list[CutCall]]:
    """The calls through ``__call__`` of each module."""
    by_path: dict[str, list[CutCall]] = {}
    for call in calls:
        if call.way == CALLED:
            by_path.setdefault(call.path, []).append(call)
    return by_path
