"""What a script asks of torch: where it looks, by which relation it judges, and what is right there.

All of it comes from the finding: its relation, its site and both of its sides. No clause has a line of its own here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hookcheck.contract import site
from hookcheck.contract.finding import Finding, Gradients
from hookcheck.contract.site import Called
from hookcheck.errors import HookcheckError
from hookcheck.networks.case import Case, Pair
from hookcheck.networks.gradients import lacks_the_output
from hookcheck.oracle.graph import CallTrace
from hookcheck.probe.observation import Copy, Event, dtype_of, numbers
from hookcheck.repro.sighting import Sighting
from hookcheck.topology.values import parameter_shapes

CALLS, VALUE, ERROR, WARNINGS, ALIVE = "calls", "value", "error", "warnings", "alive"
"""Where a script looks: at the calls of a hook, at a value after the run, at what it raises, warns of, or leaves."""

COUNT, LENGTH, TYPE, DTYPE, CLOSE, SAME, ORDER, EQUAL, RAISES = (
    "count",
    "length",
    "type",
    "dtype",
    "close",
    "same",
    "order",
    "equal",
    "raises",
)
"""By what it judges: how many calls or entries, None or a Tensor or another type, a dtype, numbers, as without hooks,
order, a flag, an error or none."""

REQUIRES_GRAD, MODULE = "requires_grad", "module"
"""What flags are about, where no argument is: whether a gradient requires grad, whether it is the hook's own module."""


EVERY = -1
"""The place of all hooks of a chain: is each of them called right behind the one before it?"""


@dataclass(frozen=True)
class Question:
    """``place`` is one of the words above, ``relation`` another.

    Of calls, ``path`` is the module (or leaf, or output) whose hook is called, ``link`` the hook's place in a chain,
    ``event`` the number of the call, ``argument`` the hook's argument that matters (an empty one: all of them), and
    ``index`` what is looked at in it, as Python writes it: ``[0]``. Of a value ``path`` is the expression that gives
    it, of an error ``argument`` what it must say. ``expected`` is a number, a flag, the name of a type (None: that
    without hooks) or dtype, an array with its ``dtype``, or a list, and ``observed`` what torch gave in its place.
    """

    place: str
    relation: str
    path: str = ""
    argument: str = ""
    event: int = 0
    index: str = ""
    expected: Any = None
    dtype: str = ""
    observed: Any = None
    link: int = 0

    @property
    def compared(self) -> bool:
        """Whether a value is held against that without hooks."""
        return self.place == VALUE and (self.relation == SAME or (self.relation == TYPE and not self.expected))

    @property
    def of_numbers(self) -> bool:
        """Whether numbers are held against those that are due: not where a shape is, which tells enough."""
        shape = getattr(self.observed, "shape", None)
        return self.relation == CLOSE and shape is not None and shape == np.shape(self.expected)

    @property
    def at(self) -> tuple[int, ...]:
        """Of such numbers the place of the one that is wrong most."""
        away = np.nan_to_num(abs(self.observed - np.asarray(self.expected)), nan=np.inf)
        return tuple(map(int, np.unravel_index(int(np.argmax(away)), away.shape))) if away.ndim else ()


RAISED = Question(ERROR, RAISES)
"""Whether the run raises, although it should not."""


def question(sighting: Sighting) -> Question:
    """What a script asks to show that sighting.

    Raises:
        HookcheckError: there is no way to ask it.
    """
    case, finding = sighting.case, _of_one_call(sighting.case, sighting.subject, sighting.finding)
    where, relation = finding.site, finding.relation
    if relation == site.RAISES:
        due = re.match(r"(\w+) that says '([^']*)'", str(finding.expected))
        if due:
            return replace(RAISED, expected=due[1], argument=due[2])
        return replace(RAISED, expected=None if finding.observed else str(finding.expected).split()[0])
    if relation == site.WARNS:
        return Question(WARNINGS, COUNT, expected=0, argument=str(finding.observed).partition(": ")[2])
    if relation == site.KEPT_ALIVE:
        return Question(ALIVE, SAME, path=expression(case, finding.observed[0]))
    if relation == site.ORDER:
        return _of_order(case, finding)
    if where.kind == site.CALL:
        return _of_how_often(case, sighting.subject, finding)
    if relation == site.AS_WITHOUT_HOOKS:
        return _of_what_changes(case, finding)
    call = where.call or _call(case, sighting.subject, where.name.partition("[")[0])
    asked = _of_dtype(case, _first(case, finding, expression(case, where.name) if call is None else ""))
    if call is None:
        return replace(asked, place=VALUE, path=asked.index, index="")
    asked = replace(asked, path=call.path, event=call.number, link=call.link, argument=asked.argument or call.argument)
    return _among(case, where.name, asked)


