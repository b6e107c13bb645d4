"""A text without what is never run: branches that are not taken, names, functions and methods that nobody asks for."""

from __future__ import annotations

import ast
import re

from hookcheck.repro.editing import written
from hookcheck.repro.names import literal, without_name
from hookcheck.repro.scopes import Scopes, pairs
from hookcheck.repro.syntax import LIFETIMES, dedented, lines_of, without


def cut(text: str) -> str | None:
    """The text without one branch that is never taken, or with what follows nothing but the branch that is."""
    scopes = Scopes(text)
    for node in ast.walk(scopes.tree):
        if isinstance(node, ast.If) and (literal(node.test) or _first_group(scopes, node)):
            chosen = node.body if literal(node.test) and ast.literal_eval(node.test) else node.orelse
            if not chosen and isinstance(scopes.parents[node], ast.FunctionDef) and scopes.alone(node):
                return _instead(text, node, "return None")
            return _in_place(text, node, chosen)
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list):
                ends = next(
                    (i for i, part in enumerate(block) if isinstance(part, (ast.Return, ast.Raise))), len(block)
                )
                if block[ends + 1 :]:
                    return without(text, set().union(*map(lines_of, block[ends + 1 :])))
    return None


def _instead(text: str, node: ast.If, statement: str) -> str:
    """The text with a statement in the place of all branches."""
    lines = text.split("\n")
    lines[node.lineno - 1 : node.end_lineno] = [f"{' ' * node.col_offset}{statement}"]
    return "\n".join(lines)


def _first_group(scopes: Scopes, node: ast.If) -> bool:
    """Whether a condition asks for a group of processes where a script has made none yet."""
    asks = isinstance(node.test, ast.Call) and ast.unparse(node.test.func).endswith(".is_initialized")
    calls = (n for n in ast.walk(scopes.tree) if isinstance(n, ast.Call) and n.lineno < node.lineno)
    return asks and not any(ast.unparse(call.func).endswith("init_process_group") for call in calls)


def _in_place(text: str, node: ast.If, chosen: list[ast.stmt]) -> str:
    """The text with statements of a branch in the place of both; ``elif`` is an ``if`` of its own before."""
    lines = text.split("\n")
    of_another, another = (
        bool(part) and lines[part[0].lineno - 1].lstrip().startswith("elif") for part in ([node], chosen)
    )
    first, last = node.lineno - 1, node.end_lineno or node.lineno
    if of_another:
        inner = lines[chosen[0].lineno - 1 : chosen[-1].end_lineno] if chosen else []
        head = [f"{' ' * node.col_offset}else:"] if inner and not another else []
        return "\n".join([*lines[:first], *head, *inner, *lines[last:]])
    if not chosen:
        return without(text, set(range(first + 1, last + 1)))
    begin = min(chosen[0].lineno, *(d.lineno for d in getattr(chosen[0], "decorator_list", [])), 10**9)
    step = chosen[0].col_offset - node.col_offset
    inner = lines[begin - 1 : chosen[-1].end_lineno]
    if another:
        inner[0] = inner[0].replace("elif", "if", 1)
    return "\n".join([*lines[:first], *(dedented(inner) if step else inner), *lines[last:]])


def dropped(text: str) -> str | None:
    """The text without one name that is given a value that nothing reads, or one function, class or method."""
    scopes = Scopes(text)
    last = scopes.tree.body[-1]
    for key, stores in scopes.stores.items():
        unread = key not in scopes.loads and key[1] not in scopes.shared
        acts = _acts(scopes, stores[-1]) if unread else None
        if acts is not None:
            return acts
        if not unread or len(stores) != 1:
            continue
        (node,) = stores
        scope, name = key
        goes = not isinstance(scope, ast.ClassDef) or _no_method(scopes, scope, name)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node is not last and goes:
            return without(text, lines_of(node)) if not scopes.alone(node) else None
        statement = scopes.parents.get(node)
        if isinstance(statement, ast.Tuple) and isinstance(node, ast.Name):
            of = scopes.parents[statement]
            if isinstance(of, ast.Assign) and any(n is node and _idle(v) for n, v in pairs(statement, of.value)):
                return without_name(text, of, name)
        given = isinstance(statement, ast.Assign) and not isinstance(scope, ast.ClassDef)
        if given and isinstance(node, ast.Name) and _idle(statement.value, _making(scopes)):  # type: ignore[union-attr]
            whole = scopes.all_of(statement)  # type: ignore[arg-type]
            return without(text, lines_of(whole)) if not scopes.alone(whole) else None
        if isinstance(statement, ast.Assign) and _names_a_result(statement, text):
            lines = text.split("\n")
            first = statement.lineno - 1
            lines[first] = lines[first].replace(f"{name} = ", "", 1)
            return "\n".join(lines)
    return None


