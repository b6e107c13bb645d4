"""What becomes of hooks where the parameters of a model are made a vector, and where a model is put into a package?"""

from __future__ import annotations

import io
import sys
import types
from collections import OrderedDict
from functools import partial
from importlib import import_module
from typing import Any
from unittest import mock

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import leaf, weighted
from hookcheck.programs.program import program

PACKAGED = """
import torch

LOG = []


def before(module, args):
    LOG.append("before")


def after(module, args, output):
    LOG.append("after")
    return 2 * output


def backward(module, grad_input, grad_output):
    LOG.append("backward")


def hooked():
    module = torch.nn.Linear(1, 1, bias=False)
    module.weight.data.fill_(3.0)
    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)
    module.register_full_backward_hook(backward)
    return module
"""
"""A module of Python that goes into a package, with a network whose hooks are of it."""


@program("MU-08", PIN, since="1.7", source="torch.nn.utils.parameters_to_vector, vector_to_parameters, clip_grad_norm_")
def vectors_of_parameters_keep_hooks(check: Check) -> None:
    """Parameters keep their hooks when they are made a vector or filled from one: those get the gradients that reach
    them by the vector or by the module; clipping gradients calls none."""
    utils = torch.nn.utils
    net = nn.Sequential(weighted(2.0), weighted(3.0))
    log: list[Any] = []
    parameters = list(net.parameters())
    for name, parameter in zip("ab", parameters):
        parameter.register_hook(lambda grad, name=name: log.append((name, grad.item())))
    vector = utils.parameters_to_vector(parameters)
    (vector * torch.tensor([5.0, 7.0])).sum().backward()
    check.order("hooks by the vector", sorted(log), [("a", 5.0), ("b", 7.0)])
    log.clear()
    utils.vector_to_parameters(torch.tensor([11.0, 13.0]), parameters)
    check.order("hooks called by filling", log, [])
    check.true("the parameters are the same", [*map(id, net.parameters())] == [*map(id, parameters)])
    net(torch.ones(1)).sum().backward()
    check.order("hooks by the module", sorted(log), [("a", 13.0), ("b", 11.0)])
    log.clear()
    utils.clip_grad_norm_(parameters, 1.0)
    utils.clip_grad_value_(parameters, 0.5)
    check.order("hooks called by clipping", log, [])
    # gradients of both backwards: 5 + 13 and 7 + 11, which are equal: each is clipped to the root of a half, and to 0.5
    check.equal("gradients", [parameter.grad for parameter in parameters], [0.5, 0.5])


@program("MU-09", PIN, since="1.9", source="torch.package.PackageExporter.save_pickle; hooks are pickled with a module")
def a_package_has_the_hooks(check: Check) -> None:
    """A module that is saved in a package has its hooks when it is loaded, which are functions of that package: they
    run in its calls, and not those of the original."""
    package: Any = import_module("torch.package")
    origin = types.ModuleType("packaged")
    exec(PACKAGED, vars(origin))
    stored = io.BytesIO()
    with mock.patch.dict(sys.modules, {"packaged": origin}), package.PackageExporter(stored) as exporter:
        exporter.save_source_string("packaged", PACKAGED)
        exporter.extern(["torch", "torch.**", "collections"])
        exporter.save_pickle("nets", "net.pkl", origin.hooked())
    stored.seek(0)
    importer = package.PackageImporter(stored)
    net = importer.load_pickle("nets", "net.pkl")
    loaded = importer.import_module("packaged")
    x = torch.ones(1, 1, requires_grad=True)
    output = net(x)
    output.sum().backward()
    check.order("hooks of the package", loaded.LOG, ["before", "after", "backward"])
    check.order("hooks of the original", origin.LOG, [])
    check.equal("output and gradient: 2 · 3 · x", [output, x.grad], [[[6.0]], [[6.0]]])
    origin.hooked()(x)
    check.order("hooks in a call of another one", origin.LOG, ["before", "after"])
    check.calls("calls of the package's meanwhile", len(loaded.LOG), 3)


