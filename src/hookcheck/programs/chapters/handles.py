"""What does the handle of a hook promise: which hook it removes, when, and what it leaves behind?

Every function that registers a hook gives a handle. Its ``remove()`` takes the hook off, as leaving a ``with`` block
over the handle does. Libraries remove hooks in hooks, and reach into the tables that handles refer to.
"""

from __future__ import annotations

import io
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, net, times
from hookcheck.programs.program import program
from hookcheck.programs.watching import Bound, noting

HANDLE = "torch.utils.hooks.RemovableHandle"

OF_MODULES = (
    "register_forward_pre_hook",
    "register_forward_hook",
    "register_backward_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
)
OF_TENSORS = ("register_hook", "register_post_accumulate_grad_hook")
OF_ALL_MODULES = (
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
)


def sites(names: Iterable[str] = (*OF_MODULES, *OF_TENSORS, *OF_ALL_MODULES)) -> Iterator[tuple[str, Any, Any]]:
    """Where this torch takes hooks: the function's name, the function, and an act that runs its hooks once."""
    for name in names:
        module, x = times(2.0), leaf(1.0)
        owner = nn.modules.module if name in OF_ALL_MODULES else x if name in OF_TENSORS else module
        if hasattr(owner, name):  # the later ones came with 1.8, 2.0 and 2.1
            yield name, getattr(owner, name), partial(run, module, x)


def run(module: Any, x: Any) -> None:
    """A forward and a backward."""
    module(x).sum().backward()


def fail(error: type[Exception], *arguments: Any) -> None:
    """Raises an error without a text, as baukit's StopForward is; with ``partial`` it is a hook of any kind."""
    raise error()


def raised_by(act: Any) -> str:
    """The name of the exception that ``act()`` raises; "nothing" where it raises none."""
    try:
        act()
    except Exception as error:
        return type(error).__name__
    return "nothing"


@program("HD-01", PROMISE, since="1.7", source=HANDLE)
def context_and_repetition(check: Check) -> None:
    """A handle removes its hook at the end of a ``with``, and ``remove()`` can be called again and again."""
    for name, register, act in sites():
        log: list[str] = []
        registered = register(noting(log, "hook"))
        with registered as handle:
            act()
            check.true(f"what the context gives is the handle: {name}", handle is registered)
        check.calls(f"calls inside: {name}", len(log), 1)
        act()
        check.calls(f"calls inside and after: {name}", len(log), 1)
        check.works(f"remove() after the context: {name}", handle.remove)
        check.works(f"remove() once more: {name}", handle.remove)

        def leave(register: Any = register, log: list[str] = log) -> None:
            with register(noting(log, "hook")):
                raise KeyError("inside")

        check.raises(f"an error inside comes out: {name}", KeyError, leave, "inside")
        act()
        check.calls(f"calls after an error inside: {name}", len(log), 1)
        log.clear()
        for word in "ab":
            register(noting(log, word))
        act()
        check.order(f"two that are registered where none is left: {name}", log, ["a", "b"])


@program("HD-02", PROMISE, since="1.7", source="torch.utils.hooks.unserializable_hook")
def saving_drops_hooks(check: Check) -> None:
    """Saving a tensor that has hooks warns that they are dropped, unless each is marked as one to be left out."""
    log: list[str] = []

    def save(tensor: Any) -> Any:
        buffer = io.BytesIO()
        torch.save(tensor, buffer)
        buffer.seek(0)
        return torch.load(buffer)

    check.silent("a tensor without hooks", partial(save, leaf(1.0)), "hook")
    hooked = leaf(1.0)
    handle = hooked.register_hook(noting(log, "hook"))
    loaded = check.warns("a tensor with a hook", UserWarning, partial(save, hooked), "hook")
    (2 * loaded).sum().backward()
    check.calls("calls of the hook of the loaded tensor", len(log), 0)
    (2 * hooked).sum().backward()
    check.calls("calls of the hook of the tensor that was saved", len(log), 1)
    handle.remove()
    check.silent("a tensor whose hook was removed", partial(save, hooked), "hook")
    mark: Any = torch.utils.hooks.unserializable_hook
    marked = noting(log, "marked")
    check.true("what is marked is the hook itself", mark(marked) is marked)
    hooked.register_hook(marked)
    check.silent("a tensor whose hook is marked", partial(save, hooked), "hook")
    hooked.register_hook(noting(log, "hook"))
    check.warns("a tensor with a marked and another hook", UserWarning, partial(save, hooked), "hook")
    parameter: Any = nn.Parameter(torch.ones(1))
    parameter.register_hook(noting(log, "hook"))
    check.warns("a parameter with a hook", UserWarning, partial(save, parameter), "hook")


