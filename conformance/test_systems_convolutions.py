"""Do forward hooks tell and change what layers of convolutional nets give? Three worked programs.

One prints the shape of every layer's output, one returns the outputs of chosen layers, and one has every convolution of
a 16-layer VGG drop channels out. Every number is compared with what the layers' formulas give.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from systems import hooked_dropout
from systems.chains import CONVNET, gradients, outputs, vgg16
from systems.feature_maps import ConvNet, FeatureMaps, recorded
from systems.hooked_dropout import VGG16, WIDTH, HookedDropout
from systems.shape_inspector import ShapeInspector
from systems.side_by_side import assert_same, differing
from torch import nn

from hookcheck.probe.state import preserved

dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.fixture(autouse=True)
def _unchanged_process() -> Iterator[None]:
    with preserved():
        yield


def net_and_input(net: nn.Module, size: int, dtype: str) -> tuple[nn.Module, torch.Tensor]:
    """The net with its input, two images of ``size`` by ``size``, in a dtype."""
    images = np.random.RandomState(0).randn(2, 3, size, size)
    return net.to(getattr(torch, dtype)), torch.tensor(images, dtype=getattr(torch, dtype))


def parameters(net: nn.Module) -> dict[str, Any]:
    """The numbers of its parameters."""
    return {name: parameter.detach().numpy().astype(float) for name, parameter in net.named_parameters()}


def skipping_hooks(monkeypatch: pytest.MonkeyPatch, which: type) -> None:
    """Breaks torch: modules of a class are called past their hooks."""
    sound = nn.Module.__call__

    def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs) if isinstance(self, which) else sound(self, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "__call__", call)


def ignoring_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks torch: what a forward hook returns is not used."""
    sound = nn.Module.register_forward_hook

    def register(self: nn.Module, hook: Any) -> Any:
        def ignored(*received: Any) -> None:
            hook(*received)

        return sound(self, ignored)

    monkeypatch.setattr(nn.Module, "register_forward_hook", register)


def by_layer(net: nn.Module, x: torch.Tensor) -> dict[str, Any]:
    """The output of every step of `CONVNET`, by name."""
    return dict(zip((name for name, _ in CONVNET), outputs(CONVNET, parameters(net), x.numpy().astype(float))))


