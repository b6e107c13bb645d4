"""Of which dtypes are the tensors that hooks see where autocast has modules compute in lower precision?

Within ``torch.autocast(device, dtype=torch.bfloat16)`` a linear layer casts its input and its weight and computes in
bfloat16. A hook sees each tensor as it is: inputs as they were given, outputs in bfloat16, and each gradient in the
dtype of what it is the gradient of. Backward runs outside of the region, its operations in the dtype of forward's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.checkpoints import variants
from hookcheck.programs.host_changes import offered
from hookcheck.programs.program import program

AUTOCAST = "torch.autocast; notes on automatic mixed precision, 'Autocast Op Reference'"
LOW, FULL = "torch.bfloat16", "torch.float32"

# Everything below is a whole number of at most 256, which bfloat16 holds exactly: (1, 2) times the weight, transposed,
# is (5, 11); for the cotangent (1, 2) the gradient of the input is (7, 10), that of the weight ((1, 2), (2, 4)).
GRAD_INPUT, GRAD_WEIGHT = [[7, 10]], [[1, 2], [2, 4]]


def linear() -> Any:
    """A linear layer without bias."""
    layer = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return layer


def leaf() -> Any:
    """The input, in full precision."""
    return torch.tensor([[1.0, 2.0]], requires_grad=True)


def lower(check: Check, enabled: bool = True) -> AbstractContextManager[Any]:
    """The region in which linear layers compute in bfloat16."""
    return torch.autocast(check.device, dtype=torch.bfloat16, enabled=enabled)


def pull(y: Any) -> None:
    """Runs backward with the cotangent (1, 2)."""
    y.backward(torch.tensor([[1.0, 2.0]], dtype=y.dtype, device=y.device))


def shown(tensor: Any) -> Any:
    """The dtype and the values."""
    return None if tensor is None else [str(tensor.dtype), tensor.tolist()]


def noting(log: list[Any]) -> Callable[..., None]:
    """A hook that notes the tensors of the tuples that it is called with."""

    def hook(module: Any, *tuples: Any) -> None:
        log.append([shown(t) for each in tuples for t in (each if isinstance(each, tuple) else (each,))])

    return hook


@program("AU-01", PROMISE, since="1.10", source=f"torch.nn.Module.register_forward_hook; {AUTOCAST}")
def forward_hooks_see_what_goes_in_and_comes_out(check: Check) -> None:
    """Under autocast forward pre-hooks and forward hooks see the arguments as they were given, in full precision, and
    the output of a linear layer in bfloat16; outside, and where autocast is off inside, all is in full precision."""
    net, x = linear(), leaf()
    before: list[Any] = []
    after: list[Any] = []
    net.register_forward_pre_hook(noting(before))
    net.register_forward_hook(noting(after))
    given = [FULL, [[1, 2]]]
    with lower(check):
        net(x)
        check.equal("arguments of the pre-hook", before, [[given]])
        check.equal("arguments and output of the hook", after, [[given, [LOW, [[5, 11]]]]])
        after.clear()
        with lower(check, enabled=False):
            net(x)
        check.equal("arguments and output where it is off", after, [[given, [FULL, [[5, 11]]]]])
    after.clear()
    net(x)
    check.equal("arguments and output outside", after, [[given, [FULL, [[5, 11]]]]])


@program("AU-02", PROMISE, since="1.10", source=f"torch.nn.Module.register_full_backward_hook; {AUTOCAST}")
def full_hooks_see_the_dtypes_of_inputs_and_outputs(check: Check) -> None:
    """A full backward hook of a layer that ran under autocast gets ``grad_output`` in the dtype of the output,
    bfloat16, and ``grad_input`` in that of the input; gradients of leaves are in full precision."""
    net, x = linear(), leaf()
    log: list[Any] = []
    net.register_full_backward_hook(noting(log))
    with lower(check):
        y = net(x)
    pull(y)
    check.equal("grad_input and grad_output", log, [[[FULL, GRAD_INPUT], [LOW, [[1, 2]]]]])
    check.equal("gradient of the input", shown(x.grad), [FULL, GRAD_INPUT])
    check.equal("gradient of the weight", shown(net.weight.grad), [FULL, GRAD_WEIGHT])


@program("AU-03", PROMISE, since="1.10", source=f"torch.nn.Module.register_full_backward_hook; {AUTOCAST}")
def full_hooks_between_layers_see_the_lower_precision(check: Check) -> None:
    """Between layers under autocast all is in bfloat16: the second layer's ``grad_input`` is the first's
    ``grad_output``."""
    net, x = nn.Sequential(linear(), linear()), leaf()
    log: list[Any] = []
    for layer in net:
        layer.register_full_backward_hook(noting(log))
    with lower(check):
        y = net(x)
    pull(y)
    between = [LOW, GRAD_INPUT]
    # (7, 10) times the weight: (7 + 30, 14 + 40)
    check.equal("the second layer, the first", log, [[between, [LOW, [[1, 2]]]], [[FULL, [[37, 54]]], between]])
    check.equal("gradient of the first weight", shown(net[0].weight.grad), [FULL, [[7, 14], [10, 20]]])
    check.equal("gradient of the second weight", shown(net[1].weight.grad), [FULL, [[5, 11], [10, 22]]])


@program("AU-04", PROMISE, since="1.10", source=f"torch.nn.Module.register_full_backward_hook; {AUTOCAST}")
def what_a_full_hook_returns_is_used(check: Check) -> None:
    """What a full backward hook returns takes the place of ``grad_input``, in either precision."""
    net, x = nn.Sequential(linear(), linear()), leaf()
    for layer in net:
        layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 2,))
    with lower(check):
        y = net(x)
    pull(y)
    check.equal("gradient of the input", shown(x.grad), [FULL, [[4 * 37, 4 * 54]]])
    check.equal("gradient of the first weight", shown(net[0].weight.grad), [FULL, [[14, 28], [20, 40]]])


@program("AU-05", PROMISE, since="2.0", source=f"torch.nn.Module.register_full_backward_pre_hook; {AUTOCAST}")
def full_pre_hooks_see_the_dtype_of_the_output(check: Check) -> None:
    """A full backward pre-hook gets ``grad_output`` in bfloat16, and what it returns takes its place."""
    net, x = linear(), leaf()
    log: list[Any] = []
    net.register_full_backward_pre_hook(noting(log))
    net.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    with lower(check):
        y = net(x)
    pull(y)
    check.equal("grad_output", log, [[[LOW, [[1, 2]]]]])
    check.equal("gradient of the input", shown(x.grad), [FULL, [[70, 100]]])
    check.equal("gradient of the weight", shown(net.weight.grad), [FULL, [[10, 20], [20, 40]]])


@program("AU-06", PROMISE, since="1.10", source=f"torch.Tensor.register_hook; {AUTOCAST}")
def tensor_hooks_see_the_dtype_of_their_tensor(check: Check) -> None:
    """A tensor hook gets the gradient in the dtype of its tensor: bfloat16 on an output, full precision on a leaf; one
    on a weight that was used twice is called once, with the sum."""
    net, x = linear(), leaf()
    log: dict[str, Any] = {"output": [], "input": [], "weight": []}
    x.register_hook(lambda gradient: log["input"].append(shown(gradient)))
    net.weight.register_hook(lambda gradient: log["weight"].append(shown(gradient)))
    with lower(check):
        first, second = net(x), net(x)
    second.register_hook(lambda gradient: log["output"].append(shown(gradient)))
    pull(first + second * 2)
    check.equal("on the second output", log["output"], [[LOW, [[2, 4]]]])
    check.equal("on the input", log["input"], [[FULL, [[21, 30]]]])
    check.equal("on the weight", log["weight"], [[FULL, [[3, 6], [6, 12]]]])


@program("AU-07", PROMISE, since="2.1", source=f"torch.Tensor.register_post_accumulate_grad_hook; {AUTOCAST}")
def post_accumulate_hooks_see_full_precision(check: Check) -> None:
    """A post-accumulate-grad hook of a parameter finds ``.grad`` in the parameter's precision."""
    net, x = linear(), leaf()
    log: list[Any] = []
    net.weight.register_post_accumulate_grad_hook(lambda parameter: log.append(shown(parameter.grad)))
    with lower(check):
        y = net(x)
    pull(y)
    check.equal("the gradient at each call", log, [[FULL, GRAD_WEIGHT]])


