"""What becomes of hooks where a module is made from another, and where what was made is taken back?

torch converts, fuses, quantises, traces and wraps modules. The hooks of a module are then on what is made from it,
wherever they went in there; or the making is refused, and says why. No hook may be lost without a word, or be there
twice; and of torch's own none may stay behind on the way back.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.compiling import fresh
from hookcheck.programs.host_changes import CHANGES, GROUPS, Module, offered, options_of
from hookcheck.programs.host_makes import CALLED_SINCE, HOSTS, IN_PLACE, NO_BACKWARD, UNINITIALISED, Host, rows
from hookcheck.programs.nets import leaf, times
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting


def is_hook_table(name: str, value: Any) -> bool:
    """Whether an attribute of a module is a table of its hooks; what says with which options
    these are registered stands in tables beside it."""
    return name.endswith("_hooks") and hasattr(value, "values")


def tables(net: Module) -> Iterator[Any]:
    """Every hook that the modules of ``net`` hold; those of load_state_dict without what torch wraps them in."""
    for module in net.modules():
        for name, table in vars(module).items():
            if is_hook_table(name, table):
                yield from (getattr(hook, "hook", hook) for hook in table.values())


def options(module: Module, name: str, key: int, hook: Any) -> list[str]:
    """The options of a hook: the tables beside its own that have its key, and what is true of what wraps it."""
    beside = [other for other, keys in vars(module).items() if f"{name}_" in other and key in keys]
    return sorted(beside + [option for option, value in vars(hook).items() if value is True])


def registered(net: Module, words: Mapping[Any, str]) -> Iterator[str]:
    """How the modules of ``net`` hold those hooks that have a word: with which options, and after which others."""
    for module in net.modules():
        for name, table in vars(module).items():
            if is_hook_table(name, table):
                before: list[str] = []
                for key, hook in table.items():
                    if word := words.get(getattr(hook, "hook", hook)):
                        said = f"{word} in {name} with {options(module, name, key, hook)}"
                        yield f"{said} after {before}"
                        before.append(word)


def hooked(net: Module, group: str) -> dict[tuple[str, str], Callable[..., None]]:
    """Puts a hook of each kind of the group on every module of ``net``; gives them by module and kind."""
    hooks: dict[tuple[str, str], Callable[..., None]] = {}
    for path, module in net.named_modules():
        for name in GROUPS[group]:
            if hasattr(module, name):
                hooks[path, name] = lambda *_: None
                getattr(module, name)(hooks[path, name])
    return hooks


def counted(net: Module, group: str, calls: list[str]) -> dict[str, Callable[..., None]]:
    """Puts a hook of each kind of the group on every module of ``net`` that can be called, each of which appends its
    word to ``calls``; gives them by that."""
    hooks: dict[str, Callable[..., None]] = {}
    for path, module in net.named_modules():
        for name in GROUPS[group]:
            if hasattr(module, name) and type(module).forward is not nn.Module.forward:
                word = f"{name} of {path or 'the root'}"
                hooks[word] = noting(calls, word)
                getattr(module, name)(hooks[word])
    return hooks


ARGUMENTS = {"register_forward_pre_hook": 2, "register_forward_hook": 3}
"""How many arguments a hook of a forward has; keyword arguments are one more."""


def convert(host: Host, net: Module) -> Module | None:
    """What the host makes of the net; None where it refuses to because of hooks. An attribute that is not there is no
    refusal, though its name may speak of hooks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return host.make(net)
        except RuntimeError as error:
            if "hook" not in str(error):
                raise
            return None


