"""What a report says in words: its title, which somebody could prove wrong, and where an expected number is from."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

import numpy as np

from hookcheck.contract.finding import Finding
from hookcheck.contract.site import NONE
from hookcheck.contract.verdict import Deviation
from hookcheck.contract.words import Stated
from hookcheck.hooks.kinds import FORWARD, FORWARD_PRE, RETAINED, HookKind
from hookcheck.networks.case import Case
from hookcheck.programs.program import Program
from hookcheck.repro.hooking import wrong_without
from hookcheck.repro.question import (
    ALIVE,
    CALLS,
    CLOSE,
    COUNT,
    DTYPE,
    EQUAL,
    ERROR,
    EVERY,
    LENGTH,
    MODULE,
    ORDER,
    REQUIRES_GRAD,
    TYPE,
    WARNINGS,
    Question,
)
from hookcheck.repro.sighting import Sighting
from hookcheck.topology.model import Apply, Call, Composite, Module, Sequential, Topology, Within, statements
from hookcheck.topology.primitive import Layer, Primitive
from hookcheck.topology.source import expression

LONGEST_TITLE = 120
"""So many characters a title has at most."""


def title(sighting: Sighting, asked: Question) -> str:
    """One line that says what torch does: ``register_full_backward_hook on Linear: …``.

    An exception need not have a text: then nothing comes after its name.
    """
    return titles(sighting, asked)[0]


def titles(sighting: Sighting, asked: Question) -> list[str]:
    """The title, then briefer ones: without the words of torch's own, and without the network as well."""
    contexts = under(sighting.case.topology)
    whole = " ".join(["on", _module(sighting.case, asked), *contexts])
    briefer = [(whole, True), (whole, False), (" ".join(contexts), False)]
    return [_title(sighting, asked, where, quoting) for where, quoting in briefer]


def _title(sighting: Sighting, asked: Question, where: str, quoting: bool) -> str:
    case = sighting.case
    plain = where.removeprefix("on ")
    hooked = f"{registered(case.kind)} {where}".rstrip()
    if asked.place == CALLS:
        return f"{hooked}: {_called(sighting, asked)}"
    if asked.place == WARNINGS:
        text = textwrap.shorten(asked.argument.split(". ")[0], 60, placeholder=" …")
        return f"{hooked} warns although the hook returns None{f': {text}' if quoting else ''}"
    if asked.place == ALIVE:
        return f"{hooked}: after the run {asked.path} is never freed"
    if asked.place == ERROR:
        if asked.expected:
            return f"{hooked}: writing in place raises {'another' if case.observed.raised else 'no'} error"
        of, run = (plain, case.plain) if sighting.symptom.unhooked else (hooked, case.observed)
        raised = str(run.raised) if quoting else str(run.raised).partition(":")[0]
        return textwrap.shorten(f"{of}: {raised}", LONGEST_TITLE, placeholder=" …").rstrip(": ")
    if asked.relation == CLOSE:
        return f"{plain if wrong_without(case, asked) else hooked}: {asked.path} is wrong"
    return f"{hooked}: a hook that returns None changes {asked.path}"


def title_of_program(program: Program, first: Deviation) -> str:
    """What a program is about, its fact, and what torch does instead of what is stated."""
    fact = f"{_about(program)}: {first.subject}"
    if first.gap == "raised":
        return f"{fact}: {first.observed}".rstrip(": ")
    said = f"{fact}: {first.observed} instead of {first.expected}"
    if len(said) > LONGEST_TITLE and first.observed[:1] in ("[", "(", "{"):  # whose beginning says nothing
        return f"{fact}: not as stated: {program.statement}"
    return said


def _about(program: Program) -> str:
    """The one function that the source of a program names, as people call it; else its chapter."""
    named: list[str] = re.findall(r"\b(?:torch|copy)(?:\.\w+)+", program.source)
    if len(named) != 1:
        return program.chapter.replace("-", " ")
    last = named[0].rpartition(".")[2]
    return last if last.startswith("register_") else named[0]


