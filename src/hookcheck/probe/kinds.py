"""Which hook kinds are there, since when, and by which function is each registered? Data only; torch is not needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hookcheck.errors import HookcheckError
from hookcheck.oracle.acts import NO_ACTS, Acts

BACKWARD, BACKWARD_PRE, FORWARD_PRE, FORWARD = "backward", "backward_pre", "forward_pre", "forward"
TENSOR, POST_ACCUMULATE, OUTPUT = "tensor", "post_accumulate", "output"
NODE, NODE_PRE, RETAINED, MULTI_GRAD, SAVED = "node", "node_pre", "retained", "multi_grad", "saved"


@dataclass(frozen=True)
class HookKind:
    """One way to be called by torch.

    ``call`` is what it is called for and with (one of the words above). ``variant`` is ``legacy`` or ``full`` for
    module backward hooks, ``full`` for their pre-hooks, and empty for others. ``scope`` says what it is registered on:

    * every ``module`` (``register`` is a method of ``nn.Module``), or once for all of them (``global``: ``register`` is
      a function of ``torch.nn.modules.module``);
    * every ``leaf`` (a method of ``Tensor``), or once for all of them (``leaves``: of ``torch.autograd.graph``);
    * every ``output`` of a module, by a forward hook (a method of ``Tensor``), or the ``node`` that made it (a method
      of its ``grad_fn``);
    * all that the ``run`` does (a context manager of ``torch.autograd.graph``).

    ``since`` is the first release that has it. With ``kwargs`` it is registered with ``with_kwargs=True``. ``acts``
    says what it changes; others look on. What acts is a chain: ``then`` is the method by which two more hooks are put
    on every module, the later of them before the other where torch has ``prepend``.
    """

    name: str
    call: str
    variant: str
    scope: str
    register: str
    since: str
    kwargs: bool = False
    acts: Acts = NO_ACTS
    then: str = ""

    @cached_property
    def observes(self) -> bool:
        """Whether it returns None."""
        return self.acts == NO_ACTS

    @property
    def backward(self) -> bool:
        """Whether it is called with gradients of a module's inputs or outputs."""
        return self.call in (BACKWARD, BACKWARD_PRE)


KINDS = {
    kind.name: kind
    for kind in (
        HookKind("backward", BACKWARD, "legacy", "module", "register_backward_hook", "1.7"),
        HookKind("full_backward", BACKWARD, "full", "module", "register_full_backward_hook", "1.8"),
        HookKind("global_backward", BACKWARD, "legacy", "global", "register_module_backward_hook", "1.7"),
        HookKind("global_full_backward", BACKWARD, "full", "global", "register_module_full_backward_hook", "1.8"),
        HookKind("full_backward_pre", BACKWARD_PRE, "full", "module", "register_full_backward_pre_hook", "2.0"),
        HookKind(
            "global_full_backward_pre", BACKWARD_PRE, "full", "global", "register_module_full_backward_pre_hook", "2.0"
        ),
        HookKind("forward_pre", FORWARD_PRE, "", "module", "register_forward_pre_hook", "1.7"),
        HookKind("forward", FORWARD, "", "module", "register_forward_hook", "1.7"),
        HookKind("forward_pre_kwargs", FORWARD_PRE, "", "module", "register_forward_pre_hook", "2.0", kwargs=True),
        HookKind("forward_kwargs", FORWARD, "", "module", "register_forward_hook", "2.0", kwargs=True),
        HookKind("global_forward_pre", FORWARD_PRE, "", "global", "register_module_forward_pre_hook", "1.7"),
        HookKind("global_forward", FORWARD, "", "global", "register_module_forward_hook", "1.7"),
        HookKind("tensor", TENSOR, "", "leaf", "register_hook", "1.7"),
        HookKind("post_accumulate", POST_ACCUMULATE, "", "leaf", "register_post_accumulate_grad_hook", "2.1"),
        HookKind("multi_grad", MULTI_GRAD, "", "leaves", "register_multi_grad_hook", "2.0"),
        HookKind("output_tensor", OUTPUT, "", "output", "register_hook", "1.7"),
        HookKind("output_retain_grad", RETAINED, "", "output", "retain_grad", "1.7"),
        HookKind("output_node", NODE, "", "node", "register_hook", "1.7"),
        HookKind("output_node_pre", NODE_PRE, "", "node", "register_prehook", "1.13"),
        HookKind("saved_tensors", SAVED, "", "run", "saved_tensors_hooks", "1.10"),
        HookKind(
            "acting_full_backward", BACKWARD, "full", "global", "register_module_full_backward_hook", "1.8",
            acts=Acts(grad_input=True), then="register_full_backward_hook",
        ),
        HookKind(
            "acting_full_backward_pre", BACKWARD_PRE, "full", "global", "register_module_full_backward_pre_hook", "2.0",
            acts=Acts(grad_output=True), then="register_full_backward_pre_hook",
        ),
        HookKind(
            "acting_forward_pre", FORWARD_PRE, "", "global", "register_module_forward_pre_hook", "1.7",
            acts=Acts(args=True), then="register_forward_pre_hook",
        ),
        HookKind(
            "acting_forward", FORWARD, "", "global", "register_module_forward_hook", "1.7",
            acts=Acts(outputs=True), then="register_forward_hook",
        ),
    )
}  # fmt: skip
"""The hook kinds by name, in the order in which reports list them."""


def kind_named(name: str) -> HookKind:
    """The hook kind of that name.

    Raises:
        HookcheckError: there is none.
    """
    if name not in KINDS:
        raise HookcheckError(f"unknown hook kind {name!r}; choose from {', '.join(KINDS)}")
    return KINDS[name]
