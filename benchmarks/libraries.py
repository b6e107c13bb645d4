"""What do the hooks of popular libraries receive? Writes docs/libraries.md.

    python benchmarks/libraries.py [NAME…]

Runs what is installed of torchvision, transformers, timm, captum, grad-cam, torchcam, opacus, torchinfo, fvcore and
transformer-lens on models with random weights; nothing is downloaded. Without a name it writes the page, with names of
libraries it prints what becomes of those.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from library_models import Runs, Small, Twice
from own_models import MODELS as OWN
from torch import nn

import hookcheck
from hookcheck.models.result import KNOWN, NEW, NOT_JUDGED, ModelCheck, OwnHook

PAGE = Path(__file__).parents[1] / "docs" / "libraries.md"


def image(size: int = 64) -> Any:
    return torch.randn(2, 3, size, size)


def vision(name: str, size: int = 64, **options: Any) -> tuple[Any, Any]:
    from torchvision import models

    return getattr(models, name)(num_classes=10, **options).eval(), image(size)


def timm(name: str, size: int = 64, **options: Any) -> tuple[Any, Any]:
    from timm import create_model

    return create_model(name, pretrained=False, num_classes=10, **options).eval(), image(size)


SIZES: dict[str, dict[str, Any]] = {
    "Bert": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "Llama": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64},
    "T5": {"d_model": 32, "num_layers": 2, "num_heads": 2, "d_ff": 64, "d_kv": 16},
}


def language(name: str) -> tuple[Any, Any, Any]:
    import transformers

    config = getattr(transformers, f"{name}Config")(vocab_size=50, **SIZES[name])
    words = torch.arange(12).reshape(2, 6)
    more = {"decoder_input_ids": words} if name == "T5" else {}
    return getattr(transformers, f"{name}Model")(config).eval(), (), {"input_ids": words, **more}


MODELS: dict[str, tuple[str, Callable[[], Any]]] = {
    "resnet18": ("torchvision", lambda: vision("resnet18")),
    "vgg16": ("torchvision", lambda: vision("vgg16", 32)),
    "mobilenet_v3_small": ("torchvision", lambda: vision("mobilenet_v3_small")),
    "vit_b_16": ("torchvision", lambda: vision("vit_b_16", 32, image_size=32)),
    "swin_t": ("torchvision", lambda: vision("swin_t")),
    "Bert": ("transformers", lambda: language("Bert")),
    "GPT-2": ("transformers", lambda: language("GPT2")),
    "Llama": ("transformers", lambda: language("Llama")),
    "T5": ("transformers", lambda: language("T5")),
    "timm resnet10t": ("timm", lambda: timm("resnet10t")),
    "timm vit_tiny": ("timm", lambda: timm("vit_tiny_patch16_224", 32, img_size=32)),
    **{name: ("torch", OWN[name]) for name in ("nn.Transformer", "LSTM tagger", "graph network")},
    "small": ("torch", lambda: (Small(), image(8))),
    "twice": ("torch", lambda: (Twice(), image(8))),
}
"""Models by name: the distribution that has it, and what makes it with its arguments."""

CNNS = ("resnet18", "mobilenet_v3_small", "timm resnet10t")
"""Those that class activation maps are drawn of."""


@contextmanager
def grad_cam(model: Any) -> Iterator[None]:
    from pytorch_grad_cam import GradCAM

    with GradCAM(model, [_last(model)]):  # it removes its hooks when it is collected, so it must be held
        yield


def torch_cam(model: Any) -> Any:
    from torchcam.methods import GradCAM

    return GradCAM(model, _last(model)).remove_hooks


def guided(model: Any) -> Any:
    from captum.attr import GuidedBackprop

    method = GuidedBackprop(model)
    model.apply(method._register_hooks)
    return method._remove_hooks


def layer_grad_cam(model: Any, x: Any) -> Any:
    from captum.attr import LayerGradCam

    return LayerGradCam(model, _last(model)).attribute(x, target=0)


def layer_activation(model: Any, x: Any) -> Any:
    from captum.attr import LayerActivation

    return LayerActivation(model, _last(model)).attribute(x)


def per_sample(model: Any) -> Any:
    from opacus.grad_sample import GradSampleModule

    return GradSampleModule(model, strict=False).remove_hooks


def summary(model: Any, x: Any) -> Any:
    import torchinfo

    return torchinfo.summary(model, input_data=x, verbose=0)


def flops(model: Any, x: Any) -> Any:
    from fvcore.nn import FlopCountAnalysis

    return FlopCountAnalysis(model, x).total()


def counter(model: Any) -> Any:
    from torch.utils.flop_counter import FlopCounterMode

    return FlopCounterMode(display=False)


def lens() -> tuple[Any, Any]:
    from transformer_lens import HookedRootModule
    from transformer_lens.hook_points import HookPoint

    class Lens(HookedRootModule):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.point, self.last = nn.Linear(3, 4), HookPoint(), nn.Linear(4, 2)
            self.setup()

        def forward(self, x: Any) -> Any:
            return self.last(torch.tanh(self.point(self.first(x))))

    return Lens(), torch.randn(2, 3)


def on_point(model: Any) -> Any:
    model.add_hook("point", lambda tensor, hook: None)
    model.add_hook("point", lambda tensor, hook: None, dir="bwd")
    return model.reset_hooks


def _last(model: Any) -> Any:
    return next(module for path, module in model.named_modules() if path in ("layer4", "features"))


@dataclass(frozen=True)
class LibraryUse:
    """A library's hooks on a model; ``runs`` says that the library calls the model itself."""

    library: str
    what: str
    model: str
    hooks: Callable[..., Any]
    runs: bool = False


