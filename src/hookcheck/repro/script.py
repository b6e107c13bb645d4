"""A script that shows one fault with torch and the standard library: a control that passes, and the experiment.

It is drawn from the question that a sighting asks (see `hookcheck.repro.question`), one way a relation, whatever the
clause. Of the ways to write it the shortest is tried first; `hookcheck.repro.choice` takes the first that works.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hookcheck.contract.clause import clause_named
from hookcheck.hooks.acts import FORWARD
from hookcheck.hooks.kinds import BACKWARD, BACKWARD_PRE, HookKind
from hookcheck.networks.case import Case
from hookcheck.oracle.tolerance import tolerance
from hookcheck.probe.registering import PREPEND
from hookcheck.releases.numbers import release
from hookcheck.repro.due import Due
from hookcheck.repro.formatting import WIDTH, formatted
from hookcheck.repro.heading import LACKS, ending, header, since_guard
from hookcheck.repro.hooking import Hooking, taken
from hookcheck.repro.links import links
from hookcheck.repro.network import ONES, NetworkScript, network
from hookcheck.repro.overriding import CONTROL, at_once, overriding
from hookcheck.repro.question import (
    ALIVE,
    CALLS,
    COUNT,
    DTYPE,
    EQUAL,
    ERROR,
    EVERY,
    LENGTH,
    ORDER,
    SAME,
    TYPE,
    VALUE,
    WARNINGS,
    Question,
)
from hookcheck.repro.runs import forked
from hookcheck.repro.sighting import Sighting
from hookcheck.repro.words import derivation, titles
from hookcheck.repro.writing import is_needed
from hookcheck.topology.model import Topology
from hookcheck.topology.needs import needs

SUPPRESS = "from contextlib import suppress"

MODULES = {ALIVE: ("import gc", "import weakref"), WARNINGS: ("import warnings",)}
"""What questions need besides torch."""

EXPECTED_OF_CONTROL = "expected_of_control"
"""The name of what a control must give, where that is something else."""


@dataclass(frozen=True)
class Control:
    """What must pass: the run without hooks (``hooked``), with another function that registers (``register``), with
    another network (``topology``), of which something else may be ``due``, or another ``value`` of the same run, by
    the expression that gives it; empty where there is none of these."""

    hooked: bool = False
    register: str = ""
    topology: Topology | None = None
    due: Due | None = None
    value: str = ""

    def __bool__(self) -> bool:
        """Whether there is one."""
        return self != Control()


@dataclass(frozen=True)
class Way:
    """A way to write a script: its control, the numbers that tensors have (see `hookcheck.repro.network`), whether
    hooks are put ``everywhere`` or where the fault shows alone, and whether each run is a ``fresh`` one, to which
    nothing is left of what the other compiled; and a ``remark`` on it."""

    control: Control
    numbers: str = ONES
    everywhere: bool = False
    fresh: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Parts:
    """What a script is made of: its ``head``, lines that import, the ``guard`` that ends it where its torch lacks the
    API, definitions of which ``run`` is the last one, and a ``verdict`` on what that gives; and the names of functions
    that its ``hooks`` call."""

    head: str
    imports: tuple[str, ...]
    guard: str
    body: str
    verdict: str
    hooks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The script."""
        imports = _imports(self.imports, f"{self.body}\n{self.verdict}")
        blocks = [self.head, "\n".join(imports), *filter(None, [self.guard])]
        return formatted("\n\n".join([*blocks, self.body, self.verdict]))


def script(sighting: Sighting, asked: Question, way: Way) -> str:
    """The text of a script that asks so of torch."""
    return parts_of(sighting, asked, way).text


