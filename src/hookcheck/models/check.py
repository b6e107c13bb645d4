"""Do hooks on someone's own model tell the truth? `check_module`, in the way of ``torch.autograd.gradcheck``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from operator import index
from typing import Any

import numpy as np
import torch
from torch import nn

from hookcheck.contract.ledger import Ledger, applying, load
from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import FORWARD, FORWARD_PRE, KINDS, kind_named
from hookcheck.models.contexts import EAGER, compared, usable_contexts
from hookcheck.models.judging import Judging, Truth, calls_step, cut_step, judge_kind
from hookcheck.models.keeping import Snapshot
from hookcheck.models.reference import Crossings, agree
from hookcheck.models.result import Judged, ModelCheck, OwnHook, Remark
from hookcheck.models.step import ModelStep, ModelUse, take, tensors_in
from hookcheck.models.user_hooks import Register, judge_own, presence, receive
from hookcheck.models.words import presence as presence_of
from hookcheck.models.words import remarks, said_once
from hookcheck.oracle.tolerance import coarsest
from hookcheck.probe.observation import dtype_of, numbers
from hookcheck.probe.run import check_torch, lacking

USUAL = ("full_backward", "full_backward_pre", "backward", "forward_pre", "forward", "tensor", "output_tensor")
"""The hook kinds that are run where none are named."""

SCOPES = ("module", "global", "leaf", "leaves", "output", "node")
Progress = Callable[[int, int, str], None]
"""Is called with how many steps are done, of how many, and what comes next."""


def check_module(
    model: nn.Module,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    loss: Callable[[Any], torch.Tensor] | None = None,
    kinds: Sequence[str] | None = None,
    contexts: Sequence[str] = (EAGER,),
    hooks: Register | None = None,
    modules: str | Sequence[str] = "*",
    seed: int = 0,
    progress: Progress | None = None,
) -> ModelCheck:
    """Runs ``model(*args, **kwargs)`` with each hook kind on each sub-module, and says what deviates from the contract.

    ``args`` is a tuple or list of what the model is called with; anything else is the only argument.
    ``loss`` makes one number of the output; without it backward starts at all output tensors with random numbers, drawn
    by ``seed``. ``kinds`` are names of `hookcheck.hooks.kinds.KINDS` (None: the usual ones that this torch has).
    ``contexts`` are those of `hookcheck.models.same_under.CONTEXTS`: what hooks see there is compared with eager mode.
    ``hooks`` registers one's own hooks on the model that it is given: they are judged, and without ``kinds`` no others.
    It may return what removes them (handles, a function, a context manager): it is told which are left then.
    ``modules`` are patterns of paths as ``named_modules`` gives them, such as ``encoder.*``; hooks are on these alone.
    What hooks must see comes from steps without hooks (see `hookcheck.models.cutting`). Parameters, buffers, ``.grad``,
    hooks, training mode, random state and grad mode are as before afterwards, also after an exception.

    Raises:
        HookcheckError: a model that cannot be run or looked at, an unknown kind, or a pattern that nothing matches; the
            text says what to do.
    """
    check_torch()
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    _usable(model, args, kwargs or {})
    if loss is not None and not callable(loss):
        raise HookcheckError(f"loss is a function from the output to a tensor of one number, not {type(loss).__name__}")
    names = [] if hooks and kinds is None else usable_kinds(kinds)
    others = usable_contexts(contexts)
    patterns = [modules] if isinstance(modules, str) else [*modules]
    chosen = _chosen(model, patterns)
    use = ModelUse(model, args, kwargs or {}, loss, _whole(seed), chosen, Snapshot(model))
    device = _device(model, args, kwargs or {})
    last = bool(hooks) or any(KINDS[name].call in (FORWARD, FORWARD_PRE) for name in names)
    say = _Steps(progress, 4 + last + bool(hooks) + len(names) * (2 if others else 1))
    with torch.enable_grad():
        use, truth = _truth(use, say)
        ledger = applying(load(), torch.__version__, "cuda" if device == "cuda" else "cpu")
        results = _judge(use, names, hooks, truth, ledger, "cpu" if device == "cpu" else "cuda", say)
        beside: list[Remark] = []
        for name in names if others else ():
            say(f"{name} in {', '.join(others)}")
            beside += compared(use, name, others, truth.crossings.joined)
    say("done")
    matching = {path for path in chosen if _matches(path, patterns)}
    judged = (verdict for judging in results.kinds for verdict in judging.judged)
    return ModelCheck(
        model=type(model).__name__,
        torch=torch.__version__,
        device=device,
        kinds=tuple(names),
        judged=(
            *(v for v in judged if v.module in matching or v.call is None or KINDS[v.kind].scope == "leaf"),
            *results.whole,
            *(verdict for hook in results.hooks for verdict in hook.judged),
        ),
        remarks=said_once(
            (*remarks(use, truth, results.kinds, results.backward), *presence_of(results.whole), *beside)
        ),
        calls=dict(Counter(call.path for call in truth.crossings.joined.calls)),
        hooks=results.hooks,
        seen=tuple(seen for judging in results.kinds for seen in judging.seen),
        raised=results.raised,
    )


@dataclass(frozen=True, eq=False)
class _Results:
    """What became of the hook kinds, of one's own hooks, and of the step with the latter, which may have ``raised``."""

    kinds: tuple[Judging, ...]
    hooks: tuple[OwnHook, ...]
    whole: tuple[Judged, ...]
    raised: str

    @property
    def backward(self) -> bool:
        """Whether any hook is called in backward."""
        kinds = (*(judging.kind for judging in self.kinds), *(hook.kind for hook in self.hooks))
        return any(KINDS[kind].call not in (FORWARD, FORWARD_PRE) for kind in kinds)


