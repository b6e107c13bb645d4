"""What becomes of hooks in places that reports of users name, and that no other chapter is about?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import times
from hookcheck.programs.program import program

REFUSED = "is not supported on ScriptModules"


@program("RF-01", PIN, since="2.6", source="torch.export.export; pytorch#153062")
def what_hooks_keep_of_an_export(check: Check) -> None:
    """What forward hooks and pre-hooks keep while a module is exported are tensors that have numbers."""
    export = import_module("torch.export").export
    seen: dict[str, Any] = {}
    inner = times(2.0)
    net = nn.Sequential(inner)
    for name, module in {"the root": net, "a child": inner}.items():
        module.register_forward_pre_hook(lambda m, args, name=name: seen.update({f"a pre-hook of {name}": args[0]}))
        module.register_forward_hook(lambda m, args, out, name=name: seen.update({f"a hook of {name}": out}))
    export(net, (torch.tensor([3.0]),), strict=False)
    check.equal("hooks that were called", len(seen), 4)
    for what in ("a pre-hook of the root", "a pre-hook of a child", "a hook of a child", "a hook of the root"):
        check.equal(f"class of what {what} kept", type(seen.get(what)).__name__, "Tensor")


@program("RF-02", PIN, since="1.7", source="torch.jit.ScriptModule; pytorch#29037; pytorch#52309")
def hooks_on_parts_of_a_script(check: Check) -> None:
    """A part of a script refuses hooks in words, as the script itself does, whichever way it was got: by its name, an
    index, a key or in a loop."""

    sequential = torch.jit.script(nn.Sequential(nn.ReLU()))
    table = torch.jit.script(nn.ModuleDict({"a": nn.ReLU()}))
    parts: dict[str, Callable[[], Any]] = {
        "the script": lambda: sequential,
        "a Sequential's part by its name": lambda: next(sequential.children()),
        "a Sequential's part by an index": lambda: sequential[0],
        "a Sequential's part of a loop": lambda: next(iter(sequential)),
        "a ModuleDict's part by its name": lambda: table.a,
        "a ModuleDict's part by its key": lambda: table["a"],
    }
    for kind in ("register_forward_pre_hook", "register_forward_hook", "register_full_backward_hook"):
        if hasattr(nn.Module, kind):
            for name, part in parts.items():
                register = getattr(part(), kind)
                check.raises(f"{kind} of {name}", RuntimeError, lambda register=register: register(print), REFUSED)


@program("RF-03", PIN, since="2.6", source="torch.export.export; pytorch#163189")
def what_hooks_write_into_an_exported_module(check: Check) -> None:
    """What forward hooks and pre-hooks write into a module while it is exported is not left there without numbers: an
    attribute, or a buffer that was None or not, is what it was or has numbers, or the export is refused."""
    export = import_module("torch.export").export
    for place in ("attribute", "buffer of None", "buffer"):
        for register in ("register_forward_pre_hook", "register_forward_hook"):
            for on in ("the root", "a child"):
                inner = times(2.0)
                net = nn.Sequential(inner)
                module = net if on == "the root" else inner
                module.stored = None
                if place != "attribute":
                    del module.stored
                    module.register_buffer("stored", None if "None" in place else torch.zeros(1))
                getattr(module, register)(lambda module, args, *_: setattr(module, "stored", args[0] + 1))
                with suppress(RuntimeError, ValueError, AssertionError):  # refused
                    export(net, (torch.tensor([3.0]),), strict=False)
                without = type(module.stored).__name__ == "FakeTensor"
                check.equal(f"{place} of {on}, {register}: without numbers", without, False)
