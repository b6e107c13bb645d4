"""What do calls that take several tensors do with tensors of every class, and which hooks run then?

``register_multi_grad_hook``, ``torch.autograd.grad`` and ``torch.autograd.backward`` take lists, of roots as well as of
inputs. Here each list of one or two entries is tried, an entry being of any of the classes below, in each mode. One
graph serves all: with a = 2 and b = 3, ``inner = a · b``, ``pair = unbind(stack(inner, 7 · inner))``, ``root = 11 ·
pair[0] + 13 · pair[1]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from inspect import signature
from itertools import product
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

MULTI = "torch.autograd.graph.register_multi_grad_hook"

SLOPES: dict[str, dict[str, float]] = {
    "root": {"root": 1.0, "pair[1]": 13.0, "inner": 102.0, "a": 306.0, "b": 204.0},
    "pair[1]": {"pair[1]": 1.0, "inner": 7.0, "a": 21.0, "b": 14.0},
    "inner": {"inner": 1.0, "a": 3.0, "b": 2.0},
    "a": {"a": 1.0},
    "b": {"b": 1.0},
    "another leaf": {"another leaf": 1.0},
    "another graph": {"another leaf": 5.0},
}
"""The derivatives of each tensor, by all that it was made from, itself included."""

GRADIENTS = SLOPES["root"]
"""The gradients of the root, in the order in which they come: 13; 11 + 7 · 13; 102 · 3 and 102 · 2."""

BEHIND = {"root": "", "pair[1]": "root", "inner": "pair[1]", "a": "inner", "b": "inner"}
"""Through which tensor the gradient of each comes, by the way that all share."""

OUTSIDE = ("another leaf", "another graph")
UNGRADED = ("no grad", "integer", "detached")
EDGES = ("edge of a", "edge of inner", "edge of another leaf")
CLASSES = (*GRADIENTS, *OUTSIDE, *UNGRADED, "None", *EDGES)
"""What an entry of a list may be."""

REFUSED = "refused"
"""What stands for an exception: which one it is, no documentation says."""

Entries = tuple[str, ...]
Result = tuple[Entries, Any, Any]
"""A list, what came of it, and what must."""


def graph() -> dict[str, Any]:
    """One of each class."""
    a, b, other = (torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0))
    inner = a * b
    pair = torch.stack((inner, 7 * inner)).unbind()
    tensors: dict[str, Any] = {"a": a, "b": b, "inner": inner, "pair[1]": pair[1], "root": 11 * pair[0] + 13 * pair[1]}
    tensors.update({"another leaf": other, "another graph": 5 * other, "detached": inner.detach(), "None": None})
    tensors.update({"no grad": torch.tensor(1.0), "integer": torch.tensor(1)})
    if hasattr(getattr(torch.autograd, "graph", None), "get_gradient_edge"):
        tensors.update(
            {edge: torch.autograd.graph.get_gradient_edge(tensors[edge[len("edge of ") :]]) for edge in EDGES}
        )
    return tensors


def lists(classes: Entries, among: Entries = ()) -> Iterator[Entries]:
    """The lists of one entry and of two, an entry and itself included; with ``among`` those in which one of it is."""
    listed = [*((entry,) for entry in classes), *product(classes, classes)]
    yield from (entries for entries in listed if not among or {*entries} & {*among})


def reached(asked: Iterable[str]) -> set[str]:
    """The tensors whose gradients a backward computes that is asked for those: the root, whose is given, they, and what
    lies before them."""
    names = {"root"}
    for name in asked:
        while name in BEHIND:
            names.add(name)
            name = BEHIND[name]
    return names


def attempted(act: Callable[[], Any]) -> Any:
    """What ``act`` gives, or `REFUSED`."""
    try:
        return act()
    except Exception:
        return REFUSED


def number(gradient: Any) -> float | None:
    """A gradient as a number, or None."""
    return None if gradient is None else float(gradient)


def noting(tensors: dict[str, Any]) -> list[str]:
    """The hooks that run from now on, by the names of their tensors."""
    log: list[str] = []
    for name in GRADIENTS:
        tensors[name].register_hook(lambda grad, name=name: log.append(name))
    return log


def started(way: str, tensors: dict[str, Any]) -> None:
    """A backward in a way."""
    root, a = tensors["root"], tensors["a"]
    if way == "backward":
        root.backward()
    elif way == "backward for a":
        root.backward(inputs=(a,))
    else:
        torch.autograd.grad(root, a)


ASKED = {"backward": ("a", "b"), "backward for a": ("a",), "grad of a": ("a",)}


def state(check: Check, name: str, results: Iterable[Result]) -> None:
    """States that each list comes to what it must; where some do not, the fact shows those."""
    wrong = [(list(entries), seen, due) for entries, seen, due in results if seen != due]
    check.equal(name, [(entries, seen) for entries, seen, _ in wrong], [(entries, due) for entries, _, due in wrong])


@program("AL-01", PROMISE, since="2.0", source=f"{MULTI}, 'not part of the graph', 'not needed'")
def multi_grad_hooks_on_lists(check: Check) -> None:
    """A multi-grad hook is called once in each backward that computes a gradient of its list: with all of these, in
    their places, and None in the others; one that is listed twice is given twice."""
    for way, asked in ASKED.items():
        results: list[Result] = []
        for entries in lists((*GRADIENTS, *OUTSIDE)):
            tensors = graph()
            seen: list[Any] = []
            due = [GRADIENTS[name] if name in reached(asked) else None for name in entries]
            torch.autograd.graph.register_multi_grad_hook(
                [tensors[name] for name in entries],
                lambda grads, seen=seen: seen.append([number(grad) for grad in grads]),
            )
            raised = attempted(lambda way=way, tensors=tensors: started(way, tensors))
            results.append((entries, raised or seen, [due] if any(due) else []))
        for sort in ("", ", with the root", ", with a leaf that is asked for"):
            state(check, f"{way}{sort}", (result for result in results if _sort(way, result[0]) == sort))


def _sort(way: str, entries: Entries) -> str:
    """What a list has that torch is known to count wrongly."""
    if way == "grad of a" and "a" in entries:
        return ", with a leaf that is asked for"
    return ", with the root" if "root" in entries else ""


@program("AL-02", PROMISE, since="2.3", source=f'{MULTI}, mode="any"')
def first_gradients_of_lists(check: Check) -> None:
    """In mode "any" a multi-grad hook is called once in each backward that computes a gradient of its list, with the
    first of them; what requires no grad is left out."""
    for way, asked in ASKED.items():
        results: list[Result] = []
        for entries in lists((*GRADIENTS, *OUTSIDE, *UNGRADED)):
            if {*entries} == {"a", "b"}:
                continue  # which of two leaves comes first is not promised
            tensors = graph()
            seen: list[Any] = []
            due = [gradient for name, gradient in GRADIENTS.items() if name in entries and name in reached(asked)]
            torch.autograd.graph.register_multi_grad_hook(
                [tensors[name] for name in entries], lambda grad, seen=seen: seen.append(number(grad)), mode="any"
            )
            raised = attempted(lambda way=way, tensors=tensors: started(way, tensors))
            results.append((entries, raised or seen, due[:1]))
        state(check, way, results)


@program("AL-03", PIN, since="2.0", source=f"{MULTI}: what has no gradient")
def what_multi_grad_hooks_refuse(check: Check) -> None:
    """A list with what requires no grad, in mode "all", or with None, is refused as the hook is registered, and no hook
    stays on the others."""
    _refused(check, (*UNGRADED, "None"), "", {})
    if "mode" in signature(torch.autograd.graph.register_multi_grad_hook).parameters:
        _refused(check, ("None",), 'mode "any": ', {"mode": "any"})


@program("AL-06", PIN, since="2.13", source=f"{MULTI}, 'Sequence[torch.Tensor]'")
def multi_grad_hooks_refuse_edges(check: Check) -> None:
    """A list with a gradient edge is refused as the hook is registered, and no hook stays on the others."""
    _refused(check, EDGES, "", {})
    _refused(check, EDGES, 'mode "any": ', {"mode": "any"})


def _refused(check: Check, refused: Entries, name: str, options: Mapping[str, Any]) -> None:
    """States of lists with such entries that registering on them, with options, raises and leaves no hook."""
    raised: list[Result] = []
    left: list[Result] = []
    for entries in lists((*GRADIENTS, *OUTSIDE, *refused), refused):
        tensors = graph()
        given = [tensors[name] for name in entries]
        register = partial(torch.autograd.graph.register_multi_grad_hook, **options)
        raised.append((entries, attempted(lambda register=register, given=given: register(given, print)), REFUSED))
        left.append((entries, [name for name in entries if getattr(tensors[name], "_backward_hooks", None)], []))
    state(check, f"{name}it raises", raised)
    state(check, f"{name}hooks that stay", left)


@program("AL-04", PROMISE, since="2.0", source="torch.autograd.grad, 'inputs', 'allow_unused', 'materialize_grads'")
def asking_for_gradients_of_lists(check: Check) -> None:
    """``torch.autograd.grad`` gives the gradient of each entry, an edge or a tensor, as often as it is listed; what is
    not reached is refused, None or zeros, as is asked for; the hooks on what is reached run once."""
    offered = tuple(name for name in CLASSES if name in graph())
    modes = ("", "allow_unused", *({"materialize_grads"} & {*signature(torch.autograd.grad).parameters}))
    for mode, of in (*product(modes, (list,)), *product(modes[1:2], _named(torch.autograd.grad))):
        results: list[Result] = []
        for entries in lists(offered):
            tensors = graph()
            log = noting(tensors)

            def act(tensors: Any = tensors, entries: Entries = entries, mode: str = mode, of: Any = of) -> list[Any]:
                asked = _as(of, [tensors[name] for name in entries])
                options: dict[str, Any] = {mode: True} if mode else {}
                gradients: Any = torch.autograd.grad(tensors["root"], asked, **options)
                return [number(gradients[key]) for key in _keys(asked)]

            due = _asked(entries, mode)
            hooks = sorted(reached(map(_tensor, entries)))
            observed = attempted(act)
            if REFUSED in (due, observed):
                results.append((entries, observed, due))
            else:
                results.append((entries, [observed, sorted(log)], [due, hooks]))
        state(check, f"{mode or 'nothing unused'}{BY_NAME if of is dict else ''}", results)


BY_NAME = ", in a dictionary"


def _named(function: Any) -> tuple[Any, ...]:
    """A dictionary, where a function takes one of inputs."""
    return (dict,) if "dict" in str(signature(function).parameters["inputs"].annotation) else ()


def _as(of: Any, tensors: list[Any]) -> Any:
    """The tensors in a list, or in a dictionary by their number."""
    return tensors if of is list else {str(key): tensor for key, tensor in enumerate(tensors)}


def _keys(asked: Any) -> list[Any]:
    """Where the entries of a list or of a dictionary are."""
    return [*(asked if isinstance(asked, dict) else range(len(asked)))]


def _tensor(name: str) -> str:
    """The tensor that an entry stands for."""
    return name[len("edge of ") :] if name in EDGES else name


def _asked(entries: Entries, mode: str) -> Any:
    """What must come of asking for the gradients of a list."""
    tensors = [_tensor(name) for name in entries]
    unreached = [name for name in entries if _tensor(name) in OUTSIDE]
    if "None" in entries or {*entries} & {*UNGRADED} or (unreached and not mode):
        return REFUSED
    if mode == "materialize_grads" and {*unreached} & {*EDGES}:
        return REFUSED  # of an edge the shape is not known
    return [GRADIENTS.get(name, 0.0 if mode == "materialize_grads" else None) for name in tensors]


@program("AL-05", PROMISE, since="2.1", source="torch.autograd.backward, 'inputs'")
def accumulating_into_lists(check: Check) -> None:
    """``backward(inputs=…)`` accumulates the gradient of each entry that is reached into its ``.grad`` once, however
    often it is listed, and no other; the hooks on what is reached run once, and those after accumulation."""
    for of in (list, *_named(torch.autograd.backward)):
        _accumulated(check, of=of)


@program("AL-07", PIN, since="2.3", source="torch.autograd.backward, 'inputs'; GradientEdge")
def accumulating_by_edges(check: Check) -> None:
    """``backward(inputs=…)`` takes a gradient edge as well: the gradient of a leaf's is accumulated as if the leaf were
    listed; that of another tensor's reaches the hooks there, and gives the tensor no ``.grad``."""
    _accumulated(check, EDGES)


