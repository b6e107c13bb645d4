"""The script of a program: of its own source what one fact needs, bare of types and docstrings, and a short check.

The facts that are stated on the way to it are its control.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable

from hookcheck.errors import HookcheckError
from hookcheck.programs.program import ALONE_HANG_LIMIT, ALONE_LIMIT, Program
from hookcheck.repro.alone import PACKAGE, Alone, alone
from hookcheck.repro.editing import end, replaced, source, start
from hookcheck.repro.heading import LACKS, header, since_guard
from hookcheck.repro.inlining import inlined, plainer
from hookcheck.repro.links import links
from hookcheck.repro.simpler import simpler
from hookcheck.repro.slicing import sliced
from hookcheck.repro.syntax import may_name
from hookcheck.repro.turns import flat, one_turn
from hookcheck.repro.wrapping import wrapped

GIVEN = {"hookcheck.programs.check": frozenset({"Check", "NotOffered", "NotRun"})}
"""What a script does without."""

MORE = re.compile(rf"{PACKAGE}|^ *(?:from|import) (?:hypothesis|numpy|torchvision)\b", re.MULTILINE)
"""What shows that a program needs more than torch: generated acts, an oracle's arrays, whole models."""

DIGITS = 5
"""Digits that numbers are compared by: so many of what a program states are sure (`hookcheck.oracle.tolerance`)."""

CHECK = """def check(name, observed, expected):
    print(f"{name}: expected {expected}, observed {observed}")
    if observed != expected:
        raise SystemExit(1)"""

TENSOR = """def plain(value):
    return value.tolist() if isinstance(value, torch.Tensor) else value"""

NESTED = """def plain(value):
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return value.tolist() if isinstance(value, torch.Tensor) else value"""

PLAIN = f"""def plain(value):
    if isinstance(value, torch.Tensor):
        value = value.tolist()
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {{key: plain(item) for key, item in value.items()}}
    return float(f"{{value:.{DIGITS}g}}") if type(value) in (int, float) else value"""

OF_PLAIN = CHECK.replace("    print", "    observed, expected = plain(observed), plain(expected)\n    print")
"""The check where tensors or rounded numbers are compared, in containers of any depth."""

ROUNDED = re.compile(r"tensor\(|\d\.\d*[1-9]|\de[-+]?\d|\b(?:nan|inf)\b|Parameter containing")
"""What shows, in what a script without it says, that `PLAIN` is needed: tensors, and numbers that are rounded."""

RAISED = """def raised(act):
    try:
        act()
    except BaseException as error:
        return error"""

FAILURE = """def failure(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\\n")[0]"""

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

RESULT = "\n    return result"
"""The end of those that give what they do, where nobody asks for it."""

