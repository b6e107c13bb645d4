"""What does a topology look like as PyTorch code? The text that people read, and that `build` executes.

There is one rendering, not one for people and one for the machine: what a report prints is what ran.
"""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.topology.model import (
    Apply,
    Array,
    Backward,
    Call,
    Composite,
    Layer,
    Leak,
    Literal,
    Module,
    Ref,
    Sequential,
    Statement,
    Topology,
    Tree,
    Within,
    children,
)
from hookcheck.topology.values import values

INDENT = "    "


@dataclass(frozen=True)
class Source:
    """The parts of a topology's program, each some lines of Python over the names of the parts before it.

    ``modules`` defines the classes and binds ``net``; ``main`` calls it and runs backward. Between the two, the tensors
    of `data` are put in place.
    """

    modules: str
    data: str
    main: str

    def script(self) -> str:
        """The whole program, which needs nothing but torch."""
        return f"import torch\nfrom torch import nn\n\n\n{self.modules}\n\n{self.data}\n\n{self.main}\n"


def modules_source(topology: Topology) -> str:
    """The definition of every module class, outermost last, and the line that constructs ``net``."""
    classes: dict[Composite, str] = {}
    construction = f"net = {_construct(topology.module, 'Net', classes)}"
    definitions = [_class(module, name, classes) for module, name in classes.items()]
    ties = [f"{_attribute('net', target)} = {_attribute('net', source)}" for target, source in topology.ties]
    mode = [] if topology.training else ["net.eval()"]
    dtype = [] if topology.dtype == "float32" else [f"net.to(torch.{topology.dtype})"]
    frozen = [f"{_attribute('net', name)}.requires_grad_(False)" for name in topology.frozen]
    return "\n\n\n".join([*definitions, "\n".join([construction, *ties, *mode, *dtype, *frozen])])


def main_source(topology: Topology) -> str:
    """The statements that call ``net``, compute losses and run backward."""
    leaks = ["leaked = {}"] if "leaked[" in modules_source(topology) else []
    return "\n".join([*leaks, *_lines(topology.main, "net")])


def source(topology: Topology) -> Source:
    """The topology as PyTorch code, its numbers as literals."""
    numbers = values(topology)
    inputs = {i.name: i for i in topology.inputs}
    parameters = [
        f"{INDENT}{_attribute('net', name)}.copy_(torch.tensor({literal(array)}))"
        for name, array in numbers.items()
        if name not in inputs
    ]
    dtype = "" if topology.dtype == "float32" else f", dtype=torch.{topology.dtype}"
    tensors = [
        f"{name} = torch.tensor({literal(numbers[name])}{dtype}{', requires_grad=True' if i.requires_grad else ''})"
        for name, i in inputs.items()
    ]
    fill = ["with torch.no_grad():", *parameters] if parameters else []
    return Source(modules_source(topology), "\n".join([*fill, *tensors]), main_source(topology))


def literal(array: Array) -> str:
    """An array as a nested Python list."""
    return repr(array.tolist())


def _construct(module: Module, name: str, classes: dict[Composite, str]) -> str:
    """The expression that constructs ``module``; class definitions that it needs are added to ``classes``."""
    if isinstance(module, Layer):
        return module.source()
    if isinstance(module, Composite):
        for child_name, child in children(module):
            _construct(child, _class_name(child_name), classes)
        if module not in classes:
            taken = set(classes.values())
            classes[module] = next(n for n in (name, *(f"{name}{i}" for i in range(2, 99))) if n not in taken)
        return f"{classes[module]}()"
    parts = [_construct(child, f"{name}{i}", classes) for i, child in children(module)]
    listed = ", ".join(parts)
    return f"nn.Sequential({listed})" if isinstance(module, Sequential) else f"nn.ModuleList([{listed}])"


def _class_name(attribute: str) -> str:
    return attribute.title().replace("_", "")


def _class(module: Composite, name: str, classes: dict[Composite, str]) -> str:
    positional = [n for n in module.takes if n not in module.keywords]
    signature = ", ".join(["self", *positional, *(["*", *module.keywords] if module.keywords else [])])
    construction = [f"self.{n} = {_construct(child, _class_name(n), classes)}" for n, child in module.children]
    lines = [
        f"class {name}(nn.Module):",
        f"{INDENT}def __init__(self):",
        f"{INDENT * 2}super().__init__()",
        *(INDENT * 2 + line for line in construction),
        "",
        f"{INDENT}def forward({signature}):",
        *(INDENT * 2 + line for line in _lines(module.body, "self")),
        f"{INDENT * 2}return {expression(module.gives)}",
    ]
    return "\n".join(lines)


def _lines(body: tuple[Statement, ...], owner: str) -> list[str]:
    """The lines of a body; ``owner`` is what its call targets are attributes of."""
    lines: list[str] = []
    for statement in body:
        if isinstance(statement, Within):
            lines += [f"with torch.{statement.mode}():", *(INDENT + line for line in _lines(statement.body, owner))]
        else:
            lines.append(_line(statement, owner))
    return lines


def _line(statement: Statement, owner: str) -> str:
    if isinstance(statement, Call):
        arguments = [*map(expression, statement.args), *(f"{k}={expression(v)}" for k, v in statement.kwargs)]
        return f"{statement.out} = {_attribute(owner, statement.target)}({', '.join(arguments)})"
    if isinstance(statement, Apply):
        return f"{statement.out} = {statement.op.source(*map(expression, statement.args))}"
    if isinstance(statement, Leak):
        return f"leaked[{statement.name!r}] = {expression(statement.value)}"
    if isinstance(statement, Backward):
        settings = [f"inputs={_list(statement.inputs)}"] if statement.inputs else []
        settings += ["retain_graph=True"] if statement.retain_graph else []
        if len(statement.outputs) == 1:
            cotangents = [expression(c) for c in statement.cotangents]
            return f"{expression(statement.outputs[0])}.backward({', '.join([*cotangents, *settings])})"
        cotangents = [_list(statement.cotangents)] if statement.cotangents else []
        return f"torch.autograd.backward({', '.join([_list(statement.outputs), *cotangents, *settings])})"
    raise TypeError(f"{type(statement).__name__} is no simple statement")


def _attribute(owner: str, target: str) -> str:
    """``self.blocks[0].fc`` for the dotted path ``blocks.0.fc``."""
    parts = target.split(".") if target else []
    return owner + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def expression(tree: Tree) -> str:
    """A value, a literal or a container of them, as a Python expression."""
    if isinstance(tree, Ref):
        return tree.name + "".join(f"[{part!r}]" for part in tree.path)
    if isinstance(tree, Literal):
        return repr(tree.value)
    items = [expression(item) for item in tree.items]
    if tree.kind == "dict":
        return "{" + ", ".join(f"{key!r}: {item}" for key, item in zip(tree.keys, items)) + "}"
    if tree.kind == "list":
        return f"[{', '.join(items)}]"
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _list(refs: tuple[Ref, ...]) -> str:
    return f"[{', '.join(map(expression, refs))}]"
