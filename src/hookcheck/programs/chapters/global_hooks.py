"""What do hooks promise that are put on all modules at once?

They run for every module of the process, before the module's own hooks of their kind, until their handle removes them.
"""

from __future__ import annotations

import pickle
from functools import partial
from itertools import product
from threading import Thread
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE, UNSPECIFIED
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times
from hookcheck.programs.program import program
from hookcheck.programs.watching import given, globally, keeping, nested, noting

MODULE = "torch.nn.modules.module"
PRE = f"{MODULE}.register_module_forward_pre_hook"
POST = f"{MODULE}.register_module_forward_hook"


def tables() -> dict[str, int]:
    """How many entries the tables of global hooks have, if any."""
    named = vars(nn.modules.module).items()
    return {
        name: len(value) for name, value in named if name.startswith("_global_") and isinstance(value, dict) and value
    }


@program("GL-01", PROMISE, since="1.7", source=PRE)
def pre_hook_runs_for_every_module(check: Check) -> None:
    """A global forward pre-hook runs before ``forward`` of every module, and replaces arguments as a module's own."""
    seen: list[Any] = []
    x, y = torch.tensor([1.0]), torch.tensor([2.0])
    inner, outer = nested()
    with globally("forward_pre_hook", keeping(seen)):
        check.equal("output", outer(x), [6.0])
        check.equal("modules and arguments, from the outside in", seen, [(outer, (x,)), (inner, (x,))])
        seen.clear()
        late = given()
        late(x, y)
        check.equal("a module that is made after the registration", seen, [(late, (x, y))])
        log: list[str] = []
        body = net(lambda module: log.append("forward"))
        with globally("forward_pre_hook", noting(log, "hook")):
            body()
        check.order("hook and forward", log, ["hook", "forward"])
    for name, returned, args in (
        ("tuple", (y, x), (y, x)),
        ("tensor", y, (y,)),
        ("list", [x, y], ([x, y],)),
        ("empty tuple", (), ()),
        ("number", 0, (0,)),
    ):
        with globally("forward_pre_hook", lambda module, args, returned=returned: returned):
            check.equal(f"what forward gets for a {name}", given()(x), (args, {}))
    with globally("forward_pre_hook", lambda module, args: args[0] + 1):
        # (1 + 1) goes to the inner module, which adds 1 again: 3 * (2 * 3)
        check.equal("output where each module's arguments are replaced", outer(x), [18.0])


@program("GL-02", PROMISE, since="1.7", source=PRE)
def pre_hook_runs_before_local(check: Check) -> None:
    """A global forward pre-hook runs before the module's own pre-hooks, whichever was registered first."""
    log: list[str] = []
    module, x = nn.Identity(), torch.tensor([1.0])
    module.register_forward_pre_hook(noting(log, "local 1"))
    with globally("forward_pre_hook", noting(log, "global 1")):
        module.register_forward_pre_hook(noting(log, "local 2"))
        with globally("forward_pre_hook", noting(log, "global 2")):
            module(x)
    check.order("two of each", log, ["global 1", "global 2", "local 1", "local 2"])
    chain = given()
    chain.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    with globally("forward_pre_hook", lambda module, args: (args[0] + 1,)):
        check.equal("what forward gets after both changed it", chain(x), (([20.0],), {}))


@program("GL-03", PROMISE, since="1.7", source=POST)
def hook_runs_for_every_module(check: Check) -> None:
    """A global forward hook runs after ``forward`` of every module; what it returns becomes the output."""
    seen: list[Any] = []
    x = torch.tensor([1.0])
    inner, outer = nested()
    with globally("forward_hook", keeping(seen)):
        check.equal("output", outer(x), [6.0])
        check.equal(
            "modules, arguments and outputs, from the inside out",
            seen,
            [(inner, (x,), [2.0]), (outer, (x,), [6.0])],
        )
        seen.clear()
        late = times(5.0)
        late(x)
        check.equal("a module that is made after the registration", seen, [(late, (x,), [5.0])])
        log: list[str] = []
        body = net(lambda module: log.append("forward"))
        with globally("forward_hook", noting(log, "hook")):
            body()
        check.order("forward and hook", log, ["forward", "hook"])
    for name, value in {"number": 0, "truth value": False, "tuple": (), "pair": (x, x), "dict": {}}.items():
        with globally("forward_hook", lambda module, args, output, value=value: value):
            check.equal(f"output for a {name}", times(2.0)(x), value)
    with globally("forward_hook", lambda module, args, output: output + 1):
        # the inner module gives 2 + 1, the outer one 3 * 3 + 1
        check.equal("output where each module's output is replaced", outer(x), [10.0])
        with globally("forward_hook", lambda module, args, output: output * 10):
            check.equal("output that the second of two hooks replaces", nn.ReLU()(x), [20.0])  # of x + 1
    word, uncalled = torch.ones(1, 1, 4), ("layers", "out_proj", "tail")  # lists, and one whose weight attention reads
    for whole, arguments in (
        (nn.Transformer(4, 2, 1, 1, 8), (word, word)),
        (nn.AdaptiveLogSoftmaxWithLoss(4, 3, [1]), (word[0], torch.tensor([2]))),
    ):
        names = {module: name for name, module in whole.named_modules()}
        seen.clear()
        with globally("forward_hook", keeping(seen)):
            whole(*arguments)
        due = sorted(name for name in names.values() if not name.endswith(uncalled))
        check.equal(f"modules of nn.{type(whole).__name__}", sorted(names[module] for module, *_ in seen), due)