UNDER: Mapping[str, str] = {
    "no_grad": "under no_grad",
    "enable_grad": "under enable_grad",
    "inference_mode": "under inference_mode",
    "autocast": "under autocast",
    "save_on_cpu": "under save_on_cpu",
    "detect_anomaly": "under detect_anomaly",
    "checkpoint": "under checkpoint",
    "functional_call": "called by functional_call",
    "thread": "in another thread",
    "vmap": "under vmap",
    "replica": "in a replica of DataParallel",
    "ddp": "under DistributedDataParallel",
    "fully_shard": "under fully_shard",
    "dtensor": "on DTensors",
    "vjp": "under torch.func.vjp",
    "dual_inputs": "on tensors with tangents",
    "compiler_disable": "under torch.compiler.disable",
    "after_compile": "after torch.compile",
    "compiled_autograd": "under compiled autograd",
    "is_grads_batched": "with is_grads_batched",
}
"""How titles say that a network is in a context; of those that compile their names say it."""


def under(topology: Topology) -> list[str]:
    """In what contexts a network runs or is called, in the order in which they are written, each once."""
    modes = [
        s.mode if isinstance(s, Within) else s.context for s in statements(topology) if isinstance(s, (Within, Call))
    ]
    return list(dict.fromkeys(map(_under, filter(None, modes))))


def _under(mode: str) -> str:
    for name, words in (("compile_", "under torch.compile"), ("module_compile", "under Module.compile")):
        if mode.startswith(name):
            return words
    return UNDER.get(mode) or f"under {mode.replace('_', ' ')}"


def how(finding: Finding) -> str:
    """How something deviates: the gap, or where that speaks of a gradient, and neither side is one, both sides."""
    held = finding.expected if finding.observed is None else finding.observed
    value = held.value if isinstance(held, Stated) else held
    if finding.relation != NONE or _numbers(value):
        return finding.gap
    expected, observed = finding.words()
    return f"{observed} instead of {expected}"


def _numbers(value: object) -> bool:
    """Whether a value may be a gradient: numbers with a point, in lists of any depth, or an array; not an id."""
    if isinstance(value, list):
        return bool(value) and all(map(_numbers, value))
    return isinstance(value, (float, complex, np.ndarray))


def registered(kind: HookKind) -> str:
    """The function that registers hooks of a kind, as people call it."""
    return {"global": f"register_module_{kind.register.partition('_module_')[2]}"}.get(kind.scope, kind.register)


def _called(sighting: Sighting, asked: Question) -> str:
    case = sighting.case
    calls = len(case.events.get(asked.path, ())) if asked.path in case.events else len(case.observed.events)
    if asked.link == EVERY:
        return "a call of the first hook is not followed by those of the others"
    if asked.relation == COUNT:
        calls = len(case.events.get(asked.path, ()))
        what = "a gradient is retained" if case.kind.call == RETAINED else "the hook is called"
        return f"{what} {_times(calls)}, not {_times(asked.expected)}"
    if asked.relation == LENGTH:
        what = f"{asked.argument}{asked.index} has" if asked.argument else "the hook is called with"
        entries = ("entry", "entries") if asked.argument else ("argument", "arguments")
        return f"{what} not {asked.expected} {entries[asked.expected != 1]}"
    if asked.relation == ORDER:
        before, after = asked.expected
        return f"the hook of {after} is called before that of {before}"
    if asked.relation == EQUAL:
        flags = {REQUIRES_GRAD: "gradients that the hook is given require grad", MODULE: "it is given another module"}
        return flags.get(asked.argument, "it is given what was never packed")
    names = case.kind.parameters[1:] if case.kind.scope in ("module", "global") else ()
    name = f"{asked.argument}{asked.index}" if asked.argument in names else "the gradient"
    if asked.relation == TYPE:
        return f"{name} is {_type(asked.observed)}, not {_type(asked.expected)}"
    if asked.relation == DTYPE:
        return f"{name} is of {asked.observed}, not {asked.expected}"
    if getattr(asked.observed, "shape", None) != asked.expected.shape:
        return f"{name} has another shape than it should"
    return f"{name} is wrong"


def _type(name: str) -> str:
    return "None" if name == "NoneType" else f"a {name}"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _module(case: Case, asked: Question) -> str:
    """The module that the fault is about: its class, or for one of our own what it computes."""
    calls = case.expected.trace.calls
    call = next((c for c in calls if c.path == asked.path and asked.place == CALLS), calls[0])
    return _class(call.module)


def _class(module: Module) -> str:
    if isinstance(module, Layer):
        return module.source().partition("(")[0].removeprefix("nn.")
    if isinstance(module, Sequential):
        return "Sequential"
    steps = _parts(module) if isinstance(module, Composite) else []
    return f"a module of {' and '.join(steps[:3])}" if steps else "a module"


