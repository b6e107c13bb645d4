"""The command that lists the modules of torch.nn."""

from __future__ import annotations

from hookcheck.cli.frame import command, installed_torch
from hookcheck.cli.output import fields, show, table

_SCHEMAS = [
    fields(
        name=("string", "the class in torch.nn"),
        state=("string", "covered, left-out, or not-offered by the torch that is installed"),
        reason=("string", "why it is left out or not offered; empty where it is covered"),
    )
]


@command("layers", _SCHEMAS)
def list_layers(shape: str) -> None:
    """List the modules of torch.nn: which a topology can hold, and why not the others."""
    from hookcheck.topology.catalogue import layer_classes
    from hookcheck.topology.excused import EXCUSED

    offered = _offered_layers()
    rows = []
    for name in sorted({*layer_classes(), *EXCUSED, *offered}):
        state, reason = "left-out", EXCUSED.get(name, "newer than this hookcheck")
        if name in layer_classes():
            there = not offered or name in offered
            state, reason = (
                ("covered", "") if there else ("not-offered", f"torch {installed_torch().__version__} lacks it")
            )
        rows.append({"name": name, "state": state, "reason": reason})
    show(rows, shape, lambda: table(rows, ("name", "state", "reason")))


def _offered_layers() -> frozenset[str]:
    """The public modules of the torch that is installed; empty where none is."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return frozenset()
    nn = installed_torch().nn
    found = (name for name, c in vars(nn).items() if isinstance(c, type) and issubclass(c, nn.Module))
    return frozenset(name for name in found if not name.startswith("_"))
