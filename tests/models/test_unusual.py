"""Is nothing called wrong on models that do what few do: run backward within, change forward, checkpoint, raise?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint

import hookcheck
from hookcheck.errors import HookcheckError
from hookcheck.models.result import CONFORMS, NOT_JUDGED, ModelCheck
from hookcheck.releases.numbers import release

pytestmark = pytest.mark.filterwarnings("ignore")
RELEASE = release(torch.__version__)
NEWER = pytest.mark.skipif(RELEASE < (2, 1), reason="what these models use came later")


class Distributed(nn.Module):
    """Gives an object that fills in what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.distributions.Categorical(logits=self.layer(x))


class Entropy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Distributed()
        self.head = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        given = self.inner(x)
        return given.probs.sum() + given.entropy().sum() + self.head(x).sum()


class Growing(nn.Module):
    """Has a buffer that grows, as observers of quantisation do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("largest", torch.tensor([]))

    def forward(self, x: Any) -> Any:
        h = self.layer(x)
        largest = h.detach().amax(0)
        self.largest.resize_(largest.shape)
        self.largest.copy_(largest)
        return h


class Energy(nn.Module):
    """Gives forces: the gradient of what it computes with respect to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        x = x.detach().requires_grad_()
        energy = self.head(self.inner(x).tanh())
        (force,) = torch.autograd.grad(energy.sum(), x, create_graph=True)
        return energy, force


class Penalty(nn.Module):
    """A gradient penalty, with respect to an input that requires grad."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x: Any) -> Any:
        y = self.critic(x)
        (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.mean() + (gradient.norm(dim=1) - 1).square().mean()


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.head = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        return self.head(checkpoint(self.body, x, use_reentrant=False))


class Raising(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Any, raising: bool = False) -> Any:
        y = self.inner(x)
        if raising:
            raise ValueError
        return y


class Catching(nn.Module):
    """Catches what a call of its module raises, and goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Raising()

    def forward(self, x: Any) -> Any:
        try:
            self.part(x, True)
        except ValueError:
            return self.part(x.tanh())


class Averaging(nn.Module):
    """Sets a buffer anew in each forward."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("average", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        h = self.layer(x)
        self.average = 0.9 * self.average + 0.1 * h.mean(0).detach()
        return h - self.average


class Eighth(nn.Module):
    """Gives numbers of 8 bits."""

    def forward(self, x: Any) -> Any:
        return x.to(torch.float8_e4m3fn)


class Quantised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.eighth = Eighth()

    def forward(self, x: Any) -> Any:
        return self.eighth(self.layer(x)).to(torch.float32)


class Recursive(nn.Module):
    """Calls itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any, times: int = 2) -> Any:
        return self(self.layer(x), times - 1) if times else x.tanh()


class Reversing(nn.Module):
    """Puts a hook of its own on what a layer gives, which turns the gradient round."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.head = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        h = self.inner(x)
        h.register_hook(lambda gradient: -gradient)
        return self.head(h)


class Threaded(nn.Module):
    """Calls its layers in threads: the second begins while the first is at work, and ends after it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Waiting()
        self.second = Waiting()

    def forward(self, x: Any) -> Any:
        begun, both_begun, over = threading.Event(), threading.Event(), threading.Event()
        with ThreadPoolExecutor(2) as pool:
            one = pool.submit(self.first, x, begun, both_begun)
            one.add_done_callback(lambda _: over.set())
            begun.wait(60)
            other = pool.submit(self.second, x, both_begun, over)
        return one.result() + other.result()


class Waiting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any, begun: threading.Event, go: threading.Event) -> Any:
        begun.set()
        go.wait(60)
        return self.layer(x)


class Training(nn.Module):
    """Takes a step of an optimizer in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), 0.1)
        self.layer(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return self.layer(x)


class Flat(nn.Sequential):
    """Writes to a view that a layer gives of what another gave."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(3, 3), nn.Flatten(), nn.ReLU(inplace=True))


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.numbers = iter(range(1, 100))

    def forward(self, x: Any) -> Any:
        return self.layer(x) * next(self.numbers)