def _judge(
    use: ModelUse,
    names: list[str],
    hooks: Register | None,
    truth: Truth,
    ledger: Ledger,
    device: str,
    say: _Steps,
) -> _Results:
    """What forward hooks must see takes as much memory as what others must: one after the other."""
    kinds: list[Judging] = []
    judged_hooks: list[OwnHook] = []
    whole: list[Judged] = []
    received = None
    if hooks:
        say("your hooks")
        received = receive(use, hooks, truth.plain)
        whole += presence(use, received, truth, ledger, device)
    for forward in (False, True):
        those = [name for name in names if (KINDS[name].call in (FORWARD, FORWARD_PRE)) is forward]
        if forward and (those or received):
            say("a step that keeps what goes in and out")
            truth.crossings.joined.forget()
            step, cuts = calls_step(use, use.modules.__contains__)
            ended = f"a step that keeps what goes in and out raises {step.seen.raised}" if step.raised else ""
            truth = replace(truth, crossings=replace(truth.crossings, joined=cuts), ended=ended)
        for name in those:
            say(name)
            kinds.append(judge_kind(use, name, truth, ledger, device))
        judged_hooks += judge_own(use, received, truth, ledger, device, forward) if received else ()
    raised = received.raised if received else ""
    return _Results(tuple(kinds), tuple(judged_hooks), tuple(whole), raised)


