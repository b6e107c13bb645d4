"""What does a situation look like as PyTorch code? The lines that are run, after those of the bench.

What a report shows is shorter: see `hookcheck.repro.situations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hookcheck.programs.situations.acts import (
    BODY,
    CHANGING,
    REGISTERING,
    Act,
    Alter,
    Enter,
    Leave,
    Register,
    Remove,
    Situation,
    Trigger,
    Trouble,
)
from hookcheck.programs.situations.axes import HOSTS, INPUTS, OPTIMIZERS, SURROUNDINGS
from hookcheck.programs.situations.sites import SITES

BENCH = Path(__file__).with_name("bench.py")

CHANGE_LINES = {
    "collect": "gc.collect()",
    "eval": "net.eval()",
    "freeze and thaw": "net.requires_grad_(False).requires_grad_(True)",
    "load": "attempt(lambda: net.load_state_dict(values(net)))",
    "assign": "attempt(lambda: net.load_state_dict(values(net), assign=True))",
    "deepcopy": "net = labelled(copy.deepcopy(net))",
    "pickle": "net = labelled(pickle.loads(pickle.dumps(net)))",
    "deepcopy with handles": "net, moved = copy.deepcopy((net, {moved}))\nlabelled(net)\nHANDLES.update(moved)",
    "pickle with handles": "net, moved = pickle.loads(pickle.dumps((net, {moved})))\nHANDLES.update(moved)",
    "shallow copy": "net = labelled(copy.copy(net))",
    "double and back": "net.double().float()",
    "new data": "for parameter in net.parameters():\n    parameter.data = parameter.data.clone()",
    "set_": "with torch.no_grad():\n    for parameter in net.parameters():\n        parameter.set_(parameter.clone())",
    "share memory": "net.share_memory()",
    "apply": "net._apply(lambda tensor: tensor.clone())",
    "half a call": "attempt(lambda: part(net, 0)(x))",
    "another call": "attempt(lambda: net(x))",
    "copy": "copy.deepcopy(net)",
    "clear gradients": "optimizer.zero_grad()",
    "write to output": "if y is not None:\n    y.detach().mul_(1.0)",
    "write to input": "x.data.mul_(1.0)",
    "drop": "del net\ngc.collect()\nnet = labelled({host})",
    "freeze": "net.requires_grad_(False)",
    "thaw": "net.requires_grad_(True)",
    "retain": "y.retain_grad()",
    "move": "net._apply(lambda tensor: tensor.clone()).to(next(net.parameters()).device)",  # into other memory
    "cast": "net.double()",
    "cast back": "net.float()",
    "double the output": "if y is not None:\n    y.mul_(2.0)",
    "write to what is saved": "with torch.no_grad():\n    x.mul_(1.0)",
    "write to gradients": "for parameter in net.parameters():\n    parameter.grad = torch.ones_like(parameter)",
}
EVENT_LINES = {
    "attach": "attach(net)",
    "step": "optimizer.step(closure)",
    "save": "net.state_dict()",
    "load": "net.load_state_dict(values(net))",
    "save optimizer": "optimizer.state_dict()",
    "load optimizer": "optimizer.load_state_dict(steps)",
}
CALL_LINES = {
    "": "net(x)",
    "functional_call": "torch.func.functional_call(net, dict(net.named_parameters()), (x,))",
    "checkpoint": "checkpointed(net, x)",
    "in a thread": "in_thread(lambda: net(x))",
    "no_grad": "torch.no_grad()(lambda: net(x))()",
    "inference_mode": "torch.inference_mode()(lambda: net(x))()",
}
GRADIENT = "torch.ones_like(y)"
BACKWARD_LINES = {
    "backward": f"y.backward({GRADIENT})",
    "grad": f"torch.autograd.grad(y, [x, *net.parameters()], {GRADIENT})",
    "inputs": f"y.backward({GRADIENT}, inputs=[x, *net.parameters()])",
    "twice": f"(y.backward({GRADIENT}, retain_graph=True), y.backward({GRADIENT}))",
    "thread": f"in_thread(lambda: y.backward({GRADIENT}))",
}
REMOVAL_LINES = {
    "remove": 'HANDLES["{0}"].remove()',
    "twice": 'HANDLES["{0}"].remove()\nHANDLES["{0}"].remove()',
    "with": 'with HANDLES["{0}"]:\n    pass',
    "copied handle": 'copy.copy(HANDLES["{0}"]).remove()',
    "around a call": 'with HANDLES["{0}"]:\n    attempt(lambda: net(x))',
    "around an error": """\
def act():
    with HANDLES["{0}"]:
        raise Stop

