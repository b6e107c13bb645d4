"""Faults in what hooks see of DTensors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module

from ..engine import Fault
from ..registering import edited

Patch = AbstractContextManager[None]


def _turning(name: str, method: str, *changes: tuple[str, str]) -> Patch:
    """Edits a method of the Function that turns a tensor into a DTensor, or one into a tensor."""
    return edited(getattr(import_module("torch.distributed.tensor._api"), name), method, *changes)


def _distributing(*changes: tuple[str, str]) -> Patch:
    return edited(import_module("torch.distributed.tensor"), "distribute_module", *changes)


def _parts_stay_parts() -> Patch:
    return edited(
        import_module("torch.distributed.tensor._api"),
        "_normalize_placements_for_grad",
        ("if p.is_partial():", "if False:"),
    )


def _redistributed_gradients_stay() -> Patch:
    redistribute = import_module("torch.distributed.tensor._redistribute").Redistribute
    return edited(redistribute, "backward", ("NestedRedistribute.apply(", "(lambda gradient, *others: gradient)("))


def _hooks_on_all_modules_stay() -> Patch:
    mode = import_module("torch.distributed.tensor.debug._comm_mode")
    return edited(mode._CommModeModuleTracker, "__exit__", ("self._bw_handle.remove()", "pass"))


def _hooks_of_modules_stay() -> Patch:
    mode = import_module("torch.distributed.tensor.debug._comm_mode")
    return edited(mode._CommModeModuleTracker, "__exit__", ("handle.remove()", "pass"))


COMES, GOES = "_FromTorchTensor", "_ToTorchTensor"
ZEROS = ("ctx.set_materialize_grads(False)", "pass")

_FAULTS: tuple[tuple[str, Callable[[], Patch], str], ...] = (
    ("from_local: an absent gradient is zeros", partial(_turning, COMES, "forward", ZEROS), "DT-01"),
    ("to_local: an absent gradient is zeros", partial(_turning, GOES, "forward", ZEROS), "DT-01"),
    (
        "from_local: grad_placements are ignored",
        partial(_turning, COMES, "backward", ("if grad_placements is not None:", "if False:")),
        "DT-12",
    ),
    (
        "to_local: grad_placements are ignored",
        partial(_turning, GOES, "backward", ("if grad_placements is None:", "if True:")),
        "DT-02 DT-12",
    ),
    ("to_local: the gradient of parts is parts", _parts_stay_parts, "DT-02"),
    (
        "to_local: the gradient is a plain tensor",
        partial(_turning, GOES, "backward", ("DTensor.from_local(", "(lambda gradient, *others, **more: gradient)(")),
        "DT-02 DT-03",
    ),
    ("redistribute: the gradient keeps the placement of the output", _redistributed_gradients_stay, "DT-02"),
    (
        "distribute_module: what input_fn returns is dropped",
        partial(_distributing, ("input_fn(mod, inputs, device_mesh)", "input_fn(mod, inputs, device_mesh) and None")),
        "DT-04",
    ),
    (
        "distribute_module: a module may be distributed again",
        partial(_distributing, ("if already_distributed:", "if False:")),
        "DT-04",
    ),
    (
        "distribute_module: an output_fn of two arguments gets the inputs",
        partial(_distributing, ("output_fn(outputs, device_mesh)", "output_fn(inputs[0], device_mesh)")),
        "DT-04",
    ),
    *(
        (
            f"distribute_module: its {name} is called before the hooks that there were",
            partial(
                _distributing,
                (f"{name}_fn(mod, {given}, device_mesh)", f"{name}_fn(mod, {given}, device_mesh), prepend=True"),
            ),
            "DT-04",
        )
        for name, given in (("input", "inputs"), ("output", "outputs"))
    ),
    (
        "distribute_module: parameters are thawed",
        partial(_distributing, ("requires_grad=param.requires_grad", "requires_grad=True")),
        "DT-05",
    ),
    (
        "distribute_module: parameters are detached",
        partial(_distributing, ("requires_grad=param.requires_grad", "requires_grad=False")),
        "DT-05 DT-06",
    ),
    ("CommDebugMode: its hooks on all modules stay", _hooks_on_all_modules_stay, "DT-10"),
    ("CommDebugMode: its hooks on modules stay", _hooks_of_modules_stay, "DT-10"),
)

FAULTS = tuple(Fault(what, patch, tuple(clauses.split()), kinds=(), since="2.13") for what, patch, clauses in _FAULTS)