@program("GL-04", PROMISE, since="1.7", source=f"{PRE}, {POST}; 'Keyword arguments'")
def keywords_are_not_passed(check: Check) -> None:
    """Global forward pre-hooks and forward hooks are not given keyword arguments, which still reach ``forward``."""
    before, after, x = list[Any](), list[Any](), torch.tensor([1.0])
    module = given()
    with globally("forward_pre_hook", keeping(before)), globally("forward_hook", keeping(after)):
        output = module(x, 5, scale=3)
        module(scale=3)
    check.equal("what forward gets", output, ((x, 5), {"scale": 3}))
    check.equal("what the pre-hook gets", before, [(module, (x, 5)), (module, ())])
    check.equal("what the forward hook gets", after, [(module, (x, 5), output), (module, (), ((), {"scale": 3}))])


@program("GL-05", PROMISE, since="2.1", source=f"{POST}, always_call")
def always_called(check: Check) -> None:
    """With ``always_call`` a global forward hook runs once for each module whose call raises; the error comes out."""
    x, seen, log = torch.tensor([1.0]), list[Any](), list[str]()

    def forward(module: Any, x: Any, fail: bool = False) -> Any:
        if fail:
            raise ValueError("forward")
        return 2 * x

    def failing(module: Any, args: Any, output: Any) -> None:
        raise KeyError("hook")

    inner = net(forward)
    outer = net(lambda module, x, fail: module.inner(x, fail=fail), inner=inner)
    inner.register_forward_hook(noting(log, "local always"), always_call=True)
    globally("forward_hook", noting(log, "ordinary"))
    handle = globally("forward_hook", keeping(seen), always_call=True)
    globally("forward_hook", noting(log, "always"), always_call=True)
    check.raises("forward raises", ValueError, partial(outer, x, True), "forward")
    check.equal("what the hook gets", seen, [(inner, (x,), None), (outer, (x, True), None)])
    check.order("hooks that run", log, ["always", "local always", "always"])
    seen.clear()
    log.clear()
    outer(x, False)
    check.equal("what the hook gets otherwise", seen, [(inner, (x,), [2.0]), (outer, (x, False), [2.0])])
    check.order("hooks that run otherwise", log, ["ordinary", "always", "local always", "ordinary", "always"])
    seen.clear()
    with inner.register_forward_hook(failing):
        check.raises("a later hook raises", KeyError, partial(inner, x), "hook")
    check.equal("the hook runs once in that call", seen, [(inner, (x,), [2.0])])
    seen.clear()
    handle.remove()
    check.raises("forward raises after remove()", ValueError, partial(outer, x, True), "forward")
    check.calls("calls after remove()", len(seen), 0)


@program("GL-06", PROMISE, since="1.7", source=POST)
def hook_runs_before_local(check: Check) -> None:
    """A global forward hook runs before the module's own forward hooks, whichever was registered first."""
    log: list[str] = []
    module, x = nn.Identity(), torch.tensor([1.0])
    module.register_forward_hook(noting(log, "local 1"))
    with globally("forward_hook", noting(log, "global 1")):
        module.register_forward_hook(noting(log, "local 2"))
        with globally("forward_hook", noting(log, "global 2")):
            module(x)
    check.order("two of each", log, ["global 1", "global 2", "local 1", "local 2"])
    chain = times(2.0)
    chain.register_forward_hook(lambda module, args, output: output * 10)
    with globally("forward_hook", lambda module, args, output: output + 1):
        check.equal("output after both changed it", chain(x), [30.0])


@program("GL-09", UNSPECIFIED, since="1.7", source=f"{PRE}, 'Warning'")
def state_of_the_process(check: Check) -> None:
    """Global hooks are state of the whole process: another thread's modules run them too."""
    seen: list[Any] = []
    module, x = nn.Identity(), torch.tensor([1.0])
    with globally("forward_hook", keeping(seen)):
        thread = Thread(target=module, args=(x,))
        thread.start()
        thread.join()
    check.equal("a call in another thread", seen, [(module, (x,), x)])