def _accumulated(check: Check, among: Entries = (), of: Any = list) -> None:
    """States of each list, or dictionary, what a backward for it accumulates, and which hooks it calls; with ``among``
    of those in which one of it is."""
    results: list[Result] = []
    for entries in lists((*GRADIENTS, *OUTSIDE, *UNGRADED, "None", *among), among):
        tensors = graph()
        log = noting(tensors)
        for name in ("a", "b", "another leaf"):
            tensors[name].register_post_accumulate_grad_hook(
                lambda leaf, name=name, log=log: log.append(f"{name} has {number(leaf.grad)}")
            )

        def act(tensors: Any = tensors, entries: Entries = entries) -> dict[str, Any]:
            tensors["root"].backward(inputs=_as(of, [tensors[name] for name in entries]))
            return {name: number(tensors[name].grad) for name in (*GRADIENTS, *OUTSIDE)}

        observed = attempted(act)
        if {*entries} & {"None", *UNGRADED}:
            results.append((entries, observed, REFUSED))
            continue
        named = {_tensor(name) for name in entries} & {*GRADIENTS} - ({"inner"} - {*entries})
        hooks = [
            *reached(map(_tensor, entries)),
            *(f"{name} has {GRADIENTS[name]}" for name in ("a", "b") if name in named),
        ]
        due = {name: GRADIENTS[name] if name in named else None for name in (*GRADIENTS, *OUTSIDE)}
        results.append((entries, [observed, sorted(log)], [due, sorted(hooks)]))
    state(check, f"backward{BY_NAME if of is dict else ''}", results)


