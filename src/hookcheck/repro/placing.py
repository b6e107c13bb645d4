"""A text with what is used once in its place: functions, classes and their fields, what a context does."""

from __future__ import annotations

import ast
import re

from hookcheck.repro.editing import written
from hookcheck.repro.parameters import arguments_of, calls_of, names_of
from hookcheck.repro.scopes import COMPREHENSIONS, FUNCTIONS, Scopes, pairs
from hookcheck.repro.syntax import LIFETIMES, dedented, lines_of, outside_of_functions, without


def placed(text: str) -> str | None:
    """The text with the statements of one function where it is called, if that is in one place alone.

    Not where it is asked what is still there: what a function has in its names is freed when it ends. The last one ends
    with the script.
    """
    scopes = Scopes(text)
    asking = _asking(scopes)
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef)):
        calls, _ = calls_of(scopes, function)
        last = len(calls) == 1 and scopes.parents[calls[0]] is scopes.tree.body[-1]
        if len(calls) == 1 and (last or scopes.scope(calls[0]) not in asking):
            changed = _placed(scopes, function, calls[0])
            if changed is not None:
                return changed
    return None


def _asking(scopes: Scopes) -> set[ast.AST]:
    """The text and the functions in which it is asked which objects are still there, by themselves or by a call."""
    functions = [n for n in ast.walk(scopes.tree) if isinstance(n, ast.FunctionDef)]
    asking: set[ast.AST] = {f for f in functions if LIFETIMES.search(ast.unparse(f))}
    while True:
        names = {f.name for f in functions if f in asking}
        calling = {f for f in functions if any(getattr(n, "id", "") in names for n in ast.walk(f))}
        if calling <= asking:
            return asking | ({scopes.tree} if asking or LIFETIMES.search(scopes.text) else set())
        asking |= calling


def _placed(scopes: Scopes, function: ast.FunctionDef, call: ast.Call) -> str | None:
    """The text with a function's statements in the place of its call."""
    statement = scopes.parents[call]
    target = ""
    manages = [ast.unparse(d) for d in function.decorator_list] == ["contextmanager"]
    if isinstance(statement, ast.withitem) and manages and statement.optional_vars is None:
        statement = scopes.parents[statement]
        if not isinstance(statement, ast.With) or len(statement.items) > 1 or not _yields_once(function):
            return None
    elif function.decorator_list:
        return None
    elif isinstance(statement, (ast.withitem, ast.Tuple)):
        return _ahead(scopes, function, call, statement)
    elif isinstance(statement, ast.Call):
        return _argument(scopes, function, call, statement)
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = written(statement.targets[0])
    elif not isinstance(statement, (ast.Expr, ast.Return)):
        return None
    if any(above is function for above in scopes.above(call)):
        return None
    given = arguments_of(function, call)
    leaving = [n for part in function.body for n in outside_of_functions(part) if isinstance(n, ast.Return)]
    last = function.body[-1]
    yields = any(isinstance(n, ast.Yield) for part in function.body for n in outside_of_functions(part))
    if given is None or len(leaving) > (leaving[:1] == [last]) or (yields and not manages):
        return None
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in ast.walk(function)):
        return None
    if scopes.repeated(call) and any(
        _deferred(scopes, n, function) for n, key in scopes.keys.items() if key[0] is function
    ):
        return None
    returned = last.value if isinstance(last, ast.Return) else None
    if target and returned is None:
        return None
    # names: parameters give way to what they are given, other names must not be taken where they come
    here = scopes.scope(statement)
    taken = names_there(scopes, here, function)
    mine = {name for scope, name in scopes.stores if scope is function}
    renamed: dict[str, ast.expr] = {}
    ahead: list[str] = []
    for name, value in given.items():
        assert value is not None
        simple = isinstance(value, ast.Name) and len(scopes.stores.get(scopes.keys[value], [])) <= 1
        once = len(scopes.stores[function, name]) == 1
        reads = scopes.loads.get((function, name), [])
        early = once and len(reads) <= 1 and not any(_deferred(scopes, read, function, True) for read in reads)
        if once and (simple or isinstance(value, ast.Constant) or (early and _still(value))):
            renamed[name] = value
        elif not (isinstance(value, ast.Name) and value.id == name):
            another = f"{function.name}_{name}".strip("_") if name in taken else name
            renamed[name] = ast.Name(another, ast.Load())
            ahead.append(f"{another} = {written(value)}")
    others = mine - set(given)
    free = {n.id for value in renamed.values() for n in ast.walk(value) if isinstance(n, ast.Name)}
    alike = set[str]()
    if isinstance(returned, ast.Tuple) and isinstance(statement, ast.Assign):  # what has its name where it comes too
        given_to = pairs(statement.targets[0], returned)
        alike = {written(of) for of, value in given_to if written(of) == written(value)} & others - free
    same = ""
    if isinstance(returned, ast.Name) and returned.id in others and target.isidentifier():
        same, renamed[returned.id] = returned.id, ast.Name(target, ast.Load())
    if same and (target in others - {same} or target in free):
        return None
    for name in sorted((others - {same} - alike) & (taken | free)):
        renamed[name] = ast.Name(f"{function.name}_{name}".strip("_"), ast.Load())
    if {value.id for name, value in renamed.items() if isinstance(value, ast.Name) and value.id != name} & set(given):
        return None
    lines = _body_lines(scopes, function, renamed)
    if lines is None:
        return None
    lines = [*ahead, *lines]
    if isinstance(statement, ast.With):
        lines = _around_body(scopes.text, statement, lines)
    elif target:
        lines = lines[:-1] if same else [*lines[:-1], _assigned(statement, lines[-1], alike)] if _one(lines) else []
        if not lines:
            return None
    elif isinstance(last, ast.Return) and isinstance(statement, ast.Expr):
        if not _one(lines):
            return None
        lines = [*lines[:-1], lines[-1][len("return ") :]]
        lines = lines if "(" in lines[-1] else lines[:-1]
    text = scopes.text.split("\n")
    indent = " " * statement.col_offset
    apart = [""] if lines and lines[0].startswith("def ") and not text[statement.lineno - 2].endswith(":") else []
    inner = [*apart, *(f"{indent}{line}" if line else line for line in lines)]
    text[statement.lineno - 1 : statement.end_lineno] = inner or [f"{indent}pass"]
    changed = "\n".join(text)
    again = next(n for n in ast.parse(changed).body if isinstance(n, ast.FunctionDef) and n.name == function.name)
    return without(changed, lines_of(again))


