"""What do a module's forward hooks promise, and what do they and forward pre-hooks promise together?

A forward hook is called as ``hook(module, args, output)`` after ``forward`` and may replace the output. With
``with_kwargs`` it gets the keyword arguments too; with ``prepend`` it goes before its like.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from itertools import product
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import net, times
from hookcheck.programs.program import program
from hookcheck.programs.watching import given, keeping, noting

POST = "torch.nn.Module.register_forward_hook"
BOTH = f"torch.nn.Module.register_forward_pre_hook, {POST}"
NOTES = "notes on modules, 'Module Hooks'"

KINDS = ("forward_pre_hook", "forward_hook")
"""What follows ``register_`` in the name of the function that registers a hook."""


@program("FW-08", PROMISE, since="1.7", source=POST)
def runs_after_forward(check: Check) -> None:
    """A forward hook runs on every call of the instance, after ``forward`` has produced its output."""
    log: list[Any] = []

    def forward(module: Any, x: Any) -> Any:
        log.append("forward")
        return 2 * x

    inner = net(forward)
    handle = inner.register_forward_hook(lambda module, args, output: log.append(output.tolist()))
    inner(torch.tensor([1.0]))
    inner(torch.tensor([3.0]))
    check.order("what happened", log, ["forward", [2.0], "forward", [6.0]])
    log.clear()
    with torch.no_grad():
        inner.eval()(torch.tensor([3.0]))
    check.order("a call in eval mode under no_grad", log, ["forward", [6.0]])
    log.clear()
    outer = net(lambda module, x: module.inner(x), inner=inner)
    outer.register_forward_hook(noting(log, "outer hook"))
    outer(torch.tensor([1.0]))
    check.order("a module inside another", log, ["forward", [2.0], "outer hook"])
    log.clear()
    handle.remove()
    hook = noting(log, "hook")
    inner.register_forward_hook(hook)
    inner.register_forward_hook(hook)
    inner(torch.tensor([1.0]))
    check.order("a hook that is registered twice", log, ["forward", "hook", "hook"])


@program("FW-09", PROMISE, since="1.7", source=POST)
def gets_module_arguments_and_output(check: Check) -> None:
    """Registered without ``with_kwargs``, a forward hook gets the module, the positional arguments and the output."""
    x, y = torch.tensor([1.0]), torch.tensor([2.0])
    scaled, seen = net(lambda module, *args, scale=1: args[0] * scale if args else None), list[Any]()
    scaled.register_forward_hook(keeping(seen))
    output = scaled(x, scale=3)
    check.equal("how many arguments the hook gets", len(seen[0]), 3)
    check.true("the module", seen[0][0] is scaled)
    check.equal("args and output beside a keyword argument", seen[0][1:], ((x,), [3.0]))
    check.true("args hold the very tensor", seen[0][1][0] is x)
    check.true("the output is the one that the caller gets", seen[0][2] is output)
    several = [y]
    scaled(x, 5, None, "text", several, y)
    check.equal("args of every type", seen[1][1], (x, 5, None, "text", [y], y))
    check.true("args hold the very list", seen[1][1][4] is several)
    scaled(scale=3)
    check.equal("args and output without any positional argument", seen[2][1:], ((), None))
    scaled.register_forward_pre_hook(lambda module, args: (y, y))
    scaled(x)
    check.equal("args that a pre-hook replaced", seen[3][1:], ((y, y), [2.0]))
    scaled.register_forward_pre_hook(lambda module, args: (args[0] + 1, y))
    scaled(x)
    check.equal("args that two pre-hooks replaced", seen[4][1:], (([3.0], y), [3.0]))


@program("FW-10", PROMISE, since="2.0", source=f"{POST}, with_kwargs")
def gets_keywords_too(check: Check) -> None:
    """Registered with ``with_kwargs``, a forward hook gets module, args, the dict of keyword arguments and output."""
    x, y = torch.tensor([1.0]), torch.tensor([2.0])
    scaled, seen, plain = net(lambda module, x, scale=1: x * scale), list[Any](), list[Any]()
    scaled.register_forward_hook(keeping(plain))
    scaled.register_forward_hook(keeping(seen), with_kwargs=True)
    scaled.register_forward_hook(keeping(plain), with_kwargs=False)
    check.equal("output under hooks that return None", scaled(x, scale=y), [2.0])
    check.equal("how many arguments the hook gets", len(seen[0]), 4)
    check.true("the module", seen[0][0] is scaled)
    check.equal("args, kwargs and output", seen[0][1:], ((x,), {"scale": y}, [2.0]))
    check.true("kwargs hold the very tensor", seen[0][2]["scale"] is y)
    check.equal("what hooks without it get beside it", [call[1:] for call in plain], [((x,), [2.0])] * 2)
    scaled(x)
    check.equal("kwargs without keyword arguments", seen[1][1:], ((x,), {}, [1.0]))
    scaled(x=x)
    check.equal("args and kwargs of keyword arguments alone", seen[2][1:], ((), {"x": x}, [1.0]))
    scaled.register_forward_pre_hook(lambda module, args, kwargs: ((y,), {"scale": 5}), with_kwargs=True)
    scaled(x)
    check.equal("args and kwargs that a pre-hook replaced", seen[3][1:], ((y,), {"scale": 5}, [10.0]))
    scaled.register_forward_hook(lambda module, args, kwargs, output: output + kwargs["scale"], with_kwargs=True)
    scaled.register_forward_hook(keeping(seen), with_kwargs=True)
    check.equal("output that such a hook replaced", scaled(x), [15.0])
    check.equal("output that the next hook gets", seen[5][3], [15.0])


@program("FW-11", PROMISE, since="1.7", source=f"{POST}; {NOTES}")
def what_it_returns_is_the_output(check: Check) -> None:
    """What a forward hook returns becomes the module's output, unless it is None, which keeps the output as it is."""
    x = torch.tensor([1.0])
    values = {"tensor": x + 1, "number": 0, "truth value": False, "tuple": (), "text": "", "dict": {}, "pair": (x, x)}
    values.update({"tensor of integers": torch.tensor([3]), "tensor without dimensions": torch.tensor(4.0)})
    for name, value in values.items():
        identity = nn.Identity()
        identity.register_forward_hook(lambda module, args, output, value=value: value)
        check.equal(f"output for a {name}", identity(x), value)
        check.equal(f"output of the second call for a {name}", identity(x), value)

    chain, seen = times(2.0), list[Any]()
    chain.register_forward_hook(lambda module, args, output: output + 1)
    chain.register_forward_hook(keeping(seen))
    chain.register_forward_hook(lambda module, args, output: 10 * output)
    chain.register_forward_hook(keeping(seen))
    check.equal("output of a chain of four hooks", chain(x), [30.0])
    check.equal("what the second and the fourth hook get", [call[2] for call in seen], [[3.0], [30.0]])
    check.equal("args of the second and the fourth hook", [call[1] for call in seen], [(x,), (x,)])

    inner = times(2.0)
    inner.register_forward_hook(lambda module, args, output: output + 1)
    outer = net(lambda module, x: 10 * module.inner(x), inner=inner)
    check.equal("output of a module around a hooked one", outer(x), [30.0])
    leaf = torch.tensor([1.0], requires_grad=True)
    outer.register_forward_hook(lambda module, args, output: 3 * output)
    outer(leaf).sum().backward()
    check.equal("gradient through replaced outputs", leaf.grad, [60.0])


