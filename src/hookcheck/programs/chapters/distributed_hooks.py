"""When do the hooks of DistributedDataParallel run, and what do hooks of modules and parameters see beside them?

Communication hooks reduce buckets of gradients, hooks of buffers synchronize buffers, join hooks stand in for a process
that has no inputs left. ``replicate`` makes of a module itself what DistributedDataParallel makes of one that it wraps.
"""

from __future__ import annotations

import copy
import threading
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.nets import leaf, net, weighted
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program
from hookcheck.programs.reducing import (
    DISTRIBUTED,
    distributed,
    future_of,
    reducing,
    settings,
    steps_of_a_static_graph,
)
from hookcheck.programs.watching import noting

COMM = f"{DISTRIBUTED}.register_comm_hook"
JOIN = "torch.distributed.algorithms.Join"


@program("DD-01", PROMISE, since="1.10", source=f"{DISTRIBUTED}.no_sync")
def nothing_is_reduced_within_no_sync(check: Check) -> None:
    """Within ``no_sync`` no comm hook is called and gradients accumulate; the first backward after it reduces their
    sum. It ends with its context, also by an error, and not with one inside it; what counts is where forward ran."""
    with process_group(check):
        for name, options in settings().items():
            if name == "static_graph":  # it learns the graph in the first backward, which may be reduced or not
                for first in ("no_sync", "a reduction"):
                    steps_of_a_static_graph(check, first)
                continue
            module, log = weighted(2.0), list[Any]()
            wrapper = distributed(module, **options)
            wrapper.register_comm_hook(None, reducing(log, 10.0))
            with wrapper.no_sync():
                wrapper(leaf(3.0)).backward()
                with suppress(ValueError), wrapper.no_sync():
                    raise ValueError("on purpose")
                wrapper(leaf(4.0)).backward()
            check.order(f"{name}: buckets within", log, [])
            check.equal(f"{name}: gradient within: 3 + 4", module.weight.grad, 7.0)
            wrapper(leaf(5.0)).backward()
            check.order(f"{name}: buckets after it: 7 + 5", log, [[12.0]])
            check.equal(f"{name}: gradient after it", module.weight.grad, 120.0)
            module.weight.grad = None
            log.clear()
            with suppress(ValueError), wrapper.no_sync():
                raise ValueError("on purpose")
            output = wrapper(leaf(6.0))
            with wrapper.no_sync():
                output.backward()
            check.order(f"{name}: buckets of a forward before it", log, [[6.0]])


@program("DD-02", PROMISE, since="1.10", source=f"{COMM}; torch.distributed.GradBucket")
def buckets_hold_every_gradient_once(check: Check) -> None:
    """The buckets of a backward hold each parameter once, with its gradient, and neither what is frozen nor what is to
    be ignored; they come in order, the last says so, and what futures hold becomes the gradients."""
    with process_group(check):
        for name, options in settings().items():
            inner = net(lambda module, x: module.c * x + module.d * x, c=5.0, d=7.0)
            inner.d.requires_grad_(False)
            module = net(lambda module, x: module.a * (module.b * x + x) + module.inner(x), a=2.0, b=3.0, inner=inner)
            module.unused = nn.Parameter(torch.ones(1), requires_grad="find_unused" in name)
            nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ["inner.c"])
            names = {id(parameter): name for name, parameter in module.named_parameters()}
            wrapper, log, orders = distributed(module, **options), list[Any](), list[Any]()

            def note(bucket: Any, log: Any = log, orders: Any = orders, names: Any = names) -> Any:
                gradients = [gradient.reshape(()).item() for gradient in bucket.gradients()]
                log.extend(zip([names[id(parameter)] for parameter in bucket.parameters()], gradients))
                orders.append((bucket.index(), bucket.is_last()))
                return future_of(10 * bucket.buffer())

            wrapper.register_comm_hook(None, lambda state, bucket, note=note: note(bucket))
            for time in ("first", "second", "third"):
                for parameter in module.parameters():
                    parameter.grad = None
                log.clear()
                orders.clear()
                wrapper(leaf(1.0)).backward()
                # a · (b·x + x): a gets b + 1, b gets a
                unused = [("unused", 0.0)] if "find_unused" in name else []
                check.order(f"{name}: {time} buckets", sorted(log), [("a", 4.0), ("b", 2.0), *unused])
                last = len(orders) - 1
                check.equal(f"{name}: {time} places", orders, [(i, i == last) for i in range(last + 1)], "entry")
                grads = [parameter.grad for parameter in (module.a, module.b, inner.c, inner.d, module.unused)]
                check.equal(f"{name}: {time} gradients", grads, [40.0, 20.0, 1.0, None, None])


