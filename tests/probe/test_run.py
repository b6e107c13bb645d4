from __future__ import annotations

import gc
import math
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hookcheck.hooks.kinds import BACKWARD, BACKWARD_PRE, FORWARD, FORWARD_PRE, KINDS
from hookcheck.probe import run
from hookcheck.probe.observation import Layout, Observation, Raised, Standing, same, same_run
from hookcheck.probe.run import available_devices, check_torch, lacking, observe, unavailable
from hookcheck.topology.build import Built
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Input,
    Module,
    Sequential,
    Statement,
    Topology,
    Within,
)
from hookcheck.topology.ops.inplace import AddInplace
from hookcheck.topology.ops.views import Transpose
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import values

TIMES = Linear(1, 1, bias=False)
X, Y, V, H = Ref("x"), Ref("y"), Ref("v"), Ref("h")
MAIN = (Call("y", "", (X,)), Backward((Y,), (V,)))


def topology(module: Module = TIMES, main: tuple[Statement, ...] = MAIN, **rest: Any) -> Topology:
    return Topology(module, (Input("x", (1,), True), Input("v", (1,))), main, **rest)


def net(*body: Statement, gives: Tree = H, names: tuple[str, ...] = ("a", "b")) -> Composite:
    return Composite(tuple((name, TIMES) for name in names), ("x",), body, gives)


def observed(t: Topology, kind: str | None = "full_backward", **numbers: float) -> Observation:
    return observe(t, {**values(t), **{name: np.array([float(n)]) for name, n in numbers.items()}}, kind)


CHAIN = topology(net(Call("g", "a", (X,)), Call("h", "b", (Ref("g"),))))


ORDERS = {
    (BACKWARD, "full"): ("b", "a", ""),
    # Legacy hooks of b and of the root sit on one Node, in the order in which the calls ended.
    (BACKWARD, "legacy"): ("b", "", "a"),
    (BACKWARD_PRE, "full"): ("", "b", "a"),
    (FORWARD_PRE, ""): ("", "a", "b"),
    (FORWARD, ""): ("a", "b", ""),
}


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.scope in ("module", "global")])
def test_events_come_in_order_with_path_number_and_the_module_given(kind: str) -> None:
    observation = observed(CHAIN, kind)
    order = ORDERS[KINDS[kind].call, KINDS[kind].variant]
    assert [(e.kind, e.path, e.number, e.given) for e in observation.events] == [
        (kind, path, 0, path) for path in order
    ]
    assert observation.raised is None


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        ("tensor", ["a.weight", "b.weight", "x"]),
        ("post_accumulate", ["a.weight", "b.weight", "x"]),
        ("output_tensor", ["[0]", "a[0]", "b[0]"]),
        ("output_retain_grad", ["[0]", "a[0]", "b[0]"]),
        ("output_node", ["[0]", "a[0]", "b[0]"]),
        ("output_node_pre", ["[0]", "a[0]", "b[0]"]),
        ("multi_grad", [""]),
    ],
)
def test_hooks_on_tensors_are_told_by_the_name_of_the_tensor(kind: str, paths: list[str]) -> None:
    observation = observed(CHAIN, kind)
    assert observation.raised is None
    assert sorted(event.path for event in observation.events) == paths
    assert {(event.number, event.given) for event in observation.events} == {(0, None)}


def test_a_hook_that_acts_scales_what_it_is_given() -> None:
    t = topology()
    plain, forward, backward = (
        observed(t, kind, x=2, v=3) for kind in ("forward", "acting_forward_pre", "acting_full_backward")
    )
    assert np.array_equal(forward.values["y"], plain.values["y"] * 0.5 * 4 / 8)
    assert np.array_equal(backward.gradients["x"], plain.gradients["x"] * 2 * 4 / 32)
    assert np.array_equal(backward.gradients["weight"], plain.gradients["weight"])


def test_hooks_that_act_form_a_chain() -> None:
    observation = observed(topology(), "acting_full_backward", v=3)
    (first,) = observation.events
    assert [link for link, _ in observation.chained] == [0, 1, 2]
    assert observation.chained[0] == (0, first)
    given = [event.arguments[0][0] / first.arguments[0][0] for _, event in observation.chained]
    assert given == [1, 2, 2 * 4]