class _Steps:
    """Counts steps and tells of them."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress = progress
        self.total = total
        self.done = 0

    def __call__(self, what: str) -> None:
        if self.progress:
            self.progress(min(self.done, self.total), self.total, what)
        self.done += 1


def _truth(use: ModelUse, say: _Steps) -> tuple[ModelUse, Truth]:
    """What hooks must see, and how the model is run from then on."""
    say("a step without hooks")
    plain = take(use, compiled=True)
    if plain.raised:
        place = f" ({plain.line})" if plain.line else ""
        what = "the model" if plain.seen.values["output"] is None else "the loss, or backward from it,"
        raise HookcheckError(f"{what} raises without any hook, mend that first: {plain.seen.raised}{place}")
    say("the same once more")
    again = take(use)
    if again.raised:  # as torch.cond does, which compiles the functions that it is given
        use = replace(use, compiled=True)
        again = take(use)
    unsteady = tuple(_differing(plain, again))
    say("a step with cuts")
    joined, joined_cuts, before = cut_step(use, True, use.modules.__contains__, plain)
    say("a step with cuts that join nothing")
    single, single_cuts, _ = cut_step(use, False, use.modules.__contains__, plain)
    leaves = frozenset(name for name, gradient in joined.seen.gradients.items() if gradient is not None)
    crossings = Crossings(joined_cuts, single_cuts, before, leaves)
    truth = Truth(plain, crossings, unsteady, joined.seen)
    root = next((call for call in single_cuts.calls if call.path == ""), None)
    if use.loss and root is not None and plain.backward and root.exit.cut and not root.exit.crossings:
        raise HookcheckError("the loss does not depend on what the model returns: compute it from the output")
    for step, word in ((joined, "joined"), (single, "single")):
        if step.raised:
            why = f"a step with cuts raises {step.seen.raised}"
            return use, replace(truth, wrong=why, ended=why)
        apart = [] if unsteady else [*_differing(plain, step, zeros=word == "joined", dtypes=crossings.dtypes)]
        if apart:
            wrong = f"cuts change this model ({apart[0]}): it writes in place by several names"
            return use, replace(truth, wrong=wrong)
    return use, truth


def _differing(plain: ModelStep, other: ModelStep, zeros: bool = False, dtypes: Iterable[str] = ()) -> Iterator[str]:
    """In what two steps differ by more than rounding (to ``dtypes`` as well), or at all where both are without anything
    (not ``zeros``)."""
    a = {**_outputs(plain), **plain.seen.gradients}
    b = {**_outputs(other), **other.seen.gradients}
    for name, array in a.items():
        another = b.get(name)
        if array is None or another is None:
            there = another if array is None else array
            if there is not None and not (zeros and array is None and not there.any()):
                yield f"{name} is {'None' if another is None else 'not None'}"
            continue
        one, two = numbers(another), numbers(array)
        if not agree(one, two, coarsest([dtype_of(array), *dtypes])):
            yield f"{name} differs by {abs(one - two).max() if one.shape == two.shape else 'its shape'}"


def _outputs(step: ModelStep) -> dict[str, Any]:
    return dict(_arrays(step.seen.values["output"], "the output"))


def _arrays(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, (dict, tuple, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _arrays(item, f"{name}[{key}]")


def _usable(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if not isinstance(model, nn.Module):
        raise HookcheckError(f"check_module needs an nn.Module, not {type(model).__name__}: pass the model itself")
    name = type(model).__name__
    if isinstance(model, torch.jit.ScriptModule):
        raise HookcheckError("a scripted or traced model runs its own hooks only: pass the model before torch.jit")
    if hasattr(model, "_orig_mod"):
        raise HookcheckError("this is a compiled model: pass what went into torch.compile")
    compiled = [path for path, module in model.named_modules() if hasattr(module, "_orig_mod") or _in_place(module)]
    if compiled:
        raise HookcheckError(
            f"{compiled[0] or 'the model'} is compiled: pass the model as it was before compile, and take "
            "contexts=['compile_eager'] to compare"
        )
    if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        raise HookcheckError(f"a {name} calls the model in its own way: pass model.module")
    if not isinstance(kwargs, Mapping):
        raise HookcheckError(f"kwargs is a dict of keyword arguments, not {type(kwargs).__name__}")
    if any(isinstance(value, Iterator) for value in (*args, *kwargs.values())):
        raise HookcheckError("an argument is an iterator, of which the first step leaves nothing: pass a list")
    held = [*model.named_parameters(), *model.named_buffers()]
    if any(type(tensor).__name__.startswith("Uninitialized") for _, tensor in held):
        raise HookcheckError("the model has lazy parameters without numbers: call it once before, with real inputs")
    if any(tensor.is_inference() for _, tensor in held if hasattr(tensor, "is_inference")):  # since 1.9
        raise HookcheckError("the model was made in inference mode, so nothing in it can be trained: make it outside")
    devices = {tensor.device.type for _, tensor in (*held, *tensors_in({**dict(enumerate(args)), **kwargs}))}
    if "meta" in devices:
        raise HookcheckError("tensors on meta have no numbers: build the model and its inputs on a real device")
    if len({tensor.device.type for _, tensor in held}) > 1:
        raise HookcheckError(f"the model is spread over {' and '.join(sorted(devices))}: move all of it to one device")


def _whole(seed: Any) -> int:
    """The seed as all generators of random numbers take it."""
    if not hasattr(seed, "__index__") or not 0 <= index(seed) < 2**63:
        raise HookcheckError(f"seed is a whole number from 0 to 2**63 - 1, not {seed!r}")
    return index(seed)


def _in_place(module: nn.Module) -> bool:
    """Whether ``module.compile()`` was called."""
    return getattr(module, "_compiled_call_impl", None) is not None


def usable_kinds(kinds: Iterable[str] | None) -> list[str]:
    """The hook kinds that are run; None: the usual ones that this torch has.

    Raises:
        HookcheckError: one is unknown, not of use here, or not in this torch.
    """
    if kinds is None:
        return [kind for kind in USUAL if not lacking(kind)]
    names = list(dict.fromkeys([kinds] if isinstance(kinds, str) else kinds))
    usable = [name for name, kind in KINDS.items() if kind.observes and kind.scope in SCOPES]
    for name in names:
        kind_named(name)
        if name not in usable:
            raise HookcheckError(f"hooks of kind {name} are not for this; choose from {', '.join(usable)}")
        if lacking(name):
            raise HookcheckError(f"{lacking(name)}; this is {torch.__version__}")
    if not names:
        raise HookcheckError(f"no hook kind is named; choose from {', '.join(usable)}")
    return names


def _chosen(model: nn.Module, patterns: list[str]) -> dict[str, nn.Module]:
    """The modules whose paths match, the model itself always: cuts on it say whether the loss depends on it."""
    named = {path: m for path, m in model.named_modules() if not isinstance(m, torch.jit.ScriptModule)}
    for pattern in patterns:
        if not any(fnmatchcase(path, pattern) for path in named):
            paths = ", ".join([*named][1:6]) + (", …" if len(named) > 6 else "")
            raise HookcheckError(f"no module's path matches {pattern!r}; there are {paths or 'no sub-modules'}")
    return {path: module for path, module in named.items() if path == "" or _matches(path, patterns)}


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _device(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    tensors = (*model.parameters(), *(tensor for _, tensor in tensors_in({**dict(enumerate(args)), **kwargs})))
    return next((tensor.device.type for tensor in tensors), "cpu")
