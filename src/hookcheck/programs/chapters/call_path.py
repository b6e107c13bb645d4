"""Which ways of using a module go past its hooks, or trip over them?

Hooks run where a module is called. A container that takes a fused path, or reads the weights of a submodule instead of
calling it, leaves them out.
"""

from __future__ import annotations

from functools import partial
from inspect import signature
from itertools import product
from typing import Any
from warnings import catch_warnings, simplefilter

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.nets import times
from hookcheck.programs.program import program
from hookcheck.programs.watching import globally, keeping, noting

EVERY_CALL = "torch.nn.Module.register_forward_hook"


def encoder_layer() -> Any:
    """A TransformerEncoderLayer as it is set for inference, where it may take a fast path."""
    return nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()


def encoder_of_two() -> Any:
    """A TransformerEncoder of two layers, as it is set for inference."""
    return nn.TransformerEncoder(encoder_layer(), 2).eval()


@program("CP-01", PIN, since="1.7", source="torch.nn.Module.forward; pytorch#117925")
def forward_tells_that_it_skips_hooks(check: Check) -> None:
    """Who calls ``forward`` of a module that has hooks is told that they do not run, or they run."""
    log: list[str] = []
    module = times(2.0)
    module.register_forward_hook(noting(log, "hook"))
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        module.forward(torch.ones(1))
    check.true("told, or run", bool(caught or log), "call")
    log.clear()
    module(torch.ones(1))
    check.calls("calls of the hook when the module is called", len(log), 1)


@program("CP-02", PROMISE, since="1.9", source=f"{EVERY_CALL}; pytorch#132700")
def hooks_inside_an_encoder_run(check: Check) -> None:
    """A forward hook on the attention of each layer of a TransformerEncoder runs once a call, in inference too."""
    x = torch.ones(2, 3, 4)
    encoder: Any = nn.TransformerEncoder(encoder_layer(), 3).eval()
    log: list[int] = []
    for number, layer in enumerate(encoder.layers):
        layer.self_attn.register_forward_hook(noting(log, number))
    encoder(x)
    check.order("layers in eval mode", log, [0, 1, 2])
    log.clear()
    with torch.no_grad():
        encoder(x)
    check.order("layers in eval mode under no_grad", log, [0, 1, 2])
    log.clear()
    with torch.no_grad():
        encoder.train()(x)
    check.order("layers in training mode under no_grad", log, [0, 1, 2])


FORMS: dict[str, dict[str, bool]] = {
    "forward_pre_hook": {},
    "forward_pre_hook with keyword arguments": {"with_kwargs": True},
    "forward_hook": {},
    "forward_hook with keyword arguments": {"with_kwargs": True},
    "forward_hook that is always called": {"always_call": True},
}
"""The forms of forward hooks: the kind, what it is like, and the options that make it so."""


def forms(owner: Any, prefix: str) -> list[str]:
    """The forms that this torch has, by what registers them."""
    registers = {kind: getattr(owner, f"{prefix}{kind}") for kind in ("forward_pre_hook", "forward_hook")}
    return [
        form for form, options in FORMS.items() if {*options} <= {*signature(registers[form.split()[0]]).parameters}
    ]


@program("CP-03", PROMISE, since="1.9", source=f"{EVERY_CALL}; pytorch#128413")
def hooks_inside_a_layer_run(check: Check) -> None:
    """A forward hook on any one submodule of a TransformerEncoderLayer runs once a call, in inference too."""
    x = torch.ones(2, 3, 4)
    for name in ("self_attn", "dropout1", "norm1", "linear1", "dropout", "linear2", "dropout2", "norm2"):
        for form in forms(nn.Module, "register_"):
            log: list[str] = []
            layer = encoder_layer()
            getattr(getattr(layer, name), f"register_{form.split()[0]}")(noting(log, name), **FORMS[form])
            with torch.no_grad():
                layer(x)
            check.calls(f"calls of a {form} on {name}", len(log), 1)