def _parts(module: Composite) -> list[str]:
    layers = [type(child).__name__ for _, child in module.children if isinstance(child, Layer)]
    ops = [called(s) for s in module.body if isinstance(s, Apply)]
    return list(dict.fromkeys([*layers, *ops]))


def called(statement: Apply) -> str:
    """The function that an operation calls first, or for an operator the name of the operation."""
    function = re.search(r"\w+(?=\()", statement.op.source(*map(expression, statement.args)))
    return function[0] if function else type(statement.op).__name__.lower()


def derivation(case: Case, asked: Question) -> str:
    """Why that is expected, in one line."""
    if asked.link == EVERY:
        return "of one call of a module the first hook, then the second, then the third"
    if asked.place == CALLS and asked.relation == COUNT:
        return _how_often(case, asked)
    if asked.relation == ORDER:
        return _order(case.kind, *asked.expected[:2])
    if asked.place == CALLS and case.kind.call in (FORWARD, FORWARD_PRE):
        return "as forward returned it" if asked.argument == "output" else "as the call gave it"
    if asked.relation == LENGTH and not asked.argument:
        return f"hook({', '.join(case.kind.parameters)})"
    if asked.relation == LENGTH:
        return "one for each positional argument" if asked.argument == "grad_input" else "one for each output"
    if asked.relation == TYPE and asked.expected == "NoneType":
        return "no gradient is computed there"
    if asked.relation == TYPE and asked.expected == "Tensor":
        return "its gradient is computed" + ("" if _asks_for_grad(case, asked) else ", as another input requires grad")
    if asked.relation == TYPE:
        return f"hook({', '.join(case.kind.parameters)})"
    if asked.relation == DTYPE:
        return "a gradient has the dtype of its tensor"
    if getattr(asked.observed, "shape", None) != getattr(asked.expected, "shape", None):
        return "a gradient has the shape of its tensor"
    steps = [node.primitive for node in reversed(case.expected.trace.nodes) if node.primitive is not None]
    rules = [rule for step in steps if (rule := _rule(step))]
    return f"chain rule: {', then '.join(rules[:3])}" if rules else "the cotangent itself"


def _how_often(case: Case, asked: Question) -> str:
    """Why a hook is called so often: the calls and the backward passes, or that not each of them counts."""
    path = asked.path.partition("[")[0]  # the module of an output
    forwards = sum(call.path == path for call in case.expected.trace.calls)
    backwards = len(case.expected.trace.passes)
    if case.kind.call in (FORWARD, FORWARD_PRE, RETAINED):
        return f"forward {_times(forwards)}"
    of_leaves = case.kind.scope in ("leaf", "leaves")
    if asked.expected == (backwards if of_leaves else forwards * backwards):
        return ("" if of_leaves else f"forward {_times(forwards)}, ") + f"backward {_times(backwards)}"
    if asked.expected == 0:
        return "no gradient that the hook waits for is computed"
    return "once where a backward computes the gradient that the hook waits for"


def _order(kind: HookKind, before: str, after: str) -> str:
    """Why one hook is called before another; empty where no short reason is known."""
    if not kind.backward:
        return ""
    if after.startswith(f"{before}."):
        return "backward meets the outputs of an enclosing module first"
    if before.startswith(f"{after}."):
        return "backward meets the inputs of an enclosing module last"
    return "backward meets a consumer before what it consumes"


def _asks_for_grad(case: Case, asked: Question) -> bool:
    """Whether the argument that is looked at requires grad itself; its gradient is computed beside others if not."""
    position = re.fullmatch(r"\[(\d+)\]", asked.index)
    call = next((call for call in case.expected.trace.calls if call.path == asked.path), None)
    if asked.argument != "grad_input" or position is None or call is None or int(position[1]) >= len(call.args):
        return True
    tensor = call.args[int(position[1])]
    return tensor is None or tensor.requires_grad


def _rule(step: Primitive) -> str:
    """The formula of a step's gradient, as its class states it: ``Linear has dx = v W``."""
    text = " ".join((type(step).__doc__ or "").split())
    match = re.search(r"``(d[xa] = [^`]*)``", text)
    return f"{type(step).__name__} {match[1]}" if match and len(match[1]) < 40 else type(step).__name__
