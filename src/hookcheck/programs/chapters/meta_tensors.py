"""Are hooks called on tensors without numbers as they are on others?

A tensor on the device ``meta`` has shape, dtype and graph, and no numbers. What computes the shapes of a network, or
looks at it before it is made in full, relies on its hooks all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import net
from hookcheck.programs.program import program

META = "https://docs.pytorch.org/docs/stable/meta.html, 'Meta device'"

Note = Callable[..., Any]
"""``note(name)`` gives a hook that notes itself by that name, with what it is given."""


def chain() -> Any:
    """Two layers with an activation between."""
    return nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 3))


def twice() -> Any:
    """A layer that is called twice."""
    return net(lambda module, x: module.layer(torch.tanh(module.layer(x))), layer=nn.Linear(3, 3))


def forked() -> Any:
    """Two layers, of which one gives what nothing uses."""
    return net(
        lambda module, x: (module.one(x), module.other(x))[0], one=nn.Linear(3, 2, bias=False), other=nn.Linear(3, 2)
    )


def imaged() -> Any:
    """A convolution with a normalisation and a pool, of rows that are looked at as images."""
    layers = nn.Sequential(nn.Conv2d(1, 2, (1, 2)), nn.BatchNorm2d(2), nn.MaxPool2d((1, 2)))
    return net(lambda module, x: module.layers(x.reshape(2, 1, 1, 3)), layers=layers)


def checkpointed() -> Any:
    """A layer that runs once more in backward, behind another one; without random numbers, of which meta has none."""
    run = partial(import_module("torch.utils.checkpoint").checkpoint, use_reentrant=False, preserve_rng_state=False)
    return net(
        lambda module, x: run(module.other, module.one(x)), one=nn.Linear(3, 2), other=nn.Sequential(nn.Linear(2, 3))
    )


NETS = {
    "a chain": chain,
    "a layer called twice": twice,
    "an output that is not used": forked,
    "images": imaged,
    "a checkpoint": checkpointed,
}


def on_modules(register: str) -> Callable[[Any, Any, Note], None]:
    """Registers with the method of that name on each module."""

    def registering(model: Any, x: Any, note: Note) -> None:
        for path, module in model.named_modules():
            getattr(module, register)(note(path or "net"))

    return registering


def on_leaves(register: str) -> Callable[[Any, Any, Note], None]:
    """Registers with the method of that name on each parameter, and on the input."""

    def registering(model: Any, x: Any, note: Note) -> None:
        for name, tensor in (*model.named_parameters(), ("x", x)):
            if tensor.requires_grad:
                getattr(tensor, register)(note(name))

    return registering


def on_outputs(register: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Note], None]:
    """Has ``register(output, hook)`` called for what each module gives."""

    def registering(model: Any, x: Any, note: Note) -> None:
        for path, module in model.named_modules():
            module.register_forward_hook(
                lambda module, args, output, name=path or "net": (register(output, note(name)), None)[1]
            )

    return registering


def on_all_leaves(model: Any, x: Any, note: Note) -> None:
    """Registers one hook on all parameters together."""
    torch.autograd.graph.register_multi_grad_hook(tuple(model.parameters()), note("all parameters"))


HOOKS = {
    "register_backward_hook": on_modules("register_backward_hook"),
    "register_forward_pre_hook": on_modules("register_forward_pre_hook"),
    "register_forward_hook": on_modules("register_forward_hook"),
    "register_full_backward_pre_hook": on_modules("register_full_backward_pre_hook"),
    "register_full_backward_hook": on_modules("register_full_backward_hook"),
    "register_hook": on_leaves("register_hook"),
    "register_hook of outputs": on_outputs(lambda output, hook: output.register_hook(hook)),
    "register_hook of Nodes": on_outputs(lambda output, hook: output.grad_fn.register_hook(hook)),
    "register_prehook of Nodes": on_outputs(lambda output, hook: output.grad_fn.register_prehook(hook)),
    "register_multi_grad_hook": on_all_leaves,
    "register_post_accumulate_grad_hook": on_leaves("register_post_accumulate_grad_hook"),
}
"""How hooks of each kind are registered, by the function that does so."""


def looks(value: Any) -> str:
    """What there is to a value beside numbers and device."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    return f"[{', '.join(map(looks, value))}]" if isinstance(value, (tuple, list)) else type(value).__name__


def seen(make: Callable[[], Any], hooks: str, device: str, differentiated: bool) -> list[str]:
    """The calls of such hooks in a training step of a network on a device, each with what it got."""
    log: list[str] = []

    def note(name: str) -> Any:
        return lambda *given: log.append(f"{name}: {looks(given)}")

    def pack(tensor: Any) -> Any:
        log.append(f"saved: {looks(tensor)}")
        return tensor

    model = make().to(device)
    x = torch.ones(2, 3, device=device, requires_grad=differentiated)
    if hooks in HOOKS:
        HOOKS[hooks](model, x, note)
    saving = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    with nullcontext() if hooks in HOOKS else saving:
        model(x).sum().backward()
    log += [f"{name}: {looks(leaf.grad)}" for name, leaf in (*model.named_parameters(), ("x", x))]
    return log


@program("ME-01", PIN, since="2.1", source=META)
def called_as_with_numbers(check: Check) -> None:
    """On the device meta hooks of every kind are called as on the CPU: as often, in that order, with None in the same
    places, and tensors of the same shapes and dtypes; the same leaves have a gradient."""
    on_meta = checkpointed().to("meta")
    works = check.works(
        "a checkpoint on meta", lambda: on_meta(torch.ones(2, 3, device="meta")).sum().backward() or True
    )
    nets = {name: make for name, make in NETS.items() if works or make is not checkpointed}
    of_kernels = ["saved_tensors_hooks"] * (check.device == "cpu")  # those of a GPU save what they need besides
    for hooks in (*HOOKS, *of_kernels):
        for name, make in nets.items():
            for differentiated in (True, False):
                there, here = (seen(make, hooks, device, differentiated) for device in ("meta", check.device))
                place = f"{hooks}, {name}, an input that {'requires' if differentiated else 'needs no'} grad"
                check.order(place, there, here)
