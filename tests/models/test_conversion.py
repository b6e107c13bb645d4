"""What do torch's own conversions do to hooks, and is each fate seen?"""

from __future__ import annotations

import copy
import json
import pickle
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from hookcheck.errors import HookcheckError
from hookcheck.models.conversion import check_conversion, inventory
from hookcheck.programs.check import Check
from hookcheck.programs.processes import process_group


def look(*arguments: Any) -> None:
    """A hook of any kind."""


def other(*arguments: Any) -> None:
    """Another one."""


class Watcher:
    """An object whose method is a hook."""

    def see(self, *arguments: Any) -> None:
        """The hook."""


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))


def fates(conversion: Any) -> dict[tuple[str, str], str]:
    return {(fate.kind, fate.path): fate.fate for fate in conversion.fates}


def watched() -> nn.Sequential:
    net = network()
    for path in (0, 1, 4):
        net[path].register_forward_hook(look)
    net.register_forward_pre_hook(look)
    net[4]._register_state_dict_hook(look)
    net[4]._register_load_state_dict_pre_hook(look)
    return net


@pytest.mark.parametrize("way", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_keep_the_hooks_of_modules(way: Any) -> None:
    net = watched()
    net[0].register_forward_hook(partial(look, "word"))
    net[0].register_forward_hook(Watcher().see)
    assert set(fates(check_conversion(net, way(net))).values()) == {"kept"}


def test_a_copied_parameter_has_lost_its_hooks() -> None:
    """`Parameter.__deepcopy__` makes a new one of the data alone."""
    net = network()
    net[0].weight.register_hook(look)
    result = check_conversion(net, copy.deepcopy(net))
    assert fates(result) == {("tensor", "0.weight"): "left behind"}
    with pytest.raises(AssertionError, match="1 hook did not survive"):
        result.raise_if_lost()


def test_fused_modules() -> None:
    """`fuse_known_modules` hands pre-hooks of the first and hooks of the last module on to the fused one; both pop."""
    fuse = getattr(getattr(torch, "ao", torch), "quantization", torch.quantization).fuse_modules
    net = watched().eval()
    net[0].register_forward_pre_hook(look)
    seen = fates(check_conversion(net, fuse(net, [["0", "1"]])))
    assert seen["forward_pre", "0"] == "kept"
    assert seen["forward", "4"] == "kept"
    assert seen["forward", "1"] == "moved"


@pytest.mark.skipif(not hasattr(nn.Module, "register_full_backward_hook"), reason="full hooks came with 1.8")
def test_dynamic_quantisation_replaces_linear_layers() -> None:
    net = watched()
    net[4].register_full_backward_hook(look)
    quantize = getattr(getattr(torch, "ao", torch), "quantization", torch.quantization).quantize_dynamic
    seen = fates(check_conversion(net, quantize(net, {nn.Linear})))
    assert seen["forward", "0"] == "kept"
    assert seen["full_backward", "4"] == "left behind"


def test_synchronised_batch_norm_is_a_new_module() -> None:
    net = watched()
    held, old = inventory(net), net[1]
    result = check_conversion(held, nn.SyncBatchNorm.convert_sync_batchnorm(net))
    assert fates(result)["forward", "1"] == "left behind"
    assert fates(result)["forward", "0"] == "kept"
    assert f"left behind: forward hook {__name__}.look on 1" in str(result)
    assert json.loads(result.to_json())["fates"][0]["fate"] in ("kept", "left behind")
    del old


@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_a_norm_that_is_removed_takes_its_own_hooks(norm: str) -> None:
    layer = getattr(nn.utils, norm)(nn.Linear(2, 2))
    layer.register_forward_hook(look)
    held = inventory(layer)
    getattr(nn.utils, f"remove_{norm}")(layer)
    seen = {(fate.kind, "look" in fate.function): fate.fate for fate in check_conversion(held, layer).fates}
    assert seen["forward", True] == "kept"
    assert seen["forward_pre", False] == "lost"


def test_a_parametrised_weight_moves() -> None:
    parametrize = pytest.importorskip("torch.nn.utils.parametrize")
    layer = nn.Linear(2, 2)
    layer.weight.register_hook(look)
    layer.register_forward_hook(look)
    held = inventory(layer)
    parametrize.register_parametrization(layer, "weight", nn.Identity())
    result = check_conversion(held, layer)
    assert {fate.path: (fate.fate, fate.now) for fate in result.fates} == {
        "": ("kept", ""),
        "weight": ("kept", "parametrizations.weight.original"),
    }


def test_a_compiled_model_holds_the_very_same_modules() -> None:
    if not hasattr(torch, "compile"):
        pytest.skip("this torch has no torch.compile")
    net = watched()
    result = check_conversion(net, torch.compile(net, backend="eager"))
    assert set(fates(result).values()) == {"kept"}
    assert {fate.now for fate in result.fates if fate.path == "4"} == {"_orig_mod.4"}


def test_a_traced_graph_has_the_leaves_but_not_the_root() -> None:
    fx = pytest.importorskip("torch.fx")
    net = watched()
    seen = fates(check_conversion(net, fx.symbolic_trace(net)))
    assert seen["forward", "4"] == "kept"
    assert seen["forward_pre", ""] == "left behind"


def test_an_exported_program_has_no_hooks() -> None:
    export = pytest.importorskip("torch.export")
    net = watched().eval()
    program = export.export(net, (torch.ones(1, 1, 2, 2),))
    assert set(fates(check_conversion(net, program.module())).values()) == {"left behind"}
    with pytest.raises(HookcheckError, match=r"pass exported.module\(\)"):
        check_conversion(net, program)


def test_fully_sharded() -> None:
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    if not hasattr(fsdp, "fully_shard") or not torch.distributed.is_available():
        pytest.skip("this torch has no fully_shard")
    with process_group(Check()):
        mesh = torch.distributed.init_device_mesh("cpu", (1,))
        net = nn.Sequential(nn.Linear(2, 2))
        net[0].register_forward_hook(look)
        net[0].weight.register_hook(look)
        held, old = inventory(net), net[0].weight
        seen = fates(check_conversion(held, fsdp.fully_shard(net, mesh=mesh)))
        assert seen["forward", "0"] == "kept"
        assert seen["tensor", "0.weight"] == "left behind"
        del old


def test_options_order_and_doubles_are_seen() -> None:
    net = nn.Linear(1, 1)
    net.register_forward_hook(look)
    net.register_forward_hook(other)
    turned = nn.Linear(1, 1)
    turned.register_forward_hook(other)
    turned.register_forward_hook(look)
    turned.register_forward_hook(look)
    result = check_conversion(net, turned)
    assert {fate.fate for fate in result.fates} == {"changed", "kept", "doubled"}
    assert "now before" in str(result)


def test_a_lost_option_is_seen() -> None:
    if not hasattr(nn.Linear(1, 1), "_forward_hooks_always_called"):
        pytest.skip("this torch has no such options")
    net, bare = nn.Linear(1, 1), nn.Linear(1, 1)
    net.register_forward_hook(look, with_kwargs=True, always_call=True)
    bare.register_forward_hook(look)
    (fate,) = check_conversion(net, bare).fates
    assert (fate.fate, fate.note) == ("changed", "no longer always_called; no longer with_kwargs")


def test_a_hook_of_which_nothing_is_left_is_lost() -> None:
    net = nn.Linear(1, 1)
    handle = net.register_forward_hook(look)
    held = inventory(net)
    handle.remove()
    assert fates(check_conversion(held, net)) == {("forward", ""): "lost"}


@pytest.mark.parametrize("wrong", [3, None, "net"])
def test_what_is_no_module_is_refused(wrong: Any) -> None:
    with pytest.raises(HookcheckError, match=r"an nn\.Module is needed"):
        check_conversion(nn.Linear(1, 1), wrong)


def test_a_scripted_module_is_refused() -> None:
    with pytest.raises(HookcheckError, match="compiled into it"):
        inventory(torch.jit.script(nn.Linear(1, 1)))
