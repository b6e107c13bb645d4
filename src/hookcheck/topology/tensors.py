"""Which classes and layouts of tensors are there beside the plain strided one? How each is made, and read back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorClass:
    """A class or layout of tensors, as expressions over dense ones.

    ``make`` makes one of the dense tensor ``{0}``, and ``read`` a dense one of that; both are identities to autograd.
    Layers take such tensors as they are, unless these are ``opaque``. ``parameter`` makes a parameter that is one of a
    dense tensor, if that is no `nn.Parameter` of what ``make`` makes; nothing but a ``leaf`` is one of some classes.
    ``definitions`` go before all of it. It is about tensors of so many dimensions (``ranks``), and of one ``dtype``
    where it is not about all. No gradient goes through one that is ``constant``. One that is ``sparse`` stores no
    zeros, and one that ``repeats`` has its first row in all rows. What functions of torch give is made one as well
    where it ``wraps``. ``device`` is ``any`` or the one kind that it can be on. ``since`` is the first release that has
    all of it, its gradients included.
    """

    make: str
    read: str = ""
    parameter: str = ""
    since: str = "1.8"
    ranks: tuple[int, ...] = (1, 2, 3)
    dtype: str = ""
    opaque: bool = False
    leaf: bool = False
    constant: bool = False
    sparse: bool = False
    repeats: bool = False
    wraps: bool = False
    device: str = "any"
    definitions: str = ""

    def as_parameter(self, dense: str) -> str:
        """The expression that makes a parameter that is one, given that of a dense tensor."""
        plain = f"nn.Parameter({self.make}{', requires_grad=False' if self.constant else ''})"
        return (self.parameter or plain).format(dense)

    @property
    def flat(self) -> tuple[int, ...]:
        """Two dimensions where it may have them, else none if it may have none; no number where it may not either."""
        return tuple(rank for rank in (2, 0) if rank in self.ranks)[:1]

    @property
    def in_a_layer(self) -> bool:
        """Whether a parameter that is one may be the weight of a layer; others the network reads itself."""
        return not self.opaque and 0 not in self.ranks


SUBCLASS = '''\
class Sub(torch.Tensor):
    """A tensor of a class of its own."""'''

FUNCTION_SUBCLASS = '''\
class Handling(torch.Tensor):
    """A tensor that has its own say in what the functions of torch do."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})'''

WRAPPER = '''\
from torch.utils._pytree import tree_map


class Wrapper(torch.Tensor):
    """A tensor that holds another, on which all is computed."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device
        )

    def __init__(self, inner):
        self.wrapped = inner

    def __tensor_flatten__(self):
        return ["wrapped"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Wrapper(inner["wrapped"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        args, kwargs = tree_map(lambda held: getattr(held, "wrapped", held), (args, kwargs or {}))
        return tree_map(lambda made: cls(made) if isinstance(made, torch.Tensor) else made, function(*args, **kwargs))


class Wrap(torch.autograd.Function):
    """Puts a tensor into a wrapper."""

    @staticmethod
    def forward(ctx, tensor):
        return Wrapper(tensor.clone())

    @staticmethod
    def backward(ctx, gradient):
        return getattr(gradient, "wrapped", gradient)


class Unwrap(torch.autograd.Function):
    """Takes the tensor out of a wrapper."""

    @staticmethod
    def forward(ctx, wrapper):
        return wrapper.wrapped.clone()

    @staticmethod
    def backward(ctx, gradient):
        return Wrapper(gradient)'''

SUB_PARAMETER = '''\
class SubParameter(nn.Parameter):
    """A parameter of a class of its own."""'''

_WIDE = "torch.stack([{0}, {0}], -1)[..., 0]"
_IMAGES, _VOLUMES = (f"{{0}}.clone(memory_format=torch.{name})" for name in ("channels_last", "channels_last_3d"))

TENSORS = {
    "sparse COO": TensorClass("{0}.to_sparse()", "{0}.to_dense()", opaque=True, sparse=True),
    "sparse CSR": TensorClass(
        "{0}.to_sparse_csr()", "{0}.to_dense()", since="2.1", ranks=(2,), opaque=True, sparse=True
    ),
    "MKLDNN": TensorClass("{0}.to_mkldnn()", "{0}.to_dense()", dtype="float32", opaque=True, device="cpu"),
    "nested": TensorClass(
        "torch.nested.as_nested_tensor([*{0}])",
        "torch.nested.to_padded_tensor({0}, 0.0)",
        since="2.2",
        ranks=(2, 3),
        opaque=True,
    ),
    "jagged": TensorClass(
        "torch.nested.as_nested_tensor([*{0}], layout=torch.jagged)",
        "torch.nested.to_padded_tensor({0}, 0.0)",
        since="2.6",
        ranks=(2, 3),
        opaque=True,
    ),
    "jagged, unequal rows": TensorClass(
        "torch.nested.nested_tensor_from_jagged({0}, torch.tensor([0, 1, 1, len({0})], device={0}.device))",
        "{0}.values()",
        since="2.6",
        ranks=(2, 3),
        opaque=True,
    ),
    "quantised": TensorClass(
        "torch.quantize_per_tensor({0}, 1 / 1024, 0, torch.qint32)",
        "{0}.dequantize()",
        dtype="float32",
        opaque=True,
        constant=True,
    ),
    "zero-dim": TensorClass("{0}.clone()", ranks=(0,)),
    "channels last": TensorClass(_IMAGES, ranks=(4,)),
    "channels last, 3-D": TensorClass(_VOLUMES, ranks=(5,)),
    "large strides": TensorClass(_WIDE),
    "expanded": TensorClass("{0}[:1].expand_as({0})", leaf=True, repeats=True),
    "negative view": TensorClass("torch._neg_view(-{0})", since="1.10"),
    "conjugate view": TensorClass("{0}.conj_physical().conj()", since="1.10", dtype="complex128"),
    "subclass": TensorClass(
        "{0}.as_subclass(Sub)",
        since="2.0",
        wraps=True,
        definitions=SUBCLASS,
    ),
    "torch function": TensorClass("{0}.as_subclass(Handling)", since="2.0", wraps=True, definitions=FUNCTION_SUBCLASS),
    "wrapper": TensorClass(
        "Wrap.apply({0})",
        "Unwrap.apply({0})",
        "nn.Parameter(Wrapper({0}))",
        since="2.1",
        ranks=(2, 3),
        definitions=WRAPPER,
    ),
    "parameter": TensorClass("nn.Parameter({0})", leaf=True),
    "parameter subclass": TensorClass(
        "SubParameter({0})", parameter="SubParameter({0})", leaf=True, definitions=SUB_PARAMETER
    ),
}
"""By name. Numbers are multiples of 1/32 (see `hookcheck.topology.values`), and what a Linear makes of them of 1/1024,
which 32 bits of a quantised tensor hold; the rows of nested ones are equally long, so that nothing is padded, or those
of the dense tensor one after another. Of one dimension no wrapper is: what a Linear makes of that is squeezed in place,
in which a wrapper has no part. Numbers do not stay as they are where a tensor is expanded, so that only leaves are; the
family ``broadcast`` has the operation."""

SPARSE_GRADIENT = "sparse gradient"
"""What is no class: a parameter that is dense, and gets a sparse gradient. An Embedding with ``sparse`` has one."""
