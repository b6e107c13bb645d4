"""What do FSDP and fully_shard do by hooks, and what with those of others?

Both gather the parameters of a module before it needs them and free them afterwards: fully_shard by forward pre-hooks
and forward hooks on the module. FSDP takes a communication hook, ``hook(state, grad)``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE, UNSPECIFIED
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.parallel import scale, state_hooks_of_a_weight
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.host_changes import offered
from hookcheck.programs.processes import of_two, process_group
from hookcheck.programs.program import program

FSDP1 = "torch.distributed.fsdp.FullyShardedDataParallel"
FSDP2 = "torch.distributed.fsdp.fully_shard"


def _since_on_the_cpu(major: int, minor: int, what: str) -> None:
    """What shards was made for CUDA first (pytorch#112145, pytorch#145935)."""
    number = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if number < (major, minor):
        raise NotOffered(f"{what} runs on the CPU since torch {major}.{minor}")


def wrapped(module: Any, **options: Any) -> Any:
    """A module under FSDP that keeps its parameters whole, since there is one process only."""
    _since_on_the_cpu(2, 2, "FullyShardedDataParallel")
    fsdp = import_module("torch.distributed.fsdp")
    whole = {"sharding_strategy": fsdp.ShardingStrategy.NO_SHARD, "device_id": torch.device("cpu")}
    return fsdp.FullyShardedDataParallel(module, use_orig_params=True, **{**whole, **options})


def sharded(module: Any, processes: int = 1, **options: Any) -> Any:
    """A module under fully_shard, on a mesh of so many processes; it gets DTensors for parameters."""
    _since_on_the_cpu(2, 7, "fully_shard")
    mesh = import_module("torch.distributed.device_mesh").init_device_mesh("cpu", (processes,))
    fsdp = import_module("torch.distributed.fsdp")
    fsdp.fully_shard(module, mesh=mesh, **{"reshard_after_forward": True, **options})
    return module


@program("DS-09", PROMISE, since="1.13", source=f"{FSDP1}.register_comm_hook")
def a_comm_hook_of_fsdp(check: Check) -> None:
    """FSDP takes one comm hook, on the root; the hook gets its state and the gradients, which it reduces in place."""
    with process_group(check):
        log: list[Any] = []

        def times(factor: float) -> Any:
            return lambda state, grad: (log.append((state, grad.tolist())), grad.mul_(factor))[0]

        net = scale()
        wrapper = wrapped(net)
        wrapper.register_comm_hook("a state", times(10))
        again = lambda: wrapper.register_comm_hook("another", times(100))  # noqa: E731
        check.raises("a second registration", AssertionError, again, "already registered")
        wrapper(torch.tensor([3.0])).backward()
        check.order("state and gradients", log, [("a state", [3.0])])
        check.equal("gradient", net.w.grad, [30])

        root = wrapped(nn.Sequential(wrapped(scale())))
        root(torch.tensor([3.0]))
        child = root.module[0]
        not_root = lambda: child.register_comm_hook(None, times(10))  # noqa: E731
        check.raises("registration on a child", AssertionError, not_root, "root")


@program("DS-10", UNSPECIFIED, since="1.13", source=f"{FSDP1}, limitations")
def double_backward_under_fsdp(check: Check) -> None:
    """FSDP does not support double backward, because of how it registers its backward hooks."""
    with process_group(check):
        net = scale()
        wrapper = wrapped(net)
        x = torch.tensor([3.0], requires_grad=True)
        (first,) = torch.autograd.grad((wrapper(x) ** 3).sum(), x, create_graph=True)
        check.equal("first derivative", first.detach(), [216])  # (wx)³: 3·w³·x²
        first.sum().backward()
        check.equal("second derivative", x.grad, [144])  # 6·w³·x
        check.equal("derivative of the first by w", net.w.grad, [324])  # 9·w²·x²


@program("DS-11", PROMISE, since="2.6", source=FSDP2)
def fully_shard_works_by_hooks(check: Check) -> None:
    """fully_shard gathers parameters in a forward pre-hook and frees them in a forward hook; backward does the like."""
    with process_group(check):
        net = scale()
        before = len(net._forward_pre_hooks), len(net._forward_hooks)
        sharded(net)
        after = len(net._forward_pre_hooks), len(net._forward_hooks)
        check.equal("pre-hooks and hooks that it adds", [b - a for a, b in zip(before, after)], [1, 1])
        log: list[Any] = []
        net.register_forward_pre_hook(lambda module, args: log.append(("pre", type(module.w).__name__)))
        net.register_forward_hook(lambda module, args, output: log.append(("post", type(module.w).__name__)))
        net.register_full_backward_hook(
            lambda module, grad_input, grad_output: log.append(("back", grad_input[0].item()))
        )
        x = torch.tensor([3.0], requires_grad=True)
        output = net(x)
        output.backward()
        check.equal("output", output, [6])
        check.order("the weight in later hooks", log, [("pre", "Parameter"), ("post", "DTensor"), ("back", 2.0)])
        check.equal("gradient of x", x.grad, [2])
        check.equal("gradient of w, sharded", [type(net.w.grad).__name__, net.w.grad.to_local()], ["DTensor", [3.0]])


@program("DS-12", PROMISE, since="2.6", source="torch.distributed.fsdp.register_fsdp_forward_method")
def other_entry_points_pass_by_the_hooks(check: Check) -> None:
    """A method other than forward passes by the hooks of fully_shard, unless it is registered as a forward method."""
    with process_group(check):
        x = torch.tensor([3.0])
        check.equal("weight in an unregistered method", type(sharded(scale()).tenfold(x)).__name__, "DTensor")
        net = sharded(scale())
        import_module("torch.distributed.fsdp").register_fsdp_forward_method(net, "tenfold")
        output = net.tenfold(x)
        check.equal("output of a registered method", [type(output).__name__, output], ["Tensor", [60.0]])
        check.equal("weight after it", type(net.w).__name__, "DTensor")


def _weighted() -> Any:
    """A module that gives w·x, element by element, with w = [2, 3]: one for each of two processes."""
    net = scale()
    net.w = nn.Parameter(torch.tensor([2.0, 3.0]))
    return net


def _step_sharded(rank: int) -> tuple[dict[str, Any], list[Any]]:
    """What hooks of a sharded module see in one of two processes; what the process holds, and its gradients."""
    net, log = sharded(_weighted(), 2), {"calls": []}  # type: tuple[Any, dict[str, Any]]
    held = net.w.to_local().tolist()
    net.register_forward_pre_hook(lambda module, args: log.update({"weight in the pre-hook": module.w.tolist()}))
    net.register_forward_hook(lambda module, args, output: log.update(output=output.tolist()))
    net.register_full_backward_hook(lambda module, gi, go: log["calls"].append((gi[0].tolist(), go[0].tolist())))
    x = torch.tensor([1.0, 10.0]).mul(rank + 3).requires_grad_()
    net(x).mul(7).sum().backward()
    return log, [held, x.grad.tolist(), net.w.grad.to_local().tolist()]


@program("DS-20", PROMISE, since="2.6", source=FSDP2, alone=True)
def hooks_in_two_processes(check: Check) -> None:
    """With two processes, hooks on the module meet the whole weight and the gradients of their own process; after
    backward each process has its shard of the mean."""
    log, (held, of_x, of_w) = of_two(check, _step_sharded)
    check.equal("what the first process holds", held, [2.0])
    check.equal("weight in the pre-hook", log.get("weight in the pre-hook"), [2.0, 3.0])
    check.equal("output", log.get("output"), [6.0, 90.0])
    check.order("calls of the full backward hook", log["calls"], [([14.0, 21.0], [7.0, 7.0])])
    check.equal("gradient of x", of_x, [14.0, 21.0])
    check.equal("the shard of w's gradient", of_w, [24.5])


def _steps_of_fsdp(rank: int) -> dict[str, Any]:
    """What hooks of a module under FSDP see in one of two processes, by name, and what gradients its weight has."""
    fsdp, checkpoint = import_module("torch.distributed.fsdp"), import_module("torch.utils.checkpoint").checkpoint
    seen: dict[str, Any] = {}
    calls: dict[str, Any] = {
        "trained": lambda root, x: root(x),
        "trained, checkpointed": lambda root, x: checkpoint(root, x, use_reentrant=False),
        "frozen": lambda root, x: root(x),
        "frozen, by keyword": lambda root, x: root(x=x),
    }
    for strategy in ("NO_SHARD", *(("FULL_SHARD",) if offered((2, 7)) else ())):  # gloo scatters nothing before
        for way, call in calls.items():
            module, log, gradients = _weighted(), list[Any](), list[Any]()
            module.w.requires_grad_(way.startswith("trained"))
            module.register_full_backward_hook(
                lambda module, gi, go, log=log: log.append([module.w.tolist(), go[0].tolist()])
            )
            root = wrapped(module, sharding_strategy=fsdp.ShardingStrategy[strategy])
            for _ in range(2):
                x = torch.tensor([1.0, 10.0]).mul(rank + 3).requires_grad_()
                call(root, x).mul(7).sum().backward()
                of_w = module.w.grad
                gradients.append([x.grad.tolist(), of_w if of_w is None else of_w.tolist()])
            seen[f"{strategy}, {way}"] = [log, gradients, module.w.tolist()]
    return seen


@program("DS-47", PROMISE, since="2.2", source=f"{FSDP1}, sharding_strategy", alone=True)
def fsdp_in_two_processes(check: Check) -> None:
    """With two processes, hooks of a module under FSDP meet whole weights and gradients of their own process; after a
    backward, also of a checkpoint and of a frozen weight, each has its shard, with the mean of all gradients so far."""
    for name, (log, gradients, weight) in of_two(check, _steps_of_fsdp).items():
        check.order(f"{name}: the full backward hook", log, [[[2.0, 3.0], [7.0, 7.0]]] * 2)
        whole, frozen = name.startswith("NO_SHARD"), "frozen" in name
        for step in (1, 2):
            mean = [24.5 * step, 245.0 * step]  # 7·(3 + 4)/2·(1, 10)
            due = [[14.0, 21.0], None if frozen else mean if whole else mean[:1]]
            check.equal(f"{name}: gradients of x and w in step {step}", gradients[step - 1], due)
        check.equal(f"{name}: the weight after it", weight, [2.0, 3.0] if whole else [2.0])


WHOLE, SHARD = "Parameter", "DTensor"
"""The classes of a weight that is gathered, and of one that is not."""

MEETS = {
    ("before", False): (WHOLE, WHOLE),
    ("before", True): (WHOLE, WHOLE),
    ("after", False): (WHOLE, SHARD),
    ("after", True): (SHARD, WHOLE),
}
"""What weight a forward pre-hook and a forward hook meet that are registered before or after fully_shard, prepended or
not: its own pre-hook is put before those that there are, its forward hook after them."""


def _look_on(net: Any, when: str, log: dict[str, list[Any]]) -> None:
    """Puts hooks on a module, prepended and not, that note the class of its weight when they are called."""
    for prepend in (False, True):
        name = f"{when}{', prepended' if prepend else ''}"
        pre, post = log.setdefault(f"pre-hook {name}", []), log.setdefault(f"forward hook {name}", [])
        net.register_forward_pre_hook(
            lambda module, args, pre=pre: pre.append(type(module.w).__name__), prepend=prepend
        )
        net.register_forward_hook(
            lambda module, args, output, post=post: post.append(type(module.w).__name__), prepend=prepend
        )


@program("DS-23", PIN, since="2.6", source=f"{FSDP2}; FSDPState.init, 'prepend=True', 'prepend=False'")
def hooks_before_and_after_those_of_fully_shard(check: Check) -> None:
    """The parameters are gathered before every forward pre-hook that there was, and freed after every forward hook that
    there was; hooks that come later and are not prepended run after either, and those that are prepended before it."""
    with process_group(check):
        net, log = scale(), {}  # type: tuple[Any, dict[str, list[Any]]]
        _look_on(net, "before", log)
        sharded(net)
        _look_on(net, "after", log)
        x = torch.tensor([3.0], requires_grad=True)
        output = net(x)
        output.backward()
        for (when, prepend), classes in MEETS.items():
            for kind, expected in zip(("pre-hook", "forward hook"), classes):
                name = f"{kind} {when}{', prepended' if prepend else ''}"
                check.order(f"the weight in each call of a {name}", log[name], [expected])
        check.equal("output and gradients", [output, x.grad, net.w.grad.to_local()], [[6.0], [2.0], [3.0]])


@program("DS-24", PROMISE, since="2.6", source="torch.distributed.fsdp.FSDPModule.unshard; FSDPParamGroup's pre-hooks")
def states_are_of_shards(check: Check) -> None:
    """A state that is saved of a module under fully_shard is of shards, and one is loaded into shards, also while its
    parameters are gathered; a user's hooks on either run once each."""
    with process_group(check):
        for when in ("sharded", "gathered"):
            net, log = sharded(scale()), []  # type: tuple[Any, list[str]]
            net(torch.tensor([3.0]))
            net.register_state_dict_pre_hook(lambda *args, log=log: log.append("before saving"))
            net._register_state_dict_hook(lambda *args, log=log: log.append("after saving"))
            net._register_load_state_dict_pre_hook(lambda *args, log=log: log.append("before loading"))
            net.register_load_state_dict_post_hook(lambda *args, log=log: log.append("after loading"))
            if when == "gathered":
                net.unshard()
                check.equal("the weight that is gathered", [type(net.w).__name__, net.w], [WHOLE, [2.0]])
            state = net.state_dict()
            check.equal(f"{when}: classes of what is saved", _classes(state), {"w": SHARD})
            check.equal(f"{when}: the shard that is saved", state["w"].to_local(), [2.0])
            if when == "gathered":
                net.unshard()
            check.works(f"{when}: loading", lambda net=net, state=state: net.load_state_dict({"w": state["w"] * 5}))
            check.equal(f"{when}: the weight after it", [type(net.w).__name__, net.w.to_local()], [SHARD, [10.0]])
            check.equal(f"{when}: output after it", net(torch.tensor([3.0])), [30.0])
            check.order(f"{when}: hooks", log, ["before saving", "after saving", "before loading", "after loading"])


def _classes(state: Any) -> dict[str, str]:
    """The name of the class of each tensor of a state."""
    return {key: type(value).__name__ for key, value in state.items()}


@program("DS-25", PROMISE, since="2.6", source="torch.distributed.fsdp.FSDPModule.set_all_reduce_hook; pytorch#117984")
def hooks_of_a_shard_meet_its_gradient(check: Check) -> None:
    """A post-accumulate-grad hook of a sharded parameter is called once a backward, when the gradient is complete; an
    all-reduce hook of fully_shard gets what was reduced before that, and what it changes in place counts."""
    with process_group(check):
        net, log = sharded(scale()), []  # type: tuple[Any, list[Any]]

        def reduced(gradient: Any) -> None:
            log.append(("reduced", gradient.tolist()))
            gradient.mul_(10)

        net.set_all_reduce_hook(reduced)
        net.w.register_post_accumulate_grad_hook(
            lambda weight: log.append(("accumulated", type(weight).__name__, weight.grad.to_local().tolist()))
        )
        for value, total in ((3.0, 30.0), (5.0, 80.0)):
            log.clear()
            net(torch.tensor([value])).backward()
            expected = [("reduced", [value]), ("accumulated", SHARD, [total])]
            check.order(f"hooks in the backward of {value:g}", log, expected)
            check.equal(f"gradient after it, of {value:g}", net.w.grad.to_local(), [total])


@program("DS-27", PIN, since="2.6", source=f"{FSDP2}; pytorch#129450")
def a_weight_keeps_its_hooks_under_fully_shard(check: Check) -> None:
    """Hooks on a parameter that were registered before or after fully_shard are called once in a backward, or they are
    refused aloud: none is lost without a word."""
    with process_group(check):
        state_hooks_of_a_weight(check, "fully_shard", sharded)


@program("DS-28", PIN, since="1.13", source=f"{FSDP1}, 'use_orig_params'")
def a_weight_keeps_its_hooks_in_fsdp(check: Check) -> None:
    """Hooks on a parameter that were registered before or after FullyShardedDataParallel, which keeps the parameters
    that there were, are called once in a backward, or they are refused aloud: none is lost without a word."""
    with process_group(check):
        state_hooks_of_a_weight(check, "FullyShardedDataParallel", wrapped)
