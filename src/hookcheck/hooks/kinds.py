"""The hook kinds: who registers each, by which expression, since when, and what it is called with. Data only; torch is
not needed.

A new kind is one more declaration in `KINDS`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from hookcheck.errors import HookcheckError
from hookcheck.hooks.acts import NO_ACTS, Acts

DOCS = "https://docs.pytorch.org/docs/stable"

BACKWARD, BACKWARD_PRE, FORWARD_PRE, FORWARD = "backward", "backward_pre", "forward_pre", "forward"
TENSOR, POST_ACCUMULATE, OUTPUT = "tensor", "post_accumulate", "output"
NODE, NODE_PRE, RETAINED, MULTI_GRAD, SAVED = "node", "node_pre", "retained", "multi_grad", "saved"

PARAMETERS = {
    BACKWARD: ("module", "grad_input", "grad_output"),
    BACKWARD_PRE: ("module", "grad_output"),
    FORWARD_PRE: ("module", "args"),
    FORWARD: ("module", "args", "output"),
    TENSOR: ("gradient",),
    OUTPUT: ("gradient",),
    POST_ACCUMULATE: ("leaf",),
    MULTI_GRAD: ("gradients",),
    NODE: ("grad_inputs", "grad_outputs"),
    NODE_PRE: ("grad_outputs",),
    RETAINED: (),
    SAVED: ("tensor",),
}
"""What a hook is called with, by what it is called for; of those on saved tensors the one that packs."""


@dataclass(frozen=True)
class Scope:
    """On what a hook is registered: the expression of the ``owner`` whose attribute the registering function is, None
    where a release has no such owner; and the address of that function in the documentation, with ``{}`` for its name.
    """

    owner: str
    page: str


_OF_TENSOR = Scope("torch.Tensor", f"{DOCS}/generated/torch.Tensor.{{}}.html")
_OF_GRAPH = Scope('getattr(torch.autograd, "graph", None)', f"{DOCS}/autograd.html#torch.autograd.graph.{{}}")

SCOPES = {
    "module": Scope("nn.Module", f"{DOCS}/generated/torch.nn.Module.html#torch.nn.Module.{{}}"),
    "global": Scope("torch.nn.modules.module", f"{DOCS}/generated/torch.nn.modules.module.{{}}.html"),
    "leaf": _OF_TENSOR,
    "leaves": _OF_GRAPH,
    "output": _OF_TENSOR,
    "node": Scope(
        "torch.zeros((), requires_grad=True).exp().grad_fn", f"{DOCS}/generated/torch.autograd.graph.Node.{{}}.html"
    ),
    "run": _OF_GRAPH,
}
"""The scopes by name: every ``module``, or once for all of them (``global``); every ``leaf`` that requires grad, or
once for all of them (``leaves``); by a forward hook every ``output`` of a module, or the ``node`` that made it; all
that the ``run`` does."""


@dataclass(frozen=True)
class HookKind:
    """One way to be called by torch.

    ``call`` is what it is called for and with (one of the words of `PARAMETERS`). ``variant`` is ``legacy`` or ``full``
    for module backward hooks, ``full`` for their pre-hooks, and empty for others. ``scope`` (one of `SCOPES`) is what
    it is registered on, and ``registering`` the expression that registers it: of ``module``, ``leaf``, ``leaves``,
    ``tensor`` or ``node``, as the scope has it, and of ``hook``; one for the ``run`` of ``pack`` and ``unpack``.

    ``since`` is the first release that has it. ``acts`` says what it changes; others look on. What acts is a chain:
    ``then`` is the method by which two more hooks are put on every module, the later of them before the other where
    torch has ``prepend``.
    """

    name: str
    call: str
    variant: str
    scope: str
    registering: str
    since: str
    acts: Acts = NO_ACTS
    then: str = ""

    @cached_property
    def register(self) -> str:
        """The name of the function that registers it."""
        return self.registering.partition("(")[0].rpartition(".")[2]

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The names of the options that it is registered with."""
        return tuple(re.findall(r"\w+(?==)", self.registering))

    @property
    def owner(self) -> str:
        """The expression of what the function that registers it is an attribute of."""
        return SCOPES[self.scope].owner

    @property
    def documentation(self) -> str:
        """The address of the documentation of the function that registers it."""
        return SCOPES[self.scope].page.format(self.register)

    @cached_property
    def kwargs(self) -> bool:
        """Whether it is given the keyword arguments of a call as well."""
        return "with_kwargs" in self.options

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of what it is called with."""
        names = PARAMETERS[self.call]
        return (*names[:2], "kwargs", *names[2:]) if self.kwargs else names

    @cached_property
    def observes(self) -> bool:
        """Whether it returns None."""
        return self.acts == NO_ACTS

    @property
    def backward(self) -> bool:
        """Whether it is called with gradients of a module's inputs or outputs."""
        return self.call in (BACKWARD, BACKWARD_PRE)

    def written(self, **names: str) -> str:
        """The expression that registers it, with other expressions in the place of some names.

        >>> KINDS["output_node"].written(node="y.grad_fn")
        'y.grad_fn.register_hook(hook)'
        """
        pattern = rf"(?<![\w.])({'|'.join(names)})\b(?!=)"
        return re.sub(pattern, lambda name: names[name[0]], self.registering) if names else self.registering


