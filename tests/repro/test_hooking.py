"""How a script registers hooks: the lines of every way, and what its hooks write down."""

from __future__ import annotations

from dataclasses import replace

import pytest
from networks.cases import AROUND_TWO, CALLED, CHAIN, FROM_Y, case, numbers, with_events, with_gradients

from hookcheck.hooks.kinds import KINDS
from hookcheck.networks.case import Case
from hookcheck.repro import hooking
from hookcheck.repro.hooking import Hooking, taken
from hookcheck.repro.question import (
    CALLS,
    CLOSE,
    COUNT,
    EQUAL,
    EVERY,
    LENGTH,
    MODULE,
    ORDER,
    RAISED,
    REQUIRES_GRAD,
    VALUE,
    Question,
)


def lines(c: Case, about: Question, everywhere: bool = False) -> list[str]:
    return Hooking(c, about, everywhere, "").lines


def of_calls(relation: str, path: str = "", argument: str = "", index: str = "", link: int = 0) -> Question:
    return Question(CALLS, relation, path, argument, index=index, link=link)


GIVEN = "lambda _, grad_input, grad_output:"
GIVEN_MODULE = GIVEN.replace("_,", "module,")
NAMED = 'names = {module: name for name, module in net.named_modules(prefix="net")}'


@pytest.mark.parametrize(
    ("kind", "about", "written"),
    [
        ("full_backward", Question(VALUE, CLOSE, "x.grad"), ""),
        ("full_backward", RAISED, "net.register_full_backward_hook(lambda *args: None)"),
        (
            "full_backward",
            of_calls(CLOSE, "b", "grad_input", "[0]"),
            f"net.b.register_full_backward_hook({GIVEN} calls.append(grad_input))",
        ),
        ("full_backward", of_calls(COUNT, "b"), "net.b.register_full_backward_hook(lambda *args: calls.append(1))"),
        (
            "full_backward",
            of_calls(LENGTH, "b"),
            "net.b.register_full_backward_hook(lambda *arguments: calls.append(arguments))",
        ),
        (
            "full_backward",
            of_calls(EQUAL, "b", MODULE),
            f"net.b.register_full_backward_hook({GIVEN_MODULE} calls.append(module is net.b))",
        ),
        (
            "full_backward",
            of_calls(EQUAL, "b", REQUIRES_GRAD),
            f"net.b.register_full_backward_hook({GIVEN} "
            "calls.extend(g.requires_grad for g in grad_input + grad_output if g is not None))",
        ),
        (
            "forward",
            of_calls(CLOSE, "b", "args", "[0]"),
            "net.b.register_forward_hook(lambda _, args, output: calls.append(args[0].clone()))",
        ),
        (
            "forward",
            of_calls(ORDER),
            'for name, module in net.named_modules(prefix="net"):\n'
            "    module.register_forward_hook(lambda *args, name=name: calls.append(name))",
        ),
        (
            "global_forward",
            of_calls(ORDER),
            f"{NAMED}\ntorch.nn.modules.module.register_module_forward_hook("
            "lambda module, *args: calls.append(names[module]))",
        ),
        (
            "global_full_backward",
            of_calls(CLOSE, "b", "grad_input", "[0]"),
            "torch.nn.modules.module.register_module_full_backward_hook("
            f"{GIVEN_MODULE} calls.append(grad_input) if module is net.b else None)",
        ),
        ("tensor", of_calls(CLOSE, "b.weight", "gradient"), "net.b.weight.register_hook(calls.append)"),
        (
            "tensor",
            of_calls(EQUAL, "x", REQUIRES_GRAD),
            "x.register_hook(lambda grad: calls.append(grad.requires_grad))",
        ),
        (
            "tensor",
            RAISED,
            "\n".join(f"{leaf}.register_hook(lambda *args: None)" for leaf in ("net.a.weight", "net.b.weight", "x")),
        ),
        (
            "post_accumulate",
            of_calls(CLOSE, "x", "leaf"),
            "x.register_post_accumulate_grad_hook(lambda leaf: calls.append(leaf.grad.clone()))",
        ),
        (
            "post_accumulate",
            of_calls(COUNT, "x"),
            "x.register_post_accumulate_grad_hook(lambda leaf: calls.append(1))",
        ),
        (
            "post_accumulate",
            of_calls(EQUAL, "x", REQUIRES_GRAD),
            "x.register_post_accumulate_grad_hook(lambda leaf: calls.append(leaf.grad.requires_grad))",
        ),
        (
            "multi_grad",
            of_calls(CLOSE, "", "gradients", "[0]"),
            "torch.autograd.graph.register_multi_grad_hook([net.a.weight, net.b.weight, x], calls.append)",
        ),
        (
            "multi_grad",
            of_calls(EQUAL, "", REQUIRES_GRAD),
            "torch.autograd.graph.register_multi_grad_hook([net.a.weight, net.b.weight, x], "
            "lambda grads: calls.extend(g.requires_grad for g in grads if g is not None))",
        ),
        (
            "multi_grad",
            RAISED,
            "torch.autograd.graph.register_multi_grad_hook([net.a.weight, net.b.weight, x], lambda grads: None)",
        ),
    ],
)
def test_what_is_written_of_a_hook(kind: str, about: Question, written: str) -> None:
    assert "\n".join(lines(case(CHAIN, kind=kind), about)) == written