def _ahead(scopes: Scopes, function: ast.FunctionDef, call: ast.Call, part: ast.AST) -> str | None:
    """The text with a call in a statement of its own: the context of a block, or one of several values."""
    statement = scopes.parents[part]
    text = scopes.text
    lines = text.split("\n")
    if isinstance(statement, ast.With) and len(statement.items) == 1 and isinstance(function.body[-1], ast.Return):
        value = function.body[-1].value
        plain = all(isinstance(n, (ast.Import, ast.ImportFrom)) for n in function.body[:-1])
        if value is None or not plain or names_of(function):
            return None
        changed = scopes.put({call: value}).split("\n")
        indent = " " * statement.col_offset
        imports = [f"{indent}{ast.unparse(n)}" for n in function.body[:-1]]
        changed[statement.lineno - 1 : statement.lineno - 1] = imports
        again = next(n for n in ast.parse("\n".join(changed)).body if getattr(n, "name", "") == function.name)
        return without("\n".join(changed), lines_of(again))
    if isinstance(statement, ast.Assign) and part is statement.value and len(statement.targets) == 1:
        given = [*pairs(statement.targets[0], statement.value)]
        names = {written(name) for name, _ in given}
        read = {n.id for _, value in given for n in ast.walk(value) if isinstance(n, ast.Name)}
        if len(given) < 2 or names & read or len(function.body) < 2:
            return None
        indent = " " * statement.col_offset
        lines[statement.lineno - 1 : statement.end_lineno] = [
            f"{indent}{assigned(written(name), written(value))}" for name, value in given
        ]
        return "\n".join(lines)
    return None


def _argument(scopes: Scopes, function: ast.FunctionDef, call: ast.Call, part: ast.Call) -> str | None:
    """The text with a call in a statement of its own that is the first argument of what a statement gives a name."""
    statement, last = scopes.parents[part], function.body[-1]
    returned = last.value if isinstance(last, ast.Return) else None
    if not isinstance(statement, ast.Assign) or part.args[:1] != [call] or not isinstance(returned, ast.Name):
        return None
    free = (function, returned.id) in scopes.stores and returned.id not in names_there(
        scopes, scopes.scope(call), function
    )
    if not free or any(isinstance(n, ast.Call) for n in ast.walk(part.func)) or len(function.body) < 2:
        return None
    lines = scopes.put({call: returned}).split("\n")
    lines.insert(statement.lineno - 1, f"{' ' * statement.col_offset}{returned.id} = {written(call)}")
    return "\n".join(lines)