def _kinds() -> tuple[HookKind, ...]:
    of_all = "torch.nn.modules.module.register_module_"
    graph = "torch.autograd.graph."
    return (
        HookKind("backward", BACKWARD, "legacy", "module", "module.register_backward_hook(hook)", "1.7"),
        HookKind("full_backward", BACKWARD, "full", "module", "module.register_full_backward_hook(hook)", "1.8"),
        HookKind("global_backward", BACKWARD, "legacy", "global", f"{of_all}backward_hook(hook)", "1.7"),
        HookKind("global_full_backward", BACKWARD, "full", "global", f"{of_all}full_backward_hook(hook)", "1.8"),
        HookKind(
            "full_backward_pre", BACKWARD_PRE, "full", "module", "module.register_full_backward_pre_hook(hook)", "2.0"
        ),
        HookKind(
            "global_full_backward_pre", BACKWARD_PRE, "full", "global", f"{of_all}full_backward_pre_hook(hook)", "2.0"
        ),
        HookKind("forward_pre", FORWARD_PRE, "", "module", "module.register_forward_pre_hook(hook)", "1.7"),
        HookKind("forward", FORWARD, "", "module", "module.register_forward_hook(hook)", "1.7"),
        HookKind(
            "forward_pre_kwargs", FORWARD_PRE, "", "module",
            "module.register_forward_pre_hook(hook, with_kwargs=True)", "2.0",
        ),
        HookKind(
            "forward_kwargs", FORWARD, "", "module", "module.register_forward_hook(hook, with_kwargs=True)", "2.0"
        ),
        HookKind("global_forward_pre", FORWARD_PRE, "", "global", f"{of_all}forward_pre_hook(hook)", "1.7"),
        HookKind("global_forward", FORWARD, "", "global", f"{of_all}forward_hook(hook)", "1.7"),
        HookKind("tensor", TENSOR, "", "leaf", "leaf.register_hook(hook)", "1.7"),
        HookKind(
            "post_accumulate", POST_ACCUMULATE, "", "leaf", "leaf.register_post_accumulate_grad_hook(hook)", "2.1"
        ),
        HookKind("multi_grad", MULTI_GRAD, "", "leaves", f"{graph}register_multi_grad_hook(leaves, hook)", "2.0"),
        HookKind("output_tensor", OUTPUT, "", "output", "tensor.register_hook(hook)", "1.7"),
        HookKind("output_retain_grad", RETAINED, "", "output", "tensor.retain_grad()", "1.7"),
        HookKind("output_node", NODE, "", "node", "node.register_hook(hook)", "1.7"),
        HookKind("output_node_pre", NODE_PRE, "", "node", "node.register_prehook(hook)", "1.13"),
        HookKind("saved_tensors", SAVED, "", "run", f"{graph}saved_tensors_hooks(pack, unpack)", "1.10"),
        HookKind(
            "acting_full_backward", BACKWARD, "full", "global", f"{of_all}full_backward_hook(hook)", "1.8",
            acts=Acts(grad_input=True), then="register_full_backward_hook",
        ),
        HookKind(
            "acting_full_backward_pre", BACKWARD_PRE, "full", "global", f"{of_all}full_backward_pre_hook(hook)", "2.0",
            acts=Acts(grad_output=True), then="register_full_backward_pre_hook",
        ),
        HookKind(
            "acting_forward_pre", FORWARD_PRE, "", "global", f"{of_all}forward_pre_hook(hook)", "1.7",
            acts=Acts(args=True), then="register_forward_pre_hook",
        ),
        HookKind(
            "acting_forward", FORWARD, "", "global", f"{of_all}forward_hook(hook)", "1.7",
            acts=Acts(outputs=True), then="register_forward_hook",
        ),
    )  # fmt: skip


KINDS = {kind.name: kind for kind in _kinds()}
"""The hook kinds by name, in the order in which reports list them."""


def kind_named(name: str) -> HookKind:
    """The hook kind of that name.

    Raises:
        HookcheckError: there is none.
    """
    if name not in KINDS:
        raise HookcheckError(f"unknown hook kind {name!r}; choose from {', '.join(KINDS)}")
    return KINDS[name]