@program(
    "HO-01",
    PIN,
    since="1.8",
    source="torch.ao.quantization.swap_module, 'Preserve module's pre forward hooks'; pytorch#37151, pytorch#105445",
    device="cpu",  # what is quantised is for the CPU
)
def what_is_made_of_a_module_keeps_its_hooks(check: Check) -> None:
    """Of a module with hooks another one is made: each hook is on one module of that, once; or the making is refused,
    in words that speak of hooks. A hook that comes to a copy does not come to what was copied."""
    for name, host in HOSTS.items():
        if not offered(host.since):
            continue
        for group in GROUPS:
            net = host.base()
            hooks = hooked(net, group)
            result = convert(host, net)
            held = [] if result is None else [*tables(result)]
            for site in host.sites or [path for path, _ in net.named_modules()] if result is not None else ():
                for kind, hook in {kind: hook for (path, kind), hook in hooks.items() if path == site}.items():
                    seen = [other for other in held if other is hook]
                    check.calls(f"{name}: {kind} on {site or 'the root'}", len(seen), 1)
            if host.copies and result is not None:
                before = [*tables(net)]
                hooked(result, group)
                check.true(f"{name}: {group} hooks that come to the copy come to it alone", [*tables(net)] == before)


def _contents(net: Module) -> list[tuple[Any, ...]]:
    """What the modules of ``net`` hold: parts, parameters and buffers, by module, table and name."""
    held = ((path, table, vars(module)[table]) for path, module in net.named_modules() for table in TABLES)
    return [(path, table, name, id(value)) for path, table, values in held for name, value in values.items()]


TABLES = ("_modules", "_parameters", "_buffers")
"""Where a module holds what is no hook."""


def _filled(module: Module) -> None:
    """Puts a part, a parameter and a buffer into a module, and others in the place of the parts that it has."""
    for name in [*module._modules, "another_part"]:
        module.add_module(name, nn.Identity())
    module.register_parameter("another_parameter", nn.Parameter(torch.ones(1)))
    module.register_buffer("another_buffer", torch.ones(1))


@program("HO-13", PIN, since="1.8", source="torch.nn.Module._replicate_for_data_parallel; pytorch#128272", device="cpu")
def what_comes_to_a_copy_comes_to_it_alone(check: Check) -> None:
    """What is put into a copy or a replica of a module does not come into that one: neither parts, with their hooks,
    nor parameters and buffers, nor hooks."""
    for name, host in HOSTS.items():
        replica = name == "replica"  # which has the parts of the module, so that they are left alone here
        if not offered(host.since) or not (host.copies or replica):
            continue
        net = host.base()
        result = host.make(net)
        before = _contents(net)
        for module in [result] if replica else [*result.modules()]:
            _filled(module)
        check.true(f"{name}: parts, parameters and buffers that come to it", _contents(net) == before)
        if replica:  # HO-01 says it of copies
            for group, kinds in GROUPS.items():
                held = [*tables(net)]
                for kind in kinds:
                    getattr(result, kind, lambda hook: None)(lambda *_: None)
                check.true(f"{name}: {group} hooks that come to it", [*tables(net)] == held)


def in_two_ways(net: Module, name: str, option: str, log: list[str]) -> dict[Any, str]:
    """Registers two hooks on every module of ``net`` but a ModuleDict, which cannot be called, the second one with an
    option; gives their words. Each appends its word and how many arguments it has to ``log``."""
    words: dict[Any, str] = {}
    for path, module in net.named_modules():
        for way in () if isinstance(module, nn.ModuleDict) else ({}, {option: True}):
            word = f"{' '.join(way) or 'plain'} on {path or 'the root'}"
            hook = _noting(log, word)
            getattr(module, name)(hook, **way)
            words[hook] = word
    return words


def _noting(log: list[str], word: str) -> Callable[..., None]:
    return lambda *arguments: log.append(f"{word}: {len(arguments)}")


@program(
    "HO-10",
    PIN,
    since="2.0",
    source="torch.nn.Module.register_forward_hook and its siblings, of with_kwargs, prepend and always_call",
    device="cpu",  # as HO-01
)
def what_is_made_of_a_module_keeps_the_options_of_its_hooks(check: Check) -> None:
    """Of a module with hooks that were registered with options another one is made: each hook that it holds has the
    same options, comes behind the same hooks, and is called with as many arguments as these options say."""
    for host_name, host in HOSTS.items():
        for name in chain(*GROUPS.values()) if offered(host.since) else ():
            for option in options_of(name):
                keeps_the_option(check, host_name, host, name, option)


