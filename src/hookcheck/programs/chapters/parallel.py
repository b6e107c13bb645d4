"""What do DataParallel and DistributedDataParallel do with hooks? A module's own still run; a comm hook reduces.

DataParallel calls the hooks of a module on every device; DistributedDataParallel leaves them as they are, and has
communication hooks of its own, ``hook(state, bucket)``, that reduce the gradients.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotRun
from hookcheck.programs.host_changes import offered
from hookcheck.programs.processes import of_two, process_group
from hookcheck.programs.program import program

DATA = "torch.nn.DataParallel"
DISTRIBUTED = "torch.nn.parallel.DistributedDataParallel"
COMM = f"{DISTRIBUTED}.register_comm_hook"


def scale(factor: float = 2.0) -> Any:
    """A module that gives w·x."""

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.tensor([factor]))

        def forward(self, x: Any) -> Any:
            return self.w * x

        def tenfold(self, x: Any) -> Any:
            return 10 * self.w * x

    return Scale()


def _devices() -> int:
    """How many CUDA devices there are; DataParallel needs two."""
    count: int = torch.cuda.device_count()
    if count < 2:
        raise NotRun("it needs two CUDA devices")
    return count


@program("DS-01", PROMISE, since="1.8", source=f"{DATA}, second warning", device="cuda")
def hooks_run_once_a_device(check: Check) -> None:
    """Under DataParallel the hooks of a module run once for each device, on what is on that device."""
    count = _devices()
    net = scale().to("cuda:0")
    log: list[tuple[str, int, float]] = []
    net.register_forward_pre_hook(lambda module, args: log.append(("pre", args[0].device.index, args[0].item())))
    net.register_forward_hook(lambda module, args, output: log.append(("post", output.device.index, output.item())))
    net.register_full_backward_hook(
        lambda module, grad_input, grad_output: log.append(
            ("backward", grad_output[0].device.index, grad_input[0].item())
        )
    )
    x = torch.arange(1.0, count + 1, device="cuda:0", requires_grad=True)
    nn.DataParallel(net)(x).sum().backward()
    for name, value in (("pre", lambda i: i + 1.0), ("post", lambda i: 2.0 * (i + 1)), ("backward", lambda i: 2.0)):
        seen = sorted(entry[1:] for entry in log if entry[0] == name)
        check.equal(f"{name}: devices and values", seen, [(i, value(i)) for i in range(count)])
    check.equal("gradient of w", net.w.grad, [count * (count + 1) / 2])


@program("DS-02", PROMISE, since="1.8", source=f"{DATA}, second warning", device="cuda")
def hooks_are_in_order_on_each_device(check: Check) -> None:
    """Under DataParallel hooks are in order with what happens on their own device, whatever happens on others."""
    count = _devices()
    log: list[tuple[int, str]] = []

    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            log.append((x.device.index, "forward"))
            return 2 * x

    net = Net()
    net.register_forward_pre_hook(lambda module, args: log.append((args[0].device.index, "pre")))
    net.register_forward_hook(lambda module, args, output: log.append((output.device.index, "post")))
    nn.DataParallel(net)(torch.ones(count, device="cuda:0"))
    for device in range(count):
        check.order(f"cuda:{device}", [what for index, what in log if index == device], ["pre", "forward", "post"])


@program("DS-18", PIN, since="1.8", source=f"{DATA}; what it does without devices is not documented")
def without_devices_the_module_runs_plainly(check: Check) -> None:
    """Where DataParallel finds no device it calls the module itself: its hooks run once, inside the wrapper's own."""
    if torch.cuda.is_available():
        raise NotRun("it is about machines without CUDA")
    net = scale()
    log: list[Any] = []
    wrapper = nn.DataParallel(net)
    wrapper.register_forward_pre_hook(lambda module, args: log.append("wrapper pre"))
    wrapper.register_forward_hook(lambda module, args, output: log.append("wrapper post"))
    net.register_forward_hook(lambda module, args, output: log.append(("post", module is net, output.item())))
    net.register_full_backward_hook(lambda module, grad_input, grad_output: log.append(("back", grad_input[0].item())))
    x = torch.tensor([3.0], requires_grad=True)
    output = wrapper(x)
    output.backward()
    check.equal("output", output, [6])
    check.equal("gradients", [x.grad, net.w.grad], [[2.0], [3.0]])
    check.order("hooks", log, ["wrapper pre", ("post", True, 6.0), "wrapper post", ("back", 2.0)])


