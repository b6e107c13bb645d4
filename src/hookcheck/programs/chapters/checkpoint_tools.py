"""What do hooks see of the tools around a checkpoint: sequences, contexts, groups, wrappers and policies?

``checkpoint_sequential`` makes a checkpoint of each segment but the last. ``context_fn`` gives each pass a context, and
selective checkpointing is two such contexts. ``torch.distributed`` has a checkpoint that is made of hooks on a module,
and one that is a module around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.checkpoints import (
    CHECKPOINT,
    COMPOSABLE,
    NON_REENTRANT,
    REENTRANT,
    WRAPPER,
    entries,
    leaf,
    scales,
    square,
    tool,
    wrapped_in_place,
)
from hookcheck.programs.nets import net
from hookcheck.programs.program import program

SEQUENTIAL = "torch.utils.checkpoint.checkpoint_sequential"
WRAPPERS = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
BY_CHECKPOINT_FN = "checkpoint_wrapper, checkpoint_fn"

# Four layers: what backward lists of the second passes. All segments but the last are run again, the last one of them
# first; the variant that is not reentrant stops inside of the last layer of each.
SEGMENTS = {
    1: ([], []),
    2: (["+0", "-0", "+1", "-1"], ["+0", "-0", "+1"]),
    3: (["+1", "-1", "+0", "-0"], ["+1", "+0"]),
}
"""The number of segments, and what is listed of each variant."""


@program("CK-28", PROMISE, since="2.1", source=f"{SEQUENTIAL}, 'all segments except the last'")
def a_sequence_of_segments(check: Check) -> None:
    """Of a sequence that is checkpointed in segments the forward hooks of all but the last segment run again in
    backward, in the variant that is asked for, be it a Sequential or a list; random numbers are the same in both passes
    unless ``preserve_rng_state=False``."""
    for reentrant in (True, False):
        for segments, listed in SEGMENTS.items():
            for form in (nn.Sequential, list):
                chain, x = scales(2, 3, 5, 7), leaf()
                log = entries(chain)
                given = chain if form is nn.Sequential else [*chain]
                y = tool("checkpoint_sequential")(given, segments, x, use_reentrant=reentrant)
                what = f"{REENTRANT if reentrant else NON_REENTRANT}, {segments} segments, {form.__name__}"
                check.order(f"{what}: forward", log, [f"{sign}{i}" for i in range(4) for sign in "+-"])
                log.clear()
                y.backward()
                check.order(f"{what}: backward", log, listed[0 if reentrant else 1])
                # 7 through 2, 3, 5 and 7, and for each weight that product without the weight
                check.equal(f"{what}: output and gradient", [y, x.grad], [[1470], [210]])
                weights = [[1470 / weight] for weight in (2, 3, 5, 7)]
                check.equal(f"{what}: gradients of the weights", [each.weight.grad for each in chain], weights)
        for preserve in (True, False):
            chain, drawn = scales(2, 3), list[Any]()
            chain[0].register_forward_pre_hook(lambda *args, drawn=drawn: drawn.append(torch.rand(())))
            run = partial(tool("checkpoint_sequential"), preserve_rng_state=preserve, use_reentrant=reentrant)
            y = run(chain, 2, leaf())
            torch.rand(())  # or the second pass would end where the first one did
            before = torch.get_rng_state()
            y.backward()
            what = f"{REENTRANT if reentrant else NON_REENTRANT}, preserve_rng_state={preserve}"
            check.calls(f"{what}: calls", len(drawn), 2)
            check.equal(f"{what}: the second pass draws the same", drawn[0].item() == drawn[1].item(), preserve)
            check.equal(f"{what}: what is drawn after it", torch.equal(torch.get_rng_state(), before), preserve)


Run = Callable[..., Any]


def _forms() -> tuple[str, ...]:
    """The forms of checkpoint that take ``context_fn`` and other options, and run the region in ways of their own."""
    return (NON_REENTRANT, COMPOSABLE) if torch.distributed.is_available() else (NON_REENTRANT,)


def _forms_and_wrappers() -> tuple[str, ...]:
    """The same, with those that pass on what they are given to one of these."""
    return (*_forms(), *((WRAPPER, BY_CHECKPOINT_FN) if torch.distributed.is_available() else ()))


def _called(module: Any, options: dict[str, Any]) -> Run:
    """Checkpoints each call of a module."""
    return partial(tool("checkpoint"), module, use_reentrant=False, **options)


def _composed(module: Any, options: dict[str, Any]) -> Run:
    """Has hooks on a module checkpoint it."""
    composable: Any = import_module("torch.distributed._composable")
    checkpointed: Run = composable.checkpoint(module, **options)
    return checkpointed


def _wrapped(module: Any, options: dict[str, Any]) -> Run:
    """Puts a module around it that checkpoints it."""
    wrapper: Run = import_module(WRAPPERS).checkpoint_wrapper(module, **options)
    return wrapper


def _by_checkpoint_fn(module: Any, options: dict[str, Any]) -> Run:
    """The same, by a checkpoint function that the caller gives, and which must be told of ``use_reentrant``."""
    return _wrapped(module, {"checkpoint_fn": tool("checkpoint"), "use_reentrant": False, **options})


def _of_form(form: str) -> Callable[[Any, dict[str, Any]], Run]:
    """What makes a checkpoint of that form of a module."""
    return {NON_REENTRANT: _called, COMPOSABLE: _composed, WRAPPER: _wrapped, BY_CHECKPOINT_FN: _by_checkpoint_fn}[form]


@contextmanager
def _noted(log: list[Any], name: str, errors: list[str]) -> Iterator[None]:
    """Notes that a context is entered, and left, and by which error."""
    log.append(f"enter {name}")
    try:
        yield
    except BaseException as error:
        errors.append(type(error).__name__)
        raise
    finally:
        log.append(f"leave {name}")


def _contexts(log: list[Any], errors: list[str]) -> Callable[[], Any]:
    """A ``context_fn`` whose contexts note that they are entered, and left, and by which errors."""
    return lambda: (_noted(log, "first", errors), _noted(log, "second", errors))


@program("CK-29", PROMISE, since="2.6", source=f"{CHECKPOINT}, context_fn; torch.distributed._composable.checkpoint")
def contexts_and_keywords(check: Check) -> None:
    """Hooks of a region run between entering and leaving the context of their pass, and are given its keyword arguments
    in both passes; where no gradient is computed there is one pass, with no context."""
    for form in _forms_and_wrappers():
        for mode in ("grad mode", "no grad mode"):
            log, given, module, x = list[Any](), list[Any](), square(), leaf()
            run = _of_form(form)(module, {"context_fn": _contexts(log, [])})
            module.register_forward_pre_hook(
                lambda module, args, kwargs, log=log, given=given: (log.append("pre-hook"), given.append(kwargs))[1],
                with_kwargs=True,
            )
            with torch.set_grad_enabled(mode == "grad mode"):
                y = run(x, factor=3.0)
            what = f"{form}, {mode}"
            check.equal(f"{what}: output", y, [3 * 49])
            if mode == "no grad mode":
                check.order(f"{what}: hooks", log, ["pre-hook"])
                continue
            check.order(f"{what}: first pass", log, ["enter first", "pre-hook", "leave first"])
            log.clear()
            y.backward()
            check.order(f"{what}: second pass", log, ["enter second", "pre-hook", "leave second"])
            check.equal(f"{what}: keyword arguments", given, [{"factor": 3.0}] * 2)
            check.equal(f"{what}: gradient", x.grad, [3 * 2 * 7])


@program("CK-30", PROMISE, since="2.6", source=f"{CHECKPOINT}, context_fn; torch.distributed._composable.checkpoint")
def errors_of_hooks_leave_the_contexts(check: Check) -> None:
    """Where a hook of a region raises, in the first pass or in the second, the context of that pass is left before the
    caller sees the error, and the next call checkpoints as if there had been none."""
    for form in _forms():
        for number, name in ((1, "first"), (2, "second")):
            log: list[Any] = []
            calls: list[Any] = []
            module = square()

            def refuse(*args: Any, calls: list[Any] = calls, number: int = number) -> None:
                calls.append(None)
                if len(calls) == number:
                    raise ValueError("refused")

            errors = list[str]()
            run = _of_form(form)(module, {"context_fn": _contexts(log, errors)})
            module.register_forward_pre_hook(refuse)
            left: list[Any] = []
            met: list[str] = []
            try:
                run(leaf()).backward()
            except ValueError:
                left, met = log[-2:], [*errors]  # while the error is there, with all frames that it came through
            what = f"{form}, in the {name} pass"
            log.clear()
            calls[:] = [None] * 2
            x = leaf()
            run(x).backward()
            check.equal(f"{what}: gradient of the next call", x.grad, [14])
            check.order(f"{what}: contexts of the next call", log[::2], ["enter first", "enter second"])
            check.calls(f"{what}: calls of the next call", len(calls) - 2, 2)
            check.order(f"{what}: the context", left, [f"enter {name}", f"leave {name}"])
            if form == NON_REENTRANT:  # what is made of hooks leaves it in a hook, which is told of no error
                check.equal(f"{what}: the error that the context is left by", met, ["ValueError"])


@program("CK-31", PROMISE, since="2.6", source=f"{CHECKPOINT}, determinism_check; torch.distributed._composable")
def composed_options_are_heard(check: Check) -> None:
    """A checkpoint compares the dtypes of what both passes save, unless ``determinism_check`` is "none", also where it
    is made of hooks on the module."""
    for form in _forms_and_wrappers():
        for asked in ("default", "none"):
            chain, calls, x = scales(2, 3), list[Any](), leaf()

            def widen(module: Any, args: Any, output: Any, calls: list[Any] = calls) -> Any:
                calls.append(None)
                return output.double() if len(calls) == 2 else None

            chain[0].register_forward_hook(widen)
            y = _of_form(form)(chain, {"determinism_check": asked})(x)
            if asked == "default":
                check.raises(f"{form}: float64 for float32", RuntimeError, y.backward, "different metadata")
            else:
                check.works(f"{form}: float64 for float32, with no check", y.backward)
                check.equal(f"{form}: gradient of the last weight", chain[1].weight.grad, [14])


@program("CK-32", PROMISE, since="2.10", source="torch.utils.checkpoint.GraphExecGroup, 'at most once'")
def a_group_of_backwards(check: Check) -> None:
    """Forward hooks of a region run again once in all backwards of a GraphExecGroup, and once in each without it; a
    group that an error of a hook ended is closed."""
    group = getattr(import_module("torch.utils.checkpoint"), "GraphExecGroup", None)
    if group is None:
        raise NotOffered("this torch has no GraphExecGroup")

    def region(*xs: Any) -> Any:
        return tuple(layer(x) for layer, x in zip(chain, xs))

    for grouped in (True, False):
        chain, xs = scales(2, 3), [leaf(5.0), leaf(7.0)]
        log = entries(chain)
        ys = tool("checkpoint")(region, *xs, use_reentrant=False, early_stop=False)
        log.clear()
        what = "in a group" if grouped else "in none"
        if grouped:
            with group():
                for y in ys:
                    y.backward()
        else:
            for y in ys:
                y.backward()
        again = ["+0", "-0", "+1", "-1"]
        check.order(f"{what}: hooks", log, again if grouped else again * 2)
        check.equal(f"{what}: gradients", [x.grad for x in xs], [[2], [3]])
        check.equal(f"{what}: gradients of the weights", [each.weight.grad for each in chain], [[5], [7]])

    def refuse(gradient: Any) -> None:
        raise ValueError("refused")

    def in_a_group() -> None:
        with group():
            y = leaf() * 2
            y.register_hook(refuse)
            y.backward()

    check.raises("an error of a hook", ValueError, in_a_group, "refused")
    check.works("the next group", lambda: group().__enter__())
    group().__exit__(None, None, None)


@program("CK-33", PROMISE, since="2.1", source=f"{WRAPPERS}, 'to allow loading into non-checkpoint wrapped modules'")
def wrappers_leave_names_and_hooks(check: Check) -> None:
    """A module in a wrapper that checkpoints or offloads is saved and loaded under its own names, which hooks on the
    wrapper see, and its hooks are called with all that it is given: by keyword too, in each pass. What is offloaded
    inside of a checkpoint is not computed again."""
    if not torch.distributed.is_available():
        raise NotOffered("this torch has no torch.distributed")
    wrappers: Any = import_module(WRAPPERS)
    reentrant, non_reentrant = (
        partial(wrappers.checkpoint_wrapper, checkpoint_impl=implementation)
        for implementation in (wrappers.CheckpointImpl.REENTRANT, wrappers.CheckpointImpl.NO_REENTRANT)
    )
    kinds: dict[str, tuple[Callable[[Any], Any], int]] = {
        REENTRANT: (reentrant, 2),
        NON_REENTRANT: (non_reentrant, 2),
        "put around it in a network": (wrapped_in_place, 2),
        "offload": (wrappers.offload_wrapper, 1),
        # what the inner one keeps is not left to the outer one, which has nothing to compute again
        "offload in checkpoint": (lambda module: non_reentrant(wrappers.offload_wrapper(module)), 1),
    }
    for name, (wrap, passes) in kinds.items():
        inner = net(lambda module, x, factor=1.0: factor * module.weight * x * x, weight=2.0)
        wrapper, log, saved, loaded = wrap(inner), list[Any](), list[Any](), list[Any]()
        inner.register_forward_pre_hook(lambda module, args, kwargs, log=log: log.append(kwargs), with_kwargs=True)
        whole, x = nn.Sequential(wrapper), leaf()
        y = wrapper(x, factor=3.0)
        y.backward()
        check.equal(f"{name}: keyword arguments that the hook is given", log, [{"factor": 3.0}] * passes)
        check.equal(f"{name}: gradients", [x.grad, inner.weight.grad], [[3 * 2 * 2 * 7], 3 * 49])
        wrapper._register_state_dict_hook(lambda module, state, *args, saved=saved: saved.extend(state))
        whole._register_load_state_dict_pre_hook(lambda state, *args, loaded=loaded: loaded.extend(state))
        state = whole.state_dict()
        check.order(f"{name}: names that are saved", [*state], ["0.weight"])
        check.order(f"{name}: names that a hook on saving sees", saved, ["0.weight"])
        check.works(f"{name}: loading", partial(whole.load_state_dict, {"0.weight": torch.tensor(5.0)}))
        check.order(f"{name}: names that a hook on loading sees", loaded, ["0.weight"])
        check.equal(f"{name}: the weight that is loaded", inner.weight, 5)
        check.order(f"{name}: names of parameters", [key for key, _ in wrapper.named_parameters()], ["weight"])


POLICIES = {
    "MUST_SAVE": [],
    "PREFER_SAVE": [],
    "MUST_RECOMPUTE": ["sin"] * 2,
    "PREFER_RECOMPUTE": ["sin"] * 2,
}
"""Each policy on the results of sin, and which are computed again in a region that takes the sine twice."""


@program(
    "CK-34",
    PROMISE,
    since="2.6",
    source="torch.utils.checkpoint.CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts",
)
def policies_on_an_operation_that_runs_twice(check: Check) -> None:
    """Under each policy an operation is computed again as the policy says, each of its results is the one of its turn,
    with hooks between them, and the policy is told what the operation gave."""
    from torch.utils._python_dispatch import TorchDispatchMode

    tells = "op_output" in signature(tool("SelectiveCheckpointContext")).parameters
    sine = torch.ops.aten.sin.default
    first, second = math.sin(0.5), math.sin(math.sin(0.5))

    class Noting(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is sine:
                ran.append("sin")
            return func(*args, **(kwargs or {}))

    for name, again in POLICIES.items():
        ran, results, log = list[str](), list[float](), list[float]()

        def policy(context: Any, operation: Any, *args: Any, name: str = name, results: Any = results, **_: Any) -> Any:
            if operation is sine:
                if not context.is_recompute:  # up to 2.12 it is asked in the second pass too, and told nothing
                    results.append(context.op_output.item() if tells else 0.0)
                return tool("CheckpointPolicy")[name]
            return tool("CheckpointPolicy").PREFER_RECOMPUTE

        layers, x = [net(lambda module, x: x.sin()) for _ in range(2)], leaf(0.5)
        for layer in layers:
            layer.register_forward_hook(lambda module, args, output, log=log: log.append(output.item()))
        region = nn.Sequential(*layers, net(lambda module, x: torch.add(x, x, alpha=2).square()))
        contexts = partial(tool("create_selective_checkpoint_contexts"), policy)
        y = tool("checkpoint")(region, x, use_reentrant=False, context_fn=contexts)
        check.equal(f"{name}: what the policy is told", results, [first, second] if tells else [0.0, 0.0])
        with Noting():
            y.backward()
        check.order(f"{name}: computed again", ran, again)
        check.equal(f"{name}: what hooks see in both passes", log, [first, second] * 2)
        check.equal(f"{name}: output", y, [9 * second * second])
        # of (3 · sin(sin(x)))²: 18 times that sine, times the cosines
        check.equal(f"{name}: gradient", x.grad, [18 * second * math.cos(first) * math.cos(0.5)])


SHOWN, PLAIN = "Operations executed during recomputation", "different metadata"
"""What the error says of what differs where a checkpoint is debugged, and where it is not."""


@program("CK-35", PROMISE, since="2.2", source="torch.utils.checkpoint.set_checkpoint_debug_enabled, 'overrides'")
def a_checkpoint_that_is_debugged(check: Check) -> None:
    """Hooks of a region are called under ``debug=True`` as without; what a hook of the second pass does is then shown
    in the error, unless the switch for all checkpoints says otherwise, which holds until its context is left."""
    switch = tool("set_checkpoint_debug_enabled")
    for asked, for_all, says in ((True, False, PLAIN), (True, None, SHOWN), (False, True, SHOWN), (False, None, PLAIN)):
        what = f"debug={asked}{'' if for_all is None else f', and {for_all} for all'}"
        chain, x = scales(2, 3), leaf()
        log = entries(chain)
        with nullcontext() if for_all is None else switch(for_all):
            y = tool("checkpoint")(chain, x, use_reentrant=False, debug=asked)
        y.backward()
        check.order(f"{what}: hooks", log, ["+0", "-0", "+1", "-1", "+0", "-0", "+1"])
        check.equal(f"{what}: gradient", x.grad, [6])
        chain, calls = scales(2, 3), list[Any]()

        def widen(module: Any, args: Any, output: Any, calls: list[Any] = calls) -> Any:
            calls.append(None)
            return output.double() if len(calls) == 2 else None

        chain[0].register_forward_hook(widen)
        with nullcontext() if for_all is None else switch(for_all):
            y = tool("checkpoint")(chain, leaf(), use_reentrant=False, debug=asked)
        check.raises(f"{what}: error", RuntimeError, y.backward, says)
