"""What becomes of hooks and their handles in pickle, ``torch.save`` and ``torch.load``, and in pickles of old?

A module takes its hooks along wherever it is pickled whole, as far as pickle can take them: functions of a module,
partials, objects and bound methods can be, lambdas and closures cannot. A state_dict has no hooks, nor have parameters
and optimizers that come from a pickle. A handle that is pickled with its module belongs to the restored one.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.pickled import (
    WAYS,
    exercised,
    module_read,
    note,
    noted,
    noting,
    offered_kinds,
    optimizer_read,
    read_by_a_class_of_no_optimizer,
    register,
    through_pickle,
    through_save,
)
from hookcheck.programs.processes import anew
from hookcheck.programs.program import program
from hookcheck.programs.watching import linear

HANDLE = "torch.utils.hooks.RemovableHandle"
SETSTATE = "torch.nn.Module.__setstate__"


def note_first(module: Any, *arguments: Any) -> None:
    """A hook that is a function of a module, as pickle wants it."""
    note("function", module)


class Owner:
    """Has a method that is a hook, and is one itself."""

    def hook(self, module: Any, *arguments: Any) -> None:
        """A bound method as a hook."""
        note("bound method", module)

    def __call__(self, module: Any, *arguments: Any) -> None:
        """An object as a hook."""
        note("object", module)


def note_keywords(word: str, module: Any, args: Any, kwargs: Any, *output: Any) -> None:
    """A hook ``with_kwargs`` that notes the keywords too."""
    note((word, *kwargs), module)


def _called(module: Any) -> list[Any]:
    noted(module)
    module(torch.ones(1, 1))
    return noted(module)


@program("SZ-27", PROMISE, since="1.7", source=f"pytorch#89389; {HANDLE}.__getstate__")
def a_restored_handle_removes_the_restored_hook(check: Check) -> None:
    """A handle that is pickled with its module removes the hook of the restored module, not that of the original."""
    net = linear()
    net.register_forward_hook(noting("first"))
    handle = net.register_forward_hook(noting("second"))
    other, restored = through_pickle((net, handle))
    check.order("hooks of what is restored", _called(other), ["first", "second"])
    restored.remove()
    check.order("hooks once the restored handle is removed", _called(other), ["first"])
    check.order("hooks of the original", _called(net), ["first", "second"])
    handle.remove()
    check.order("hooks of the original once its handle is removed", _called(net), ["first"])


@program("SZ-01", PROMISE, since="1.7", source=f"{HANDLE}.__getstate__, __setstate__")
def handles_go_by_every_way(check: Check) -> None:
    """A handle that went with its module through pickle, ``torch.save`` or deepcopy removes the new module's hook."""
    for way, restore in WAYS.items():
        for kind in offered_kinds():
            net = linear()
            handle = register(net, kind, noting("hook"))
            other, restored = restore((net, handle))
            before = exercised(other)
            restored.remove()
            name = f"{kind} through {way}"
            check.order(
                f"hooks of {name}, before and after", [*before, "removed", *exercised(other)], ["hook", "removed"]
            )
            check.order(f"the original's hooks of {name}", exercised(net), ["hook"])


@program("SZ-02", PROMISE, since="1.7", source=f"{HANDLE}.__getstate__, __setstate__: 'a dead reference'")
def a_handle_outlives_its_module(check: Check) -> None:
    """A handle whose module is gone goes through pickle, ``torch.save`` and deepcopy, and removes nothing."""
    for way, restore in WAYS.items():
        for kind in ("register_forward_hook", "_register_state_dict_hook"):
            handle = getattr(linear(), kind)(noting("hook"))
            other = linear()
            getattr(other, kind)(noting("other"))
            restored = check.works(f"a dead handle of {kind} through {way}", partial(restore, handle))
            if restored is not None:
                restored.remove()
                check.order(f"hooks of {kind} of another module, after {way}", exercised(other), ["other"])


@program("SZ-03", PIN, since="1.7", source=f"{HANDLE}.__setstate__")
def a_restored_handle_keeps_its_place(check: Check) -> None:
    """Restoring a handle keeps later registrations from taking its place: its hook stays when others come."""
    _others_are_registered(check, with_handle=True)


@program("SZ-04", PROMISE, since="1.7", source="torch.nn.Module.register_forward_hook; 'called every time'")
def a_restored_hook_stays_when_others_come(check: Check) -> None:
    """A hook of a module that was pickled without its handle stays when others are registered, in a new process too."""
    _others_are_registered(check, with_handle=False)


