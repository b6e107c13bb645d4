"""What a control may do without, or do otherwise: a hook, a context, a keyword, a statement; another kind or host."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from hookcheck.hooks.kinds import KINDS
from hookcheck.repro.editing import written
from hookcheck.repro.syntax import LEAVES, is_fact

REGISTERS = re.compile(r"\b_?register_\w+|\bretain_grad\(")
"""What registers a hook, or has one registered."""

ASIDE = re.compile(r"\bcatch_warnings\b|\bsuppress\b|\bno_grad\b")
"""Contexts that a fact is not about."""

UTILITIES = re.compile(r"\bnn\.utils\.|\bprune\.")
"""What changes a module and gives it back."""

RUNS = frozenset(
    "append extend insert add update clear set wait acquire release start join print simplefilter manual_seed "  # noqa: SIM905
    "backward step init_process_group destroy_process_group set_result set_exception".split()
)
"""Methods that note what happens, or make it happen: without them nothing does, or what waits hangs."""

MODULES = frozenset(("torch", "nn"))
"""Names of what is no host of a hook."""

Registration = Union[ast.Expr, ast.Assign]
Part = Union[ast.Expr, ast.Assign, ast.If]


@dataclass(frozen=True)
class Removal:
    """What a control does without: statements, a context; or expressions that have another one in their place. And how
    that is said; and whether all may be run by what it does without, so that nothing comes of it is no control."""

    name: str
    statements: tuple[Part, ...] = ()
    context: ast.With | None = None
    instead: tuple[tuple[ast.expr, str], ...] = ()
    runs: bool = False

    @property
    def lines(self) -> set[int]:
        """The lines on which they begin."""
        parts = [*self.statements, *filter(None, [self.context]), *(node for node, _ in self.instead)]
        return {part.lineno for part in parts}


def plain_removals(tree: ast.Module) -> Iterator[Removal]:
    """Hooks that are not registered, utilities that are not called, contexts that are not entered."""
    nodes = [*ast.walk(tree)]
    registering = [n for n in nodes if isinstance(n, (ast.Expr, ast.Assign)) and _registers(n)]
    if registering:
        besides = [n for n in nodes if isinstance(n, ast.Call) and _is_registration(n)][len(registering) :]
        name = f"without {'one of the hooks' if besides else 'a hook'}"
        yield Removal("without hooks" if registering[1:] else name, tuple(registering))
    for one in registering if registering[1:] else []:
        yield Removal(f"without {_called(one)}", (one,))
    for assigned in (n for n in nodes if isinstance(n, ast.Assign)):
        instead = _unchanged(assigned) or _handed_on(nodes, assigned)
        if instead:
            yield Removal(f"without {_called(assigned)}", instead=((assigned.value, instead),))
    for context in (n for n in nodes if isinstance(n, ast.With) and len(n.items) == 1 and _enters(n.items[0])):
        yield Removal(f"outside of {_called(context)}", context=context)


def further_removals(tree: ast.Module) -> Iterator[Removal]:
    """What else may be left out or done otherwise, what is nearest to the fact first."""
    nodes = [*ast.walk(tree)]
    for ways in (
        _other_hosts, _other_calls, _originals, _blocks, _keywords, _entries, _statements, _inner_registrations,
        _other_kinds, _uncompiled,
    ):  # fmt: skip
        yield from ways(nodes)


def _registers(statement: Registration) -> bool:
    """Whether a statement registers a hook, and gives nothing but its handle a name."""
    named = isinstance(statement, ast.Expr) or isinstance(statement.targets[0], ast.Name)
    call = statement.value
    return named and isinstance(call, ast.Call) and _is_registration(call)


def _is_registration(call: ast.Call) -> bool:
    return not is_fact(call) and bool(REGISTERS.search(f"{_function(call)}("))


def _function(call: ast.Call) -> str:
    return ast.unparse(call.func)


def _enters(item: ast.withitem) -> bool:
    of = item.context_expr
    return item.optional_vars is None and isinstance(of, ast.Call) and not ASIDE.search(ast.unparse(of))


def _called(part: ast.AST) -> str:
    """The last name of the first function that is called in a part."""
    call = next(n for n in ast.walk(part) if isinstance(n, ast.Call))
    return str(re.findall(r"\w+", _function(call))[-1])


def _unchanged(assigned: ast.Assign) -> str:
    """The module that one of torch's utilities changes; empty where none does."""
    of = assigned.value
    if not isinstance(of, ast.Call) or not of.args or not UTILITIES.search(_function(of)):
        return ""
    return written(of.args[0])


