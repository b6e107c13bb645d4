"""What do hooks note on the torch at hand while acts follow one another? Each method of `Player` is one act."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable
from functools import partial
from typing import Any

from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import text_of
from hookcheck.programs.logs import Entry
from hookcheck.programs.machine.model import (
    FACTORS,
    PARTS,
    Act,
    BackwardAct,
    CopyAct,
    FailAct,
    ForwardAct,
    GradAct,
    ModuleSite,
    RegisterAct,
    RemoveAct,
    TrainAct,
)

LOG: list[Entry] = []
HANDLES: list[Any] = []
"""These two are the module's own, since what a hook went through pickle with reaches nothing else."""

REFUSED = "shapes cannot be multiplied"
"""What torch says where `Fail` has it multiply matrices that do not fit."""


def called(number: int, removes: int | None, module: Any, *given: Any) -> None:
    """A hook, once it has its number."""
    LOG.append((f"h{number}", module.label, plain(given)))
    if removes is not None:
        HANDLES[removes].remove()


def plain(value: Any) -> Any:
    """Tensors as the sums of their numbers, in containers too."""
    if isinstance(value, torch.Tensor):
        return float(value.detach().sum())
    if type(value) in (tuple, list):
        return type(value)(plain(item) for item in value)
    return value


def multiplying() -> Any:
    """The net without hooks."""
    parts = [nn.Linear(1, 1, bias=False) for _ in FACTORS]
    for part, factor in zip(parts, FACTORS.values()):
        nn.init.constant_(part.weight, factor)
    return nn.Sequential(*parts)


class Player:
    """The nets, and of the last call of each with grad mode on the input and the output."""

    def __init__(self) -> None:
        """One net without hooks."""
        self.nets: list[Any] = []
        self.graphs: dict[int, tuple[Any, Any]] = {}
        self._add(multiplying())

    def after(self, act: Act) -> list[Entry]:
        """What is noted during the act, an error that it lets out included."""
        LOG.clear()
        try:
            getattr(self, type(act).__name__.removesuffix("Act").lower())(act)
        except Exception as raised:
            LOG.append(("raised", text_of(raised)))
        return [*LOG]

    def register(self, act: RegisterAct) -> None:
        """On a module, or on all."""
        owner, name = (self._module(act.site), "register") if act.site else (nn.modules.module, "register_module")
        hook = partial(called, len(HANDLES), act.removes)
        HANDLES.append(getattr(owner, f"{name}_{act.kind}_hook")(hook, **act.options))

    def remove(self, act: RemoveAct) -> None:
        """By the handle."""
        HANDLES[act.hook].remove()

    def forward(self, act: ForwardAct) -> None:
        """With an input that requires grad."""
        x = torch.tensor([[act.x]], requires_grad=True)
        with torch.set_grad_enabled(act.grad):
            y = self.nets[act.net](x)
        self.graphs[act.net] = x, y
        LOG.append(("output", plain(y)))

    def fail(self, act: FailAct) -> None:
        """With an input of two columns, where the first part takes one."""
        try:
            self.nets[act.net](torch.zeros(1, 2))
        except RuntimeError as error:
            if REFUSED not in str(error):
                raise
            LOG.append(("raised", "RuntimeError"))

    def backward(self, act: BackwardAct) -> None:
        """Into ``x.grad``."""
        x, y = self.graphs[act.net]
        x.grad = None
        y.backward(torch.tensor([[act.v]]), retain_graph=True)
        LOG.append(("gradient", plain(x.grad)))

    def grad(self, act: GradAct) -> None:
        """Given back."""
        x, y = self.graphs[act.net]
        (gradient,) = torch.autograd.grad(y, x, torch.tensor([[act.v]]), retain_graph=True)
        LOG.append(("gradient", plain(gradient)))

    def copy(self, act: CopyAct) -> None:
        """What is copied has its hooks on it, which know their modules by their labels."""
        net = self.nets[act.net]
        self._add(copy.deepcopy(net) if act.way == "deepcopy" else pickle.loads(pickle.dumps(net)))

    def train(self, act: TrainAct) -> None:
        """Or eval."""
        self.nets[act.net].train(act.mode)

    def _module(self, site: ModuleSite) -> Any:
        net = self.nets[site.net]
        return net[int(site.part.strip("[]"))] if site.part else net

    def _add(self, net: Any) -> None:
        self.nets.append(net)
        for part in PARTS:
            site = ModuleSite(len(self.nets) - 1, part)
            self._module(site).label = site.name


def play(acts: Iterable[Act]) -> list[list[Entry]]:
    """What is noted during each of ``acts``, all of which must be possible; no hook outlives them."""
    from hookcheck.probe.state import preserved

    HANDLES.clear()
    with preserved():
        player = Player()
        return [player.after(act) for act in acts]
