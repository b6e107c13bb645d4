"""How a script registers hooks: on what, with which functions, and what these write down."""

from __future__ import annotations

from collections.abc import Sequence

from hookcheck.hooks import acts, kinds
from hookcheck.networks.case import Case
from hookcheck.probe.observation import same
from hookcheck.repro.question import CALLS, CLOSE, COUNT, EQUAL, ERROR, ORDER, VALUE, Question
from hookcheck.topology.source import attribute


class Hooking:
    """The lines that register the hooks of a case, and functions that they need (``helpers``).

    ``named`` are names in main that they speak of.
    """

    def __init__(self, case: Case, asked: Question, everywhere: bool, register: str) -> None:
        """``register`` names the parameter that holds which function registers, or is empty."""
        self.kind, self.asked, self.case = case.kind, asked, case
        self.everywhere = everywhere
        self.register = register
        self.helpers: list[str] = []
        self.named = ""
        self.lines = self._lines()

    def within(self, main: Sequence[str]) -> list[str]:
        """The lines of main, in what hooks on saved tensors need."""
        if self.kind.scope != "run":
            return list(main)
        saving = self.kind.written(pack="lambda t: t.detach()", unpack="lambda t: t")
        return [f"with {saving}:", *(f"    {line}" for line in main)]

    def _lines(self) -> list[str]:
        kind, asked = self.kind, self.asked
        if kind.scope == "run" or (asked.place == ERROR and self.case.plain.raised):
            return []
        if asked.place == VALUE and asked.relation == CLOSE and self._as_without():
            return []  # what is wrong without hooks as well needs none
        if kind.scope in ("module", "global"):
            return self._on_modules()
        if kind.scope in ("leaf", "leaves"):
            return self._on_leaves()
        return self._on_outputs()

    def _as_without(self) -> bool:
        """Whether the run without hooks gives the same."""
        return self.case.same_gradients and same(self.case.plain.values, self.case.observed.values)

    def _on_modules(self) -> list[str]:
        kind, asked = self.kind, self.asked
        if kind.then:
            return self._chain()
        if asked.relation == ORDER:
            parameters = ", ".join(["*args", "name=name"])
            hook = f"lambda {parameters}: calls.append(name)"
            return ['for name, module in net.named_modules(prefix="net"):', f"    {self._on('module', hook)}"]
        if kind.scope == "global":
            where = attribute("net", asked.path)
            note = self._note()
            hook = (
                f"lambda {self._parameters()}: {note} if module is {where} else None"
                if note != "None"
                else self._hook()
            )
            return [kind.written(hook=hook)]
        if self.everywhere and asked.place != CALLS:
            return ["for module in net.modules():", f"    {self._on('module', self._hook())}"]
        lines = [self._on(attribute("net", asked.path if asked.place == CALLS else ""), self._hook())]
        if self.everywhere:
            rest = f"for module in set(net.modules()) - {{{attribute('net', asked.path)}}}:"
            lines += [rest, f"    {self._on('module', 'lambda *args: None')}"]
        return lines

    def _on(self, owner: str, hook: str) -> str:
        if self.register:
            return f"getattr({owner}, {self.register})({hook})"
        return self.kind.written(module=owner, hook=hook)

    def _hook(self) -> str:
        note = self._note()
        return f"lambda {self._parameters() if 'grad' in note else '*args'}: {note}"

    def _parameters(self) -> str:
        return ", ".join(self.kind.parameters)

    def _note(self) -> str:
        """What a hook writes down."""
        asked = self.asked
        if asked.place != CALLS:
            return "None"
        if asked.relation == COUNT:
            return "calls.append(1)"
        if asked.relation == EQUAL:
            sides = " + ".join(self.kind.parameters[1:])
            return f"calls.extend(g.requires_grad for g in {sides} if g is not None)"
        return f"calls.append({asked.argument})"

    def _on_leaves(self) -> list[str]:
        kind, asked = self.kind, self.asked
        trace = self.case.expected.trace
        leaves = {name: leaf for name, leaf in trace.leaves.items() if leaf.requires_grad}
        names = {name: _leaf(name, self.case) for name in leaves}
        self.named = " ".join(names.values())
        post = kind.call == kinds.POST_ACCUMULATE
        note = "lambda leaf: calls.append(leaf.grad.clone())" if post else "calls.append"
        if kind.scope == "leaves":
            hook = "calls.append" if asked.place == CALLS else "lambda grads: None"
            return [kind.written(leaves=f"[{', '.join(names.values())}]", hook=hook)]
        if asked.place == CALLS:
            return [kind.written(leaf=names[asked.path], hook=note)]
        return [kind.written(leaf=name, hook="lambda *args: None") for name in names.values()]

    def _on_outputs(self) -> list[str]:
        """A forward hook that puts hooks on the output, or on the Node that made it."""
        kind, asked = self.kind, self.asked
        path, _, place = asked.path.rpartition("[")
        position = int(place.rstrip("]")) if place.rstrip("]").isdigit() else 0
        several = any(len(call.made) > 1 for call in self.case.expected.trace.calls if call.path == path)
        output = f"output[{position}]" if several else "output"
        if kind.call == kinds.RETAINED:
            lines = [kind.written(tensor=output), f"calls.append({output})"]
        elif kind.scope == "node":
            slot = f"{output}.output_nr"
            noted = f"calls.append(grads[-1][{slot}])" if asked.relation == CLOSE else "calls.append(1)"
            hook = f"lambda *grads: {noted if asked.place == CALLS else None}"
            lines = [kind.written(node=f"{output}.grad_fn", hook=hook)]
        else:
            hook = "calls.append" if asked.place == CALLS else "lambda grad: None"
            lines = [kind.written(tensor=output, hook=hook)]
        watch = ["def watch(module, args, output):", *(f"    {line}" for line in lines)]
        return [*watch, f"{attribute('net', path)}.register_forward_hook(watch)"]

    def _chain(self) -> list[str]:
        """A global hook that acts, and two on every module, one put before the other."""
        kind = self.kind
        factors = acts.LATER if kind.acts.backward else acts.FORWARD[1:]
        first = f"{acts.FIRST}[i % {len(acts.FIRST)}]" if kind.acts.backward else str(acts.FORWARD[0])
        self.helpers = [_SCALED]
        first_hook = f"lambda {self._parameters()}: {kind.acts.returned(first)}"
        if self.asked.place == CALLS:
            where = attribute("net", self.asked.path)
            noted = f"({self._note()} if module is {where} else None, {kind.acts.returned(first)})[1]"
            first_hook = f"lambda {self._parameters()}: {noted}"
        lines = [kind.written(hook=first_hook), "for module in net.modules():"]
        for place, factor in ((1, factors[1]), (0, factors[0])):
            more = "" if place else ", prepend=True"
            lines.append(
                f"    module.{kind.then}(lambda {self._parameters()}: {kind.acts.returned(str(factor))}{more})"
            )
        return lines


_SCALED = """def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value"""


def _leaf(name: str, case: Case) -> str:
    return name if any(i.name == name for i in case.topology.inputs) else attribute("net", name)
