"""Layers and operations that have other kernels on a CUDA device: that sum in no one order, or make Nodes of their own.

The former are those for which `torch.use_deterministic_algorithms` raises in one of the releases: what it says of a
function holds for the layers that are made of it. Two runs of theirs may round differently. On the CPU all sum in one
order.
"""

from __future__ import annotations

UNORDERED = {
    "AdaptiveAvgPool1d": "torch.nn.AdaptiveAvgPool2d",
    "AdaptiveAvgPool2d": "torch.nn.AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d": "torch.nn.AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d": "torch.nn.AdaptiveMaxPool2d",
    "AdaptiveMaxPool2d": "torch.nn.AdaptiveMaxPool2d",
    "AvgPool3d": "torch.nn.AvgPool3d",
    "CTCLoss": "torch.nn.CTCLoss",
    "CrossEntropyLoss": "torch.nn.NLLLoss",
    "Cumsum": "torch.cumsum",
    "EmbeddingBag": "torch.nn.EmbeddingBag",
    "FractionalMaxPool2d": "torch.nn.FractionalMaxPool2d",
    "FractionalMaxPool3d": "torch.nn.FractionalMaxPool3d",
    "LinearCrossEntropyLoss": "torch.nn.NLLLoss",
    "MaxPool3d": "torch.nn.MaxPool3d",
    "MaxUnpool1d": "torch.nn.MaxUnpool1d",
    "MaxUnpool2d": "torch.nn.MaxUnpool2d",
    "MaxUnpool3d": "torch.nn.MaxUnpool3d",
    "NLLLoss": "torch.nn.NLLLoss",
    "NLLLoss2d": "torch.nn.NLLLoss",
    "ReflectionPad1d": "torch.nn.ReflectionPad1d",
    "ReflectionPad2d": "torch.nn.ReflectionPad2d",
    "ReflectionPad3d": "torch.nn.ReflectionPad3d",
    "ReplicationPad1d": "torch.nn.ReplicationPad1d",
    "ReplicationPad2d": "torch.nn.ReplicationPad2d",
    "ReplicationPad3d": "torch.nn.ReplicationPad3d",
    "Upsample": "torch.nn.functional.interpolate",
    "UpsamplingBilinear2d": "torch.nn.functional.interpolate",
}
"""Each by the class of the layer or operation, with the name that it has there."""

UNORDERED_PADDING = ("reflect", "replicate")
"""The ``padding_mode`` of a convolution that pads as ReflectionPad and ReplicationPad do."""

OPAQUE = {
    "RNN": "cuDNN",
    "LSTM": "cuDNN",
    "GRU": "cuDNN",
    "LSTMCell": "_thnn_fused_lstm_cell",
    "GRUCell": "_thnn_fused_gru_cell",
    "RMSNorm": "_fused_rms_norm",
    "Dropout": "native_dropout",
    "MaxPool3d": "torch._decomp.decompositions, in deterministic mode",
    "ReplicationPad1d": "torch._decomp.decompositions, in deterministic mode",
    "ReplicationPad2d": "torch._decomp.decompositions, in deterministic mode",
    "ReplicationPad3d": "torch._decomp.decompositions, in deterministic mode",
    "Upsample": "torch._decomp.decompositions, in deterministic mode",
    "UpsamplingBilinear2d": "torch._decomp.decompositions, in deterministic mode",
}
"""By the class of the layer, what makes its Nodes there, in one release or another."""
