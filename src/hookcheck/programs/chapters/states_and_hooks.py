"""What of a state do hooks meet: sizes, keys, and steps that nobody took?

torch loads states by hooks of its own, tells a user's hooks which keys do not fit, and fills in an optimizer's state
before it is saved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotOffered
from hookcheck.programs.host_changes import offered
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import program


def lazy_classes() -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """The lazy classes that this torch has: name, what makes one of 3 channels or features, and what it is given."""
    for dimensions in (0, 1, 2, 3):
        for kind in ("Linear",) if not dimensions else ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm"):
            name = f"Lazy{kind}{dimensions}d" if dimensions else f"Lazy{kind}"
            if hasattr(nn, name):
                arguments = {"Linear": (2,), "Conv": (2, 1), "ConvTranspose": (2, 1)}.get(kind, ())
                options = {"affine": True} if kind == "InstanceNorm" else {}
                value = torch.arange(6.0 * 2**dimensions).view(2, 3, *(2,) * dimensions)
                yield name, partial(getattr(nn, name), *arguments, **options), value


def sizes(module: Any) -> dict[str, Any]:
    """The numbers and texts among the attributes of a module."""
    return {name: value for name, value in vars(module).items() if isinstance(value, (int, float, str, tuple))}


@program(
    "HT-14", PIN, since="1.8", source="torch.nn.modules.lazy, 'become regular'; its pre-hook on calls; pytorch#147389"
)
def a_lazy_module_that_loaded_has_its_sizes(check: Check) -> None:
    """After its first call, in which torch's own pre-hook ends its laziness, a lazy module that has loaded a state is
    the ordinary module that it is without one: with the same sizes among its attributes, and the same output."""
    for name, make, value in lazy_classes():
        called = make()
        due = called(value)
        loaded = make()
        loaded.load_state_dict(copy.deepcopy(called.state_dict()))
        output = check.works(f"{name}: the call", partial(loaded, value))
        if output is not None:
            check.equal(f"{name}: output", output, due.tolist())
            check.equal(f"{name}: sizes", sizes(loaded), sizes(called))
        unsized = make()
        state = unsized.state_dict()
        check.order(f"{name}: names that are saved before the call", [*state], [*called.state_dict()])
        loaded = make()
        check.works(f"{name}: loading what is saved before the call", partial(loaded.load_state_dict, state))
        if check.works(f"{name}: the call after that", partial(loaded, value)) is not None:
            check.equal(f"{name}: sizes after that", sizes(loaded), sizes(called))


ODD_KEYS = ("0.weight.more", "0.weight.", "0.bias.more.still", "0.more", "0", "0.", "1.weight", "more", "")
"""Keys beside ``0.weight`` and ``0.bias`` that belong to no entry of a module with one Linear in it."""


@program(
    "SD-19",
    PROMISE,
    since="1.12",
    source="torch.nn.Module.register_load_state_dict_post_hook, 'unexpected_keys'; pytorch#123510",
)
def every_key_that_does_not_fit_is_unexpected(check: Check) -> None:
    """A load post-hook is told every key that belongs to no entry, also one that begins as an entry does, and so is who
    loads; under ``strict=True`` that is an error."""
    for key in ODD_KEYS:
        net: Any = nn.Sequential(nn.Linear(1, 1))
        log: list[Any] = []
        net.register_load_state_dict_post_hook(lambda module, keys, log=log: log.append([*keys.unexpected_keys]))
        state = {**net.state_dict(), key: torch.ones(1)}
        check.equal(f"{key!r}: what loading gives", net.load_state_dict(state, strict=False).unexpected_keys, [key])
        check.equal(f"{key!r}: what the hook is told", log, [[key]])
        check.raises(f"{key!r}: strict", RuntimeError, partial(net.load_state_dict, state), "Unexpected key")
    if offered((2, 1)):
        assigned, log = nn.Sequential(nn.Linear(1, 1)), list[Any]()
        assigned.register_load_state_dict_post_hook(lambda module, keys: log.append([*keys.unexpected_keys]))
        assigned.load_state_dict({**assigned.state_dict(), "more": torch.ones(1)}, strict=False, assign=True)
        check.equal("what the hook is told where tensors are assigned", log, [["more"]])


@program(
    "SV-01",
    PROMISE,
    since="2.2",
    source="torch.distributed.checkpoint.state_dict, get_optimizer_state_dict and its siblings; pytorch#121186",
)
def states_for_a_checkpoint_take_no_step(check: Check) -> None:
    """What collects or sets the state of a network and its optimizer for a checkpoint takes no step that step hooks
    see, calls no hook of a parameter, and leaves the parameters and their gradients as they are."""
    try:
        states: Any = import_module("torch.distributed.checkpoint.state_dict")
    except ImportError as missing:
        raise NotOffered("this torch has no torch.distributed.checkpoint.state_dict") from missing
    acts: dict[str, Callable[[Any, Any], Any]] = {
        "get_model_state_dict": lambda net, _: states.get_model_state_dict(net),
        "get_optimizer_state_dict": states.get_optimizer_state_dict,
        "get_state_dict": states.get_state_dict,
        "set_model_state_dict": lambda net, _: states.set_model_state_dict(net, net.state_dict()),
    }
    with process_group(check):
        for name, act in acts.items():
            for stepped in (False, True):
                net: Any = nn.Linear(1, 1, bias=False)
                optimizer = torch.optim.AdamW(net.parameters(), lr=0.5, weight_decay=0.5)
                if stepped:
                    net(torch.ones(1, 1)).sum().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                weight, log = net.weight.detach().clone(), list[str]()
                optimizer.register_step_pre_hook(lambda *_, log=log: log.append("step pre-hook"))
                optimizer.register_step_post_hook(lambda *_, log=log: log.append("step post-hook"))
                net.weight.register_hook(lambda gradient, log=log: log.append("tensor hook"))
                net.weight.register_post_accumulate_grad_hook(lambda weight, log=log: log.append("accumulated"))
                fact = f"{name}, {'after a step' if stepped else 'before any step'}"
                check.works(fact, partial(act, net, optimizer))
                check.order(f"{fact}: hooks that were called", log, [])
                check.equal(f"{fact}: the weight", net.weight, weight.tolist())
                check.equal(f"{fact}: its gradient", net.weight.grad, None)


@program("SD-20", PIN, since="1.7", source="torch.nn.Module.state_dict, '_metadata of the returned state dict'")
def metadata_go_with_the_state(check: Check) -> None:
    """The metadata of a module are among those of the state dict when a hook on that runs, and a hook on loading of the
    root gets a dict that has them all."""
    net: Any = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Identity()))
    names, log, given = sorted(name for name, _ in net.named_modules()), list[Any](), list[Any]()

    def seen(name: str, module: Any, state: Any, prefix: str, metadata: Any) -> None:
        log.append((name, state._metadata.get(prefix[:-1]) is metadata))

    for name, module in net.named_modules():
        module._register_state_dict_hook(partial(seen, name))
    state = net.state_dict()
    check.equal("whether the metadata of each are there by then", sorted(log), [(name, True) for name in names])
    net._register_load_state_dict_pre_hook(lambda state, *others: given.append(sorted(getattr(state, "_metadata", []))))
    net.load_state_dict(state)
    check.equal("of whom the dict that is loaded has metadata", given, [names])


@program("SD-21", PROMISE, since="2.0", source="torch.nn.Module.register_state_dict_pre_hook, 'before the call'")
def hooks_of_modules_that_save_by_themselves(check: Check) -> None:
    """A hook before ``state_dict`` is called once in each, for a child too, whether the module saves as any other, by a
    method of its own, or by one that calls the common one as well; and before it saves."""

    class Own(nn.Module):
        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            log.append("saving")
            destination[f"{prefix}own"] = torch.ones(1)

    class Both(nn.Linear):
        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            log.append("saving")
            super()._save_to_state_dict(destination, prefix, keep_vars)

    for name, module in {"any other": nn.Linear(1, 1), "its own": Own(), "its own and the common": Both(1, 1)}.items():
        log: list[str] = []
        module.register_state_dict_pre_hook(lambda *_, log=log: log.append("hook"))
        for where, root in {"itself": module, "a child": nn.Sequential(module)}.items():
            log.clear()
            root.state_dict()
            check.order(f"{name}, {where}: hooks", log, ["hook", *([] if name == "any other" else ["saving"])])
