"""Do hooks do in whole nets what people use them for? Dropping out, counting, retaining and capturing, in numbers.

The nets are small or, where torchvision is installed, its own VGG16 at full size. What must be seen is a closed form,
or the same computation written out without hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check, NotRun
from hookcheck.programs.nets import net
from hookcheck.programs.program import program

FORWARD, FULL = "torch.nn.Module.register_forward_hook", "torch.nn.Module.register_full_backward_hook"
P = 0.5
"""The probability of dropping a channel out: what stays is doubled, which rounds nothing."""

CONVOLUTIONS = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))
"""Configuration D of Simonyan and Zisserman (2015): between poolings, channels in units of the first layer's."""


def vgg16(width: int, inplace: bool = True) -> Any:
    """The 16-layer VGG with ``width`` channels where it has 64: (N, 3, 32, 32) to (N, 10)."""
    layers: list[Any] = []
    channels = 3
    for block in CONVOLUTIONS:
        for wide in block:
            layers += [nn.Conv2d(channels, wide * width, 3, padding=1), nn.ReLU(inplace=inplace)]
            channels = wide * width
        layers.append(nn.MaxPool2d(2))
    classifier = nn.Sequential(
        nn.Linear(channels, channels), nn.ReLU(inplace=inplace), nn.Dropout(),
        nn.Linear(channels, channels), nn.ReLU(inplace=inplace), nn.Dropout(),
        nn.Linear(channels, 10),
    )  # fmt: skip
    return net(
        lambda module, x: module.classifier(torch.flatten(module.avgpool(module.features(x)), 1)),
        features=nn.Sequential(*layers),
        avgpool=nn.Identity(),
        classifier=classifier,
    )


def written_out(model: Any, x: Any) -> Any:
    """What the model computes where dropout is written between its layers."""
    for layer in model.features:
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            x = nn.functional.dropout2d(x, P, training=True)
    return model.classifier(torch.flatten(model.avgpool(x), 1))


def stepped(model: Any, forward: Callable[..., Any], x: Any) -> tuple[Any, list[Any]]:
    """Output and gradients of the parameters for the sum of its squares, from one and the same seed."""
    model.zero_grad()
    torch.manual_seed(1)
    y = forward(x)
    y.pow(2).sum().backward()
    return y.detach(), [parameter.grad.clone() for parameter in model.parameters()]


def alike(one: tuple[Any, list[Any]], other: tuple[Any, list[Any]]) -> bool:
    """Whether two steps are the same, bit for bit."""
    return torch.equal(one[0], other[0]) and all(map(torch.equal, one[1], other[1]))


def dropping_out(check: Check, model: Any, x: Any) -> None:
    """States what dropout through hooks on all convolutions does to a VGG16, in both modes."""
    for mode in ("training", "evaluation"):
        model.train(mode == "training")
        plain, right = stepped(model, model, x), stepped(model, lambda x: written_out(model, x), x)
        seen: list[Any] = []
        handles: list[Any] = []

        def drop(module: Any, args: Any, output: Any, seen: list[Any] = seen) -> Any:
            dropped = nn.functional.dropout2d(output, P, training=True)
            seen.append((output.detach().clone(), dropped.detach().clone()))
            return dropped

        def add(module: Any, handles: list[Any] = handles, drop: Any = drop) -> None:
            if isinstance(module, nn.Conv2d):
                handles.append(module.register_forward_hook(drop))

        model.apply(add)
        hooked = stepped(model, model, x)
        check.calls(f"{mode}: calls of hooks", len(seen), 13)
        check.true(f"{mode}: a channel is dropped out, or doubled", all(_by_channel(*each) for each in seen))
        check.true(f"{mode}: output and gradients are those of dropout written out", alike(hooked, right))
        check.true(f"{mode}: they differ from those without", not torch.equal(hooked[0], plain[0]))
        for handle in handles:
            handle.remove()
        check.true(f"{mode}: after remove() they are those without", alike(stepped(model, model, x), plain))


def _by_channel(before: Any, after: Any) -> bool:
    """Whether each channel of each image is zero, or twice what it was."""
    zero = (after == 0).flatten(2).all(2)[..., None, None]
    right = torch.where(zero, torch.zeros_like(before), 2 * before)
    return torch.equal(after, right)


@program("WN-01", PROMISE, since="1.7", source=f"{FORWARD}; torch.nn.Dropout2d; tutorial 'Power of hooks'")
def dropout_through_hooks(check: Check) -> None:
    """Dropout through forward hooks on every convolution of a VGG16 is dropout written between its layers, in training
    and in evaluation mode, and gone with the hooks."""
    dropping_out(check, vgg16(width=4), torch.randn(2, 3, 32, 32))