@program("FW-12", PROMISE, since="1.7", source=POST)
def comes_too_late_for_the_input(check: Check) -> None:
    """A forward hook that changes an input in place does not change what ``forward`` has already given."""
    x, seen, doubled = torch.tensor([1.0, 2.0]), list[Any](), net(lambda module, x, shift: 2 * x + shift)

    def hook(module: Any, args: Any, output: Any) -> None:
        args[0].mul_(10)

    doubled.register_forward_hook(hook)
    doubled.register_forward_hook(keeping(seen))
    check.equal("output", doubled(x, 5.0), [7.0, 9.0])
    check.equal("input and output that the next hook gets", seen[0][1:], (([10.0, 20.0], 5.0), [7.0, 9.0]))
    check.equal("input after the call", x, [10.0, 20.0])
    check.equal("output of the next call", doubled(x, 5.0), [25.0, 45.0])


@program("FW-13", PROMISE, since="1.7", source=NOTES)
def outputs_come_as_they_are(check: Check) -> None:
    """Arguments always come in a tuple, and an output comes exactly as ``forward`` returned it."""
    x = torch.tensor([1.0])
    Named = namedtuple("Named", "first second")

    @dataclass
    class Held:
        value: Any

    class Tagged(torch.Tensor):
        pass

    outputs: dict[str, Any] = {
        "tensor": x,
        "tensor of integers": torch.tensor([1]),
        "tensor of a subclass": x.as_subclass(Tagged),
        "tuple": (x, 1),
        "tuple of one": (x,),
        "list": [x, x],
        "dict": {"key": x},
        "named tuple": Named(x, x),
        "dataclass": Held(x),
        "text": "text",
        "None": None,
    }
    for name, value in outputs.items():
        returning, before, after = net(lambda module, x, value=value: value), list[Any](), list[Any]()
        returning.register_forward_pre_hook(keeping(before))
        returning.register_forward_hook(keeping(after))
        output = returning(x)
        check.true(f"the hook gets the very output: {name}", after[0][2] is value)
        check.true(f"the caller gets the very output: {name}", output is value)
        check.equal(f"args of both kinds: {name}", (before[0][1], after[0][1]), ((x,), (x,)))