@program("CP-09", PROMISE, since="1.9", source="torch.nn.modules.module.register_module_forward_hook; pytorch#128413")
def hooks_on_all_modules_run_in_fast_paths(check: Check) -> None:
    """A hook on all modules, in whatever form, runs for each that a TransformerEncoder with a padding mask, a
    TransformerEncoderLayer or a MultiheadAttention is made of and calls, in inference too."""
    parts = ["self_attn", "dropout1", "norm1", "linear1", "dropout", "linear2", "dropout2", "norm2"]
    in_layers = [[f"layers.{number}.{part}" for part in parts] for number in range(2)]
    x, mask = torch.ones(2, 3, 4), torch.tensor([[False] * 3, [False, True, True]])
    for form in forms(nn.modules.module, "register_module_"):
        kind, pre = form.split()[0], form.startswith("forward_pre_hook")
        layer, attention, encoder = encoder_layer(), nn.MultiheadAttention(4, 2).eval(), encoder_of_two()
        log: list[str] = []
        owners = (*layer.named_modules(), ("attention", attention), *encoder.named_modules())
        names = {module: name for name, module in owners}
        calls = {
            "a layer": (partial(layer, x), ["", *parts] if pre else [*parts, ""]),
            "attention": (partial(attention, x, x, x), ["attention"]),
            "an encoder with a padding mask": (
                partial(encoder, x, src_key_padding_mask=mask),
                ["", "layers.0", *in_layers[0], "layers.1", *in_layers[1]]
                if pre
                else [*in_layers[0], "layers.0", *in_layers[1], "layers.1", ""],
            ),
        }
        hook = partial(_named, log, names)
        handle = globally(kind, hook, **FORMS[form])
        for mode, (what, (call, due)) in product(("with gradients", "without"), calls.items()):
            log.clear()
            with torch.set_grad_enabled(mode == "with gradients"):
                call()
            check.order(f"{what} {mode}: {form}", log, due)
        handle.remove()


def _named(log: list[str], names: dict[Any, str], module: Any, *_: Any) -> None:
    """A hook that notes the name of its module."""
    log.append(names[module])


@program("CP-04", PROMISE, since="1.7", source=f"{EVERY_CALL}; pytorch#78109")
def hooks_on_the_output_projection_run(check: Check) -> None:
    """A forward hook on ``out_proj`` of a MultiheadAttention runs once a call, and what it returns is used."""
    x = torch.ones(3, 2, 4)
    attention: Any = nn.MultiheadAttention(4, 2)
    log: list[str] = []
    attention.out_proj.register_forward_hook(noting(log, "out_proj"))
    attention.register_forward_hook(noting(log, "attention"))
    attention(x, x, x)
    check.calls("calls", log.count("out_proj"), 1)
    check.calls("calls of a hook on the whole", log.count("attention"), 1)
    attention.out_proj.register_forward_hook(lambda module, args, output: torch.zeros_like(output))
    check.true("the output, which the hook replaced, is zero", bool((attention(x, x, x)[0] == 0).all()))


@program("CP-05", PIN, since="1.9", source=f"{EVERY_CALL}; pytorch#132700")
def masked_encoders_hand_on_padded_tensors(check: Check) -> None:
    """Hooks in a TransformerEncoder that is given a padding mask get ordinary padded tensors, in inference too."""
    x, mask, seen = torch.ones(2, 3, 4), torch.tensor([[False] * 3, [False, True, True]]), list[Any]()
    encoder = encoder_of_two()
    for layer in encoder.layers:
        layer.register_forward_hook(keeping(seen))
    with torch.no_grad():
        encoder(x, src_key_padding_mask=mask)
    check.calls("calls", len(seen), 2)
    for number, (_, (taken, *_), gave) in enumerate(seen):
        nested = [getattr(tensor, "is_nested", False) for tensor in (taken, gave)]
        check.equal(f"whether input and output of layer {number} are nested tensors", nested, [False, False])


@program("CP-06", PROMISE, since="1.8", source="torch.nn.modules.lazy.LazyModuleMixin; pytorch#61606")
def lazy_modules_take_keywords(check: Check) -> None:
    """A lazy module infers its parameters from keyword arguments as from positional ones."""
    x = torch.ones(1, 3)
    for name, call in {"positional": lambda lazy: lazy(x), "keyword": lambda lazy: lazy(input=x)}.items():
        lazy = nn.LazyLinear(2)
        if check.works(f"the first call with a {name} argument", partial(call, lazy)) is not None:
            check.equal(f"in_features after a {name} argument", lazy.in_features, 3)


