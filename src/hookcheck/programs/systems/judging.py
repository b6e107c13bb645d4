"""What must be so of each worked program? Every number that its hooks record or change, held to formulas by hand.

With full hooks all of it is right. With legacy hooks all is right but ``grad_input`` of a Linear, and what stands there
instead is stated wherever it is the same in every release.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import torch
from torch import nn

from hookcheck.programs.check import Check
from hookcheck.programs.systems import attention_capture as attention
from hookcheck.programs.systems import gradient_clipper as clipper
from hookcheck.programs.systems import hooked_dropout as dropout
from hookcheck.programs.systems import two_layer_sigmoid as sigmoid
from hookcheck.programs.systems.chains import CONVNET, PERCEPTRON, TIED, Chain, gradients, outputs, vgg16
from hookcheck.programs.systems.feature_maps import ConvNet, FeatureMaps, recorded
from hookcheck.programs.systems.oracles import captured, expectation, linear_chain, sigmoid_net
from hookcheck.programs.systems.shape_inspector import ShapeInspector
from hookcheck.programs.systems.side_by_side import Seen, differing, hold
from hookcheck.topology.primitive import Array
from hookcheck.topology.values import draw

Arrays = dict[tuple[str, str, int], tuple[Array, ...]]

DTYPES = ("float32", "float64")

CASES = {
    "a vector": (sigmoid.DATA, sigmoid.COTANGENT),
    "a batch": ([[0.05, 0.1], [0.1, -0.2], [1.0, 0.5]], [[1.0, 1.0], [-1.0, 2.0], [0.5, 0.0]]),
}
"""Input and cotangent of the sigmoid net: (2,) as the program has them, and three rows, (3, 2)."""

OF_LINEARS = tuple((name, "grad_input", n) for n in range(2) for name in ("fc2", "fc1"))
"""What a legacy hook on the sigmoid net gets wrong, in the order in which it happens."""

CHAINS = {
    "0": (("0", (10, 10)),),
    "attention": (("embed", (4, 10)), ("attention_1", (4, 4)), ("mlp", (6, 4)), ("attention_2", (3, 6))),
}
"""Names and weight shapes of the layers that attention is captured of, by the word that is looked for in the names."""

ROWS = [draw(0, "first", (1, 10)), draw(0, "second", (1, 10))]
"""What a chain of Linear layers is run on, one after the other."""

LOW, HIGH = -2.0, 1.5
WEIGHTS = np.array([[3.0, -2.0, 1.0]] * 2)
"""What the outputs (2, 3) are weighted with in the loss: the cotangent."""
DATA = [draw(0, "first", (2, 3)), draw(0, "second", (2, 3))]
NETS = {"each parameter used once": PERCEPTRON, "a layer used twice": TIED}

LAYERS = ("features.3", "features.1", "pool", "classifier")
"""Those whose outputs are asked for."""

P, SEED = 0.2, 1
"""With which probability channels are dropped out, and what is drawn from."""


def variants() -> list[str]:
    """The variants of backward hooks that this torch has."""
    return [variant for variant, register in attention.REGISTER.items() if hasattr(nn.Module, register)]


def two_layer_sigmoid(check: Check) -> None:
    """Two backward passes on one retained graph, each number of both."""
    for variant in variants():
        for case, (data, cotangent) in CASES.items():
            for dtype in DTYPES:
                name = f"{variant} hooks, {case} in {dtype}"
                expected = sigmoid_net(sigmoid.LAYERS, data, cotangent)
                seen = sigmoid.recorded(sigmoid.run(variant, data, cotangent, getattr(torch, dtype)))
                if variant == "full":
                    hold(check, name, expectation(expected), seen, dtype)
                    continue
                # On one vector a Linear is several Nodes, and which of them is the last depends on the release.
                if case == "a batch":
                    hold(check, f"{name}: the last Node's gradients", expectation(expected, legacy=True), seen, dtype)
                wrong = differing(expectation(expected), seen, dtype, check.device)
                check.equal(f"{name}: what is not the module's own", wrong, [*OF_LINEARS])
        _passes(check, variant)


def _passes(check: Check, variant: str) -> None:
    """The second pass shows what the first did, and a hook that is closed sees nothing more."""
    result = sigmoid.run(variant)
    first, second = (
        {(name, "received", 0): _arrays(*hook.seen[n][1], *hook.seen[n][2]) for name, hook in result.backward.items()}
        for n in range(2)
    )
    hold(check, f"{variant} hooks: a second backward shows the same", first, second, "float32")
    twice, after = ({(name, ".grad", 0): _arrays(grad) for name, grad in grads.items()} for grads in result.grads)
    twice = {what: tuple(None if a is None else 2 * a for a in arrays) for what, arrays in twice.items()}
    hold(check, f"{variant} hooks: a second backward doubles every .grad", twice, after, "float32")
    result.net(result.data).sum().backward()
    for what, hooks, times in (("forward", result.forward, 1), (variant, result.backward, 2)):
        named = {name: [module is getattr(result.net, name) for module, _, _ in h.seen] for name, h in hooks.items()}
        right = {name: [True] * times for name in hooks}
        check.equal(f"{what} hooks beside {variant} ones: each its own module, none once closed", named, right)


def attention_capture(check: Check) -> None:
    """Two executions, each of which adds an output and a gradient of every module that has the word in its name."""
    for variant in variants():
        for word, layers in CHAINS.items():
            for dtype in DTYPES:
                seen, expected = collected_attention(layers, word, variant, dtype)
                name = f"{variant} hooks on {word!r} in {dtype}"
                hold(check, name, captured(expected, word, legacy=variant == "legacy"), seen, dtype)
                if variant == "legacy":
                    wrong = differing(captured(expected, word), seen, dtype, check.device)
                    gradients = [what for what in seen if what[1] == "gradient"]
                    check.equal(f"{name}: no gradient is the input's, every output is right", wrong, gradients)


def collected_attention(
    layers: tuple[tuple[str, tuple[int, int]], ...], word: str, variant: str, dtype: str
) -> tuple[Seen, Any]:
    """What the program collects in two executions of a chain of Linear layers, and what the oracle has to say."""
    numbers = {
        f"{name}.{key}": draw(0, f"{name}.{key}", of)
        for name, shape in layers
        for key, of in (("weight", shape), ("bias", shape[:1]))
    }
    of_dtype = getattr(torch, dtype)
    model = nn.Sequential(OrderedDict((name, nn.Linear(i, o)) for name, (o, i) in layers)).to(of_dtype)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in numbers.items()})
    inputs = [torch.tensor(x, dtype=of_dtype, requires_grad=True) for x in ROWS]
    return attention.recorded(attention.run(model, word, variant, inputs)), linear_chain(numbers, ROWS)


def gradient_clipper(check: Check) -> None:
    """Two backward passes without zeroing between them, with the hooks and once they are off."""
    for case, chain in NETS.items():
        for dtype in DTYPES:
            passes, net = analytic(chain, dtype)
            seen = clipped(net, dtype, (LOW, HIGH))
            hold(check, f"{case}, {dtype}: every .grad is the sum of clamps", summed(passes, LOW, HIGH), seen, dtype)
            after: Seen = {what: (np.clip(a, LOW, HIGH),) for what, (a,) in summed(passes).items()}
            wrong = differing(after, seen, dtype, check.device)
            second = [what for what in after if what[2] == 1]
            check.equal(f"{case}, {dtype}: two passes are not as clamped afterwards", wrong, second)
            passes, net = analytic(chain, dtype)
            clipper.GradientClipper(net, LOW, HIGH).remove()
            hold(
                check,
                f"{case}, {dtype}: nothing is clamped once hooks are off",
                summed(passes),
                clipped(net, dtype),
                dtype,
            )


def analytic(chain: Chain, dtype: str) -> tuple[list[dict[str, Array]], nn.Module]:
    """The gradients of each backward by itself, and the net that the chain is."""
    net: nn.Module = clipper.Tied()
    if chain is PERCEPTRON:
        layers = (("fc1", nn.Linear(3, 4)), ("sigmoid", nn.Sigmoid()), ("fc2", nn.Linear(4, 3)))
        net = nn.Sequential(OrderedDict(layers))
    numbers = {name: draw(0, name, tuple(p.shape)) for name, p in net.named_parameters()}
    net.load_state_dict({name: torch.from_numpy(array) for name, array in numbers.items()})
    return [gradients(chain, numbers, x, WEIGHTS) for x in DATA], net.to(getattr(torch, dtype))


def summed(passes: list[dict[str, Array]], low: float = -np.inf, high: float = np.inf) -> Arrays:
    """What ``.grad`` must be after each backward, where each is clamped before it is added."""
    total: dict[str, Array] = {}
    sums: Arrays = {}
    for n, grads in enumerate(passes):
        for name, gradient in grads.items():
            total[name] = total.get(name, 0) + np.clip(gradient, low, high)
            sums[name, ".grad", n] = (total[name],)
    return sums


def clipped(net: nn.Module, dtype: str, bounds: tuple[float, float] | None = None) -> Seen:
    """What the program records."""
    of_dtype = getattr(torch, dtype)
    data = [torch.tensor(x, dtype=of_dtype) for x in DATA]
    return clipper.run(net, data, torch.tensor(WEIGHTS, dtype=of_dtype), bounds)


def shape_inspector(check: Check) -> None:
    """Two calls of the wrapper, each with a line for each layer in the order of the calls."""
    net, x = _convnet("float64")
    layers = dict(net.named_modules())
    right = [f"{name}: {array.shape}" for name, array in _by_layer(net, x).items() if name in layers]
    plain, inspector, printed = net(x), ShapeInspector(net), io.StringIO()
    with redirect_stdout(printed):
        outs = [inspector(x) for _ in range(2)]
    check.equal("a line for each layer, call by call", printed.getvalue().splitlines(), 2 * right)
    expected, seen = ({("net", "output", n): _arrays(out) for n, out in enumerate(two)} for two in ([plain] * 2, outs))
    hold(check, "the output is the net's", expected, seen, "float64")


def feature_maps(check: Check) -> None:
    """The maps of two calls, their gradients, and the map of a layer that the next one writes to."""
    for dtype in DTYPES:
        net, x = _convnet(dtype)
        right, state = _maps(net, x), list(net.state_dict())
        wrapper = FeatureMaps(net, LAYERS)
        for call in ("first", "second"):
            seen = recorded(wrapper(x))
            hold(check, f"{call} call in {dtype}: the layers' outputs", right, seen, dtype)
            check.order(f"{call} call in {dtype}: in the order of the calls", [*seen], [*right])
        check.equal(f"the net's own state stays as it was, in {dtype}", list(net.state_dict()), state)
    net, x = _convnet("float64")
    FeatureMaps(net, ("pool",))(x)["pool"].sum().backward()
    upto = [name for name, _ in CONVNET].index("pool") + 1
    numbers = {name: number for name, number in _parameters(net).items() if name.startswith("features")}
    grads = gradients(CONVNET[:upto], numbers, x.cpu().numpy(), np.ones((2, 6, 1, 1)))
    parameters = dict(net.named_parameters())
    of_maps = {(name, ".grad", 0): _arrays(parameters[name].grad) for name in grads}
    hold(check, "a map leads backward", {(name, ".grad", 0): (g,) for name, g in grads.items()}, of_maps, "float64")
    net, x = _convnet("float64", inplace=True)
    right = _maps(net, x)
    (convolved,) = right["features.3", "output", 0]
    right["features.3", "output", 0] = (np.maximum(convolved, 0),)
    hold(check, "what writes in place writes to the map", right, recorded(FeatureMaps(net, LAYERS)(x)), "float64")


def _maps(net: nn.Module, x: torch.Tensor) -> Arrays:
    """The maps of the layers asked for, in the order of the calls."""
    return {(name, "output", 0): (array,) for name, array in _by_layer(net, x).items() if name in LAYERS}


def hooked_dropout(check: Check) -> None:
    """The output before, with and after the hooks, and the gradients through the masks."""
    outs = ("reference", "hooked", "removed")
    for dtype in DTYPES:
        torch.manual_seed(0)
        net, x = dropout.VGG16().to(getattr(torch, dtype)), _images(32, dtype)
        right: Seen = _dropping(net, x)
        seen: Seen = dropout.run(net, x, P, SEED)
        if dtype == "float32":  # so deep a net rounds gradients further than the table allows
            right, seen = ({what: a for what, a in side.items() if what[0] in outs} for side in (right, seen))
        hold(check, f"every number in {dtype}", right, seen, dtype)
    net = dropout.VGG16()
    hooks = dropout.HookedDropout(net, P)
    hooked = [type(module).__name__ for module in net.modules() if module._forward_hooks]
    check.equal("each convolution has one hook, nothing else has", hooked, ["Conv2d"] * 13)
    hooks.remove()
    check.calls("hooks that are left", sum(len(module._forward_hooks) for module in net.modules()), 0)


def _dropping(net: nn.Module, x: torch.Tensor) -> Arrays:
    """The outputs and gradients by formulas, with the masks that `SEED` draws on ones of each convolution's shape."""
    torch.manual_seed(SEED)
    masks, size = [], x.shape[-1]
    for layers, wide in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
        for _ in range(layers):
            ones = torch.ones(len(x), wide * dropout.WIDTH, size, size, dtype=x.dtype)
            masks.append(nn.functional.dropout2d(ones, P, training=True).cpu().numpy())
        size //= 2
    numbers, data = _parameters(net), x.cpu().numpy().astype(float)
    dropping = vgg16(dropout.WIDTH, masks)
    reference, hooked = (outputs(chain, numbers, data)[-1] for chain in (vgg16(dropout.WIDTH), dropping))
    grads = gradients(dropping, numbers, data, 2 * hooked)
    return {
        ("reference", "output", 0): (reference,),
        ("hooked", "output", 0): (hooked,),
        ("removed", "output", 0): (reference,),
        **{(name, ".grad", 0): (gradient,) for name, gradient in grads.items()},
    }


def _convnet(dtype: str, inplace: bool = False) -> tuple[nn.Module, torch.Tensor]:
    return ConvNet(inplace).to(getattr(torch, dtype)), _images(8, dtype)


def _images(size: int, dtype: str) -> torch.Tensor:
    """Two images of ``size`` by ``size``, (2, 3, size, size)."""
    return torch.tensor(np.random.RandomState(0).randn(2, 3, size, size), dtype=getattr(torch, dtype))


def _parameters(net: nn.Module) -> Mapping[str, Array]:
    return {name: parameter.detach().cpu().numpy().astype(float) for name, parameter in net.named_parameters()}


def _by_layer(net: nn.Module, x: torch.Tensor) -> dict[str, Array]:
    """The output of every step of `CONVNET`, by name."""
    steps = outputs(CONVNET, _parameters(net), x.cpu().numpy().astype(float))
    return dict(zip((name for name, _ in CONVNET), steps))


def _arrays(*tensors: torch.Tensor | None) -> tuple[Array | None, ...]:
    return tuple(None if tensor is None else tensor.detach().cpu().numpy() for tensor in tensors)
