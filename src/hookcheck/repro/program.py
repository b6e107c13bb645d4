"""The script of a program: its own source with whatever it uses, bare of types and docstrings, and a short check.

The facts that are so are its control.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from hookcheck.errors import HookcheckError
from hookcheck.programs.program import ALONE_LIMIT, Program
from hookcheck.repro.alone import PACKAGE, alone
from hookcheck.repro.heading import LACKS, header, since_guard
from hookcheck.repro.links import links
from hookcheck.repro.wrapping import wrapped

GIVEN = {"hookcheck.programs.check": frozenset({"Check", "NotOffered", "NotRun"})}
"""What a script defines by itself."""

MORE = re.compile(rf"{PACKAGE}|^ *(?:from|import) (?:hypothesis|numpy)\b", re.MULTILINE)
"""What shows that a program needs more than torch: a module that it gets late, or generated acts."""

DIGITS = 5
"""Digits that numbers are compared by: so many of what a program states are sure (`hookcheck.oracle.tolerance`)."""

CHECK = """wrong = []


def check(name, observed, expected):
    if plain(observed) != plain(expected):
        wrong.append(f"{name}: expected {plain(expected)}, observed {plain(observed)}")"""

PLAIN = """def plain(value):
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))"""

OF_DICTS = """
    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}"""

ROUNDED = f"""
    return float(f"{{value:.{DIGITS}g}}") if type(value) in (int, float) else value"""

RAISED = """def raised(act):
    try:
        act()
    except BaseException as error:
        return error"""

WARNS = """def warns(name, category, act, says=""):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = act()
    texts = [str(w.message) for w in caught if issubclass(w.category, category)]
    check(name, any(says in text for text in texts), True)
    return result"""

SILENT = """def silent(name, act, says=""):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = act()
    check(name, [str(w.message) for w in caught if says in str(w.message)], [])
    return result"""

STATED = {
    "equal": "check({0}, {1}, {2})",
    "true": "check({0}, bool({1}), True)",
    "calls": "check({0}, {1}, {2})",
    "order": "check({0}, list({1}), list({2}))",
    "raises": "check({0}, type(raised({2})), {1})",
    "works": "{1}()",
    "warns": "warns({0}, {1}, {2})",
    "silent": "silent({0}, {1})",
}
"""How a script states what a program states by the methods of `hookcheck.programs.check.Check`: of the arguments that
are given by position."""

SAYING = {
    "raises": "check({0}, {3} in str(raised({2})), True)",
    "warns": "warns({0}, {1}, {2}, {3})",
    "silent": "silent({0}, {1}, {2})",
}
"""The same where what is said matters."""

WATCHED = f"""if "--run" not in sys.argv:  # in a process of its own, since it may crash or hang
    try:
        done = subprocess.run([sys.executable, __file__, "--run"], timeout={ALONE_LIMIT})
    except subprocess.TimeoutExpired:
        sys.exit("the program hangs")
    sys.exit(1 if done.returncode < 0 else done.returncode)"""


def program_script(program: Program, device: str | None = None) -> str:
    """The script that runs ``program`` on ``device`` (None: the one that it is about, or ``cpu``).

    It ends with exit code 1 where a fact is not so, 0 where all are, and 3 where its torch or its machine lacks what it
    needs.

    Raises:
        HookcheckError: the program is about another device, or needs more than torch, as generated acts do.
    """
    about = program.device if program.device != "any" else None
    device = device or about or "cpu"
    if about not in (None, device):
        raise HookcheckError(f"program {program.id} is about {about}; add --device {about}")
    module, name = program.judge.__module__, program.judge.__name__
    more = HookcheckError(f"no script can be written yet for program {program.id}: it needs more than torch")
    try:
        found = alone(module, name, GIVEN)
    except ValueError:
        raise more from None
    if any(map(MORE.search, (*found.imports, *found.definitions))):
        raise more
    text = bare("\n\n\n".join(found.definitions))
    body = stated(text)
    lacking = [kind for kind in ("NotOffered", "NotRun") if re.search(rf"\b{kind}\b", body)]
    helpers = [PLAIN + (OF_DICTS if "{" in body else "") + ROUNDED]
    helpers += [RAISED] if "raised(" in body else []
    helpers += [helper for helper, name in ((WARNS, "warns"), (SILENT, "silent")) if re.search(rf"\b{name}\(", body)]
    imports = {line for line in found.imports if "annotations" not in line and _needed(line, body)} | {"import torch"}
    imports |= {"import warnings"} if "catch_warnings" in "".join(helpers) else set()
    imports |= {"import subprocess", "import sys"} if program.alone else set()
    blocks = [
        _header(program),
        _imports(imports),
        *filter(None, ["\n".join(_guards(program, device))]),
        *([WATCHED] if program.alone else []),
        *(f"\nclass {kind}(Exception):\n    pass" for kind in lacking),
        CHECK,
        *(f"\n{helper}" for helper in helpers),
        f"\n{body}",
        f"\n{_run(name, lacking, device, body)}",
    ]
    return wrapped(re.sub(r"\n{4,}", "\n\n\n", "\n\n".join(blocks)).rstrip("\n")) + "\n"


def stated(text: str) -> str:
    """A program whose facts are calls of one function, ``check(name, observed, expected)``."""
    while True:
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and _of_check(node)]
        if not calls:
            break
        text = _rewritten(
            text, max(calls, key=lambda call: (call.lineno, call.col_offset))
        )  # what is inside comes first
    text = re.sub(r"\(check(?:, |(?=\)))", "(", text)  # what hands its check on, or is handed it
    return re.sub(r", check(?=[,)])", "", text).replace("check.device", '"cpu"')


def _rewritten(text: str, call: ast.Call) -> str:
    """The text with one call of the check written as a script does."""
    assert isinstance(call.func, ast.Attribute)
    name, lines = call.func.attr, text.split("\n")
    arguments = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "says")]
    known = SAYING if name in SAYING and len(arguments) > STATED[name].count("{") else STATED
    written = known[name].format(*(_source(text, argument) for argument in arguments))
    (row, column), (end_row, end_column) = _start(call), _end(call)
    ahead, behind = lines[row - 1].encode()[:column].decode(), lines[end_row - 1].encode()[end_column:].decode()
    lines[row - 1 : end_row] = [f"{ahead}{written}{behind}"]
    return "\n".join(lines)


def _of_check(call: ast.Call) -> bool:
    of = call.func
    return (
        isinstance(of, ast.Attribute)
        and isinstance(of.value, ast.Name)
        and of.value.id == "check"
        and of.attr in STATED
    )


def _source(text: str, argument: ast.expr) -> str:
    """An argument as it is written, on one line; a call by parts of its arguments as a lambda is."""
    source = " ".join((ast.get_source_segment(text, argument) or "").split())
    return f"({source})" if isinstance(argument, ast.Lambda) else source


def _run(name: str, lacking: list[str], device: str, text: str) -> str:
    """The lines that run the program and end with what it says."""
    act = [f"{name}()"] if device == "cpu" else [f'with torch.device("{device}"):', f"    {name}()"]
    skipped = [
        f"except {lacking[0] if len(lacking) == 1 else '(NotOffered, NotRun)'}:",
        f"    raise SystemExit({LACKS})",
    ]
    return "\n".join(
        [
            *(["torch.manual_seed(0)"] if re.search("rand|Linear|Conv|LSTM|Transformer", text) else []),
            "try:",
            *(f"    {line}" for line in act),
            *(skipped if lacking else []),
            "except Exception as error:",
            '    wrong.append(f"{type(error).__name__}: {error}")',
            'print("\\n".join(wrong) or "as documented")',
            "raise SystemExit(1 if wrong else 0)",
        ]
    )


def _header(program: Program) -> str:
    return header(program.statement.rstrip("."), next(iter(links(program.source)), "").partition("#")[0])


def _needed(line: str, text: str) -> bool:
    """Whether what an import binds is still used where types are gone."""
    node = ast.parse(line).body[0]
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    return any(re.search(rf"\b{(a.asname or a.name).partition('.')[0]}\b", text) for a in node.names)


def _imports(lines: Iterable[str]) -> str:
    """Import statements in the order of PEP 8: those of the standard library, and those of torch."""
    ordered = sorted(lines, key=lambda line: (line.startswith("from"), line))
    of_torch = [line for line in ordered if line.split()[1].partition(".")[0] == "torch"]
    return "\n".join([*(line for line in ordered if line not in of_torch), "", *of_torch])


def _guards(program: Program, device: str) -> list[str]:
    """The lines that end a script where its torch lacks the API, or its machine the device."""
    conditions = since_guard(program.since if device == "cpu" else max(program.since, "2.0"))
    conditions += ["not torch.cuda.is_available()"] if device == "cuda" else []
    return [f"if {' or '.join(conditions)}:\n    raise SystemExit({LACKS})"] if conditions else []


def bare(text: str) -> str:
    """A definition without annotations and docstrings; comments stay."""
    lines = text.split("\n")
    for (row, column), (end_row, end_column), new in sorted(_cuts(ast.parse(text)), reverse=True):
        ahead, behind = lines[row - 1].encode()[:column].decode(), lines[end_row - 1].encode()[end_column:].decode()
        joined = f"{ahead}{new}{behind}"
        lines[row - 1 : end_row] = [joined] if joined.strip() else []
    text = re.sub(r"(?m)^ +$", "", "\n".join(lines))
    return re.sub(r"(?m)^( *def .*:)\n\n", r"\1\n", text).strip("\n")


Place = tuple[int, int]


def _cuts(tree: ast.Module) -> Iterator[tuple[Place, Place, str]]:
    """What is taken out: from where to where, and what stands there instead."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            for argument in every:
                if argument is not None and argument.annotation is not None:
                    yield _start(argument), _end(argument), argument.arg
            if node.returns is not None:
                yield _arrow(node), _end(node.returns), ""
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            yield _start(node.body[0]), _end(node.body[0]), "" if len(node.body) > 1 else "pass"
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            yield _end(node.target), _start(node.value), " = "
        if isinstance(node, ast.Expr) and node in tree.body and isinstance(node.value, ast.Constant):
            yield _start(node), _end(node), ""


def _arrow(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Place:
    """Where ``-> type`` begins, the space before it included; it stands on the line of the type."""
    assert node.returns is not None
    return node.returns.lineno, node.returns.col_offset - len(" -> ")


def _start(node: ast.stmt | ast.expr | ast.arg) -> Place:
    return node.lineno, node.col_offset


def _end(node: ast.stmt | ast.expr | ast.arg) -> Place:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset
