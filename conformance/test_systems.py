"""Do whole programs see what is right through their hooks? Two worked ones, with the full and with the legacy hook.

The other chapters judge hooks one promise at a time, on generated networks. This one takes programs that people really
write, in ``systems/``, runs them as they stand, and compares every number that their hooks record, and every ``.grad``,
with what the oracle works out by hand-written formulas. With full hooks all of it is right. With legacy hooks all is
right but ``grad_input`` of a Linear, and what stands there instead is stated wherever it is the same in every release.
"""

from __future__ import annotations

import runpy
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from systems import attention_capture, two_layer_sigmoid
from systems.oracles import captured, expectation, linear_chain, sigmoid_net
from systems.side_by_side import assert_same, differing, table
from torch import nn

from hookcheck.hooks.kinds import KINDS
from hookcheck.oracle.tolerance import close
from hookcheck.probe.state import preserved
from hookcheck.topology.values import draw

FULL = KINDS["full_backward"]

pytestmark = pytest.mark.filterwarnings("ignore:Using a non-full backward hook")

needs_full = pytest.mark.skipif(
    not hasattr(nn.Module, FULL.register), reason=f"{FULL.register} came with torch {FULL.since}"
)
variants = pytest.mark.parametrize("variant", ["legacy", pytest.param("full", marks=needs_full)])
dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])

VECTOR = (two_layer_sigmoid.DATA, two_layer_sigmoid.COTANGENT)
"""Input and cotangent of the sigmoid net as the program has them: (2,)."""
BATCH = ([[0.05, 0.1], [0.1, -0.2], [1.0, 0.5]], [[1.0, 1.0], [-1.0, 2.0], [0.5, 0.0]])
"""The same for three rows: (3, 2)."""

INPUTS = [draw(0, "first", (1, 10)), draw(0, "second", (1, 10))]
"""What the attention programs are run on, one after the other."""


@pytest.fixture(autouse=True)
def _unchanged_process() -> Iterator[None]:
    with preserved():
        yield


class TestTwoLayerSigmoid:
    """Hook objects on every child of fc1, sigmoid, fc2, sigmoid; two backward passes on one retained graph."""

    OF_LINEARS = tuple((name, "grad_input", n) for n in range(2) for name in ("fc2", "fc1"))
    """What a legacy hook gets wrong, in the order in which it happens."""

    @needs_full
    @dtypes
    @pytest.mark.parametrize(("data", "cotangent"), [VECTOR, BATCH], ids=["vector", "batch"])
    def test_full_hooks_see_what_is_right(self, data: Any, cotangent: Any, dtype: str) -> None:
        """Every input, output, gradient and ``.grad`` is right, in both backward passes."""
        seen = self.recorded("full", data, cotangent, dtype)
        assert_same(expectation(sigmoid_net(two_layer_sigmoid.LAYERS, data, cotangent)), seen, dtype)

    @dtypes
    def test_legacy_hooks_on_a_batch_see_the_last_node(self, dtype: str) -> None:
        """A Linear's grad_input is (bias, input, weight transposed), of its one Node ``addmm``; all else is right."""
        expected, seen = sigmoid_net(two_layer_sigmoid.LAYERS, *BATCH), self.recorded("legacy", *BATCH, dtype)
        assert_same(expectation(expected, legacy=True), seen, dtype)
        assert differing(expectation(expected), seen, dtype) == [*self.OF_LINEARS]

    @dtypes
    def test_legacy_hooks_on_a_vector_miss_the_input_of_a_linear(self, dtype: str) -> None:
        """A Linear's grad_input is something else than its input's gradient; all else is right.

        What else is not tested, since it follows from how a release computes a Linear on one vector: as the addition of
        the bias (so in 1.8 and 2.0), or as a batch of one that is viewed as a vector (so in 2.13 and 2.15).
        """
        expected, seen = sigmoid_net(two_layer_sigmoid.LAYERS, *VECTOR), self.recorded("legacy", *VECTOR, dtype)
        assert differing(expectation(expected), seen, dtype) == [*self.OF_LINEARS]

    @variants
    def test_a_second_backward_shows_the_same_again(self, variant: str) -> None:
        """On the retained graph each hook receives bit for bit what it received, and every ``.grad`` has doubled."""
        result = two_layer_sigmoid.run(variant)
        for hook in result.backward.values():
            first, second = ([*grad_input, *grad_output] for _, grad_input, grad_output in hook.seen)
            assert all(torch.equal(a, b) for a, b in zip(first, second))
        first, second = result.grads
        assert all(torch.equal(2 * first[name], second[name]) for name in (*first, *second))

    @variants
    def test_hooks_get_the_module_and_nothing_once_closed(self, variant: str) -> None:
        """Each call names the hook's own module: one for forward, two for backward, none after ``close()``."""
        result = two_layer_sigmoid.run(variant)
        result.net(result.data).sum().backward()
        for hooks, times in ((result.forward, 1), (result.backward, 2)):
            for name, hook in hooks.items():
                assert [module for module, _, _ in hook.seen] == [getattr(result.net, name)] * times

    @staticmethod
    def recorded(variant: str, data: Any, cotangent: Any, dtype: str) -> Any:
        """What the program records, in torch's ``dtype``."""
        return two_layer_sigmoid.recorded(two_layer_sigmoid.run(variant, data, cotangent, getattr(torch, dtype)))


