from __future__ import annotations

import pytest
import torch

from hookcheck.errors import HookcheckError
from hookcheck.hooks.kinds import KINDS, kind_named
from hookcheck.probe.registering import owner


@pytest.mark.parametrize("name", KINDS)
def test_a_hook_kind_goes_by_its_name(name: str) -> None:
    assert kind_named(name).name == name


def test_an_unknown_name_is_told_with_the_choice() -> None:
    with pytest.raises(HookcheckError) as caught:
        kind_named("sideways")
    assert str(caught.value) == f"unknown hook kind 'sideways'; choose from {', '.join(KINDS)}"


@pytest.mark.parametrize("name", KINDS)
def test_a_hook_kind_says_where_torch_has_it(name: str) -> None:
    kind = KINDS[name]
    assert hasattr(owner(kind), kind.register)
    assert (kind.variant == "full") == ("full" in kind.register)
    assert (kind.scope == "global") == ("_module_" in kind.register) == name.startswith(("global_", "acting_"))
    assert kind.observes == (not name.startswith("acting_"))
    assert kind.then == ("" if kind.observes else kind.register.replace("_module_", "_"))
    assert not kind.then or hasattr(torch.nn.Module, kind.then)
    assert kind.kwargs == name.endswith("_kwargs")
    assert (kind.scope == "run") == ("pack" in kind.registering)
    assert kind.backward == ("backward" in name)


@pytest.mark.parametrize(
    ("name", "names", "written"),
    [
        ("full_backward", {"module": "net.fc"}, "net.fc.register_full_backward_hook(hook)"),
        ("global_forward", {"module": "net"}, "torch.nn.modules.module.register_module_forward_hook(hook)"),
        ("forward_kwargs", {"hook": "seen(0)"}, "module.register_forward_hook(seen(0), with_kwargs=True)"),
        ("multi_grad", {"leaves": "[x]"}, "torch.autograd.graph.register_multi_grad_hook([x], hook)"),
        ("saved_tensors", {}, "torch.autograd.graph.saved_tensors_hooks(pack, unpack)"),
    ],
)
def test_the_registering_expression_takes_other_names(name: str, names: dict[str, str], written: str) -> None:
    assert KINDS[name].written(**names) == written


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("forward", "/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook"),
        ("global_backward", "/generated/torch.nn.modules.module.register_module_backward_hook.html"),
        ("output_retain_grad", "/generated/torch.Tensor.retain_grad.html"),
        ("output_node_pre", "/generated/torch.autograd.graph.Node.register_prehook.html"),
        ("saved_tensors", "/autograd.html#torch.autograd.graph.saved_tensors_hooks"),
    ],
)
def test_a_hook_kind_names_its_documentation(name: str, page: str) -> None:
    assert KINDS[name].documentation.endswith(page)


def test_a_hook_is_called_with_what_its_kind_says() -> None:
    assert KINDS["forward_kwargs"].parameters == ("module", "args", "kwargs", "output")
    assert KINDS["forward_pre_kwargs"].parameters == ("module", "args", "kwargs")
    assert KINDS["full_backward"].parameters == ("module", "grad_input", "grad_output")
    assert KINDS["post_accumulate"].parameters == ("leaf",)