def _others_are_registered(check: Check, with_handle: bool) -> None:
    """Unpickles a module as a process would that has registered fewer hooks, and registers more."""
    handles = torch.utils.hooks.RemovableHandle
    start = handles.next_id
    try:
        handles.next_id = start + 2  # so many hooks has the process registered that pickles the module
        net = linear()
        handle = net.register_forward_hook(noting("restored"))
        pickled = pickle.dumps((net, handle if with_handle else None))
        handles.next_id = start
        other, _ = pickle.loads(pickled)
        check.order("hooks before others come", _called(other), ["restored"])
        words = [f"new {number}" for number in range(4)]
        for word in words:
            other.register_forward_hook(noting(word))
        check.order("hooks once others are there", sorted(_called(other)), [*words, "restored"])
    finally:
        handles.next_id = start + 8  # more than were given out


@program("SZ-05", PIN, since="1.7", source=f"{SETSTATE}; relied on by EMA models, wandb, opacus")
def every_kind_of_hook_goes_with_the_module(check: Check) -> None:
    """Hooks of every kind go with a module through pickle, ``torch.save`` and deepcopy, and are given that."""
    for way, restore in WAYS.items():
        net = linear()
        kinds = list(offered_kinds())
        for kind in kinds:
            register(net, kind, noting(kind))
        other = nn.Sequential(restore(net))[0] if way == "deepcopy" else restore(net)
        check.order(f"hooks through {way}", exercised(other), kinds)
        check.order(f"hooks that came to the original meanwhile, with {way}", noted(net), [])
        check.order(f"hooks of the original after {way}", exercised(net), kinds)
        legacy = linear()
        legacy.register_backward_hook(noting("legacy"))
        check.order(f"legacy hooks through {way}", exercised(restore(legacy)), ["legacy"])


@program("SZ-06", PIN, since="2.1", source=f"{SETSTATE}; 'prepend', 'always_call'")
def flags_go_with_the_hooks(check: Check) -> None:
    """Through pickle, ``torch.save`` and deepcopy forward hooks keep their order and what they were registered with."""
    for way, restore in WAYS.items():
        net = linear()
        net.register_forward_pre_hook(noting("pre"))
        net.register_forward_pre_hook(partial(note_keywords, "pre with kwargs"), with_kwargs=True, prepend=True)
        net.register_forward_hook(noting("post"))
        net.register_forward_hook(partial(note_keywords, "post with kwargs"), with_kwargs=True)
        net.register_forward_hook(noting("always"), always_call=True, prepend=True)
        other = restore(net)
        other(input=torch.ones(1, 1))
        pre = [("pre with kwargs", "input"), "pre"]
        check.order(f"hooks through {way}", noted(other), [*pre, "always", "post", ("post with kwargs", "input")])
        call = partial(other, input=torch.ones(1, 2))
        check.raises(f"a call that raises, after {way}", RuntimeError, call, "shapes cannot be multiplied")
        check.order(f"hooks where the call raises, after {way}", noted(other), [*pre, "always"])


@program("SZ-07", PIN, since="1.8", source=f"{SETSTATE}; register_full_backward_hook, register_backward_hook")
def the_hook_family_goes_with_the_module(check: Check) -> None:
    """A module that has had a hook of one backward family refuses the other one after pickle and deepcopy as well."""
    for way, restore in WAYS.items():
        for first, second in (("backward", "full_backward"), ("full_backward", "backward")):
            net = linear()
            getattr(net, f"register_{first}_hook")(noting("first"))
            refused = getattr(restore(net), f"register_{second}_hook")
            name = f"{second} hook after a {first} hook through {way}"
            check.raises(name, RuntimeError, partial(refused, noting("second")), "Cannot use both regular")


@program("SZ-08", PIN, since="1.7", source=f"{SETSTATE}; 'old checkpoints'")
def an_old_pickle_takes_hooks(check: Check) -> None:
    """A module from a pickle that is older than the tables of hooks takes hooks of every kind."""
    net = aged(linear())
    kinds = list(offered_kinds())
    for kind in kinds:
        check.works(f"registering with {kind}", partial(register, net, kind, noting(kind)))
    check.order("hooks", exercised(net), kinds)