def _acts(scopes: Scopes, name: ast.AST) -> str | None:
    """The text with the calls that a statement lists, in the place of a list that nobody reads; None if it is other."""
    statement = scopes.parents.get(name)
    listed = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
    if not isinstance(listed, (ast.Tuple, ast.List)) or not listed.elts:
        return None
    if not all(isinstance(each, ast.Call) for each in listed.elts) or len(getattr(statement, "targets", "1")) != 1:
        return None
    assert isinstance(statement, (ast.Assign, ast.AugAssign))
    lines = scopes.text.split("\n")
    acts = [f"{' ' * statement.col_offset}{written(each)}" for each in listed.elts]
    lines[statement.lineno - 1 : statement.end_lineno] = acts
    return "\n".join(lines)


def _names_a_result(statement: ast.Assign, text: str) -> bool:
    """Whether a statement gives what a call returns a name, and does nothing else with it: the handle of a hook, or
    anything where nobody asks which objects are still there."""
    call, (target, *others) = statement.value, statement.targets
    if not isinstance(target, ast.Name) or others or not isinstance(call, ast.Call):
        return False
    return re.search(r"\bregister_\w+$", ast.unparse(call.func)) is not None or not LIFETIMES.search(text)


CALLED = frozenset(("forward", "backward", "setup_context", "get_extra_state", "set_extra_state", "reset_parameters"))
"""Methods that torch calls."""


def _no_method(scopes: Scopes, of: ast.ClassDef, name: str) -> bool:
    """Whether a method is one that nobody calls."""
    known = all(ast.unparse(base) in ("nn.Module", "torch.nn.Module") for base in of.bases)
    read = any(isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(scopes.tree))
    named = any(isinstance(n, ast.Constant) and n.value == name for n in ast.walk(scopes.tree))
    return known and not read and not named and not name.startswith("_") and name not in CALLED


LOOKING = frozenset((
    "getattr", "import_module", "staticmethod", "type", "partial", "vars", "forward_ad.unpack_dual", "namedtuple",
    "make_dataclass",
))  # fmt: skip
"""What is called to look something up, or to make a function or a class."""


def _idle(value: ast.expr, making: frozenset[str] = LOOKING) -> bool:
    """Whether it does nothing to work an expression out, but to call what makes something."""
    acts = (n for n in ast.walk(value) if isinstance(n, (ast.Call, ast.Yield, ast.Subscript, ast.BinOp)))
    acts = (n for n in acts if not (isinstance(n, ast.Subscript) and _attributes(n.value)))
    return isinstance(value, ast.Lambda) or all(isinstance(n, ast.Call) and ast.unparse(n.func) in making for n in acts)


def _attributes(value: ast.expr) -> bool:
    """Whether it gives the attributes of something."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "vars"


def _making(scopes: Scopes) -> frozenset[str]:
    """What only looks something up, and the functions at the top that only define and give something."""
    making = LOOKING
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef) and not n.decorator_list):
        values = (part.value for part in function.body if isinstance(part, (ast.Assign, ast.Return)))
        plain = all(isinstance(part, (ast.FunctionDef, ast.Assign, ast.Return)) for part in function.body)
        if plain and all(value is not None and _idle(value, making) for value in values):
            making |= {function.name}
    return making