class Padded(nn.Module):
    """Takes a nested tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.nested.to_padded_tensor(self.layer(x), 0.0)


class OfPacked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.GRU(3, 2)

    def forward(self, packed: Any) -> Any:
        return self.cells(packed)[0]


def prepared(model: nn.Module) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return model, torch.randn(2, 3, requires_grad=True)


def checked(model: nn.Module, *args: Any, **options: Any) -> ModelCheck:
    torch.manual_seed(0)
    return hookcheck.check_module(model, *args, **options)


UNUSUAL = (
    *(Averaging, Catching, Checkpointed, Energy, Entropy, Flat, Growing, Penalty),
    *(Quantised, Recursive, Reversing, Threaded, Training),
)


@NEWER
@pytest.mark.parametrize("make", UNUSUAL)
def test_nothing_new_deviates(make: type[nn.Module]) -> None:
    check = checked(*prepared(make()))
    assert not check.deviations
    assert any(v.verdict == CONFORMS for v in check.judged if v.kind == "full_backward")


@NEWER
def test_the_gradients_of_both_backwards_are_told() -> None:
    check = checked(*prepared(Energy()), kinds=["full_backward", "output_tensor", "tensor"])
    assert {v.verdict for v in check.judged if v.clause == "TN-03"} == {CONFORMS}
    times = {seen.on: seen.times for seen in check.seen if seen.kind == "output_tensor"}
    # A hook on what the model itself gives is there after the first of the two.
    assert times == {"inner[0]": 2, "head[0]": 2, "[0]": 1, "[1]": 1}
    assert {v.verdict for v in check.judged if v.kind == "tensor"} == {NOT_JUDGED}  # which it asks for is not known


@NEWER
def test_a_model_that_is_not_deterministic_is_no_fault_of_forward_and_legacy_hooks() -> None:
    check = checked(Counting(), torch.randn(2, 2), kinds=["backward", "forward"])
    assert not check.deviations
    assert {v.clause for v in check.judged if v.kind == "forward" and v.verdict == NOT_JUDGED} >= {"FN-04"}


def test_a_buffer_that_is_set_anew_is_put_back() -> None:
    model, x = prepared(Averaging())
    before = model.average
    checked(model, x, kinds=["forward"])
    assert model.average is before
    assert not before.any()


@NEWER
def test_a_buffer_that_has_grown_is_put_back() -> None:
    model, x = prepared(Growing())
    checked(model, x, kinds=["forward"])
    assert model.largest.shape == (0,)


def doubled(forward: Any, x: Any) -> Any:
    return forward(x) * 2


def own_function(model: Any) -> None:
    forward = model[0].forward
    model[0].forward = lambda x: forward(x) * 2


def own_partial(model: Any) -> None:
    model[0].forward = partial(doubled, model[0].forward)


def of_another(model: Any) -> None:
    model[0].forward = nn.Linear(3, 3).forward


@NEWER
@pytest.mark.parametrize("change", [own_function, own_partial, of_another])
def test_a_forward_that_was_put_there_is_run(change: Any) -> None:
    model, x = prepared(nn.Sequential(nn.Linear(3, 3), nn.Tanh()))
    change(model)
    forward = model[0].forward
    check = checked(model, x)
    assert not check.deviations
    assert check.calls == {"": 1, "0": 1, "1": 1}
    assert {v.verdict for v in check.of("0", "full_backward") if v.clause == "GI-01"} == {CONFORMS}
    assert model[0].forward is forward


@pytest.mark.skipif(RELEASE < (2, 6), reason="nested tensors with sizes are padded by no earlier torch")
def test_nested_tensors_with_sizes_are_cut() -> None:
    x = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(1, 3)], layout=torch.jagged)
    check = checked(Padded(), x, kinds=["full_backward", "forward"])
    assert not check.deviations
    assert not [v for v in check.judged if v.verdict == NOT_JUDGED]


@NEWER
def test_why_a_hook_does_not_fire_where_the_gradient_goes_by_a_container() -> None:
    packed = pack_padded_sequence(torch.randn(4, 2, 3), torch.tensor([4, 2]))
    check = checked(OfPacked(), (packed,), kinds=["full_backward"])
    texts = [remark.text for remark in check.remarks if remark.modules == ("cells",)]
    assert "the gradient does not go through a tensor that the hook sits on" in texts


@NEWER
def test_a_write_to_a_view_is_one_to_what_it_is_of() -> None:
    check = checked(*prepared(Flat()), kinds=["full_backward"])
    texts = {remark.text.partition(";")[0]: remark.modules for remark in check.remarks}
    assert texts["its output 0 is written to afterwards"] == ("0", "1")
    assert texts["its forward writes to its input 0"] == ("2",)


def test_an_iterator_is_refused() -> None:
    with pytest.raises(HookcheckError, match="an argument is an iterator"):
        hookcheck.check_module(nn.Linear(1, 1), (iter([torch.ones(1, 1)]),))


@NEWER
def test_a_model_made_in_inference_mode_is_refused() -> None:
    with torch.inference_mode():
        model = nn.Linear(3, 3)
    with pytest.raises(HookcheckError, match="made in inference mode"):
        hookcheck.check_module(model, torch.ones(1, 3))


def test_one_is_counted_as_one() -> None:
    check = hookcheck.check_module(nn.Linear(1, 1), torch.ones(1, 1), kinds=["forward"])
    assert "1 module reached by 1 call\n" in str(check)
