"""The layers of transformers: they call other layers, hooks and all, so each is told as the calls that it makes.

In eval mode with gradients off torch may take a fast path that calls no child; the numbers are the same, save that the
path takes every float but 0 in a mask for ``−∞``. So no masks are drawn for an encoder that can take it: FP-02.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis.strategies import DrawFn, booleans, integers, sampled_from

from hookcheck.topology.layers.attention import MultiheadAttention, divisors, drawn_masks
from hookcheck.topology.layers.constructor import constructor
from hookcheck.topology.layers.dropout import Dropout
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.normalisation import LayerNorm
from hookcheck.topology.model import Apply, Call, Composite, Module, Statement
from hookcheck.topology.ops.arithmetic import Add
from hookcheck.topology.ops.functional import FunctionalGELU, FunctionalReLU
from hookcheck.topology.primitive import Assembled, Operand, Shape
from hookcheck.topology.tree import Literal, Ref, Tree

Block = Callable[[str], "tuple[tuple[Statement, ...], Ref]"]
"""From the name of what goes in to statements and what comes out."""

HINT = Literal(...)  # type: ignore[arg-type]  # nothing that a topology on file may hold
"""Whether a mask is causal, which torch makes up from its numbers and which changes none: anything will do."""

ACTIVATIONS = {"relu": FunctionalReLU(), "gelu": FunctionalGELU()}


class Transforming(Assembled):
    """What transformers share: sequences (T, N, E), or (N, T, E), positionally, and masks by keyword."""

    sequences: ClassVar[int] = 1
    masks: ClassVar[tuple[str, ...]]
    bias: bool

    @property
    def since(self) -> str:
        """Float key padding came with 2.0, ``norm_first`` with 1.10; the calls are these in every release since then.

        ``bias`` came with 2.1, but without it the encoder's layers raise in eval mode up to 2.2: LY-07.
        """
        if not self.bias:
            return "2.3"
        padded = any(getattr(self, name) == "float" for name in self.masks if name.endswith("key_padding_mask"))
        return "2.0" if padded else "1.10"

    @classmethod
    def takes(cls, shape: Shape) -> bool:
        """(T, N, E), or (N, T, E); of two features at least, as its LayerNorms demand."""
        return len(shape) == 3 and all(shape) and shape[2] > 1

    def source(self) -> str:
        """The constructor call."""
        return constructor(self, *self.masks)

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """The sequences, then the masks by name."""
        given = (name for name in self.masks if getattr(self, name))
        return operands[: self.sequences], tuple(zip(given, operands[self.sequences :]))


def _settings(draw: DrawFn, shape: Shape) -> dict[str, Any]:
    """What all transformers are constructed with, for sequences of ``shape``."""
    return {
        "d_model": shape[-1],
        "nhead": draw(sampled_from(divisors(shape[-1]))),
        "dim_feedforward": draw(integers(1, 3)),
        "dropout": 0.0,
        "activation": draw(sampled_from(["relu", "gelu"])),
        "layer_norm_eps": draw(sampled_from([1e-5, 0.125])),
        "batch_first": draw(booleans()),
        "norm_first": draw(booleans()),
        "bias": draw(sampled_from([True, False])),
    }


def extent(shape: Shape, batch_first: bool) -> tuple[int, int]:
    """Batch and steps."""
    return (shape[0], shape[1]) if batch_first else (shape[1], shape[0])


def of_steps(shape: Shape, batch_first: bool, steps: int) -> Shape:
    """``shape`` with another number of steps."""
    return (shape[0], steps, shape[2]) if batch_first else (steps, *shape[1:])


def _encoder_kinds(settings: dict[str, Any]) -> tuple[str, ...]:
    """The kinds of mask for an encoder: float ones, which torch hands on as they are, off the fast path."""
    fast = settings["batch_first"] and settings["bias"] and settings["nhead"] % 2 == 0
    return () if fast else ("float",)


class TransformerLayer(Transforming):
    """Attention and feed-forward blocks, each added to what it is given and normalised after, or before it."""

    d_model: int
    nhead: int
    dim_feedforward: int
    dropout: float
    activation: str
    layer_norm_eps: float
    batch_first: bool
    norm_first: bool

    def _attention(self, sources: int, mask: str, key_padding_mask: str) -> MultiheadAttention:
        return MultiheadAttention(
            self.d_model,
            self.nhead,
            self.bias,
            batch_first=self.batch_first,
            sources=sources,
            attn_mask=mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
        )

    def _rest(self, blocks: int) -> tuple[tuple[str, Module], ...]:
        """The children after the attentions, in torch's order."""
        norm, numbers = LayerNorm((self.d_model,), self.layer_norm_eps, bias=self.bias), range(1, blocks + 1)
        return (
            ("linear1", Linear(self.d_model, self.dim_feedforward, self.bias)),
            ("dropout", Dropout(self.dropout)),
            ("linear2", Linear(self.dim_feedforward, self.d_model, self.bias)),
            *((f"norm{i}", norm) for i in numbers),
            *((f"dropout{i}", Dropout(self.dropout)) for i in numbers),
        )

    def _attended(self, child: str, mask: str, key_padding_mask: str, memory: str = "") -> Block:
        """Attention of ``x`` to ``memory``, or to itself, by a child, under masks of those names."""

        def block(x: str) -> tuple[tuple[Statement, ...], Ref]:
            keywords = (
                ("attn_mask", Ref(mask)),
                ("key_padding_mask", Ref(key_padding_mask)),
                ("is_causal", HINT),
                ("need_weights", Literal(False)),
            )
            keys = Ref(memory or x)
            return (Call(f"of_{child}", child, (Ref(x), keys, keys), keywords),), Ref(f"of_{child}", (0,))

        return block

    def _fed_forward(self, x: str) -> tuple[tuple[Statement, ...], Ref]:
        statements = (
            Call("widened", "linear1", (Ref(x),)),
            Apply("activated", ACTIVATIONS[self.activation], (Ref("widened"),)),
            Call("dropped", "dropout", (Ref("activated"),)),
            Call("narrowed", "linear2", (Ref("dropped"),)),
        )
        return statements, Ref("narrowed")

    def _chained(self, x: str, *blocks: Block) -> tuple[tuple[Statement, ...], Ref]:
        """The statements of all blocks one after another, and the last value."""
        body: list[Statement] = []
        for i, block in enumerate(blocks, 1):
            statements, result = block(f"normed{i}" if self.norm_first else x)
            dropped, added = Call(f"dropped{i}", f"dropout{i}", (result,)), (Ref(x), Ref(f"dropped{i}"))
            if self.norm_first:
                body += [Call(f"normed{i}", f"norm{i}", (Ref(x),)), *statements, dropped, Apply(f"x{i}", Add(), added)]
            else:
                added_up = Apply(f"sum{i}", Add(), added)
                body += [*statements, dropped, added_up, Call(f"x{i}", f"norm{i}", (Ref(f"sum{i}"),))]
            x = f"x{i}"
        return tuple(body), Ref(x)


