"""What does a topology look like as PyTorch code? The text that people read, and that `build` executes.

There is one rendering, not one for people and one for the machine: what a report prints is what ran.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hookcheck.topology.contexts import CONTEXTS
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Input,
    Leak,
    Module,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Recurse,
    Statement,
    Topology,
    Train,
    Within,
    children,
    inside,
    statements,
    tensor_classes,
    walk,
)
from hookcheck.topology.primitive import Array, Layer, Shape
from hookcheck.topology.tensors import TENSORS
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
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


def definitions_source(topology: Topology) -> str:
    """The classes that its layers and tensors name besides those of torch, each once."""
    layers = (module for _, module in walk(topology.module) if isinstance(module, Layer))
    texts = [text for layer in layers for text in layer.definitions()]
    texts += [TENSORS[name].definitions for name in tensor_classes(topology)]
    return "\n\n\n".join(filter(None, dict.fromkeys(texts)))


def modules_source(topology: Topology) -> str:
    """The definition of every class of its own, the root's last, and the lines that construct ``net``."""
    classes: dict[Composite, str] = {}
    construction = f"net = {_construct(topology.module, 'Net', classes)}"
    definitions = [_class(module, name, classes) for module, name in classes.items()]
    ties = [f"{attribute('net', target)} = {attribute('net', source)}" for target, source in topology.ties]
    mode = [] if topology.training else ["net.eval()"]
    dtype = [] if topology.dtype == "float32" else [f"net.to(torch.{topology.dtype})"]
    frozen = [f"{attribute('net', name)}.requires_grad_(False)" for name in topology.frozen]
    needed = dict.fromkeys(CONTEXTS[name].needs for name in inside(topology) if CONTEXTS[name].needs)
    containers = list(dict.fromkeys(_containers(topology)))
    net = "\n".join([construction, *ties, *mode, *dtype, *frozen])
    return "\n\n\n".join([*needed, *containers, *definitions, net])


def conversions_source(topology: Topology) -> str:
    """The lines that put parameters of classes and layouts in the place of the plain ones, which hold their numbers."""
    lines = (
        f"{attribute('net', name)} = {TENSORS[tensor].as_parameter(attribute('net', name) + '.detach()')}"
        + ".requires_grad_(False)" * (name in topology.frozen)
        for name, tensor in topology.classes
    )
    return "\n".join(lines)


def main_source(topology: Topology, device: str = "cpu") -> str:
    """The statements that call ``net``, compute losses and run backward; contexts that name a device name this one."""
    leaking = any(isinstance(statement, Leak) for statement in statements(topology))
    main = "\n".join([*(["leaked = {}"] if leaking else []), *_lines(topology.main, "net")])
    return main.replace("'cpu'", repr(device))


def source(topology: Topology) -> Source:
    """The topology as PyTorch code, its numbers as literals."""
    numbers = values(topology)
    inputs = {i.name: i for i in topology.inputs}
    parameters = [
        f"{INDENT}{attribute('net', name)}.copy_({literal(array)})"
        for name, array in numbers.items()
        if name not in inputs
    ]
    tensors = [f"{name} = {_input(i, numbers[name], topology)}" for name, i in inputs.items()]
    fill = ["with torch.no_grad():", *parameters] if parameters else []
    modules = "\n\n\n".join(filter(None, [definitions_source(topology), modules_source(topology)]))
    converted = [line for line in conversions_source(topology).split("\n") if line]
    return Source(modules, "\n".join([*fill, *converted, *tensors]), main_source(topology))


def _input(i: Input, array: Array, topology: Topology) -> str:
    dtype = (i.dtype or topology.dtype) if array.dtype.kind in "fc" else ""
    dtype = dtype if dtype != "float32" else ""
    if i.tensor:
        return as_leaf(i, literal(array, dtype))
    return literal(array, dtype, ", requires_grad=True" if i.requires_grad else "")


def as_leaf(i: Input, dense: str) -> str:
    """The expression that makes an input of its class, given that of a dense tensor."""
    made_tensor = TENSORS[i.tensor].make.format(dense)
    return (
        made_tensor
        if TENSORS[i.tensor].constant
        else f"{made_tensor}.requires_grad_({'' if i.requires_grad else False})"
    )


def literal(array: Array, dtype: str = "", more: str = "") -> str:
    """The expression that makes a tensor of an array; an empty one by its shape."""
    settings = (f", dtype=torch.{dtype}" if dtype else "") + more
    return f"torch.tensor({array.tolist()!r}{settings})" if array.size else f"torch.zeros({array.shape}{settings})"


def _containers(topology: Topology) -> Iterator[str]:
    """The definitions of the namedtuples and dataclasses that a program makes."""
    trees: list[Tree] = [m.gives for _, m in walk(topology.module) if isinstance(m, Composite)]
    for statement in statements(topology):
        if isinstance(statement, Call):
            trees += [*statement.args, *(tree for _, tree in statement.kwargs)]
    for pack in (pack for tree in trees for pack in _packs(tree)):
        name = _container_name(pack)
        if pack.kind == "namedtuple":
            yield f"from collections import namedtuple\n\n{name} = namedtuple({name!r}, {list(pack.keys)!r})"
        elif pack.kind == "dataclass":
            body = "\n".join(f"{INDENT}{key}: object" for key in pack.keys)
            yield f"from dataclasses import dataclass\n\n\n@dataclass\nclass {name}:\n{body}"


