"""What a program does in turns, done once; and its statements without a function around them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator

from hookcheck.repro.editing import quoted, replaced, written
from hookcheck.repro.folding import Foreknown
from hookcheck.repro.heading import LACKS
from hookcheck.repro.scopes import Scopes, pairs
from hookcheck.repro.slicing import Function
from hookcheck.repro.syntax import (
    aims_of,
    called,
    checking,
    checks,
    comments_above,
    dedented,
    defined,
    holders,
    lines_of,
    outside_of_functions,
    states,
    without,
)

HELPERS = {"raised": "raises", "failure": "works", "warns": "warns", "silent": "silent"}
"""What a script has at its top besides where its program states something by that."""

TURNS = 20
"""So often something is left out of the turns of loops and calls."""


def one_turn(text: str, fact: str, shows: Callable[[str], bool], said: Callable[[str], str] = lambda text: "") -> str:
    """What is done in turns is done once, if that ``shows`` it: a loop over what is listed, calls that state facts.

    What a loop is over is read from the text, or from what a run of it ``said``.
    """
    over = _over(text, fact)
    text = _last_turns(text, fact, shows, said)
    for _ in range(TURNS):
        shorter = next(filter(shows, _shorter(text, fact)), None)
        if shorter is None:
            break
        text = shorter
    while True:
        tree = ast.parse(text)
        loop = next((node for node in _loops(tree, fact) if _once(node, tree)), None)
        if loop is None:
            break
        text = _unrolled(text, loop, _listed(loop, tree)[0])
    for name in over:
        shorter = _without_constant(text, name)
        text = shorter if shorter and shows(shorter) else text
    return text


def _last_turns(text: str, fact: str, shows: Callable[[str], bool], said: Callable[[str], str]) -> str:
    """The text with the last turn alone of each loop that states the fact and is over what only a run can tell."""
    skipped = 0
    while True:
        tree = ast.parse(text)
        loops = [loop for loop in _stating(tree, fact) if not _listed(loop, tree)]
        if not loops[skipped:]:
            return text
        loop = loops[skipped]
        turns = _turns_run(text, loop, said)
        shorter = replaced(text, loop.iter, f"({turns[-1]},)") if turns else ""
        if shorter and shows(shorter):
            text = shorter
        else:
            skipped += 1


def _turns_run(text: str, loop: ast.For, said: Callable[[str], str]) -> list[str]:
    """What a loop is over up to the turn that ends the script, by what a run of it says; only what can be written."""
    of = _items(loop)
    key = loop.target.elts[0] if of and isinstance(loop.target, ast.Tuple) else loop.target
    lines = text.split("\n")
    indent = " " * loop.body[0].col_offset
    lines.insert(comments_above(lines, loop.body[0].lineno) - 1, f'{indent}print("{TURN}", repr({written(key)}))')
    keys = [line[len(TURN) + 1 :] for line in said("\n".join(lines)).split("\n") if line.startswith(TURN)]
    if not all(map(_names, keys)):
        return []
    return [f"({key}, {of}[{key}])" if of else key for key in map(quoted, keys)]


def _items(loop: ast.For) -> str:
    """The dict whose items a loop is over, however they are listed; empty where it is over something else."""
    over = loop.iter
    if isinstance(over, ast.Tuple) and len(over.elts) == 1 and isinstance(over.elts[0], ast.Starred):
        over = over.elts[0].value
    items = isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items"
    pair = isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2
    return written(over.func.value) if items and pair else ""  # type: ignore[attr-defined]


TURN = "the turn is"
"""What a script says in each turn of a loop, where that is asked for."""


def _names(text: str) -> bool:
    """Whether a turn can be written, and names something: what holds numbers may be what torch gave, which a script
    that has it written out would not ask for."""
    try:
        tree = ast.parse(text, mode="eval")
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    held = (ast.List, ast.Dict, ast.Set)
    floats = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, (float, complex)))
    return not any(isinstance(n, held) for n in ast.walk(tree)) and not any(floats)


def _over(text: str, fact: str) -> list[str]:
    """The names of what the loops in which the fact is stated are over."""
    loops = _loops(ast.parse(text), fact)
    return [node.id for loop in loops for node in ast.walk(loop.iter) if isinstance(node, ast.Name)]


def _without_constant(text: str, name: str) -> str:
    """The text without the list of a loop, in a function, that nothing reads; empty where something does."""
    nodes = [*ast.walk(ast.parse(text))]
    given = [n for n in nodes if isinstance(n, ast.Assign) and n.col_offset and name in defined(n)]
    read = any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in nodes)
    return "" if read or len(given) != 1 or len(defined(given[0])) > 1 else without(text, lines_of(given[0]))


def _shorter(text: str, fact: str) -> Iterator[str]:
    """The text with one turn of a loop alone, or without a call of a function in which the fact is stated."""
    tree = ast.parse(text)
    for loop in _loops(tree, fact):
        listed = _listed(loop, tree)
        if len(listed) > 1:
            yield from (replaced(text, loop.iter, f"({element},)") for element in listed)
    known = Foreknown(Scopes(text))
    for loop in (node for node in ast.walk(known.scopes.tree) if isinstance(node, ast.For)):
        if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name):
            listed = known.turns(loop)  # what is drawn up for the loop, whose turns are alike
            if len(listed) > 1:
                yield from (replaced(text, loop.iter, f"({element},)") for element in listed)
            for given in loop.iter.args if not listed else ():
                names = known.listed(given)
                if len(names) > 1:
                    yield from (replaced(text, given, f"({name},)") for name in names)
            function = known.scopes.function(loop.iter)
            if isinstance(function, ast.FunctionDef) and not (loop.iter.args or loop.iter.keywords):
                for default in function.args.defaults[: len(function.args.args) == 1]:
                    names = known.listed(default)
                    called_so = f"{function.name}(({{}},))"
                    yield from (replaced(text, loop.iter, called_so.format(name)) for name in names if names[1:])
    yield from _of_variants(known.scopes)
    aims = aims_of(tree, fact)
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef) and checks(node)):
        of = Function(function, text, aims, holders(tree, aims))
        calls = [n for n in ast.walk(function) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
        again = [n for n in calls if called(n.value) in of.stating | of.holding]  # type: ignore[arg-type]
        if len(again) > 1:
            yield from (without(text, lines_of(call)) for call in again)


def two_turns(
    text: str, fact: str, shows: Callable[[str], bool], said: Callable[[str], str] = lambda text: ""
) -> Iterator[str]:
    """The text with two turns of a loop that states the fact, of which the second alone ``shows`` it."""
    tree = ast.parse(text)
    for loop in (loop for loop in _stating(tree, fact) if not _listed(loop, tree)):
        turns_run = _turns_run(text, loop, said)
        for turn in reversed(turns_run[:-1][-NEAREST:]):
            yield replaced(text, loop.iter, f"({turn}, {turns_run[-1]})")
    for loop in _loops(tree, fact):
        listed = [turn for turn in _listed(loop, tree) if not turn.startswith("*")]
        shown = (i for i, e in enumerate(listed) if shows(replaced(text, loop.iter, f"({e},)")))
        last = next(shown, None) if len(listed) > 1 else None
        if last is not None:
            nearest = sorted(range(len(listed)), key=lambda place: (abs(place - last), place))
            yield from (replaced(text, loop.iter, f"({listed[i]}, {listed[last]})") for i in nearest[1 : NEAREST + 1])


NEAREST = 6
"""So many other turns are tried beside the one that shows it."""


def fewer_turns(text: str) -> Iterator[str]:
    """The text with one turn alone of a loop over what is listed, the last one first, whatever is done there."""
    tree = ast.parse(text)
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        listed = _listed(loop, tree)
        if len(listed) > 1:
            yield from (replaced(text, loop.iter, f"({element},)") for element in reversed(listed))


def _of_variants(scopes: Scopes) -> Iterator[str]:
    """The text with one entry alone of a dict that a function gives, whichever way it does, to one loop."""
    for loop in (n for n in ast.walk(scopes.tree) if isinstance(n, ast.For)):
        of = loop.iter.func if isinstance(loop.iter, ast.Call) else None
        call = of.value if isinstance(of, ast.Attribute) and of.attr == "items" else None
        function = scopes.function(call) if isinstance(call, ast.Call) else None
        if not isinstance(function, ast.FunctionDef) or len(scopes.loads[scopes.tree, function.name]) != 1:
            continue
        returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
        dicts = [value for value in returns if isinstance(value, ast.Dict)]
        if not returns or len(dicts) != len(returns):
            continue
        entries = [{written(k): v for k, v in zip(each.keys, each.values) if k is not None} for each in dicts]
        for key in entries[-1]:
            if all(key in each for each in entries):
                one = ast.parse(f"(({key}, {function.name}()),)", mode="eval").body
                new: dict[ast.expr, ast.expr] = {each: by_key[key] for each, by_key in zip(dicts, entries)}
                text = scopes.put({**new, loop.iter: one})
                singular = function.name[:-1]
                free = function.name.endswith("s") and not re.search(rf"\b{singular}\b", text)
                yield re.sub(rf"\b{function.name}\b(?=\()", singular, text) if free else text


def flat(text: str, name: str) -> str | None:
    """The text with the statements of its last function, ``name``, at its top; None where they need a function."""
    body = ast.parse(text).body
    function = body[-1]
    if not isinstance(function, ast.FunctionDef) or function.name != name or function.decorator_list:
        return None
    needs = (ast.Return, ast.Yield, ast.Nonlocal, ast.YieldFrom)
    nodes = [node for part in function.body for node in outside_of_functions(part)]
    locals_ = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    locals_ |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    inner = [node for part in function.body for node in ast.walk(part)]
    taken = set[str]().union(*map(defined, body[:-1]), ("torch", "nn", "plain"))
    taken |= {helper for helper, method in HELPERS.items() if f"check.{method}(" in text}
    renamed = _renamed(text, function, locals_ & taken)
    if renamed:
        return flat(renamed, name)
    if any(isinstance(n, needs) for n in nodes) or any(isinstance(n, ast.Nonlocal) for n in inner) or locals_ & taken:
        return None
    lines = text.split("\n")
    first = min(function.body[0].lineno, *(d.lineno for d in getattr(function.body[0], "decorator_list", [])), 10**9)
    comments = comments_above(lines, first)
    return "\n".join([*lines[: function.lineno - 1], *dedented(lines[comments - 1 : function.end_lineno])])


def _renamed(text: str, function: ast.FunctionDef, names: set[str]) -> str | None:
    """The text with other names for what a function calls as a script does something else; None if it has none."""
    scopes = Scopes(text)
    (of,) = (n for n in scopes.tree.body if getattr(n, "lineno", 0) == function.lineno)
    nodes = [(n, name) for name in names for n in (*scopes.stores[of, name], *scopes.loads.get((of, name), ()))]
    new: dict[ast.expr, ast.expr] = {n: ast.Name(f"{name}_") for n, name in nodes if isinstance(n, ast.Name)}
    return scopes.put(new) if new and len(new) == len(nodes) else None


def _loops(tree: ast.Module, fact: str) -> list[ast.For]:
    """The loops over what is listed in which the fact is stated."""
    return [loop for loop in _stating(tree, fact) if _listed(loop, tree)]


def _stating(tree: ast.Module, fact: str) -> list[ast.For]:
    """The loops in which the fact is stated, there or in a function that is called."""
    aims = aims_of(tree, fact)
    holding = holders(tree, aims)
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.For))
    return [loop for loop in loops if states(loop, aims) or _calls(loop, holding)]


def _calls(loop: ast.For, holding: frozenset[str]) -> bool:
    """Whether a loop calls a function in which the fact is stated."""
    return any(isinstance(node, ast.Call) and checking(node) in holding for node in ast.walk(loop))


def _listed(loop: ast.For, tree: ast.Module) -> list[str]:
    """What a loop is over, one a turn, if that is listed in it or in a constant; else nothing. What a dict takes from
    another stays together, with a star."""
    over = loop.iter
    constants = _constants(tree)
    if isinstance(over, ast.Name):
        over = constants.get(over.id, over)
    if isinstance(over, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in over.elts):
        return [written(element) for element in over.elts]
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items":
        of = over.func.value
        pairs = constants.get(of.id) if isinstance(of, ast.Name) else of
        if isinstance(pairs, ast.Dict) and isinstance(of, ast.Name) and all(pairs.keys):  # what is made is made once
            keys = ((k, "" if _is_made(v) else written(v)) for k, v in zip(pairs.keys, pairs.values) if k)
            return [f"({written(k)}, {v or f'{of.id}[{written(k)}]'})" for k, v in keys]
        if isinstance(pairs, ast.Dict):
            items = zip(pairs.keys, pairs.values)
            return [f"({written(k)}, {written(v)})" if k else f"*dict({written(v)}).items()" for k, v in items]
    if isinstance(over, ast.Dict) and all(over.keys):
        return [written(key) for key in over.keys if key]
    return []


def _is_made(value: ast.expr) -> bool:
    """Whether an expression calls something: to work it out once more would make another thing."""
    return any(isinstance(n, ast.Call) for n in outside_of_functions(value))


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """What the names stand for that are given one value in one place, at the top or in a function."""
    given = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    assigned = (n for n in ast.walk(tree) if isinstance(n, ast.Assign))
    return {t.id: n.value for n in assigned for t in n.targets if isinstance(t, ast.Name) and given[t.id] == 1}


def unrolled(text: str) -> str | None:
    """The text with the one turn of a loop in its place; None where all loops have more."""
    tree = ast.parse(text)
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For)):
        if isinstance(loop.iter, (ast.Tuple, ast.List)) and _once(loop, tree) and not _continues(loop):
            return _unrolled(text, loop, _listed(loop, tree)[0])
    return None


def _once(loop: ast.For, tree: ast.Module) -> bool:
    leaves = (node for part in loop.body for node in outside_of_functions(part))
    listed = _listed(loop, tree)
    one = len(listed) == 1 and not listed[0].startswith("*")
    return one and not loop.orelse and not any(isinstance(n, ast.Break) for n in leaves)


def _continues(loop: ast.For) -> list[ast.Continue]:
    """Where a loop goes on with its next turn: not where one in it does."""
    inside = [node for part in loop.body for node in outside_of_functions(part)]
    inner = {n for each in inside if isinstance(each, (ast.For, ast.While)) for n in ast.walk(each)}
    return [n for n in inside if isinstance(n, ast.Continue) and n not in inner]


def _unrolled(text: str, loop: ast.For, element: str) -> str:
    lines = text.split("\n")
    indent = " " * loop.col_offset
    given = list(pairs(loop.target, ast.parse(element, mode="eval").body))
    head = f"{indent}{', '.join(written(name) for name, _ in given)} = {', '.join(written(of) for _, of in given)}"
    assert loop.end_lineno is not None
    first = comments_above(lines, loop.body[0].lineno)
    for node in _continues(loop):  # what has no turn here is not offered
        lines[node.lineno - 1] = f"{' ' * node.col_offset}raise SystemExit({LACKS})"
    body = dedented(lines[first - 1 : loop.end_lineno])
    return "\n".join([*lines[: loop.lineno - 1], head, *body, *lines[loop.end_lineno :]])