@program("AU-08", PROMISE, since="1.10", source=f"torch.nn.Module.register_forward_hook; {AUTOCAST}")
def what_a_forward_hook_returns_keeps_its_dtype(check: Check) -> None:
    """What a forward hook returns is the output as it is: one that casts up has ``grad_output`` be in full precision,
    and one on what goes in is cast by the layer."""
    net, x = linear(), leaf()
    log: list[Any] = []
    net.register_full_backward_hook(noting(log))
    net.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    net.register_forward_hook(lambda module, args, output: output.float())
    with lower(check):
        y = net(x)
    check.equal("output", shown(y), [FULL, [[10, 22]]])
    pull(y)
    check.equal("grad_input and grad_output", log, [[[FULL, GRAD_INPUT], [FULL, [[1, 2]]]]])
    check.equal("gradient of the input", shown(x.grad), [FULL, [[14, 20]]])


@program("AU-09", PROMISE, since="1.10", source=AUTOCAST)
def hooks_compute_in_the_precision_of_the_region(check: Check) -> None:
    """What a forward hook computes inside of the region is autocast; the same after it is not."""
    net, x = linear(), leaf()
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    results: list[Any] = []
    net.register_forward_hook(lambda module, args, output: results.append(shown(torch.mm(args[0], weight))))
    with lower(check):
        net(x)
    net(x)
    check.equal("a product in the hook, inside and outside", results, [[LOW, [[1, 2]]], [FULL, [[1, 2]]]])
    results.clear()
    region = torch.autocast(check.device, dtype=torch.bfloat16)
    net.register_forward_hook(region(lambda module, args, output: results.append(shown(torch.mm(args[0], weight)))))
    net(x)
    check.equal("a product outside, in a hook that autocast decorates", results[1:], [[LOW, [[1, 2]]]])
    for form, checkpoint in variants().items() if offered((2, 5)) else ():
        results.clear()
        part = linear()
        part.register_forward_pre_hook(lambda module, args: results.append(shown(torch.mm(args[0].detach(), weight))))
        with torch.autocast(check.device, dtype=torch.float16):
            y = checkpoint(part, x)
        pull(y)
        half = ["torch.float16", [[1, 2]]]
        check.equal(f"{form}, in half precision: a product in the hook in both passes", results, [half, half])


