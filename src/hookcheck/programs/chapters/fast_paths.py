"""Does a hook change what is computed where it keeps a module from its fast path?

In inference some modules of attention may take another implementation, which calls none of their parts. Hooks on them
or in them decide which of the two runs, and must not decide what comes out.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

from hookcheck.contract.clause import PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

MASKS = "torch.nn.MultiheadAttention.forward, attn_mask and key_padding_mask"


VALUES = {
    "booleans": [1.0, 1.0, 0.0],
    "floats of 0 and -inf": [1.0, 1.0, 0.0],
    "other floats": [1.0, 2.0, 5.0],
    "equal floats": [2.0, 2.0, 2.0],
}
"""The numbers of a mask, and in which proportion they share out the attention of a step where all scores are equal: a
mask of log(w) gives w over the sum of all w."""

HOOKS = ("no hooks", "hooks on it", "hooks on its parts")


def mean(weights: list[float]) -> float:
    """The mean of the steps of `sequences` that is weighed so."""
    return (weights[0] + 2.0 * weights[1] + 4.0 * weights[2]) / sum(weights)


def sequences() -> Any:
    """Two sequences of three steps, each of two features whose mean is zero."""
    return torch.tensor([[[1.0, -1.0], [2.0, -2.0], [4.0, -4.0]]] * 2)


def mask(of: str, values: str) -> Any:
    """A mask of steps, or of padding, of which the first sequence has none."""
    weights = VALUES[values]
    shares = torch.tensor([weights] * 3 if of == "steps" else [[1.0, 1.0, 1.0], weights])
    return shares == 0 if values == "booleans" else shares.log()


def hook(module: Any, hooks: str, kind: str = "forward_hook") -> None:
    """Registers hooks that return nothing."""
    whole, *parts = module.modules()
    for owner in [whole] if hooks == "hooks on it" else parts if hooks == "hooks on its parts" else []:
        getattr(owner, f"register_{kind}")(lambda *arguments: None)


def adding(norm_first: bool = False) -> Any:
    """A TransformerEncoderLayer that adds attention to its input. The attention has scores of zero, so it gives a mean
    of its input that is weighed as the mask has it; what the layer feeds forward is zero; and its norms, whose eps is
    2**40 and whose weight is the root of that, change nothing where the mean of the features is zero."""
    layer = nn.TransformerEncoderLayer(2, 2, 1, 0.0, batch_first=True, layer_norm_eps=2.0**40, norm_first=norm_first)
    state = {name: torch.zeros_like(number) for name, number in layer.state_dict().items()}
    state["self_attn.in_proj_weight"][4:] = state["self_attn.out_proj.weight"][:] = torch.eye(2)
    state["norm1.weight"][:] = state["norm2.weight"][:] = 2.0**20
    layer.load_state_dict(state)
    return layer.eval()


@program("FP-01", PROMISE, since="1.13", source=f"{MASKS}; pytorch#107084")
def masks_of_attention(check: Check) -> None:
    """In inference, with hooks and without, MultiheadAttention adds a float mask to its scores and leaves out what a
    binary one marks."""
    for of, values, hooks in product(("steps", "padding"), VALUES, HOOKS):
        layer = adding()
        hook(layer.self_attn, hooks)
        x, numbers = sequences(), mask(of, values)
        argument = "attn_mask" if of == "steps" else "key_padding_mask"
        with torch.no_grad():
            output = layer.self_attn(x, x, x, **{argument: numbers})[0]
        check.equal(f"mask of {of}, {values}: {hooks}", output[1, :, 0], [mean(VALUES[values])] * 3)


@program("FP-02", PROMISE, since="1.13", source=f"{MASKS}; pytorch#118628")
def masks_of_a_layer(check: Check) -> None:
    """In inference, with hooks and without, TransformerEncoderLayer has a float mask added to the scores of its
    attention, and what a binary one marks left out."""
    for norm, of, values, hooks in product(("last", "first"), ("steps", "padding"), VALUES, HOOKS):
        layer = adding(norm_first=norm == "first")
        hook(layer, hooks)
        x, numbers = sequences(), mask(of, values)
        argument = "src_mask" if of == "steps" else "src_key_padding_mask"
        with torch.no_grad():
            output = layer(x, **{argument: numbers})
        due = [x + mean(VALUES[values]) for x in (1.0, 2.0, 4.0)]
        check.equal(f"norm {norm}, mask of {of}, {values}: {hooks}", output[1, :, 0], due)


@program("FP-03", PROMISE, since="1.13", source=f"{MASKS}; pytorch#118628")
def masks_of_an_encoder(check: Check) -> None:
    """In inference, with hooks and without, TransformerEncoder has a float mask added to the scores of the attention in
    its layers, and what a binary one marks left out."""
    # The second layer adds the mean of what the first gives: twice that of the input. Padding is not looked at.
    for tensors, of, values, hooks in product(("nested", "plain"), ("steps", "padding"), VALUES, HOOKS):
        layer = adding()
        encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=tensors == "nested").eval()
        hook(encoder, hooks)
        x, numbers = sequences(), mask(of, values)
        argument = "mask" if of == "steps" else "src_key_padding_mask"
        with torch.no_grad():
            output = encoder(x, **{argument: numbers})
        due = [x + 3.0 * mean(VALUES[values]) for x in (1.0, 2.0)]
        check.equal(f"{tensors} tensors, mask of {of}, {values}: {hooks}", output[1, :2, 0], due)


@program("FP-04", PROMISE, since="1.13", source=f"torch.nn.Module.register_forward_hook; {MASKS}; pytorch#118628")
def hooks_change_nothing_on_fast_paths(check: Check) -> None:
    """In inference a hook that returns nothing, on attention, on a layer or encoder of a transformer or on their parts,
    leaves what these compute as it is without the hook."""
    x = torch.arange(24.0, dtype=torch.float64).cos().reshape(2, 3, 4)
    causal = torch.ones(3, 3, dtype=torch.bool).triu(1)
    padding = torch.tensor([[False, False, False], [False, False, True]])
    layer = partial(nn.TransformerEncoderLayer, 4, 2, 3, batch_first=True)
    attention = partial(nn.MultiheadAttention, 4, 2, batch_first=True)
    cases: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "a layer": (layer, (x,)),
        "a layer, gelu": (partial(layer, activation="gelu"), (x,)),
        "a layer, norm first": (partial(layer, norm_first=True), (x, causal)),
        "a layer, nested tensor": (layer, (torch.nested.nested_tensor([x[0], x[1, :2]]),)),
        "a layer, padding": (layer, (x, None, padding)),
        "a layer, causal and padding": (layer, (x, causal, padding)),
        "a layer, floats": (layer, (x, causal.double())),
        "a layer, floats for padding": (layer, (x, None, padding.double())),
        "a layer, floats of another dtype": (layer, (x, torch.zeros(3, 3).half())),
        "a layer, a step that nothing is left for": (layer, (x, torch.eye(3, 1).bool().expand(3, 3))),
        "a layer, a sequence of padding alone": (layer, (x, None, padding[:, 2:].expand(2, 3))),
        "an encoder": (partial(nn.TransformerEncoder, layer(), 2), (x,)),
        "an encoder, causal": (partial(nn.TransformerEncoder, layer(), 2), (x, causal)),
        "an encoder, padding": (partial(nn.TransformerEncoder, layer(), 2), (x, None, padding)),
        "attention": (attention, (x, x, x)),
        "attention, padding": (attention, (x, x, x, padding)),
    }
    kinds = ("forward_pre_hook", "forward_hook", "full_backward_hook")
    for case, (make, arguments) in cases.items():
        plain = computed(make(), arguments)
        for kind, hooks in product(kinds, HOOKS[1:]):
            module = make()
            hook(module, hooks, kind)
            output = check.works(f"{case}: a call with {hooks} ({kind})", partial(computed, module, arguments))
            if output is not None:
                check.equal(f"{case}: output with {hooks} ({kind})", output, plain)


def computed(module: Any, arguments: tuple[Any, ...]) -> Any:
    """One feature of what the module gives in inference, where its parameters are the sines of whole numbers."""
    for parameter in module.double().eval().parameters():
        parameter.data[:] = torch.arange(parameter.numel()).double().sin().view_as(parameter)
    with torch.no_grad():
        output = module(*arguments)
    tensors = output if isinstance(output, tuple) else (output,)
    return [[part[..., 1] for part in tensor.unbind()] for tensor in tensors]
