"""What becomes of hooks where a module is made from another, and where what was made is taken back?

torch converts, fuses, quantises, traces and wraps modules. The hooks of a module are then on what is made from it,
wherever they went in there; or the making is refused, and says why. No hook may be lost without a word, or be there
twice; and of torch's own none may stay behind on the way back.
"""

from __future__ import annotations

import copy
import gc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.chapters.torch_compile import fresh
from hookcheck.programs.check import Check
from hookcheck.programs.host_changes import CHANGES, GROUPS, Module, Release, offered, quantization
from hookcheck.programs.nets import leaf, times
from hookcheck.programs.program import program
from hookcheck.programs.watching import noting


def images() -> Module:
    """A convolution, a normalisation and an activation, ready to be fused."""
    return nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU()).eval()


def rows() -> Module:
    """A Linear in a container."""
    return nn.Sequential(nn.Linear(2, 2)).eval()


def normed_rows() -> Module:
    """A Linear and its normalisation."""
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()


def lazy_rows() -> Module:
    """A Linear that does not know its width yet."""
    return nn.Sequential(nn.LazyLinear(2)).eval()


def row() -> Any:
    """What a Linear takes."""
    return torch.ones(1, 2, requires_grad=True)


def image() -> Any:
    """What a convolution takes."""
    return torch.ones(1, 1, 2, 2, requires_grad=True)


def quantised() -> Any:
    """The same, as what is quantised takes it."""
    return torch.quantize_per_tensor(torch.ones(1, 1, 2, 2), 0.5, 0, torch.quint8)


def _prepared(net: Module) -> Module:
    net.qconfig = quantization().get_default_qconfig("fbgemm")
    return quantization().prepare(net)


def _converted(net: Module) -> Module:
    prepared = _prepared(net)
    prepared(torch.ones(1, 1, 2, 2))
    return quantization().convert(prepared)


def _prepared_to_train(net: Module) -> Module:
    net.train().qconfig = quantization().get_default_qat_qconfig("fbgemm")
    return quantization().prepare_qat(net)


def _fused(name: str) -> Callable[[Module], Module]:
    """What that function makes of the two parts of a net."""
    return lambda net: getattr(import_module("torch.nn.utils.fusion"), name)(net[0], net[1])


def _called(net: Module) -> Module:
    net(torch.ones(1, 2))
    return net


def _changed(change: Callable[[Module], Any]) -> Callable[[Module], Module]:
    """Does something to the first part, which stays where it is."""

    def make(net: Module) -> Module:
        change(net[0])
        return net

    return make


@dataclass(frozen=True)
class Host:
    """What is made of a net, since which release it can be, which of the net's modules go into it (all if none), and
    what it is given in a call."""

    make: Callable[[Module], Module]
    base: Callable[[], Module] = rows
    since: Release = (1, 8)
    sites: tuple[str, ...] = ()
    given: Callable[[], Any] = row


def _without_hooks(host: Host) -> Module:
    """What a host makes of its net without hooks."""
    return host.make(host.base())


HOSTS = {
    "convert_sync_batchnorm": Host(lambda net: nn.SyncBatchNorm.convert_sync_batchnorm(net), images, given=image),
    "fuse_conv_bn_eval": Host(_fused("fuse_conv_bn_eval"), images, sites=("0", "1"), given=image),
    "fuse_linear_bn_eval": Host(_fused("fuse_linear_bn_eval"), normed_rows, (1, 13), ("0", "1")),
    "symbolic_trace": Host(lambda net: import_module("torch.fx").symbolic_trace(net)),
    "fuse_modules": Host(lambda net: quantization().fuse_modules(net, [["0", "1", "2"]]), images, given=image),
    "quantize_dynamic": Host(lambda net: quantization().quantize_dynamic(net, {nn.Linear})),
    "prepare": Host(_prepared, images, given=image),
    "convert": Host(_converted, images, given=quantised),
    "prepare_qat": Host(_prepared_to_train, images, given=image),
    "to_mkldnn": Host(lambda net: import_module("torch.utils.mkldnn").to_mkldnn(net)),
    "compile": Host(lambda net: torch.compile(net, backend="eager"), since=(2, 1)),
    "AveragedModel": Host(lambda net: import_module("torch.optim.swa_utils").AveragedModel(net)),
    "DataParallel": Host(lambda net: nn.DataParallel(net)),
    "replica": Host(lambda net: net._replicate_for_data_parallel()),
    "deepcopy": Host(copy.deepcopy),
    "lazy, called": Host(_called, lazy_rows, (1, 13)),
    **{name: Host(_changed(change.there), since=change.since) for name, change in CHANGES.items()},
}
"""What makes modules of modules, by name."""