@program("SZ-28", PROMISE, since="1.7", source=f"pytorch#77281; {SETSTATE}")
def old_pickles_work(check: Check) -> None:
    """Standard modules from pickles that are older than the tables of hooks can be called, saved and loaded."""
    x = torch.ones(2, 4)
    modules: dict[str, Any] = {
        "Linear": (nn.Linear(4, 2), x),
        "Conv2d": (nn.Conv2d(1, 1, 1), x.reshape(1, 1, 2, 4)),
        "BatchNorm1d": (nn.BatchNorm1d(4), x),
        "LayerNorm": (nn.LayerNorm(4), x),
        "LSTM": (nn.LSTM(4, 2), x.reshape(2, 1, 4)),
        "GRUCell": (nn.GRUCell(4, 2), x),
        "Embedding": (nn.Embedding(3, 2), torch.tensor([0, 2])),
        "MultiheadAttention": (nn.MultiheadAttention(4, 2), *[x.reshape(2, 1, 4)] * 3),
        "TransformerEncoderLayer": (nn.TransformerEncoderLayer(4, 2, 4), x.reshape(2, 1, 4)),
        "Bilinear": (nn.Bilinear(4, 4, 1), x, x),
        "PReLU": (nn.PReLU(), x),
        "Dropout": (nn.Dropout(), x),
        "Upsample": (nn.Upsample(scale_factor=2), x.reshape(1, 2, 4)),
        "MSELoss": (nn.MSELoss(), x, x),
        "Sequential": (nn.Sequential(nn.Linear(4, 4), nn.Tanh()), x),
    }
    for name, (module, *inputs) in modules.items():
        module = module.eval()
        other = check.works(f"restoring {name}", partial(aged, module))
        check.works(f"calling {name}", partial(other, *inputs))
        state = check.works(f"saving {name}", other.state_dict)
        check.equal(f"what {name} saves", sorted(state or ()), sorted(module.state_dict()))
        check.works(f"loading {name}", partial(other.load_state_dict, module.state_dict()))


FIRST = ("_parameters", "_buffers", "_modules", "_backward_hooks", "_forward_hooks")
"""What modules have kept for themselves from the first release on."""


def aged(module: Any) -> Any:
    """The module as it comes from a pickle that lacks every field of ``nn.Module`` that is not in `FIRST`."""
    later = {name for name in vars(nn.Module()) if name.startswith("_") and name not in FIRST}
    state = {key: value for key, value in vars(module).items() if key not in later}
    state["_modules"] = OrderedDict((name, aged(child)) for name, child in module._modules.items())
    new = object.__new__(type(module))
    new.__setstate__(state)
    return new


@program("SZ-09", PIN, since="2.0", source="torch.optim.Optimizer.__setstate__")
def a_restored_optimizer_takes_hooks(check: Check) -> None:
    """An optimizer that comes from a pickle, as old ones have none, has no hooks, and takes those of every kind."""
    kinds = (
        "step_pre",
        "step_post",
        "state_dict_pre",
        "state_dict_post",
        "load_state_dict_pre",
        "load_state_dict_post",
    )
    for way, restore in WAYS.items():
        optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
        optimizer.register_step_post_hook(noting("lost"))
        other = restore(optimizer)
        offered = [kind for kind in kinds if hasattr(other, f"register_{kind}_hook")]
        for kind in offered:
            getattr(other, f"register_{kind}_hook")(noting(kind))
        other.step()
        other.load_state_dict(other.state_dict())
        check.order(f"hooks after {way}", noted(other), offered)


@program("SZ-10", PIN, since="1.7", source="torch.save; relied on to learn that a hook is not saved")
def pickling_refuses_a_lambda(check: Check) -> None:
    """A module with a lambda or a closure for a hook cannot be pickled: it is an error, and hooks are not left out."""

    def closure(module: Any, *arguments: Any) -> Any:
        return check and None

    for what, hook in (("a lambda", lambda *arguments: None), ("a closure", closure)):
        for kind in offered_kinds():
            net = linear()
            handle = register(net, kind, hook)
            # which exception it is depends on the release of Python
            check.raises(f"pickling {what} of {kind}", Exception, partial(through_pickle, net), "pickle")
            check.raises(f"saving {what} of {kind}", Exception, partial(through_save, net), "pickle")
            handle.remove()
            check.works(f"pickling once {what} of {kind} is removed", partial(through_pickle, net))


