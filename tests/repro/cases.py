"""Networks and records that show what scripts must cope with, and what running a script gives."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import sys
import warnings
from types import ModuleType

import hookcheck.clauses  # noqa: F401 -- declares the clauses
from hookcheck.contract.clause import CLAUSES
from hookcheck.contract.verdict import CaseResult, Deviation
from hookcheck.probe.garbage import young
from hookcheck.probe.state import preserved
from hookcheck.programs.processes import groups_closed
from hookcheck.programs.program import Program
from hookcheck.record.model import (
    CorpusFile,
    Counterexample,
    Footer,
    Header,
    Plan,
    PlannedClause,
    Record,
    Torch,
    tally,
)
from hookcheck.repro.choice import optimizers_preserved
from hookcheck.repro.writers import WRITERS
from hookcheck.topology.codec import encode, identify
from hookcheck.topology.layers.activation import Sigmoid
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.padding import ConstantPad1d
from hookcheck.topology.model import Apply, Backward, Call, Composite, Grad, Input, Leak, Sequential, Topology, Within
from hookcheck.topology.ops import Add
from hookcheck.topology.ops.complex import Complex
from hookcheck.topology.ops.elementwise import Neg
from hookcheck.topology.ops.inplace import AddInplace
from hookcheck.topology.ops.joining import Split
from hookcheck.topology.ops.moving import To
from hookcheck.topology.source import source
from hookcheck.topology.tree import Literal, Pack, Ref

ON_NETWORKS = {id: clause for id, clause in CLAUSES.items() if not isinstance(clause, Program)}
"""The clauses that are no programs."""

PROGRAMS = {id: clause for id, clause in CLAUSES.items() if isinstance(clause, Program)}
"""Those that are."""

MORE = {
    "systems": "whole programs are held to the oracle, which is NumPy's",
    "WN-02": "the model is torchvision's",
}
"""The chapters and programs that need more than torch, and for what."""

SCRIPTED = [p for p in PROGRAMS.values() if not {p.chapter, p.id} & MORE.keys() and p.id not in WRITERS]
"""The programs whose scripts are their own source."""

PAIR = Pack("tuple", (Ref("a"), Ref("b")))

LINEAR = Topology(
    Linear(2, 1),
    (Input("x", (2, 2), requires_grad=True), Input("v_y", (2, 1))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v_y"),))),
)

MIXED = Topology(
    Composite(
        (("stem", Linear(2, 3)), ("fc", Linear(2, 3)), ("act", Sigmoid()), ("aside", Sigmoid())),
        ("a", "b", "scale"),
        (
            Call("p", "stem", (Ref("a"),)),
            Call("q", "fc", (Ref("b"),)),
            Within("no_grad", (Call("r", "aside", (Ref("b"),)),)),
            Apply("s", Add(), (Ref("p"), Ref("q"))),
            Leak("s", Ref("s")),
            Call("t", "act", (Ref("s"),)),
        ),
        Ref("t"),
    ),
    (Input("a", (2, 2)), Input("b", (2, 2), requires_grad=True), Input("v", (2, 3))),
    (Call("y", "", (Ref("a"), Ref("b"), Literal(2.0))), Backward((Ref("y"),), (Ref("v"),))),
    frozen=("stem.weight", "stem.bias"),
)
"""A frozen stem on plain data, a part without grad mode, an argument that is no tensor, a leak."""

PACKED = Topology(
    Composite(
        (("fc", Linear(2, 2)),),
        ("x",),
        (Call("h", "fc", (Ref("x"),)),),
        Pack("tuple", (Ref("h"), Literal(None), Pack("dict", (Ref("h"),), ("again",)))),
    ),
    (Input("x", (1, 2), requires_grad=True), Input("v", (1, 2))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y", (0,)),), (Ref("v"),))),
)
"""Outputs in containers, one of them None."""

SHARED = Topology(
    Sequential((Linear(2, 2), Sigmoid(), Linear(2, 2))),
    (Input("x", (3, 2), requires_grad=True), Input("v", (3, 2))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))),
    ties=(("2", "0"),),
)
"""One layer in two places, so that its hook is due twice."""

UNLIKE = Topology(
    Composite(
        (("fc", Linear(2, 2)),),
        ("a", "b"),
        (
            Call("p", "fc", (Ref("a"),)),
            Call("q", "fc", (Ref("b"),)),
            Apply("s", Add(), (Ref("p"), Ref("q"))),
        ),
        Ref("s"),
    ),
    (Input("a", (2, 2)), Input("b", (2, 2), requires_grad=True), Input("v", (2, 2))),
    (Call("y", "", (Ref("a"), Ref("b"))), Backward((Ref("y"),), (Ref("v"),))),
    dtype="float32",
)
"""One layer called twice, due once under each firing rule."""

AGAIN = Topology(
    Sequential((Linear(2, 1), Sigmoid())),
    (Input("x", (3, 2), requires_grad=True), Input("v", (3, 1)), Input("w", (3, 1))),
    (
        Call("y", "", (Ref("x"),)),
        Backward((Ref("y"),), (Ref("v"),), retain_graph=True),
        Backward((Ref("y"),), (Ref("w"),)),
    ),
)
"""Two backward passes through one graph."""

KEYED = Topology(
    Composite(
        (("fc", Linear(2, 2)),),
        ("x",),
        (Call("h", "fc", (Ref("x"),)), Apply("g", Neg(), (Ref("h"),))),
        Pack("namedtuple", (Ref("h"), Pack("dataclass", (Ref("g"),), ("of",))), ("plain", "boxed")),
    ),
    (Input("x", (1, 2), requires_grad=True), Input("v", (1, 2))),
    (
        Call("y", "", (Ref("x"),)),
        Grad("d", (Ref("y", (0,)),), (Ref("x"),), (Ref("v"),), retain_graph=True),
        Backward((Ref("y", (1, ".of")),), (Ref("v"),)),
    ),
)
"""Outputs in a namedtuple and in a dataclass, and a gradient that is asked for."""

WRITTEN = Topology(
    Composite(
        (("fc", Linear(2, 2)), ("act", Sigmoid())),
        ("x",),
        (
            Call("h", "fc", (Ref("x"),)),
            Leak("h", Ref("h")),
            Apply("g", AddInplace(), (Ref("h"), Ref("x"))),
            Call("y", "act", (Ref("g"),)),
        ),
        Ref("y"),
    ),
    (Input("x", (2, 2), requires_grad=True), Input("v", (2, 2))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))),
)
"""An output of a module that is written to in place."""

TYPED = Topology(
    Composite(
        (("fc", Linear(2, 2)), ("part", Sigmoid())),
        ("x", "z"),
        (
            Call("h", "fc", (Ref("x"),)),
            Apply("c", Complex(), (Ref("h"), Ref("h"))),
            Apply("b", To("bfloat16"), (Ref("h"),)),
            Call("p", "part", (Ref("b"),)),
        ),
        Pack("tuple", (Ref("h"), Ref("c"), Ref("p"), Ref("z"))),
    ),
    (
        Input("x", (2, 2), requires_grad=True),
        Input("z", (2, 0), requires_grad=True),
        Input("v", (2, 2)),
        Input("w", (2, 2), domain="complex", dtype="complex64"),
        Input("u", (2, 2), dtype="bfloat16"),
    ),
    (
        Call("y", "", (Ref("x"), Ref("z"))),
        Backward((Ref("y", (0,)), Ref("y", (1,)), Ref("y", (2,))), (Ref("v"), Ref("w"), Ref("u"))),
    ),
    dtype="float32",
)
"""Outputs of three dtypes, one of them coarse, and an empty tensor that nothing uses."""

DOUBT = Topology(
    Composite(
        (("pair", Composite((), ("x",), (Apply("a", Neg(), (Ref("x"),)), Apply("b", Neg(), (Ref("x"),))), PAIR)),),
        ("x",),
        (Call("p", "pair", (Ref("x"),)), Call("q", "pair", (Ref("p", (1,)),))),
        Pack("tuple", (Ref("p", (0,)), Ref("q", (0,)), Ref("q", (1,)))),
    ),
    (Input("x", (2,), requires_grad=True), Input("v", (2,))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y", (0,)),), (Ref("v"),))),
)
"""Outputs that have zeros for gradients or None, and a call that need not come, of a module that is called twice."""

DOUBLED = Topology(
    Sequential((Linear(2, 1), Sigmoid())),
    (Input("x", (2, 2), requires_grad=True), Input("v", (2, 1)), Input("w", (2, 2))),
    (
        Call("y", "", (Ref("x"),)),
        Grad("d", (Ref("y"),), (Ref("x"),), (Ref("v"),), create_graph=True),
        Backward((Ref("d", (0,)),), (Ref("w"),)),
    ),
)
"""A backward through a backward."""

LEAKED = Topology(
    Composite((), ("x",), (Apply("h", Neg(), (Ref("x"),)), Leak("h", Ref("h"))), Ref("h")),
    (Input("x", (2,), requires_grad=True), Input("v", (2,))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))),
)
"""What a module gives leaks from within it: without hooks it is the same object as its output."""

EMPTY = Topology(
    Composite(
        (("a", ConstantPad1d(-1, 0.0, unbatched=True)),),
        ("x",),
        (Call("g", "a", (Ref("x"),)), Apply("h", Split((0, 1), 0), (Ref("g"),))),
        Ref("h", (0,)),
    ),
    (Input("x", (1, 3), requires_grad=True), Input("v", (0, 1))),
    (Call("y", "", (Ref("x"),)), Backward((Ref("y"),), (Ref("v"),))),
)
"""What the layer gives has its input's strides, a view in its place others, and so has the part without entries."""