@program("CP-07", PROMISE, since="1.8", source="torch.nn.modules.lazy.LazyModuleMixin; pytorch#60132")
def lazy_modules_have_hooks(check: Check) -> None:
    """The user's hooks on a lazy module run on the first call, which infers the parameters, and on every later one."""
    for kind in ("forward_pre_hook", "forward_hook"):
        log: list[str] = []
        lazy: Any = nn.LazyLinear(2)
        getattr(lazy, f"register_{kind}")(noting(log, "hook"))

        def ran(lazy: Any = lazy, log: list[str] = log) -> list[str]:
            lazy(torch.ones(1, 3))
            log.append("next call")
            lazy(torch.ones(1, 3))
            return log

        order = check.works(f"two calls with a {kind}", ran)
        if order is not None:
            check.order(f"hooks of two calls with a {kind}", order, ["hook", "next call", "hook"])
            check.equal(f"in_features with a {kind}", lazy.in_features, 3)


@program("CP-08", PROMISE, since="1.7", source=f"{EVERY_CALL}; pytorch#60132")
def one_shot_hooks_work(check: Check) -> None:
    """A forward pre-hook or forward hook that removes itself runs once, and the other hooks run every time."""
    for kind in ("forward_pre_hook", "forward_hook"):
        log: list[str] = []
        module, handles = times(2.0), list[Any]()
        register = getattr(module, f"register_{kind}")

        def once(*arguments: Any, log: list[str] = log, handles: list[Any] = handles) -> None:
            log.append("once")
            handles.pop().remove()

        handles.append(register(once))
        register(noting(log, "other"))

        def ran(module: Any = module, log: list[str] = log) -> list[str]:
            module(torch.ones(1))
            log.append("next call")
            module(torch.ones(1))
            return log

        order = check.works(f"two calls with a {kind}", ran)
        if order is not None:
            check.order(f"hooks of two calls with a {kind}", order, ["once", "other", "next call", "other"])


@program("CP-10", PROMISE, since="1.7", source=f"{EVERY_CALL}; torch.nn.AdaptiveLogSoftmaxWithLoss")
def hooks_in_an_adaptive_softmax_run(check: Check) -> None:
    """Hooks on what an AdaptiveLogSoftmaxWithLoss is made of run once each in a call, in ``log_prob`` and in
    ``predict``, which compute with what the hooks return."""
    # Classes 0 and 1 have logits of their own, 2 and 3 share the third of the head, which the tail divides among them.
    softmax: Any = nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2], div_value=1.0)
    x, parts, log = torch.ones(1, 2), ("head", "tail.0", "tail.0.0", "tail.0.1"), list[str]()
    modules = dict(softmax.named_modules())
    logits = {"head": torch.zeros(1, 3), "tail.0": torch.zeros(1, 2)}
    for name in parts:
        modules[name].register_forward_pre_hook(noting(log, f"+{name}"))
        modules[name].register_forward_hook(noting(log, f"-{name}"))
    for name in logits:
        modules[name].register_forward_hook(lambda module, args, output, name=name: logits[name])
    head, tail = ["+head", "-head"], ["+tail.0", "+tail.0.0", "-tail.0.0", "+tail.0.1", "-tail.0.1", "-tail.0"]
    probabilities = softmax.log_prob(x).exp()
    check.order("log_prob: hooks", log, [*head, *tail])
    check.equal("log_prob: probabilities", probabilities, [[1 / 3, 1 / 3, 1 / 6, 1 / 6]])
    log.clear()
    output, loss = softmax(x, torch.tensor([3]))
    check.order("a call: hooks", log, [*tail, *head])
    check.equal("a call: output and loss", [output.exp(), (-loss).exp()], [[1 / 6], 1 / 6])
    for what, first, due, hooks in (
        ("of the tail", [0.0, 0.0, 9.0], 3, [*head, *tail]),
        ("of the head", [0.0, 9.0, 0.0], 1, head),
    ):
        logits.update({"head": torch.tensor([first]), "tail.0": torch.tensor([[0.0, 9.0]])})
        log.clear()
        check.equal(f"predict: a class {what}", softmax.predict(x), [due])
        check.order(f"predict: hooks, where the class is {what}", log, hooks)