def parts_of(sighting: Sighting, asked: Question, way: Way) -> Parts:
    """The parts of that script."""
    case = sighting.case
    judged = _Judged(case, asked)
    if way.control.value:
        value = judged.result.replace(taken(case.kind, asked), way.control.value)
        way = replace(way, control=replace(way.control, value=value))
    other = way.control.topology
    hooking = Hooking(case, asked, way.everywhere, _register(way), again=other is not None)
    named = f"{judged.result} {way.control.value}" if asked.place == VALUE else way.control.value
    named = f"{named} {asked.path}" if asked.place == ALIVE else named
    if (
        other is not None
    ):  # an input that differs has a line, the only one that does; leaves are made alike in both runs
        of_both, either = ({*case.topology.inputs} & {*other.inputs}), {*case.topology.inputs, *other.inputs}
        named = " ".join([named, *(i.name for i in either if i.requires_grad or i not in of_both)])
    parts, changed = _networks(case, other, way.numbers, f"{named} {hooking.named}")
    classes = list(parts.classes)
    leaking = any("leaked" in text for text in classes)
    main = [*parts.setup, *_hooked(hooking, way), *hooking.within(parts.main)]
    if changed is not None:
        setup = list(changed.setup)
        its_own = overriding(classes, [text for text in changed.classes if text not in classes])
        line = its_own and at_once(its_own[1])
        if its_own and line:
            setup.insert(1, line)
        elif its_own:
            classes.append(its_own[1])
            setup = [line.replace(f"{its_own[0]}(", f"{CONTROL}(") for line in setup]
        main = forked(main, [*setup, *hooking.lines, *hooking.within(changed.main)])
    main = [line for line in main if line != "leaked = {}"]
    raises = case.observed.raised is not None and asked.place in (WARNINGS, CALLS)
    raises |= case.plain.raised is not None and asked.compared
    calls = ["calls = []"] if "calls" in judged.result + "".join(main) else []
    fresh = ["torch.compiler.reset()"] if way.fresh else []
    run = _function(way, [*calls, *fresh, *main], asked, judged, raises)
    return Parts(
        "\n".join([_header(sighting, asked), *([f"# {way.remark}"] if way.remark else [])]),
        (*parts.imports, *([SUPPRESS] if raises else []), *MODULES.get(asked.place, ())),
        _guard(case.kind, case.topology, case.device),
        "\n\n\n".join([*(["leaked = {}"] if leaking else []), *classes, *hooking.helpers, run]),
        "\n".join([*_in_full(sighting, asked), _verdict(way, asked, judged, case, derivation(case, asked))]),
        tuple(re.findall(r"(?m)^def (\w+)", "\n".join(hooking.helpers))),
    )


def _networks(
    case: Case, other: Topology | None, numbers: str, named: str
) -> tuple[NetworkScript, NetworkScript | None]:
    """The parts of a network and of another one, if any; what has a line in one of them has one in the other."""
    parts = network(case.topology, numbers, named, case.device)
    if other is None:
        return parts, None
    changed = network(other, numbers, named, case.device)
    lines, others = ({line.partition(" = ")[0] for line in of.setup} for of in (parts, changed))
    apart = sorted(lines ^ others)
    either = f"{named} {' '.join(name for name in apart if name.isidentifier())}"
    return network(case.topology, numbers, either, case.device), network(other, numbers, either, case.device)


def _in_full(sighting: Sighting, asked: Question) -> list[str]:
    """What prints tensors with all their digits, where two runs differ in the last ones alone."""
    rounded = asked.compared and asked.relation == SAME and sighting.symptom.gap == "other rounding"
    return ["torch.set_printoptions(precision=17)  # they differ in the last bits"] if rounded else []


def _register(way: Way) -> str:
    return "register" if way.control.register else ""


def _hooked(hooking: Hooking, way: Way) -> list[str]:
    """The lines that register, under a condition where the control is a run without hooks."""
    if not way.control.hooked or not hooking.lines:
        return hooking.lines
    return ["if hooked:", *(f"    {line}" for line in hooking.lines)]