@program("DS-21", PROMISE, since="1.7", source="pytorch#128272")
def replicas_have_tables_of_their_own(check: Check) -> None:
    """A hook that is registered on a replica made for DataParallel is on that one alone; earlier hooks are on all."""
    net = nn.ReLU()
    log: list[str] = []
    net.register_forward_hook(lambda module, args, output: log.append("before"))
    replica, other = net._replicate_for_data_parallel(), net._replicate_for_data_parallel()
    replica.register_forward_hook(lambda module, args, output: log.append("own"))
    x = torch.tensor([3.0])
    for name, module, expected in (
        ("the replica", replica, ["before", "own"]),
        ("the original", net, ["before"]),
        ("another replica", other, ["before"]),
    ):
        log.clear()
        module(x)
        check.order(f"hooks in a call of {name}", log, expected)


@program("DS-03", PROMISE, since="1.8", source=f"{DISTRIBUTED}; pytorch#66229")
def hooks_run_under_ddp(check: Check) -> None:
    """Hooks on the modules and parameters that DistributedDataParallel wraps run once each, with right gradients."""
    with process_group(check):
        net = nn.Sequential(scale(2.0), scale(3.0))
        log: dict[str, list[Any]] = {}

        def note(name: str, value: Any) -> None:
            log.setdefault(name, []).append(value)

        net.register_forward_pre_hook(lambda module, args: note("pre", args[0].item()))
        net[0].register_forward_hook(lambda module, args, output: note("forward", output.item()))
        net[1].register_full_backward_hook(lambda module, gi, go: note("child", (gi[0].item(), go[0].item())))
        net.register_full_backward_hook(lambda module, gi, go: note("root", (gi[0].item(), go[0].item())))
        wrapper = nn.parallel.DistributedDataParallel(net)
        wrapper.register_full_backward_hook(lambda module, gi, go: note("wrapper", (gi[0].item(), go[0].item())))
        net[0].w.register_hook(lambda grad: note("tensor", grad.item()))
        x = torch.tensor([1.0], requires_grad=True)
        wrapper(x).backward()
        # 3·2·x: 3 flows back into the first factor, 6 into x; the first weight gets 3, the second 2.
        check.equal("gradients", [x.grad, net[0].w.grad, net[1].w.grad], [[6.0], [3.0], [2.0]])
        expected = {"pre": 1.0, "forward": 2.0, "child": (3.0, 1.0), "root": (6.0, 1.0), "wrapper": (6.0, 1.0)}
        for name, value in {**expected, "tensor": 3.0}.items():
            check.order(f"calls: {name}", log.get(name, []), [value])


OF_A_WEIGHT = ("register_hook", "register_post_accumulate_grad_hook")
"""What registers hooks on a parameter."""


def _local(tensor: Any) -> Any:
    """The numbers of a tensor, if there is one; of a DTensor those that this process has."""
    return None if tensor is None else getattr(tensor, "to_local", lambda: tensor)().tolist()


