from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import torch
from torch.nn.modules import module as torch_module

from hookcheck.hooks.kinds import KINDS
from hookcheck.probe.run import observe
from hookcheck.probe.state import preserved
from hookcheck.releases.numbers import release
from hookcheck.topology.build import Built
from hookcheck.topology.model import Topology
from hookcheck.topology.values import values

from .test_run import topology

parametrize: Any = import_module("torch.nn.utils.parametrize") if release(torch.__version__) >= (1, 9) else None

MODES = ("function", "dispatch") if release(torch.__version__) >= (2, 0) else ()
SAVING = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)


def state() -> dict[str, Any]:
    """Everything of the process that a case could change."""
    tables = {name: value for name, value in vars(torch_module).items() if name.startswith("_global_")}
    if parametrize:
        tables.update({name: value for name, value in vars(parametrize).items() if name.startswith("_cache")})
    return {
        **{name: dict(value) if isinstance(value, dict) else value for name, value in tables.items()},
        **{f"identity of {name}": id(value) for name, value in tables.items() if isinstance(value, dict)},
        "grad mode": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "random": torch.get_rng_state().tolist(),
        "warnings": list(warnings.filters),
        "hooks on saved tensors": SAVING and SAVING(True),
        "modes": [getattr(torch._C, f"_len_torch_{what}_stack")() for what in MODES],
    }


def spoil() -> None:
    """What no case should do."""
    if parametrize:
        parametrize._cache[(0, "weight")] = torch.zeros(1)
        parametrize._cache, parametrize._cache_enabled = {}, 1
    torch_module.register_module_forward_hook(lambda *_: None)
    torch_module.register_module_forward_pre_hook(lambda *_: None)
    torch_module.register_module_full_backward_hook(lambda *_: None)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float16)
    torch.rand(3)
    if MODES:
        import_module("torch.overrides").BaseTorchFunctionMode().__enter__()
        base = import_module("torch.utils._python_dispatch").TorchDispatchMode
        calling = {"__torch_dispatch__": lambda mode, call, types, given, named=None: call(*given, **(named or {}))}
        type("Passing", (base,), calling)().__enter__()
    if SAVING:
        torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, lambda saved: saved).__enter__()
    warnings.simplefilter("ignore")


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    before = state()
    yield
    assert state() == before


def test_everything_is_put_back() -> None:
    with preserved(), warnings.catch_warnings():
        spoil()


def test_everything_is_put_back_after_an_exception() -> None:
    def fails() -> None:
        with preserved(), warnings.catch_warnings():
            spoil()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()


def test_what_was_there_before_is_still_there() -> None:
    handle = torch_module.register_module_full_backward_hook(lambda *_: None)
    hooks = dict(torch_module._global_backward_hooks)
    with preserved():
        torch_module._global_backward_hooks.clear()
        torch_module.register_module_full_backward_hook(lambda *_: None)
        torch_module._global_is_full_backward_hook = None
    assert torch_module._global_backward_hooks == hooks
    assert torch_module._global_is_full_backward_hook is True
    handle.remove()
    torch_module._global_is_full_backward_hook = None


def test_grad_mode_that_was_off_stays_off() -> None:
    with torch.no_grad(), preserved():
        torch.set_grad_enabled(True)
    with torch.no_grad():
        with preserved():
            torch.set_grad_enabled(True)
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_case_leaves_the_process_as_it_found_it(kind: str | None) -> None:
    t = topology()
    assert observe(t, values(t), kind).raised is None


@pytest.mark.parametrize("kind", [None, "full_backward", "global_full_backward"])
def test_a_case_that_raises_leaves_the_process_as_it_found_it(
    kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(self: Any) -> Any:
        spoil()
        raise ZeroDivisionError

    monkeypatch.setattr(Built, "run", raising)
    t = topology()
    observation = observe(t, values(t), kind)
    assert observation.raised is not None
    assert observation.raised.type == "ZeroDivisionError"


def test_the_sticky_flag_of_global_hooks_is_reset() -> None:
    t: Topology = topology()
    for kind in ("global_full_backward", "global_backward"):
        observe(t, values(t), kind)
        assert torch_module._global_is_full_backward_hook is None
