from __future__ import annotations

import pytest
import torch

from hookcheck.errors import HookcheckError
from hookcheck.probe.kinds import KINDS, kind_named
from hookcheck.probe.registering import OWNERS


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
    assert hasattr(OWNERS[kind.scope], kind.register)
    assert (kind.variant == "full") == ("full" in kind.register)
    assert (kind.scope == "global") == ("_module_" in kind.register) == name.startswith(("global_", "acting_"))
    assert kind.observes == (not name.startswith("acting_"))
    assert kind.then == ("" if kind.observes else kind.register.replace("_module_", "_"))
    assert not kind.then or hasattr(torch.nn.Module, kind.then)
    assert kind.kwargs == name.endswith("_kwargs")
    assert kind.backward == ("backward" in name)