@program("HD-03", PROMISE, since="1.7", source=f"{HANDLE}; every function that registers a hook, 'Returns'")
def removes_its_own(check: Check) -> None:
    """A handle removes the hook that it was given for, and no other, in whatever order hooks come and go."""
    ids: list[int] = []
    for name, register, act in sites():
        log: list[str] = []

        def ran(act: Any = act, log: list[str] = log) -> list[str]:
            log.clear()
            act()
            return list(log)

        handles = {word: register(noting(log, word)) for word in "abcd"}
        check.order(f"four hooks: {name}", ran(), ["a", "b", "c", "d"])
        handles["b"].remove()
        check.order(f"the second removed: {name}", ran(), ["a", "c", "d"])
        handles["b"].remove()
        handles["e"] = register(noting(log, "e"))
        handles["b"].remove()
        check.order(f"the second removed again, before and after another came: {name}", ran(), ["a", "c", "d", "e"])
        handles["d"].remove()
        handles["a"].remove()
        check.order(f"two removed out of order: {name}", ran(), ["c", "e"])
        hook = noting(log, "twice")
        once, again = register(hook), register(hook)
        once.remove()
        check.order(f"one of two registrations of a hook removed: {name}", ran(), ["c", "e", "twice"])
        again.remove()
        check.order(f"both removed: {name}", ran(), ["c", "e"])
        ids += [handle.id for handle in (*handles.values(), once, again)]
        handles.clear()
        check.order(f"handles that are dropped remove nothing: {name}", ran(), ["c", "e"])
        register(Bound(log).hook)
        check.order(f"a method of an object that nothing else refers to: {name}", ran(), ["c", "e", "bound"])
    check.equal("how many ids are in use twice", len(ids) - len(set(ids)), 0)
    check.equal("ids grow", ids, sorted(ids))


@program("HD-04", PIN, since="2.1", source="storage of torch.nn.Module, as nnsight uses it")
def options_go_with_the_hook(check: Check) -> None:
    """Flags of hooks are kept by id in tables of their own, from which they go together with the hook."""
    module, log = nn.Identity(), list[str]()
    tables = ("_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")

    def flags() -> dict[str, dict[int, bool]]:
        return {table: dict(getattr(module, table)) for table in tables}

    before, after = module.register_forward_pre_hook, module.register_forward_hook
    a = before(noting(log, "a"), with_kwargs=True)
    b = before(noting(log, "b"), with_kwargs=True, prepend=True)
    c = after(noting(log, "c"), with_kwargs=True, always_call=True)
    d = after(noting(log, "d"), always_call=True, prepend=True)
    plain = (before(noting(log, "e")), after(noting(log, "f"), prepend=True))
    expected = [{a.id: True, b.id: True}, {c.id: True}, {c.id: True, d.id: True}]
    check.equal("flags", flags(), dict(zip(tables, expected)))
    module(1)
    check.order("hooks", log, ["b", "a", "e", "f", "d", "c"])
    b.remove()
    d.remove()
    check.equal("flags after two removals", flags(), dict(zip(tables, [{a.id: True}, {c.id: True}, {c.id: True}])))
    log.clear()
    module(1)
    check.order("hooks after two removals", log, ["a", "e", "f", "c"])
    for handle in (a, c, *plain):
        handle.remove()
    check.equal("flags after all removals", flags(), {table: {} for table in tables})
    handle = after(noting(log, "g"), with_kwargs=True, always_call=True)
    module._forward_hooks.clear()
    handle.remove()
    check.equal("flags of a hook that was gone when its handle was asked", flags(), {table: {} for table in tables})

    hooks, *extra = (OrderedDict[int, Any]() for _ in range(3))
    removable = torch.utils.hooks.RemovableHandle(hooks, extra_dict=extra)
    for table in (hooks, *extra):
        table.update({removable.id: True, removable.id + 1: True})
    removable.remove()
    left = [{removable.id + 1: True}] * 3
    check.equal("tables of a handle that is made by hand", [dict(table) for table in (hooks, *extra)], left)


@program("HD-05", PIN, since="1.7", source="storage of torch.nn.Module: the handle refers to it weakly")
def outlives_the_module(check: Check) -> None:
    """A handle does not keep its module alive, and can be asked to remove a hook of one that is gone."""
    module = nn.Identity()
    handles = [module.register_forward_hook(print), module.register_forward_pre_hook(print)]
    gone = weakref.ref(module)
    del module
    check.true("the module is freed", gone() is None)
    for number, handle in enumerate(handles):
        check.works(f"remove() of handle {number}", handle.remove)


@program("U-03", PIN, since="1.8", source="call of torch.nn.Module, as nnsight and one-shot hooks use it")
def hooks_that_come_during_a_call(check: Check) -> None:
    """A hook that comes during a call runs in it if its kind's turn is yet to come, else from the next call on; that of
    backward kinds is when the call begins."""
    before, after = "forward_pre_hook", "forward_hook"
    full = [kind for kind in ("full_backward_pre_hook", "full_backward_hook") if hasattr(nn.Module, f"register_{kind}")]
    rows = [(kind, (before, after, *full)) for kind in (before, after, *full)]
    rows.append(("backward_hook", (before, after, "backward_hook")))
    for (kind, kinds), during in product(rows, (before, "forward", after)):
        at_once = int(kind == after and during != after)
        log: list[str] = []
        added: list[str] = []
        coming = [kind]

        def add(module: Any, *arguments: Any, coming: list[str] = coming, added: list[str] = added) -> None:
            if coming:
                getattr(module, f"register_{coming.pop()}")(noting(added, "added"))

        def forward(module: Any, x: Any, during: str = during, add: Any = add) -> Any:
            if during == "forward":
                add(module)
            return 2 * x

        module = net(forward)
        for other in kinds:
            getattr(module, f"register_{other}")(add if other == during else noting([], ""))
            getattr(module, f"register_{other}")(noting(log, other))

        def ran(module: Any = module, added: list[str] = added) -> list[int]:
            run(module, leaf(1.0))
            once = len(added)
            run(module, leaf(1.0))
            return [once, len(added)]

        what = f"a {kind} that comes in a {during}"
        counts = check.works(f"two calls: {what}", ran)
        if counts is not None:
            check.calls(f"in the first call: {what}", counts[0], at_once)
            check.calls(f"in both calls: {what}", counts[1], at_once + 1)
            check.order(f"the other hooks: {what}", log, [*kinds, *kinds])


