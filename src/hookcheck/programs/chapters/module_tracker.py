"""What does ``ModuleTracker`` promise, torch's own use of global forward hooks and multi-grad hooks?

It stands on global forward hooks and on hooks that wait for several gradients, and ``FlopCounterMode`` stands on it.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.compiling import dynamo
from hookcheck.programs.host_changes import offered
from hookcheck.programs.nets import leaf, net, weighted
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting

TRACKER = "torch.utils.module_tracker.ModuleTracker"


def tracking() -> Any:
    """A context that knows which modules run."""
    from torch.utils.module_tracker import ModuleTracker

    return ModuleTracker()


def noting_net(tracker: Any, log: list[Any]) -> Any:
    """A network ``Net`` with an ``inner`` module, which both note what the tracker says in forward and in backward."""

    def note(where: str) -> None:
        log.append((where, sorted(tracker.parents), tracker.is_bw))

    def noted(tensor: Any, where: str) -> Any:
        note(f"{where}, forward")
        if tensor.requires_grad:
            tensor.register_hook(lambda _: note(f"{where}, backward"))
        return tensor

    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return noted(x * 2, "inner") * 3

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Any) -> Any:
            return noted(self.inner(noted(x * 5, "before") * 1) * 7, "after") * 11

    return Net()


OUTER, INNER = ["Global", "Net"], ["Global", "Net", "Net.inner"]

FORWARD = [("before, forward", OUTER, False), ("inner, forward", INNER, False), ("after, forward", OUTER, False)]

BACKWARD = [("after, backward", OUTER, True), ("inner, backward", INNER, True), ("before, backward", OUTER, True)]


@program("MT-01", PROMISE, since="2.4", source=f"{TRACKER}; pytorch#125352")
def it_names_the_modules_that_run(check: Check) -> None:
    """In the context ``parents`` holds the names of the modules that are being executed, in forward and in backward,
    and always ``Global``; ``is_bw`` says which of the two it is."""
    log: list[Any] = []
    with tracking() as tracker:
        model = noting_net(tracker, log)
        for time in ("first", "second"):
            log.clear()
            x = torch.tensor([1.0], requires_grad=True)
            loss = model(x) * 1
            check.order(f"in the {time} forward", log, FORWARD)
            check.equal(f"after the {time} forward", [sorted(tracker.parents), tracker.is_bw], [["Global"], False])
            log.clear()
            loss.backward()
            check.order(f"in the {time} backward", log, BACKWARD)
            check.equal(f"after the {time} backward", [sorted(tracker.parents), tracker.is_bw], [["Global"], False])
            check.equal(f"gradient of the {time}", x.grad, [2310])
    where_one_direction_is_short(check)
    past_its_parent(check)
    of_nested_tensors(check)


def past_its_parent(check: Check) -> None:
    """The same of a module whose parent is not called: its name is that in the state dict nevertheless."""
    names: list[str] = []

    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            names.extend(sorted(tracker.parents))
            return x

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = torch.nn.Sequential(Inner())

        def forward(self, x: Any) -> Any:
            return self.block[0](x)

    with tracking() as tracker:
        Net()(torch.tensor([1.0]))
    check.order("in a module that is called past its parent", names, ["Global", "Net", "Net.block.0"])


def of_nested_tensors(check: Check) -> None:
    """The same where arguments and results are in containers of some depth."""
    log: list[Any] = []

    class Net(torch.nn.Module):
        def forward(self, given: Any) -> Any:
            x = given["pair"][0] * 3
            x.register_hook(lambda grad: log.append(("inside", sorted(tracker.parents))))
            return {"pair": [x * 5, None]}

    with tracking() as tracker:
        x = torch.tensor([1.0], requires_grad=True) * 2
        x.register_hook(lambda grad: log.append(("before", sorted(tracker.parents))))
        (Net()({"pair": (x * 1, None)})["pair"][0] * 7).backward()
    check.order("in the backward of nested tensors", log, [("inside", OUTER), ("before", ["Global"])])


def where_one_direction_is_short(check: Check) -> None:
    """The same where nothing is done after the module, or nothing differentiated."""
    log: list[Any] = []
    with tracking() as tracker:
        model = noting_net(tracker, log)
        with torch.no_grad():
            model(torch.tensor([1.0]))
        check.order("in a forward without gradient", log, FORWARD)
        check.equal("after a forward without gradient", sorted(tracker.parents), ["Global"])
        y = model(torch.tensor([1.0], requires_grad=True))
        log.clear()
        y.backward()
        check.order("in a backward that begins at the output", log, BACKWARD)


@program("MT-02", PROMISE, since="2.4", source=f"{TRACKER}, 'context manager'")
def it_ends_with_its_context(check: Check) -> None:
    """Outside of the context nothing is tracked any more: neither new forwards nor the backward of earlier ones."""
    log: list[Any] = []
    with tracking() as tracker:
        model = noting_net(tracker, log)
        y = model(torch.tensor([1.0], requires_grad=True))
        check.order("in a forward of the context", log, FORWARD)
    log.clear()
    (y * 1).backward()
    check.equal("in its backward", [parents for _, parents, _ in log], [["Global"]] * 3)
    log.clear()
    model(torch.tensor([1.0], requires_grad=True)).backward()
    check.equal("in a new forward and backward", [parents for _, parents, _ in log], [["Global"]] * 6)
    with suppress(KeyError), tracking() as left_by_an_error:
        y = noting_net(left_by_an_error, log)(torch.tensor([1.0], requires_grad=True))
        log.clear()
        raise KeyError("the context is left")
    (y * 1).backward()
    check.equal("in a backward after an error", [parents for _, parents, _ in log], [["Global"]] * 3)


PLACES = {
    "ModuleTracker": "torch.utils.module_tracker",
    "FlopCounterMode": "torch.utils.flop_counter",
    "CommDebugMode": "torch.distributed.tensor.debug",
    "ModTracker": "torch.distributed._tools.mod_tracker",
    "MemTracker": "torch.distributed._tools.mem_tracker",
}
"""What follows modules by hooks on all of them, and where it is: since 2.6 in torch.distributed as well."""


def trackers() -> list[str]:
    """The names of those that this torch has."""
    return list(PLACES)[: None if offered((2, 6)) and torch.distributed.is_available() else 2]


def tracker_of(name: str) -> Any:
    """A new one by its name."""
    options = {"display": False} if name == "FlopCounterMode" else {}
    return getattr(import_module(PLACES[name]), name)(**options)


def _parents(tracker: Any) -> list[str]:
    """The names of the modules that run, as what tracks them has it, or what that is made of."""
    for name in ("mod_tracker", "advanced_module_tracker"):
        tracker = getattr(tracker, name, tracker)
    return sorted(tracker.parents)


def _hooks_left(module: Any) -> dict[str, int]:
    """How many hooks there are on all modules, a module, its weight and all steps, by kind, of which there are any."""
    places = (nn.modules.module, module, module.weight, import_module("torch.optim.optimizer"))
    names = [(place, name) for place in places for name in dir(place) if "_hooks" in name]
    tables = {f"{type(place).__name__}{name}": getattr(place, name) for place, name in names}
    return {name: len(table) for name, table in tables.items() if isinstance(table, dict) and table}


@program("MT-03", PROMISE, since="2.4", source=f"{TRACKER} and its like, 'context manager'; pytorch#191392")
def what_tracks_modules_leaves_no_hook(check: Check) -> None:
    """What follows modules in a context lets a module be called again and again, and leaves no hook of its own on any
    module or parameter; those of others are called once a call, within and after it, also after an error in it."""
    for name in trackers():
        log: list[Any] = []
        module = nn.Linear(1, 1)
        module.register_forward_hook(noting(log, "forward"))
        module.register_full_backward_hook(noting(log, "backward"))
        left = _hooks_left(module)

        def run(module: Any = module) -> None:
            module(leaf(2.0)).sum().backward()

        with suppress(ValueError), tracker_of(name):
            check.works(f"{name}: the first call", run)
            if name != "MemTracker":  # which says that it counts one call alone
                check.works(f"{name}: the second call", run)
            raise ValueError("on purpose")
        check.equal(f"{name}: hooks that are left", _hooks_left(module), left)
        with suppress(TypeError), tracker_of(name):
            module(object())
        check.equal(f"{name}: hooks that an error leaves", _hooks_left(module), left)
        log.clear()
        check.works(f"{name}: a call after it", run)
        check.order(f"{name}: hooks in a call after it", log, ["forward", "backward"])


@program("MT-04", PROMISE, since="2.4", source=f"{TRACKER}.parents; 'all the Modules currently being executed'")
def it_follows_errors_and_recursion(check: Check) -> None:
    """A module that ended by an error is not executed any more; one that calls itself is, until its outer call ends."""

    def note() -> None:
        log.append(_parents(tracker))

    for name in trackers():
        if name == "MemTracker":
            continue  # it is made of ModTracker
        log = list[Any]()
        module = net(lambda module, act: act())
        with tracker_of(name) as tracker:
            with suppress(ZeroDivisionError):
                module(lambda: 1 / 0)
            check.equal(f"{name}: after an error", _parents(tracker), ["Global"])
            module(note)
            check.equal(f"{name}: in a call after it", log, [["Global", "Net"]])
        if name == "CommDebugMode" or not offered((2, 6)):
            continue  # up to 2.13 it lets no module be called twice; in 2.4 no tracker lets one call itself
        log.clear()
        twice = lambda module=module: [module(note), note()]  # noqa: E731
        with tracker_of(name) as tracker:
            module(twice)
            check.equal(f"{name}: in the inner and the outer call", log, [["Global", "Net"]] * 2)
            check.equal(f"{name}: after them", _parents(tracker), ["Global"])
    if "ModTracker" in trackers() and offered((2, 6)) and dynamo().is_dynamo_supported():
        _after_an_error_in_compiled_code(check)


def _after_an_error_in_compiled_code(check: Check) -> None:
    module = net(lambda module, act: act())
    with suppress(KeyError):  # Dynamo of 2.8 does not know ZeroDivisionError
        torch.compile(module, backend="eager")(lambda: {}["nothing"])
    dynamo().reset()
    log: list[Any] = []
    with tracker_of("ModTracker") as tracker:
        module(lambda: log.append(_parents(tracker)))
    check.equal("ModTracker: after an error in a compiled module", log, [["Global", "Net"]])


@program("MT-05", PIN, since="2.6", source="torch.distributed._tools.mod_tracker.ModTracker.register_user_hooks")
def hooks_of_the_other_tracker(check: Check) -> None:
    """``ModTracker`` calls its hooks once for each call of a module and its backward, on the way in and on the way out,
    with the module, whose name is among ``parents``; one of a kind can be registered, until they are cleared."""
    kinds = ("pre_fw_hook", "post_fw_hook", "pre_bw_hook", "post_bw_hook")
    if "ModTracker" not in trackers():
        raise NotOffered("this torch is built without torch.distributed")
    tracker = tracker_of("ModTracker")
    log: list[Any] = []

    def noted(kind: str) -> Any:
        return lambda module, *given: log.append((kind, names[module], paths[names[module]] in tracker.parents))

    inner = weighted(3.0)
    outer = nn.Sequential(inner)
    names = {outer: "outer", inner: "inner"}
    paths = {"outer": "Sequential", "inner": "Sequential.0"}
    tracker.register_user_hooks(**{kind: noted(kind) for kind in kinds})
    with tracker:
        y = outer(leaf(2.0)) * 1
        forward = [*log]
        log.clear()
        y.backward()
    before, after = [("pre_fw_hook", name, True) for name in ("outer", "inner")], ("inner", "outer")
    check.order("forward", forward, [*before, *(("post_fw_hook", name, True) for name in after)])
    backward = [(kind, name, True) for kind in ("pre_bw_hook", "post_bw_hook") for name in ("inner", "outer")]
    check.order("backward", sorted(log), sorted(backward))
    for kind in kinds:
        again = lambda: tracker.register_user_hooks(**{kind: noted(kind)})  # noqa: E731, B023
        check.raises(f"a second {kind}", AssertionError, again, "Only one")
    tracker = tracker_of("ModTracker")  # a refusal takes the other kinds off
    tracker.register_user_hooks(**{kind: noted(kind) for kind in kinds})
    tracker.clear_user_hooks()
    log.clear()
    with tracker:
        (outer(leaf(2.0)) * 1).backward()
    check.order("hooks once they are cleared", log, [])


@program("MT-07", PIN, since="2.6", source="torch.distributed._tools.mod_tracker.ModTracker.register_user_hooks")
def hooks_of_the_other_tracker_in_two_calls(check: Check) -> None:
    """Hooks of two kinds that a ``ModTracker`` gets by two calls are called, as those that it gets by one."""
    if not torch.distributed.is_available():
        raise NotOffered("this torch is built without torch.distributed")
    pre, post = "pre_fw_hook", "post_fw_hook"
    for name, calls in {"one call": [[pre, post]], "two calls": [[pre], [post]]}.items():
        tracker = tracker_of("ModTracker")
        log: list[str] = []
        for kinds in calls:
            tracker.register_user_hooks(**{kind: lambda *given, kind=kind: log.append(kind) for kind in kinds})  # noqa: B023
        with tracker:
            nn.Identity()(torch.ones(1))
        check.order(f"calls of hooks that {name} registered", log, [pre, post])


@program("MT-06", PROMISE, since="2.6", source="torch.utils.flop_counter.FlopCounterMode; 'hierarchical output'")
def flops_are_counted_by_module(check: Check) -> None:
    """``FlopCounterMode`` counts the operations of each module in forward and in backward, those of its children with
    its own; hooks of modules are called as without it, and what they do is counted."""
    from torch.utils.flop_counter import FlopCounterMode

    net = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Linear(3, 5, bias=False))
    log: list[str] = []
    net[0].register_full_backward_hook(noting(log, "backward"))
    net[0].register_forward_pre_hook(lambda module, args: log.append("forward") or (args[0] @ torch.eye(2),))
    x = torch.ones(4, 2, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        loss = net(x).sum() * 1
        forward = _flops(counter)
        loss.backward()
        both = _flops(counter)
    # (4, 2) by (2, 3): 2·4·2·3 = 48; then (4, 3) by (3, 5): 120; the hook of the first one does 2·4·2·2 = 32 more
    due = {"Global": 200, "Sequential": 200, "Sequential.0": 80, "Sequential.1": 120}
    check.equal("forward", forward, due)
    # backward takes twice as much for each weight that is learned; for the product of the hook, with a constant, once
    check.equal("forward and backward", both["Global"], 200 + 2 * 168 + 32)
    check.equal("of the last module", both["Sequential.1"], 360)
    check.order("hooks", log, ["forward", "backward"])
    with counter:
        net[1](torch.ones(4, 3)).sum().backward()  # it reaches no input, by which it would leave the module
        ended = _flops(counter)["Sequential.1"]
        check.equal("of the last module, counted anew", ended, 240)  # forward and the weight's gradient
        torch.ones(4, 2) @ torch.ones(2, 3)
    check.equal("of the last module, once its backward has ended", _flops(counter)["Sequential.1"] - ended, 0)
    deep, names = nn.Linear(2, 3, bias=False), ["Global", *("Sequential" + ".0" * depth for depth in range(4))]
    with FlopCounterMode(display=False) as counter:
        nn.Sequential(nn.Sequential(nn.Sequential(deep)))(x)
    check.equal("by a module in the third of three", _flops(counter), dict.fromkeys(names, 48))
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), FlopCounterMode(display=False) as counter:
            net(torch.ones(4, 2))
        check.equal(f"forward under {mode.__name__}", _flops(counter), due)
    with FlopCounterMode(display=False) as counter:
        nn.Sequential(nn.Linear(2, 3, bias=False), torch.jit.script(net[1]))(torch.ones(4, 2))
    check.equal("forward of a part that is scripted", _flops(counter)["Global"], 48 + 120)


def _flops(counter: Any) -> dict[str, int]:
    """What was counted so far, by module."""
    return {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