def _call(case: Case, subject: Any, argument: str) -> Called | None:
    """The call of a hook that a subject is; None where it is none."""
    if isinstance(subject, Pair) and subject.event is not None:
        return Called(subject.firing.call.path, case.events[subject.firing.call.path].index(subject.event), argument)
    if isinstance(subject, Event):
        return Called(subject.path, case.events[subject.path].index(subject))
    return None


def _of_one_call(case: Case, subject: Any, finding: Finding) -> Finding:
    """The finding; or, where a legacy hook is called as often as is due, but once otherwise, what that call lacks."""
    of_calls = finding.relation == site.COUNT and finding.site.kind == site.CALL
    if not of_calls or not isinstance(subject, CallTrace):
        return finding
    answers = case.as_nodes.get(subject.path)
    missing = [call for call, event in answers.due if event is None] if answers else []
    if answers is None or not missing or not answers.left or len(case.events[subject.path]) != len(answers.due):
        return finding
    return lacks_the_output(missing[0].gradient, answers.left)


def _of_order(case: Case, finding: Finding) -> Question:
    """Two names of hooks that come in the wrong order, the one that should be first before the other."""
    expected, observed = _names(finding.expected), _names(finding.observed)
    if case.kind.then and expected[0].startswith("hook "):
        return Question(CALLS, ORDER, link=EVERY)
    pairs = (pair for pair in zip(expected, expected[1:]) if expected.index(pair[0]) < expected.index(pair[1]))
    due = next((pair for pair in pairs if observed.index(pair[0]) > observed.index(pair[1])), tuple(expected[:2]))
    return Question(CALLS, ORDER, expected=list(due))


def _names(calls: list[str]) -> list[str]:
    """The names of modules, the calls of one alike: ``net`` or ``net.fc``."""
    return [
        name if re.match(r"hook |net\b", name) else f"net.{name}" for name, _, _ in (c.partition("#") for c in calls)
    ]


def _of_how_often(case: Case, subject: Any, finding: Finding) -> Question:
    """How often one hook is called, or all of them together."""
    expected, where = finding.expected, finding.site
    if isinstance(expected, list):  # by module: the first that is called more or less often than it should be
        due, seen = _names(expected), _names(finding.observed)
        name = next(name for name in (*due, *seen) if due.count(name) != seen.count(name))
        return Question(CALLS, COUNT, path=name.partition(".")[2], expected=due.count(name))
    if isinstance(subject, Pair):
        path = subject.firing.call.path
        return Question(CALLS, COUNT, path=path, expected=sum(firing.certain for firing in case.due[path]))
    if isinstance(subject, CallTrace):
        due_to_node = len(case.as_nodes[subject.path].due) if where.name else expected  # it is of one pass, if named
        return Question(CALLS, COUNT, path=subject.path, expected=due_to_node)
    if case.kind.then and where == site.Site(site.CALL):
        return Question(CALLS, COUNT, link=EVERY)
    return Question(CALLS, COUNT, path=where.call.path if where.call else where.name, expected=expected)


_ATTRIBUTES: Mapping[str, str] = {
    "strides": ".stride()", "version": "._version", "view": "._is_view()", "leaf": ".is_leaf",
    "requires_grad": ".requires_grad", "object": ".data_ptr()", "kind": ".layout",
}  # fmt: skip
"""How Python asks a tensor for what it is beside its numbers (see `hookcheck.probe.observation.Standing`)."""