def names_there(scopes: Scopes, here: ast.AST, function: ast.AST) -> set[str]:
    """The names that mean something in a scope, what a function does aside."""
    inside, within = {*ast.walk(function)}, {*ast.walk(here)}
    read = {key[1] for n, key in scopes.keys.items() if n in within - inside and key[0] in (here, scopes.tree)}
    return read | {name for scope, name in scopes.stores if scope is here}


def _one(lines: list[str]) -> bool:
    """Whether what is returned is on one line, as it is where a body was written anew."""
    return lines[-1].startswith("return ")


def _still(value: ast.expr) -> bool:
    """Whether a value is the same if it is worked out a little later."""
    return not any(
        isinstance(n, (ast.Call, ast.Attribute, ast.Subscript, *COMPREHENSIONS)) for n in ast.walk(value)
    ) or (isinstance(value, ast.Lambda))


def _deferred(scopes: Scopes, node: ast.AST, function: ast.AST, loops: bool = False) -> bool:
    """Whether a part is in a function of the function; or, if they count, in a loop of it."""
    kinds = (*FUNCTIONS, ast.ClassDef, *((*COMPREHENSIONS, ast.For, ast.While) if loops else ()))
    for above in scopes.above(node):
        if above is function:
            return False
        if isinstance(above, kinds):
            return True
    return False


def _body_lines(scopes: Scopes, function: ast.FunctionDef, renamed: dict[str, ast.expr]) -> list[str] | None:
    """The lines of a function's body, at the left edge, with other names; what it returns is on one line."""
    new: dict[ast.expr, ast.expr] = {}
    aliases: dict[str, str] = {}
    renamed = {name: value for name, value in renamed.items() if written(value) != name}
    for (scope, name), nodes in scopes.loads.items():
        if scope is function and name in renamed:
            new.update((node, renamed[name]) for node in nodes)
    for (scope, name), stores in scopes.stores.items():
        if scope is function and name in renamed:
            for node in stores:
                if isinstance(node, ast.Name):
                    new[node] = renamed[name]
                elif isinstance(node, ast.alias) and node.asname and isinstance(renamed[name], ast.Name):
                    aliases[f" as {name}"] = f" as {written(renamed[name])}"
                elif not isinstance(node, ast.arg):
                    return None
    last = function.body[-1]
    text = scopes.put({n: v for n, v in new.items() if written(n) != written(v)})
    again = next(
        n
        for n in ast.parse(text).body
        if isinstance(n, ast.FunctionDef) and n.name == function.name and n.lineno == function.lineno
    )
    lines = text.split("\n")
    first = again.lineno
    while not lines[first - 1].rstrip().endswith(":"):
        first += 1
    ends = again.body[-1]
    inner = lines[first : ends.lineno - 1] if isinstance(last, ast.Return) else lines[first : again.end_lineno]
    result = dedented(inner)
    for before, after in aliases.items():
        result = [re.sub(rf"^(from .*|import .*){before}$", rf"\1{after}", line) for line in result]
    if isinstance(ends, ast.Return):
        result.append(f"return {written(ends.value)}" if ends.value is not None else "return None")
    return result


def _yields_once(function: ast.FunctionDef) -> bool:
    """Whether what manages a context waits in one place, that in no loop, for what is done in it."""
    waits = [n for n in ast.walk(function) if isinstance(n, (ast.Yield, ast.YieldFrom))]
    block: list[ast.stmt] = function.body
    while len(waits) == 1:
        if any(map(_bare_yield, block)):
            return True
        within = [n for n in block if isinstance(n, (ast.With, ast.Try)) and waits[0] in ast.walk(n)]
        if not within:
            return False
        block = within[0].body
    return False


def _bare_yield(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield) and statement.value.value is None


def _around_body(text: str, statement: ast.With, lines: list[str]) -> list[str]:
    """The lines of a context with what is done in it in the place of the ``yield``."""
    first = statement.body[0].lineno
    all_lines = text.split("\n")
    while all_lines[first - 2].strip().startswith("#"):
        first -= 1
    inner = all_lines[first - 1 : statement.end_lineno]
    step = len(inner[0]) - len(inner[0].lstrip())
    result: list[str] = []
    for line in lines:
        if line.strip() == "yield":
            indent = line[: -len("yield")]
            result += [f"{indent}{part[step:]}" if part.strip() else "" for part in inner]
        else:
            result.append(line)
    return result