@program("WN-02", PROMISE, since="1.7", source=f"{FORWARD}; torchvision.models.vgg16", device="cpu")
def dropout_through_hooks_at_full_size(check: Check) -> None:
    """So is dropout through hooks on the VGG16 of torchvision, with its 138 million parameters."""
    try:
        from torchvision.models import vgg16 as full_size
    except Exception:
        raise NotRun("torchvision is not installed") from None
    model = full_size()
    check.equal("parameters", sum(parameter.numel() for parameter in model.parameters()), 138_357_544)
    dropping_out(check, model, torch.randn(1, 3, 32, 32))


@program("WN-03", PROMISE, since="1.9", source=f"{FORWARD}; {FULL}")
def counting_operations(check: Check) -> None:
    """Counting multiplications by hooks gives the closed form: in forward from the shapes that hooks get, in backward
    from which gradients there are."""
    width, images = 4, 2
    model = vgg16(width, inplace=False)
    counts = {"forward": 0, "backward": 0}

    def products(module: Any, output: Any) -> int:
        weight = module.weight
        return int(output.numel() * weight.numel() // weight.shape[0])  # each output is a sum of so many products

    def forward(module: Any, args: Any, output: Any) -> None:
        counts["forward"] += products(module, output)

    def backward(module: Any, grad_input: Any, grad_output: Any) -> None:
        counts["backward"] += products(module, grad_output[0]) * (1 + (grad_input[0] is not None))

    handles: list[Any] = []
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            handles += [module.register_forward_hook(forward), module.register_full_backward_hook(backward)]
    check.equal("layers", len(handles), 2 * 16)
    # Of a 3 by 3 convolution on s by s pixels: 9 s² times channels in times channels out.
    convolved, channels, size = [], 3, 32
    for block in CONVOLUTIONS:
        for wide in block:
            convolved.append(9 * size**2 * channels * wide * width)
            channels = wide * width
        size //= 2
    linear = 2 * channels**2 + channels * 10
    once = images * (sum(convolved) + linear)
    check.equal("by hand, for one image", once // images, 1_329_472)
    y = model(torch.randn(images, 3, 32, 32))
    check.equal("multiplications in forward", counts["forward"], once)
    y.sum().backward()
    # For the weights and for the inputs as many again, but no gradient of the images is asked for.
    check.equal("multiplications in backward", counts["backward"], 2 * once - images * convolved[0])
    model(torch.randn(images, 3, 32, 32))
    check.equal("multiplications in two forwards", counts["forward"], 2 * once)
    for handle in handles:
        handle.remove()
    model(torch.randn(images, 3, 32, 32)).sum().backward()
    check.equal("after remove()", counts, {"forward": 2 * once, "backward": 2 * once - images * convolved[0]})


@program("WN-04", PROMISE, since="1.7", source="torch.Tensor.retain_grad; notes on a hooks tutorial, 'costs memory'")
def retaining_costs_memory(check: Check) -> None:
    """``retain_grad`` on a result costs the memory of its gradient from backward until ``.grad`` is let go of; without
    it, no gradient of a result outlives the backward, whether hooks saw it or not."""
    from torch.multiprocessing.reductions import StorageWeakRef

    def memory_of(gradients: list[Any]) -> dict[int, tuple[int, Any]]:
        """The memory that they are in, by its address: how many bytes, and what tells whether it is freed."""
        by_address = {}
        for gradient in gradients:
            storage = gradient.storage()
            by_address[gradient.data_ptr()] = (len(storage) * gradient.element_size(), StorageWeakRef(storage))
        return by_address

    length, numbers = 6, 1000
    for retained in (0, 2, length):
        x = torch.ones(numbers, dtype=torch.float64, requires_grad=True)
        results = [2 * x]
        seen: list[Any] = []
        while len(results) <= length:
            results.append(2 * results[-1])
        for number, result in enumerate(results[:-1]):  # the gradient of the last is the one that is passed
            result.register_hook(lambda grad, seen=seen: seen.append(memory_of([grad])))
            if number < retained:
                result.retain_grad()
        results[-1].backward(torch.ones(numbers, dtype=torch.float64))
        memory = memory_of([result.grad for result in results[:retained]])
        check.calls(f"{retained} retained: gradients that hooks saw", len(seen), length)
        passed = [each for held in seen for address, each in held.items() if address not in memory]
        alive = sum(size for size, storage in passed if not storage.expired())
        check.equal(f"{retained} retained: bytes of others after backward", alive, 0)
        alive = sum(size for size, storage in memory.values() if not storage.expired())
        check.equal(f"{retained} retained: bytes of theirs", alive, retained * numbers * 8)
        for result in results[:retained]:
            result.grad = None
        alive = sum(size for size, storage in memory.values() if not storage.expired())
        check.equal(f"{retained} retained: bytes once .grad is let go of", alive, 0)


@program("WN-05", PROMISE, since="1.8", source=f"question and answer on how hooks work; {FORWARD}; {FULL}")
def capturing_with_lambdas(check: Check) -> None:
    """A collector whose hooks are lambdas that keep ``.cpu()`` of output and grad_input has, after each run, one more
    of each, which ``zero_grad`` before the next run leaves as they are."""
    for set_to_none in (False, True):
        attentions: list[Any] = []
        gradients: list[Any] = []
        model = nn.Sequential(nn.Linear(2, 2))
        with torch.no_grad():
            model[0].weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
            model[0].bias.copy_(torch.tensor([0.5, -0.5]))
        keep = (
            lambda module, args, output, captured=attentions: captured.append(output.cpu()),
            lambda module, grad_input, grad_output, captured=gradients: captured.append(grad_input[0].cpu()),
        )
        for name, module in model.named_modules():
            if "0" in name:
                module.register_forward_hook(lambda module, args, output: keep[0](module, args, output))  # noqa: B023
                module.register_full_backward_hook(lambda module, gi, go: keep[1](module, gi, go))  # noqa: B023
        for numbers in ([[1.0, 2.0]], [[3.0, 4.0]]):
            model.zero_grad(set_to_none=set_to_none)
            model(torch.tensor(numbers, requires_grad=True)).mean().backward()
        which = f"set_to_none={set_to_none}"
        # x Wᵀ + b; of its mean over two the columns' means of W, and for W the input halved, in each row.
        check.equal(f"{which}: attentions", attentions, [[[5.5, 10.5]], [[11.5, 24.5]]])
        check.equal(f"{which}: gradients", gradients, [[[2.0, 3.0]], [[2.0, 3.0]]])
        check.equal(f"{which}: the weight's gradient, of the last run alone", model[0].weight.grad, [[1.5, 2.0]] * 2)
        model.zero_grad(set_to_none=set_to_none)
        check.equal(f"{which}: gradients after another zero_grad", gradients, [[[2.0, 3.0]], [[2.0, 3.0]]])


@program("WN-06", PROMISE, since="1.8", source=f"notes on a hooks tutorial, two layers with sigmoids; {FULL}")
def squared_error_of_two_layers(check: Check) -> None:
    """From ``MSELoss`` back through two layers with sigmoids, full hooks on every module get the gradients of the
    formulas, that on the loss included."""
    data, target = [0.05, 0.1], [0.01, 0.99]
    weights, biases = [[[0.15, 0.2], [0.25, 0.3]], [[0.4, 0.45], [0.5, 0.55]]], [0.35, 0.6]
    names = ("fc1", "sigmoid1", "fc2", "sigmoid2", "loss")
    modules = dict(zip(names, (nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 2), nn.Sigmoid(), nn.MSELoss())))
    seen: dict[str, Any] = {}
    for number, name in enumerate(("fc1", "fc2")):
        with torch.no_grad():
            modules[name].weight.copy_(torch.tensor(weights[number]))
            modules[name].bias.fill_(biases[number])
    for name, module in modules.items():
        module.register_full_backward_hook(
            lambda module, gi, go, name=name: seen.update({name: [gi[0].tolist(), go[0].tolist()]})
        )
    x = torch.tensor([data], requires_grad=True)
    y = x
    for name in names[:-1]:
        y = modules[name](y)
    loss = modules["loss"](y, torch.tensor([target]))
    loss.backward()

    inputs, given = [data], []
    for weight, bias in zip(weights, biases):
        summed = [sum(w * v for w, v in zip(row, inputs[-1])) + bias for row in weight]
        given.append([1 / (1 + exp(-s)) for s in summed])
        inputs.append(given[-1])
    # The mean of two squares: (o - t)² / 2 each, so o - t; of a sigmoid s (1 - s); of a layer its weight, transposed.
    flowing = [o - t for o, t in zip(given[1], target)]
    expected: dict[str, Any] = {"loss": [[flowing], 1.0]}
    for number in (1, 0):
        before = [g * s * (1 - s) for g, s in zip(flowing, given[number])]
        expected[f"sigmoid{number + 1}"] = [[before], [flowing]]
        flowing = [sum(w[column] * b for w, b in zip(weights[number], before)) for column in range(2)]
        expected[f"fc{number + 1}"] = [[flowing], [before]]
        of_weight = [[b * v for v in inputs[number]] for b in before]
        check.equal(f"the weight's gradient in fc{number + 1}", modules[f"fc{number + 1}"].weight.grad, of_weight)
    squares = [(o - t) ** 2 for o, t in zip(given[1], target)]
    check.equal("the loss", loss, sum(squares) / 2)
    for name in reversed(names):
        check.equal(f"grad_input[0] and grad_output[0] of {name}", seen[name], expected[name])
    check.equal("the gradient of the data", x.grad, [flowing])
