"""What does torch's hook code do where it seldom comes? Branches that no other chapter makes a difference to.

``hookcheck kill-matrix --branches`` forces each branch of that code, and lists those that nothing sees. What is
promised where they lead stands here.
"""

from __future__ import annotations

import copy
import logging
import weakref
from collections import OrderedDict
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.autograd_logging import logging_at
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.nets import leaf, net, times
from hookcheck.programs.pickled import note, noted, through_pickle
from hookcheck.programs.program import program
from hookcheck.programs.watching import globally, noting

HANDLE = "torch.utils.hooks.RemovableHandle"


@program("RB-01", PROMISE, since="2.1", source=f"{HANDLE}; torch.nn.Module.register_forward_hook: options")
def copies_of_handles_know_the_options(check: Check) -> None:
    """A handle that is copied with its module takes the copy's hook off with all options of it, and leaves the
    original's."""
    tables = ("_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called")
    for way, copied in (("deepcopy", copy.deepcopy), ("pickle", through_pickle)):
        module = nn.Identity()
        handles = [
            module.register_forward_pre_hook(partial(note, "before"), with_kwargs=True),
            module.register_forward_hook(partial(note, "after"), with_kwargs=True, always_call=True),
        ]
        other, others = copied((module, handles))
        other(1)
        check.order(f"{way}: hooks of the copy", noted(other), ["before", "after"])
        for handle in others:
            handle.remove()
        other(1)
        check.order(f"{way}: hooks of the copy once removed", noted(other), [])
        check.equal(f"{way}: options that the copy keeps", [len(getattr(other, table)) for table in tables], [0, 0, 0])
        check.equal(f"{way}: options of the original", [len(getattr(module, table)) for table in tables], [1, 1, 1])
    for state in ((), (None,)):
        hooks: OrderedDict[int, Any] = OrderedDict({7: print, 8: print})
        handle = torch.utils.hooks.RemovableHandle.__new__(torch.utils.hooks.RemovableHandle)  # as pickle makes one
        check.works(f"a state with {state} after table and id", partial(handle.__setstate__, (hooks, 7, *state)))
        check.works(f"remove() then, {state}", handle.remove)
        check.equal(f"ids that stay, {state}", [*hooks], [8])


@program("RB-02", PROMISE, since="2.0", source="torch.nn.modules.module.register_module_module_registration_hook")
def registration_hooks_that_look_on(check: Check) -> None:
    """A registration hook that returns None leaves what is registered as it is: module, parameter and buffer."""
    log: list[Any] = []
    module, part, parameter, buffer = nn.Module(), nn.Identity(), nn.Parameter(torch.ones(1)), torch.ones(1)
    for kind in ("module", "parameter", "buffer"):
        globally(f"{kind}_registration_hook", lambda owner, name, value: log.append(name))
    module.add_module("a", part)
    module.register_parameter("b", parameter)
    module.register_buffer("c", buffer)
    module.d, module.e, module.c = part, parameter, buffer
    check.order("names that hooks got", log, ["a", "b", "c", "d", "e", "c"])
    check.true("what is registered", [*module._modules.values()] == [part, part])
    check.true("which parameters", all(each is parameter for each in module._parameters.values()))
    check.true("which buffer", module._buffers["c"] is buffer)


@program("RB-03", PROMISE, since="2.1", source="torch.nn.Module.register_forward_hook: always_call")
def always_called_hooks_after_an_error(check: Check) -> None:
    """After a hook that raises, those that are always called get the output, one after the other: what one returns
    goes to the next, and where it returns None the output stays."""

    def fails(*given: Any) -> None:
        raise ValueError("on purpose")

    for returned, due in ((None, [10.0, 10.0]), (7.0, [10.0, 7.0])):
        for scope in ("own", "global"):
            seen: list[Any] = []
            module = net(lambda module, x: 2 * x)

            def keep(module: Any, args: Any, output: Any, seen: Any = seen, returned: Any = returned) -> Any:
                seen.append(output)
                return returned

            register = module.register_forward_hook if scope == "own" else partial(globally, "forward_hook")
            handles = [register(fails), register(keep, always_call=True), register(keep, always_call=True)]
            check.raises(f"{scope}, {returned}: the call", ValueError, partial(module, 5.0), "on purpose")
            check.equal(f"{scope}, {returned}: outputs that hooks got", seen, due)
            for handle in handles:
                handle.remove()


