"""The text of a program taken apart: where it states facts, and what its statements read and change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

CHECK = "check"
"""The parameter by which programs state facts."""


COMPARES = frozenset(("equal", "true", "calls", "order"))
"""Facts that are given values, where others are given something to call."""


READS = frozenset(
    "len list tuple dict set sorted bool int float str type isinstance getattr hasattr vars id range all any max min "  # noqa: SIM905
    "sum zip dir count index tolist detach clone keys values items name item equal startswith stride data_ptr "
    "_is_view".split()
)
"""Functions and methods that change nothing."""


LIFETIMES = re.compile(r"\bweakref\.|\bgc\.")
"""What asks which objects are still there."""


LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def aims_of(tree: ast.Module, fact: str) -> frozenset[int]:
    """The lines on which ``fact`` is stated: by that name, else by a pattern that gives it, else by any name."""
    ranked: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_fact(node) and node.args and may_name(node, fact):
            rank = {ast.Constant: 0, ast.JoinedStr: 1}.get(type(node.args[0]), 2)
            ranked[rank].add(node.lineno)
    return frozenset(next(filter(None, ranked.values()), ()))


def may_name(call: ast.Call, fact: str) -> bool:
    """Whether a call that states facts may name ``fact``: as it is written, by a pattern, or by a variable."""
    name = call.args[0]
    if isinstance(name, ast.Constant):
        return bool(name.value == fact)
    if isinstance(name, ast.JoinedStr):
        parts = (re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".*" for p in name.values)
        return re.fullmatch("".join(parts), fact, re.DOTALL) is not None
    return True


def is_fact(call: ast.Call) -> bool:
    """Whether a call states a fact."""
    of = call.func
    return isinstance(of, ast.Attribute) and isinstance(of.value, ast.Name) and of.value.id == CHECK


def states(part: ast.AST, aims: frozenset[int]) -> bool:
    """Whether one of the aims is in a part."""
    return any(isinstance(node, ast.Call) and node.lineno in aims and is_fact(node) for node in ast.walk(part))


def checked(call: ast.Call) -> bool:
    """Whether a call states facts, or hands the check to what does."""
    return is_fact(call) or any(isinstance(a, ast.Name) and a.id == CHECK for a in call.args)


def checking(call: ast.Call) -> str:
    """The function that a call hands the check to."""
    return called(call) if checked(call) else ""


def called(call: ast.Call) -> str:
    """The name of the function that is called; empty where it has none."""
    return call.func.id if isinstance(call.func, ast.Name) else ""


def holders(tree: ast.Module, aims: frozenset[int]) -> frozenset[str]:
    """The functions in which the aims are, or that call one of them."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and checks(node)]
    names: set[str] = set()
    while True:
        more = {
            f.name
            for f in functions
            for node in ast.walk(f)
            if isinstance(node, ast.Call) and ((is_fact(node) and node.lineno in aims) or checking(node) in names)
        }
        if more <= names:
            return frozenset(names)
        names |= more


def checks(statement: ast.stmt) -> bool:
    """Whether a function is given the check, and states facts by it."""
    return (
        isinstance(statement, ast.FunctionDef)
        and any(a.arg == CHECK for a in statement.args.args)
        and any(isinstance(node, ast.Call) and checked(node) for node in ast.walk(statement))
    )


def reads(statement: ast.AST, readers: frozenset[str] = frozenset()) -> bool:
    """Whether a statement, a fact included, calls nothing that could change anything; nor do the ``readers``."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            of = node.func
            name = of.id if isinstance(of, ast.Name) else of.attr if isinstance(of, ast.Attribute) else ""
            if name not in (COMPARES if is_fact(node) else READS | readers):
                return False
        if isinstance(node, ast.Lambda):
            return False
    return True


def stored(statement: ast.AST) -> set[str]:
    """The names that a statement gives a value, arguments of functions and definitions included."""
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names |= {
        n.name for n in ast.walk(statement) if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n is not statement
    }
    of_lambdas = {arg for n in ast.walk(statement) if isinstance(n, ast.Lambda) for arg in ast.walk(n.args)}
    return names | {n.arg for n in ast.walk(statement) if isinstance(n, ast.arg) and n not in of_lambdas}


def defined(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement that is no definition."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return []
    handlers = [handler.body for handler in getattr(statement, "handlers", [])]
    return [b for b in (*(getattr(statement, n, []) for n in ("body", "orelse", "finalbody")), *handlers) if b]


def free_names(node: ast.AST) -> set[str]:
    """The names in a part, without the parameters of lambdas where these are called so."""
    names = {node.id} if isinstance(node, ast.Name) else set[str]()
    parts = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.Lambda):
        names |= free_names(node.body) - {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
        parts = [node.args]
    return names.union(*map(free_names, parts))


def outside_of_functions(node: ast.AST) -> Iterator[ast.AST]:
    """A part and the parts in it, without those of functions."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
        for child in ast.iter_child_nodes(node):
            yield from outside_of_functions(child)


def lines_of(statement: ast.stmt) -> set[int]:
    """The lines of a statement, decorators included."""
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
    return set(range(first, (statement.end_lineno or first) + 1))


def without(text: str, gone: set[int]) -> str:
    """The text without these lines, and without comments above them and blank lines that they leave doubled."""
    lines = text.split("\n")
    for number in sorted(gone):
        above = number - 1
        while above >= 1 and above not in gone and lines[above - 1].strip().startswith("#"):
            gone = gone | {above}
            above -= 1
    left = [line for number, line in enumerate(lines, 1) if number not in gone]
    result = re.sub(r"\n{4,}", "\n\n\n", "\n".join(left))
    return re.sub(r"(?m)^((?: +).*)\n\n\n+(?= )", r"\1\n\n", result).strip("\n")


def dedented(lines: Iterable[str]) -> list[str]:
    """The lines one level further out."""
    return [line[4:] if line.startswith("    ") else line for line in lines]


def comments_above(lines: Sequence[str], first: int) -> int:
    """The line at which the comments begin that stand right above a line; that line where there are none."""
    while lines[first - 2].strip().startswith("#"):
        first -= 1
    return first