@dataclass(frozen=True)
class TransformerEncoderLayer(TransformerLayer):
    """``nn.TransformerEncoderLayer``: of ``x`` (T, N, E), or (N, T, E), with attention ``A`` and feed-forward ``F``,

    ``y = norm1(x + A(x))`` and ``z = norm2(y + F(y))``; under ``norm_first`` ``y = x + A(norm1(x))`` and
    ``z = y + F(norm2(y))``. ``F(y) = W₂ f(W₁ y + b₁) + b₂`` with ``f`` relu or gelu, a function. The dropouts are
    called, and ``dropout=0.0`` makes them the identity. Sources: the documentation of
    ``torch.nn.TransformerEncoderLayer``; Vaswani et al., arXiv:1706.03762.
    """

    masks = ("src_mask", "src_key_padding_mask")

    d_model: int
    nhead: int
    dim_feedforward: int = 2048
    dropout: float = 0.1
    activation: str = "relu"
    layer_norm_eps: float = 1e-5
    batch_first: bool = False
    norm_first: bool = False
    bias: bool = True
    src_mask: str = ""
    src_key_padding_mask: str = ""

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[TransformerEncoderLayer, tuple[Operand, ...]]:
        """Heads that divide the features, one to three features between, float masks off the fast path."""
        settings = _settings(draw, shape)
        batch, steps = extent(shape, settings["batch_first"])
        kinds, masks = drawn_masks(draw, _encoder_kinds(settings), (batch, settings["nhead"], steps, steps))
        settings.update(zip(cls.masks, kinds))
        return cls(**settings), (Operand(shape), *masks)

    def assembled(self) -> Module:
        """Attention and feed-forward."""
        attention = self._attention(1, self.src_mask, self.src_key_padding_mask)
        body, z = self._chained("src", self._attended("self_attn", *self.masks), self._fed_forward)
        takes = ("src", *self.masks, "is_causal")
        return Composite((("self_attn", attention), *self._rest(2)), takes, body, z)


