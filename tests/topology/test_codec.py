from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from hookcheck.errors import HookcheckError
from hookcheck.topology.codec import TopologyError, canonical, decode, encode, identify
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import Call, Topology
from hookcheck.topology.tree import Literal

from .arbitrary import TOPOLOGIES
from .samples import SAMPLES, SMALL, X

WRITTEN = (
    '{"inputs":[{"name":"x","requires_grad":true,"shape":[2],"type":"Input"},{"name":"v","shape":[1],"type":"Input"}],'
    '"main":[{"args":[{"name":"x","type":"Ref"}],"out":"y","target":"","type":"Call"},'
    '{"cotangents":[{"name":"v","type":"Ref"}],"outputs":[{"name":"y","type":"Ref"}],"type":"Backward"}],'
    '"module":{"body":[{"args":[{"name":"x","type":"Ref"}],"out":"h","target":"fc","type":"Call"}],'
    '"children":[["fc",{"in_features":2,"out_features":1,"type":"Linear"}]],'
    '"gives":{"name":"h","type":"Ref"},"takes":["x"],"type":"Composite"},"type":"Topology"}'
)


def survives(topology: Topology) -> None:
    again = decode(json.loads(canonical(topology)))
    assert again == topology
    assert repr(again) == repr(topology)  # 1 == True == 1.0, but they print differently
    assert identify(again) == identify(topology)


@pytest.mark.parametrize("topology", SAMPLES.values(), ids=SAMPLES)
def test_hand_made_topologies_survive_writing_and_reading(topology: Topology) -> None:
    survives(topology)


@given(topology=TOPOLOGIES)
def test_anything_that_the_model_can_hold_survives(topology: Topology) -> None:
    survives(topology)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_survives(family: Any) -> None:
    """Each line of the corpus does as well, since it is read."""
    settings(max_examples=20)(given(family.topologies())(survives))()


def test_the_canonical_text_is_sorted_dense_and_leaves_defaults_out() -> None:
    assert canonical(SMALL) == WRITTEN


def test_the_id_is_the_start_of_the_hash_of_the_canonical_text() -> None:
    assert identify(SMALL) == "2478dc8cc7534a1a" == hashlib.sha256(WRITTEN.encode()).hexdigest()[:16]


def test_a_field_at_its_default_does_not_change_the_id() -> None:
    content = encode(SMALL)
    content.update(seed=0, frozen=[], training=True)
    assert identify(decode(content)) == identify(SMALL)


def test_the_order_of_fields_does_not_change_the_id() -> None:
    def backwards(content: Any) -> Any:
        if isinstance(content, dict):
            return {key: backwards(content[key]) for key in reversed(list(content))}
        return [backwards(item) for item in content] if isinstance(content, list) else content

    assert identify(decode(backwards(encode(SMALL)))) == identify(SMALL)


def test_any_change_of_content_changes_the_id() -> None:
    changed = [
        *SAMPLES.values(),
        replace(SMALL, seed=1),
        replace(SMALL, training=False),
        replace(SMALL, device="cpu"),
    ]
    assert len({identify(t) for t in changed}) == len(changed)


def test_literals_that_are_equal_in_python_but_of_different_type_have_different_ids() -> None:
    def calling(value: Any) -> Topology:
        return replace(SMALL, main=(Call("y", "", (X, Literal(value))),))

    assert len({identify(calling(value)) for value in (1, True, 1.0)}) == 3
    assert len({identify(calling(value)) for value in (0, False, 0.0, -0.0)}) == 4


def test_a_context_has_the_key_that_ids_rest_on() -> None:
    within = replace(SMALL, main=(Call("y", "", (X,), context="vmap"),))
    (call,) = encode(within)["main"]
    assert call == {"type": "Call", "out": "y", "target": "", "args": [encode(X)], "through": "vmap"}
    assert decode(encode(within)) == within


def without(key: str) -> Any:
    return {k: v for k, v in encode(SMALL).items() if k != key}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**encode(SMALL), "module": {"type": "Quantum"}}, "unknown part 'Quantum'.*newer hookcheck"),
        ({**encode(SMALL), "module": {"in_features": 1}}, "unknown part None"),
        ({**encode(SMALL), "module": {"type": ["Linear"]}}, "unknown part"),
        ({**encode(SMALL), "colour": "red"}, "fields of 'Topology' are not as they should be.*'colour'"),
        ({**encode(SMALL), "main": [{"type": "Call", "context": "vmap"}]}, "fields of 'Call' .*it has no 'context'"),
        (without("main"), "fields of 'Topology' are not as they should be.*'main'"),
        (encode(Linear(1, 1)), "this is no topology but dict"),
        ([encode(SMALL)], "this is no topology but list"),
        ("a text", "this is no topology but str"),
        (None, "this is no topology but NoneType"),
    ],
)
def test_what_is_no_topology_is_refused_in_one_line(content: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message) as caught:
        decode(content)
    assert isinstance(caught.value, HookcheckError)
    assert "\n" not in str(caught.value)