def test_a_net_of_one_module_has_no_other_to_tell_from() -> None:
    (line,) = lines(case(kind="global_full_backward"), of_calls(CLOSE, "", "grad_input", "[0]"))
    assert line.endswith(f"({GIVEN} calls.append(grad_input))")


@pytest.mark.parametrize(
    ("about", "written"),
    [
        (RAISED, ["for module in net.modules():", "    module.register_forward_hook(lambda *args: None)"]),
        (
            of_calls(COUNT, "b"),
            [
                "net.b.register_forward_hook(lambda *args: calls.append(1))",
                "for module in set(net.modules()) - {net.b}:",
                "    module.register_forward_hook(lambda *args: None)",
            ],
        ),
    ],
)
def test_every_module_has_a_hook_where_that_is_needed(about: Question, written: list[str]) -> None:
    assert lines(case(CHAIN, kind="forward"), about, everywhere=True) == written


def test_which_function_registers_is_a_parameter() -> None:
    assert Hooking(case(CHAIN), RAISED, False, "register").lines == ["getattr(net, register)(lambda *args: None)"]


@pytest.mark.parametrize(
    ("about", "pack", "unpack"),
    [
        (RAISED, "lambda t: t.detach()", "lambda t: t"),
        (of_calls(COUNT, "pack"), "lambda t: (calls.append(1), t.detach())[1]", "lambda t: t"),
        (
            of_calls(EQUAL, "unpack", "tensor"),
            "lambda t: packed.append(t.detach()) or len(packed) - 1",
            "lambda handle: unpacked(handle, calls)",
        ),
    ],
)
def test_main_is_run_within_hooks_on_what_is_saved(about: Question, pack: str, unpack: str) -> None:
    written = Hooking(case(kind="saved_tensors"), about, False, "")
    assert written.lines == []
    assert written.within(["y = net(x)"]) == [
        f"with torch.autograd.graph.saved_tensors_hooks({pack}, {unpack}):",
        "    y = net(x)",
    ]
    assert [helper.partition("\n")[0] for helper in written.helpers] == ["packed = []"] * ("packed" in pack)


def test_what_no_hook_is_around_is_run_as_it_is() -> None:
    assert Hooking(case(), RAISED, False, "").within(["y = net(x)"]) == ["y = net(x)"]


def test_a_hook_on_all_modules_is_removed_where_another_run_comes() -> None:
    about = of_calls(COUNT, link=EVERY)
    once = Hooking(case(CHAIN, kind="acting_forward"), about, False, "")
    again = Hooking(case(CHAIN, kind="acting_forward"), about, False, "", again=True)
    (registering,) = (line for line in once.lines if "register_module" in line)
    assert [f"handle = {line}" if line == registering else line for line in once.lines] == again.lines
    assert once.within(["net(x)"]) == ["net(x)"]
    assert again.within(["net(x)"]) == ["net(x)", "handle.remove()"]


def in_a_chain(c: Case, about: Question) -> str:
    """What is written of a hook in a chain, its registration left out."""
    written = Hooking(c, about, False, "")
    return "\n".join([*written.helpers, *written.lines]).partition("\ntorch.nn.modules")[0]


def test_a_hook_in_a_chain_writes_down_what_it_is_given_and_acts() -> None:
    about = of_calls(CLOSE, "b", "grad_input", "[0]", link=2)
    assert (
        in_a_chain(case(CHAIN, kind="acting_full_backward"), about)
        == """\
def act(link, factors, module, grad_input, grad_output):
    if link == 2 and module is net.b:
        calls.append(grad_input)
    return tuple(None if g is None else factor * g for factor, g in zip(factors, grad_input))
"""
    )


@pytest.mark.parametrize(
    ("about", "noted"),
    [
        (RAISED, ""),
        (
            of_calls(CLOSE, "", "args", "[0]", link=1),
            "    if link == 1:\n        calls.append(args[0].clone())\n",
        ),
        (of_calls(COUNT, link=EVERY), "    calls.append(link)\n"),
    ],
)
def test_which_hooks_of_a_chain_write_down(about: Question, noted: str) -> None:
    helper, hook = in_a_chain(case(kind="acting_forward_pre"), about).split("def act(link, factor, module, args):\n")
    assert helper.startswith("def scaled(value, factor):\n")
    assert hook.startswith(f"{noted}    return (*(scaled(value, factor) ")