@program("DD-03", PROMISE, since="1.10", source=f"{COMM}, 'hook (Callable): Callable with the following signature'")
def comm_hooks_that_are_refused(check: Check) -> None:
    """What cannot be called, or says that it takes or gives something else, is refused as a comm hook; then, another
    one can still be registered, and gets its state itself."""

    def right(state: Any, bucket: Any) -> Any:
        states.append(state)
        return future_of(2 * bucket.buffer())

    def refused(**annotations: Any) -> Any:
        hook: Any = lambda state, bucket: right(state, bucket)  # noqa: E731
        hook.__annotations__ = annotations
        return lambda: wrapper.register_comm_hook(state, hook)

    states: list[Any] = []
    state = ["a state"]
    with process_group(check):
        module = weighted(2.0)
        wrapper = distributed(module)
        check.raises("no callable", TypeError, lambda: wrapper.register_comm_hook(state, 1), "must be callable")
        check.raises("takes a tensor", ValueError, refused(bucket=torch.Tensor), "bucket annotation")
        gives = refused(**{"return": torch.Tensor})
        check.raises("gives a tensor", ValueError, gives, "return annotation")
        future = torch.futures.Future[torch.Tensor]
        accepted = refused(bucket=torch.distributed.GradBucket, **{"return": future})
        check.works("what is documented", accepted)
        check.raises("a second one", RuntimeError, accepted, "once")
        wrapper(leaf(3.0)).backward()
        check.calls("calls of the hook", len(states), 1)
        check.true("its state is the object itself", bool(states) and states[0] is state, "argument")
        check.equal("gradient", module.weight.grad, 6.0)


@program("DD-04", PIN, since="1.10", source=f"{DISTRIBUTED}._register_buffer_comm_hook; 'Allow custom registration'")
def hooks_of_buffers(check: Check) -> None:
    """A hook of buffers gets its state and the buffers of now by name, save those to ignore, ahead of each forward or
    after it, as asked; what it returns is awaited by the end of backward."""

    def counted(module: Any, x: Any) -> Any:
        log.append("forward")
        return module.weight * x + module.count

    def hook(state: Any, buffers: Any) -> Any:
        log.append((state, {name: buffer.item() for name, buffer in buffers.items()}))
        buffers["count"].add_(1)

    place = getattr(import_module("torch.nn.parallel.distributed"), "_BufferCommHookLocation", None)
    if place is None:
        raise NotOffered("this torch has no hooks of buffers")
    log: list[Any] = []
    with process_group(check):
        for name in ("PRE_FORWARD", "POST_FORWARD"):
            module = net(counted, weight=2.0)
            for buffer in ("count", "ignored"):
                module.register_buffer(buffer, torch.tensor(10.0))
            nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, ["ignored"])
            wrapper = distributed(module)
            wrapper._register_buffer_comm_hook("a state", hook, getattr(place, name))
            log.clear()
            outputs = [wrapper(leaf(3.0)).item()]
            module.count = torch.tensor(20.0)
            outputs.append(wrapper(leaf(3.0)).item())
            called = [[("a state", {"count": value}), "forward"] for value in (10.0, 20.0)]
            due = [entry for pair in called for entry in (pair if name == "PRE_FORWARD" else reversed(pair))]
            check.order(f"{name}: calls", log, due)
            check.equal(f"{name}: outputs", outputs, [17.0, 27.0] if name == "PRE_FORWARD" else [16.0, 26.0])
        _awaited(check, module)