class _Judged:
    """What a run gives back, and how that is held against what is expected.

    ``result`` is an expression, ``holds`` a condition with ``{}`` in the place of what a run gave. Where a hook need
    not be called that often (``may_lack``), the result is None if it is not.
    """

    def __init__(self, case: Case, asked: Question) -> None:
        self.expected = ""
        self.may_lack = False
        if asked.place == CALLS:
            self.result, self.holds = self._calls(case, asked)
            self.may_lack = f"calls[{asked.event}]" in self.result and not _is_certain(case, asked)
            if self.may_lack:
                self.result = f"{self.result} if len(calls) > {asked.event} else None"
        elif asked.place == VALUE:
            self.result, self.holds = self._value(case, asked)
        elif asked.place == WARNINGS:
            self.result, self.holds = "[str(w.message) for w in caught]", "not {} or set({}) <= set(control)"
        elif asked.place == ALIVE:
            self.result, self.holds = f"weakref.ref({asked.path})", "{}() is None"
        else:
            self.expected = repr(asked.expected)
            self.result, self.holds = "None", "{} is None"
            if asked.expected:
                says = f'"{asked.argument}" in str({{}})'
                self.holds = says if asked.argument else f'{{}} is not None and {{}}.startswith("{asked.expected}")'

    def _calls(self, case: Case, asked: Question) -> tuple[str, str]:
        of = taken(case.kind, asked)
        if asked.link == EVERY:
            chain, trace = [*range(len(FORWARD))], case.expected.trace
            if trace.repeats:  # what backward runs again may end between two hooks
                return "calls", f"{{}}[:{len(chain) * len(trace.calls)}] == {chain} * {len(trace.calls)}"
            return "calls", f"{{}} == {chain} * (len({{}}) // {len(chain)})"
        if asked.relation == COUNT:
            self.expected = str(asked.expected)
            return "len(calls)", "{} == expected"
        if asked.relation == ORDER:
            before, after = asked.expected[:2]
            return "calls", f'{{}}.index("{before}") < {{}}.index("{after}")'
        if asked.relation == EQUAL:
            return ("all(calls)", "{}") if asked.expected else ("any(calls)", "not {}")
        if asked.relation == LENGTH:
            self.expected = str(asked.expected)
            return f"len({of})", "{} == expected"
        return self._tensor(case, asked, of)

    def _value(self, case: Case, asked: Question) -> tuple[str, str]:
        if asked.relation == SAME:
            tensors = not re.search(
                r"\.(stride\(\)|_version|_is_view\(\)|is_leaf|requires_grad|data_ptr\(\)|layout)$", asked.path
            )
            return asked.path, "torch.equal({}, control)" if tensors else "{} == control"
        if asked.relation == TYPE and not asked.expected:
            return f"type({asked.path}).__name__", "{} == control"
        return self._tensor(case, asked, asked.path)

    def _tensor(self, case: Case, asked: Question, of: str) -> tuple[str, str]:
        """None or a tensor; the shape where that is wrong; all numbers, or of many the one that is wrong most."""
        if asked.relation == TYPE:
            self.expected = f'"{asked.expected}"'
            return f"type({of}).__name__", "{} == expected"
        if asked.relation == DTYPE:
            self.expected = asked.expected
            return f"{of}.dtype", "{} == expected"
        expected = np.asarray(asked.expected)
        if not asked.of_numbers:
            self.expected = repr(expected.shape)
            return f"tuple({of}.shape)", "{} == expected"
        number = expected[asked.at].item()
        within = max(tolerance(expected, asked.dtype, case.device) or 0.0, 1e-6)
        self.expected = _number(number)
        index = f"[{', '.join(map(str, asked.at))}]" if asked.at else ""
        return f"{of}{index}.item()", f"abs({{}} - expected) <= {within:.0e}"


def _is_certain(case: Case, asked: Question) -> bool:
    """Whether the call that is asked about must come: some firings are due only if torch goes that way."""
    firings = case.due.get(asked.path) if case.kind.call in (BACKWARD, BACKWARD_PRE) else None
    if firings is None:
        return True
    return asked.event < sum(firing.certain for firing in firings) and not case.nodes_unspecified


def _number(value: complex) -> str:
    return repr(float(f"{value:.8g}")) if not isinstance(value, complex) else repr(value)


def _function(way: Way, body: list[str], asked: Question, judged: _Judged, raises: bool) -> str:
    """The function that runs once, control or experiment; what it warns of counts where it ``raises`` as well."""
    control = way.control
    parameter = (
        "hooked" if control.hooked else "register" if control.register else "experiment" if control.topology else ""
    )
    result = f"return {judged.result}"
    if control.value:
        result = f"return {control.value}, {judged.result}"
    if raises:
        first = body[:1] if body[0] == "calls = []" else []
        body = [*first, "with suppress(Exception):", *(f"    {line}" for line in body[len(first) :])]
    if asked.place == WARNINGS:
        inner = ["with warnings.catch_warnings(record=True) as caught:", '    warnings.simplefilter("always")']
        body = [*inner, *(f"    {line}" for line in body), result]
    elif asked.place == ERROR and not asked.expected:
        pass
    elif asked.place == ERROR:
        caught = ["except Exception as error:", '    return f"{type(error).__name__}: {error}"', "return None"]
        body = ["try:", *(f"    {line}" for line in body), *caught]
    else:
        body = [*body, result]
    return "\n".join([f"def run({parameter}):", *(f"    {line}".rstrip() for line in body)])


