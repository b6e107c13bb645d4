"""Is nothing called wrong where a model has hooks of its own, refuses some, or changes what hooks are on?"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import hookcheck
from hookcheck.models.result import CONFORMS, KNOWN, NOT_JUDGED, ModelCheck
from hookcheck.probe.state import preserved
from hookcheck.releases.numbers import release

pytestmark = pytest.mark.filterwarnings("ignore")
RELEASE = release(torch.__version__)
NEWER = pytest.mark.skipif(RELEASE < (2, 1), reason="what these models use came later")
MODULES = ["forward", "forward_pre", "full_backward", "full_backward_pre"]
GLOBAL = ["global_forward", "global_forward_pre", "global_full_backward", "global_backward"]
OUTPUTS = ["output_tensor", "output_retain_grad", "output_node"]
LEAVES = ["tensor", "post_accumulate", "multi_grad"]


class Doubling(nn.Sequential):
    """Has hooks that double the gradients of its middle."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
        self[1].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
        self[1].register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 2,))
        self[1].register_forward_hook(lambda module, args, output: output * 2)


class Explained(nn.Module):
    """Keeps what a layer gives and what comes back to it, and goes backward itself, as Grad-CAM does."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(1, 2, 3)
        self.head = nn.Linear(2, 2)
        self.body.register_forward_hook(self.save)
        self.body.register_full_backward_hook(self.save_gradient)

    def save(self, _: Any, __: Any, output: Any) -> None:
        self.activation = output

    def save_gradient(self, _: Any, __: Any, gradients: Any) -> None:
        self.gradient = gradients[0]

    def forward(self, x: Any) -> Any:
        scores = self.head(self.body(x).relu().mean((2, 3)))
        scores[:, 0].sum().backward(retain_graph=True)
        return scores, (self.gradient.mean((2, 3), keepdim=True) * self.activation).sum(1).relu()


class Implicit(nn.Module):
    """Puts a hook on what it gives, as equilibrium models do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        y = self.layer(x).tanh()
        y.register_hook(lambda gradient: gradient * 2)
        return y


class Stepping(nn.Sequential):
    """Lets go of a gradient once it is there, as an optimizer that steps in backward does."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
        for parameter in self.parameters():
            parameter.register_post_accumulate_grad_hook(lambda leaf: setattr(leaf, "grad", None))


class InPlace(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 1))


class Detaching(nn.Module):
    """Detaches in place what a layer gives."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        h = self.first(x)
        h.detach_()
        return self.second(h)


class Copying(nn.Module):
    """Copies a layer, and calls the copy as well."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.head = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.layer(x) + deepcopy(self.layer)(x))


class Replacing(nn.Module):
    """Calls modules that it makes in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        y = self.first(x)
        self.second = nn.Linear(3, 3)
        return nn.Tanh()(self.second(y))


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        self.aside = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        self.aside(x)
        return checkpoint(self.body, x, use_reentrant=False)


class Reversed(torch.autograd.Function):
    """Computes anew in backward, and asks for the gradients of parameters there."""

    @staticmethod
    def forward(ctx: Any, x: Any, function: Any, *parameters: Any) -> Any:
        ctx.function, ctx.parameters = function, parameters
        ctx.save_for_backward(x)
        with torch.no_grad():
            return x + function(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            first, *others = torch.autograd.grad(ctx.function(x), [x, *ctx.parameters], gradient)
        return (gradient + first, None, *others)


class Reversible(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def forward(self, x: Any) -> Any:
        return Reversed.apply(x, self.body, *self.body.parameters())


class Weights(nn.Module):
    """Gives a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3))

    def forward(self) -> Any:
        return self.weight


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = Weights()

    def forward(self, x: Any) -> Any:
        return x @ self.weights()


class Compiling(nn.Module):
    """Calls a function that torch.compile has made, which calls a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.function = torch.compile(lambda layer, x: layer(x), backend="eager")

    def forward(self, x: Any) -> Any:
        return self.function(self.layer, x).tanh()


class Choosing(nn.Module):
    """Runs one of its layers, which torch compiles for that."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: self.first(x), lambda x: self.second(x), (x,))


class OfGraph(nn.Module):
    """Takes a sparse matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, edges: Any, x: Any) -> Any:
        return torch.sparse.mm(edges, self.layer(x))


class Twice(nn.Module):
    """Uses its input twice under autocast, which casts it once."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.head = nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.head(self.layer(x) + self.layer(x))


def checked(model: nn.Module, *args: Any, **options: Any) -> ModelCheck:
    torch.manual_seed(0)
    return hookcheck.check_module(model, args or (torch.randn(2, 3, requires_grad=True),), **options)


@NEWER
@pytest.mark.parametrize(
    ("make", "kinds"),
    [
        (Doubling, [*MODULES, *GLOBAL, *OUTPUTS, *LEAVES]),
        (Implicit, [*MODULES, *OUTPUTS]),
        (Stepping, LEAVES),
        (InPlace, [*MODULES, *GLOBAL, *OUTPUTS]),
        (Detaching, [*MODULES, *GLOBAL, *OUTPUTS]),
        (Copying, [*MODULES, *GLOBAL, *OUTPUTS, "backward"]),
        (Replacing, [*MODULES, *GLOBAL[:-1]]),  # a legacy hook raises, since the module that forward makes is gone
        (Checkpointed, [*OUTPUTS, *LEAVES]),
        (Weighted, [*MODULES, *OUTPUTS, *LEAVES]),
        (Reversible, [*MODULES, *LEAVES]),
    ],
)
def test_nothing_new_deviates(make: type[nn.Module], kinds: list[str]) -> None:
    assert not checked(make(), kinds=kinds).deviations


@NEWER
def test_what_a_hook_keeps_may_be_used_elsewhere() -> None:
    image = torch.randn(2, 1, 4, 4, requires_grad=True)
    assert not checked(Explained(), image, kinds=[*MODULES, *OUTPUTS]).deviations


@NEWER
def test_of_a_module_with_hooks_that_act_the_rest_is_judged() -> None:
    check = checked(Doubling(), kinds=["full_backward", "output_tensor"])
    verdicts = {v.clause: v.verdict for v in check.of("1", "full_backward")}
    assert verdicts["GI-01"] == NOT_JUDGED
    assert verdicts["BW-05"] == CONFORMS
    assert {v.verdict for v in check.of("0", "full_backward")} == {CONFORMS}


@NEWER
@pytest.mark.parametrize(("make", "modules"), [(InPlace, ("0", "1")), (Detaching, ("first",))])
def test_modules_that_refuse_full_hooks_are_named(make: type[nn.Module], modules: tuple[str, ...]) -> None:
    check = checked(make(), kinds=["full_backward", "global_full_backward"])
    refusing = [r for r in check.remarks if r.topic == "in-place operations that full backward hooks refuse"]
    assert {path for remark in refusing for path in remark.modules} == {*modules}
    assert {kind for remark in refusing for kind in remark.kinds} == {"full_backward", "global_full_backward"}
    assert {v.verdict for v in check.judged if v.clause == "BW-12"} == {CONFORMS}


@NEWER
def test_modules_that_refuse_full_hooks_leave_contexts_to_the_others() -> None:
    check = checked(InPlace(), kinds=["full_backward"], contexts=["no_grad"])
    texts = {r.text: r.modules for r in check.remarks if "context" in r.topic}
    assert texts == {"called never and not once": ("2", "")}


@NEWER
def test_gradients_that_are_sparse_are_converted() -> None:
    model = nn.Sequential(nn.Embedding(4, 3, sparse=True), nn.Linear(3, 1))
    check = checked(model, torch.tensor([1, 1, 3]), kinds=["full_backward"], contexts=["float64", "bfloat16"])
    assert not [r for r in check.remarks if "context" in r.topic]


@NEWER
def test_what_torch_compile_has_made_inside_of_a_model_runs_as_it_was() -> None:
    check = checked(Compiling(), kinds=[*MODULES, *OUTPUTS])
    assert not check.deviations
    assert {v.verdict for v in check.of("layer", "full_backward")} == {CONFORMS}


@pytest.mark.skipif(RELEASE < (2, 6), reason="torch.cond takes no gradients before")
def test_a_model_that_does_not_run_uncompiled_is_left_so() -> None:
    check = checked(Choosing(), kinds=MODULES)
    assert not check.deviations
    assert not [r for r in check.remarks if "two steps" in r.text]


@NEWER
def test_full_hooks_that_refuse_sparse_tensors_are_known() -> None:
    check = checked(OfGraph(), torch.eye(3).to_sparse(), torch.randn(3, 3, requires_grad=True))
    assert not check.deviations
    assert KNOWN in {v.verdict for v in check.judged if v.clause == "OB-01" and v.kind == "full_backward"}


@NEWER
def test_rounding_is_that_of_the_coarsest_dtype() -> None:
    check = checked(Twice())
    assert not check.deviations
    assert {v.verdict for v in check.of("layer", "full_backward")} == {CONFORMS}


@pytest.mark.parametrize("kind", ["global_forward", "global_forward_pre"])
def test_hooks_on_all_modules_are_judged_on_those_that_are_chosen(kind: str) -> None:
    check = checked(InPlace(), kinds=[kind], modules=["2"])
    assert not check.deviations
    assert {v.verdict for v in check.judged if v.kind == kind} == {CONFORMS}


def doubled(original: Any, module: nn.Module) -> Any:
    """What stands for torch's `BackwardHook`, and gives hooks on ``module`` twice the gradients of its inputs."""

    def make(target: Any, hooks: Any, *others: Any) -> Any:
        def wrong(hook: Any) -> Any:
            return lambda owner, inputs, outputs: hook(owner, tuple(g if g is None else 2 * g for g in inputs), outputs)

        return original(target, [wrong(hook) for hook in hooks] if target is module else hooks, *others)

    return make


@NEWER
def test_a_fault_is_seen_beside_hooks_that_return_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    model[1].register_full_backward_hook(lambda module, inputs, outputs: None)
    of: Any = torch.nn.modules.module
    of = getattr(of, "hooks", of)  # up to 2.5 it is looked up in torch.utils.hooks
    monkeypatch.setattr(of, "BackwardHook", doubled(of.BackwardHook, model[1]))
    deviations = checked(model, kinds=["full_backward"]).deviations
    assert [(v.module, v.clause, v.gap) for v in deviations] == [("1", "GI-01", "wrong values")]


@NEWER
@pytest.mark.parametrize("factor", [None, 2])
def test_hooks_on_all_modules_that_are_there_are_no_fault(factor: int | None) -> None:
    def look(module: Any, inputs: Any, outputs: Any) -> Any:
        return None if factor is None else tuple(g if g is None else g * factor for g in inputs)

    with preserved():  # once it is removed, torch still remembers that it was a full one
        torch.nn.modules.module.register_module_full_backward_hook(look)
        check = checked(nn.Sequential(nn.Linear(3, 3), nn.Tanh()), kinds=[*MODULES, *GLOBAL, *OUTPUTS, "backward"])
    assert not check.deviations


class Yielding(nn.Module):
    """Gives a generator."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return (self.layer(x) for _ in range(2))


def test_where_in_memory_an_output_is_does_not_count() -> None:
    check = checked(Yielding(), loss=lambda output: sum(map(torch.sum, output)), kinds=["forward"])
    assert not check.deviations
