"""How definitions of a program become a script: its head, what it needs besides, its facts as calls of one function."""

from __future__ import annotations

import ast
import re
import sys

from hookcheck.programs.program import ALONE_HANG_LIMIT, ALONE_LIMIT, Program
from hookcheck.releases.numbers import release
from hookcheck.repro.alone import Alone
from hookcheck.repro.editing import end, quoted, replaced, source, start
from hookcheck.repro.formatting import WIDTH, formatted
from hookcheck.repro.heading import FAILS, LACKS, LONGEST, header, since_guard
from hookcheck.repro.importing import named
from hookcheck.repro.links import links
from hookcheck.repro.syntax import lines_of, may_name, without

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

NUMBER = f"""def plain(value):
    return float(f"{{value:.{DIGITS}g}}") if type(value) in (int, float) else value"""

NUMBERS = f"""def plain(value):
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return float(f"{{value:.{DIGITS}g}}") if type(value) in (int, float) else value"""

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

_OF_TENSORS, _OF_ROUNDED = r"tensor\(|Parameter containing", r"(?:\d\.\d*[1-9]|\de[-+]?\d|\b(?:nan|inf)\b)"

LEFT = {
    "": re.compile(rf"{_OF_TENSORS}|{_OF_ROUNDED}"),
    NUMBER: re.compile(rf"{_OF_TENSORS}|[\[({{].*{_OF_ROUNDED}"),
    NUMBERS: re.compile(rf"{_OF_TENSORS}|\{{.*{_OF_ROUNDED}"),
}
LEFT.update(dict.fromkeys((TENSOR, NESTED), LEFT[""]))
"""What shows, in what a script says that makes less plain, that more is needed: tensors, and numbers to round."""

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

WORKS = "check({0}, failure({1}), None)"
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


class Written:
    """How definitions of a program become a script."""

    def __init__(
        self, program: Program, device: str, code: Alone, others_end: bool = True, watched: bool = True
    ) -> None:
        """``code`` is what is left of the program's module; ``others_end`` says that a script ends with the first fact
        that is not so, whichever it is, else only with the one that it is about. That it neither crashes nor hangs is
        ``watched`` where the program runs alone."""
        self.program, self.device, self.code = program, device, code
        self.others_end, self.watched = others_end, watched and program.alone

    def script(self, text: str, fact: str, plain: str = PLAIN, remark: str = "", control: str = "") -> str:
        """The script, as a formatter has it; with a ``fact`` that is what it is about. Both sides are compared as
        ``plain`` makes them.

        With a ``control`` it ends with another exit code where that is not so. Where it is too long by a line, what it
        is about is cut to one.
        """
        script = formatted(self.draft(text, fact, plain, remark, control))
        if script.count("\n") != LONGEST + 1:
            return script
        return script.replace(_header(self.program), _header(self.program, lines=1), 1)

    def draft(self, text: str, fact: str, plain: str = PLAIN, remark: str = "", control: str = "") -> str:
        """The same before it is formatted, which is enough to run it."""
        program, name = self.program, self.program.judge.__name__
        least = program.since if self.device == "cpu" else max(program.since, "2.0", key=release)
        text, since = without_guards(text, least)
        body = named(stated(text, fact))
        helpers = [plain if "{" in body else plain.replace(_OF_DICTS, ""), OF_PLAIN] if plain else [CHECK]
        if fact and not self.others_end:
            helpers = [h.replace("if observed", f"if name == {quoted(repr(fact))} and observed") for h in helpers]
        elif control:
            codes = (fact, 1, FAILS) if len(fact) < len(control) else (control, FAILS, 1)
            is_it = _told_apart(codes[0], fact if codes[0] == control else control)
            helpers = [h.replace("Exit(1)", f"Exit({codes[1]} if {is_it} else {codes[2]})") for h in helpers]
        uses = {"raised": RAISED, "failure": FAILURE, "warns": WARNS, "silent": SILENT}
        for called, helper in uses.items():
            if re.search(rf"\b{called}\(", body):
                given = re.search(rf"\S *\b{called}\(", body)
                helpers.append(helper if given else helper.replace("result = act", "act").replace(RESULT, ""))
        everything = "\n".join([body, *helpers])
        imports = {line for line in self.code.imports if "annotations" not in line and is_needed(line, everything)}
        imports |= {"import torch"} | ({"import warnings"} if "catch_warnings" in everything else set())
        imports |= {"from contextlib import nullcontext"} if "nullcontext(" in everything else set()
        imports |= {"from contextlib import suppress"} if "suppress(" in everything else set()
        alone = {"from contextlib import suppress", "import subprocess", "import sys"}
        imports |= alone if self.watched else set()
        run = _run(f"def {name}(" in body, name, self.device, fact)
        seeded = re.search(r"rand|\bLinear|Conv|LSTM|Transformer", body)
        blocks = [
            _header(program) + (f"\n# {remark}" if remark else ""),
            "\n".join(sorted(imports)),
            *filter(None, ["\n".join(_guards(since, self.device))]),
            *([WATCHED] if self.watched else []),
            *(f"\n{helper}" for helper in helpers),
            *(["\ntorch.manual_seed(0)"] if seeded else []),
            f"\n{body}",
            *([f"\n{run}"] if run else []),
        ]
        return "\n\n".join(blocks)