attempt(act)""",
}
TROUBLE_LINES = {
    "raises": "raising(Stop)",
    "interrupts": "raising(Interrupt)",
}
BODIES = {
    "the body raises": "failing(part(net, 1), Stop)",
    "the body interrupts": "failing(part(net, 1), Interrupt)",
    BODY: "beginning(part(net, 1), act)",
}
"""The contexts of a call in which a body does so."""


def lines(situation: Situation, acts: Iterable[Act]) -> Iterator[list[str]]:
    """The lines that set the situation up, and those of each act."""
    choices = (HOSTS[situation.host], OPTIMIZERS[situation.optimizer], INPUTS[situation.input])
    acts = list(acts)
    entered = [Enter(situation.outer, situation.inner), *(act for act in acts if isinstance(act, Enter))]
    contexts = [SURROUNDINGS[name] for each in entered for name in (each.outer, each.inner)]
    needs = dict.fromkeys(choice.needs for choice in (*choices, *contexts) if choice.needs)
    host, optimizer, x = (choice.expression for choice in choices)
    within, wholly = _within(entered[0]), False
    yield [
        *needs,
        f"net = labelled({host})",
        f"x = {x}",
        f"optimizer = {optimizer}",
        "y, steps = None, optimizer.state_dict()",
    ]
    sites = {act.hook: act.site for act in acts if isinstance(act, Register)}
    body, moved = "", dict[str, str]()
    for act in acts:
        if isinstance(act, Register) and SITES[act.site].where:
            moved[act.hook] = f'"{act.hook}": HANDLES["{act.hook}"]'
        if isinstance(act, Trouble):
            body = BODIES.get(act.what, "")
        if isinstance(act, Enter):
            within, wholly = _within(act), act.wholly
        if isinstance(act, Alter):
            yield CHANGE_LINES[act.what].format(moved=f"{{{', '.join(moved.values())}}}", host=host).split("\n")
        else:
            run = _lines(act, body, sites)
            inside = isinstance(act, Trigger) or (wholly and isinstance(act, (Register, Remove)))
            yield [f"with {within}:", *("    " + line for line in run)] if within and inside else run
        if isinstance(act, Trigger) and act.what == "forward":
            body = ""


def _within(act: Enter) -> str:
    return ", ".join(SURROUNDINGS[name].expression for name in (act.outer, act.inner) if name)


def _lines(act: Act, body: str, sites: Mapping[str, str]) -> list[str]:
    if isinstance(act, Register):
        return [registering(act.hook, act.site, act.first)]
    if isinstance(act, Trouble):
        if act.what in (*CHANGING, BODY):
            waits = [f'ONCE["{act.hook}"] = act'] if act.what in CHANGING else []
            return ["def act():", *("    " + line for line in _change(act, sites)), "", *waits]
        if act.what == "the closure raises":
            return ['ONCE["closure"] = raising(Stop)']
        line = TROUBLE_LINES.get(act.what, "")
        return [f'ONCE["{act.hook}"] = {line}'] if line else []
    if isinstance(act, Remove):
        return REMOVAL_LINES[act.way].format(act.hook).split("\n")
    if isinstance(act, Enter):
        return []
    if isinstance(act, Leave):
        return [
            "for name in sorted(HANDLES, reverse=True):",
            "    HANDLES[name].remove()",
            "del net, optimizer, y",
            "x.grad = None",
            "HANDLES.clear()",
            "NODES.clear()",
            'LOG.append(("alive", *alive()))',
        ]
    assert isinstance(act, Trigger)
    return _event(act, body)


def _change(act: Trouble, sites: Mapping[str, str]) -> list[str]:
    """The lines by which a hook, or a body, registers or removes one."""
    if act.what in REGISTERING:
        return [registering(act.other, sites[act.hook], act.first)]
    return REMOVAL_LINES[act.way].format(act.hook if act.what == "removes itself" else act.other).split("\n")


def _event(act: Trigger, body: str) -> list[str]:
    if act.what == "forward":
        call = f"y = attempt(lambda: {CALL_LINES[act.call]})"
        return [f"with {body}:", f"    {call}"] if body else [call]
    if act.what == "backward":
        return [
            "clear(net, x)",
            "if y is not None and y.requires_grad:",
            f"    attempt(lambda: {BACKWARD_LINES[act.way]})",
        ]
    return [f"attempt(lambda: {EVENT_LINES[act.what]})"]


def registering(name: str, site: str, first: bool = False) -> str:
    """The line that registers a hook of that name."""
    chosen = SITES[site]
    expression = chosen.register.format(hook=f"hook({name!r}, {chosen.shows!r}, {chosen.lane!r})")
    if first:
        expression = f"{expression[:-1]}, prepend=True)"
    return f"HANDLES[{name!r}] = {expression}"
