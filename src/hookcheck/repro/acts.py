"""Lines of a script for acts that follow one another, as a person would write them: no more than the acts need.

Each method of `ActLines` gives those of one act.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hookcheck.programs.logs import Entry
from hookcheck.programs.machine.model import (
    FACTORS,
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

HOOKS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh")
NETS = ("net", "copied", "another")
"""What hooks and nets are called, in the order in which they come."""

PLAIN = """\
def plain(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(plain, value))
    return value.sum().item() if isinstance(value, torch.Tensor) else value"""


@dataclass(frozen=True)
class Noted:
    """What is noted beside the names of hooks: their ``modules``, the ``values`` that they are given, and the
    ``results`` of calls and backwards."""

    modules: bool = False
    values: bool = False
    results: bool = False


@dataclass(frozen=True)
class Cast:
    """The names of hooks and nets, by the numbers that they have in the acts."""

    hooks: tuple[str, ...] = HOOKS
    nets: tuple[str, ...] = NETS

    def module(self, site: ModuleSite) -> str:
        """The expression for a module."""
        return f"{self.nets[site.net]}{site.part}"

    def entries(self, log: Iterable[Entry], noted: Noted) -> list[object]:
        """What a script notes where the machine of acts notes ``log``."""
        return [entry for each in log for entry in self._entry(each, noted)]

    def _entry(self, entry: Entry, noted: Noted) -> Iterator[object]:
        word = str(entry[0])
        if not re.fullmatch(r"h\d+", word):
            if noted.results:
                yield "raised" if word == "raised" else (word, *entry[1:])
            return
        parts: list[object] = [self.hooks[int(word[1:])]]
        if noted.modules:
            net, _, part = entry[1].removeprefix("net").partition("[")
            parts.append(".".join([self.nets[int(net)], *filter(None, [part.rstrip("]")])]))
        parts += entry[2] if noted.values else ()
        yield tuple(parts) if len(parts) > 1 else parts[0]


@dataclass(frozen=True)
class Played:
    """Acts, and the names of hooks and nets in them."""

    acts: tuple[Act, ...] = ()
    cast: Cast = Cast()

    @property
    def hooks(self) -> dict[str, RegisterAct]:
        """The hooks by name."""
        return dict(zip(self.cast.hooks, (act for act in self.acts if isinstance(act, RegisterAct))))

    @property
    def removed(self) -> frozenset[str]:
        """The hooks that an act or a hook removes."""
        numbers = [act.hook for act in self.acts if isinstance(act, RemoveAct)]
        numbers += [hook.removes for hook in self.hooks.values() if hook.removes is not None]
        return frozenset(self.cast.hooks[number] for number in numbers)

    @property
    def lingering(self) -> list[str]:
        """The hooks on all modules that no act removes."""
        gone = {self.cast.hooks[act.hook] for act in self.acts if isinstance(act, RemoveAct)}
        return [name for name, hook in self.hooks.items() if hook.site is None and name not in gone]


class ActLines:
    """How the acts of one run are written, where so much is ``noted``.

    Those ``beside`` it are the acts of the other one, from which it differs in nothing that it need not. ``lingering``
    are hooks to be removed at the end, since the other run would meet them.
    """

    def __init__(self, acts: Played, noted: Noted, beside: Played, lingering: Sequence[str] = ()) -> None:
        """No act is written yet."""
        self.acts, self.cast, self.noted, self.lingering = acts.acts, acts.cast, noted, lingering
        self.all = (*acts.acts, *beside.acts)
        self.registered = [act for act in self.all if isinstance(act, RegisterAct)]
        self.held = {*acts.removed, *beside.removed, *lingering}
        self.hooks = 0
        self.nets = 1

    @property
    def at_the_top(self) -> bool:
        """Whether hooks are no functions within the run: they note much, or pickle must find them by their names."""
        pickled = any(isinstance(act, CopyAct) and act.way == "pickle" for act in self.all)
        return self.noted.values or pickled

    @property
    def handles(self) -> bool:
        """Whether handles are in a dict, which hooks that are no functions within the run reach as well."""
        return bool(self.held) and (self.at_the_top or len(self.held) > 1)

    @property
    def numbered(self) -> bool:
        """Whether the numbers matter that are multiplied."""
        return self.noted.values or self.noted.results

    def lines(self) -> list[str]:
        """The lines of all acts, after those that make the net."""
        lines = self._net()
        for place, act in enumerate(self.acts):
            lines += getattr(self, type(act).__name__.removesuffix("Act").lower())(act, place)
        return [*lines, *(f"{self.handle(name)}.remove()" for name in self.lingering)]

    def handle(self, name: str) -> str:
        """The expression for the handle of a hook."""
        return f'handles["{name}"]' if self.handles else "handle"

    def _net(self) -> list[str]:
        whole = all(act.site is not None and not act.site.part for act in self.registered)
        bias = ", bias=False" if self.numbered else ""
        linear = f"nn.Linear(1, 1{bias})"
        net = linear if whole else f"nn.Sequential({', '.join([linear] * len(FACTORS))})"
        product = 1.0
        for factor in FACTORS.values():
            product *= factor
        factors = {"": product} if whole else FACTORS
        weights = [f"nn.init.constant_(net{part}.weight, {factor})" for part, factor in factors.items()]
        return [f"net = {net}", *(weights if self.numbered else []), *self._labels("net")]

    def _labels(self, net: str) -> list[str]:
        loop = [f'for label, module in {net}.named_modules(prefix="{net}"):', "    module.label = label"]
        return loop if self.noted.modules else []

    def helpers(self) -> list[str]:
        """The definitions at the top that the lines use."""
        if not self.at_the_top:
            return []
        noted, removing = self.noted, any(act.removes is not None for act in self.registered)
        parameters = ["name", *(["module"] if noted.modules or noted.values else []), "*given"]
        parts = ["name", *["module.label"] * noted.modules, *["*map(plain, given)"] * noted.values]
        entry = f"({', '.join(parts)})" if parts[1:] else "name"
        note = [f"def note({', '.join([*parameters, *['removes=None'] * removing])}):", f"    calls.append({entry})"]
        note += ["    if removes:", "        handles[removes].remove()"] if removing else []
        return [*([PLAIN] if noted.values else []), "\n".join(note)]

    def register(self, act: RegisterAct, place: int) -> list[str]:
        """A hook that notes its name; a function of its own where it does more."""
        name = self.cast.hooks[self.hooks]
        self.hooks += 1
        removed = "" if act.removes is None else self.cast.hooks[act.removes]
        definition: list[str] = []
        if self.at_the_top:
            hook = f'partial(note, "{name}"{f", removes={chr(34)}{removed}{chr(34)}" if removed else ""})'
        else:
            entry = f'("{name}", module.label)' if self.noted.modules else f'"{name}"'
            parameters = "module, *args" if self.noted.modules else "*args"
            hook = f"lambda {parameters}: calls.append({entry})"
            if removed:
                lines = [f"    calls.append({entry})", f"    {self.handle(removed)}.remove()"]
                definition, hook = [f"def {name}({parameters}):", *lines], name
        owner = f"{self.cast.module(act.site)}.register" if act.site else "register_module"
        options = "".join(f", {option}=True" for option in act.options)
        handle = f"{self.handle(name)} = " if name in self.held else ""
        return [*definition, f"{handle}{owner}_{act.kind}_hook({hook}{options})"]

    def remove(self, act: RemoveAct, place: int) -> list[str]:
        """By the handle."""
        return [f"{self.handle(self.cast.hooks[act.hook])}.remove()"]

    def forward(self, act: ForwardAct, place: int) -> list[str]:
        """What the call is given and what it gives have names only if they are used."""
        net, (x, y) = self.cast.nets[act.net], self._names(act.net)
        gradients = self._gradients(act.net, place)
        backward = any(act.kind.startswith("full_backward") for act in self.registered) or bool(gradients)
        options = ", requires_grad=True" if backward else ""
        value = f"torch.tensor([[{act.x}]]{options})" if self.numbered else f"torch.ones(1, 1{options})"
        asked = any(isinstance(each, GradAct) or self.noted.results for each in gradients)
        lines, given = ([f"{x} = {value}"], x) if asked else ([], value)
        call = f"{f'{y} = ' if gradients or self.noted.results else ''}{net}({given})"
        lines += [call] if act.grad else ["with torch.no_grad():", f"    {call}"]
        return [*lines, *([f'calls.append(("output", {y}.item()))'] if self.noted.results else [])]

    def fail(self, act: FailAct, place: int) -> list[str]:
        """An input of two columns, where the first part takes one."""
        call = f"{self.cast.nets[act.net]}(torch.zeros(1, 2))"
        if self.noted.results:
            return ["try:", f"    {call}", "except RuntimeError:", '    calls.append("raised")']
        return ["with suppress(RuntimeError):", f"    {call}"]

    def backward(self, act: BackwardAct, place: int) -> list[str]:
        """Into ``x.grad``."""
        x, y = self._names(act.net)
        lines = [f"{y}.backward({self._given(act, place)})"]
        if self.noted.results:
            lines = [f"{x}.grad = None", *lines, f'calls.append(("gradient", {x}.grad.item()))']
        return lines

    def grad(self, act: GradAct, place: int) -> list[str]:
        """Given back."""
        x, y = self._names(act.net)
        given = self._given(act, place)
        grad = f"torch.autograd.grad({y}, {x}{f', {given}' if given else ''})"
        return [f'calls.append(("gradient", {grad}[0].item()))'] if self.noted.results else [grad]

    def copy(self, act: CopyAct, place: int) -> list[str]:
        """The next net."""
        old, new = self.cast.nets[act.net], self.cast.nets[self.nets]
        self.nets += 1
        copied = f"copy.deepcopy({old})" if act.way == "deepcopy" else f"pickle.loads(pickle.dumps({old}))"
        return [f"{new} = {copied}", *self._labels(new)]

    def train(self, act: TrainAct, place: int) -> list[str]:
        """Or eval."""
        return [f"{self.cast.nets[act.net]}.{'train' if act.mode else 'eval'}()"]

    def _names(self, net: int) -> tuple[str, str]:
        name = self.cast.nets[net]
        return ("x", "y") if name == NETS[0] else (f"x_{name}", f"y_{name}")

    def _given(self, act: BackwardAct | GradAct, place: int) -> str:
        """The arguments of a backward that are not what they are anyway."""
        start = [f"torch.tensor([[{act.v}]])"] if act.v != 1.0 else []
        return ", ".join([*start, *["retain_graph=True"] * bool(self._gradients(act.net, place))])

    def _gradients(self, net: int, place: int) -> list[Act]:
        """The backwards through the call that a net had last, after that place."""
        following: list[Act] = []
        for act in self.acts[place + 1 :]:
            if isinstance(act, ForwardAct) and act.net == net:
                break
            if isinstance(act, (BackwardAct, GradAct)) and act.net == net:
                following.append(act)
        return following
