"""What do acts look like as PyTorch code? A script that needs torch alone, and says where hooks note something else.

Each method of `Writer` gives the lines of one act.
"""

from __future__ import annotations

from collections.abc import Sequence

from hookcheck.programs.logs import Entry
from hookcheck.programs.machine.model import (
    FACTORS,
    Act,
    BackwardAct,
    CopyAct,
    FailAct,
    ForwardAct,
    GradAct,
    RegisterAct,
    RemoveAct,
    TrainAct,
)

HEAD = '''\
import copy
import pickle

import torch
from torch import nn

log, history = [], []


def plain(value):
    """Tensors as the sums of their numbers."""
    if isinstance(value, torch.Tensor):
        return float(value.detach().sum())
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def note(hook, module, given):
    log.append((hook, module.label, plain(given)))


def expect(*entries):
    history.append(log[:])
    log.clear()
    if history[-1] != [*entries]:
        print("expected", *entries, "observed", *history[-1], sep="\\n    ")


def labelled(net, name):
    net.label = name
    for index, part in enumerate(net):
        part.label = f"{name}[{index}]"
    return net
'''


class ActWriter:
    """How many hooks and nets there are by now, and the definitions of the hooks."""

    def __init__(self) -> None:
        """One net without hooks."""
        self.hooks: list[str] = []
        self.nets = 1

    def lines(self, act: Act) -> list[str]:
        """The lines of an act."""
        lines: list[str] = getattr(self, type(act).__name__.removesuffix("Act").lower())(act)
        return lines

    def register(self, act: RegisterAct) -> list[str]:
        """The hook is a function of its own, which pickle finds by its name."""
        name = f"h{len(self.hooks)}"
        removal = [] if act.removes is None else [f"    handles[{act.removes}].remove()"]
        self.hooks.append("\n".join([f"def {name}(module, *given):", f'    note("{name}", module, given)', *removal]))
        register = f"{act.site.name}.register" if act.site else "nn.modules.module.register_module"
        arguments = ", ".join([name, *(f"{option}=True" for option in act.options)])
        return [f"handles.append({register}_{act.kind}_hook({arguments}))"]

    def remove(self, act: RemoveAct) -> list[str]:
        """By the handle."""
        return [f"handles[{act.hook}].remove()"]

    def forward(self, act: ForwardAct) -> list[str]:
        """The input and the output are named after the net."""
        n = act.net
        call = [f"y{n} = net{n}(x{n})"] if act.grad else ["with torch.no_grad():", f"    y{n} = net{n}(x{n})"]
        return [f"x{n} = torch.tensor([[{act.x}]], requires_grad=True)", *call, f'log.append(("output", plain(y{n})))']

    def fail(self, act: FailAct) -> list[str]:
        """An input of two columns, where the first part takes one."""
        call = ["try:", f"    net{act.net}(torch.zeros(1, 2))", "except RuntimeError:"]
        return [*call, '    log.append(("raised", "RuntimeError"))']

    def backward(self, act: BackwardAct) -> list[str]:
        """Into ``x.grad``."""
        n = act.net
        backward = f"y{n}.backward(torch.tensor([[{act.v}]]), retain_graph=True)"
        return [f"x{n}.grad = None", backward, f'log.append(("gradient", plain(x{n}.grad)))']

    def grad(self, act: GradAct) -> list[str]:
        """Given back."""
        n = act.net
        grad = f"torch.autograd.grad(y{n}, x{n}, torch.tensor([[{act.v}]]), retain_graph=True)"
        return [f"(gradient,) = {grad}", 'log.append(("gradient", plain(gradient)))']

    def copy(self, act: CopyAct) -> list[str]:
        """The next net."""
        old, new = f"net{act.net}", f"net{self.nets}"
        self.nets += 1
        expression = f"copy.deepcopy({old})" if act.way == "deepcopy" else f"pickle.loads(pickle.dumps({old}))"
        return [f'{new} = labelled({expression}, "{new}")']

    def train(self, act: TrainAct) -> list[str]:
        """Or eval."""
        return [f"net{act.net}.train({act.mode})"]


def source(steps: Sequence[tuple[Act, Sequence[Entry]]]) -> str:
    """The script of acts, each with what must be noted during it."""
    writer = ActWriter()
    parts = ", ".join("nn.Linear(1, 1, bias=False)" for _ in FACTORS)
    body = [f'net0 = labelled(nn.Sequential({parts}), "net0")']
    body += [f"nn.init.constant_(net0{part}.weight, {factor})" for part, factor in FACTORS.items()]
    body.append("handles = []")
    for act, entries in steps:
        body += [*writer.lines(act), f"expect({', '.join(map(repr, entries))})"]
    return "\n\n\n".join([HEAD.rstrip("\n"), *writer.hooks, "\n".join(body)]) + "\n"