def test_what_is_packed_is_numbered_and_unpacked_by_its_number() -> None:
    observation = observed(topology(), "saved_tensors")
    packed, unpacked = ([e.arguments for e in observation.events if e.path == path] for path in ("pack", "unpack"))
    assert packed == [(str(number),) for number in range(len(packed))]
    assert packed
    assert set(unpacked) <= set(packed)


def test_an_event_holds_copies_of_the_gradients() -> None:
    t = topology()
    (event,) = observed(t, x=2, v=3).events
    grad_input, grad_output = event.arguments
    assert isinstance(grad_input, tuple)
    assert isinstance(grad_output, tuple)
    assert grad_output[0] == 3.0
    assert grad_input[0] == 3.0 * values(t)["weight"].item()


def test_copies_survive_what_torch_does_to_the_tensors_later(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[torch.Tensor] = []
    original = torch.nn.Module._get_backward_hooks

    def get(self: Any) -> Any:
        def overwritten(hook: Any) -> Any:
            def call(module: Any, grad_input: Any, grad_output: Any) -> None:
                mine = grad_output[0].clone()
                hook(module, grad_input, (mine,))
                given.append(mine.fill_(99))

            return call

        return tuple([overwritten(hook) for hook in hooks] for hooks in original(self))

    monkeypatch.setattr(torch.nn.Module, "_get_backward_hooks", get)
    (event,) = observed(topology(), v=3).events
    assert given[0].item() == 99
    assert event.arguments[1] == (3.0,)


def test_a_module_that_is_called_twice_has_numbered_events() -> None:
    twice = topology(net(Call("g", "a", (X,)), Call("h", "a", (Ref("g"),)), names=("a",)))
    assert [(e.path, e.number) for e in observed(twice).events] == [("a", 0), ("a", 1), ("", 0)]


def test_a_shared_module_goes_by_the_path_under_which_torch_lists_it_first() -> None:
    shared = topology(CHAIN.module, ties=(("b", "a"),))
    for kind in ("full_backward", "global_full_backward"):
        assert [(e.path, e.number, e.given) for e in observed(shared, kind).events] == [
            ("a", 0, "a"),
            ("a", 1, "a"),
            ("", 0, ""),
        ]
    assert list(observed(shared).gradients) == ["a.weight", "x", "v"]


def test_values_are_what_main_names_and_inputs_are_left_out() -> None:
    t = topology(
        net(Call("h", "a", (X,)), gives=Pack("tuple", (H, Literal(None), Literal(3))), names=("a",)),
        (Call("y", "", (X,)), Backward((Ref("y", (0,)),), (V,))),
    )
    observation = observed(t, None, x=2)
    assert observation.values["y"] == (2 * values(t)["a.weight"].item(), None, "3")
    assert not {"x", "v", "net", "torch"} & set(observation.values)


@pytest.mark.parametrize(
    ("kind", "first", "second"), [("namedtuple", "0", "1"), ("dataclass", "one", "two"), ("dict", "one", "two")]
)
def test_what_a_container_holds_is_copied_by_field_or_place_with_its_type(kind: str, first: str, second: str) -> None:
    reached = Ref("y", ("one" if kind == "dict" else ".one",))
    gives = Pack(kind, (H, Literal(3)), ("one", "two"))
    t = topology(
        net(Call("h", "a", (X,)), gives=gives, names=("a",)), (Call("y", "", (X,)), Backward((reached,), (V,)))
    )
    copied = observed(t, None, x=2).values["y"]
    assert isinstance(copied, dict)
    assert (copied[first], copied[second]) == (2 * values(t)["a.weight"].item(), "3")
    assert copied.keys() - {first, second} == (set() if kind == "dict" else {"type"})
    assert observed(t, None).requires_grad == {f"y[{first}]": True}


def test_containers_of_two_types_are_not_copied_alike() -> None:
    containers = []
    for kind in ("tuple", "namedtuple"):
        gives = Pack(kind, (H,), ("one",) if kind == "namedtuple" else ())
        main = (Call("y", "", (X,)), Backward((Ref("y", (0,)),), (V,)))
        containers.append(
            observed(topology(net(Call("h", "a", (X,)), gives=gives, names=("a",)), main), None).values["y"]
        )
    assert type(containers[0]) is tuple
    assert not same(*containers)


def test_a_run_without_hooks_has_no_events_and_the_same_gradients() -> None:
    plain, hooked = observed(CHAIN, None), observed(CHAIN)
    assert plain.events == ()
    assert plain.gradients.keys() == hooked.gradients.keys() == {"a.weight", "b.weight", "x", "v"}
    assert plain.gradients["v"] is None
    assert plain.gradients["x"] == hooked.gradients["x"] is not None


def test_warnings_are_recorded_however_often_they_came_before(recwarn: pytest.WarningsRecorder) -> None:
    for _ in range(2):
        observation = observed(topology(Sequential((TIMES, TIMES))), "backward")
        assert {category for category, _ in observation.warnings} <= {"UserWarning", "FutureWarning"}
        assert any("backward hook" in text for _, text in observation.warnings)
    assert list(recwarn) == []


def test_an_exception_is_part_of_the_observation() -> None:
    observation = observed(topology(main=(*MAIN, Backward((Y,), (V,)))))
    assert observation.raised is not None
    assert observation.raised.type == "RuntimeError"
    assert "second time" in observation.raised.text
    assert len(observation.events) == 1
    assert observation.gradients["x"] is not None


def test_an_exception_is_told_by_its_first_line() -> None:
    assert str(Raised("RuntimeError", "one\ntwo")) == "RuntimeError: one"
    assert str(Raised("KeyError", "")) == "KeyError: "


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interruption_is_not_swallowed(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    def interrupted(self: Any) -> None:
        raise error

    monkeypatch.setattr(Built, "run", interrupted)
    with pytest.raises(error):
        observed(topology(), "global_full_backward")
    assert not torch.nn.modules.module._global_backward_hooks


@pytest.mark.parametrize(("first", "second"), [("full", "legacy"), ("legacy", "full")])
def test_one_family_of_global_hooks_does_not_lock_the_other_out(first: str, second: str) -> None:
    by_variant = {
        kind.variant: name for name, kind in KINDS.items() if kind.scope == "global" and kind.call == BACKWARD
    }
    for variant in (first, second, first):
        observation = observed(topology(), by_variant[variant])
        assert observation.raised is None
        assert len(observation.events) == 1


@pytest.mark.skipif(hasattr(torch, "inference_mode"), reason="this torch has inference_mode")
def test_inference_mode_is_unavailable_before_1_9() -> None:
    inference = topology(main=(Within("inference_mode", MAIN[:1]),))
    assert unavailable(inference, "backward") == "inference_mode came with torch 1.9"


def test_what_a_topology_needs_is_held_against_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    inference = topology(main=(Within("inference_mode", MAIN[:1]),))
    for release, reason in (("1.8.0+cpu", "inference_mode came with torch 1.9"), ("1.9.1", ""), ("2.15.0.dev1", "")):
        monkeypatch.setattr(torch, "__version__", release)
        assert unavailable(inference, None) == reason


@pytest.mark.parametrize(
    ("kind", "owner", "function"),
    [
        ("full_backward", torch.nn.Module, "register_full_backward_hook"),
        ("global_full_backward", torch.nn.modules.module, "register_module_full_backward_hook"),
    ],
)
def test_a_hook_kind_that_this_torch_lacks_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, kind: str, owner: Any, function: str
) -> None:
    assert unavailable(topology(), kind) == ""
    with monkeypatch.context() as older:
        older.setattr(torch, "__version__", "1.7.1")
        assert unavailable(topology(), kind) == f"{function} came with torch 1.8"
    monkeypatch.delattr(owner, function)
    assert unavailable(topology(), kind) == f"this torch has no {function}"
    assert unavailable(topology(), "backward") == ""
    assert unavailable(topology(), None) == ""


def test_a_torch_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_torch()
    monkeypatch.setattr(torch, "__version__", "1.6.0")
    with pytest.raises(run.HookcheckError, match=r"torch 1\.6\.0 is too old: install torch 1\.7 or newer"):
        check_torch()


def test_the_devices_of_this_machine() -> None:
    assert available_devices() == (("cpu", "cuda") if torch.cuda.is_available() else ("cpu",))


def test_float32_is_kept_as_it_is() -> None:
    (event,) = observed(topology(dtype="float32"), v=math.pi).events
    (grad,) = event.arguments[1]
    assert grad.dtype == np.float32
    assert grad == np.float32(math.pi)


def test_what_dynamo_says_once_in_a_process_is_no_warning_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    legacy = topology(Sequential((TIMES, TIMES)))
    texts = {text for _, text in observed(legacy, "backward").warnings}
    utils = SimpleNamespace(warn_once_cache={text for text in texts if "backward hook" in text})
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", utils)
    assert {text for _, text in observed(legacy, "backward").warnings} == texts - utils.warn_once_cache != texts
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils")
    assert {text for _, text in observed(legacy, "backward").warnings} == texts


def test_hooks_see_no_warning_filter_of_the_caller() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert observed(topology(Sequential((TIMES, TIMES))), "backward").raised is None


def test_what_each_tensor_is_beside_its_numbers() -> None:
    body = (Apply("h", Transpose(0, 1), (X,)), Apply("g", AddInplace(), (Ref("w"), X)))
    module = Composite((), ("x", "w"), body, Pack("dict", (X, H, Ref("g")), ("same", "turned", "written")))
    inputs = (Input("x", (2, 3), True), Input("w", (2, 3)), Input("one", (1, 3)))
    t = Topology(module, inputs, (Within("no_grad", (Call("y", "", (X, Ref("w"))),)),))
    assert observe(t, values(t), None).standings == {
        "x": Standing("x", False, True, 0, (3, 1)),
        "w": Standing("w", False, True, 1, (3, 1)),
        "one": Standing("one", False, True, 0, (3, 1)),
        "y[same]": Standing("x", False, True, 0, (3, 1)),
        "y[turned]": Standing("y[turned]", True, True, 0, (1, 3)),
        "y[written]": Standing("w", False, True, 1, (3, 1)),
    }


@pytest.mark.skipif(not hasattr(torch, "inference_mode"), reason="came with 1.9")
def test_a_tensor_made_in_inference_mode_has_no_version() -> None:
    standings = observed(topology(main=(Within("inference_mode", MAIN[:1]),)), None).standings
    assert (standings["x"].version, standings["y"].version) == (0, None)


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_require_grad_where_a_graph_is_created(create_graph: bool) -> None:
    squared = net(Call("g", "a", (X,)), Call("h", "a", (Ref("g"),)), names=("a",))
    main = (MAIN[0], Backward((Y,), (V,), create_graph=create_graph))
    observation = observed(topology(squared, main))
    assert {event.requires_grad for event in observation.events} <= {create_graph, False}
    assert any(event.requires_grad for event in observation.events) is create_graph
    assert observation.layouts["x"] == Layout((1,), create_graph)


def test_runs_in_which_tensors_differ_beside_their_numbers_are_not_the_same() -> None:
    observation = observed(CHAIN)
    (event, *rest) = observation.events
    assert same_run(observation, observed(CHAIN))
    for changes in (
        {"standings": {**observation.standings, "y": observation.standings["y"]._replace(version=7)}},
        {"layouts": {**observation.layouts, "x": Layout((7,), False)}},
        {"events": (event._replace(requires_grad=True), *rest)},
    ):
        assert not same_run(observation, replace(observation, **changes))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not lacking(kind)])
def test_a_run_leaves_no_tensor_behind(kind: str) -> None:
    """A long exploration would pile them up."""

    def tensors() -> dict[int, torch.Tensor]:
        gc.collect()
        return {id(thing): thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)}

    observed(CHAIN, kind)  # what is made once in a process
    before = tensors()  # held, so that an id is not given twice; others' garbage may go meanwhile
    for _ in range(3):
        observed(CHAIN, kind)
    assert not tensors().keys() - before.keys()