@program("RB-04", PROMISE, since="2.4", source="torch.utils.module_tracker.ModuleTracker")
def module_trackers_find_their_way(check: Check) -> None:
    """``ModuleTracker`` is back at ``Global`` after a backward of modules whose inputs need no gradient, takes modules
    with any arguments and outputs, and logs where it lost its way, in forward or in backward."""
    from torch.utils.module_tracker import ModuleTracker

    name = "torch.utils.module_tracker"
    with ModuleTracker() as tracker, logging_at(logging.INFO, name) as lines:
        first = net(lambda module, x, factor, pair: (module.weight * x * factor * pair[0], factor), weight=2.0)
        y = 1 * check.works("a module with numbers", lambda: first(torch.ones(1), 3, (leaf(5.0), None)))[0]
        for time in ("first", "second"):
            y.backward(retain_graph=True)
            check.equal(f"after the {time} backward", sorted(tracker.parents), ["Global"])
        plain = net(lambda module, x: module.weight * x, weight=2.0)
        z = 1 * plain(torch.ones(1))
        for time in ("first", "second"):
            z.backward(retain_graph=True)
            check.equal(f"after the {time} backward without inputs", sorted(tracker.parents), ["Global"])
        check.equal("what is logged of that", lines, [])

    with ModuleTracker(), logging_at(logging.INFO, name) as lines:

        def forward(module: Any, x: Any, depth: int) -> Any:
            return 2 * (module(x, depth - 1) if depth else x)

        (1 * net(forward)(leaf(1.0), 1)).backward()
        check.equal("what is logged of a module that calls itself", [_lost(line) for line in lines], _ITSELF)
    with ModuleTracker(), logging_at(logging.INFO, name) as lines:
        inner: list[Any] = []
        whole = net(lambda module, x: inner.append(3 * x) or 5 * inner[0])
        whole(leaf(1.0))
        inner[0].backward()
        check.equal("what is logged of a loss made inside", [_lost(line) for line in lines], ["never, backward"])


_ITSELF = ["already, forward", "never, forward", "already, backward", "never, backward"]
"""It is entered twice, and left twice."""


def _lost(line: str) -> str:
    """What a line says: whether a module was entered already, or never, and when."""
    return f"{'already' if 'already entered' in line else 'never'}, {line.rpartition(' ')[2]}"


@program("RB-05", PIN, since="2.0", source="torch.compile: the warning of OptimizedModule on global hooks")
def compiled_modules_warn_of_global_hooks(check: Check) -> None:
    """A compiled module warns where there is a global hook of any kind, since that is called once more for it."""
    if not hasattr(nn.modules.module, "_has_any_global_hook"):
        raise NotOffered("this torch does not warn there")
    compiled = torch.compile(nn.Identity())
    compiled.forward = lambda x: x  # nothing need be compiled
    says = "when there are global hooks"
    check.silent("without hooks", lambda: compiled(1), says)
    for kind in ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"):
        with globally(kind, noting([], kind)):
            check.warns(kind, UserWarning, lambda: compiled(1), says)
    check.silent("once they are removed", lambda: compiled(1), says)


@program("RB-06", PROMISE, since="2.0", source="torch.autograd.graph.Node")
def what_a_node_is(check: Check) -> None:
    """``isinstance`` and ``issubclass`` know the Nodes of torch and of custom Functions as ``Node``, and nothing
    else; a class that is derived from ``Node`` has none of them."""
    node = torch.autograd.graph.Node

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad

    class Derived(node):  # type: ignore[valid-type]
        pass

    class ExpBackward0:
        """No Node, by the name of one."""

    x = leaf(1.0)
    nodes = {"of torch": x.exp().grad_fn, "of a custom Function": Doubled.apply(x).grad_fn}
    for name, value in nodes.items():
        check.equal(f"{name}: a Node", [isinstance(value, node), issubclass(type(value), node)], [True, True])
        check.equal(
            f"{name}: a derived one", [isinstance(value, Derived), issubclass(type(value), Derived)], [False] * 2
        )
    for other in (x, 7, ExpBackward0()):
        check.equal(
            f"{type(other).__name__} is none", [isinstance(other, node), isinstance(other, Derived)], [False] * 2
        )


@program("RB-07", PROMISE, since="2.13", source="torch.autograd.graph.get_gradient_edge, increment_version")
def edges_own_their_graph(check: Check) -> None:
    """An edge keeps the graph of its tensor, that of a custom Function too; a version is counted for a tensor and for
    each of several."""

    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 3 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * grad

    for name, function in (("torch", lambda x: 3 * x), ("a custom Function", Tripled.apply)):
        x = leaf(1.0)
        edge = torch.autograd.graph.get_gradient_edge(function(2 * x))  # which is let go of
        check.works(f"{name}: backward from the edge", partial(torch.autograd.backward, (edge,), (torch.ones(1),)))
        check.equal(f"{name}: gradient", x.grad, [6])
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    torch.autograd.graph.increment_version(one)
    torch.autograd.graph.increment_version([one, two])
    check.equal("versions", [one._version, two._version], [2, 1])


