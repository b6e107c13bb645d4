"""Whole transformers: stacks of the layers of `transformer_layer`, an encoder, a decoder, and the two together."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from hypothesis.strategies import DrawFn, integers, sampled_from

from hookcheck.topology.layers.normalisation import LayerNorm
from hookcheck.topology.layers.transformer_layer import (
    HINT,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
    TransformerLayer,
    Transforming,
    decoder_masks,
    extent,
    of_steps,
)
from hookcheck.topology.model import Call, Composite, Module, ModuleList, Statement
from hookcheck.topology.primitive import Operand, Shape
from hookcheck.topology.tree import Ref, Tree

AnyLayer = TypeVar("AnyLayer", TransformerEncoderLayer, TransformerDecoderLayer)


class _Stack(Transforming):
    """Copies of one layer, called in turn, and a norm if there is one."""

    num_layers: int
    norm: LayerNorm | None

    @property
    @abstractmethod
    def layer(self) -> TransformerLayer:
        """What there are copies of."""

    @property
    def since(self) -> str:
        """The layer's."""
        return self.layer.since

    def source(self) -> str:
        """The constructor call."""
        norm = f", norm={self.norm.source()}" if self.norm else ""
        return f"nn.{type(self).__name__}({self.layer.source()}, {self.num_layers}{norm})"

    def _stacked(
        self, takes: tuple[str, ...], passed: tuple[str, ...], keywords: tuple[tuple[str, Tree], ...]
    ) -> Composite:
        """The module that takes names, and passes some of them on to each layer beside the value so far."""
        body: list[Statement] = []
        x, others = takes[0], tuple(map(Ref, passed))
        for i in range(self.num_layers):
            body.append(Call(f"x{i}", f"layers.{i}", (Ref(x), *others), keywords))
            x = f"x{i}"
        children: tuple[tuple[str, Module], ...] = (("layers", ModuleList((self.layer,) * self.num_layers)),)
        if self.norm:
            children += (("norm", self.norm),)
            body.append(Call("normed", "norm", (Ref(x),)))
        return Composite(children, takes, tuple(body), Ref("normed" if self.norm else x))


@dataclass(frozen=True)
class TransformerEncoder(_Stack):
    """``nn.TransformerEncoder``: ``num_layers`` copies of an encoder layer, one after another, and a norm if given.

    Source: the documentation of ``torch.nn.TransformerEncoder``.
    """

    encoder_layer: TransformerEncoderLayer
    num_layers: int
    norm: LayerNorm | None = None

    @property
    def layer(self) -> TransformerEncoderLayer:
        """The encoder layer."""
        return self.encoder_layer

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[TransformerEncoder, tuple[Operand, ...]]:
        """One or two layers, with and without a norm."""
        layer, operands = TransformerEncoderLayer.fitting(draw, shape)
        norm = draw(sampled_from([None, LayerNorm((layer.d_model,))]))
        return cls(layer, draw(integers(1, 2)), norm), operands

    @property
    def since(self) -> str:
        """The layer's, but ``enable_nested_tensor`` came with 1.12."""
        return "1.12" if self.layer.since == "1.10" else self.layer.since

    def source(self) -> str:
        """The constructor call, without the nested tensors that torch may otherwise make of padded batches."""
        return f"{super().source()[:-1]}, enable_nested_tensor=False)"

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """The layer's, its ``src_mask`` by the name of ``mask``."""
        args, kwargs = self.layer.call(operands)
        return args, tuple(("mask" if name == "src_mask" else name, mask) for name, mask in kwargs)

    def assembled(self) -> Module:
        """Each layer gets both masks."""
        keywords = (
            ("src_mask", Ref("mask")),
            ("is_causal", HINT),
            ("src_key_padding_mask", Ref("src_key_padding_mask")),
        )
        return self._stacked(("src", "mask", "src_key_padding_mask", "is_causal"), (), keywords)