@contextmanager
def _noting_refusals(words: list[str]) -> Iterator[None]:
    """Notes what is said of hooks meanwhile, in warnings or in an exception; another exception is let out."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            yield
        except Exception as error:
            if "hook" not in str(error):
                raise
            words.append(str(error))
    words += [str(one.message) for one in said if "hook" in str(one.message)]


def state_hooks_of_a_weight(check: Check, name: str, wrap: Callable[[Any], Any]) -> None:
    """States that hooks on the parameter of a module that is wrapped, registered before or after, are called once in a
    backward with its gradient; or that they are refused in words that speak of hooks."""
    for kind in OF_A_WEIGHT:
        for when in ("before", "after") if hasattr(torch.Tensor, kind) else ():
            net, log, words, wrapper = scale(), list[float](), list[str](), None
            hook = lambda of, log=log: log.extend(_local(of if of.grad is None else of.grad))  # noqa: E731
            with _noting_refusals(words):
                if when == "after":
                    wrapper = wrap(net)
                getattr(net.w, kind)(hook)
                if when == "before":
                    wrapper = wrap(net)
            if wrapper is not None:
                wrapper(torch.tensor([3.0])).backward()
                check.equal(f"{name}: gradient with {kind} {when}", _local(net.w.grad), [3.0])
            check.order(f"{name}: calls with {kind} {when}", log, [] if words else [3.0])


def _replicated(net: Any) -> Any:
    return import_module("torch.distributed._composable.replicate").replicate(net)


@program("DS-26", PIN, since="1.8", source=f"{DISTRIBUTED}; torch.distributed._composable.replicate")
def a_weight_keeps_its_hooks_in_ddp(check: Check) -> None:
    """Hooks on a parameter are called once in a backward under DistributedDataParallel and under replicate, whether
    they were registered before or after."""
    with process_group(check):
        state_hooks_of_a_weight(check, "DistributedDataParallel", nn.parallel.DistributedDataParallel)
        if offered((2, 0)):
            state_hooks_of_a_weight(check, "replicate", _replicated)


@program("DS-22", PIN, since="1.8", source="pytorch#149938")
def the_wrappers_hook_sees_gradients(check: Check) -> None:
    """When the full backward hook of the DDP wrapper runs, the parameters have their gradients, whatever the inputs."""
    with process_group(check):
        for name, requires_grad in (("inputs that need gradients", True), ("plain inputs", False)):
            seen = _seen_by_the_wrapper(torch.tensor([3.0], requires_grad=requires_grad))
            check.calls(f"{name}: calls of the hook", len(seen), 1)
            check.equal(f"{name}: gradient when it runs", seen[0] if seen else None, [3.0])


def _seen_by_the_wrapper(x: Any) -> list[Any]:
    """The gradient of w at each call of the wrapper's full backward hook."""
    net = scale()
    wrapper = nn.parallel.DistributedDataParallel(net)
    seen: list[Any] = []
    wrapper.register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.append(net.w.grad if net.w.grad is None else net.w.grad.tolist())
    )
    wrapper(x).backward()
    return seen