def _verdict(way: Way, asked: Question, judged: _Judged, case: Case, why: str) -> str:
    """The lines at the end: both runs, what is expected, and the exit code."""
    control, register = way.control, case.kind.register
    of_control = _Judged(case, control.due.asked) if control.due else judged
    first, second = {
        control.hooked: ("run(hooked=False)", "run(hooked=True)"),
        bool(control.register): (f'run("{control.register}")', f'run("{register}")'),
        control.topology is not None: ("run(experiment=False)", "run(experiment=True)"),
    }.get(True, ("", "run()"))
    if asked.place == ERROR and not asked.expected:
        return "\n".join([*([f"{first}  # the control raises nothing"] if first else []), raising(second)])
    lines = [f"expected = {judged.expected}  # {why}"[:WIDTH]] if judged.expected and "expected" in judged.holds else []
    holds = of_control.holds
    if "expected" in holds and control.due:
        names, values = ["expected", EXPECTED_OF_CONTROL], [judged.expected, of_control.expected]
        if why != control.due.why or not lines:
            lines.append(f"{EXPECTED_OF_CONTROL} = {of_control.expected}  # {control.due.why}"[:WIDTH])
        else:
            lines = [f"{', '.join(names)} = {', '.join(values)}  # {why}"[:WIDTH]]
        holds = holds.replace("expected", EXPECTED_OF_CONTROL)
    both = f"control, experiment = {first}, {second}"
    if control.value:
        lines.append("control, experiment = run()")
    elif first and len(both) <= WIDTH:
        lines.append(both)
    else:
        lines += [f"control = {first}"] if first else []
        lines.append(f"experiment = {second}")
    lines += ["gc.collect()"] if asked.place == ALIVE else []
    lines += [f"# {why}"] if why and (asked.relation == ORDER or asked.link == EVERY) else []
    runs = ["control", "experiment"] if first or control.value else ["experiment"]
    shown = [f"{name}() is None" if asked.place == ALIVE else name for name in runs]
    lines.append(f"print({', '.join(f'{chr(34)}{name}:{chr(34)}, {value}' for name, value in zip(runs, shown))})")
    fails = len(runs) > 1 and not asked.compared and asked.place != WARNINGS
    lines += ["# None: the hook is not called that often, and need not be"] if judged.may_lack else []
    may_lack = "experiment is None or " if judged.may_lack else ""
    conditions = (may_lack + judged.holds.replace("{}", "experiment"), holds.replace("{}", "control"))
    return "\n".join([*lines, *ending(*conditions[: 1 + fails])])


def raising(act: str) -> str:
    """The lines that end a script where an act raises."""
    lines = [
        "try:",
        *(f"    {line}".rstrip() for line in act.split("\n")),
        "except Exception as error:",
        '    print(f"experiment: {type(error).__name__}: {error}")',
        "    raise SystemExit(1)",
    ]
    return "\n".join(lines)


def _imports(lines: Sequence[str], body: str) -> list[str]:
    """The lines that import what a script may need, as far as its ``body`` still does."""
    needed = {line for line in lines if is_needed(line, body)}
    return sorted({*needed, "import torch", "from torch import nn"})


def _guard(kind: HookKind, topology: Topology, device: str) -> str:
    """The lines that end a script where its torch lacks the API, or its machine the device."""
    conditions = [] if kind.since == "1.7" else [f'not hasattr({kind.owner}, "{kind.register}")']
    since = max((needs(topology)[0], kind.since if kind.kwargs else "1.7"), key=release)
    if kind.then and PREPEND:
        since = max(since, "2.0", key=release)
    if kind.kwargs or release(since) > release(kind.since):  # such a torch has the kind as well
        conditions = since_guard(since)
    if device == "cuda":
        conditions.append("not torch.cuda.is_available()")
    joined = f"if {' or '.join(conditions)}:"
    tests = [joined] if len(joined) <= WIDTH else [f"if {condition}:" for condition in conditions]
    return "\n".join(f"{test}\n    raise SystemExit({LACKS})" for test in tests) if conditions else ""


def _header(sighting: Sighting, asked: Question) -> str:
    clause, kind = clause_named(sighting.symptom.clause), sighting.case.kind
    where = (links(clause.source) or (kind.documentation,))[0]
    return header(titles(sighting, asked), where.partition("#")[0])