@program("FW-14", PROMISE, since="1.7", source=f"{BOTH}, prepend")
def runs_in_order_of_registration(check: Check) -> None:
    """By default a hook runs after the hooks of its kind that the module already has."""
    x = torch.ones(1)
    for kind in KINDS:
        log: list[str] = []
        module, other = nn.Identity(), nn.Identity()
        register = getattr(module, f"register_{kind}")
        getattr(other, f"register_{kind}")(noting(log, "other module"))
        handles = {word: register(noting(log, word)) for word in "bcad"}
        module(x)
        check.order(f"four of the kind {kind}", log, ["b", "c", "a", "d"])
        handles["c"].remove()
        register(noting(log, "c"))
        log.clear()
        module(x)
        check.order(f"one of the kind {kind} removed and registered anew", log, ["b", "a", "d", "c"])
    log = []
    both = nn.Identity()
    both.register_forward_hook(noting(log, "after 1"))
    both.register_forward_pre_hook(noting(log, "before 1"))
    both.register_forward_hook(noting(log, "after 2"))
    both.register_forward_pre_hook(noting(log, "before 2"))
    both(x)
    check.order("two of each kind", log, ["before 1", "before 2", "after 1", "after 2"])


@program("FW-15", PROMISE, since="2.0", source=f"{BOTH}, prepend")
def prepended_runs_first(check: Check) -> None:
    """With ``prepend`` a hook runs before the hooks of its kind that the module already has."""
    x = torch.ones(1)
    for kind, with_kwargs in product(KINDS, (False, True)):
        log: list[str] = []
        module = nn.Identity()
        register = getattr(module, f"register_{kind}")
        what = f"{kind}, with_kwargs={with_kwargs}"
        register(noting(log, "first prepended"), prepend=True, with_kwargs=with_kwargs)
        register(noting(log, "appended"), prepend=False, with_kwargs=with_kwargs)
        handle = register(noting(log, "second prepended"), prepend=True, with_kwargs=with_kwargs)
        register(noting(log, "third prepended"), prepend=True, with_kwargs=not with_kwargs)
        register(noting(log, "last"))
        module(x)
        order = ["third prepended", "second prepended", "first prepended", "appended", "last"]
        check.order(f"three prepended: {what}", log, order)
        log.clear()
        handle.remove()
        module(x)
        order.remove("second prepended")
        check.order(f"one of them removed: {what}", log, order)

    chain = given()
    chain.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    chain.register_forward_pre_hook(lambda module, args, k: ((args[0] * 10,), k), prepend=True, with_kwargs=True)
    check.equal("arguments after a prepended pre-hook", chain(x, scale=2), (([11.0],), {"scale": 2}))
    chain = nn.Identity()
    chain.register_forward_hook(lambda module, args, output: output + 1)
    chain.register_forward_hook(lambda module, args, k, output: output * 10, prepend=True, with_kwargs=True)
    check.equal("output after a prepended forward hook", chain(x), [11.0])


@program("FW-16", PROMISE, since="2.0", source=f"{BOTH}, prepend")
def global_runs_first(check: Check) -> None:
    """Global hooks run before all hooks of their kind that a module has, prepended ones included."""
    for kind, prepend, with_kwargs in product(KINDS, (False, True), (False, True)):
        log: list[tuple[str, int]] = []
        module = nn.Identity()
        register = getattr(module, f"register_{kind}")
        register(lambda *arguments, log=log: log.append(("first", len(arguments))))
        with getattr(nn.modules.module, f"register_module_{kind}")(
            lambda *arguments, log=log: log.append(("global", len(arguments)))
        ):
            register(
                lambda *arguments, log=log: log.append(("second", len(arguments))),
                prepend=prepend,
                with_kwargs=with_kwargs,
            )
            module(torch.ones(1))
        plain = 3 if kind == "forward_hook" else 2  # output comes last
        second = ("second", plain + with_kwargs)
        local = [second, ("first", plain)] if prepend else [("first", plain), second]
        what = f"{kind}, prepend={prepend}, with_kwargs={with_kwargs}"
        check.order(f"hooks and how many arguments each gets: {what}", log, [("global", plain), *local])