@program("U-04", PIN, since="1.7", source="call of torch.nn.Module, as Lightning, nnsight and one-shot hooks use it")
def hooks_that_go_during_a_call(check: Check) -> None:
    """A hook may remove itself while it runs, and one that an earlier hook removes still runs in that call."""
    for name, register, act in sites((*OF_MODULES, *OF_ALL_MODULES)):
        log: list[str] = []
        handles: dict[str, Any] = {}
        for word, removed in {"a": "a", "b": "", "c": "d", "d": "", "e": "b"}.items():

            def hook(
                *arguments: Any, word: str = word, removed: str = removed, log: Any = log, of: Any = handles
            ) -> None:
                log.append(word)
                if removed:
                    of[removed].remove()

            handles[word] = register(hook)

        def ran(act: Any = act, log: list[str] = log) -> list[str]:
            act()
            log.append("next call")
            act()
            return log

        order = check.works(f"two calls: {name}", ran)
        if order is not None:
            check.order(f"hooks: {name}", order, ["a", "b", "c", "d", "e", "next call", "c", "e"])


@program("U-12", PIN, since="1.7", source="errors of hooks of modules and tensors, as baukit's StopForward uses them")
def errors_keep_their_type(check: Check) -> None:
    """An exception that a hook raises comes out of the call or the backward as what it is."""

    class Stop(Exception):
        """One that torch does not know."""

    for name, register, act in sites():

        def hook(*arguments: Any, name: str = name) -> None:
            raise Stop(name, 7)

        log: list[str] = []
        register(noting(log, "before"))
        handle = register(hook)
        register(noting(log, "after"))
        check.raises(f"the error: {name}", Stop, act, f"('{name}', 7)")
        check.order(f"other hooks in that call: {name}", log, ["before"])
        log.clear()
        handle.remove()
        act()
        check.order(f"other hooks in the next: {name}", log, ["before", "after"])
        for error in (Stop, StopIteration, AssertionError):
            handle = register(partial(fail, error))
            check.equal(f"{error.__name__} without a text: {name}", raised_by(act), error.__name__)
            handle.remove()


@program("U-21", PIN, since="1.7", source="storage of torch.nn.Module, as nnsight, wandb, captum and prune use it")
def storage(check: Check) -> None:
    """Hooks are kept as they are, by the id of their handle, in ordered tables with known names."""
    rows = (
        ("register_forward_pre_hook", "_forward_pre_hooks"),
        ("register_forward_hook", "_forward_hooks"),
        ("register_backward_hook", "_backward_hooks"),
        ("_register_state_dict_hook", "_state_dict_hooks"),
    )
    for method, table in rows:
        owner, hook, other = nn.Identity(), noting([], "hook"), noting([], "other")
        stored, register = getattr(owner, table), getattr(owner, method)
        check.true(f"the type of {table}", type(stored) is OrderedDict)
        handle, second = register(hook), register(other)
        check.equal(f"ids in {table}", list(stored), [handle.id, second.id])
        check.true(f"the hook in {table}", stored.get(handle.id) is hook)
        check.true(f"the handle refers to {table}", handle.hooks_dict_ref() is stored)
        check.equal(f"the next id after {table}", torch.utils.hooks.RemovableHandle.next_id, second.id + 1)
        handle.remove()
        check.equal(f"ids in {table} after a removal", list(stored), [second.id])

    x = leaf(1.0)
    handle = x.register_hook(noting([], "hook"))
    check.true("the table of a tensor", handle.id in handle.hooks_dict_ref() and handle.id in x._backward_hooks)

    log: list[str] = []
    module: Any = nn.Identity()
    handles = {word: module.register_forward_pre_hook(noting(log, word)) for word in ("a", "b", "c")}
    module._forward_pre_hooks.move_to_end(handles["a"].id)
    removable = torch.utils.hooks.RemovableHandle(module._forward_pre_hooks)
    module._forward_pre_hooks[removable.id] = noting(log, "made")
    del module._forward_pre_hooks[handles["b"].id]
    module(x)
    check.order("hooks after one was moved, one put in and one deleted", log, ["c", "a", "made"])
    removable.remove()
    module._forward_pre_hooks.clear()
    log.clear()
    module(x)
    check.order("hooks after the table was cleared", log, [])
