"""Why do two features never meet? A short table of rules, each with the pairs that it speaks of and its reason.

A rule states what torch or a family's own statement makes impossible. What is merely not drawn is no rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from hookcheck.coverage.axes import Word, group
from hookcheck.topology.catalogue import layer_classes
from hookcheck.topology.contexts import COMPILING
from hookcheck.topology.families.context import TRANSFORMED, TRANSFORMING
from hookcheck.topology.families.tensors_in_contexts import PLACES, REFUSED
from hookcheck.topology.primitive import SingleStep
from hookcheck.topology.tensors import TENSORS

NOT_DRAWN = "possible, and in no line of the corpus"
"""The reason of an unreached pair that no rule speaks of."""

APART = "possible, but no one family is about both"
"""The reason of one where a rule keeps every family from one of the two words."""

POSSIBLE = (APART, NOT_DRAWN)
"""The reasons of pairs in whose way nothing stands."""


@dataclass(frozen=True)
class ExclusionRule:
    """Two words never meet where the one matches ``one`` and the other ``other``.

    A pattern is ``axis=word`` with the wildcards of a shell; of those that match a word the last decides, and one that
    begins with ``!`` says no.
    """

    why: str
    one: tuple[str, ...]
    other: tuple[str, ...] = ("*",)

    def speaks_of(self, a: Word, b: Word) -> bool:
        """Whether the rule says that ``a`` and ``b`` never meet."""
        return (_matches(a, self.one) and _matches(b, self.other)) or (
            _matches(b, self.one) and _matches(a, self.other)
        )


@cache
def _matches(word: Word, patterns: tuple[str, ...]) -> bool:
    matching = [pattern for pattern in patterns if fnmatchcase("=".join(word), pattern.lstrip("!"))]
    return bool(matching) and not matching[-1].startswith("!")


def _layers(names: str) -> tuple[str, ...]:
    """The layer groups of those names."""
    return tuple(f"layer group={name}" for name in names.split())


def _contexts(names: Iterable[str]) -> tuple[str, ...]:
    """The contexts of those names."""
    return tuple(f"context={name}" for name in names)


def _other_groups(layers: Iterable[str]) -> tuple[str, ...]:
    """The groups that have none of those layers."""
    classes = layer_classes()
    groups = {group(classes[name]) for name in layers if name in classes}
    return tuple(f"layer group={name}" for name in sorted({*map(group, classes.values())} - groups))


def _without_parameters() -> tuple[str, ...]:
    """The groups of which no layer has parameters of its own, other than in its children."""
    having = {
        group(kind)
        for kind in layer_classes().values()
        if issubclass(kind, SingleStep) and kind.parameters is not SingleStep.parameters
    }
    return tuple(f"layer group={name}" for name in sorted({*map(group, layer_classes().values())} - having))


ONE = _layers(
    "activation adjustable average_pool batch_norm convolution dropout folding fractional_pool identity linear lp_pool "
    "max_pool normalisation padding response_norm shuffling softmax structure upsampling"
)
"""The groups whose forward has a single parameter."""

OF_CLASSES = ("family=tensor-class", "family=context", "family=compiled")
"""The families that have tensors of classes and layouts."""

LAYER = ("layer group=*", "!layer group=container")

RULES = (
    # What torch makes so.
    ExclusionRule(
        "a hook fires only where an output requires grad, so there is one", ("None pattern=grad_output empty",)
    ),
    ExclusionRule(
        "no gradient comes back to a call that was made without grad",
        ("grad mode=no_grad", "grad mode=inference_mode"),
        ("None pattern=grad_*",),
    ),
    ExclusionRule(
        "no positional argument, no entry of grad_input",
        ("arity=0 in",),
        ("None pattern=grad_input *", "!None pattern=grad_input empty"),
    ),
    ExclusionRule(
        "without positional arguments hooks are called as the gradient of an output comes, so there is one",
        ("arity=0 in",),
        ("None pattern=grad_output all None",),
    ),
    ExclusionRule(
        "each positional argument has an entry", ("arity=* in", "!arity=0 in"), ("None pattern=grad_input empty",)
    ),
    ExclusionRule("one argument is not some of several", ("arity=1 in",), ("None pattern=grad_input some None",)),
    ExclusionRule("one output is not some of several", ("arity=1 out",), ("None pattern=grad_output some None",)),
    ExclusionRule(
        "forward of these layers takes one argument", ONE, ("arity=2 in", "arity=3+ in", "*=grad_input some None")
    ),
    ExclusionRule(
        "forward of these layers takes two arguments at most",
        _layers("bilinear cells distance loss_classes recurrent transposed"),
        ("arity=3+ in",),
    ),
    ExclusionRule(
        "these layers give one tensor",
        (*LAYER, *(f"!{each}" for each in _layers("attention cells fractional_pool max_pool recurrent"))),
        ("arity=2+ out", "None pattern=grad_output some None"),
    ),
    ExclusionRule("these layers give two things in any case", _layers("attention recurrent"), ("arity=1 out",)),
    ExclusionRule(
        "without parameters, what they give requires grad because of the argument",
        tuple(sorted({*ONE} & {*_without_parameters()})),
        ("None pattern=grad_input all None",),
    ),
    ExclusionRule(
        "each argument of these layers is a tensor, and all have gradients as soon as one has",
        _layers("bilinear distance loss_classes loss_margins loss_triplets"),
        ("None pattern=grad_input some None",),
    ),
    ExclusionRule(
        "their slope is the same all around an input, so that no second backward enters past the output",
        _layers(
            "average_pool dropout folding fractional_pool identity max_pool padding shuffling structure unpool "
            "upsampling"
        ),
        ("None pattern=grad_output all None",),
    ),
    ExclusionRule("these layers have no parameters", _without_parameters(), ("reuse=shared parameter",)),
    ExclusionRule("no layer of torch calls itself", LAYER, ("reuse=recursive",)),
    ExclusionRule(
        "torch refuses complex tensors there, or their gradient (seen on 2.13.0)",
        _layers(
            "adjustable attention batch_norm bilinear embedding fractional_pool loss_classes loss_ctc loss_margins "
            "lp_pool max_pool softmax transformer transformer_layer unpool upsampling"
        ),
        ("dtype=complex*",),
    ),
    ExclusionRule(
        "torch computes it with float32 and float64 alone (seen on 2.13.0)",
        _layers("loss_ctc"),
        ("dtype=float16", "dtype=bfloat16"),
    ),
    ExclusionRule(
        "without autocast these layers take and give one dtype; only losses and distances promote",
        (*LAYER, "!layer group=distance", "!layer group=loss_*", "layer group=loss_ctc"),
        ("dtype=mixed",),
    ),
    ExclusionRule("the root has no second name", ("reuse=shared module",), ("depth=1",)),
    ExclusionRule(
        "autograd refuses to go on with what inference_mode has made",
        ("family=detached-inside",),
        ("grad mode=inference_mode",),
    ),
    # What a family's own statement or the grammar makes so.
    ExclusionRule(
        "a module that calls itself takes a tensor, and how deep to go",
        ("reuse=recursive",),
        ("arity=* in", "!arity=2 in", "*=grad_input all tensors", "*=grad_input empty"),
    ),
    ExclusionRule(
        "its input is an index, which no step hands on",
        _layers("embedding"),
        (
            "family=*",
            "!family=single-layer",
            "!family=shared-parameter",
            "!family=no-grad-input",
            *(f"!{each}" for each in OF_CLASSES),
        ),
    ),
    ExclusionRule(
        "its input must be log-probabilities, which no step hands on",
        _layers("loss_ctc"),
        ("family=*", "!family=single-layer", "depth=*", "!depth=1"),
    ),
    ExclusionRule(
        "single-node is one convolution",
        ("family=single-node",),
        (*LAYER, "!layer group=convolution", "depth=3", "depth=4+"),
    ),
    ExclusionRule(
        "multi-node is Linear and activations in small containers",
        ("family=multi-node",),
        (*LAYER, "!layer group=linear", "!layer group=activation", "depth=4+"),
    ),
    ExclusionRule("single-layer is a layer by itself", ("family=single-layer",), ("layer group=container",)),
    ExclusionRule(
        "their inputs require grad, and the loss is on the output",
        ("family=single-node", "family=multi-node", "family=nested"),
        ("*=grad_input all None", "*=grad_output all None", "*=no firing"),
    ),
    ExclusionRule(
        "in a chain each module hands one tensor on to the next",
        ("family=single-node", "family=multi-node", "family=intermediate-loss", "family=nested"),
        (
            *("arity=*", "!arity=1 *", "None pattern=* some None", "reuse=module called again"),
            *_layers("attention bilinear distance loss_* recurrent unpool"),
        ),
    ),
    ExclusionRule(
        "these families call every module more than once", ("family=train-eval", "family=accumulate"), ("reuse=once",)
    ),
    ExclusionRule(
        "calls without positional arguments are what keyword-input and container-input are about, and context has some",
        ("family=*", "!family=keyword-input", "!family=container-input", "!family=context"),
        ("arity=0 in", "None pattern=grad_input empty"),
    ),
    ExclusionRule(
        "grad mode is switched off in families that are about that",
        (
            "family=*",
            "!family=no-grad-evaluation",
            "!family=detached-inside",
            "!family=train-eval",
            "!family=context",
            "!family=compiled",
            "!family=tensor-class",
        ),
        ("grad mode=no_grad", "grad mode=inference_mode"),
    ),
    ExclusionRule(
        "steps in place are what inplace is about, and context and tensor-class have some",
        ("family=*", "!family=inplace", "!family=context", "!family=tensor-class"),
        ("in-place=*", "!in-place=none"),
    ),
    ExclusionRule(
        "sharing a module, or calling itself, is what shared-module is about, and context has some",
        ("family=*", "!family=shared-module", "!family=context"),
        ("reuse=shared module", "reuse=recursive"),
    ),
    ExclusionRule(
        "sharing a parameter is what shared-parameter is about, and context has some",
        ("family=*", "!family=shared-parameter", "!family=context"),
        ("reuse=shared parameter",),
    ),
    ExclusionRule(
        "dtypes are what mixed-dtype is about (families with classes of tensors have complex views), others have two",
        ("family=*", "!family=mixed-dtype", *(f"!{each}" for each in OF_CLASSES)),
        ("dtype=*", "!dtype=float64", "!dtype=float32"),
    ),
    ExclusionRule("autocast leaves float64 alone, which is drawn in it", ("context=autocast",), ("dtype=float32",)),
    ExclusionRule(
        "contexts are what context is about, and what compiles within them is what compiled is about",
        ("family=*", "!family=context", "!family=compiled"),
        ("context=*", "!context=none"),
    ),
    ExclusionRule("what compiles is slow, and a family of its own", ("family=context",), _contexts(COMPILING)),
    ExclusionRule(
        "torch.compile is at work on each network of compiled, which are small",
        ("family=compiled",),
        _other_groups(("Linear", "Sigmoid", "Tanh", "Embedding")),
    ),
    ExclusionRule(
        "transforms lack steps, which ones depends on the release; these layers are not among those they are given",
        _contexts(TRANSFORMING),
        _other_groups(TRANSFORMED),
    ),
    ExclusionRule(
        "classes and layouts of tensors are what tensor-class is about, and context and compiled have them as well",
        ("family=*", *(f"!{each}" for each in OF_CLASSES)),
        ("tensor=*", "!tensor=plain"),
    ),
    *(
        ExclusionRule(
            f"tensors of these classes are of {dtype}",
            tuple(f"tensor={name}" for name, each in TENSORS.items() if each.dtype == dtype),
            ("dtype=*", f"!dtype={dtype}"),
        )
        for dtype in sorted({each.dtype for each in TENSORS.values() if each.dtype})
    ),
    *(
        ExclusionRule(each.why, _contexts(each.contexts), tuple(f"tensor={name}" for name in each.classes))
        for each in REFUSED
        if each.places == PLACES
    ),
)
"""The rules, of which the first that speaks of a pair gives the reason; each must hold of the corpus and of what the
families draw, and be of use."""
