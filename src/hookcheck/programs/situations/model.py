"""What must hooks note in a situation? A model of tables and of the calls that go through them, without torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from hookcheck.programs.logs import Entry
from hookcheck.programs.situations.acts import (
    BODY,
    GRADLESS,
    Act,
    Alter,
    Enter,
    Leave,
    Register,
    Remove,
    Trigger,
    Trouble,
)
from hookcheck.programs.situations.sites import SITES, HookSite

INPUT = 5.0
FACTORS = {"net[0]": 2.0, "net[1]": 3.0}
CHILDREN = {"net": (*FACTORS,)}
SPOILED = {"set_": "net[1]", "write to what is saved": "net[0]"}
"""The first module, on the way back, whose backward needs what such a change wrote to."""
ON_COPIES = ("deepcopy", "pickle")
"""What becomes of the net while its handles stay with the old one."""


class ModelError(Exception):
    """What the model raises where torch must let an error out."""


class SituationModel:
    """What is registered, what the graph of the last call holds, and the log."""

    def __init__(self) -> None:
        """A net without hooks."""
        self.log: list[Entry] = []
        self.sites: dict[str, HookSite] = {}
        self.tables: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.orphaned: set[str] = set()
        self.once: dict[str, Trouble] = {}
        self.graph: dict[tuple[str, str], list[str]] | None = None
        self.frozen = self.weightless = self.called_again = False
        self.gradient, self.spoiled = 1.0, ""

    def after(self, act: Act) -> list[Entry]:
        """What must be noted during the act, ordered as `hookcheck.programs.situations.bench.noted` has it."""
        self.log = []
        try:
            getattr(self, type(act).__name__.lower())(act)
        except ModelError as error:
            self.log.append(("raised", str(error)))
            lanes = [self.sites[entry[0]].lane for entry in self.log if entry[0] in self.sites]
            self.log = [e for e in self.log if e[0] not in self.sites or self.sites[e[0]].lane == lanes[-1]]
        return sorted(self.log, key=self._order)

    def _order(self, entry: Entry) -> tuple[str, str]:
        lane = self.sites[entry[0]].lane if entry[0] in self.sites else ""
        return lane, entry[1] if lane == "legacy" else ""

    def register(self, act: Register) -> None:
        """A hook goes last, or first, in its table."""
        site = SITES[act.site]
        self.sites[act.hook] = site
        table = self.tables[site.table, site.where]
        table.insert(0 if act.first else len(table), act.hook)

    def remove(self, act: Remove) -> None:
        """A handle removes its hook, and no other; that of a net that was copied does nothing to the copy."""
        site = self.sites[act.hook]
        if act.way == "around a call":
            self._call("net", INPUT, {})
        if act.hook not in self.orphaned and act.hook in self.tables[site.table, site.where]:
            self.tables[site.table, site.where].remove(act.hook)
        if act.way == "around an error":
            raise ModelError("Stop")

    def trouble(self, act: Trouble) -> None:
        """It waits for the next call."""
        self.once["body" if "body" in act.what else "closure" if "closure" in act.what else act.hook] = act

    def alter(self, act: Alter) -> None:
        """Nothing, but for a copy, whose handles are those of the old net, a net that is dropped and made anew, whose
        hooks only the graph still has, and a call more; and for what the graph of the last call makes of it."""
        if act.what in ON_COPIES:
            self.orphaned |= {hook for hook, site in self.sites.items() if site.where}
        if act.what == "drop":
            for (_, where), table in self.tables.items():
                if where:
                    table.clear()
        if act.what in ("freeze", "thaw"):
            self.frozen = act.what == "freeze"
        if act.what == "double the output":
            self.gradient = 2.0
        self.spoiled = SPOILED.get(act.what, self.spoiled)
        if act.what in ("load", "assign"):
            self._load()
        if act.what == "another call":
            self._call("net", INPUT, {})
        if act.what == "half a call":
            self._call("net[0]", INPUT, {})

    def enter(self, act: Enter) -> None:
        """Contexts change nothing."""

    def leave(self, act: Leave) -> None:
        """No hook is left."""
        self.log.append(("alive",))

    def trigger(self, act: Trigger) -> None:
        """What runs hooks."""
        getattr(self, "_" + act.what.replace(" ", "_"))(
            *{"backward": [act.way], "forward": [act.call]}.get(act.what, [])
        )

    def _attach(self) -> None:
        for what in ("buffer", "parameter", "module"):
            self._visit(f"{what} registration", ("net", f"extra_{what}"))

    def _forward(self, call: str) -> None:
        for table in ("tensor y", "node y", "node_pre y"):
            self.tables[table, ""].clear()
        self.graph = None
        self.weightless, self.gradient, self.spoiled = self.frozen, 1.0, ""
        graph: dict[tuple[str, str], list[str]] = {("unpack", ""): [*self.tables["unpack", ""]]}
        try:
            self._call("net", INPUT, graph)
        finally:
            self.once.pop("body", None)
        self.graph = None if call in GRADLESS else graph
        self.called_again = call == "checkpoint"

    def _backward(self, way: str) -> None:
        if self.graph is None:
            return
        one = self.gradient
        for time in (1.0, 2.0)[: 2 if way == "twice" else 1]:
            self._run(self.graph["unpack", ""], ())
            self._visit("tensor y", (one,))
            self._visit("node_pre y", ((one,),))
            self._visit("node y", ((one,),))
            self._back("net", one)
            self._leaves(6.0 * one, 15.0 * one, time if way != "grad" else 0.0)

    def _leaves(self, x: float, w: float, times: float) -> None:
        """What the input and the weight get, which was accumulated so many times; a frozen weight gets nothing."""
        self._visit("tensor x", (x,))
        self._visit("any", ())
        self._visit("multi", ([x, None if self.weightless else w],))
        if times:
            self._visit("accumulated x", (x * times,))
        if self.weightless:
            return
        self._visit("tensor w", (w,))
        if times:
            self._visit("node_pre w", ((w,),))
            self._visit("accumulated w", (w * times,))
            self._visit("node w", ((w,),))

    def _step(self) -> None:
        self._visit("step_pre of all", ("optimizer",))
        self._visit("optimizer step_pre", ("optimizer",))
        self.log.append(("closure",))
        if self.once.pop("closure", None):
            raise ModelError("Stop")
        self._visit("optimizer step_post", ("optimizer",))
        self._visit("step_post of all", ("optimizer",))

    def _save(self, module: str = "net") -> None:
        self._visit("state_dict_pre", (module,), module)
        for child in CHILDREN.get(module, ()):
            self._save(child)
        self._visit("state_dict", (module,), module)

    def _load(self, module: str = "net") -> None:
        self._visit("load_pre", (module,), module)
        for child in CHILDREN.get(module, ()):
            self._load(child)
        self._visit("load_post", (module,), module)

    def _save_optimizer(self) -> None:
        self._visit("optimizer state_dict_pre", ("optimizer",))
        self._visit("optimizer state_dict_post", ("optimizer",))

    def _load_optimizer(self) -> None:
        self._visit("optimizer load_state_dict_pre", ("optimizer",))
        self._visit("optimizer load_state_dict_post", ("optimizer",))

    def _visit(self, table: str, given: Entry, where: str = "") -> None:
        """Calls the hooks of a table that are there as the visit begins."""
        self._run(self._due(table, where), given)

    def _due(self, table: str, where: str) -> list[str]:
        return [*self.tables[f"{table} of all", ""], *self.tables[table, where]]

    def _run(self, hooks: Iterable[str], given: Entry, kwargs: Entry | None = None) -> None:
        for hook in hooks:
            site = self.sites[hook]
            entry = (hook, *(kwargs if site.kwargs and kwargs is not None else given))
            if site.shows != "once" or entry not in self.log:
                self.log.append((hook, given[0]) if site.legacy else entry)
            trouble = self.once.pop(hook, None)
            if trouble:
                self._act(hook, trouble)

    def _act(self, hook: str, trouble: Trouble) -> None:
        if trouble.what in ("removes itself", "removes another"):
            self.remove(Remove(hook if trouble.what == "removes itself" else trouble.other))
        elif trouble.what == "registers another":
            self.register(Register(trouble.other, self.sites[hook].name, trouble.first))
        else:
            raise ModelError("Stop" if trouble.what == "raises" else "Interrupt")

    def _call(self, label: str, x: float, graph: dict[tuple[str, str], list[str]]) -> float:
        """Pre-hooks, the body, hooks; where it raises, those forward hooks that are always called.

        Those of the backward are taken up as the call starts, and others, of all modules and its own at once, when
        their turn comes: what was removed by then is called no more, what was taken up is (U-03, U-04).
        """
        tried: list[str] = []
        y: float | None = None
        try:
            for kind in ("full_backward_pre", "full_backward", "backward"):
                graph[label, kind] = self._due(kind, label)
            self._run(self._due("forward_pre", label), (label, (x,)), (label, (x,), {}))
            y = self._body(label, x, graph)
            for hook in self._due("forward", label):
                tried.append(hook)
                self._run([hook], (label, (x,), y), (label, (x,), {}, y))
        except ModelError as error:
            for hook in self._due("forward", label) if str(error) != "Interrupt" else ():
                if self.sites[hook].always and hook not in tried:
                    self._run([hook], (label, (x,), y), (label, (x,), {}, y))
            raise
        return y

    def _body(self, label: str, x: float, graph: dict[tuple[str, str], list[str]]) -> float:
        trouble = self.once.pop("body", None) if label == "net[1]" else None
        if trouble and trouble.what == BODY:
            self.register(Register(trouble.other, self.sites[trouble.hook].name))
        elif trouble:
            raise ModelError("Stop" if "raises" in trouble.what else "Interrupt")
        for child in CHILDREN.get(label, ()):
            x = self._call(child, x, graph)
        if label in FACTORS:
            self._visit("pack", ())
        return x * FACTORS.get(label, 1.0)

    def _back(self, label: str, grad_output: float) -> float:
        """Pre-hooks, the body backwards, hooks, as they were when the call was made."""
        graph = self.graph or {}
        self._run(graph[label, "full_backward_pre"], (label, (grad_output,)))
        if label == self.spoiled:
            raise ModelError("RuntimeError")
        if self.called_again and label == "net[1]":  # the first that needs what was saved
            self._call("net", INPUT, {})
        grad_input = grad_output * FACTORS.get(label, 1.0)
        for child in reversed(CHILDREN.get(label, ())):
            grad_input = self._back(child, grad_input)
        self._run(graph[label, "backward"], (label,))
        self._run(graph[label, "full_backward"], (label, (grad_input,), (grad_output,)))
        return grad_input


def expected(acts: Iterable[Act]) -> list[tuple[Act, list[Entry]]]:
    """The acts, each with what must be noted during it."""
    model = SituationModel()
    return [(act, model.after(act)) for act in acts]