def _assigned(statement: ast.stmt, returned: str, alike: set[str]) -> str:
    """A statement that gives its names what a function returned, but for those that have it already."""
    assert isinstance(statement, ast.Assign)
    target, value = statement.targets[0], ast.parse(returned[len("return ") :], mode="eval").body
    given = [(of, each) for of, each in pairs(target, value) if written(of) not in alike]
    if alike and given:
        return f"{', '.join(written(of) for of, _ in given)} = {', '.join(written(each) for _, each in given)}"
    return assigned(written(target), written(value))


def assigned(target: str, value: str) -> str:
    """A statement that gives a name a value; several names stand without brackets."""
    tuples = target.startswith("(") and isinstance(ast.parse(value, mode="eval").body, ast.Tuple)
    return f"{target[1:-1]} = {value[1:-1]}" if tuples and value.startswith("(") else f"{target} = {value}"


def defined_ahead(text: str) -> str | None:
    """The text with the function that another one makes, for one call of it, defined where it is called."""
    scopes = Scopes(text)
    for function in (n for n in scopes.tree.body if isinstance(n, ast.FunctionDef) and len(n.body) == 2):
        inner, last = function.body
        calls, _ = calls_of(scopes, function)
        if not isinstance(inner, ast.FunctionDef) or not isinstance(last, ast.Return) or last.value is None:
            continue
        if len(calls) != 1 or function.decorator_list or written(last.value) != inner.name:
            continue
        given = arguments_of(function, calls[0])
        around = [n for n in scopes.above(calls[0]) if isinstance(n, ast.stmt)]
        here = scopes.scope(calls[0])
        if given is None or any(n is function for n in around) or isinstance(here, (ast.Lambda, ast.ClassDef)):
            continue
        if not all(isinstance(v, ast.Name) and len(scopes.stores.get(scopes.keys[v], [])) == 1 for v in given.values()):
            continue
        if inner.name in names_there(scopes, here, function):
            continue
        within = around[: around.index(here)] if here in around else around
        loops = [n for n in within if isinstance(n, (ast.For, ast.While))]
        names = {written(v) for v in given.values() if v is not None}
        stored_in = {
            n.id for loop in loops for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        statement = (loops[-1] if loops else within[0]) if not names & stored_in else None
        lines = _body_lines(scopes, function, {k: v for k, v in given.items() if v is not None})
        if statement is None or lines is None:
            continue
        changed = scopes.put({calls[0]: last.value}).split("\n")
        indent = " " * statement.col_offset
        first = statement.lineno - 1
        changed[first:first] = ["", *(f"{indent}{line}" if line else line for line in lines[:-1]), ""]
        again = next(n for n in ast.parse("\n".join(changed)).body if getattr(n, "name", "") == function.name)
        return without("\n".join(changed), lines_of(again))
    return None


def thunk(text: str) -> str | None:
    """The text with one function of one expression where its name is handed on, if that is in one place."""
    scopes = Scopes(text)
    for function in (n for n in ast.walk(scopes.tree) if isinstance(n, ast.FunctionDef) and len(n.body) == 1):
        (statement,), key = function.body, (scopes.scope(function), function.name)
        loads = scopes.loads.get(key, [])
        if len(loads) != 1 or len(scopes.stores[key]) != 1 or function.decorator_list or scopes.alone(function):
            continue
        plain = isinstance(statement, ast.Expr) and not ast.unparse(function.args)
        value = statement.value if plain or isinstance(statement, ast.Return) else None  # type: ignore[attr-defined]
        value = ast.Constant(None) if isinstance(statement, ast.Pass) else value
        again = scopes.repeated(loads[0]) and not scopes.beside(function, loads[0])
        handed = isinstance(scopes.parents[loads[0]], (ast.Call, ast.keyword)) and not again
        handed = handed and getattr(scopes.parents[loads[0]], "func", None) is not loads[0]
        if value is None or not handed or isinstance(value, (ast.Yield, ast.YieldFrom)) or len(written(value)) > 70:
            continue
        if any(above is function for above in scopes.above(loads[0])):
            continue
        if any(isinstance(n, ast.arg) and n.annotation for n in ast.walk(function.args)):  # what TorchScript reads
            continue
        row = function.lineno
        changed = scopes.put({loads[0]: ast.Lambda(function.args, value)})
        left = next(n for n in ast.walk(ast.parse(changed)) if isinstance(n, ast.FunctionDef) and n.lineno == row)
        return without(changed, lines_of(left))
    return None