@dataclass(frozen=True)
class TransformerDecoderLayer(TransformerLayer):
    """``nn.TransformerDecoderLayer``: as the encoder's, with a block of attention to the memory between the two.

    ``x`` (T, N, E) and memory (S, N, E), or batch first; three norms and three dropouts, one for each block. Sources:
    the documentation of ``torch.nn.TransformerDecoderLayer``; Vaswani et al., arXiv:1706.03762.
    """

    sequences = 2
    masks = ("tgt_mask", "tgt_key_padding_mask", "memory_mask", "memory_key_padding_mask")

    d_model: int
    nhead: int
    dim_feedforward: int = 2048
    dropout: float = 0.1
    activation: str = "relu"
    layer_norm_eps: float = 1e-5
    batch_first: bool = False
    norm_first: bool = False
    bias: bool = True
    tgt_mask: str = ""
    tgt_key_padding_mask: str = ""
    memory_mask: str = ""
    memory_key_padding_mask: str = ""

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[TransformerDecoderLayer, tuple[Operand, ...]]:
        """As the encoder's; one to four steps of memory, any masks."""
        settings = _settings(draw, shape)
        steps = draw(integers(1, 4))
        names, masks = decoder_masks(draw, settings, shape, steps)
        memory = Operand(of_steps(shape, settings["batch_first"], steps))
        return cls(**{**settings, **names}), (Operand(shape), memory, *masks)

    def assembled(self) -> Module:
        """Attention to itself, attention to the memory, feed-forward."""
        of_tgt, of_memory = self.masks[:2], self.masks[2:]
        children = (
            ("self_attn", self._attention(1, self.tgt_mask, self.tgt_key_padding_mask)),
            ("multihead_attn", self._attention(2, self.memory_mask, self.memory_key_padding_mask)),
        )
        blocks = (self._attended("self_attn", *of_tgt), self._attended("multihead_attn", *of_memory, "memory"))
        body, z = self._chained("tgt", *blocks, self._fed_forward)
        takes = ("tgt", "memory", *self.masks, "tgt_is_causal", "memory_is_causal")
        return Composite((*children, *self._rest(3)), takes, body, z)


def decoder_masks(
    draw: DrawFn, settings: dict[str, Any], shape: Shape, steps: int
) -> tuple[dict[str, str], tuple[Operand, ...]]:
    """The masks of a decoder for a target of ``shape`` and ``steps`` of memory: kinds by name, and operands."""
    (batch, length), heads = extent(shape, settings["batch_first"]), settings["nhead"]
    target_masks, of_own = drawn_masks(draw, ("bool", "float"), (batch, heads, length, length))
    other, of_other = drawn_masks(draw, ("bool", "float"), (batch, heads, length, steps))
    return dict(zip(TransformerDecoderLayer.masks, (*target_masks, *other))), (*of_own, *of_other)