def keeps_the_option(check: Check, host_name: str, host: Host, name: str, option: str) -> None:
    """States of a host that what it makes keeps an option of the hooks that are registered by a name."""
    log: list[str] = []
    net = host.base()
    words = in_two_ways(net, name, option, log)
    before = {*registered(net, words)}
    fact = f"{host_name}: {name}, {option}"
    result = check.works(f"{fact}: making", partial(convert, host, net))
    if result is not None:
        otherwise = sorted({*registered(result, words)} - before)
        check.equal(fact, otherwise, [])
    if result is not None and name in ARGUMENTS and offered(CALLED_SINCE.get(host_name, host.since)):
        held = [words[hook] for hook in tables(result) if hook in words]
        log.clear()
        result(host.given())
        due = [f"{word}: {ARGUMENTS[name] + word.startswith('with_kwargs')}" for word in held]
        check.equal(f"{fact}: arguments in a call", sorted(log), sorted(due))
    if result is not None and host_name in CHANGES:
        CHANGES[host_name].back(result[0])
        check.equal(f"{fact}, taken back", sorted(registered(result, words)), sorted(before))


@program(
    "HO-05",
    PIN,
    since="1.8",
    source="torch.nn.Module.register_forward_hook and its siblings; 'every time'",
    device="cpu",  # as HO-01
)
def what_is_made_calls_its_hooks(check: Check) -> None:
    """What is made of a module with hooks calls each hook that it holds once in a forward, and once in a backward,
    also one that comes when nothing but the graph refers to it any more."""
    for name, host in HOSTS.items():
        if not offered(max(host.since, CALLED_SINCE.get(name, host.since))):
            continue
        for until in ("in use", "dropped"):
            calls: list[str] = []
            net = host.base()
            hooks = {group: counted(net, group, calls) for group in ("forward", "backward")}
            result = convert(host, net)
            if result is None:
                continue
            held = [*tables(result)]
            due = {
                group: sorted(w for w, hook in of_group.items() for h in held if h is hook)
                for group, of_group in hooks.items()
            }
            x = host.given()
            calls.clear()
            y = check.works(f"{name}, {until}: a call", partial(result, x))
            check.order(f"{name}, {until}: forward hooks", sorted(calls), due["forward"])
            calls.clear()
            if y is not None and y.requires_grad and name not in NO_BACKWARD:
                if until == "dropped":
                    del result, net, hooks, held
                    gc.collect()
                check.works(f"{name}, {until}: a backward", y.sum().backward)
                check.order(f"{name}, {until}: backward hooks", sorted(calls), due["backward"])


def _own_parts(part: Module) -> dict[str, list[str]]:
    """What a module is and holds, by name."""
    return {"class": [type(part).__name__], **{name: [*vars(part)[name]] for name in ("_modules", "_buffers")}}