COPIED: dict[str, Release] = {
    "symbolic_trace": (1, 8),
    "parametrized": (1, 13),
    "AveragedModel": (1, 8),
    "DataParallel": (1, 8),
}
"""Hosts of whose modules a deepcopy is made as well, since which release it can be: those have a class, a
``__deepcopy__`` or modules of their own."""

for _name, _since in COPIED.items():
    HOSTS[f"deepcopy of {_name}"] = replace(
        HOSTS[_name], make=copy.deepcopy, base=partial(_without_hooks, HOSTS[_name]), since=_since
    )


CALLED_SINCE: dict[str, Release] = {"convert_sync_batchnorm": (2, 0), "compile": (99, 0)}
"""Hosts that are not called on every release: SyncBatchNorm was about CUDA alone before 2.0, and compiling takes
seconds; the chapter torch-compile speaks of it."""

NO_BACKWARD = {"to_mkldnn": "torch has no backward for what is in that layout, with or without hooks"}
"""Hosts that are called and no more, with the reason."""


def tables(net: Module) -> Iterator[Any]:
    """Every hook that the modules of ``net`` hold; those of load_state_dict without what torch wraps them in."""
    for module in net.modules():
        for name, table in vars(module).items():
            if name.endswith("_hooks") and hasattr(table, "values"):
                yield from (getattr(hook, "hook", hook) for hook in table.values())


def hooked(net: Module, group: str) -> dict[tuple[str, str], Callable[..., None]]:
    """Puts a hook of each kind of the group on every module of ``net``; gives them by module and kind."""
    hooks = {}
    for path, module in net.named_modules():
        for name in GROUPS[group]:
            if hasattr(module, name):

                def hook(*_: Any) -> None:
                    """Looks on."""

                getattr(module, name)(hook)
                hooks[path, name] = hook
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


def convert(host: Host, net: Module) -> Module | None:
    """What the host makes of the net; None where it refuses to because of hooks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return host.make(net)
        except Exception as error:
            if "hook" not in str(error):
                raise
            return None


@program(
    "HO-01",
    PIN,
    since="1.8",
    source="torch.ao.quantization.swap_module, 'Preserve module's pre forward hooks'; pytorch#37151, pytorch#105445",
)
def what_is_made_of_a_module_keeps_its_hooks(check: Check) -> None:
    """Of a module with hooks another one is made: each hook is on one module of that, once; or the making is refused,
    in words that speak of hooks."""
    for name, host in HOSTS.items():
        if not offered(host.since):
            continue
        for group in GROUPS:
            net = host.base()
            hooks = hooked(net, group)
            result = convert(host, net)
            held = [] if result is None else [*tables(result)]
            for site in host.sites or [path for path, _ in net.named_modules()] if result is not None else ():
                of_site = {kind: hook for (path, kind), hook in hooks.items() if path == site}
                seen = [kind for kind, hook in of_site.items() for other in held if other is hook]
                check.order(f"{name}: {group} hooks on {site or 'the root'}", seen, [*of_site])


@program(
    "HO-05",
    PIN,
    since="1.8",
    source="torch.nn.Module.register_forward_hook and its siblings; 'every time'",
    alone=True,  # once there is a process group, SyncBatchNorm is for CUDA alone
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


@program(
    "HO-08",
    PIN,
    since="1.8",
    source="torch.nn.utils.parametrize.remove_parametrizations, 'so that the parameter does not change its id'",
)
def a_weight_that_stays_keeps_its_hooks(check: Check) -> None:
    """Where a weight is the same parameter while something else is computed from it, and when that is taken back, its
    hooks are called once in each backward all the way."""
    kinds = [k for k in ("register_hook", "register_post_accumulate_grad_hook") if hasattr(torch.Tensor, k)]
    for name, change in CHANGES.items():
        if not offered(change.since) or not change.same_weight:
            continue
        part, calls = nn.Linear(2, 2), list[str]()
        weight = part.weight
        for kind in kinds:
            getattr(weight, kind)(noting(calls, kind))
        for way, act in (("there", change.there), ("back", change.back)):
            act(part)
            calls.clear()
            part(torch.ones(1, 2)).sum().backward()
            check.order(f"{name}: hooks of the weight, {way}", calls, kinds)
        check.true(f"{name}: it is the parameter that it was", part.weight is weight)


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
