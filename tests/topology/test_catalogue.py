"""Every layer and operation that there is: its name, its class, and its JSON."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hookcheck.releases.numbers import release
from hookcheck.suite import conformance_folder
from hookcheck.topology import model, tree
from hookcheck.topology.catalogue import layer_classes, op_classes
from hookcheck.topology.codec import canonical, decode
from hookcheck.topology.corpus import read
from hookcheck.topology.excused import EXCUSED
from hookcheck.topology.families import FAMILIES
from hookcheck.topology.families.fitting import ranks, shapes_for
from hookcheck.topology.families.grammar import OF_REAL_CHAINS, OPS_ALONE, ops_for, outputs_of, overwrites
from hookcheck.topology.model import Apply
from hookcheck.topology.primitive import MOST, Drawn, Layer, Op, SingleStep

from .samples import CALLED, SMALL, X

KINDS = {**layer_classes(), **op_classes()}
every = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def test_no_name_stands_for_two_things() -> None:
    assert not layer_classes().keys() & op_classes().keys()
    assert not KINDS.keys() & {**vars(tree), **vars(model)}.keys()
    assert len(KINDS) > 200


def test_a_layer_has_the_name_of_its_class_in_torch() -> None:
    newer = {name for name in layer_classes() if not hasattr(torch.nn, name)}
    assert newer == set() or release(torch.__version__) < (2, 13)


@pytest.mark.parametrize("name", [n for n, kind in layer_classes().items() if issubclass(kind, SingleStep)])
def test_torch_takes_what_a_layer_is_called_with_by_those_names(name: str) -> None:
    if not hasattr(torch.nn, name):
        pytest.skip(f"this torch has no {name}")
    kind = layer_classes()[name]
    assert issubclass(kind, SingleStep)
    takes = [*inspect.signature(getattr(torch.nn, name).forward).parameters][1:]
    assert tuple(takes[: len(kind.keywords)]) == kind.keywords


def unanswered() -> set[str]:
    """The public modules of the torch that is installed that are neither covered nor excused."""
    offered = {name: value for name, value in vars(torch.nn).items() if not name.startswith("_")}
    modules = {n for n, value in offered.items() if isinstance(value, type) and issubclass(value, torch.nn.Module)}
    assert len(modules) > 100
    return modules - layer_classes().keys() - EXCUSED.keys()


def test_every_public_module_of_torch_is_covered_or_excused() -> None:
    assert unanswered() == set()


def test_a_module_that_is_new_in_torch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn, "Novel", type("Novel", (torch.nn.Module,), {}), raising=False)
    assert unanswered() == {"Novel"}


def test_every_layer_and_operation_is_in_the_corpus() -> None:
    corpus = "".join(canonical(t) for family in FAMILIES for t in read(conformance_folder() / "corpus", family))
    assert [name for name in KINDS if f'"type":"{name}"' not in corpus] == []


def test_every_operation_is_a_step_on_the_way_or_said_why_not() -> None:
    """So one that is new is drawn, and needs no entry anywhere."""
    steps = {kind.__name__ for rank in range(MOST + 1) for kind in ops_for((2,) * rank)}
    steps |= {kind.__name__ for kind in ops_for((1, 2, 2))}
    elsewhere = {*OPS_ALONE, *OF_REAL_CHAINS, *(name for name, kind in op_classes().items() if overwrites(kind))}
    assert steps | elsewhere == op_classes().keys()
    assert not steps & elsewhere


ALIKE = {
    "training": "a layer in eval mode is this one with it unset, which no source prints",
    "inplace": "the alpha dropouts take it, and do not hand it on",
    "padding_mode": "transposed convolutions take zeros alone",
    "dropout": "what it drops is random",
    "unbatched": "NLLLoss2d is NLLLoss under an old name",
}
"""The settings of which some layers have one value only, with the reason."""


def test_every_setting_of_a_layer_has_several_values_in_the_corpus() -> None:
    by_setting: dict[tuple[str, str], set[object]] = {}
    for family in FAMILIES:
        for topology in read(conformance_folder() / "corpus", family):
            for layer in (module for _, module in model.walk(topology.module) if isinstance(module, Layer)):
                for f in fields(layer):  # type: ignore[arg-type]  # every layer is a dataclass
                    by_setting.setdefault((type(layer).__name__, f.name), set()).add(getattr(layer, f.name))
    alone = {each for each, values in by_setting.items() if len(values) < 2}
    assert {name for _, name in alone} == set(ALIKE)
    assert {layer for layer, name in alone if name in ("inplace", "padding_mode", "dropout", "unbatched")} == {
        "AlphaDropout", "FeatureAlphaDropout", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "NLLLoss2d",
        "Transformer", "TransformerDecoderLayer", "TransformerEncoderLayer",
    }  # fmt: skip


def test_what_is_covered_needs_no_excuse() -> None:
    assert not layer_classes().keys() & EXCUSED.keys()
    assert all(EXCUSED.values())


@every
def test_a_kind_is_a_frozen_dataclass_that_can_be_told_apart_and_hashed(kind: type[Drawn]) -> None:
    parameters = kind.__dataclass_params__  # type: ignore[attr-defined]
    assert parameters.frozen
    assert parameters.eq
    assert kind.__hash__ is not None
    assert kind.__hash__ is not object.__hash__
    assert issubclass(kind, Layer) != issubclass(kind, Op)
    assert not {"type"} & {f.name for f in fields(kind)}  # type: ignore[arg-type]


@every
def test_a_kind_survives_writing_and_reading(kind: type[Drawn]) -> None:
    @settings(max_examples=5)
    @given(st.data())
    def survives(data: st.DataObject) -> None:
        primitive, _ = data.draw(st.composite(lambda draw: kind.fitting(draw, draw(shapes_for(kind))))())
        if isinstance(primitive, Op):
            topology = replace(SMALL, main=(CALLED, Apply("z", primitive, (X,))))
        else:
            assert isinstance(primitive, Layer)
            topology = replace(SMALL, module=primitive)
        again = decode(json.loads(canonical(topology)))
        assert again == topology
        assert (hash(again), repr(again)) == (hash(topology), repr(topology))

    survives()


@pytest.mark.slow
@every
def test_a_kind_gives_no_more_dimensions_than_the_next_is_drawn_for(kind: type[Drawn]) -> None:
    @settings(max_examples=20)
    @given(st.data())
    def stays(data: st.DataObject) -> None:
        shape = (data.draw(st.sampled_from((4, 1))),) * data.draw(st.sampled_from(ranks(kind)[-2:]))
        assume(kind.takes(shape))
        primitive, operands = data.draw(st.composite(lambda draw: kind.fitting(draw, shape))())
        assert all(len(value.shape) <= MOST for value in outputs_of(primitive, "y", operands))

    stays()