class TestShapeInspector:
    """A wrapper whose hooks print the shape of what each layer gives."""

    def lines(self, net: nn.Module, x: torch.Tensor) -> list[str]:
        """What must be printed: each layer that is a module, in the order of the calls."""
        layers = dict(net.named_modules())
        return [f"{name}: {array.shape}" for name, array in by_layer(net, x).items() if name in layers]

    def test_it_prints_every_shape(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A line a layer, for each call of the wrapper; the output is that of the net."""
        net, x = net_and_input(ConvNet(), 8, "float64")
        right, plain = self.lines(net, x), net(x)
        inspector = ShapeInspector(net)
        assert torch.equal(inspector(x), plain)
        assert torch.equal(inspector(x), plain)
        assert capsys.readouterr().out.splitlines() == 2 * right
        assert len(right) == 7

    def test_a_broken_torch_is_reported(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A torch that calls activations past their hooks leaves their lines out."""
        net, x = net_and_input(ConvNet(), 8, "float64")
        skipping_hooks(monkeypatch, nn.ReLU)
        ShapeInspector(net)(x)
        printed = capsys.readouterr().out.splitlines()
        assert printed == [line for line in self.lines(net, x) if not line.startswith(("features.1:", "features.4:"))]


class TestFeatureMaps:
    """A wrapper that returns the outputs of chosen layers."""

    NAMES = ("features.3", "features.1", "pool", "classifier")

    def right(self, net: nn.Module, x: torch.Tensor) -> dict[Any, Any]:
        """The maps of the chosen layers, in the order of the calls."""
        return {(name, "output", 0): (array,) for name, array in by_layer(net, x).items() if name in self.NAMES}

    @dtypes
    def test_every_map_is_right(self, dtype: str) -> None:
        """The chosen layers' outputs and no others, in the order of the calls, afresh in every call."""
        net, x = net_and_input(ConvNet(), 8, dtype)
        right, plain, state = self.right(net, x), net(x), list(net.state_dict())
        wrapper = FeatureMaps(net, self.NAMES)
        for _ in range(2):
            seen = recorded(wrapper(x))
            assert_same(right, seen, dtype)
            assert list(seen) == list(right)
        assert torch.equal(wrapper.maps["classifier"], plain)
        assert list(net.state_dict()) == state

    def test_maps_lead_backward(self) -> None:
        """A map is the net's own tensor: the mean over a channel has its analytic gradient in the first weights."""
        net, x = net_and_input(ConvNet(), 8, "float64")
        FeatureMaps(net, ("pool",))(x)["pool"].sum().backward()
        upto = [name for name, _ in CONVNET].index("pool") + 1
        numbers = {name: number for name, number in parameters(net).items() if name.startswith("features")}
        right = gradients(CONVNET[:upto], numbers, x.numpy(), np.ones((2, 6, 1, 1)))
        seen = {(name, ".grad", 0): (dict(net.named_parameters())[name].grad.numpy(),) for name in right}
        assert_same({(name, ".grad", 0): (gradient,) for name, gradient in right.items()}, seen, "float64")

    def test_what_writes_in_place_writes_to_the_map(self) -> None:
        """Of a convolution before an activation that works in place, the map is what the activation made of it."""
        net, x = net_and_input(ConvNet(inplace=True), 8, "float64")
        right = self.right(net, x)
        (convolved,) = right["features.3", "output", 0]
        assert (convolved < 0).any()
        seen = recorded(FeatureMaps(net, self.NAMES)(x))
        right["features.3", "output", 0] = (np.maximum(convolved, 0),)
        assert_same(right, seen, "float64")

    def test_a_broken_torch_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A torch that calls convolutions past their hooks gives no maps of them."""
        net, x = net_and_input(ConvNet(), 8, "float64")
        skipping_hooks(monkeypatch, nn.Conv2d)
        seen = recorded(FeatureMaps(net, self.NAMES)(x))
        assert differing(self.right(net, x), seen, "float64") == [("features.3", "output", 0)]


class TestHookedDropout:
    """Dropout through forward hooks on every convolution of a VGG16."""

    P, SEED = 0.2, 1

    def vgg(self, dtype: str) -> tuple[nn.Module, torch.Tensor]:
        """The net with its input, of the same numbers each time."""
        torch.manual_seed(0)
        return net_and_input(VGG16(), 32, dtype)

    def masks(self, x: torch.Tensor) -> list[Any]:
        """What `SEED` drops out: the masks of the convolutions' outputs, drawn on ones of their shapes, in order."""
        torch.manual_seed(self.SEED)
        found, size = [], x.shape[-1]
        for layers, wide in ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8)):
            for _ in range(layers):
                ones = torch.ones(len(x), wide * WIDTH, size, size, dtype=x.dtype)
                found.append(nn.functional.dropout2d(ones, self.P, training=True).numpy())
            size //= 2
        return found

    def right(self, net: nn.Module, x: torch.Tensor) -> dict[Any, Any]:
        """The outputs and gradients by formulas, the masks given."""
        numbers, data = parameters(net), x.numpy().astype(float)
        plain, dropping = vgg16(WIDTH), vgg16(WIDTH, self.masks(x))
        reference, hooked = (outputs(chain, numbers, data)[-1] for chain in (plain, dropping))
        found = dict(zip(("reference", "hooked", "removed"), (reference, hooked, reference)))
        grads = gradients(dropping, numbers, data, 2 * hooked)
        return {
            **{(what, "output", 0): (array,) for what, array in found.items()},
            **{(name, ".grad", 0): (gradient,) for name, gradient in grads.items()},
        }

    def seen(self, net: nn.Module, x: torch.Tensor) -> Any:
        """What the program records."""
        return hooked_dropout.run(net, x, self.P, self.SEED)

    def test_every_number_is_right(self) -> None:
        """The three outputs, and the gradient of each parameter through the masks."""
        net, x = self.vgg("float64")
        right, seen = self.right(net, x), self.seen(net, x)
        assert_same(right, seen, "float64")
        assert len(right) == 3 + 2 * (13 + 3)

    def test_the_outputs_are_right_in_float32(self) -> None:
        """So are the outputs in the dtype that nets are run in."""
        net, x = self.vgg("float32")
        of = ("reference", "hooked", "removed")
        right, seen = (
            {w: a for w, a in side.items() if w[0] in of} for side in (self.right(net, x), self.seen(net, x))
        )
        assert_same(right, seen, "float32")

    def test_hooks_change_the_output_and_leave_nothing_behind(self) -> None:
        """With hooks the output differs from the reference in every row; after ``remove()`` it is the very same."""
        net, x = self.vgg("float64")
        reference, hooked, removed = (
            self.seen(net, x)[what, "output", 0][0] for what in ("reference", "hooked", "removed")
        )
        assert (abs(hooked - reference).max(1) > 0.1).all()
        assert np.array_equal(removed, reference)

    def test_it_is_the_convolutions_that_have_hooks(self) -> None:
        """Thirteen, each of them once."""
        net = VGG16()
        dropout = HookedDropout(net, self.P)
        hooked = [type(module) for module in net.modules() if module._forward_hooks]
        assert hooked == [nn.Conv2d] * len(dropout.handles) == [nn.Conv2d] * 13
        dropout.remove()
        assert not any(module._forward_hooks for module in net.modules())

    @pytest.mark.parametrize("fault", ["ignores", "keeps"])
    def test_a_broken_torch_is_reported(self, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A torch that ignores what forward hooks return, or that does not take them off."""
        net, x = self.vgg("float64")
        right = self.right(net, x)
        if fault == "keeps":
            monkeypatch.setattr(torch.utils.hooks.RemovableHandle, "remove", lambda handle: None)
            wrong = [("removed", "output", 0)]
        else:
            ignoring_results(monkeypatch)
            wrong = [what for what in right if what[0] not in ("reference", "removed")]
        assert differing(right, self.seen(net, x), "float64") == wrong


@pytest.mark.parametrize(
    ("program", "wrong"), [("gradient_clipper", 2), ("shape_inspector", 0), ("feature_maps", 0), ("hooked_dropout", 1)]
)
def test_the_programs_run_as_scripts(
    program: str, wrong: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each prints what it sees; ≠ marks gradients without clipping, and the output under dropout."""
    folder = Path(__file__).parent / "systems"
    monkeypatch.syspath_prepend(str(folder))
    runpy.run_path(str(folder / f"{program}.py"), run_name="__main__")
    text = capsys.readouterr().out
    assert len(text.splitlines()) >= 3
    assert text.count("≠") == wrong