WEIGHTS = (1.0, 10.0)
"""The gradients that a backward starts with, at the first root and at the second."""

ROOTS = {"backward": ("a", "b", "another leaf"), "grad": ("a", "b", "inner", "another leaf")}
"""Whose gradients are looked at: of a backward those of leaves, which it accumulates."""


@program("AL-08", PROMISE, since="1.8", source="torch.autograd.backward, 'the sum of gradients of given tensors'")
def lists_of_roots(check: Check) -> None:
    """``torch.autograd.backward`` and ``torch.autograd.grad`` of several tensors compute the sum of their gradients, as
    often as each is listed, and call each hook on the way once; what requires no grad is refused."""
    _from_roots(check)


@program("AL-09", PROMISE, since="2.7", source="torch.autograd.backward, 'Sequence[GradientEdge]'")
def roots_that_are_edges(check: Check) -> None:
    """So they do with gradient edges, alone, repeated, or beside tensors."""
    _from_roots(check, EDGES)


def _from_roots(check: Check, among: Entries = ()) -> None:
    """States of each list what comes of differentiating it, and which hooks are called; with ``among`` of those lists
    in which one of it is."""
    for way, names in ROOTS.items():
        results: list[Result] = []
        for entries in lists((*SLOPES, *UNGRADED, "None", *among), among):
            tensors = graph()
            log = noting(tensors)

            def act(way: str = way, entries: Entries = entries, names: Entries = names, of: Any = tensors) -> list[Any]:
                roots, inputs = [of[name] for name in entries], [of[name] for name in names]
                starting = [torch.tensor(weight) for weight, _ in zip(WEIGHTS, roots)]
                if way == "grad":
                    return [number(grad) for grad in torch.autograd.grad(roots, inputs, starting, allow_unused=True)]
                torch.autograd.backward(roots, starting)
                return [number(tensor.grad) for tensor in inputs]

            observed = attempted(act)
            if {*entries} & {*UNGRADED, "None"}:
                results.append((entries, observed, REFUSED))
            else:
                slopes = [SLOPES[_tensor(name)] for name in entries]
                due = [_weighted([slope.get(name) for slope in slopes]) for name in names]
                hooks = sorted({name for slope in slopes for name in slope} & {*GRADIENTS})
                results.append((entries, [observed, sorted(log)], [due, hooks]))
        state(check, way, results)