def test_of_the_order_in_a_chain_on_forward_places_alone_are_written_down() -> None:
    registering, _, *on_each = lines(case(CHAIN, kind="acting_forward"), of_calls(ORDER, link=EVERY))
    assert registering.endswith("(lambda *args: calls.append(0))")
    assert sorted(line.partition("(")[2] for line in on_each) == sorted(
        f"lambda *args: calls.append({link}){', prepend=True' * (hooking.PREPEND and link == 1)})" for link in (1, 2)
    )


def test_of_a_chain_only_the_first_hook_may_matter() -> None:
    assert lines(case(CHAIN, kind="acting_full_backward"), of_calls(EQUAL, "b", MODULE)) == [
        f"torch.nn.modules.module.register_module_full_backward_hook({GIVEN_MODULE} calls.append(module is net.b))",
        "for module in net.modules():",
        "    module.register_full_backward_hook(lambda *args: None)",
    ]


@pytest.mark.parametrize(
    ("prepend", "on_each"),
    [
        (
            True,
            ["    {}(lambda *args: act(2, 0.125, *args))", "    {}(lambda *args: act(1, 4.0, *args), prepend=True)"],
        ),
        (False, ["    {}(lambda *args: act(1, 4.0, *args))", "    {}(lambda *args: act(2, 0.125, *args))"]),
    ],
)
def test_a_chain_is_registered_in_the_order_of_its_calls(
    prepend: bool, on_each: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooking, "PREPEND", prepend)
    assert lines(case(kind="acting_forward"), RAISED)[-4:] == [
        "torch.nn.modules.module.register_module_forward_hook(lambda *args: act(0, 0.5, *args))",
        "for module in net.modules():",
        *(line.format("module.register_forward_hook") for line in on_each),
    ]


def test_there_are_as_many_factors_as_gradients() -> None:
    four = with_gradients(case(kind="acting_full_backward"), numbers(1, 2, 3, 4))
    assert any(": act(0, (2.0, 0.5, 4.0, 2.0), *args))" in line for line in lines(four, RAISED))


def test_torch_does_not_compile_hooks_and_names_no_module_of_its_own() -> None:
    compiled = case(main=(replace(CALLED, context="compile_eager"), FROM_Y), kind="global_forward")
    assert lines(compiled, of_calls(ORDER))[-1] == (
        "torch.nn.modules.module.register_module_forward_hook("
        "torch.compiler.disable(lambda module, *args: calls.append(names.get(module))))"
    )


@pytest.mark.parametrize(
    ("kind", "relation", "looked_at"),
    [
        ("full_backward", CLOSE, "calls[1][0]"),
        ("forward", CLOSE, "calls[1]"),  # its hook has taken the entry
        ("forward", EQUAL, "calls[1][0]"),
        ("output_retain_grad", CLOSE, "calls[1].grad[0]"),
    ],
)
def test_what_is_looked_at_in_what_a_hook_has_written_down(kind: str, relation: str, looked_at: str) -> None:
    assert taken(KINDS[kind], replace(of_calls(relation, index="[0]"), event=1)) == looked_at


def test_every_output_of_several_has_its_hook() -> None:
    several = case(*AROUND_TWO, kind="output_retain_grad")
    on_each = ["tensor.retain_grad()", "calls.append(tensor)"]
    observed = lines(several, RAISED)
    assert "    for tensor in output:" in observed
    assert [line.strip() for line in observed if line.strip() in on_each] == on_each
    assert observed[-1] == "net.register_forward_hook(watch)"


@pytest.mark.parametrize("kind", ["output_tensor", "output_node", "output_retain_grad"])
def test_only_the_output_that_is_asked_about_writes_down(kind: str) -> None:
    about = replace(RAISED, place=CALLS, relation=CLOSE, path="b[0]", argument="gradient")
    observed = "\n".join(lines(case(CHAIN, kind=kind), about, everywhere=True))
    assert observed.count("module is net.b") == 1
    assert observed.endswith("for module in net.modules():\n    module.register_forward_hook(watch)")


def test_what_was_never_called_may_be_where_no_hook_can_be_put() -> None:
    about = replace(RAISED, place=CALLS, relation=COUNT, path="b[0]", expected=1)
    called, never = case(CHAIN, kind="output_node"), with_events(case(CHAIN, kind="output_node"))
    assert KINDS["output_node"].scope == "node"
    assert "    if output.requires_grad:" not in lines(called, about)
    assert "    if output.requires_grad:" in lines(never, about)