@program("FW-19", PROMISE, since="1.7", source="torch.nn.Module.forward")
def forward_alone_skips_hooks(check: Check) -> None:
    """Calling ``module.forward`` instead of the module silently runs none of its hooks."""
    log: list[str] = []
    x, inner = torch.tensor([1.0]), times(2.0)
    inner.register_forward_hook(noting(log, "inner"))
    outer = net(lambda module, x, scale=1: scale * module.inner(x), inner=inner)
    outer.register_forward_pre_hook(noting(log, "before"))
    outer.register_forward_pre_hook(lambda module, args: (10 * args[0],))
    outer.register_forward_hook(noting(log, "after"))
    outer.register_forward_hook(lambda module, args, output: 10 * output)
    check.equal("output of forward", check.silent("warning", lambda: outer.forward(x, scale=3)), [6.0])
    check.order("hooks that ran: those of a module that is called inside", log, ["inner"])
    log.clear()
    check.equal("output of the module", outer(x, scale=3), [600.0])
    check.order("hooks that run when the module is called", log, ["before", "inner", "after"])


@program("FW-20", PROMISE, since="1.7", source=NOTES)
def built_in_modules_have_hooks(check: Check) -> None:
    """Hooks can be put on modules that the user did not write, those of ``torch.nn`` included."""
    row, line, square = torch.ones(2, 4), torch.ones(2, 4, 8), torch.ones(2, 4, 8, 8)
    modules: dict[Any, tuple[Any, ...]] = {
        nn.Linear(4, 3): (row,),
        nn.Bilinear(4, 4, 2): (row, row),
        nn.Conv1d(4, 2, 3): (line,),
        nn.Conv2d(4, 2, 3): (square,),
        nn.ConvTranspose2d(4, 2, 3): (square,),
        nn.MaxPool2d(2): (square,),
        nn.AdaptiveAvgPool2d(1): (square,),
        nn.BatchNorm1d(4): (row,),
        nn.LayerNorm(4): (row,),
        nn.GroupNorm(2, 4): (row,),
        nn.ReLU(): (row,),
        nn.PReLU(): (row,),
        nn.Softmax(dim=1): (row,),
        nn.Dropout(0.5): (row,),
        nn.Flatten(): (square,),
        nn.Upsample(scale_factor=2): (square,),
        nn.PixelShuffle(2): (square,),
        nn.Embedding(5, 4): (torch.tensor([0, 3]),),
        nn.EmbeddingBag(5, 4): (torch.tensor([[0, 3]]),),
        nn.RNN(4, 3): (torch.ones(2, 1, 4),),
        nn.LSTM(4, 3): (torch.ones(2, 1, 4),),
        nn.GRUCell(4, 3): (row,),
        nn.MultiheadAttention(4, 2): (torch.ones(2, 1, 4),) * 3,
        nn.TransformerEncoderLayer(4, 2, 8): (torch.ones(2, 1, 4),),
        nn.Sequential(nn.Linear(4, 3), nn.ReLU()): (row,),
        nn.CosineSimilarity(): (row, row),
        nn.PairwiseDistance(): (row, row),
        nn.MSELoss(): (row, row),
        nn.CrossEntropyLoss(): (row, torch.tensor([0, 3])),
    }
    for module, args in modules.items():
        log: list[str] = []
        module.register_forward_pre_hook(noting(log, "before"))
        module.register_forward_hook(noting(log, "after"))
        module(*args)
        check.order(type(module).__name__, log, ["before", "after"])


@program("FW-21", PROMISE, since="1.7", source=f"{BOTH}; {NOTES}")
def removal_leaves_no_trace(check: Check) -> None:
    """After ``handle.remove()`` the module computes what it computed before the hook was there."""
    x: Any = torch.tensor([[0.5, -1.5]], requires_grad=True)
    model: Any = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2))

    def run() -> list[Any]:
        x.grad = None
        model.zero_grad()
        output = model(x)
        output.sum().backward()
        return [output.tolist(), x.grad.tolist(), *(parameter.grad.tolist() for parameter in model.parameters())]

    before = run()
    handles = [
        model[0].register_forward_pre_hook(lambda module, args: (2 * args[0],)),
        model[1].register_forward_hook(lambda module, args, output: output + 1),
        model.register_forward_pre_hook(lambda module, args: args[0] - 1),
        model.register_forward_hook(lambda module, args, output: 3 * output),
    ]
    check.true("outputs and gradients under hooks are others", run() != before)
    for handle in handles:
        handle.remove()
    # the same computation to the last bit, so without rounding
    check.true("outputs and gradients after remove()", run() == before)
    check.true("outputs and gradients of the second call after remove()", run() == before)