def _packs(tree: Tree) -> Iterator[Pack]:
    if isinstance(tree, Pack):
        yield tree
        for item in tree.items:
            yield from _packs(item)


def _container_name(pack: Pack) -> str:
    """The name of the class of a namedtuple or dataclass."""
    return "".join(map(str.title, pack.keys)) + ("Tuple" if pack.kind == "namedtuple" else "Data")


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
    if isinstance(module, ParameterList):
        return f"nn.ParameterList([{', '.join(map(_parameter, module.shapes))}])"
    if isinstance(module, ParameterDict):
        return f"nn.ParameterDict({{{', '.join(f'{key!r}: {_parameter(s)}' for key, s in module.shapes)}}})"
    parts = [(key, _construct(child, f"{name}{key.title()}", classes)) for key, child in children(module)]
    if isinstance(module, ModuleDict):
        return f"nn.ModuleDict({{{', '.join(f'{key!r}: {part}' for key, part in parts)}}})"
    listed = ", ".join(part for _, part in parts)
    return f"nn.ModuleList([{listed}])" if isinstance(module, ModuleList) else f"nn.Sequential({listed})"


def _parameter(shape: Shape) -> str:
    return f"nn.Parameter(torch.zeros({shape}))"


def _class_name(attribute: str) -> str:
    return attribute.title().replace("_", "")


def _class(module: Composite, name: str, classes: dict[Composite, str]) -> str:
    positional = [n for n in module.takes if n not in module.keywords]
    signature = ", ".join(["self", *positional, *(["*", *module.keywords] if module.keywords else [])])
    construction = [f"self.{n} = {_parameter(shape)}" for n, shape in module.parameters]
    construction += [f"self.{n} = {_construct(child, _class_name(n), classes)}" for n, child in module.children]
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
            lines += [
                f"with {CONTEXTS[statement.mode].source}:",
                *(INDENT + line for line in _lines(statement.body, owner)),
            ]
        else:
            lines += _line(statement, owner).splitlines()
    return lines


def _line(statement: Statement, owner: str) -> str:
    if isinstance(statement, Call):
        arguments = [*map(expression, statement.args), *(f"{k}={expression(v)}" for k, v in statement.kwargs)]
        target, listed = attribute(owner, statement.target), ", ".join(arguments)
        called = CONTEXTS[statement.context].source if statement.context else "{net}({args})"
        return f"{statement.out} = {called.format(net=target, args=listed)}"
    if isinstance(statement, Apply):
        return f"{statement.out} = {statement.op.source(*map(expression, statement.args))}"
    if isinstance(statement, Leak):
        return f"leaked[{statement.name!r}] = {expression(statement.value)}"
    if isinstance(statement, Recurse):
        depth = statement.depth
        value = expression(statement.value)
        return f"{statement.out} = {owner}({value}, {depth} - 1) if {depth} else {value}"
    if isinstance(statement, Train):
        return f"{attribute(owner, statement.target)}.{'train' if statement.training else 'eval'}()"
    if isinstance(statement, Grad):
        lists = [_list(statement.outputs), _list(statement.inputs)]
        lists += [_list(statement.cotangents)] if statement.cotangents else []
        asked = ", ".join([*lists, *_graph(statement), "allow_unused=True"])
        asking = CONTEXTS[statement.context].source if statement.context else "torch.autograd.grad({asked})"
        return f"{statement.out} = {asking.format(asked=asked)}"
    if isinstance(statement, Backward):
        settings = [f"inputs={_list(statement.inputs)}"] if statement.inputs else []
        settings += _graph(statement)
        held = ", ".join(f"{expression(ref)}.grad" for ref in statement.inputs)
        read = f"\n{statement.out} = ({held},)" if statement.out else ""
        if len(statement.outputs) == 1:
            cotangents = [expression(c) for c in statement.cotangents]
            return f"{expression(statement.outputs[0])}.backward({', '.join([*cotangents, *settings])}){read}"
        cotangents = [_list(statement.cotangents)] if statement.cotangents else []
        return f"torch.autograd.backward({', '.join([_list(statement.outputs), *cotangents, *settings])}){read}"
    raise TypeError(f"{type(statement).__name__} is no simple statement")


def _graph(statement: Backward | Grad) -> list[str]:
    return [f"{name}=True" for name in ("retain_graph", "create_graph") if getattr(statement, name)]


def attribute(owner: str, target: str) -> str:
    """``self.blocks[0].fc`` for the dotted path ``blocks.0.fc``."""
    parts = target.split(".") if target else []
    return owner + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def expression(tree: Tree) -> str:
    """A value, a literal or a container of them, as a Python expression."""
    if isinstance(tree, Ref):
        owner, _, target = tree.name.partition(".")
        return attribute(owner, target) + "".join(map(_subscript, tree.path))
    if isinstance(tree, Literal):
        return repr(tree.value)
    items = [expression(item) for item in tree.items]
    if tree.kind == "dict":
        return "{" + ", ".join(f"{key!r}: {item}" for key, item in zip(tree.keys, items)) + "}"
    if tree.kind == "list":
        return f"[{', '.join(items)}]"
    if tree.kind == "tuple":
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return f"{_container_name(tree)}({', '.join(items)})"


def _subscript(part: int | str) -> str:
    return part if isinstance(part, str) and part.startswith(".") else f"[{part!r}]"


def _list(refs: tuple[Ref, ...]) -> str:
    return f"[{', '.join(map(expression, refs))}]"
