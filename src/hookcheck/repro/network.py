"""A network in a script: its classes, the lines that make it and its inputs, and those that run it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import numpy as np

from hookcheck.oracle.trace import trace
from hookcheck.repro.editing import replaced, written
from hookcheck.topology.model import Input, Topology
from hookcheck.topology.primitive import Array
from hookcheck.topology.source import as_leaf, attribute, conversions_source, main_source, modules_source
from hookcheck.topology.source import definitions_source as layer_classes
from hookcheck.topology.values import WHOLE, parameter_shapes, values

ONES, RANDOM, ITS_OWN = "ones", "random", "its own"
"""What the inputs of a network hold in a script."""

SHORT = 4
"""So many numbers are written down; more are counted by ``torch.arange`` where they are 1, 2, 3, …"""


COPIED = ".clone(memory_format=torch.contiguous_format)"
"""How a network makes a copy that is contiguous, whether it needs to or not."""

LONGEST = 90
"""So many characters a line of a network or of its run has at most that something is put into."""


@dataclass(frozen=True)
class NetworkScript:
    """The parts of a script: imports, classes, the lines that make ``net`` and the inputs, and those that run it."""

    imports: tuple[str, ...]
    classes: tuple[str, ...]
    setup: tuple[str, ...]
    main: tuple[str, ...]


def network(topology: Topology, kind: str, named: str, device: str = "cpu") -> NetworkScript:
    """The parts of a script about a topology.

    ``kind`` says what inputs hold: ones, random numbers, or those of the topology, with which the parameters are filled
    too; else these are as the layers make them. What stands in ``named`` keeps its name, and so does an argument that
    requires grad where it is the only one; other values that are used once, at once, need none.
    """
    modules = modules_source(topology).replace(COPIED, ".contiguous()")
    parts = [*filter(None, [layer_classes(topology)]), *modules.split("\n\n\n")]
    imports = [line for part in parts for line in part.split("\n") if re.match("from |import ", line)]
    classes = [re.sub(r"(?m)^(?:from|import) .*\n*", "", part).strip() for part in parts[:-1]]
    classes = [_tidy(text) for text in classes if text]
    setup = [line for line in parts[-1].split("\n") if parameter_shapes(topology) or not line.startswith("net.to(")]
    numbers = values(topology)
    main = inlined(_asked_plainly(topology, named, device).replace(COPIED, ".contiguous()").split("\n"), named)
    used = "\n".join([*main, named])
    inputs = [i for i in topology.inputs if re.search(rf"\b{i.name}\b", used)]
    setup += _fill(topology, numbers) if kind == ITS_OWN else []
    setup += [line for line in conversions_source(topology).split("\n") if line]
    if kind == RANDOM:
        setup = ["torch.manual_seed(0)", *setup]
    lines = {i.name: _input(i, numbers[i.name], topology, kind) for i in inputs}
    for i in sorted(inputs, key=lambda i: i.requires_grad):
        free = device == "cpu" and not re.search(rf"\b{i.name}\b", named)
        place = _only_use(i.name, lines[i.name], main) if free else None
        if place is not None and (not i.requires_grad or re.search(rf", {i.name}\b|\b{i.name}, ", main[place])):
            text = lines.pop(i.name)
            main[place] = re.sub(rf"\b{i.name}\b", lambda _, text=text: text, main[place])  # type: ignore[misc]
    setup += [f"{name} = {text}" for name, text in lines.items()]
    if device != "cpu":
        setup += [f'net.to("{device}")', *(_moved(i, device) for i in inputs)]
    classes = _used("\n\n\n".join(classes), "\n".join([*setup, *main]))
    return NetworkScript(tuple(dict.fromkeys(imports)), tuple(classes), tuple(setup), tuple(main))


def _asked_plainly(topology: Topology, named: str, device: str) -> str:
    """The lines of main, ``torch.autograd.grad`` as people call it: a tensor alone is no list of one, and what is there
    need not be allowed to be unused, unless somebody looks at it."""
    text = main_source(topology, device)
    asking = [part for part in ast.walk(ast.parse(text)) if isinstance(part, ast.Assign) and _asks(part.value)]
    names = trace(topology, values(topology)).names if asking else {}
    for part in sorted(asking, key=lambda part: -part.lineno):
        target, call = part.targets[0], part.value
        assert isinstance(target, ast.Name)
        assert isinstance(call, ast.Call)
        looked_at = len(re.findall(rf"\b{target.id}\b", f"{text}\n{named}")) > 1
        if not looked_at and None not in names[target.id]:
            call.keywords = [keyword for keyword in call.keywords if keyword.arg != "allow_unused"]
        call.args = [arg.elts[0] if isinstance(arg, ast.List) and len(arg.elts) == 1 else arg for arg in call.args]
        text = replaced(text, call, written(call))
    return text


def _asks(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "torch.autograd.grad"


def _used(classes: str, body: str) -> list[str]:
    """The definitions that ``body`` or another one that is used speaks of."""
    used: list[str] = []
    for text in reversed(re.split(r"\n\n\n(?=\S)", classes)):  # each stands before what uses it
        names = re.findall(r"^(?:def|class) (\w+)|^(\w+) =", text, re.MULTILINE)
        wanted = "\n".join([body, *used])
        if text and (not names or any(re.search(rf"\b{''.join(name)}\b", wanted) for name in names)):
            used.insert(0, text)
    return used


def _only_use(name: str, text: str, lines: list[str]) -> int | None:
    """The place of the one line that uses a name, once, if it is short enough for ``text`` in its place, and in no
    context, which might make another tensor of that; None if there is no such line."""
    uses = [(place, line) for place, line in enumerate(lines) for _ in re.findall(rf"\b{name}\b", line)]
    if len(uses) != 1 or re.match(r" |.*(?:\blambda\b|:$)", uses[0][1]):
        return None
    place, line = uses[0]
    return place if len(line) - len(name) + len(text) <= LONGEST else None


def _fill(topology: Topology, numbers: dict[str, Array]) -> list[str]:
    """The lines that fill the parameters: those of one number each by that, all if there are only such."""
    drawn = {attribute("net", name): numbers[name] for name in parameter_shapes(topology)}
    if all(array.dtype.kind == "f" and np.unique(array).size == 1 for array in drawn.values()):
        constants = {name: f"{array.flat[0].item()!r}" for name, array in drawn.items()}
        if len(drawn) > FEW and len({*constants.values()}) == 1:
            of_all = next(iter(constants.values()))
            return ["for parameter in net.parameters():", f"    nn.init.constant_(parameter, {of_all})"]
        return [f"nn.init.constant_({name}, {number})" for name, number in constants.items()]
    return ["with torch.no_grad():", *(f"    {name}.copy_({in_parts(array)})" for name, array in drawn.items())]


FEW = 2
"""So many parameters are filled by a line each, though all by the same number."""


def _tidy(text: str) -> str:
    """A class without a constructor that does nothing, and without names for what is used at once."""
    text = text.replace("    def __init__(self):\n        super().__init__()\n\n", "")
    head, opening, body = text.partition("    def forward(")
    if not opening or body.count("    def ") or "class " in body:
        return text
    signature, *lines = body.split("\n")
    lines = _given_at_once(_leaked_at_once(inlined([line[8:] for line in lines], "")))
    return "\n".join([f"{head}{opening}{signature}", *(f"        {line}" for line in lines)])


def _leaked_at_once(lines: list[str]) -> list[str]:
    """The lines with what is leaked given both its names in one."""
    result: list[str] = []
    for line in lines:
        before = re.fullmatch(r"(\w+) = (.+)", result[-1]) if result else None
        leaks = before and re.fullmatch(rf"(leaked\[.+\]) = {before[1]}", line)
        if before and leaks and len(line) + len(result[-1]) < LONGEST:
            result[-1] = f"{leaks[1]} = {result[-1]}"
        else:
            result.append(line)
    return result


def _given_at_once(lines: list[str]) -> list[str]:
    """The lines with what a block ends with given back there."""
    last = re.fullmatch(r"( +)(\w+) = (.+)", lines[-2]) if len(lines) > 1 else None
    return [*lines[:-2], f"{last[1]}return {last[3]}"] if last and lines[-1] == f"return {last[2]}" else lines


def _moved(i: Input, device: str) -> str:
    """An input, moved as a leaf of its own."""
    return f'{i.name} = {i.name}.detach().to("{device}")' + (".requires_grad_()" if i.requires_grad else "")


def _input(i: Input, array: Array, topology: Topology, kind: str) -> str:
    dtype = "" if i.domain in WHOLE else i.dtype or topology.dtype
    more = f", dtype=torch.{dtype}" if dtype not in ("", "float32") else ""
    if i.tensor:  # a leaf of its own class or layout, made of a dense tensor
        return as_leaf(i, _dense(i, array, kind, more))
    grad = ", requires_grad=True" if i.requires_grad else ""
    of_numbers = kind == ITS_OWN or i.domain in WHOLE
    return in_parts(array, more, grad) if of_numbers else _dense(i, array, kind, more + grad)


def _dense(i: Input, array: Array, kind: str, more: str) -> str:
    if kind != ITS_OWN and i.domain not in WHOLE:
        function = "torch.ones" if kind == ONES else "torch.randn"
        return f"{function}({', '.join(map(str, array.shape)) or '()'}{more})"
    return tensor(array, more)


def in_parts(array: Array, more: str = "", grad: str = "") -> str:
    """The same; where the numbers are many and each is a whole number of parts of one, those of `PARTS` of one."""
    whole = array.astype(np.float64) * PARTS if array.dtype.kind == "f" else np.empty(0)
    exact = (
        np.isfinite(whole).all() and (whole == np.round(whole)).all() and not (np.signbit(whole) & (whole == 0)).any()
    )
    plain = tensor(array, f"{more}{grad}")
    if len(plain) <= LONG or not whole.size or not exact:
        return plain
    text = f"torch.tensor({whole.astype(int).tolist()!r}{more}) / {PARTS}"
    return f"({text}).requires_grad_()" if grad else text


PARTS, LONG = 32, 60
"""Numbers that are drawn are so many parts of one; from so many characters on that makes a tensor shorter."""


def tensor(array: Array, more: str = "") -> str:
    """The expression that makes a tensor with these numbers."""
    if not array.size:
        return f"torch.zeros({array.shape}{more})"
    counting = array.size > SHORT and np.array_equal(array.reshape(-1), np.arange(1.0, array.size + 1))
    if counting and array.dtype.kind == "f":
        grad = ".requires_grad_()" if "requires_grad" in more else ""
        more = more.replace(", requires_grad=True", "")
        shape = f".reshape{array.shape}" if array.ndim > 1 else ""
        return f"torch.arange(1.0, {array.size + 1}{more}){shape}{grad}"
    return f"torch.tensor({array.tolist()!r}{more})"


def inlined(lines: list[str], named: str) -> list[str]:
    """The lines with each value put where it is used, if that is once and in the very next line of its block."""
    i = 0
    lines = list(lines)
    while i + 1 < len(lines):
        match = re.fullmatch(r"( *)(\w+) = (.+)", lines[i])
        if match and re.match(rf"{match[1]}\S", lines[i + 1]) and _once(match[2], lines, i, named):
            alone = re.fullmatch(r"[\w.]+(\[[^\[\]]*\])*(\(.*\))?", match[3]) or re.search(
                rf"(?:[(\[]|, ){match[2]}[,)\]]", lines[i + 1]
            )
            text = match[3] if alone else f"({match[3]})"
            joined = re.sub(rf"\b{match[2]}\b", lambda _, text=text: text, lines[i + 1])  # type: ignore[misc]
            if len(joined) <= LONGEST:
                lines[i : i + 2] = [joined]
                i = max(0, i - 1)
                continue
        i += 1
    return [re.sub(r"^( *)\w+ = (.+)$", r"\1\2", line) if _unused(line, lines, named) else line for line in lines]


def _once(name: str, lines: list[str], i: int, named: str) -> bool:
    uses = [len(re.findall(rf"\b{name}\b", line)) for line in lines[i + 1 :]]
    leaks = "leaked[" in "".join(lines[i + 1 : i + 2])  # what a call leaks is there once it has run
    return (
        not leaks
        and uses[:1] == [1]
        and sum(uses) == 1
        and not re.search(rf"\b{name}\b", named)
        and ":" not in lines[i + 1][-1:]
    )


def _unused(line: str, lines: list[str], named: str) -> bool:
    """Whether a line calls something and gives a name to what nobody uses."""
    match = re.fullmatch(r" *(\w+) = .+\)", line)
    text = "\n".join([*lines, named])
    return match is not None and len(re.findall(rf"\b{match[1]}\b", text)) == 1