@program(
    "HO-02",
    PIN,
    since="1.8",
    source="torch.nn.utils.remove_spectral_norm and its siblings; torch.nn.utils.parametrize.remove_parametrizations",
)
def the_way_back_leaves_no_hook(check: Check) -> None:
    """What norms, prunes or parametrises a module leaves it, once it is taken back, with the hooks that it had before,
    with none of its own, with its class and its parts, and able to load its own state."""
    for name, change in CHANGES.items():
        if not offered(change.since):
            continue
        net = rows()
        for group in GROUPS:
            hooked(net, group)
        parts = _own_parts(net[0])
        before = [*tables(net)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            change.there(net[0])
            change.back(net[0])
        after = [*tables(net)]
        stayed = [number for number, hook in enumerate(before) if hook in after]
        check.order(f"{name}: hooks that there were", stayed, [*range(len(before))])
        besides = [type(hook).__name__ for hook in after if hook not in before]
        check.order(f"{name}: hooks besides", besides, [])
        check.equal(f"{name}: class and parts", _own_parts(net[0]), parts)
        check.works(f"{name}: its own state is loaded", partial(net.load_state_dict, net.state_dict()))


PARAMETER_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
"""What registers a hook on a parameter; what a torch lacks is left out."""


def of_parameter(parameter: Any, calls: list[str], path: str) -> list[str]:
    """Puts a hook of each kind on a parameter, each of which appends its word to ``calls``; gives the words."""
    kinds = [kind for kind in PARAMETER_HOOKS if hasattr(torch.Tensor, kind)]
    for kind in kinds:
        getattr(parameter, kind)(noting(calls, f"{kind} of {path}"))
    return [f"{kind} of {path}" for kind in kinds]


@program(
    "HO-08",
    PIN,
    since="1.8",
    source="torch.nn.utils.parametrize.remove_parametrizations, 'so that the parameter does not change its id'",
)
def a_weight_keeps_its_hooks(check: Check) -> None:
    """The hooks of a weight are called once in each backward while something else is computed from it, and when that
    is taken back; where torch says so, it is the same parameter all the way."""
    for name, change in CHANGES.items():
        if not offered(change.since):
            continue
        part, calls = nn.Linear(2, 2), list[str]()
        weight = part.weight
        due = of_parameter(weight, calls, "the weight")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for way, act in (("there", change.there), ("back", change.back)):
                act(part)
                calls.clear()
                part(torch.ones(1, 2)).sum().backward()
                check.order(f"{name}: hooks of the weight, {way}", calls, due)
        if change.same_weight:
            check.true(f"{name}: it is the parameter that it was", part.weight is weight)


@program(
    "HO-11",
    PIN,
    since="1.8",
    source="torch.Tensor.register_hook, 'every time a gradient with respect to the Tensor is computed'; SZ-24",
    device="cpu",  # as HO-01
)
def what_is_made_calls_the_hooks_of_its_parameters(check: Check) -> None:
    """Of a module whose parameters have hooks another one is made: in a backward of that each of them is called once;
    where its parameters are copies, none is, since hooks of a tensor are not copied."""
    elsewhere = {*CHANGES, *NO_BACKWARD, *UNINITIALISED}
    for name, host in {**HOSTS, **IN_PLACE}.items():
        if name in elsewhere or not offered(max(host.since, CALLED_SINCE.get(name, host.since))):
            continue
        calls: list[str] = []
        net = host.base()
        words = [word for path, one in net.named_parameters() for word in of_parameter(one, calls, path)]
        result = convert(host, net)
        if result is None:
            continue
        calls.clear()
        y = result(host.given())
        if y.requires_grad:
            y.sum().backward()
        check.order(f"{name}: hooks of parameters", sorted(calls), [] if host.copies else sorted(words))


OWN_HOOKS = ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook", "backward_hook")
"""What is registered on a compiled module itself; the last two are of families that exclude each other."""


@program(
    "HO-06",
    PIN,
    since="2.1",
    source="pytorch#152740, 'OptimizedModule also inherits nn.module.__call__, and thus has its own hook logic'",
)
@fresh()
def a_compiled_module_has_hooks_of_its_own(check: Check) -> None:
    """What torch.compile makes of a module has hooks of its own: each is called once in a call or its backward, with
    the compiled module, until it is removed; and which hooks the module itself takes stays as it was."""
    for kind in OWN_HOOKS:
        log: list[str] = []
        module = times(2.0)
        compiled = torch.compile(module, backend="eager")
        handle = getattr(compiled, f"register_{kind}")(_naming(log))
        for state, call in (("registered", compiled), ("the module itself", module), ("removed", compiled)):
            if state == "removed":
                handle.remove()
            log.clear()
            call(leaf(1.0)).sum().backward()
            check.order(f"{kind}: {state}", log, ["OptimizedModule"] if state == "registered" else [])
        other = "register_backward_hook" if kind.startswith("full") else "register_full_backward_hook"
        check.works(f"{kind}: the other family on the module itself", partial(getattr(module, other), print))


def _naming(log: list[str]) -> Callable[..., None]:
    """A hook of any kind that notes of which class the module is that it is given."""
    return lambda module, *_: log.append(type(module).__name__)