BY_HAND = {
    "linear": LINEAR,
    "mixed": MIXED,
    "packed": PACKED,
    "shared": SHARED,
    "unlike": UNLIKE,
    "again": AGAIN,
    "keyed": KEYED,
    "written": WRITTEN,
    "typed": TYPED,
    "doubt": DOUBT,
    "doubled": DOUBLED,
    "leaked": LEAKED,
}


def record_with(topology: Topology) -> Record:
    """A sound record with two cases: ``topology`` deviates, and so does a program, which has no content."""
    id = identify(topology)
    deviation = Deviation("GI-01", "net#0", "wrong values", "1.0", "0.0")
    case = CaseResult("multi-node", id, "backward", "exploration", "ran", "", {"GI-01": 1}, (deviation,))
    wrong = Deviation("BW-10", "a fact", "wrong values", "1.0", "0.0")
    performed = CaseResult("program", "BW-10", "firing", "corpus", "ran", "", {"BW-10": 1}, (wrong,))
    clauses = tuple(
        PlannedClause(id, "promise", "It holds.", "1.8", "docs", (kind,))
        for id, kind in (("BW-10", "firing"), ("GI-01", "backward"))
    )
    files = {"multi-node": CorpusFile(0, "ab12")}
    plan = Plan("default", 0, ("multi-node", "program"), ("backward", "firing"), clauses, files, 1)
    environment = {"python": "3.11.7", "platform": "Linux", "numpy": "2.1.0", "hypothesis": "6.170", "pytest": "9.2"}
    return Record(
        Header("0.1.0", "2026-11-21T04:40:00Z", environment, Torch("2.13.0+cpu", "0123abc", None), "cpu", plan),
        (performed, case),
        (Counterexample("BW-10", {}, "a program"), Counterexample(id, encode(topology), source(topology).script())),
        Footer("2026-11-21T04:41:00Z", True, "", tally((performed, case)), 0),
    )


def executed(script: str) -> tuple[int, str]:
    """Exit code and last words of a script, run in this process, which is left as it was."""
    out, err = io.StringIO(), io.StringIO()
    module = ModuleType("reproduced")  # pickle looks up in its module what a script defines, TorchScript reads it
    module.__file__ = f"{module.__name__}.py"
    linecache.cache[module.__file__] = (len(script), None, script.splitlines(keepends=True), module.__file__)
    sys.modules[module.__name__] = module
    with (
        young(),
        preserved(),
        groups_closed(),
        optimizers_preserved(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            exec(compile(script, module.__file__, "exec"), vars(module))
        except SystemExit as end:
            return (1, end.code) if isinstance(end.code, str) else (int(end.code or 0), out.getvalue())
        finally:
            del sys.modules[module.__name__]
    return 0, out.getvalue()


def limits(text: str) -> None:
    """A script is short, and needs torch and the standard library alone."""
    lines = text.rstrip("\n").split("\n")
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)
    names = {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
    assert {name.partition(".")[0] for name in names} <= {"torch", *getattr(sys, "stdlib_module_names", names)}
    assert "hookcheck" not in text