def _reduced(bucket: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The gradients of a bucket, and what a future must hold so that they become others."""
    if hasattr(bucket, "buffer"):
        return bucket.buffer(), lambda tensor: tensor
    if hasattr(bucket, "get_tensor"):
        return bucket.get_tensor(), lambda tensor: [tensor]
    return bucket.get_tensors()[0], lambda tensor: [tensor]


def completed(bucket: Any, factor: float) -> Any:
    """A completed future of the bucket's gradients times a number."""
    tensor, wrapped = _reduced(bucket)
    future: Any = torch.futures.Future()
    future.set_result(wrapped(factor * tensor))
    return future


@program("DS-04", PROMISE, since="1.8", source=COMM)
def a_comm_hook_reduces(check: Check) -> None:
    """A comm hook gets its state and a bucket of gradients; what its future holds takes the place of the gradients."""
    with process_group(check):
        net = nn.Sequential(scale(2.0), scale(3.0))
        wrapper = nn.parallel.DistributedDataParallel(net)
        log: list[Any] = []

        def note(state: Any, gradients: Any) -> None:
            log.append((state, sorted(gradients.tolist())))

        wrapper.register_comm_hook(
            "a state", lambda state, bucket: note(state, _reduced(bucket)[0]) or completed(bucket, 10)
        )
        wrapper(torch.tensor([1.0])).backward()
        check.order("state and bucket", log, [("a state", [2.0, 3.0])])
        check.equal("gradients", [net[0].w.grad, net[1].w.grad], [[30.0], [20.0]])


@program("DS-05", PROMISE, since="1.8", source=COMM)
def one_comm_hook_at_most(check: Check) -> None:
    """A comm hook can be registered once: a second registration raises, and the first hook stays in effect."""
    with process_group(check):
        net = scale()
        wrapper = nn.parallel.DistributedDataParallel(net)
        wrapper.register_comm_hook(None, lambda state, bucket: completed(bucket, 10))
        second = lambda: wrapper.register_comm_hook(None, lambda state, bucket: completed(bucket, 100))  # noqa: E731
        check.raises("a second registration", RuntimeError, second, "once")
        wrapper(torch.tensor([3.0])).backward()
        check.equal("gradient", net.w.grad, [30])


def _step_that_sums(rank: int) -> tuple[list[Any], Any]:
    """The buckets that a comm hook gets in one of two processes, and the gradient after it has summed over both."""
    log: list[Any] = []

    def total(bucket: Any) -> Any:
        tensor, _ = _reduced(bucket)
        log.append(tensor.tolist())
        torch.distributed.all_reduce(tensor)
        return completed(bucket, 1)

    net = scale()
    wrapper = nn.parallel.DistributedDataParallel(net)
    wrapper.register_comm_hook(None, lambda state, bucket: total(bucket))
    wrapper(torch.tensor([(3.0, 5.0)[rank]])).backward()
    return log, net.w.grad.tolist()


@program("DS-06", PROMISE, since="1.8", source=f"{COMM}; 'gradients are not pre-divided by world size'", alone=True)
def buckets_are_not_divided(check: Check) -> None:
    """The gradients in a bucket are those of the process, not divided by the number of processes."""
    buckets, gradient = of_two(check, _step_that_sums)
    check.equal("the buckets of one process", buckets, [[3.0]])
    check.equal("gradient after a sum over both", gradient, [8.0])


def _step_with_hooks(rank: int) -> tuple[dict[str, Any], list[Any]]:
    """What hooks on a module and on its parameter see in one of two processes, and the gradients of the process."""
    net, log = scale(), {"calls of the module's hook": []}  # type: tuple[Any, dict[str, Any]]
    wrapper = nn.parallel.DistributedDataParallel(net)
    net.register_forward_hook(lambda module, args, output: log.update(output=output.item()))
    net.register_full_backward_hook(
        lambda module, gi, go: log["calls of the module's hook"].append((gi[0].item(), go[0].item()))
    )
    net.w.register_hook(lambda grad: log.update({"gradient that the hook on w gets": grad.item()}))
    x = torch.tensor([(3.0, 5.0)[rank]], requires_grad=True)
    (7 * wrapper(x)).backward()
    return log, [x.grad.tolist(), net.w.grad.tolist()]


@program("DS-19", PROMISE, since="1.8", source=f"{DISTRIBUTED}, 'Internal Design'; pytorch#66229", alone=True)
def hooks_see_the_gradients_of_their_process(check: Check) -> None:
    """With two processes, hooks get the gradients of their own; ``.grad`` is the mean of both."""
    log, gradients = of_two(check, _step_with_hooks)
    check.equal("output in the first process", log.get("output"), 6.0)
    check.order("calls of the module's hook", log["calls of the module's hook"], [(14.0, 7.0)])
    check.equal("gradient that the hook on w gets", log.get("gradient that the hook on w gets"), 21.0)
    check.equal("gradients of x and w: 7·2, and 7·(3 + 5)/2", gradients, [[14.0], [28.0]])


@program("DS-07", PROMISE, since="1.8", source=COMM)
def a_comm_hook_gives_a_future(check: Check) -> None:
    """A comm hook that does not communicate has to give a completed Future all the same; a tensor is refused."""
    with process_group(check):
        net = scale()
        wrapper = nn.parallel.DistributedDataParallel(net)
        wrapper.register_comm_hook(None, lambda state, bucket: completed(bucket, 1))
        wrapper(torch.tensor([3.0])).backward()
        check.equal("gradient with a completed future", net.w.grad, [3])
        wrapper = nn.parallel.DistributedDataParallel(scale())
        wrapper.register_comm_hook(None, lambda state, bucket: _reduced(bucket)[0])
        output = wrapper(torch.tensor([3.0]))
        check.raises("backward with a tensor", RuntimeError, output.backward, "must return a torch.futures.Future")


@program("DS-08", PROMISE, since="1.13", source="DDP Communication Hooks, 'How to Save and Load Hook State'")
def states_of_comm_hooks_are_serializable(check: Check) -> None:
    """The state of a comm hook survives pickling, save its process group, which becomes the default one."""
    with process_group(check):
        module = import_module("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")
        state = module.PowerSGDState(process_group=None, matrix_approximation_rank=2, start_powerSGD_iter=5)
        state.iter = 7
        state.error_dict[0] = torch.tensor([1.0, 2.0])
        restored = pickle.loads(pickle.dumps(state))
        check.equal("rank, start and step", _numbers(restored), [2, 5, 7])
        check.equal("errors fed back", restored.error_dict, {0: [1.0, 2.0]})
        default = import_module("torch.distributed.distributed_c10d")._get_default_group()
        check.true("the process group is the default one", restored.process_group is default)


def _numbers(state: Any) -> list[int]:
    """What a PowerSGDState was made with, and how far it is."""
    return [state.matrix_approximation_rank, state.start_powerSGD_iter, state.iter]
