"""Which layers and operations have no CUDA kernel that sums in one order? Two runs of theirs may round differently.

The names are those for which `torch.use_deterministic_algorithms` raises in one of the releases: what it says of a
function holds for the layers that are made of it. On the CPU all sum in one order.
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