@program("RB-08", PROMISE, since="1.9", source="torch.nn.Module.register_full_backward_hook: None, or a tuple")
def nothing_to_replace(check: Check) -> None:
    """Where no input requires grad, a full backward hook may return None or a tuple of it, and anything else raises."""
    for returned, allowed in ((None, True), ((None,), True), ([None], False), ((1,), False), (torch.ones(1), False)):
        module = net(lambda module, x: module.weight * x, weight=2.0)
        module.register_full_backward_hook(lambda *given, returned=returned: returned)
        backward = module(torch.ones(1)).backward
        what = f"{type(returned).__name__} {'allowed' if allowed else 'refused'}"
        if allowed:
            check.works(what, backward)
        else:
            check.raises(what + str(len(returned)), RuntimeError, backward, "should always return None")


@program("RB-09", PROMISE, since="2.0", source="torch.nn.Module.register_full_backward_pre_hook: a new gradient")
def gradients_without_dimensions(check: Check) -> None:
    """Pre-hooks take gradients of no dimension as any others: a tuple of one replaces it."""
    x = torch.tensor(1.0, requires_grad=True)
    module = times(3.0)
    module.register_full_backward_pre_hook(lambda module, grad_output: (5 * grad_output[0],))
    module(x).backward()
    check.equal("gradient", x.grad, 15.0)


@program("RB-10", PIN, since="2.8", source="the logger torch.autograd.graph at the level DEBUG")
def logged_gradients(check: Check) -> None:
    """At the level DEBUG each Node is logged once in a backward, with type and shape of each gradient that it gets, or
    None; from an edge as well. Below that level the Nodes are none of the log's business."""
    x = leaf(1.0, 2.0)
    doubled = 2 * x
    first, _ = (doubled * doubled).view(2, 1).unbind()
    loss = first.sum()
    with logging_at(logging.DEBUG) as lines:
        loss.backward()
    # The sum, the unbinding, the view, the product, the doubling, the leaf.
    check.equal("gradients", _given(lines), ["[f32[]]", "[f32[1],None]", "[f32[2, 1]]", *["[f32[2]]"] * 3])
    edge = torch.autograd.graph.get_gradient_edge(3 * x)
    with logging_at(logging.DEBUG) as lines:
        check.works("backward from an edge", partial(torch.autograd.backward, (edge,), (torch.ones(2),)))
    check.equal("gradients from an edge", _given(lines), ["[f32[2]]", "[f32[2]]"])
    check.raises("backward from what has no Node", RuntimeError, torch.ones(1).backward, "does not require grad")


def _given(lines: list[str]) -> list[str]:
    """The gradients that the lines of a log show."""
    return [line.rpartition("grad_outputs: ")[2] for line in lines if line.startswith("Executing")]


@program("RB-11", PROMISE, since="2.1", source="torch.autograd.graph.allow_mutation_on_saved_tensors")
def saved_tensors_that_are_written_twice(check: Check) -> None:
    """A saved tensor may be written to again and again: backward uses what it was when it was saved."""
    x = leaf(3.0)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = 1 * x
        z = y * y
        torch._foreach_mul_([y, y], 10.0)
        y.mul_(10)
        z.backward(torch.ones(1))
    check.equal("gradient", x.grad, [6])


@program("RB-12", PIN, since="1.8", source="torch.nn.Module.register_backward_hook: outputs in a dict")
def legacy_hooks_on_a_dict(check: Check) -> None:
    """Of a dict of outputs, a legacy hook is on the first tensor, whatever comes before that."""
    calls: list[Any] = []
    module = net(lambda module, x: {"name": 7, "y": -x})
    module.register_backward_hook(lambda module, grad_input, grad_output: calls.append(grad_output))
    output = check.works("the call", lambda: module(leaf(1.0)))
    if output:
        output["y"].backward()
        check.equal("gradients", calls, [([1],)])


@program("RB-13", PROMISE, since="1.13", source="torch.nn.Module.register_load_state_dict_post_hook: None")
def what_hooks_on_loading_return(check: Check) -> None:
    """A hook after loading that returns anything but None is told that it must not."""
    returned: Any
    for returned in (None, 7, 0, {}):
        module = nn.Linear(1, 1)
        module.register_load_state_dict_post_hook(lambda *given, returned=returned: returned)
        load = partial(module.load_state_dict, module.state_dict())
        if returned is None:
            check.works("None", load)
        else:
            what = "a number" if returned == 7 else repr(returned)
            check.raises(what, AssertionError, load, "expected to return new values")


