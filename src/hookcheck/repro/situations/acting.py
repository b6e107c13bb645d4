"""The statements of a script for each act: plain calls of torch, with hooks that note their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from hookcheck.programs.situations.acts import (
    BODY,
    REGISTERING,
    Act,
    Alter,
    Enter,
    Leave,
    Register,
    Remove,
    Trigger,
    Trouble,
)
from hookcheck.programs.situations.axes import HOSTS, INPUTS, OPTIMIZERS
from hookcheck.programs.situations.script import CALL_LINES, CHANGE_LINES, EVENT_LINES
from hookcheck.programs.situations.sites import SITES, HookSite
from hookcheck.repro.situations.blocks import Block, Statement, parsed
from hookcheck.repro.situations.noting import RAISED, Logs, logs
from hookcheck.repro.situations.reduced import Scene
from hookcheck.repro.situations.wording import SAME, Wording, context, everywhere

BACKWARD_LINES = {
    "backward": ("y.backward()",),
    "grad": ("torch.autograd.grad(y, [x, *net.parameters()])",),
    "inputs": ("y.backward(inputs=[x, *net.parameters()])",),
    "twice": ("y.backward(retain_graph=True)", "y.backward()"),
    "thread": ("in_thread(y.backward)",),
}
REMOVAL_LINES = {
    "remove": ("{0}.remove()",),
    "twice": ("{0}.remove()", "{0}.remove()"),
    "with": ("with {0}:", "    pass"),
    "copied handle": ("copy.copy({0}).remove()",),
    "around a call": ("with {0}:", "    net(x)"),
    "around an error": ("with {0}:", f"    raise {RAISED['Stop']}"),
}
ATTACHED = {
    "buffer registration": 'net.register_buffer("extra_buffer", torch.zeros(1))',
    "parameter registration": 'net.register_parameter("extra_parameter", nn.Parameter(torch.zeros(1)))',
    "module registration": 'net.add_module("extra_module", nn.Identity())',
}
IMPORTED = re.compile(r'(?:import_module\("[\w.]+"\)|nn\.modules\.module)\.(?=register_)')
LATE = re.compile(r"\blabelled\((.*)\)$")


class Unwritable(Exception):
    """A scene that these words do not do for."""


class SceneWriter:
    """The statements of one scene."""

    def __init__(self, scene: Scene, wording: Wording) -> None:
        """``wording`` is what it has in common with the other one."""
        self.scene, self.wording = scene, wording
        self.logs: Logs = logs(scene.acts)
        self.failing, self.closure, self.within, self.wholly = "", "", wording.within, False

    def statements(self) -> list[Statement]:
        """All that a run does."""
        acted = [self._act(at, act) for at, act in enumerate(self.scene.acts)]
        body = [*self._setting(), *self._closing([*self._opened(acted)])]
        used = "\n".join(_lines(body))
        if len(re.findall(r"\by\b", used)) == 2:
            body = [*_at_once(body)]
        for name in ("steps", "state", "optimizer", "x", "net"):  # those last that others are made from
            if len(re.findall(rf"\b{name}\b", used)) < 2:
                body = [s for s in body if not (isinstance(s, str) and s.startswith(f"{name} = "))]
                used = "\n".join(_lines(body))
        if not re.search(r"\by\b(?! = )", used):
            body = [*_unnamed(body, "y = ")]
        return body

    # -- what is there before the first act -------------------------------------------------------------------------

    def _setting(self) -> Iterator[Statement]:
        situation, values = self.scene.situation, self.wording.noting.values
        notes = not (self.wording.alive or self.wording.failing)
        if notes and self.wording.outside:
            yield "calls.clear()"
        elif notes:
            yield "calls = []"
        if self.wording.waiting:
            yield "waiting = []"
        if self.wording.registering:
            yield "handles = []"
        yield from self._net()
        plain = situation.input == "plain" and not values
        yield f"x = {'torch.ones(1, 1, requires_grad=True)' if plain else INPUTS[situation.input].expression}"
        yield f"optimizer = {OPTIMIZERS[situation.optimizer].expression}"
        if self.wording.saving:
            yield "state = net.state_dict()"
            yield "steps = optimizer.state_dict()"
        if self.wording.alive and self.wording.alive not in self.logs.sites:
            yield Block(f"def {self.wording.alive}(*_):", ("pass",))

    def _net(self) -> Iterator[Statement]:
        values = self.wording.noting.values
        layer = "nn.Linear(1, 1, bias=False)" if values else "nn.Linear(1, 1)"
        yield f"net = {layer}" if self.wording.words.single else f"net = nn.Sequential({layer}, {layer})"
        if values:
            yield "nn.init.constant_(net[0].weight, 2.0)"
            yield "nn.init.constant_(net[1].weight, 3.0)"
        yield from _hosted(HOSTS[self.scene.situation.host].expression)

    # -- acts -------------------------------------------------------------------------------------------------------

    def _act(self, at: int, act: Act) -> list[Statement]:
        """The statements of an act; what it raises and must raise goes no further."""
        if isinstance(act, Trouble):
            return [*self._trouble(act)]
        if isinstance(act, Enter):
            self.within = ", ".join(context(name) for name in (act.outer, act.inner) if name)
            self.wholly = act.wholly
            return []
        last = at == len(self.scene.acts) - 1
        if isinstance(act, Register):
            statements = [*self._register(act)]
        elif isinstance(act, Leave):
            statements = self._left()
        elif isinstance(act, Remove):
            statements = self._wholly(self._remove(act.hook, act.way))
        elif isinstance(act, Alter):
            statements = self._alter(act)
        else:
            statements = self._within(self._trigger(act))
        raised = [entry[1] for entry in self.logs.each[at] if entry[0] == "raised"]
        if raised and not last:
            statements = [Block(f"with suppress({RAISED.get(raised[0], raised[0])}):", tuple(statements))]
        if self.failing and isinstance(act, Trigger) and act.what == "forward" and not last:
            statements = [*statements, f"del {self.failing}"]
            self.failing = ""
        if last:
            statements = [*(["calls.clear()"] if self.wording.cleared else []), *self._caught(statements)]
        return statements

    def _left(self) -> list[Statement]:
        """All hooks go."""
        return [f"{self.wording.handles[hook]}.remove()" for hook in self.logs.sites if hook in self.wording.handles]

    def _caught(self, statements: Sequence[Statement]) -> list[Statement]:
        if not self.wording.caught:
            return [*statements]
        of_torch = any(entry[0] == "raised" and entry[1] not in RAISED for entry in self.logs.each[-1])
        error = 'f"{type(error).__name__}()"' if of_torch else "repr(error)"  # the text is torch's own affair
        note = f"failure = {error}" if self.wording.failing else f"calls.append({error})"
        empty = ["failure = None"] if self.wording.failing else []
        return [*empty, Block("try:", tuple(statements)), Block(f"except {self.wording.caught} as error:", (note,))]

    def _within(self, statements: list[Statement]) -> list[Statement]:
        return [Block(f"with {self.within}:", tuple(statements))] if self.within else statements

    def _wholly(self, statements: list[Statement]) -> list[Statement]:
        return self._within(statements) if self.wholly else statements

    def _register(self, act: Register) -> Iterator[Statement]:
        site = SITES[act.site]
        if act.hook in self.wording.defined and not self.wording.outside:
            yield self.function(act.hook)
        if site.table in ("pack", "unpack"):
            return  # a context of its own: see `_opened`
        if "accumulator" in site.register:
            leaf = self.wording.words.leaf
            yield f"node = {leaf}.view_as({leaf}).grad_fn.next_functions[0][0]"
        handle = self.wording.handles.get(act.hook)
        expression = self._registering(act.hook, site, act.first)
        yield from self._wholly([f"{handle} = {expression}" if handle else expression])

    def _registering(self, hook: str, site: HookSite, first: bool = False) -> str:
        expression = site.register.replace("accumulator(leaf(net))", "node")
        expression = IMPORTED.sub("", self._in_words(expression)).format(hook=self._hook(hook, site))
        return f"{expression[:-1]}, prepend=True)" if first else expression

    def _in_words(self, text: str) -> str:
        words = self.wording.words
        text = text.replace("leaf(net)", words.leaf)
        return re.sub(r"part\(net, (\d)\)", lambda match: words.part.format(match[1]), text)

    def _hook(self, hook: str, site: HookSite) -> str:
        if hook in self.wording.defined:
            return hook
        note = self._note(hook, site)
        return f"lambda *{'given' if 'given' in note else '_'}: {note or None}"

    def _note(self, hook: str, site: HookSite) -> str:
        return "" if self.wording.alive or self.wording.failing else self.wording.noting.line(hook, site)

    def function(self, hook: str) -> Block:
        """The hook as a function, with what it does once."""
        site = self.logs.sites[hook]
        note = self._note(hook, site)
        body: list[Statement] = [note] if note else []
        if hook in self.wording.waiting:
            body.append(Block("if waiting:", ("waiting.clear()", *self._done(self.wording.waiting[hook]))))
        for act in self.scene.acts if hook not in self.wording.waiting else ():
            if isinstance(act, Trouble) and act.hook == hook and not act.what.startswith("the "):
                body += self._done(act)
        if site.shows == "once":
            once = Block(f'if "{hook}" not in calls:', (note,))
            body = [*([once] if note else []), *body[bool(note) :], "return value"]
        given = "value" if site.shows == "once" else "*given" if "given" in note else "*_"
        return Block(f"def {hook}({given}):", tuple(body) or ("pass",))

    def _done(self, act: Trouble) -> list[Statement]:
        """What a hook does besides."""
        if act.what in ("raises", "interrupts"):
            return [f"raise {RAISED['Stop' if act.what == 'raises' else 'Interrupt']}"]
        if act.what in REGISTERING:
            site = self.logs.sites[act.hook]
            expression = self._registering(act.other, site, act.first)
            return [f"handles.append({expression})" if everywhere(site) else expression]
        return self._remove(act.hook if act.what == "removes itself" else act.other, act.way)

    def _remove(self, hook: str, way: str) -> list[Statement]:
        return parsed(line.format(self.wording.handles.get(hook, "")) for line in REMOVAL_LINES[way])

    def _trouble(self, act: Trouble) -> Iterator[Statement]:
        if act.what.startswith("the body"):
            if self.wording.words.single:
                raise Unwritable(act.what)
            part = self._in_words("part(net, 1)")
            self.failing = f"{part}.forward"
            if act.what == BODY:
                name, body = "forward", (*self._done(act), f"return type({part}).forward({part}, x)")
            else:
                name, body = "fail", (f"raise {RAISED['Stop' if act.what.endswith('raises') else 'Interrupt']}",)
            yield Block(f"def {name}(x):", body)
            yield f"{self.failing} = {name}"
        elif act.what == "the closure raises":
            self.closure = "closure"
            noted = ['calls.append("closure")'] if self.wording.noting.closure else []
            yield Block("def closure():", (*noted, f"raise {RAISED['Stop']}"))
        elif act.hook in self.wording.waiting:
            yield "waiting.append(True)"

    def _alter(self, act: Alter) -> list[Statement]:
        handles = ", ".join(self._moved())
        lines = {
            "deepcopy with handles": [f"net, {handles} = copy.deepcopy((net, {handles}))"],
            "pickle with handles": [f"net, {handles} = pickle.loads(pickle.dumps((net, {handles})))"],
            "load": ["net.load_state_dict(state)"],
            "assign": ["net.load_state_dict(state, assign=True)"],
            "write to output": ["y.detach().mul_(1.0)"],
            "double the output": ["y.mul_(2.0)"],
        }.get(act.what)
        if lines is None or (not handles and act.what.endswith("with handles")):
            lines = CHANGE_LINES[act.what.replace(" with handles", "")].split("\n")
        if act.what == "drop":
            return ["del net", "gc.collect()", *self._net()]
        lines = [re.sub(r"attempt\(lambda: (.*)\)$", r"\1", LATE.sub(r"\1", line)) for line in lines]
        return [*parsed(map(self._in_words, lines))]

    def _moved(self) -> list[str]:
        """The handles of hooks on modules that are used."""
        sites = self.logs.sites
        return [handle for hook, handle in self.wording.handles.items() if hook in sites and sites[hook].where]

    def _trigger(self, act: Trigger) -> list[Statement]:
        if act.what == "forward":
            return [f"y = {CALL_LINES[act.call]}"]
        if act.what == "backward":
            cleared = ["clear(net, x)"] if self.wording.noting.values and self._times("backward") > 1 else []
            return [*cleared, *BACKWARD_LINES[act.way]]
        if act.what == "attach":
            tables = [site.table for site in self.logs.sites.values()]
            plain = self._times("attach") == 1 and not self._times("forward")
            return [line for table, line in ATTACHED.items() if table in tables] if plain else [EVENT_LINES["attach"]]
        return [self._called(act.what)]

    def _called(self, what: str) -> str:
        if what == "step":
            raising, self.closure = self.closure, ""
            noting = 'lambda: calls.append("closure")' if self.wording.noting.closure else ""
            needed = "lambda: 0.0" if self.scene.situation.optimizer == "of its own" else ""
            return f"optimizer.step({raising or noting or needed})"
        saving = {
            "load": "net.load_state_dict(state)",
            "load optimizer": "optimizer.load_state_dict(steps)",
        }
        inline = {
            "load": "net.load_state_dict(net.state_dict())",
            "load optimizer": "optimizer.load_state_dict(optimizer.state_dict())",
        }
        return {**EVENT_LINES, **(saving if self.wording.saving else inline)}[what]

    def _times(self, event: str) -> int:
        return sum(isinstance(act, Trigger) and act.what == event for act in self.scene.acts)

    # -- around acts, and after them --------------------------------------------------------------------------------

    def _opened(self, acted: list[list[Statement]]) -> Iterator[Statement]:
        """The statements of all acts, those in a context of saved tensors that is open in its block."""
        for at, act in enumerate(self.scene.acts):
            if isinstance(act, Register) and SITES[act.site].table in ("pack", "unpack"):
                acts = self.scene.acts[at + 1 :]
                closing = next(
                    (i for i, a in enumerate(acts) if isinstance(a, Remove) and a.hook == act.hook), len(acts)
                )
                end = at + 1 + closing
                pair = [act.hook, SAME]
                hooks = ", ".join(pair if SITES[act.site].table == "pack" else reversed(pair))
                inside = [s for part in acted[at + 1 : end] for s in part]
                opened = Block(f"with torch.autograd.graph.saved_tensors_hooks({hooks}):", tuple(inside) or ("pass",))
                before = [s for part in acted[: at + 1] for s in part]
                yield from (*before, opened, *(s for part in acted[end + 1 :] for s in part))
                return
        yield from (s for part in acted for s in part)

    def _closing(self, statements: list[Statement]) -> Iterator[Statement]:
        """The statements, then hooks on all modules go, and the result."""
        yield from statements
        gone = {act.hook for act in self.scene.acts if isinstance(act, Remove)}
        gone |= {hook for hook in self.logs.sites if any(isinstance(act, Leave) for act in self.scene.acts)}
        for hook, site in self.logs.sites.items():
            if hook in self.wording.handles and hook not in gone and everywhere(site):
                yield f"{self.wording.handles[hook]}.remove()"
        if self.wording.registering:
            yield Block("for handle in handles:", ("handle.remove()",))
        shown = "sorted(calls, key=str)" if self.wording.noting.values else "sorted(calls)"
        calls = shown if self.wording.unordered else "list(calls)" if self.wording.outside else "calls"
        failing = "failure" if self.wording.failing else calls
        yield f"return weakref.ref({self.wording.alive})" if self.wording.alive else f"return {failing}"


def _hosted(expression: str) -> Iterator[str]:
    """The statements that make a host of a net."""
    changed = re.fullmatch(r"changed\(network\(\), (?:lambda part: (.*)|(.*))\)", expression)
    if changed and changed[1]:
        yield re.sub(r"\bpart\b", "net[0]", changed[1])
    elif changed:
        yield f"{changed[2]}(net[0])"
    elif expression.startswith("restored("):
        yield f"net = {expression[len('restored(') : -1]}(*net)"
    elif expression != "network()":
        yield f"net = {expression.replace('network()', 'net')}"


def _lines(statements: Iterable[Statement]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, Block):
            yield statement.head
            yield from _lines(statement.body)
        else:
            yield statement


def _at_once(statements: Sequence[Statement]) -> Iterator[Statement]:
    """The statements with a backward from the output that is made right before it in one."""
    calls = (("y = net(x)", "y.backward()"),)
    pairs = zip(statements, [*statements[1:], ""])
    skipped = False
    for statement, following in pairs:
        if isinstance(statement, Block):
            yield Block(statement.head, tuple(_at_once(statement.body)))
        elif (statement, following) in calls:
            yield "net(x).backward()"
            skipped = True
        elif not skipped:
            yield statement
        else:
            skipped = False


def _unnamed(statements: Iterable[Statement], given: str) -> Iterator[Statement]:
    """The statements, of which none gives that name."""
    for statement in statements:
        if isinstance(statement, Block):
            yield Block(statement.head, tuple(_unnamed(statement.body, given)))
        else:
            yield statement[len(given) :] if statement.startswith(given) else statement
