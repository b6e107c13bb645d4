"""How a script registers hooks: on what, with which functions, and what these write down."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hookcheck.hooks import acts, kinds
from hookcheck.hooks.kinds import HookKind
from hookcheck.networks.case import Case
from hookcheck.probe.compiling import compiles
from hookcheck.probe.observation import same
from hookcheck.probe.registering import PREPEND
from hookcheck.repro.question import (
    CALLS,
    CLOSE,
    COUNT,
    ERROR,
    EVERY,
    MODULE,
    ORDER,
    REQUIRES_GRAD,
    VALUE,
    Question,
)
from hookcheck.topology.model import walk
from hookcheck.topology.source import attribute


def taken(kind: HookKind, asked: Question) -> str:
    """The expression of what a hook has written down of the call that is asked about."""
    of = ".grad" if kind.call == kinds.RETAINED else ""
    return f"calls[{asked.event}]{of}{'' if _at_once(kind, asked) else asked.index}"


def _at_once(kind: HookKind, asked: Question) -> bool:
    """Whether a hook must take a tensor out at once, since forward may go on to write to it."""
    return asked.relation == CLOSE and kind.call in (kinds.FORWARD, kinds.FORWARD_PRE)


def wrong_without(case: Case, asked: Question) -> bool:
    """Whether a value is as wrong without hooks, so that the script needs none."""
    if asked.place != VALUE or asked.relation != CLOSE or not case.kind.observes:
        return False
    return case.same_gradients and same(case.plain.values, case.observed.values)


class Hooking:
    """The lines that register the hooks of a case, and functions that they need (``helpers``).

    ``named`` are names in main that they speak of.
    """

    def __init__(self, case: Case, asked: Question, everywhere: bool, register: str, again: bool = False) -> None:
        """``register`` names the parameter that holds which function registers, or is empty; ``again`` says that what
        is registered for all modules must go, since another run comes."""
        self.kind, self.asked, self.case = case.kind, asked, case
        self.everywhere = everywhere
        self.register = register
        self.again = again
        self._removing: list[str] = []
        self.helpers: list[str] = []
        self.named = ""
        self.lines = self._lines()

    def within(self, main: Sequence[str]) -> list[str]:
        """The lines of main, in what hooks on saved tensors need, and those that remove what would be left."""
        if self.kind.scope != "run":
            return [*main, *self._removing]
        saving = self._written(**self._saving())
        return [f"with {saving}:", *(f"    {line}" for line in main)]

    def _written(self, **names: str) -> str:
        """The expression that registers a hook; none that torch.compile may trace."""
        return self.kind.written(**{key: self._marked(text) if key in _HOOKS else text for key, text in names.items()})

    def _marked(self, hook: str) -> str:
        return f"torch.compiler.disable({hook})" if compiles(self.case.topology) else hook

    def _saving(self) -> dict[str, str]:
        """The functions that pack and unpack what is saved."""
        if self.asked.place != CALLS:
            return {"pack": "lambda t: t.detach()", "unpack": "lambda t: t"}
        if self.asked.path == "pack":
            return {"pack": "lambda t: (calls.append(1), t.detach())[1]", "unpack": "lambda t: t"}
        self.helpers = [_PACKED]
        packed = "lambda t: packed.append(t.detach()) or len(packed) - 1"
        return {"pack": packed, "unpack": "lambda handle: unpacked(handle, calls)"}

    def _lines(self) -> list[str]:
        kind, asked = self.kind, self.asked
        if kind.scope == "run" or (asked.place == ERROR and self.case.plain.raised):
            return []
        if wrong_without(self.case, asked):
            return []
        if kind.scope in ("module", "global"):
            return self._on_modules()
        if kind.scope in ("leaf", "leaves"):
            return self._on_leaves()
        return self._on_outputs()

    def _on_modules(self) -> list[str]:
        kind, asked = self.kind, self.asked
        if kind.then and asked.argument == MODULE and not asked.link:  # it does not matter what is returned
            looking = self._marked("lambda *args: None")
            return [
                self._written(hook=self._hook()),
                "for module in net.modules():",
                f"    module.{kind.then}({looking})",
            ]
        if kind.then:
            return self._chain()
        if asked.relation == ORDER and kind.scope == "global":
            return [_NAMES, self._written(hook=f"lambda module, *args: calls.append({self._name})")]
        if asked.relation == ORDER:
            hook = "lambda *args, name=name: calls.append(name)"
            return ['for name, module in net.named_modules(prefix="net"):', f"    {self._on('module', hook)}"]
        if kind.scope == "global":
            condition = self._condition() if asked.place == CALLS else ""
            return [self._written(hook=self._hook(f"{self._note()} if {condition} else None" if condition else ""))]
        if self.everywhere and asked.place != CALLS:
            return ["for module in net.modules():", f"    {self._on('module', self._hook())}"]
        lines = [self._on(attribute("net", asked.path if asked.place == CALLS else ""), self._hook())]
        if self.everywhere:
            rest = f"for module in set(net.modules()) - {{{attribute('net', asked.path)}}}:"
            lines += [rest, f"    {self._on('module', 'lambda *args: None')}"]
        return lines

    def _on(self, owner: str, hook: str) -> str:
        if self.register:
            return f"getattr({owner}, {self.register})({self._marked(hook)})"
        return self._written(module=owner, hook=hook)

    def _hook(self, note: str = "") -> str:
        """A function that writes down what matters, with the parameters that it needs."""
        note = note or self._note()
        if "*arguments" in note:
            return f"lambda *arguments: {note.replace('*arguments', 'arguments')}"
        module, *rest = self.kind.parameters
        used = set(re.findall(r"\w+", note))
        if not used.intersection(self.kind.parameters):
            return f"lambda *args: {note}"
        first = module if module in used else "_"  # a long name makes three lines of one
        return f"lambda {', '.join([first, *rest])}: {note}"

    def _note(self) -> str:
        """What a hook writes down."""
        asked = self.asked
        if asked.place != CALLS:
            return "None"
        if asked.relation == COUNT:
            return "calls.append(1)"
        if asked.argument == REQUIRES_GRAD:
            sides = " + ".join(self.kind.parameters[1:])
            return f"calls.extend(g.requires_grad for g in {sides} if g is not None)"
        if asked.argument == MODULE:
            return f"calls.append(module is {attribute('net', asked.path)})"
        if not asked.argument:
            return "calls.append(*arguments)"
        return f"calls.append({asked.argument}{f'{asked.index}.clone()' if _at_once(self.kind, asked) else ''})"

    def _on_leaves(self) -> list[str]:
        kind, asked = self.kind, self.asked
        trace = self.case.expected.trace
        leaves = {name: leaf for name, leaf in trace.leaves.items() if leaf.requires_grad}
        names = {name: _leaf(name, self.case) for name in leaves}
        self.named = " ".join(names.values())
        flag = asked.argument == REQUIRES_GRAD
        if kind.scope == "leaves":
            note = "lambda grads: calls.extend(g.requires_grad for g in grads if g is not None)"
            hook = (note if flag else "calls.append") if asked.place == CALLS else "lambda grads: None"
            return [self._written(leaves=f"[{', '.join(names.values())}]", hook=hook)]
        note = "lambda grad: calls.append(grad.requires_grad)" if flag else "calls.append"
        if kind.call == kinds.POST_ACCUMULATE:
            of = "1" if asked.relation == COUNT else f"leaf.grad.{'requires_grad' if flag else 'clone()'}"
            note = f"lambda leaf: calls.append({of})"
        if asked.place == CALLS:
            return [self._written(leaf=names[asked.path], hook=note)]
        return [self._written(leaf=name, hook="lambda *args: None") for name in names.values()]

    def _on_outputs(self) -> list[str]:
        """A forward hook that puts hooks on the output, or on the Node that made it; ``everywhere`` on every one."""
        asked = self.asked
        path, _, place = asked.path.rpartition("[")
        position = int(place.rstrip("]")) if place.rstrip("]").isdigit() else 0
        watched = [call for call in self.case.expected.trace.calls if self.everywhere or call.path == path]
        several = any(len(call.outputs_inside) > 1 for call in watched)
        each = several and (self.everywhere or asked.place != CALLS)
        tensor = "tensor" if each else f"output[{position}]" if several else "output"
        only = ""
        if self.everywhere and asked.place == CALLS:
            only = f"module is {attribute('net', path)}{f' and tensor is output[{position}]' if several else ''}"
        lines = self._on_output(tensor, only)
        if self.everywhere or asked.place != CALLS or not self.case.events.get(asked.path):  # some can have no hook
            lines = [f"if {tensor}.requires_grad:", *(f"    {line}" for line in lines)]
        if each:
            of = "for tensor in output if isinstance(output, tuple) else (output,):" if self.everywhere else ""
            lines = [of or "for tensor in output:", *(f"    {line}" for line in lines)]
        watch = ["def watch(module, args, output):", *(f"    {line}" for line in lines)]
        registered = f"register_forward_hook({self._marked('watch')})"
        if self.everywhere:
            return [*watch, "for module in net.modules():", f"    module.{registered}"]
        return [*watch, f"{attribute('net', path)}.{registered}"]

    def _on_output(self, tensor: str, only: str) -> list[str]:
        """The lines that put a hook on ``tensor``, which writes down what matters where ``only`` holds, if given."""
        kind, asked = self.kind, self.asked
        flag = asked.argument == REQUIRES_GRAD
        if kind.call == kinds.RETAINED:
            noted = f"calls.append({tensor})"  # only what is still there when its gradient comes retains it
            held = [f"if {only}:", f"    {noted}"] if only else [noted]
            return [self._written(tensor=tensor), *(held if asked.place in (CALLS, ERROR) else [])]
        hook = "lambda *grads: None"
        if asked.place == CALLS and kind.scope == "node":
            given, slot = ("*grads, slot=tensor.output_nr", "slot") if tensor == "tensor" else ("*grads", "")
            noted = f"calls.append(grads[-1][{slot or f'{tensor}.output_nr'}]{'.requires_grad' if flag else ''})"
            hook = f"lambda {given}: {'calls.append(1)' if asked.relation == COUNT else noted}"
        elif asked.place == CALLS:
            hook = "lambda grad: calls.append(grad.requires_grad)" if flag else "calls.append"
        if only:
            hook = f"{f'({hook})' if ':' in hook else hook} if {only} else lambda *grads: None"
        return [self._written(**{"node" if kind.scope == "node" else "tensor": self._owner(tensor)}, hook=hook)]

    def _owner(self, tensor: str) -> str:
        return f"{tensor}.grad_fn" if self.kind.scope == "node" else tensor

    def _chain(self) -> list[str]:
        """A global hook that acts, and two on every module, one put before the other where torch has that."""
        kind, asked = self.kind, self.asked
        backward = kind.acts.backward
        returned = kind.acts.returned("factor")
        factors: list[object] = [*acts.FORWARD]
        if backward:  # gradients are tensors or None
            most = self._most_gradients()
            factors = [(acts.FIRST * most)[:most], *((factor,) * most for factor in acts.LATER)]
            returned = returned.replace("scaled(g, factor)", "None if g is None else factor * g")
            returned = returned.replace("for i, g in enumerate(", "for factor, g in zip(factors, ")
        else:
            self.helpers = [_SCALED]
        takes = ["link", "factors" if backward else "factor", *kind.parameters]
        body = [*self._noting(), f"return {returned}"]
        lines = [f"def act({', '.join(takes)}):", *(f"    {line}" for line in body), ""]
        given = [f"lambda *args: act({link}, {factor}, *args)" for link, factor in enumerate(factors)]
        if asked.relation == ORDER and not backward:  # it does not matter what is returned
            self.helpers, lines = [], []
            given = [f"lambda *args: calls.append({link})" for link in range(len(factors))]
        self._removing = ["handle.remove()"] if self.again else []
        handle = "handle = " if self.again else ""
        lines += [f"{handle}{self._written(hook=given[0])}", "for module in net.modules():"]
        for link in (2, 1) if PREPEND else (1, 2):
            more = ", prepend=True" if PREPEND and link == 1 else ""
            acting = self._marked(given[link])
            lines.append(f"    module.{kind.then}({acting}{more})")
        return lines

    def _most_gradients(self) -> int:
        """So many gradients a hook is given at most, at one time, by what is due and by what came."""
        calls = self.case.expected.trace.calls
        due = [len(side) for call in calls for side in (call.args, call.outputs_inside)]
        given = [arg for events in self.case.events.values() for event in events for arg in event.arguments]
        return max([1, *due, *(len(arg) for arg in given if isinstance(arg, tuple))])

    def _noting(self) -> list[str]:
        """The lines in which a hook of a chain writes down what matters."""
        asked = self.asked
        if asked.place != CALLS:
            return []
        if asked.link == EVERY:
            return ["calls.append(link)"]
        conditions = " and ".join(filter(None, [f"link == {asked.link}", self._condition()]))
        return [f"if {conditions}:", f"    {self._note()}"]

    @property
    def _name(self) -> str:
        """The name of a module; what torch.compile makes is none of the net, and has none."""
        return "names.get(module)" if compiles(self.case.topology) else "names[module]"

    def _condition(self) -> str:
        """Of a hook that is called for every module, the one that matters; empty if the network has no other."""
        several = len(list(walk(self.case.topology.module))) > 1
        return f"module is {attribute('net', self.asked.path)}" if several else ""


_HOOKS = ("hook", "pack", "unpack")
"""The names that functions have in the expressions that register them."""

_NAMES = 'names = {module: name for name, module in net.named_modules(prefix="net")}'
"""The line that gives modules the names that findings have for them."""

_SCALED = """def scaled(value, factor):
    floating = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    return factor * value if floating else value"""

_PACKED = """packed = []


def unpacked(handle, calls):
    calls.append(handle in range(len(packed)))
    return packed[handle]"""


def _leaf(name: str, case: Case) -> str:
    return name if any(i.name == name for i in case.topology.inputs) else attribute("net", name)