USES = (
    *(LibraryUse("grad-cam", "GradCAM", name, grad_cam) for name in CNNS),
    *(LibraryUse("torchcam", "GradCAM", name, torch_cam) for name in CNNS),
    *(LibraryUse("captum", "GuidedBackprop", name, guided) for name in ("resnet18", "vgg16", "timm resnet10t")),
    *(LibraryUse("captum", "LayerGradCam", name, layer_grad_cam, runs=True) for name in CNNS),
    *(LibraryUse("captum", "LayerActivation", name, layer_activation, runs=True) for name in CNNS),
    *(LibraryUse("opacus", "GradSampleModule", name, per_sample) for name in ("small", "twice", "Bert", "GPT-2")),
    *(LibraryUse("torchinfo", "summary", name, summary, runs=True) for name in ("resnet18", "swin_t", "vit_b_16")),
    *(LibraryUse("fvcore", "FlopCountAnalysis", name, flops, runs=True) for name in ("resnet18", "small")),
    *(LibraryUse("torch", "FlopCounterMode", name, counter) for name in ("resnet18", "vit_b_16", "GPT-2", "small")),
    LibraryUse("transformer-lens", "HookPoint", "a lens", on_point),
)


@contextmanager
def without_operators() -> Iterator[None]:
    """Lets torchvision be imported beside a torch for CPUs: its wheels are built for CUDA's, so that its operators are
    missing there, for which it registers fakes nevertheless. The models are Python, and need none."""
    right = getattr(torch.library, "register_fake", None)

    def register(operator: Any, *arguments: Any, **options: Any) -> Any:
        if str(operator).startswith("torchvision::"):
            return lambda function: function
        return right(operator, *arguments, **options)

    torch.library.register_fake = register
    try:
        yield
    finally:
        torch.library.register_fake = right


if find_spec("torchvision"):
    with without_operators():
        import torchvision  # noqa: F401


def there(library: str) -> bool:
    """Whether it is installed."""
    name = {"grad-cam": "pytorch_grad_cam", "transformer-lens": "transformer_lens"}.get(library, library)
    return find_spec(name) is not None


def usable() -> list[LibraryUse]:
    """Those whose library and model are installed."""
    return [use for use in USES if there(use.library) and there(_model(use.model)[0])]


def _model(name: str) -> tuple[str, Callable[[], Any]]:
    return ("transformer-lens", lens) if name == "a lens" else MODELS[name]


def checked(use: LibraryUse) -> ModelCheck:
    """What the library's hooks receive on the model."""
    torch.manual_seed(0)
    model, args, *kwargs = _model(use.model)[1]()
    if use.library == "opacus":
        model.train()  # it captures nothing in evaluation
    if use.runs:
        return hookcheck.check_module(Runs(model, use.hooks), args, hooks=lambda _: None)
    return hookcheck.check_module(model, args, *kwargs, hooks=use.hooks)


def bare(name: str) -> ModelCheck:
    """What hooks of the usual kinds receive on the model."""
    torch.manual_seed(0)
    return hookcheck.check_module(*MODELS[name][1]())


def wrong(result: ModelCheck) -> list[OwnHook]:
    """The hooks that received something else than they must."""
    return [hook for hook in result.hooks if any(v.verdict in (NEW, KNOWN) for v in hook.judged)]