@program("AU-10", PIN, since="1.10", source=AUTOCAST)
def hooks_in_backward_are_outside_of_the_region(check: Check) -> None:
    """What full backward hooks and tensor hooks compute in a backward outside of the region is not autocast."""
    net, x = linear(), leaf()
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    results: list[Any] = []
    net.register_full_backward_hook(lambda module, gi, go: results.append(shown(torch.mm(gi[0], weight))))
    net.weight.register_hook(lambda gradient: results.append(shown(torch.mm(gradient, weight))))
    with lower(check):
        y = net(x)
    pull(y)
    check.equal("products in the hooks", sorted(results, key=str), [[FULL, GRAD_WEIGHT], [FULL, GRAD_INPUT]])


@program("AU-11", PIN, since="1.10", source=f"torch.nn.Module.register_full_backward_hook; {AUTOCAST}")
def a_gradient_of_another_dtype_is_refused(check: Check) -> None:
    """A gradient that a full backward hook returns in full precision, where it got one in bfloat16, is refused; cast
    back it is taken."""

    def gradient(hook: Any) -> Any:
        net, x = nn.Sequential(linear(), linear()), leaf()
        net[1].register_full_backward_hook(hook)
        with lower(check):
            y = net(x)
        pull(y)
        return shown(x.grad)

    def returned(module: Any, grad_input: Any, grad_output: Any) -> Any:
        return (grad_input[0].float() * 2,)

    def cast(module: Any, grad_input: Any, grad_output: Any) -> Any:
        return ((grad_input[0].float() * 2).to(grad_input[0].dtype),)

    check.raises("in full precision", RuntimeError, lambda: gradient(returned), "has changed the type of value")
    check.equal("cast back", gradient(cast), [FULL, [[74, 108]]])