class TestAttentionCapture:
    """A collector with hooks on every module that has a word in its name."""

    ONE = (("0", (10, 10)),)
    FOUR = (("embed", (4, 10)), ("attention_1", (4, 4)), ("mlp", (6, 4)), ("attention_2", (3, 6)))
    """Names and weight shapes of the layers."""

    @variants
    @dtypes
    def test_each_execution_appends(self, variant: str, dtype: str) -> None:
        """One run: an attention and a gradient; a second run: one more of each.

        The gradient is that of the input, (1, 10), with the full hook; with the legacy one that of the bias, (10,).
        """
        seen, expected = self.run(self.ONE, "0", variant, dtype)
        assert_same(captured(expected, "0", legacy=variant == "legacy"), seen, dtype)
        assert len(seen) == 4
        shape = (1, 10) if variant == "full" else (10,)
        for n in range(2):
            assert seen["capture", "attention", n][0].shape == (1, 10)
            assert seen["capture", "gradient", n][0].shape == shape

    @variants
    @dtypes
    def test_only_modules_with_the_word_are_captured(self, variant: str, dtype: str) -> None:
        """Of four layers the two attentions are: outputs in the order of forward, gradients in that of backward."""
        seen, expected = self.run(self.FOUR, "attention", variant, dtype)
        assert_same(captured(expected, "attention", legacy=variant == "legacy"), seen, dtype)
        assert [seen["capture", "attention", n][0].shape for n in range(4)] == [(1, 4), (1, 3)] * 2

    @dtypes
    def test_the_legacy_gradient_is_not_the_inputs(self, dtype: str) -> None:
        """A collector with legacy hooks has no gradient right, and every attention."""
        seen, expected = self.run(self.ONE, "0", "legacy", dtype)
        assert differing(captured(expected, "0"), seen, dtype) == [("capture", "gradient", n) for n in range(2)]

    def test_the_oracle_is_the_analytic_gradient(self) -> None:
        """Of ``mean(x Wᵀ + b)``: the mean of W's rows for the input, and 1/10 for each entry of the bias."""
        _, expected = self.run(self.ONE, "0", "legacy", "float64")
        for legacy, gradient in ((False, draw(0, "0.weight", (10, 10)).mean(0)[None]), (True, np.full(10, 0.1))):
            for n in range(2):
                (found,) = captured(expected, "0", legacy)["capture", "gradient", n]
                assert found.shape == gradient.shape
                assert close(found, gradient, "float64", "cpu")

    @staticmethod
    def run(layers: tuple[tuple[str, tuple[int, int]], ...], word: str, variant: str, dtype: str) -> Any:
        """What the program collects in two executions of a chain of Linear layers, and what the oracle has to say."""
        numbers = {
            f"{name}.{key}": draw(0, f"{name}.{key}", of)
            for name, shape in layers
            for key, of in (("weight", shape), ("bias", shape[:1]))
        }
        of_dtype = getattr(torch, dtype)
        model = nn.Sequential(OrderedDict((name, nn.Linear(i, o)) for name, (o, i) in layers)).to(of_dtype)
        model.load_state_dict({name: torch.from_numpy(array) for name, array in numbers.items()})
        inputs = [torch.tensor(x, dtype=of_dtype, requires_grad=True) for x in INPUTS]
        capture = attention_capture.run(model, word, variant, inputs)
        return attention_capture.recorded(capture), linear_chain(numbers, INPUTS)


