"""What becomes of hooks where ``copy.copy`` or ``copy.deepcopy`` copies what carries them?

A deepcopy of a module has tables of hooks of its own, with the same functions in them; a shallow copy has the tables of
the original. Parameters and optimizers leave their hooks behind.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import MethodType
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.pickled import (
    exercised,
    noted,
    noting,
    offered_kinds,
    register,
    through_pickle,
    through_save,
)
from hookcheck.programs.program import program
from hookcheck.programs.watching import linear


@program("SZ-20", PIN, since="1.7", source="copy.deepcopy of torch.nn.Module; relied on by EMA models")
def a_deepcopy_has_tables_of_its_own(check: Check) -> None:
    """Registering and removing hooks on a module does nothing to its deepcopy, nor the other way round."""
    for kind in offered_kinds():
        net = linear()
        handle = register(net, kind, noting("old"))
        other = copy.deepcopy(net)
        handle.remove()
        register(net, kind, noting("of the original"))
        register(other, kind, noting("of the copy"))
        check.order(f"the copy's hooks of {kind}", exercised(other), ["old", "of the copy"])
        check.order(f"the original's hooks of {kind}", exercised(net), ["of the original"])


@program("SZ-21", PIN, since="1.7", source="copy.deepcopy; the same objects where they are functions")
def a_deepcopy_shares_functions(check: Check) -> None:
    """The hooks of a deepcopy that are functions are those of the original themselves, be they lambdas or closures."""
    log: list[Any] = []

    def closure(module: Any, *arguments: Any) -> None:
        log.append(("closure", module))

    for kind in offered_kinds():
        net = linear()
        register(net, kind, closure)
        register(net, kind, lambda module, *arguments: log.append(("lambda", module)))
        other = copy.deepcopy(net)
        exercised(other)
        calls = [(word, "the copy" if module is other else "another module") for word, module in log]
        check.order(f"hooks of {kind}", calls, [("closure", "the copy"), ("lambda", "the copy")])
        log.clear()


@program("SZ-22", PIN, since="1.7", source="copy.deepcopy; what is not a function is copied")
def a_deepcopy_copies_other_hooks(check: Check) -> None:
    """A bound method as a hook is bound anew: to the copy if the module owns it, to a copy of its owner otherwise."""

    class Owner:
        def __init__(self) -> None:
            self.calls = 0

        def hook(self, module: Any, args: Any) -> None:
            self.calls += 1

    owner = Owner()
    net: Any = nn.Identity()
    net.calls, net.owner = 0, owner
    net.register_forward_pre_hook(MethodType(Owner.hook, net))
    net.register_forward_pre_hook(owner.hook)
    other = copy.deepcopy(net)
    other(torch.ones(1))
    other(torch.ones(1))
    net(torch.ones(1))
    check.calls("calls of the copy's own method", other.calls, 2)
    check.calls("calls of the original's own method", net.calls, 1)
    check.calls("calls of the method of the owner's copy", other.owner.calls, 2)
    check.calls("calls of the owner's method", owner.calls, 1)


@program("SZ-23", PIN, since="1.7", source="copy.copy of torch.nn.Module; undocumented")
def a_shallow_copy_shares_its_tables(check: Check) -> None:
    """A shallow copy of a module has its hooks in common with it: what is registered on either is called for both."""
    log: list[str] = []

    def hook(word: str) -> Any:
        return lambda *arguments: log.append(word)

    def calls(module: Any) -> list[str]:
        log.clear()
        exercised(module)
        return list(log)

    for kind in offered_kinds():
        net = linear()
        handle = register(net, kind, hook("old"))
        other = copy.copy(net)
        register(other, kind, hook("of the copy"))
        register(net, kind, hook("of the original"))
        check.order(f"hooks of {kind} of the copy", calls(other), ["old", "of the copy", "of the original"])
        check.order(f"hooks of {kind} of the original", calls(net), ["old", "of the copy", "of the original"])
        handle.remove()
        check.order(f"hooks of {kind} of the copy, one removed", calls(other), ["of the copy", "of the original"])


@program("SZ-24", PIN, since="1.7", source="copy.copy and copy.deepcopy of torch.Tensor; undocumented")
def tensor_hooks_are_not_copied(check: Check) -> None:
    """Hooks of a parameter or another leaf are not copied with it; the original keeps them."""
    post = "register_post_accumulate_grad_hook"
    leaves: dict[str, Any] = {"a parameter": linear().weight, "a leaf": torch.ones(1, 1, requires_grad=True)}
    for what, leaf in leaves.items():
        log: list[str] = []
        leaf.register_hook(lambda grad, log=log: log.append("tensor"))
        if hasattr(leaf, post):
            getattr(leaf, post)(lambda leaf, log=log: log.append("accumulated"))
        for how in (copy.copy, copy.deepcopy):
            new = how(leaf)
            (2 * new).sum().backward()
            check.order(f"hooks that {how.__name__} gives {what}", log, [])
            check.equal(f"gradient of what {how.__name__} makes of {what}", new.grad, [[2]])
        (2 * leaf).sum().backward()
        check.order(f"hooks of {what} itself", log, ["tensor", "accumulated"] if hasattr(leaf, post) else ["tensor"])


@program("U-13", PIN, since="2.0", source="copy.deepcopy, pickle; relied on by EMA models, wandb, opacus")
def what_a_deepcopy_takes_along(check: Check) -> None:
    """A deepcopy takes a module's hooks along but not those of its parameters; an optimizer's go by no way."""
    log: list[str] = []

    def hook(module: Any, *arguments: Any) -> None:
        log.append("module")

    net = linear()
    handle = net.register_forward_hook(hook)
    net.weight.register_hook(lambda grad: log.append("parameter"))
    other = copy.deepcopy(net)
    check.true("the function is the same", [*other._forward_hooks.values()] == [hook])
    check.true("the table is another", other._forward_hooks is not net._forward_hooks)
    handle.remove()
    other(torch.ones(1, 1)).sum().backward()
    check.order("hooks of the copy", log, ["module"])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    optimizer.register_step_pre_hook(noting("pre"))
    optimizer.register_step_post_hook(noting("post"))
    ways: dict[str, Callable[[Any], Any]] = {
        "copy": copy.copy,
        "deepcopy": copy.deepcopy,
        "pickle": through_pickle,
        "torch.save": through_save,
    }
    for way, copied in ways.items():
        new = copied(optimizer)
        new.step()
        check.order(f"hooks of an optimizer through {way}", noted(new), [])
    optimizer.step()
    check.order("hooks of the optimizer itself", noted(optimizer), ["pre", "post"])


@program("SZ-26", PROMISE, since="1.7", source="pytorch#28594")
def a_deepcopy_of_weight_norm(check: Check) -> None:
    """A module under ``weight_norm`` (hook form) can be copied with deepcopy, and the copy normalises its weight."""
    net = torch.nn.utils.weight_norm(linear(3.0))  # g = 3, v = 3
    other = check.works("deepcopy", partial(copy.deepcopy, net))
    if other is not None:
        check.equal("the copy's output", other(torch.ones(1, 1)), [[3]])
    net.weight_g.data.fill_(5.0)
    check.equal("the original's output once its g is 5", net(torch.ones(1, 1)), [[5]])
    if other is not None:
        check.equal("the copy's output then", other(torch.ones(1, 1)), [[3]])


@program("SZ-25", PROMISE, since="1.7", source="pytorch#28594; the same of pruning and spectral_norm")
def a_deepcopy_of_what_prunes(check: Check) -> None:
    """A module that is pruned, or was called under ``spectral_norm`` (hook form), can be copied with deepcopy."""
    prune: Any = import_module("torch.nn.utils.prune")
    pruned = prune.custom_from_mask(linear(), "weight", torch.ones(1, 1))
    check.works("deepcopy of a pruned module", partial(copy.deepcopy, pruned))
    normed = torch.nn.utils.spectral_norm(linear())
    check.works("deepcopy of a module under spectral_norm, before a call", partial(copy.deepcopy, normed))
    normed(torch.ones(1, 1))
    check.works("deepcopy of a module under spectral_norm, after a call", partial(copy.deepcopy, normed))


def _empty(kind: Any, *sizes: Any) -> Any:
    """What deepcopy asks of a subclass of Tensor that is to be copied."""
    return torch.empty(*sizes).as_subclass(kind)


@program("SZ-30", PROMISE, since="1.13", source="copy.deepcopy; pytorch#95711, pytorch#117275")
def a_copy_has_what_hooks_find(check: Check) -> None:
    """What a hook finds on a leaf goes with its deepcopy, be it a parameter, another leaf or one of a subclass that can
    be copied: its class, its attributes and its gradient."""
    subclass: Any = type("Subclass", (torch.Tensor,), {"new_empty": lambda self, *sizes: _empty(type(self), *sizes)})
    leaves = {
        "a leaf": torch.ones(1, 1).requires_grad_(),
        "a parameter": linear().weight,
        "a leaf of a subclass": torch.ones(1, 1).as_subclass(subclass).requires_grad_(),
    }
    for what, leaf in leaves.items():
        leaf.tag, leaf.grad = "tag", 2 * torch.ones(1, 1)
        new = copy.deepcopy(leaf)
        check.true(f"{what}: the class", type(new) is type(leaf))
        check.equal(f"{what}: an attribute", getattr(new, "tag", None), "tag")
        check.equal(f"{what}: the gradient", new.grad, [[2]])


@program("SZ-32", PROMISE, since="1.13", source="copy.deepcopy of what shares memory; pytorch#79788")
def copies_share_what_originals_share(check: Check) -> None:
    """Tensors in one memory are in one memory when they are copied with deepcopy together, parameters as well as other
    leaves, and so are those of a module with hooks."""
    shared = torch.ones(2)
    net: Any = nn.Sequential()
    net.one, net.other = nn.Parameter(shared[:1]), nn.Parameter(shared[1:])
    net.register_forward_hook(noting("hook"))
    new = copy.deepcopy(net)
    pairs: dict[str, Any] = {
        "leaves": copy.deepcopy([shared[:1], shared[1:]]),
        "parameters": copy.deepcopy([nn.Parameter(shared[:1]), nn.Parameter(shared[1:])]),
        "parameters of a module": [new.one, new.other],
    }
    for what, (one, other) in pairs.items():
        check.true(f"{what}: side by side", other.data_ptr() - one.data_ptr() == shared.element_size())


@program("SZ-33", PROMISE, since="1.13", source="pickle, torch.save; pytorch#65694")
def attributes_go_through_pickle(check: Check) -> None:
    """The attributes of a parameter and of another leaf go through pickle and ``torch.save``."""
    for what, leaf in {"a leaf": torch.ones(1).requires_grad_(), "a parameter": linear().weight}.items():
        leaf.tag = "tag"
        for way, copied in {"pickle": through_pickle, "torch.save": through_save}.items():
            check.equal(f"{way} of {what}: an attribute", getattr(copied(leaf), "tag", None), "tag")


@program("SZ-31", PROMISE, since="1.7", source="torch.nn.utils.weight_norm; pickle, torch.save; pytorch#102983")
def a_weight_is_computed_after_pickle(check: Check) -> None:
    """The weight that a pre-hook of torch computes is, in a module from a pickle, still computed of the parameters, so
    that its gradient reaches them and their hooks before a call as after one."""
    prune: Any = import_module("torch.nn.utils.prune")
    norms: Any = import_module("torch.nn.utils")
    kinds: dict[str, tuple[Callable[[Any], Any], str]] = {
        "weight_norm": (norms.weight_norm, "weight_v"),
        "spectral_norm": (norms.spectral_norm, "weight_orig"),
        "pruning": (lambda net: prune.custom_from_mask(net, "weight", torch.ones(1, 1)), "weight_orig"),
    }
    for kind, (do, source) in kinds.items():
        for way in ("pickle", "torch.save"):
            net = do(linear())
            net(torch.ones(1, 1))
            new = {"pickle": through_pickle, "torch.save": through_save}[way](net)
            calls: list[int] = []
            getattr(new, source).register_hook(lambda gradient, calls=calls: calls.append(1))
            new.weight.sum().backward()
            check.calls(f"{kind} through {way}, before a call: hook of the parameter", len(calls), 1)
            calls.clear()
            new(torch.ones(1, 1)).sum().backward()
            check.calls(f"{kind} through {way}, after a call: hook of the parameter", len(calls), 1)


def _loss(parameter: Any) -> Any:
    """The square of a parameter, of which backward has run."""
    parameter.grad = None
    loss = (parameter**2).sum()
    loss.backward()
    return loss


@program("SZ-34", PIN, since="2.0", source="copy.deepcopy and pickle of torch.optim.Optimizer; its step hooks")
def copies_of_optimizers_step(check: Check) -> None:
    """A copy of an optimizer, a deep one or one from a pickle, steps its parameters, between the hooks that are
    registered on it."""
    copies: dict[str, Any] = {"deepcopy": copy.deepcopy, "pickle": lambda of: pickle.loads(pickle.dumps(of))}
    for kind in ("SGD", "Adam", "LBFGS"):
        for way, copied in copies.items():
            other = copied(getattr(torch.optim, kind)([nn.Parameter(torch.ones(1))], lr=0.25))
            (parameter,), log = other.param_groups[0]["params"], list[str]()
            other.register_step_pre_hook(lambda *arguments, log=log: log.append("before"))
            other.register_step_post_hook(lambda *arguments, log=log: log.append("after"))
            loss = check.works(f"{kind}, {way}: a step", partial(other.step, partial(_loss, parameter)))
            if loss is not None:
                check.order(f"{kind}, {way}: hooks", log, ["before", "after"])
                check.true(f"{kind}, {way}: the parameter is another one then", parameter.item() < 1)