DIRECTLY = "lambda of, *args: of(*args)"
"""A function that does no more than call one with what it is given."""


def _handed_on(nodes: list[ast.AST], assigned: ast.Assign) -> str:
    """`DIRECTLY`, where that is what a name is used for."""
    target = assigned.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(assigned.value, ast.Call):
        return ""
    calls, others = _uses(nodes, target)
    return DIRECTLY if calls and not others and all(map(_hands_on, calls)) else ""


def _uses(nodes: list[ast.AST], target: ast.Name) -> tuple[list[ast.Call], list[ast.Name]]:
    """The calls of what has a name, and the other uses of that."""
    uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == target.id and n is not target]
    calls = [n for n in nodes if isinstance(n, ast.Call) and n.func in uses]
    functions = {call.func for call in calls}
    return calls, [n for n in uses if n not in functions]


def _hands_on(call: ast.Call) -> bool:
    return len(call.args) > 1 and not call.keywords and isinstance(call.args[0], (ast.Lambda, ast.Name))


def _other_hosts(nodes: list[ast.AST]) -> Iterator[Removal]:
    """The hook is registered on what its host is a part of."""
    for call in (n for n in nodes if isinstance(n, ast.Call) and _is_registration(n)):
        host = call.func.value if isinstance(call.func, ast.Attribute) else None
        whole = host.value if isinstance(host, (ast.Subscript, ast.Attribute)) else None
        if host is not None and isinstance(whole, ast.Name) and whole.id not in MODULES:
            yield Removal(f"on all of {whole.id}", instead=((host, whole.id),))


def _other_kinds(nodes: list[ast.AST]) -> Iterator[Removal]:
    """The hook is registered by another function of the same owner, wherever that is named."""
    by_name = {kind.register: kind for kind in KINDS.values() if kind.observes}
    words = {word: uses for word in by_name if (uses := _named(nodes, word))}
    for word, uses in words.items():
        owner = by_name[word].owner
        for other in (name for name, kind in by_name.items() if kind.owner == owner and name not in words):
            yield Removal(f"with {other}", instead=tuple((n, _renamed(n, other)) for n in uses))


def _uncompiled(nodes: list[ast.AST]) -> Iterator[Removal]:
    """What is compiled is used as it is."""
    for call in (n for n in nodes if isinstance(n, ast.Call) and _function(n) == "torch.compile" and n.args):
        yield Removal("without torch.compile", instead=((call, written(call.args[0])),))


def _named(nodes: list[ast.AST], word: str) -> list[ast.Constant | ast.Attribute]:
    """The strings and the attributes that are this word."""
    strings = [n for n in nodes if isinstance(n, ast.Constant) and n.value == word]
    return [*strings, *(n for n in nodes if isinstance(n, ast.Attribute) and n.attr == word)]


def _renamed(node: ast.Constant | ast.Attribute, name: str) -> str:
    return f'"{name}"' if isinstance(node, ast.Constant) else f"{written(node.value)}.{name}"


def _other_calls(nodes: list[ast.AST]) -> Iterator[Removal]:
    """A module is called where its forward is; what is handed on or wrapped is called itself; a backward goes from
    another tensor that is equal."""
    for call in (n for n in nodes if isinstance(n, ast.Call) and not is_fact(n)):
        of = call.func
        if isinstance(of, ast.Attribute) and of.attr == "forward" and isinstance(of.value, ast.Name):
            yield Removal("without forward", instead=((of, of.value.id),))
        if isinstance(of, ast.Call) and _hands_on(call):
            yield Removal(f"without {_called(of)}", instead=((of, DIRECTLY),))
    for assigned in (n for n in nodes if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)):
        target, of = assigned.targets[0], assigned.value
        given = of.args[0] if isinstance(of, ast.Call) and of.args else None
        if isinstance(target, ast.Name) and isinstance(given, ast.Name) and _uses(nodes, target)[0]:
            yield Removal(f"without {_called(of)}", instead=((of, given.id),))
    for statement in (n for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)):
        alone = statement.value
        assert isinstance(alone, ast.Call)
        if written(alone.func) == "torch.autograd.grad" and len(alone.args) == 2 and not alone.keywords:
            root, inputs = map(written, alone.args)
            yield Removal("by backward", instead=((alone, f"torch.autograd.backward({root}, inputs={inputs})"),))
    for method in (n for n in nodes if isinstance(n, ast.Attribute) and n.attr == "backward"):
        if isinstance(method.value, ast.Name) and method.value.id not in MODULES:
            root = f"1 * {method.value.id}"
            yield Removal(f"backward of {root}", instead=((method.value, root),))


