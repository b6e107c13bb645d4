"""Which places of torch take hooks? One table: how a hook is registered there, with what it is called, and since when.

A test holds the table complete: whatever torch has that registers a hook stands here, or is left out for a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Release = tuple[int, int]


@dataclass(frozen=True)
class HookSite:
    """A place that takes hooks.

    ``register`` is the expression that registers a ``{hook}`` there. ``table`` names the table that the hook goes into,
    which other sites may share, and ``where`` is the module that the hook is on, if any. Of its arguments the hook
    notes what ``shows`` says (see `hookcheck.programs.situations.bench.shown`). Hooks of one ``lane`` are called in an
    order that is promised. Since ``prepends`` a hook can go before others. What is on the ``graph`` of a call goes with
    it. A hook with ``always`` is called where a call raises, one with ``kwargs`` gets keyword arguments, and a
    ``legacy`` one excludes full ones.
    """

    name: str
    register: str
    table: str
    lane: str
    shows: str
    since: Release = (1, 7)
    where: str = ""
    graph: bool = False
    prepends: Release | None = None
    always: bool = False
    kwargs: bool = False
    legacy: bool = False

    @property
    def full(self) -> bool:
        """Whether it is of the family that excludes legacy hooks."""
        return self.table.startswith("full_backward")


CALLS: dict[str, Release] = {
    "forward_pre": (1, 7), "forward": (1, 7), "full_backward_pre": (2, 0), "full_backward": (1, 8),
}  # fmt: skip
STATE: dict[str, tuple[str, Release]] = {
    "register_state_dict_pre_hook": ("state_dict_pre", (2, 0)),
    "_register_state_dict_hook": ("state_dict", (1, 7)),
    "register_state_dict_post_hook": ("state_dict", (2, 5)),
    "_register_load_state_dict_pre_hook": ("load_pre", (1, 11)),
    "register_load_state_dict_pre_hook": ("load_pre", (2, 5)),
    "register_load_state_dict_post_hook": ("load_post", (1, 13)),
}
OPTIMIZER: dict[str, tuple[Release, Release | None]] = {
    "step_pre": ((2, 0), None),
    "step_post": ((2, 0), None),
    "state_dict_pre": ((2, 2), (2, 2)),
    "state_dict_post": ((2, 2), (2, 2)),
    "load_state_dict_pre": ((2, 2), (2, 2)),
    "load_state_dict_post": ((2, 2), (2, 2)),
}
"""What registers hooks of which table, since which release, and since which before others."""


def _on_modules() -> Iterator[HookSite]:
    for where, module in (("net", "net"), ("net[0]", "part(net, 0)")):
        for kind, since in CALLS.items():
            register = f"{module}.register_{kind}_hook({{hook}})"
            yield HookSite(f"{kind} of {where}", register, kind, "calls", "values", since, where, prepends=(2, 0))
        register = f"{module}.register_backward_hook({{hook}})"
        yield HookSite(f"backward of {where}", register, "backward", "legacy", "owners", where=where, legacy=True)
        register = f"{module}.register_forward_hook({{hook}}, always_call=True)"
        name, since = f"always called forward of {where}", (2, 1)
        yield HookSite(name, register, "forward", "calls", "values", since, where, prepends=(2, 1), always=True)
        for name, (table, since) in STATE.items():
            options = ", with_module=True" if name == "_register_load_state_dict_pre_hook" else ""
            register = f"{module}.{name}({{hook}}{options})"
            yield HookSite(f"{name} of {where}", register, table, "state", "owners", since, where)
    for kind in ("forward_pre", "forward"):
        register = f"part(net, 0).register_{kind}_hook({{hook}}, with_kwargs=True)"
        name, since = f"{kind} with kwargs", (2, 0)
        yield HookSite(name, register, kind, "calls", "values", since, "net[0]", prepends=(2, 0), kwargs=True)


def _on_all_modules() -> Iterator[HookSite]:
    prefix = "nn.modules.module.register_module"
    for kind, since in CALLS.items():
        yield HookSite(
            f"{kind} of all modules", f"{prefix}_{kind}_hook({{hook}})", f"{kind} of all", "calls", "values", since
        )
    register = f"{prefix}_backward_hook({{hook}})"
    yield HookSite("backward of all modules", register, "backward of all", "legacy", "owners", legacy=True)
    register = f"{prefix}_forward_hook({{hook}}, always_call=True)"
    name = "always called forward of all modules"
    yield HookSite(name, register, "forward of all", "calls", "values", (2, 1), always=True)
    register = f"{prefix}_forward_hook({{hook}}, with_kwargs=True)"
    yield HookSite(
        "forward with kwargs of all modules", register, "forward of all", "calls", "values", (2, 6), kwargs=True
    )
    for what in ("buffer", "parameter", "module"):
        register, name = f"{prefix}_{what}_registration_hook({{hook}})", f"{what} registration"
        yield HookSite(name, register, name, "registration", "names", (2, 0))


def _in_the_graph() -> Iterator[HookSite]:
    hook, pre, post = "register_hook({hook})", "register_prehook({hook})", "register_post_accumulate_grad_hook({hook})"
    weight, node, multi = "leaf(net)", "accumulator(leaf(net))", "torch.autograd.graph.register_multi_grad_hook"
    yield HookSite("input", f"x.{hook}", "tensor x", "x", "values")
    yield HookSite("parameter", f"{weight}.{hook}", "tensor w", "w", "values")
    yield HookSite("output", f"y.{hook}", "tensor y", "y", "values", graph=True)
    yield HookSite("post-accumulate of input", f"x.{post}", "accumulated x", "x", "grad", (2, 1))
    yield HookSite("post-accumulate of parameter", f"{weight}.{post}", "accumulated w", "w", "grad", (2, 1))
    yield HookSite("Node of output", f"y.grad_fn.{hook}", "node y", "y", "last", graph=True)
    yield HookSite("pre-hook of Node of output", f"y.grad_fn.{pre}", "node_pre y", "y", "last", (2, 0), graph=True)
    yield HookSite("accumulating Node", f"{node}.{hook}", "node w", "w", "last")
    yield HookSite("pre-hook of accumulating Node", f"{node}.{pre}", "node_pre w", "w", "last", (2, 0))
    yield HookSite("all gradients", f"{multi}([x, {weight}], {{hook}})", "multi", "multi", "values", (2, 0))
    yield HookSite("any gradient", f'{multi}([x, {weight}], {{hook}}, mode="any")', "any", "any", "", (2, 3))
    yield HookSite("pack", "Entered({hook}, same)", "pack", "pack", "once", (1, 10))
    yield HookSite("unpack", "Entered(same, {hook})", "unpack", "unpack", "once", (1, 10))


def _on_optimizers() -> Iterator[HookSite]:
    for kind, (since, prepends) in OPTIMIZER.items():
        register, table = f"optimizer.register_{kind}_hook({{hook}})", f"optimizer {kind}"
        yield HookSite(f"optimizer's {kind}", register, table, "optimizer", "owners", since, prepends=prepends)
    for kind in ("step_pre", "step_post"):
        register = f'import_module("torch.optim.optimizer").register_optimizer_{kind}_hook({{hook}})'
        yield HookSite(f"{kind} of all optimizers", register, f"{kind} of all", "optimizer", "owners", (2, 0))


SITES = {site.name: site for site in (*_on_modules(), *_on_all_modules(), *_in_the_graph(), *_on_optimizers())}
"""The sites by name."""

LANES: dict[str, list[str]] = {}
"""The names of the sites of each lane."""
for _site in SITES.values():
    LANES.setdefault(_site.lane, []).append(_site.name)

BY_CLAUSE: dict[str, tuple[str, ...]] = {
    "SI-01": ("calls", "legacy"),
    "SI-02": ("state",),
    "SI-03": ("registration",),
    "SI-04": ("x", "w", "y", "multi", "any", "pack", "unpack"),
    "SI-05": ("optimizer",),
}
"""The lanes of the hooks that each clause on situations speaks of."""

LEFT_OUT = {
    "torch.Tensor.retain_grad": "it calls nothing; sequences have it as an act, and networks as a hook kind",
    "torch.autograd.graph.save_on_cpu": "a context of its own: what it packs is its own affair",
    "torch.autograd.graph.Node.register_hook": "the Node of an output and that of a parameter stand for all",
    "torch.autograd.graph.Node.register_prehook": "the Node of an output and that of a parameter stand for all",
}
"""What registers hooks and stands under another name, with the reason."""