STATED = {
    "equal": "check({0}, {1}, {2})",
    "true": "check({0}, bool({1}), True)",
    "calls": "check({0}, {1}, {2})",
    "order": "check({0}, list({1}), {2})",
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

FAILS = "check({0}, failure({1}), None)"
"""How it states that something works, where that is what it is about."""

WATCHED = f"""if "--run" not in sys.argv:  # in a process of its own, since it may crash or hang
    try:
        done = subprocess.run([sys.executable, __file__, "--run"], timeout={ALONE_HANG_LIMIT})
    except subprocess.TimeoutExpired:
        sys.exit("the program hangs")
    sys.exit("the program crashes or hangs" if done.returncode < 0 else done.returncode)
with suppress(ImportError):  # one that waits for the processor does not hang: its own time counts, where it can
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, ({ALONE_LIMIT}, resource.getrlimit(resource.RLIMIT_CPU)[1]))"""

Run = Callable[[str], "tuple[int | None, str]"]
"""Runs a script and gives its exit code and what it says."""


def program_script(program: Program, device: str | None = None, fact: str = "", run: Run | None = None) -> str:
    """The script that runs ``program`` on ``device`` (None: the one that it is about, or ``cpu``).

    It ends with exit code 1 where a fact is not so, 0 where all are, and 3 where its torch or its machine lacks what it
    needs. With a ``fact`` it is about that alone, as far as it still shows that one where it is ``run``.

    Raises:
        HookcheckError: the program is about another device, or needs more than torch, as generated acts do.
    """
    about = program.device if program.device != "any" else None
    device = device or about or "cpu"
    if about not in (None, device):
        raise HookcheckError(f"program {program.id} is about {about}; add --device {about}")
    more = HookcheckError(f"no script can be written yet for program {program.id}: it needs more than torch")
    try:
        collected = alone(program.judge.__module__, program.judge.__name__, GIVEN)
    except ValueError:
        raise more from None
    if any(map(MORE.search, (*collected.imports, *collected.definitions))):
        raise more
    text = _lacking("\n\n\n".join(collected.definitions))
    written = _Written(program, device, collected)
    short = sliced(text, fact) if fact else None
    if short is None:
        return written.script(text, "")
    if run is None:
        return written.script(short, fact)

    def shows(candidate: str, plain: str = PLAIN) -> bool:
        try:
            code, said = run(written.script(candidate, fact, plain))
        except Exception:  # it ends otherwise
            return False
        compared = said.partition(f"{fact}: expected None")[0]  # what an exception says is compared with nothing
        return code == 1 and f"{fact}: expected" in said and (plain == PLAIN or not ROUNDED.search(compared))

    if not shows(short):
        return written.script(text, "")
    turned = (
        lambda text: one_turn(text, fact, shows, lambda candidate: run(written.script(candidate, fact))[1]),
        lambda text: sliced(text, fact),
        lambda text: simpler(text, program.since, shows),
    )
    changes: tuple[Callable[[str], str | None], ...] = (
        *turned,
        *turned,
        lambda text: sliced(text, fact),
        lambda text: flat(text, program.judge.__name__),
        lambda text: inlined(plainer(text)),
        lambda text: simpler(text, program.since, shows),
    )
    for change in changes:
        changed = change(short)
        short = changed if changed and shows(changed) else short
    plain = next(plain for plain in ("", TENSOR, NESTED, PLAIN) if shows(short, plain) or plain == PLAIN)
    return written.script(short, fact, plain)


class _Written:
    """How definitions of a program become a script."""

    def __init__(self, program: Program, device: str, code: Alone) -> None:
        self.program, self.device, self.code = program, device, code

    def script(self, text: str, fact: str, plain: str = PLAIN) -> str:
        """The script; with a ``fact`` that is what it is about. Both sides are compared as ``plain`` makes them."""
        program, name = self.program, self.program.judge.__name__
        body = stated(text, fact)
        helpers = [plain if "{" in body else plain.replace(_OF_DICTS, ""), OF_PLAIN] if plain else [CHECK]
        uses = {"raised": RAISED, "failure": FAILURE, "warns": WARNS, "silent": SILENT}
        for called, helper in uses.items():
            if re.search(rf"\b{called}\(", body):
                given = re.search(rf"\S *\b{called}\(", body)
                helpers.append(helper if given else helper.replace("result = act", "act").replace(RESULT, ""))
        everything = "\n".join([body, *helpers])
        imports = {line for line in self.code.imports if "annotations" not in line and _needed(line, everything)}
        imports |= {"import torch"} | ({"import warnings"} if "catch_warnings" in everything else set())
        alone = {"from contextlib import suppress", "import subprocess", "import sys"}
        imports |= alone if program.alone else set()
        run = _run(f"def {name}(" in body, name, self.device, fact)
        seeded = re.search(r"rand|\bLinear|Conv|LSTM|Transformer", body)
        blocks = [
            _header(program),
            _imports(imports),
            *filter(None, ["\n".join(_guards(program, self.device))]),
            *([WATCHED] if program.alone else []),
            *(f"\n{helper}" for helper in helpers),
            *(["\ntorch.manual_seed(0)"] if seeded else []),
            f"\n{body}",
            *([f"\n{run}"] if run else []),
        ]
        return wrapped(spaced("\n\n".join(blocks))) + "\n"


def spaced(text: str) -> str:
    """The text with two blank lines around definitions at its top, and at most one elsewhere."""
    lines = text.strip("\n").split("\n")
    body = ast.parse(text).body
    starts = {}
    for before, part in zip(body, body[1:]):
        first = min([part.lineno, *(d.lineno for d in getattr(part, "decorator_list", []))])
        while lines[first - 2].startswith("#"):
            first -= 1
        definition = any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in (before, part))
        starts[first] = 2 if definition else None
    result: list[str] = []
    for number, line in enumerate(lines, 1):
        blank = starts.get(number)
        if blank is not None:
            while result and not result[-1]:
                result.pop()
            result += [""] * blank
        if line or (result and result[-1]):
            result.append(line)
    return "\n".join(result)


_OF_DICTS = """    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}
"""