def _awaited(check: Check, module: Any) -> None:
    """States that futures of a hook of buffers are completed when a backward is over."""
    log: list[str] = []

    def hook(state: Any, buffers: Any) -> Any:
        future: Any = torch.futures.Future()
        threading.Timer(0.05, lambda: (log.append("completed"), future.set_result(None))).start()
        return [future]

    wrapper = distributed(module)
    wrapper._register_buffer_comm_hook(None, hook)
    wrapper(leaf(3.0)).backward()
    check.order("futures at the end of backward", log, ["completed"])


@program("DD-05", PROMISE, since="1.10", source=f"{JOIN}, JoinHook, Joinable")
def join_hooks(check: Check) -> None:
    """On leaving ``Join`` the post-hooks of what takes part run in the order given, once no process is left; each was
    asked for with the keyword arguments. By an error, or if it is not enabled, none does, and the error goes on."""
    algorithms: Any = import_module("torch.distributed.algorithms.join")
    log: list[Any] = []

    class Hook(algorithms.JoinHook):
        def __init__(self, name: str) -> None:
            self.name = name

        def main_hook(self) -> None:
            log.append((self.name, "main"))

        def post_hook(self, is_last_joiner: bool) -> None:
            log.append((self.name, "post", is_last_joiner))

    class Part(algorithms.Joinable):
        join_device, join_process_group = torch.device("cpu"), None

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name
            self.join_process_group = torch.distributed.group.WORLD

        def join_hook(self, **options: Any) -> Any:
            log.append((self.name, options))
            return Hook(self.name)

    with process_group(check):
        parts = [Part("first"), Part("second")]
        asked = [("first", {"factor": 2}), ("second", {"factor": 2})]
        with algorithms.Join(parts, factor=2):
            telling = [algorithms.Join.notify_join_context(part) is not None for part in parts]
        check.equal("which of them tells the others", telling, [True, False])
        check.order("hooks", log, [*asked, ("first", "post", True), ("second", "post", True)])
        for name, options in (("an error", {}), ("enable=False", {"enable": False})):
            log.clear()
            ends: Any = ValueError("on purpose") if name == "an error" else None

            def leave(options: Any = options, ends: Any = ends) -> None:
                with algorithms.Join(parts, factor=2, **options):
                    if ends:
                        raise ends

            if ends:
                check.raises(f"{name}: it goes on", ValueError, leave, "on purpose")
            else:
                leave()
            check.order(f"{name}: hooks", log, asked)
        check.raises("nothing to join", ValueError, lambda: algorithms.Join([]), "at least one")


@program("DD-06", PIN, since="1.10", source=f"{DISTRIBUTED}; undocumented: what runs first")
def hooks_of_a_weight_run_before_its_bucket(check: Check) -> None:
    """Hooks of a parameter run before its bucket is reduced, under each way to reduce: what a tensor hook returns, and
    what a post-accumulate hook makes of ``.grad``, is in the bucket; hooks of the module get gradients as without."""
    with process_group(check):
        for name, options in settings().items():
            module, log = weighted(2.0), list[Any]()
            wrapper = distributed(module, **options)
            module.register_full_backward_hook(lambda module, gi, go, log=log: log.append(("module", gi[0].item())))
            module.weight.register_hook(lambda grad, log=log: log.append(("tensor", grad.item())) or 10 * grad)
            due, factor = [("tensor", 3.0)], 10.0
            if hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
                module.weight.register_post_accumulate_grad_hook(
                    lambda weight, log=log: log.append(("post", weight.grad.item())) or (weight.grad.mul_(10) and None)
                )
                due, factor = [*due, ("post", 30.0)], 100.0
            wrapper.register_comm_hook(
                None, lambda state, bucket, log=log: log.append(("bucket", bucket.buffer().item())) or _twice(bucket)
            )
            for time in ("first", "second", "third"):
                module.weight.grad = None
                log.clear()
                wrapper(leaf(3.0)).backward()
                of_weight = [entry for entry in log if entry[0] != "module"]
                check.order(f"{name}: {time} hooks", of_weight, [*due, ("bucket", 3 * factor)])
                check.order(
                    f"{name}: {time} module", [entry for entry in log if entry[0] == "module"], [("module", 2.0)]
                )
                check.equal(f"{name}: {time} gradient", module.weight.grad, 6 * factor)