def _weighted(slopes: list[float | None]) -> float | None:
    """The sum of the derivatives at several roots, or None where there is none."""
    terms = [weight * slope for weight, slope in zip(WEIGHTS, slopes) if slope is not None]
    return sum(terms) if terms else None


EMPTY: tuple[Any, ...] = ((), [])
"""Lists of nothing."""


@program("AL-10", PIN, since="2.0", source=f"{MULTI}; torch.autograd.backward, grad; 'cannot be empty'")
def empty_lists(check: Check) -> None:
    """A multi-grad hook on an empty list is never called, and a backward from no root does nothing. Gradients of
    nothing are refused, and nothing is computed then; those of no root are those of what is not reached."""
    register, grad = torch.autograd.graph.register_multi_grad_hook, torch.autograd.grad
    for mode in ("all", *({"any"} if "mode" in signature(register).parameters else ())):
        for empty in EMPTY:
            tensors, calls, options = graph(), list[Any](), {"mode": mode} if mode == "any" else {}
            name = f'a hook on an empty {type(empty).__name__}, mode "{mode}"'
            handle = check.works(name, lambda empty=empty, calls=calls, of=options: register(empty, calls.append, **of))
            tensors["root"].backward()
            check.order(f"{name}: calls", calls, [])
            check.equal(f"{name}: gradient", number(tensors["a"].grad), GRADIENTS["a"])
            check.works(f"{name}: remove()", handle.remove)
    for empty in EMPTY:
        tensors, kind = graph(), f"an empty {type(empty).__name__}"
        a, root, log = tensors["a"], tensors["root"], noting(tensors)
        acts = {
            "backward of roots": (lambda a, root, empty: torch.autograd.backward(empty), None),
            "backward of roots for a": (lambda a, root, empty: torch.autograd.backward(empty, inputs=[a]), None),
            "backward for inputs": (lambda a, root, empty: root.backward(inputs=empty), REFUSED),
            "grad of inputs": (lambda a, root, empty: grad(root, empty), REFUSED),
            "grad of roots": (lambda a, root, empty: grad(empty, [a]), REFUSED),
            "grad of roots, allow_unused": (lambda a, root, empty: grad(empty, [a], allow_unused=True), (None,)),
        }
        for act, (do, due) in acts.items():
            check.equal(f"{act}, {kind}", attempted(lambda do=do, empty=empty, of=(a, root): do(*of, empty)), due)
        check.order(f"hooks that {kind} calls", log, [])
        check.equal(f"gradient after {kind}", a.grad, None)
        check.works(f"a backward after {kind}", root.backward)
        check.equal(f"its gradient, after {kind}", number(a.grad), GRADIENTS["a"])
