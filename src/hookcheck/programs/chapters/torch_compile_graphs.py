"""Into what graphs does torch.compile make a module with hooks? Hooks that it traces belong to the module's own.

A module that is compiled is traced with its forward hooks and pre-hooks, and those of its children, into one graph; a
user who asks for ``fullgraph`` relies on it. A graph is no module of the program's, whatever the backend makes of it.
"""

from __future__ import annotations

from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.compiling import BACKENDS, CALL_HOOKS, chain, dynamo, fresh, recording, scaling
from hookcheck.programs.program import program

HOOKS: dict[str, Any] = {
    "register_forward_pre_hook": lambda module, args: (args[0] + 1,),
    "register_forward_hook": lambda module, args, output: output + 1,
}
"""A hook that adds 1, for each of what registers hooks that are traced."""


@program(
    "TC-27",
    PROMISE,
    since="2.1",
    source="torch.compile, fullgraph, 'requires that the entire function be capturable into a single graph'; "
    "pytorch#121695",
)
@fresh()
def a_module_is_one_graph_with_its_hooks(check: Check) -> None:
    """A module and its forward hooks and pre-hooks are compiled into one graph, on the root as on a child, whether the
    module is compiled or a function that calls it."""
    for register, hook in HOOKS.items():
        for place, way in (("root", "a module"), ("root", "a function"), ("child", "a module")):
            dynamo().reset()
            net = chain(1)
            getattr(net if place == "root" else net.parts[0], register)(hook)
            graphs: list[list[str]] = []
            what = net if way == "a module" else lambda x, net=net: net(x)
            call = torch.compile(what, backend=recording(graphs), fullgraph=True)
            fact = f"{register} on the {place}, {way}"
            due = 8.0 if "pre" in register else 7.0  # 2·(3 + 1), and 2·3 + 1
            check.equal(f"{fact}: output", call(torch.tensor(3.0)), due)
            check.calls(f"{fact}: graphs", len(graphs), 1)


@program("TC-29", PROMISE, since="2.6", source=f"{CALL_HOOKS}; torch.nn.modules.module.register_module_forward_hook")
@fresh()
def a_graph_is_no_module_for_hooks_on_all(check: Check) -> None:
    """A lone forward hook or pre-hook on all modules acts in compiled code as without it: it is called for no graph."""
    for backend in BACKENDS:
        for register, hook in HOOKS.items():
            dynamo().reset()
            net = scaling()
            with getattr(nn.modules.module, register.replace("register_", "register_module_"))(hook):
                call = torch.compile(lambda x, net=net: net(x), backend=backend)
                output = check.works(f"{backend}: {register}: it runs", lambda call=call: call(torch.tensor(3.0)))
            due = 8.0 if "pre" in register else 7.0  # 2·(3 + 1), and 2·3 + 1
            if output is not None:
                check.equal(f"{backend}: {register}: output", output, due)