def _twice(bucket: Any) -> Any:
    return future_of(2 * bucket.buffer())


@program("DD-07", PIN, since="1.10", source=f"pytorch#61753; {DISTRIBUTED}, 'would also not receive gradients'")
def hooks_of_what_the_loss_leaves_out(check: Check) -> None:
    """Hooks of a module and a parameter on which the loss does not depend are not called, as without
    DistributedDataParallel; those of the others get the gradients that they get without."""
    with process_group(check):
        for name in settings():
            if name not in ("find_unused_parameters", "static_graph"):
                continue  # others require that the loss depends on all
            log: list[Any] = []
            parts = {"used": weighted(2.0), "left out": weighted(3.0)}
            for part, module in parts.items():
                module.register_full_backward_hook(noting(log, ("module", part)))
                module.weight.register_hook(noting(log, ("tensor", part)))
                if hasattr(nn.Module, "register_full_backward_pre_hook"):
                    module.register_full_backward_pre_hook(noting(log, ("module, before", part)))
            both = nn.ModuleDict(parts)
            wrapper = distributed(
                net(lambda module, x: [part(x) for part in module.parts.values()], parts=both), **{name: True}
            )
            for _ in range(2):
                x = leaf(5.0)
                wrapper(x)[0].backward()
            kinds = ("tensor", "module", "module, before")
            for kind in kinds[: 2 + hasattr(nn.Module, "register_full_backward_pre_hook")]:
                check.calls(f"{name}: {kind}, used", log.count((kind, "used")), 2)
                check.calls(f"{name}: {kind}, left out", log.count((kind, "left out")), 0)
            check.equal(f"{name}: gradients", [x.grad, parts["used"].weight.grad], [[2.0], 10.0])
            if name == "find_unused_parameters":
                check.equal(f"{name}: the gradient of what is left out", parts["left out"].weight.grad, None)


@program("DD-08", PIN, since="1.10", source=f"{DISTRIBUTED}.forward; 'return the output object verbatim'")
def hooks_get_what_the_module_gives(check: Check) -> None:
    """Hooks get the arguments of the call by place and by name, and what the module gives in its own structure, with
    what is no result of autograd the very same objects, under each way to reduce."""
    plain, word = torch.tensor(7.0), object()
    with process_group(check):
        for name, options in settings().items():
            module = net(
                lambda module, x, *, y: {"a": module.w * x, "b": [module.w * y, plain], "c": (word, None)}, w=2.0
            )
            seen: list[Any] = []
            wrapper = distributed(module, **options)
            wrapper.register_forward_hook(lambda module, args, output, seen=seen: seen.append(output))
            module.register_forward_hook(lambda module, args, output, seen=seen: seen.append(output))
            module.register_forward_pre_hook(lambda module, args, seen=seen: seen.append(args))
            for time in ("first", "second", "third"):
                seen.clear()
                x, y = leaf(3.0), leaf(4.0)
                output = wrapper(x, y=y)
                (output["a"] + output["b"][0]).backward()
                check.equal(f"{name}: {time} gradients", [x.grad, y.grad], [[2.0], [2.0]])
                for where, given in zip(("module", "wrapper", "result"), [*seen[1:], output]):
                    shape = {key: type(value).__name__ for key, value in given.items()}
                    check.equal(f"{name}: {time} {where}", shape, {"a": "Tensor", "b": "list", "c": "tuple"})
                    same = [given["b"][1] is plain, given["c"][0] is word, given["c"][1] is None]
                    check.equal(f"{name}: {time} {where}, objects", same, [True, True, True])
                check.true(f"{name}: {time} argument", len(seen[0]) == 1 and seen[0][0] is x, "argument")
            changed = distributed(weighted(2.0), **options)
            changed.register_forward_hook(lambda module, args, output: output.mul_(5.0))
            x = leaf(3.0)
            y = check.works(f"{name}: a hook that changes the output in place", partial(changed, x))
            if y is not None:
                y.backward()
                check.equal(f"{name}: the output that it changed, and the gradient", [y, x.grad], [[30.0], [10.0]])


