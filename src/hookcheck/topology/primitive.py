"""What is a step? A layer of ``torch.nn`` or an operation: how it is drawn, its source, and its formulas in NumPy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hookcheck.topology.cuda_kernels import OPAQUE
from hookcheck.topology.last_node import Form, Release, Step
from hookcheck.topology.tree import Tree

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

    from hookcheck.topology.model import Module

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]
Shape = tuple[int, ...]

Gradients = tuple[Any, ...]
"""One for each input, None where there is none; then, where there are parameters, a dict of theirs by name."""

MOST = 5
"""The most dimensions that a tensor is drawn with."""


@dataclass(frozen=True)
class Operand:
    """A tensor that a step must be given: its ``shape`` in elements and the ``domain`` that its numbers come from.

    Domains are those of `hookcheck.topology.values`; ``below`` bounds the integer ones from above.
    """

    shape: Shape
    domain: str = "real"
    below: int = 0


class Primitive(ABC):
    """One differentiable step, by its formulas.

    Subclasses are frozen dataclasses of the step's settings. Floating arrays are float64 (complex128 for complex
    tensors), integer ones int64, masks bool. A subclass writes `value` and `pull`, the forward and the vector-Jacobian
    product (VJP), by hand from the formula that its docstring gives; others call `forward` and `vjp`. Where a formula
    says ``parameters``, buffers are among them.
    """

    value: Callable[..., Any]
    """``value(*inputs, **parameters)`` is the output, or a tuple with each of several outputs."""

    pull: Callable[..., Any]
    """``pull(*cotangents, *inputs, **parameters)``, with one cotangent for each output, is the gradient of the one
    input, or the `Gradients`. Cotangents of integer outputs are there, and mean nothing."""

    @property
    def writes(self) -> bool:
        """Whether it works in place: its output is its first input, overwritten."""
        return False

    @property
    def passes(self) -> bool:
        """Whether its output is its first input itself, untouched and without a step of autograd."""
        return False

    @property
    def views(self) -> bool:
        """Whether its outputs share the memory of its first input."""
        return False

    @property
    def casts(self) -> str:
        """The dtype that it casts to; empty if its outputs are of the type that its inputs promote to."""
        return ""

    def precision(self, device: str) -> str:
        """The coarser dtype that torch keeps a constant of the formula in on that device; empty if there is none."""
        return ""

    @property
    def exact(self) -> bool:
        """Whether the zeros of its output are put there, and no sum that cancels or function that saturates."""
        return False

    @property
    def separate(self) -> bool:
        """Whether torch makes each of its outputs by a Node of its own, none of which leads to another."""
        return False

    def opaque(self, dtype: str, device: str) -> bool:
        """Whether torch may take a library or a kernel for this dtype on that device whose Node only that one knows.

        Of several outputs it makes all at once.
        """
        return device == "cuda" and type(self).__name__ in OPAQUE

    def whole(
        self, inputs: tuple[Array, ...], parameters: dict[str, Array], cotangents: tuple[Array, ...], slot: int
    ) -> Array | None:
        """The gradient of an output, with what comes by way of outputs before it that are made of it.

        None if it is not known.
        """
        return None

    @property
    def defined(self) -> bool:
        """Whether torch's documentation defines a gradient that is not the slope of the forward."""
        return False

    def parameters(self) -> dict[str, Shape]:
        """Name and shape of every parameter, in torch's order of registration."""
        return {}

    def forward(self, inputs: Arrays, parameters: dict[str, Array]) -> Arrays:
        """The output tensors for ``inputs``, as `value` says."""
        return tuple(map(np.asarray, _several(self.value(*inputs, **parameters))))

    def vjp(
        self, inputs: Arrays, parameters: dict[str, Array], cotangents: Arrays
    ) -> tuple[tuple[Array | None, ...], dict[str, Array]]:
        """The gradients of inputs and of parameters, as `pull` says.

        None for an input that has no gradient whatever its dtype: an index, a mask.
        """
        gradients = _several(self.pull(*cotangents, *inputs, **parameters))
        *of_inputs, of_parameters = gradients if isinstance(gradients[-1], dict) else (*gradients, {})
        return tuple(g if g is None else np.asarray(g) for g in of_inputs), of_parameters

    def reaches(self, given: tuple[bool, ...]) -> tuple[bool, ...] | None:
        """For each input, whether autograd leads to it from those outputs that have a gradient; None if to all."""
        return None

    def disputed(self, *operands: Array) -> bool:
        """Whether one of these numbers lies on a kink at which its gradient is another one from some release on."""
        return False

    def last_node(self, step: Step) -> tuple[Form, ...]:
        """What the last Node of the step hands on (see `hookcheck.topology.last_node`): the gradients of its operands,
        unless the subclass knows better.

        Several forms where the order of elements in memory decides between them, and none where that is not known.
        """
        return (step.each,)

    def width(self, outputs: int, release: Release) -> int:
        """How many outputs the last Node has on a torch of that release, of a step that has so many: one, unless the
        subclass knows better."""
        return 1

    def result(self, outputs: tuple[Any, ...]) -> Any:
        """What it gives, of the output tensors: one tensor, or a tuple of tensors, None and tuples."""
        return outputs[0]


