"""What keeps something from being drawn or judged, and why? Every such condition stands here, by where it is written.

A test finds the conditions in the source, and fails on one that is not here. What a case is *not offered* or *not run*
for stands in its record besides; what is kept out of a family is drawn in another, or a clause speaks of it, or an
entry of the ledger does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KeptOut:
    """Why a condition keeps something out; ``clauses`` are those that speak of it all the same, ``entries`` those of
    the ledger that describe the fault of torch which it is there for."""

    why: str
    clauses: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


_ABSENT = KeptOut("the clause speaks of gradients, arguments or calls, and there are none")
_RAISED = ("OB-01", "BW-02", "BW-03", "NG-01")
_FIRST_CALL = "the clause counts all calls of a module at once, at the first of them"

KEPT_OUT: dict[str, KeptOut] = {
    # Drawn otherwise: families.
    "families.double_backward.stepped NORMS": KeptOut(
        "over an axis of length 1 a normalisation gives a constant: what its gradient's gradient is, rounding decides"
    ),
    "families.mixed_dtype.COMPLEX APART": KeptOut("the table APART has a reason for each layer and operation"),
    "families.mixed_dtype.complex_steps filter": KeptOut("complex tensors reach only what takes them"),
    "families.no_grad_evaluation._any_layers SHORTENED": KeptOut(
        "without gradients a transformer goes past its children, and none of their hooks is called; programs speak of "
        "that fast path",
        clauses=("CP-03", "CP-02"),
        entries=("fastpath-linear-hooks", "pytorch-132700"),
    ),
    "families.compiled.WAYS MODULES": KeptOut("a module that torch.compile gives is called as the root"),
    "families.context.OFFERED COMPILING": KeptOut("the family compiled is about them; they are slow"),
    "families.context.fits TRANSFORMING": KeptOut(
        "vmap, DTensors and forward mode lack steps, which ones depends on the release, and say so aloud"
    ),
    "families.tensors_in_contexts REFUSED": KeptOut("the table REFUSED has a reason for each context and class"),
    "families.fitting.shapes_for filter": KeptOut("a layer is given shapes that it takes"),
    "families.single_layer.topologies WHOLE": KeptOut("integers and masks have no gradient"),
    "families.mixed_dtype._cast REAL": KeptOut("what is complex is given back as real numbers by its own operations"),
    # Drawn from the release on in which a layer is right: what it does before, programs tell.
    **{
        f"layers.{place}": KeptOut(
            "its numbers, or their memory, are wrong before", clauses=(id,), entries=tuple(entries)
        )
        for place, id, *entries in (
            ("transposed.since", "LY-01", "transposed-convolution-of-single-elements"),
            ("transposed.unbatched_since", "LY-06", "output-size-without-a-batch"),
            ("convolution.since", "LY-02", "three-dimensional-convolution-of-single-elements"),
            ("convolution.unbatched_since", "LY-08", "circle-without-a-batch-on-1.11", "circle-without-a-batch"),
            ("pooling_windows.since", "LY-03", "windows-past-the-input"),
            ("distance.since", "LY-04", "cosine-of-a-zero-vector"),
            ("loss_elementwise.since", "LY-05", "gaussian-loss-sums-within-samples"),
            ("transformer_layer.since", "LY-07", "encoder-layer-without-bias-raises"),
        )
    },
    # Not run at all, and told in the record.
    "probe.run.unavailable": KeptOut("this torch cannot run the network: the record says what came with which release"),
    "probe.run.lacking": KeptOut("this torch has no hooks of that kind: the record says since when there are"),
    "probe.run.unsafe": KeptOut(
        "registering a hook on a view that was written to can end the process (pytorch#196459); a program does it in a "
        "process of its own",
        clauses=("IP-07",),
        entries=("pytorch-196459",),
    ),
    "networks.examine about": KeptOut("the network is about another device, which the record says"),
    # Run, and not judged.
    "networks.examine expected.worked_out": KeptOut(
        "hooks that act change a gradient which is itself differentiated, or leave the domain of a layer's formula"
    ),
    "networks.examine expected.overflows": KeptOut(
        "a number is too large for its dtype, or up to 1.9 a variance is lost in it"
    ),
    "networks.judge _may_be_the_node": KeptOut(
        "a legacy hook is not called as it advertises, where P2-12 is not judged: that may be all", clauses=("P2-12",)
    ),
    "networks case.forbidden": KeptOut(
        "a write in place that full hooks forbid ends the run, as it must", clauses=("BW-12",)
    ),
    "networks case.observed.raised": KeptOut("an exception took the rest of the run with it", clauses=_RAISED),
    "networks case.plain.raised": KeptOut("the run raises without hooks as well", clauses=("AG-01",)),
    "networks case.elsewhere": KeptOut("the case is of the CPU, with which others are compared"),
    "networks case.unordered": KeptOut(
        "a CUDA device has no kernel for it that sums in one order (the table UNORDERED names those); what is off by "
        "more than rounding is judged"
    ),
    "networks case.nodes_unspecified": KeptOut(
        "which Nodes run in a backward through a backward is torch's own affair"
    ),
    "networks case.opaque": KeptOut(
        "kernels of the device make other Nodes of a layer (the table OPAQUE names those), in another order"
    ),
    "networks legacy.NOT_JUDGED": KeptOut(
        "counted as not judged: einsum, whose products and sums releases order in other ways; a recurrent layer that a "
        "library makes in one Node, and on a CUDA device the other layers of the table OPAQUE; a pass through another; "
        "and a write to what a linear layer gives, which is a view if the layer's input is contiguous, where that is "
        "not known"
    ),
    "networks pair.firing.certain": KeptOut("whether a boundary that only zeros reach runs, no document says"),
    "networks pair.firing.early": KeptOut("the other firing rule speaks of it", clauses=("BW-02", "BW-03")),
    "networks backward.accumulates": KeptOut("what retains gradients sums those of passes alike"),
    "networks call.number": KeptOut(_FIRST_CALL),
    "networks call.path": KeptOut("the module's other calls have gradients", clauses=("BW-05",)),
    **dict.fromkeys(
        (
            "networks answers.due",
            "networks answers.left",
            "networks answers.word",
            "networks call.outputs_inside",
            "networks case.due",
            "networks self.left",
            "networks case.expected.trace.passes",
            "networks case.expected.trace.recorded",
            "networks case.observed.events",
            "networks case.observed.gradients",
            "networks case.plain.gradients",
            "networks t.requires_grad",
        ),
        _ABSENT,
    ),
    # Programs that are drawn: sequences of acts, and situations.
    "machine.fitted kind": KeptOut("this torch lacks the kind; another one stands in its place"),
    "machine.fitted prepend": KeptOut("this torch lacks the option, or it is none of hooks on all modules"),
    "machine.fitted with_kwargs": KeptOut("this torch lacks the option, or the kind has none"),
    "machine.fitted always_call": KeptOut(
        "a hook that removes a hook while the call raises meets tables that are walked as they are; and on all modules "
        "such a call forgets with_kwargs",
        clauses=("GL-05",),
    ),
    "machine.possible RegisterAct": KeptOut(
        "a hook would be removed that gets keyword arguments: whether it still does in that call, no document says"
    ),
    "machine.possible RemoveAct": KeptOut("there is no such hook"),
    "machine.possible CopyAct": KeptOut("there are as many nets as there may be"),
    "machine.possible BackwardAct": KeptOut("there is no graph to go back through"),
    "machine.possible GradAct": KeptOut("there is no graph to go back through"),
    "situations.judge LATER": KeptOut("this torch lacks what is chosen: the simplest choice stands in its place"),
    "situations.fitting REASONS": KeptOut("the table REASONS has a reason for each pair of choices"),
}
"""Each condition with the reason. It is named by the module and function or constant that it stands in, and by what it
asks for."""