@program("DD-09", PIN, since="1.10", source=f"{DISTRIBUTED}.__getstate__; undocumented")
def a_copy_reduces_by_itself(check: Check) -> None:
    """A copy of a network in DistributedDataParallel has the hooks of modules of the original, and no comm hook; each
    of them reduces its own gradients."""
    with process_group(check):
        for name, options in settings().items():
            log: list[str] = []
            wrapper = distributed(weighted(2.0), **options)
            parts = {"wrapper": wrapper, "module": wrapper.module}
            for part, module in parts.items():
                module.register_forward_hook(noting(log, part))
                module.register_full_backward_hook(noting(log, f"{part}, backward"))
            wrapper.register_comm_hook(
                None, lambda state, bucket, log=log: log.append("comm") or future_of(bucket.buffer())
            )
            other = copy.deepcopy(wrapper)
            due = ["module", "wrapper", "module, backward", "wrapper, backward"]
            for time in ("first", "second"):
                for who, each, comm in (("copy", other, []), ("original", wrapper, ["comm"])):
                    log.clear()
                    each(leaf(3.0)).backward()
                    check.order(f"{name}: {time} of the {who}", sorted(log), sorted([*due, *comm]))
            grads = [other.module.weight.grad, wrapper.module.weight.grad]
            check.equal(f"{name}: gradients", grads, [6.0, 6.0])


@program("DD-10", PIN, since="1.10", source=f"{DISTRIBUTED}; undocumented: what an error leaves behind")
def an_error_in_a_hook_leaves_nothing(check: Check) -> None:
    """After an error in a hook, of forward or of backward, the next call runs as the first did; nothing says that
    DistributedDataParallel were still running, and its hooks on parameters are as many as before."""

    def fail(*arguments: Any) -> None:
        raise ValueError("on purpose")

    with process_group(check):
        for name in ("forward_pre_hook", "forward_hook", "full_backward_hook"):
            module, log = weighted(2.0), list[Any]()
            wrapper = distributed(module)
            wrapper.register_comm_hook(None, reducing(log))
            handle = getattr(module, f"register_{name}")(fail)
            check.raises(f"{name}: the error", ValueError, lambda: wrapper(leaf(3.0)).backward(), "on purpose")  # noqa: B023
            active = getattr(nn.parallel.DistributedDataParallel, "_active_ddp_module", None)
            nn.parallel.DistributedDataParallel._active_ddp_module = None
            check.true(f"{name}: nothing runs any more", active is None)
            handle.remove()
            module.weight.grad = None
            log.clear()
            if "backward" not in name:  # which gradients were reduced before it is not to be relied on
                wrapper(leaf(3.0)).backward()
                check.order(f"{name}: buckets after it", log, [[3.0]])
                check.equal(f"{name}: gradient after it", module.weight.grad, 3.0)
