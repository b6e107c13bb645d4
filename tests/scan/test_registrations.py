"""Is every registration found, with its kind, and is the receiver inferred where it can be and nowhere else?"""

from __future__ import annotations

import pytest

from hookcheck.scan.registrations import registrations
from hookcheck.scan.source import SourceFile

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def kinds(text: str, head: str = HEAD) -> list[tuple[str, bool]]:
    source = SourceFile("program.py", (head + text).encode())
    return [(r.kind, r.sure) for r in sorted(registrations(source), key=lambda r: r.node.lineno)]


MANY = """
from torch.autograd.graph import saved_tensors_hooks, register_multi_grad_hook as multi
from torch.nn.modules.module import register_module_forward_hook
def run(model: nn.Module, opt: torch.optim.Optimizer, x: torch.Tensor):
    model.register_forward_pre_hook(f)
    model.register_backward_hook(f)
    model.register_state_dict_pre_hook(f)
    opt.register_state_dict_pre_hook(f)
    opt.register_step_post_hook(f)
    x.register_hook(f)
    x.retain_grad()
    (x * 2).grad_fn.register_hook(f)
    x.grad_fn.next_functions[0][0].register_prehook(f)
    multi([x], f)
    register_module_forward_hook(f)
    torch.nn.modules.module.register_module_buffer_registration_hook(f)
    with saved_tensors_hooks(f, f), torch.autograd.graph.save_on_cpu():
        pass
"""


def test_every_kind_with_the_receiver_that_decides_it() -> None:
    assert kinds(MANY) == [
        ("forward_pre", True), ("backward", True), ("state_dict_pre", True), ("optimizer_state_dict_pre", True),
        ("optimizer_step_post", True), ("tensor", True), ("retain_grad", True), ("node", True), ("node_pre", True),
        ("multi_grad", True), ("global_forward", True), ("buffer_registration", True),
        ("saved_tensors", True), ("save_on_cpu", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("receiver", "kind"),
    [
        ("torch.ones(2, requires_grad=True)", "tensor"),
        ("torch.ones(2).requires_grad_()", "tensor"),
        ("nn.Parameter(torch.ones(2))", "tensor"),
        ("nn.Linear(2, 2).weight", "tensor"),
        ("nn.Linear(2, 2).to('cpu').weight", "tensor"),
        ("list(nn.Linear(2, 2).parameters())[0]", "tensor"),
        ("(torch.ones(2) * y)", "tensor"),
        ("y.grad_fn", "node"),
    ],
)
def test_receivers_of_register_hook(receiver: str, kind: str) -> None:
    assert kinds(f"{receiver}.register_hook(print)\n") == [(kind, True)]
    assert kinds(f"x = {receiver}\nx.register_hook(print)\n") == [(kind, True)]


@pytest.mark.parametrize(
    "loop",
    [
        "for p in model.parameters():",
        "for _, p in model.named_parameters():",
        "for i, p in enumerate(model.parameters()):",
        "for p in list(model.parameters()):",
    ],
)
def test_loops_over_parameters(loop: str) -> None:
    assert kinds(f"{loop}\n    p.register_hook(print)\n") == [("tensor", True)]


def test_what_cannot_be_known_is_unsure() -> None:
    assert kinds("def f(x):\n    x.register_hook(print)\n") == [("tensor or node", False)]
    assert kinds("def f(x: nn.Module | torch.Tensor):\n    x.register_hook(print)\n") == [("tensor or node", False)]
    assert kinds("def f(x):\n    x.register_state_dict_pre_hook(print)\n")[0][1] is False
    assert kinds("def f(x):\n    x.register_forward_hook(print)\n", head="") == [("forward", False)]


@pytest.mark.parametrize(
    "text",
    [
        "manager.register_hook('name', print)\n",
        "class Plugin:\n    def register_hook(self, f): ...\n    def go(self):\n        self.register_hook(print)\n",
        "class Plugin:\n    def go(self):\n        self.register_hook(print)\n",
        "class Net(nn.Module):\n    def register_forward_hook(self, f):\n        super().register_forward_hook(f)\n",
        "model.register_forward_hook\n",
        "nn.Linear(2, 2).register_hook(print)\n",
        "def register_module_forward_hook(f): ...\nregister_module_forward_hook(print)\n",
    ],
)
def test_what_is_none_of_torch(text: str) -> None:
    assert kinds(text) == []


def test_other_frameworks_and_programs_without_torch() -> None:
    assert kinds("import paddle\nlayer.register_forward_hook(print)\n", head="") == []
    assert kinds("import pluggy\nx.register_hook(print)\n", head="") == []


def test_self_and_fields_of_a_module() -> None:
    text = "class Base(nn.Module): ...\nclass Net(Base):\n    def __init__(self):\n        self.w = nn.Parameter(x)\n"
    text += "        self.w.register_hook(print)\n        self.register_forward_hook(print)\n"
    assert kinds(text) == [("tensor", True), ("forward", True)]


def test_a_tensor_and_a_leaf_agree_on_a_tensor() -> None:
    assert kinds("if a:\n    x = torch.ones(2)\nelse:\n    x = nn.Parameter(y)\nx.register_hook(print)\n") == [
        ("tensor", True)
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("register = layer.register_backward_hook\nregister(f)", ["backward"]),
        ("register = layer.register_backward_hook\ndef run():\n    register(f)", ["backward"]),
        ("register = layer.register_backward_hook\ndef run(register):\n    register(f)", []),
        ("register = layer.register_backward_hook\nregister = print\nregister(f)", []),
        ("for register in [layer.register_backward_hook]:\n    register(f)", []),
    ],
)
def test_a_method_that_is_called_by_another_name(text: str, kind: list[str]) -> None:
    assert kinds(f"layer = nn.Linear(2, 2)\n{text}") == [(each, True) for each in kind]


@pytest.mark.parametrize(
    ("text", "fallback"),
    [
        ("if hasattr(layer, 'register_full_backward_hook'):\n    pass\nelse:\n    {0}", True),
        ("if not hasattr(layer, 'register_full_backward_hook'):\n    for _ in range(2):\n        {0}", True),
        ("handle = 1 if hasattr(layer, 'register_full_backward_hook') else {0}", True),
        ("if hasattr(layer, 'register_full_backward_hook'):\n    {0}", False),
        ("if hasattr(layer, 'register_forward_hook'):\n    pass\nelse:\n    {0}", False),
        ("if not layer:\n    {0}", False),
    ],
)
def test_a_legacy_hook_where_torch_has_no_other(text: str, fallback: bool) -> None:
    source = SourceFile("program.py", (HEAD + text.format("layer.register_backward_hook(f)")).encode())
    assert [registration.fallback for registration in registrations(source)] == [fallback]