def _told_apart(name: str, other: str) -> str:
    """The condition that a fact of this name is meant, and not another one: of a long name its first or last words
    decide."""
    whole = f"name == {quoted(repr(name))}"
    if len(whole) <= WIDTH - len("        raise SystemExit(1 if  else 2)"):
        return whole
    first = (name[: m.end()] for m in re.finditer(r"\w\b", name) if not other.startswith(name[: m.end()]))
    last = (name[m.start() :] for m in re.finditer(r"\b\w", name) if not other.endswith(name[m.start() :]))
    ends = {"startswith": next(first, name), "endswith": max(last, key=lambda end: -len(end), default=name)}
    method, words = min(ends.items(), key=lambda end: len(end[1]))
    return f"name.{method}({quoted(repr(words))})"


_OF_DICTS = """    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}
"""


def stated(text: str, fact: str = "") -> str:
    """A program whose facts are calls of one function, ``check(name, observed, expected)``; ``fact`` it is about.

    That something works is stated where that is what the fact is about, of others then too, one of which may be its
    control; elsewhere it is done.
    """
    about = any(_works(call) and may_name(call, fact) for call in _facts(ast.parse(text))) if fact else False
    while calls := _facts(tree := ast.parse(text)):
        first = sys.maxsize, 0
        alone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        for call in sorted(calls, key=start, reverse=True):
            if end(call) <= first:  # what is inside comes first
                says = about and (may_name(call, fact) or call in alone)
                text, first = _rewritten(text, call, says), start(call)
    text = re.sub(r"(?m)^( *)\w+ = (?=check\()", r"\1", text)
    text = re.sub(r"(\(\s*)(?:check|Check\(\))(?:,\s+|(?=\)))", r"\1", text)  # what hands one on, or is handed it
    return re.sub(r",\s+check(?=[,)])", "", text).replace("check.device", '"cpu"')


def _facts(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _of_check(node)]


def _works(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "works"


def _rewritten(text: str, call: ast.Call, says: bool) -> str:
    """The text with one call of the check written as a script does; ``says`` whether that something works is stated."""
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    arguments = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "says")]
    known = SAYING if name in SAYING and len(arguments) > STATED[name].count("{") else STATED
    form = WORKS if says and _works(call) else known[name]
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
    """An argument as it is written, on one line; in brackets where what is called would be its last part alone."""
    line = " ".join(source(text, argument).split())
    whole = not called or isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return line if whole else f"({line})"


def _run(called: bool, name: str, device: str, fact: str) -> str:
    """The lines that run the program, if its statements are not at the top; without a ``fact`` it may raise."""
    act = [f"{name}()"] if called else []
    if device != "cpu" and called:
        act = [f'with torch.device("{device}"):', *(f"    {line}" for line in act)]
    if fact or not called:
        return "\n".join(act)
    fails = ["except Exception as error:", '    print(f"{type(error).__name__}: {error}")', "    raise SystemExit(1)"]
    return "\n".join(["try:", *(f"    {line}" for line in act), *fails])


def _header(program: Program, lines: int = 2) -> str:
    return header([program.statement.rstrip(".")], next(iter(links(program.source)), "").partition("#")[0], lines)


def is_needed(line: str, text: str) -> bool:
    """Whether what an import binds is still used where types are gone."""
    node = ast.parse(line).body[0]
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    return any(re.search(rf"\b{(a.asname or a.name).partition('.')[0]}\b", text) for a in node.names)


def _guards(since: str, device: str) -> list[str]:
    """The lines that end a script where its torch lacks the API, or its machine the device."""
    conditions = since_guard(since)
    conditions += ["not torch.cuda.is_available()"] if device == "cuda" else []
    return [f"if {' or '.join(conditions)}:\n    raise SystemExit({LACKS})"] if conditions else []


OLDER = re.compile(r"(?:tuple\(.*torch\.__version__.*\) <|not tuple\(.*torch\.__version__.*\) >=) \((\d+), (\d+)\)$")
"""A condition on the release that a script needs in any case, as it stands outside of functions."""


def without_guards(text: str, since: str) -> tuple[str, str]:
    """The text without what ends it where torch is older than some release, and the release since which it runs."""
    tree = ast.parse(text)
    blocks = [tree.body]
    while blocks:
        for statement in blocks.pop():
            if isinstance(statement, (ast.With, ast.Try)):
                blocks.append(statement.body)
            older = OLDER.match(ast.unparse(statement.test)) if isinstance(statement, ast.If) else None
            if older and [*map(ast.unparse, getattr(statement, "body", []))] == [f"raise SystemExit({LACKS})"]:
                later = max(since, f"{older[1]}.{older[2]}", key=release)
                return without_guards(without(text, lines_of(statement)), later)
    return text, since