@dataclass(frozen=True)
class TransformerDecoder(_Stack):
    """``nn.TransformerDecoder``: ``num_layers`` copies of a decoder layer, each with the memory, and a norm if given.

    Source: the documentation of ``torch.nn.TransformerDecoder``.
    """

    decoder_layer: TransformerDecoderLayer
    num_layers: int
    norm: LayerNorm | None = None

    @property
    def layer(self) -> TransformerDecoderLayer:
        """The decoder layer."""
        return self.decoder_layer

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[TransformerDecoder, tuple[Operand, ...]]:
        """One or two layers, with and without a norm."""
        layer, operands = TransformerDecoderLayer.fitting(draw, shape)
        norm = draw(sampled_from([None, LayerNorm((layer.d_model,))]))
        return cls(layer, draw(integers(1, 2)), norm), operands

    def call(self, operands: tuple[Tree, ...]) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """The layer's."""
        return self.layer.call(operands)

    def assembled(self) -> Module:
        """Each layer gets the memory and all masks."""
        names = self.layer.masks
        causal = ("tgt_is_causal", "memory_is_causal")
        keywords: list[tuple[str, Tree]] = [(name, Ref(name)) for name in names]
        keywords += [(name, HINT) for name in causal]
        return self._stacked(("tgt", "memory", *names, *causal), ("memory",), tuple(keywords))


@dataclass(frozen=True)
class Transformer(Transforming):
    """``nn.Transformer``: an encoder of ``src`` (S, N, E) gives the memory for a decoder of ``tgt`` (T, N, E).

    Both have a norm at their end. Sources: the documentation of ``torch.nn.Transformer``; Vaswani et al.,
    arXiv:1706.03762.
    """

    sequences = 2
    masks = (*TransformerEncoderLayer.masks, *TransformerDecoderLayer.masks)

    d_model: int
    nhead: int
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    dim_feedforward: int = 2048
    dropout: float = 0.1
    activation: str = "relu"
    layer_norm_eps: float = 1e-5
    batch_first: bool = False
    norm_first: bool = False
    bias: bool = True
    src_mask: str = ""
    src_key_padding_mask: str = ""
    tgt_mask: str = ""
    tgt_key_padding_mask: str = ""
    memory_mask: str = ""
    memory_key_padding_mask: str = ""

    @classmethod
    def fitting(cls, draw: DrawFn, shape: Shape) -> tuple[Transformer, tuple[Operand, ...]]:
        """One or two layers each, one to four steps of target, masks as encoder and decoder take them."""
        encoder, of_src = TransformerEncoderLayer.fitting(draw, shape)
        settings: dict[str, Any] = {f.name: getattr(encoder, f.name) for f in fields(encoder)}
        tgt = of_steps(shape, encoder.batch_first, draw(integers(1, 4)))
        names, of_tgt = decoder_masks(draw, settings, tgt, extent(shape, encoder.batch_first)[1])
        settings.update(names, num_encoder_layers=draw(integers(1, 2)), num_decoder_layers=draw(integers(1, 2)))
        return cls(**settings), (of_src[0], Operand(tgt), *of_src[1:], *of_tgt)

    def gives(self, operands: tuple[Operand, ...]) -> Shape:
        """That of the target."""
        return operands[1].shape

    def assembled(self) -> Module:
        """The encoder and the decoder."""
        norm = LayerNorm((self.d_model,), self.layer_norm_eps, bias=self.bias)
        encoder = TransformerEncoder(self._layer(TransformerEncoderLayer), self.num_encoder_layers, norm)
        decoder = TransformerDecoder(self._layer(TransformerDecoderLayer), self.num_decoder_layers, norm)
        padding = "src_key_padding_mask"
        of_src = (("mask", Ref("src_mask")), (padding, Ref(padding)), ("is_causal", HINT))
        of_tgt: list[tuple[str, Tree]] = [(name, Ref(name)) for name in TransformerDecoderLayer.masks]
        of_tgt += [("tgt_is_causal", HINT), ("memory_is_causal", HINT)]
        body = (
            Call("memory", "encoder", (Ref("src"),), of_src),
            Call("output", "decoder", (Ref("tgt"), Ref("memory")), tuple(of_tgt)),
        )
        return Composite((("encoder", encoder), ("decoder", decoder)), ("src", "tgt", *self.masks), body, Ref("output"))

    def _layer(self, kind: type[AnyLayer]) -> AnyLayer:
        """One layer of the encoder or of the decoder."""
        return kind(**{f.name: getattr(self, f.name) for f in fields(kind)})