def _originals(nodes: list[ast.AST]) -> Iterator[Removal]:
    """What another object was made of is used itself: the optimizer that a subclass has the groups of."""
    named = {n.targets[0].id for n in nodes if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)}
    for assigned in (n for n in nodes if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)):
        of = assigned.value
        assert isinstance(of, ast.Call)
        given = of.args[0] if of.args else None
        given = given.value if isinstance(given, ast.Attribute) else given
        if isinstance(assigned.targets[0], ast.Name) and isinstance(given, ast.Name) and given.id in named:
            yield Removal(f"without {_called(assigned)}", instead=((of, given.id),))


def _blocks(nodes: list[ast.AST]) -> Iterator[Removal]:
    """Nothing is done of what is done under a condition."""
    for block in (n for n in nodes if isinstance(n, ast.If) and not n.orelse):
        acts = [part for part in block.body if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)]
        if acts and not any(isinstance(n, ast.Call) and is_fact(n) for n in ast.walk(block)):
            yield Removal(f"without {_called(acts[0])}", (block,))


def _keywords(nodes: list[ast.AST]) -> Iterator[Removal]:
    """A call without one of its keywords."""
    for call in (n for n in nodes if isinstance(n, ast.Call) and not is_fact(n)):
        for keyword in call.keywords:
            if keyword.arg and isinstance(keyword.value, ast.Constant):
                rest = ast.Call(call.func, call.args, [k for k in call.keywords if k is not keyword])
                yield Removal(f"without {keyword.arg}", instead=((call, written(rest)),))


def _getting(call: ast.Call) -> str:
    """What is asked for by ``getattr``: its name, or how that is called."""
    name = call.args[1]
    return str(name.value) if isinstance(name, ast.Constant) else ast.unparse(name)


def _inner_registrations(nodes: list[ast.AST]) -> Iterator[Removal]:
    """A hook is not registered whose handle is a part of something, or a context."""
    entered = {item.context_expr for n in nodes if isinstance(n, ast.With) for item in n.items}
    whole = [n.value for n in nodes if isinstance(n, (ast.Expr, ast.Assign))]
    whole += [n.body for n in nodes if isinstance(n, ast.Lambda)]  # nothing would be left of what it does
    for call in (n for n in nodes if isinstance(n, ast.Call) and _is_registration(n) and n not in whole):
        yield Removal("without a hook", instead=((call, "nullcontext()" if call in entered else "None"),))


def _statements(nodes: list[ast.AST]) -> Iterator[Removal]:
    """One statement less that registers, or that acts on something."""
    for statement in (n for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)):
        call = statement.value
        assert isinstance(call, ast.Call)
        if is_fact(call) or any(isinstance(n, LEAVES) for n in ast.walk(statement)):
            continue
        registers = REGISTERS.search(ast.unparse(statement))
        if registers:
            yield Removal(f"without {registers[0].strip('_(')}", (statement,))
        elif isinstance(call.func, ast.Attribute) and call.func.attr not in RUNS:
            yield Removal(f"without {call.func.attr}", (statement,))
        elif isinstance(call.func, ast.Name) and call.args:
            yield Removal(f"without {call.func.id}", (statement,), runs=True)
        elif isinstance(call.func, ast.Call) and ast.unparse(call.func.func) == "getattr" and call.args:
            yield Removal(f"without {_getting(call.func)}", (statement,), runs=True)


def _entries(nodes: list[ast.AST]) -> Iterator[Removal]:
    """A list of tensors or the like with one entry less."""
    for entries in (n for n in nodes if isinstance(n, ast.List) and isinstance(n.ctx, ast.Load) and n.elts[1:]):
        numbers = any(isinstance(entry, (ast.Constant, ast.UnaryOp)) for entry in entries.elts)
        for entry in entries.elts if not numbers else ():
            rest = ast.List([other for other in entries.elts if other is not entry], entries.ctx)
            yield Removal(f"without {ast.unparse(entry)}", instead=((entries, written(rest)),))