def _several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


class Drawn(ABC):
    """What is drawn as a part of networks, with settings that fit its first input.

    Families ask for what is

    * ``curved``: its VJP depends on its input everywhere;
    * ``smooth``, as all that is curved: torch and formulas know its second derivative alike. Torch gives piecewise
      linear ones, such as ReLU, a second derivative of zeros, where a formula has none; and it follows the zeros that a
      recurrent cell starts from;
    * ``overwritable``: backward does not need its output;
    * ``rounded_once``: it is one kernel, which sums in float32 and rounds its result, as the tolerance of 16 bits
      assumes. Recurrent layers, attention and most losses round several times on their way; of some others it is not
      known in which release the CPU began to take 16 bits.
    """

    curved: ClassVar[bool] = False
    smooth: ClassVar[bool] = False
    overwritable: ClassVar[bool] = False
    rounded_once: ClassVar[bool] = False

    @property
    def since(self) -> str:
        """The first torch release that has it, with these settings."""
        return "1.7"

    @property
    def complex_since(self) -> str:
        """The first torch release in which it takes complex tensors; empty if none does."""
        return ""

    @property
    def unbatched_since(self) -> str:
        """The first torch release in which it takes inputs without a batch axis; empty if its inputs have one."""
        return ""

    @property
    def constant(self) -> tuple[int, ...]:
        """The places of floating inputs that torch lets require no grad."""
        return ()

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """Whether a first input of ``shape`` can be fitted; any that is not empty, unless the subclass narrows it."""
        return all(shape)

    @classmethod
    @abstractmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Drawn, tuple[Operand, ...]]:
        """Draws settings for a first input of ``shape`` (one that it `takes`), and says what all its inputs must be."""


class Op(Primitive, Drawn):
    """A functional operation between modules."""

    @abstractmethod
    def source(self, *arguments: str) -> str:
        """The expression that applies the operation to argument expressions."""


class Layer(Drawn):
    """A module of ``torch.nn``: tensors and settings to one tensor or to a structure of them.

    ``scalable`` is False where the formula is for a domain that an argument leaves when it is scaled.
    """

    scalable: ClassVar[bool] = True

    @abstractmethod
    def source(self) -> str:
        """The expression that constructs the module, with ``nn`` bound to ``torch.nn``."""

    def definitions(self) -> tuple[str, ...]:
        """The classes that `source` names besides those of torch, as text, each after those that it derives from."""
        return ()

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """How a call passes its tensors, positionally and by keyword; in that order they are ``inputs``."""
        return operands, ()


class SingleStep(Layer, Primitive):
    """A layer that is one step: it calls no other module, and has formulas of its own.

    ``keywords`` are the names that torch's forward has for what `call` passes by position.
    """

    keywords: ClassVar[tuple[str, ...]] = ("input",)

    def buffers(self) -> dict[str, Array]:
        """Name and first value of every buffer that a formula needs."""
        return {}

    def evaluated(self) -> Primitive:
        """The step that the layer is in eval mode."""
        return self

    def updated(self, inputs: tuple[Array, ...], parameters: dict[str, Array]) -> dict[str, Array]:
        """What a forward in training mode leaves in the buffers."""
        return {}


class Assembled(Layer):
    """A layer that is made of others, whose hooks fire too: it has no formula but theirs."""

    @abstractmethod
    def assembled(self) -> Module:
        """The same as a module of our own: torch's children by torch's names, and what torch's forward calls."""

    def gives(self, operands: tuple[Operand, ...]) -> Shape:
        """The shape of its output: that of its first input."""
        return operands[0].shape
