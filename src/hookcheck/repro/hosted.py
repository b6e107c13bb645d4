"""The script of a clause on a host: that of the clause's program, in which the host makes its modules or optimizers.

What `hookcheck.programs.hosting` puts in the place of names while a program runs is written around what they make.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from hookcheck.contract.clause import CLAUSES
from hookcheck.errors import HookcheckError
from hookcheck.programs.chapters.clauses_on_hosts import on_host
from hookcheck.programs.check import Check
from hookcheck.programs.host_kinds import Kind
from hookcheck.programs.hosting import LAYERS, OPTIMIZERS, untrue
from hookcheck.programs.processes import process_group
from hookcheck.programs.program import WHOLE, Program
from hookcheck.repro.alone import Alone, together
from hookcheck.repro.editing import replaced, written
from hookcheck.repro.program import GIVEN, script_of
from hookcheck.repro.scopes import Scopes
from hookcheck.repro.search import Run

PACKAGE = "hookcheck.programs"
WATCHING = f"{PACKAGE}.watching"
NETS = f"{PACKAGE}.nets"


@dataclass(frozen=True)
class Hosts:
    """Where a clause has its hosts from: a ``table`` of a ``module``; whether they are made in a process group."""

    module: str
    table: str
    in_group: bool = False

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The hosts by name."""
        kinds: Mapping[str, Kind] = getattr(import_module(self.module), self.table)
        return kinds

    def expression(self, host: str) -> ast.expr:
        """How the host makes what it makes, as the table has it."""
        spec = find_spec(self.module)
        assert spec is not None
        assert spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        tables = (n.value for n in tree.body if isinstance(n, ast.Assign) and written(n.targets[0]) == self.table)
        table = next(value for value in tables if isinstance(value, ast.Dict))
        kind = next(v for k, v in zip(table.keys, table.values) if isinstance(k, ast.Constant) and k.value == host)
        assert isinstance(kind, ast.Call)
        return kind.args[0]


HOSTS = {
    "HO-03": Hosts(f"{PACKAGE}.host_kinds", "KINDS"),
    "HO-04": Hosts(f"{PACKAGE}.host_optimizers", "OPTIMIZERS"),
    "HO-07": Hosts(f"{PACKAGE}.host_compiled", "COMPILED"),
    "HO-09": Hosts(f"{PACKAGE}.host_optimizers", "DISTRIBUTED", in_group=True),
}
"""The clauses that hold others to hosts."""


def hosted_script(program: Program, device: str | None, fact: str, run: Run) -> tuple[str, str]:
    """The title and the script of what is not so on a host: ``fact`` is ``host: clause``, or one of that one's facts.

    Raises:
        HookcheckError: no script shows it.
    """
    hosts = HOSTS[program.id]
    host, id, *facts = fact.split(": ", 2)
    one, kind = CLAUSES[id], hosts.kinds[host]
    assert isinstance(one, Program)
    about = facts[0] if facts else next(iter(_deviating(hosts, kind, one, device or "cpu")), WHOLE)
    since = max(one.since, program.since, ".".join(map(str, kind.since)), key=_release)
    statement = f"{host}: {one.statement}"
    of = replace(one, statement=statement, since=since)
    text = script_of(of, device, about, run, _collected(hosts, host, kind, one))
    if run(text)[0] != 1:
        raise HookcheckError(f"no script that shows {program.id} ({fact}) can be written yet")
    return f"{host}: {about}: not as stated: {one.statement}", text


def _release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _deviating(hosts: Hosts, kind: Kind, one: Program, device: str) -> list[str]:
    """The facts that are not so on the host, and are elsewhere."""
    plain = untrue(one, device)
    if hosts.in_group:
        with process_group(Check(device)):
            return [*on_host(kind, one, device, plain)]
    return [*on_host(kind, one, device, plain)]


def _collected(hosts: Hosts, host: str, kind: Kind, one: Program) -> Alone:
    """What the program needs to run on the host, its own function last."""
    make = hosts.expression(host)
    names = [node.id for node in ast.walk(make) if isinstance(node, ast.Name)]
    bound = {argument.arg for node in ast.walk(make) if isinstance(node, ast.Lambda) for argument in node.args.args}
    wanted = [(hosts.module, name) for name in names if name not in bound]
    wanted += [(f"{PACKAGE}.processes", "process_group")] if hosts.in_group else []
    collected = together([*wanted, (one.judge.__module__, one.judge.__name__)], GIVEN)
    function, definition = _function(make, "optimizer" if {*kind.names} <= {*OPTIMIZERS} else "module")
    places = {one.judge.__module__, WATCHING}
    definitions = [
        _hosted(text, kind.names, function) if places & _origins(text, collected) else text
        for text in collected.definitions
    ]
    if hosts.in_group:
        definitions[-1] = _in_group(definitions[-1])
    definitions[-1:-1] = [definition] if definition else []
    return replace(collected, definitions=definitions)


def _origins(text: str, collected: Alone) -> set[str]:
    """The module that a definition is from."""
    nodes = (node for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    return {collected.origins[node.name] for node in nodes if node.name in collected.origins}


def _function(make: ast.expr, given: str) -> tuple[str, str]:
    """The name of the function by which a host makes something of what it is ``given``, and its definition, if any."""
    if isinstance(make, ast.Lambda):
        return "hosted", f"def hosted({ast.unparse(make.args)}):\n    return {written(make.body)}"
    if isinstance(make, ast.Call) and written(make.func) == "partial":
        function, *others = make.args
        call = ast.Call(function, [*others, ast.Name(given)], make.keywords)
        return "hosted", f"def hosted({given}):\n    return {written(call)}"
    return written(make), ""


def _hosted(text: str, makes: tuple[str, ...], function: str) -> str:
    """A definition in which what is made by one of some names is what ``function`` makes of it."""
    while True:
        scopes = Scopes(text)
        node = next((n for n in _making(scopes, makes) if not _is_hosted(scopes, n, function)), None)
        if node is None:
            return text
        call = scopes.parents[node]
        if isinstance(call, ast.Call) and call.func is node:
            text = replaced(text, call, f"{function}({written(call)})")
        else:
            text = replaced(text, node, f"(lambda *args, **options: {function}({written(node)}(*args, **options)))")


def _making(scopes: Scopes, makes: tuple[str, ...]) -> Iterator[ast.expr]:
    """The places at which a text speaks of what makes modules, or optimizers."""
    for node in ast.walk(scopes.tree):
        if isinstance(node, ast.Attribute) and node.attr in makes and written(node.value) in ("nn", "torch.optim"):
            yield node
    for name in sorted({*makes} - {*LAYERS}):
        yield from scopes.loads.get((scopes.tree, name), [])


def _is_hosted(scopes: Scopes, node: ast.expr, function: str) -> bool:
    call = scopes.parents[node]
    around = scopes.parents.get(call)
    return isinstance(around, ast.Call) and written(around.func) == function


def _in_group(text: str) -> str:
    """A program in a process group."""
    head, *body = text.split("\n")
    return "\n".join([head, "    with process_group(check):", *(f"    {line}" if line else "" for line in body)])
