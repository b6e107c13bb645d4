"""Which classes of tensors may a network have inside of which contexts? All, but for what the one refuses of the other.

A context refuses a class where the network raises there without any hook, and says so aloud.
"""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.topology.contexts import COMPILING
from hookcheck.topology.model import Topology, tensor_words
from hookcheck.topology.tensors import SPARSE_GRADIENT, TENSORS

GIVEN, MADE, PARAMETER, READ = PLACES = ("given", "made", "parameter", "parameter that is read")
"""Where a tensor of a class is: main gives it to the network, the network makes it, or a parameter is one, of a layer
or one that the network reads itself."""


@dataclass(frozen=True)
class Refusal:
    """Contexts in which networks are not drawn that have a tensor of the classes in one of the places, and why not."""

    why: str
    contexts: tuple[str, ...]
    classes: tuple[str, ...]
    places: tuple[str, ...] = PLACES


SPARSE = ("sparse COO", "sparse CSR")
JAGGED = ("jagged", "jagged, unequal rows")
WITHOUT_VIEWS = (*SPARSE, "MKLDNN", "nested", *JAGGED)
"""The classes of which some tensors, or all, have no view."""

OF_ONE_DTYPE = tuple(name for name, each in TENSORS.items() if each.dtype == "float32")
WRAPPED = tuple(name for name, each in TENSORS.items() if each.wraps)
VIEWS = ("negative view", "conjugate view")
TRACING = (
    *("compile_eager", "compile_aot_eager", "compile_module_eager", "compile_module_aot_eager"),
    *("module_compile", "module_compile_aot_eager"),
)
BY_AOT = tuple(name for name in TRACING if "aot" in name)
ON_IMAGES = ("channels last", "channels last, 3-D")

REFUSED = (
    Refusal(
        "transforms ask for strides and views, which these tensors lack", ("vmap", "vjp", "dual_inputs"), WITHOUT_VIEWS
    ),
    Refusal("transforms ask for strides, which quantised tensors lack", ("vmap", "vjp"), ("quantised",)),
    Refusal("a DTensor holds strided tensors alone", ("dtensor",), (*WITHOUT_VIEWS, "quantised")),
    Refusal(
        "they are for convolutions, which these are not given",
        ("vmap", "dtensor", "dual_inputs", *COMPILING),
        ON_IMAGES,
    ),
    Refusal("there is no rule for the function that makes it", ("vmap", "dtensor"), VIEWS, (MADE,)),
    Refusal(
        "an autograd.Function makes it, which says nothing of transforms",
        ("vmap", "vjp", "dual_inputs", "dtensor"),
        ("wrapper",),
        (MADE,),
    ),
    Refusal("as_subclass makes no tensor of another subclass of a DTensor", ("dtensor",), WRAPPED, (MADE,)),
    Refusal(
        "it looks at the numbers of gradients, by functions that these lack",
        ("detect_anomaly",),
        (*SPARSE, "MKLDNN", "nested"),
    ),
    Refusal("it has hooks on several tensors, which take views", ("module_tracker",), WITHOUT_VIEWS, (GIVEN,)),
    Refusal("it puts views in the place of what it is given", ("fully_shard",), WITHOUT_VIEWS, (GIVEN,)),
    Refusal(
        "FSDP2 refuses parameters that are not contiguous aloud",
        ("fully_shard",),
        (*ON_IMAGES, "large strides", "expanded"),
        (PARAMETER,),
    ),
    Refusal("FSDP2 refuses parameters without dimensions aloud", ("fully_shard",), ("zero-dim",), (READ,)),
    Refusal("DDP refuses parameters that share numbers in memory aloud", ("ddp",), ("expanded",), (PARAMETER,)),
    Refusal("these networks have no parameters, and DDP refuses those aloud", ("ddp",), ("zero-dim",), (GIVEN, MADE)),
    Refusal(
        "a tangent is laid out as its tensor is, and cannot be written where numbers share memory",
        ("dual_inputs",),
        ("expanded",),
        (GIVEN,),
    ),
    Refusal(
        "what sends parameters to other processes asks for sizes, strides or zeros, which these lack",
        ("ddp", "fully_shard"),
        (*WITHOUT_VIEWS, "quantised"),
        (READ,),
    ),
    Refusal(
        "a replica has views of parameters, which some of these lack",
        ("replica",),
        WITHOUT_VIEWS,
        (READ,),
    ),
    Refusal(
        "what gathers such a gradient, or hands it on, takes strided ones",
        ("fully_shard", "replica", "dtensor"),
        (SPARSE_GRADIENT,),
    ),
    Refusal(
        "what a checkpoint makes again has a ragged size of its own, and strided ones are asked for sizes",
        ("checkpoint",),
        ("nested", *JAGGED),
    ),
    Refusal(
        "batched gradients are stacked and viewed, which these are not",
        ("is_grads_batched",),
        (*WITHOUT_VIEWS, SPARSE_GRADIENT),
    ),
    Refusal(
        "a wrapper of a batched gradient holds numbers that a hook cannot read", ("is_grads_batched",), ("wrapper",)
    ),
    Refusal("the offsets that are made for it lie on the default device", ("meta_device",), JAGGED[1:], (MADE,)),
    Refusal(
        "the graph is traced again by way of __torch_dispatch__, in which these have no part",
        BY_AOT,
        (*WRAPPED, "wrapper", "MKLDNN"),
    ),
    Refusal(
        "two functions make it, of which the graph makes one Node; a legacy hook is on the last Node",
        BY_AOT,
        (*VIEWS, "large strides"),
        (MADE,),
    ),
    Refusal("a ragged size is a symbol, for which nothing stands there", TRACING, JAGGED),
    Refusal(
        "an autograd.Function makes it, whose forward is traced without what __torch_dispatch__ adds",
        TRACING,
        ("wrapper",),
        (MADE,),
    ),
    Refusal("compiled autograd has no rule for hooks on wrappers, and says so", ("compiled_autograd",), ("wrapper",)),
    Refusal("compiled autograd holds no MKLDNN tensors: 2.15 says so", ("compiled_autograd",), ("MKLDNN",)),
    Refusal("compiled autograd holds no nested tensors", ("compiled_autograd",), ("nested", *JAGGED)),
    Refusal(
        "what autocast casts depends on the release, and float64 alone is left as it is", ("autocast",), OF_ONE_DTYPE
    ),
)
"""What is left out; each with the reason."""


def place_in(topology: Topology) -> str:
    """Where the tensor of a class is; a sparse gradient is MADE."""
    if topology.classes:
        return PARAMETER if all(TENSORS[of_class].in_a_layer for _, of_class in topology.classes) else READ
    return GIVEN if any(i.tensor for i in topology.inputs) else MADE


def refused(topology: Topology, context: str) -> bool:
    """Whether a network with tensors of classes is not drawn in the context of that name."""
    return any(refuses(context, word, place_in(topology)) for word in tensor_words(topology))


def refuses(context: str, word: str, place: str) -> bool:
    """Whether the context of that name refuses such tensors there."""
    return any(context in each.contexts and place in each.places and word in each.classes for each in REFUSED)