@program("GL-10", PROMISE, since="1.7", source=f"{PRE}, {POST}, {MODULE}.register_module_full_backward_hook")
def handle_removes(check: Check) -> None:
    """The handle of a global hook removes it, and nothing else."""
    optional = ("full_backward_hook", "full_backward_pre_hook")  # they came with 1.8 and 2.0
    for kind in ("forward_pre_hook", "forward_hook", *optional):
        if kind in optional and not hasattr(nn.modules.module, f"register_module_{kind}"):
            continue
        log: list[str] = []
        before, module = tables(), times(2.0)

        def run(module: Any = module, log: list[str] = log) -> list[str]:
            log.clear()
            module(leaf(1.0)).sum().backward()
            return list(log)

        handles = {word: globally(kind, noting(log, word)) for word in ("a", "b", "c")}
        check.order(f"three of the kind {kind}", run(), ["a", "b", "c"])
        handles["b"].remove()
        check.order(f"the second removed: {kind}", run(), ["a", "c"])
        handles["b"].remove()
        check.order(f"the second removed twice: {kind}", run(), ["a", "c"])
        handles["c"].remove()
        check.order(f"the third removed: {kind}", run(), ["a"])
        handles["a"].remove()
        check.order(f"all removed: {kind}", run(), [])
        check.equal(f"tables of global hooks: {kind}", tables(), before)


@program("GL-11", PIN, since="2.6", source=f"signature of {POST}")
def keywords_on_request(check: Check) -> None:
    """With ``with_kwargs`` a global forward hook is given keyword arguments too, as a module's own would be."""
    x = torch.tensor([1.0])

    def forward(module: Any, x: Any, fail: bool) -> Any:
        if fail:
            raise ValueError("forward")
        return 2 * x

    for always_call, local in product((False, True), (False, True)):
        module, seen = net(forward), list[Any]()
        module.register_forward_hook(keeping(seen), with_kwargs=local)
        what = f"always_call={always_call}, with_kwargs={local} of the module's own hook"
        with globally("forward_hook", keeping(seen), with_kwargs=True, always_call=always_call):
            module(x, fail=False)
            kwargs = ({"fail": False},)
            local_arguments = (module, (x,), *kwargs, [2.0]) if local else (module, (x,), [2.0])
            check.equal(f"what both get: {what}", seen, [(module, (x,), *kwargs, [2.0]), local_arguments])
            seen.clear()
            check.raises(f"forward raises: {what}", ValueError, partial(module, x, fail=True), "forward")
            after = [(module, (x,), {"fail": True}, None)] if always_call else []
            check.calls(f"calls after an error: {what}", len(seen), len(after))
            check.equal(f"what the hook gets after an error: {what}", seen, after)


@program("GL-13", PIN, since="1.7", source=f"{PRE}; pytorch#89389")
def pre_hook_has_the_options_of_local_ones(check: Check) -> None:
    """A global forward pre-hook can be registered with ``with_kwargs``, as a module's own and a global forward hook."""
    seen: list[Any] = []
    globally("forward_pre_hook", keeping(seen))
    given()(1, scale=3)
    check.equal("what a hook without options gets", [call[1:] for call in seen], [((1,),)])
    seen.clear()
    handle = check.works("registration", partial(globally, "forward_pre_hook", keeping(seen), with_kwargs=True))
    if handle is not None:
        given()(1, scale=3)
        check.equal("what both get", [call[1:] for call in seen], [((1,),), ((1,), {"scale": 3})])


@program("GL-14", PROMISE, since="2.6", source=f"{POST}; pytorch#89389")
def removal_empties_every_table(check: Check) -> None:
    """With its handle every entry that the registration of a global forward hook made goes away."""
    for options in ({}, {"always_call": True}, {"with_kwargs": True}, {"with_kwargs": True, "always_call": True}):
        before = tables()
        for _ in range(3):
            globally("forward_hook", print, **options).remove()
        check.equal(f"tables after three removals: {options}", tables(), before)


@program("GL-15", PROMISE, since="2.6", source=f"{POST}; pytorch#89389")
def plain_hooks_stay_plain(check: Check) -> None:
    """A hook that comes with an unpickled module is called as it was registered, whatever global hooks came before."""
    handle = globally("forward_hook", print, with_kwargs=True)
    handle.remove()
    # The module is pickled where the counter of ids stands as it stood here: in another process it may.
    module, counter = nn.Identity(), torch.utils.hooks.RemovableHandle.next_id
    torch.utils.hooks.RemovableHandle.next_id = handle.id
    module.register_forward_hook(numbered)
    torch.utils.hooks.RemovableHandle.next_id = counter
    restored = pickle.loads(pickle.dumps(module))
    check.equal("how many arguments the restored hook gets", restored(None), 3)
    fresh = nn.Identity()
    fresh.register_forward_hook(numbered)
    check.equal("how many arguments another hook gets", pickle.loads(pickle.dumps(fresh))(None), 3)


def numbered(*arguments: Any) -> int:
    """A forward hook that makes the number of its arguments the output."""
    return len(arguments)