def stated(text: str, fact: str = "") -> str:
    """A program whose facts are calls of one function, ``check(name, observed, expected)``; ``fact`` it is about."""
    while calls := [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and _of_check(node)]:
        first = sys.maxsize, 0
        for call in sorted(calls, key=start, reverse=True):
            if end(call) <= first:  # what is inside comes first
                text, first = _rewritten(text, call, fact), start(call)
    text = re.sub(r"(?m)^( *)\w+ = (?=check\()", r"\1", text)
    text = re.sub(r"(\(\s*)check(?:,\s+|(?=\)))", r"\1", text)  # what hands its check on, or is handed it
    return re.sub(r",\s+check(?=[,)])", "", text).replace("check.device", '"cpu"')


def _lacking(text: str) -> str:
    """The text with the exit code of a script in the place of the exceptions by which a program ends early."""
    raises = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Raise) and re.match(r"(NotOffered|NotRun)\b", ast.unparse(node.exc) if node.exc else "")
    ]
    for node in sorted(raises, key=lambda node: -node.lineno):
        lines = text.split("\n")
        lines[node.lineno - 1 : node.end_lineno] = [f"{' ' * node.col_offset}raise SystemExit({LACKS})"]
        text = "\n".join(lines)
    return re.sub(r"(?m)^( *)if check\.device != .cpu.:\n.*\n", "", text)


def _rewritten(text: str, call: ast.Call, fact: str) -> str:
    """The text with one call of the check written as a script does."""
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    arguments = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "says")]
    known = SAYING if name in SAYING and len(arguments) > STATED[name].count("{") else STATED
    about = name == "works" and bool(fact) and may_name(call, fact)
    form = FAILS if about else known[name]
    if name == "order" and isinstance(arguments[1], (ast.List, ast.ListComp)):
        form = STATED["equal"]  # it is a list
    written = form.format(*(_source(text, a, f"{{{i}}}()" in form) for i, a in enumerate(arguments)))
    return replaced(text, call, written)


def _of_check(call: ast.Call) -> bool:
    of = call.func
    return (
        isinstance(of, ast.Attribute)
        and isinstance(of.value, ast.Name)
        and of.value.id == "check"
        and of.attr in STATED
    )


def _source(text: str, argument: ast.expr, called: bool) -> str:
    """An argument as it is written, on one line; in brackets where a lambda is called."""
    line = " ".join(source(text, argument).split())
    return f"({line})" if called and isinstance(argument, ast.Lambda) else line


def _run(called: bool, name: str, device: str, fact: str) -> str:
    """The lines that run the program, if its statements are not at the top; without a ``fact`` it may raise."""
    act = [f"{name}()"] if called else []
    if device != "cpu" and called:
        act = [f'with torch.device("{device}"):', *(f"    {line}" for line in act)]
    if fact:
        return "\n".join(act)
    fails = ["except Exception as error:", '    print(f"{type(error).__name__}: {error}")', "    raise SystemExit(1)"]
    return "\n".join(["try:", *(f"    {line}" for line in act), *fails])


def _header(program: Program) -> str:
    return header(program.statement.rstrip("."), next(iter(links(program.source)), "").partition("#")[0])


def _needed(line: str, text: str) -> bool:
    """Whether what an import binds is still used where types are gone."""
    node = ast.parse(line).body[0]
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    return any(re.search(rf"\b{(a.asname or a.name).partition('.')[0]}\b", text) for a in node.names)


def _imports(lines: Iterable[str]) -> str:
    """Import statements in the order of PEP 8, one a module: those of the standard library, and those of torch."""
    names: dict[str, set[str]] = {}
    for line in lines:
        module, _, name = line.partition(" import ")
        names.setdefault(module if name else line, set()).update(filter(None, [name]))
    merged = [
        f"{module} import {', '.join(sorted(names_of))}" if names_of else module for module, names_of in names.items()
    ]
    ordered = sorted(merged, key=lambda line: (line.startswith("from"), line))
    of_torch = [line for line in ordered if line.split()[1].partition(".")[0] == "torch"]
    others = [line for line in ordered if line not in of_torch]
    return "\n".join([*others, *([""] if others else []), *of_torch])


def _guards(program: Program, device: str) -> list[str]:
    """The lines that end a script where its torch lacks the API, or its machine the device."""
    conditions = since_guard(program.since if device == "cpu" else max(program.since, "2.0"))
    conditions += ["not torch.cuda.is_available()"] if device == "cuda" else []
    return [f"if {' or '.join(conditions)}:\n    raise SystemExit({LACKS})"] if conditions else []