def _of_what_changes(case: Case, finding: Finding) -> Question:
    """A value, or what a tensor is beside its numbers, held against the run without hooks."""
    name, of_type, _ = finding.site.name.partition("[type]")  # of a namedtuple that is a plain tuple now
    path, expected, observed = expression(case, name), finding.expected, finding.observed
    if of_type:
        return Question(VALUE, TYPE, path=path)
    if path.startswith("type("):
        return Question(VALUE, TYPE, path=path[len("type(") : -1])
    kinds = [str(side).split(",")[0] for side in (expected, observed)]
    if kinds[0].startswith("kind ") and kinds[0] != kinds[1]:  # of another class, else of another layout
        return Question(VALUE, TYPE, path=path)
    if finding.site.kind == site.ARGUMENT and isinstance(expected, str):
        return Question(VALUE, SAME, path=f"{path}{_ATTRIBUTES[expected.split()[0]]}")
    return Question(VALUE, TYPE if (expected is None) != (observed is None) else SAME, path=path)


def _first(case: Case, finding: Finding, index: str) -> Question:
    """The first place at which what a hook is given, or a value named ``index``, is not what it should be."""
    expected, observed = finding.expected, finding.observed
    if isinstance(observed, Gradients) and finding.relation == site.COUNT:
        return Question(CALLS, LENGTH, expected=len(expected), observed=len(observed))
    if isinstance(observed, Gradients):
        places = (i for i in observed.wrong if expected[i] is not None or observed.entries[i] is not None)
        place = next(places, observed.wrong[0])
        return _unlike(f"{index}[{place}]", expected[place], observed.entries[place])
    if finding.relation == site.NONE:
        named = finding.site.name.partition("[")
        return _unlike("".join(named[1:]), expected, observed)
    if finding.relation == site.COUNT:
        return Question(CALLS, LENGTH, expected=1 + expected, observed=1 + len(observed))  # the module as well
    if finding.relation == site.ABSENT:
        return _absent(expected, observed, finding.site.name.startswith("grad_output"))
    if isinstance(expected, str) or (isinstance(expected, tuple) and isinstance(expected[0], str)):
        return _signature(case, expected, observed)
    question = next(_differences(case, index, expected, observed), None)
    if question is None:
        raise HookcheckError(f"no script can be written yet where {finding.site} has the dtype of another tensor")
    return question


def _of_dtype(case: Case, asked: Question) -> Question:
    """The question; or, where the numbers are right, that about the dtype, which is the network's."""
    dtypes = case.expected.trace.dtypes
    if asked.relation != CLOSE or asked.dtype in dtypes or len(dtypes) > 1:
        return asked
    if not case.alike(asked.observed, np.asarray(asked.expected)):
        return asked
    (due,) = dtypes
    return replace(asked, relation=DTYPE, expected=f"torch.{due}", observed=f"torch.{asked.dtype}")


def _absent(expected: Any, observed: Any, in_tuple: bool) -> Question:
    """A handle that was never given, or a gradient that is in none of the calls: the first of them is looked at."""
    if isinstance(expected, str):
        return Question(CALLS, EQUAL, expected=True)
    given = observed[0] if observed else None
    if not isinstance(given, tuple):
        of_another_type = Question(CALLS, TYPE, expected="tuple", observed=_type(given))
        return of_another_type if in_tuple else _unlike("", expected, given)
    shape = getattr(expected, "shape", None)
    place = next((i for i, entry in enumerate(given) if getattr(entry, "shape", None) == shape), 0)
    return _unlike(f"[{place}]", expected, given[place] if given else None)


def _signature(case: Case, expected: Any, observed: Any) -> Question:
    """The module, the number of arguments or the type of one that a hook is called with, as texts say it."""
    sides = (expected, observed) if isinstance(expected, tuple) else ((expected,), (observed,))
    if len(sides[0]) != len(sides[1]):
        return Question(CALLS, LENGTH, expected=len(sides[0]), observed=len(sides[1]))
    place = next(i for i, (e, o) in enumerate(zip(*sides)) if e != o)
    if not place:
        return Question(CALLS, EQUAL, argument=MODULE, expected=True)
    return Question(
        CALLS, TYPE, argument=case.kind.parameters[place], expected=sides[0][place], observed=sides[1][place]
    )


def _differences(case: Case, index: str, expected: Any, observed: Any) -> Iterator[Question]:
    """What is not alike in two copies, the outer things before what they hold."""
    expected = np.asarray(expected) if isinstance(expected, np.generic) else expected
    if isinstance(expected, (tuple, list, dict)):
        seen = _held(observed, expected)
        if seen is None:
            yield Question(CALLS, TYPE, index=index, expected=type(expected).__name__, observed=_type(observed))
        elif len(seen) != len(expected):
            yield Question(CALLS, LENGTH, index=index, expected=len(expected), observed=len(seen))
        else:
            items = expected.items() if isinstance(expected, dict) else enumerate(expected)
            for (key, item), (place, other) in zip(items, seen.items()):
                yield from _differences(case, f"{index}{place}", item, seen.get(f"[{key!r}]", other))
    elif isinstance(expected, bool):
        if observed is not expected:
            yield Question(CALLS, EQUAL, expected=expected)
    elif expected is None or isinstance(expected, np.ndarray):
        if not isinstance(expected, np.ndarray) or not isinstance(observed, np.ndarray):
            alike = observed is None and expected is None
        else:
            rounded = expected.dtype.kind in "fc"
            alike = case.alike(numbers(observed), expected)
            alike &= not rounded or dtype_of(observed) in case.expected.trace.dtypes
        if not alike:
            yield _unlike(index, expected, observed)


def _held(observed: Copy, expected: Any) -> dict[str, Any] | None:
    """The items of an observed container by how Python comes to them, if it is one of the expected type."""
    if isinstance(observed, dict) and not (isinstance(expected, dict) or "type" in observed):
        return None
    if isinstance(observed, dict) and "type" in observed:  # a namedtuple or an instance of a dataclass
        named = [(key, item) for key, item in observed.items() if key != "type"]
        places = enumerate(named)
        return {f".{key}" if isinstance(expected, dict) else f"[{i}]": item for i, (key, item) in places}
    if isinstance(observed, dict):
        return {f"[{key!r}]": item for key, item in observed.items()}
    alike = isinstance(observed, (tuple, list)) and type(observed) is type(expected)
    return {f"[{i}]": item for i, item in enumerate(observed or ())} if alike else None


def _unlike(index: str, expected: Any, observed: Any) -> Question:
    """One gradient or value that is None, no Tensor, or has other numbers."""
    if (expected is None) or not isinstance(observed, np.ndarray):
        return Question(CALLS, TYPE, index=index, expected=_type(expected), observed=_type(observed))
    return Question(CALLS, CLOSE, "", "", 0, index, expected, dtype_of(observed), numbers(observed))


def _type(copy: Any) -> str:
    """The name of the type of what was copied."""
    return {type(None): "NoneType", np.ndarray: "Tensor"}.get(type(copy), type(copy).__name__)


def _among(case: Case, name: str, asked: Question) -> Question:
    """The question, of one leaf where a hook is on several, and of one argument where it is about all of them."""
    entry = re.match(r"\[(\d+)\]", asked.index)
    if entry and not asked.argument:
        return replace(asked, argument=case.kind.parameters[1 + int(entry[1])], index=asked.index[entry.end() :])
    if case.kind.scope == "leaves" and asked.argument != REQUIRES_GRAD:
        leaves = [leaf for leaf, traced in case.expected.trace.leaves.items() if traced.requires_grad]
        return replace(asked, index=f"[{leaves.index(name)}]{asked.index}")
    return asked


def expression(case: Case, name: str) -> str:
    """The expression that gives a leaf, its ``.grad`` or a value, by the name that observations have for it."""
    base, dot, rest = name.partition(".grad")
    if base in parameter_shapes(case.topology):
        base = f"net.{base}"
    base = re.sub(r"\.(\d+)", r"[\1]", base)
    return re.sub(r"\[([^\W\d]\w*)\]", r"['\1']", base) + dot + rest