@program(
    "MU-10",
    PROMISE,
    since="1.9",
    source="consume_prefix_in_state_dict_if_present; pytorch#106942",
)
def a_prefix_goes_and_the_order_stays(check: Check) -> None:
    """A prefix that is taken off a state dict leaves the order of the keys as it was, and goes from the names of the
    metadata too, so that hooks on loading get the version of their module."""
    utils: Any = import_module("torch.nn.modules.utils")

    class Versioned(nn.Module):
        _version = 7

        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))

    wrapped: Any = nn.Module()
    wrapped.module = nn.Module()
    wrapped.module.part = Versioned()
    state = wrapped.state_dict()
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    check.equal("keys", list(state), ["part.weight", "part.bias"])
    seen: list[Any] = []
    wrapped.module.part._register_load_state_dict_pre_hook(
        lambda state, prefix, meta, *rest: seen.append(meta.get("version"))
    )
    wrapped.module.load_state_dict(state)
    check.equal("the version that a hook on loading gets", seen, [7])


@program(
    "PN-03",
    PROMISE,
    since="1.7",
    source="torch.nn.utils.prune.remove; pytorch#85397, pytorch#37138",
)
def what_computes_a_tensor_keeps_its_place(check: Check) -> None:
    """A tensor that pruning or a norm in the form of a hook computed has its place among the parameters once that is
    undone, by which optimizers find their states; and where it is pruned again, the pre-hook keeps its place."""
    prune: Any = import_module("torch.nn.utils.prune")
    norms: Any = import_module("torch.nn.utils")
    kinds: dict[str, tuple[Any, Any]] = {
        "pruning": (partial(prune.identity, name="weight"), partial(prune.remove, name="weight")),
        "pruning of the last": (partial(prune.identity, name="bias"), partial(prune.remove, name="bias")),
        "weight_norm": (norms.weight_norm, norms.remove_weight_norm),
        "spectral_norm": (norms.spectral_norm, norms.remove_spectral_norm),
    }
    for kind, (do, undo) in kinds.items():
        module = nn.Linear(1, 1)
        do(module)
        module(torch.ones(1, 1))
        undo(module)
        check.equal(f"{kind}, undone: parameters", [name for name, _ in module.named_parameters()], ["weight", "bias"])
    module, log = nn.Linear(1, 1, bias=False), list[bool]()
    prune.custom_from_mask(module, "weight", torch.ones(1, 1))
    module.register_forward_pre_hook(lambda module, args: log.append(bool((module.weight != 0).any())))
    prune.custom_from_mask(module, "weight", torch.zeros(1, 1))
    module.weight_orig.data.fill_(1.0)
    module.weight = torch.ones(1, 1)
    module(torch.ones(1, 1))
    check.equal("pruned to nothing: whether a pre-hook registered between sees a weight", log, [False])


@program("MU-11", PROMISE, since="1.7", source="torch.nn.Module.state_dict, destination; pytorch#72778")
def a_dict_of_ones_own(check: Check) -> None:
    """``state_dict`` puts a state into the dict that it is given, by place or by name, with the prefix; the dict may be
    a plain one, is what hooks on it get, and what is returned."""
    for how in ("by place", "by name"):
        module, log = weighted(3.0), list[Any]()
        module._register_state_dict_hook(lambda module, state, prefix, metadata, log=log: log.append((state, prefix)))
        given: Any = OrderedDict(there=torch.tensor(1.0))
        call = partial(module.state_dict, *([given, "p."] if how == "by place" else []))
        options = {} if how == "by place" else {"destination": given, "prefix": "p."}
        state = check.works(f"{how}: state_dict", partial(call, **options))
        if state is None:
            continue
        check.equal(f"{how}: keys of the dict", list(given), ["there", "p.weight"])
        check.true(f"{how}: it is returned", state is given)
        check.true(f"{how}: a hook gets it", len(log) == 1 and log[0][0] is given and log[0][1] == "p.")
    for keep_vars in (False, True):
        module, log = weighted(3.0), list[Any]()
        module.register_buffer("buffer", leaf(1.0))
        module._register_state_dict_hook(
            lambda module, state, *others, log=log: log.extend(entry.requires_grad for entry in state.values())
        )
        module.state_dict(keep_vars=keep_vars)
        check.equal(f"whether what a hook gets requires grad, keep_vars={keep_vars}", log, [keep_vars] * 2)