@program("RB-14", PIN, since="1.13", source="torch.nn.Module._register_load_state_dict_pre_hook: with_module, pickle")
def hooks_of_dead_modules(check: Check) -> None:
    """A hook that gets its module is not revived by pickle once the module is gone: that says so."""
    module = nn.Identity()
    module._register_load_state_dict_pre_hook(partial(note, "before"), with_module=True)
    (hook,) = module._load_state_dict_pre_hooks.values()
    check.works("while it lives", partial(through_pickle, hook))
    del module
    check.raises("once it is gone", RuntimeError, partial(through_pickle, hook), "dead Module")
    check.raises("a call once it is gone", RuntimeError, hook, "dead Module")
    module = nn.Identity()
    module._register_load_state_dict_pre_hook(partial(note, "before"), with_module=True)
    copies: dict[str, Any] = {"a deepcopy": copy.deepcopy, "an unpickled one": through_pickle}
    for name, copied in copies.items():
        alive = weakref.ref(copied(module))
        check.true(f"{name} is gone when nobody holds it", alive() is None)


@program("RB-15", PROMISE, since="1.8", source="torch.nn.modules.module.register_module_full_backward_hook")
def global_hooks_of_two_sorts(check: Check) -> None:
    """Legacy and full backward hooks on all modules exclude each other: the second sort is refused."""
    kinds = ("backward_hook", "full_backward_hook")
    for first, second in (kinds, kinds[::-1]):
        with globally(first, noting([], first)):
            check.raises(f"{second} after {first}", RuntimeError, partial(globally, second, print), "Cannot use both")
        torch.nn.modules.module._global_is_full_backward_hook = None  # which stays (LB-07)
    if hasattr(torch.nn.modules.module, "register_module_full_backward_pre_hook"):
        for kind in kinds:
            with globally("full_backward_pre_hook", noting([], "pre-hook")):
                handle = check.works(f"{kind} beside a pre-hook, of neither sort", partial(globally, kind, print))
            if handle is not None:
                handle.remove()
            torch.nn.modules.module._global_is_full_backward_hook = None


@program("RB-16", PROMISE, since="2.1", source="torch.overrides: methods of torch.Tensor")
def subclasses_see_registrations(check: Check) -> None:
    """A subclass of Tensor with ``__torch_function__`` sees that hooks are registered on it, and may do it itself."""
    log: list[str] = []

    class Seeing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(getattr(function, "__name__", ""))
            return super().__torch_function__(function, types, args, kwargs or {})

    x = torch.ones(1).as_subclass(Seeing).requires_grad_()
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        log.clear()
        getattr(x, name)(print).remove()
        check.true(f"{name} is seen", name in log)


@program("RB-17", PROMISE, since="1.8", source="torch.Tensor.__deepcopy__, __reduce_ex__: quantised tensors")
def modules_with_quantised_buffers(check: Check) -> None:
    """A module with a quantised buffer is copied and pickled with its hooks, and the buffer with its numbers."""
    module = nn.Identity()
    module.register_buffer("held", torch.quantize_per_tensor(torch.tensor([1.0, 2.5]), 0.5, 0, torch.qint8))
    module.register_forward_hook(partial(note, "after"))
    for way, copied in (("deepcopy", copy.deepcopy), ("pickle", through_pickle)):
        other = check.works(way, partial(copied, module))
        if other:
            check.equal(f"{way}: numbers", other.held.dequantize(), [1.0, 2.5])
            other(1)
            check.order(f"{way}: hooks", noted(other), ["after"])


@program("RB-18", PIN, since="1.13", source="torch.nn.Module.load_state_dict, register_load_state_dict_post_hook")
def hooks_on_loading_run_where_a_tensor_does_not_fit(check: Check) -> None:
    """Where a tensor of a state does not fit, what fits is loaded and the load post-hooks of all modules run, children
    first; then the error comes."""
    log: list[str] = []
    module = nn.Sequential(nn.Linear(1, 1))
    for each in (module, module[0]):
        each.register_load_state_dict_post_hook(lambda owner, keys: log.append(type(owner).__name__))
    unfit = {"0.weight": torch.ones(2, 2), "0.bias": torch.tensor([7.0])}
    for strict in (True, False):
        log.clear()
        load = partial(module.load_state_dict, unfit, strict=strict)
        check.raises(f"strict={strict}: the error", RuntimeError, load, "size mismatch for 0.weight")
        check.order(f"strict={strict}: hooks before it", log, ["Linear", "Sequential"])
        check.equal(f"strict={strict}: the bias, which fits", module[0].bias, [7.0])