class TestComparison:
    """The comparison finds what is wrong: in the numbers, and in torch."""

    RIGHT = expectation(sigmoid_net(two_layer_sigmoid.LAYERS, *VECTOR))

    @pytest.mark.parametrize("what", RIGHT, ids="{0[0]}-{0[1]}-{0[2]}".format)
    def test_each_number_counts(self, what: Any) -> None:
        """A number off by a millionth, a None, a tensor or a call too many or too few: each is reported."""
        (array,) = self.RIGHT[what]
        off = array.copy()
        off.flat[-1] += 1e-6
        for wrong in ((off,), (None,), (array, array), ()):
            assert differing(self.RIGHT, {**self.RIGHT, what: wrong}, "float64") == [what]
        assert differing(self.RIGHT, {w: a for w, a in self.RIGHT.items() if w != what}, "float64") == [what]
        assert differing({w: a for w, a in self.RIGHT.items() if w != what}, self.RIGHT, "float64") == [what]

    @needs_full
    @pytest.mark.parametrize("fault", ["scales", "drops"])
    def test_a_broken_torch_is_reported(self, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A torch whose full hook gives scaled gradients, or is not called, is found out by either program."""

        sound = torch.utils.hooks.BackwardHook.__init__

        def broken(self: Any, module: nn.Module, user_hooks: Any, *rest: Any) -> None:
            sound(self, module, [] if fault == "drops" else [scaled(hook) for hook in user_hooks], *rest)

        def scaled(hook: Any) -> Any:
            return lambda module, inputs, outputs: hook(module, tuple(1.001 * g for g in inputs), outputs)

        monkeypatch.setattr(torch.utils.hooks.BackwardHook, "__init__", broken)
        faulty = ("grad_input",) if fault == "scales" else ("grad_input", "grad_output")
        seen = TestTwoLayerSigmoid.recorded("full", *VECTOR, "float64")
        assert differing(self.RIGHT, seen, "float64") == [what for what in self.RIGHT if what[1] in faulty]
        seen, expected = TestAttentionCapture.run(TestAttentionCapture.ONE, "0", "full", "float64")
        assert differing(captured(expected, "0"), seen, "float64") == [("capture", "gradient", n) for n in range(2)]

    def test_the_table_marks_what_differs(self) -> None:
        """≠ stands before what is not right, and what was not seen is said to be nothing."""
        right = {("fc", "output", 0): (np.array([1.0]),), ("fc", "grad_input", 0): (np.array([2.0]),)}
        seen = {("fc", "output", 0): (np.array([1.0]),), ("fc", "grad_input", 0): (np.array([3.0]), None)}
        assert table(right, {"legacy": seen, "full": {}}, "float64").splitlines() == [
            "what             | oracle   | legacy          | full",
            "fc output #0     | ([1.0],) |   ([1.0],)      | ≠ nothing",
            "fc grad_input #0 | ([2.0],) | ≠ ([3.0], None) | ≠ nothing",
        ]

    @pytest.mark.parametrize(("program", "wrong"), [("two_layer_sigmoid", 4), ("attention_capture", 2)])
    def test_the_programs_run_as_scripts(
        self, program: str, wrong: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Each prints its table, in which just the legacy column has something wrong.

        They run in this process, not in one of their own: torch 1.8.0 can hang when a process ends soon after its first
        backward (in ``Engine::~Engine``, waiting for a thread that is gone).
        """
        folder = Path(__file__).parent / "systems"
        monkeypatch.syspath_prepend(str(folder))
        runpy.run_path(str(folder / f"{program}.py"), run_name="__main__")
        text = capsys.readouterr().out
        header, *rows = ([cell.strip() for cell in line.split(" | ")] for line in text.splitlines())
        assert header == ["what", "oracle", "legacy", *(["full"] if hasattr(nn.Module, FULL.register) else [])]
        assert sum("≠" in row[2] for row in rows) == text.count("≠") == wrong