def _row(use: LibraryUse, result: ModelCheck) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(hook.kind for hook in result.hooks).items())
    calls = sum(hook.called for hook in result.hooks)
    right = sum(not any(v.verdict != "conforms" for v in hook.judged) for hook in result.hooks)
    unjudged = sum(any(v.verdict == NOT_JUDGED for v in hook.judged) for hook in result.hooks)
    left = sum(hook.left for hook in result.hooks)
    cells = (f"{use.library} `{use.what}`", use.model, kinds, calls, right, len(wrong(result)), unjudged, left)
    return f"| {' | '.join(map(str, cells))} |"


def _notes(uses: dict[LibraryUse, ModelCheck]) -> Iterator[str]:
    """Each thing that is not as it must be, with the reason, once."""
    notes: dict[str, list[str]] = {}
    for use, result in uses.items():
        for hook in result.hooks:
            if any(v.verdict != "conforms" for v in hook.judged):
                text = f"{use.library} `{use.what}`, {hook.kind} hooks: {_plain(_short(hook))}"
                notes.setdefault(text, []).append(use.model)
        for remark in result.remarks:
            if remark.topic == "what changes because a hook is there":
                notes.setdefault(f"{use.library} `{use.what}`: {remark.text}", []).append(use.model)
    for text, models in notes.items():
        yield f"* {text} ({', '.join(dict.fromkeys(models))})"


def _short(hook: OwnHook) -> str:
    verdict = next((v for v in hook.judged if v.verdict in (NEW, KNOWN)), None)
    if verdict is None:
        return next(v.why for v in hook.judged if v.verdict != "conforms")
    return f"{verdict.gap} ({verdict.clause}){f', since {verdict.why}' if verdict.why else ''}"


HEAD = """\
# What popular libraries see

Written by `python benchmarks/libraries.py`: models with random weights, nothing is downloaded. The hooks are those that
the libraries register themselves; `hookcheck.check_module` with `hooks=` holds what they receive against the truth
([how](check.md)). Made with {versions}.

## Their hooks

*Right* are hooks that received what they must, as often as they must; *wrong* those that did not; *not judged* those of
which the truth is not known, such as hooks on tensors inside of a module; *left* those that the library's own removal
leaves behind.

| library | model | hooks | calls | right | wrong | not judged | left |
| --- | --- | --- | --- | --- | --- | --- | --- |
{uses}

What is not right, with the reason:

{notes}

## Hooks of the usual kinds on these models

Verdicts on all sub-modules; below, what a user of hooks should know of each.

| model | modules | conform | known | new | not judged |
| --- | --- | --- | --- | --- | --- |
{models}

{remarks}
"""


def _model_row(name: str, result: ModelCheck) -> str:
    counts = Counter(verdict.verdict for verdict in result.judged)
    cells = (name, len(result.calls), *(counts[word] for word in ("conforms", KNOWN, NEW, NOT_JUDGED)))
    return f"| {' | '.join(map(str, cells))} |"


def _remarks(results: dict[str, ModelCheck]) -> Iterator[str]:
    for name, result in results.items():
        yield f"**{name}**\n"
        topics = dict.fromkeys(remark.topic for remark in result.remarks if "legacy" not in remark.topic)
        for topic in topics:
            texts = dict.fromkeys(_plain(remark.text) for remark in result.remarks if remark.topic == topic)
            yield f"* {topic}: {'; '.join(texts)}"
        yield ""


def _plain(text: str) -> str:
    return text.replace(f"{Path(torch.__file__).parents[1]}{os.sep}", "")


def main(names: list[str]) -> None:
    """Writes the page, or prints what becomes of some libraries."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    if names:
        for use in usable():
            if use.library in names:
                print(use.library, use.what, checked(use), sep="\n")
        return
    uses = {}
    for use in usable():
        print(use.library, use.what, use.model, file=sys.stderr)
        uses[use] = checked(use)
    models = {}
    for name, (library, _) in MODELS.items():
        if there(library):
            print(name, file=sys.stderr)
            models[name] = bare(name)
    libraries = sorted({use.library for use in uses} | {library for library, _ in MODELS.values() if there(library)})
    text = HEAD.format(
        versions=", ".join(f"{library} {version(library)}" for library in libraries),
        uses="\n".join(_row(use, result) for use, result in uses.items()),
        notes="\n".join(_notes(uses)),
        models="\n".join(_model_row(name, result) for name, result in models.items()),
        remarks="\n".join(_remarks(models)).rstrip("\n"),
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