@program("SZ-11", PIN, since="1.7", source="torch.save; relied on by who pickles modules with hooks")
def what_can_be_pickled_goes_along(check: Check) -> None:
    """As hooks a module's function, a partial of one, an object and a bound method can be pickled, and are called."""
    hooks = {
        "function": note_first,
        "partial": partial(note, "partial"),
        "object": Owner(),
        "bound method": Owner().hook,
    }
    for way, restore in WAYS.items():
        net = linear()
        for hook in hooks.values():
            net.register_forward_hook(hook)
        check.order(f"hooks through {way}", _called(restore(net)), list(hooks))


@program(
    "SZ-12",
    PIN,
    since="1.7",
    source="torch.nn.Module.state_dict, torch.save; the recommended way",
)
def a_state_dict_has_no_hooks(check: Check) -> None:
    """The state_dict of a module goes through pickle and ``torch.save`` whatever hooks it has, without a warning."""
    net = linear(3.0)
    for kind in offered_kinds():
        register(net, kind, lambda *arguments: None)
    for parameter in net.parameters():
        parameter.register_hook(lambda grad: 2 * grad)
    for way, restore in WAYS.items():
        state = check.silent(f"warnings of {way}", partial(restore, net.state_dict()), "hook")
        check.equal(f"the weight through {way}", state["weight"], [[3]])
    loaded = check.works("loading weights only", partial(through_save, net.state_dict(), weights_only=True))
    check.equal("the weight of weights only", loaded["weight"], [[3]])


@program("SZ-13", PIN, since="1.7", source="torch.nn.Parameter.__reduce_ex__; undocumented")
def parameter_hooks_stay_behind(check: Check) -> None:
    """A parameter's hooks do not go through pickle or ``torch.save``, alone or with its module; there is no warning."""
    for way, restore in (("pickle", through_pickle), ("torch.save", through_save)):
        log: list[str] = []
        net = linear()
        net.weight.register_hook(lambda grad, log=log: log.append("tensor"))
        if hasattr(net.weight, "register_post_accumulate_grad_hook"):
            net.weight.register_post_accumulate_grad_hook(lambda weight, log=log: log.append("accumulated"))
        expected = (
            ["tensor", "accumulated"] if hasattr(torch.Tensor, "register_post_accumulate_grad_hook") else ["tensor"]
        )
        for what, value in (("a parameter", net.weight), ("a module", net)):
            new = check.silent(f"warnings of {way} for {what}", partial(restore, value), "hook")
            weight = getattr(new, "weight", new)
            weight.sum().backward()
            check.order(f"hooks of {what} through {way}", log, [])
            check.equal(f"gradient of {what} through {way}", weight.grad, [[1]])
        net.weight.sum().backward()
        check.order(f"hooks of the original after {way}", log, expected)


@program("SZ-29", PIN, since="1.7", source=f"{SETSTATE}; torch.optim.Optimizer.__setstate__", alone=True, device="cpu")
def in_a_new_process(check: Check) -> None:
    """In a process that has made none, a module from a pickle calls its hooks and its handles remove them; an optimizer
    has none, goes on from its state, and calls once each hook that is registered."""
    net = linear()
    kinds = [*offered_kinds()]
    handles = [register(net, kind, noting(kind)) for kind in kinds]
    seen = anew(module_read, pickle.dumps((net, handles)))
    check.equal("hooks of a module, before and after removal", seen, [kinds, []])
    weight = nn.Parameter(torch.tensor([4.0]))
    optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.5)
    kinds = [kind for kind in ("step_pre", "step_post") if hasattr(optimizer, f"register_{kind}_hook")]
    for kind in kinds:
        getattr(optimizer, f"register_{kind}_hook")(noting("lost"))
    weight.grad = torch.ones(1)
    optimizer.step()  # 4 - 0.5 * 1
    ways = {
        "a new process": partial(anew, optimizer_read),
        "a class of no optimizer": read_by_a_class_of_no_optimizer,
    }
    for where, read in ways.items():
        state = check.works(f"{where}: a step", partial(read, pickle.dumps(optimizer))) or {}
        check.equal(f"{where}: hooks that came along", state.get("hooks"), [])
        check.equal(f"{where}: the weight after a step", state.get("weight"), [3.5 - 0.5 * (0.5 * 1 + 1)])
        for name in ("restored", "another"):
            check.order(f"{where}: hooks in a step, {name}", state.get(name, []), kinds)
