"""What may a network run inside of? The contexts, one declaration each: what it wraps, since when, what it changes.

A context is put around the call, around call and backward, or around steps of a module; or it makes the call, or asks
for the gradients, in main's place. It must change nothing of what hooks receive, but for what it declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

STEPS, CALL, RUN = "steps", "call", "run"
CALLER, ASKING = "caller", "asking"


@dataclass(frozen=True)
class Context:
    """One context.

    ``wraps`` is what it is around: the STEPS of a body, the CALL, or call and backward (RUN); a CALLER makes
    the call itself, and one of ASKING asks for the gradients. ``since`` is the first torch release that has it.
    ``source`` is the expression of a context manager; that of a CALLER holds ``{net}`` and ``{args}`` for what it calls
    and with what, that of ASKING ``{asked}`` for the function that asks, and its arguments. ``needs`` are the imports
    and definitions that go before. The device of a manager is written ``'cpu'``: see `source.main_source`.

    ``replaces`` are the leaves in whose place it gives the network tensors of its own, of no class that those are of:
    ``parameters``, ``inputs``, or the ``differentiated`` ones of these, which require grad. ``repeats`` says that
    backward runs forward again, as far as it needs it; ``compiles`` that torch.compile is at work in it, which is slow,
    and asks for a Python that it knows. ``complex_since`` is the first release in which it takes complex numbers,
    ``classes_since`` that in which it takes tensors of classes and layouts, and ``later`` has the classes that it takes
    since another one, each with that; if those are others. ``nests_since`` is the release from which on it takes itself
    within it, and others that have such a release.
    """

    wraps: str
    since: str
    source: str
    needs: str = ""
    replaces: tuple[str, ...] = ()
    repeats: bool = False
    compiles: bool = False
    complex_since: str = ""
    classes_since: str = ""
    later: Mapping[str, str] = field(default_factory=dict)
    nests_since: str = ""


COMPILED = """\
def compiled(module, backend):
    def call(*args):
        return module(*args)

    return torch.compile(call, backend=backend)


def compiled_in_place(module):
    module.compile(backend="eager")
    return module


@torch.compiler.disable
def uncompiled(module, *args):
    return module(*args)


def after_compiling(module):
    torch.compile(torch.sin, backend="eager")(torch.ones(2))
    return module"""

COMPILED_IN_PLACE = """\
def compiled_ahead_in_place(module):
    module.compile(backend="aot_eager")
    return module"""

COMPILED_AUTOGRAD = """\
def compiled_autograd():
    from torch._dynamo import compiled_autograd

    return compiled_autograd._enable(lambda graph: graph.forward)"""

PROCESS_GROUP = """\
import torch.distributed as dist


def process_group():
    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)"""

DISTRIBUTED = """\
def distributed(module):
    process_group()
    return nn.parallel.DistributedDataParallel(module)"""

SHARDED = """\
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def sharded(module):
    process_group()
    old = dict(module.named_parameters())
    (device,) = {p.device.type for p in old.values()} or {"cpu"}
    whole = fully_shard(module, mesh=init_device_mesh(device, (1,)))
    for name, shard in module.named_parameters():
        shard.register_post_accumulate_grad_hook(lambda s, held=old[name]: setattr(held, "grad", s.grad.to_local()))
    return whole"""

ON_A_MESH = """\
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate


def on_a_mesh(module, *args):
    process_group()
    mesh = init_device_mesh(args[0].device.type, (1,))
    held = {name: DTensor.from_local(p, mesh, [Replicate()]) for name, p in module.named_parameters()}
    given = tuple(DTensor.from_local(arg, mesh, [Replicate()]) for arg in args)
    y = torch.func.functional_call(module, held, given)
    return tuple(each.to_local() for each in y) if isinstance(y, tuple) else y.to_local()"""

BY_VJP = """\
class ByVjp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *leaves):
        y, ctx.pull = torch.func.vjp(call, *leaves)
        return tuple(each.detach() for each in y) if isinstance(y, tuple) else y.detach()

    @staticmethod
    def backward(ctx, *cotangents):
        return (None, *ctx.pull(cotangents if len(cotangents) > 1 else cotangents[0]))


def by_vjp(module, *args):
    weights = {name: p for name, p in module.named_parameters() if p.requires_grad}
    places = [i for i, arg in enumerate(args) if arg.requires_grad]

    def call(*leaves):
        given = {**dict(enumerate(args)), **dict(zip(places, leaves[len(weights) :]))}
        return torch.func.functional_call(module, dict(zip(weights, leaves)), tuple(given.values()))

    return ByVjp.apply(call, *weights.values(), *(args[i] for i in places))"""

WITH_TANGENTS = """\
import torch.autograd.forward_ad as forward_ad


def with_tangents(module, *args):
    with forward_ad.dual_level():
        dual = (forward_ad.make_dual(arg, torch.ones_like(arg)) if arg.is_floating_point() else arg for arg in args)
        y = module(*dual)
        primals = [forward_ad.unpack_dual(each).primal for each in (y if isinstance(y, tuple) else (y,))]
    return tuple(primals) if isinstance(y, tuple) else primals[0]"""

CONTEXTS = {
    "no_grad": Context(STEPS, "1.7", "torch.no_grad()"),
    "enable_grad": Context(STEPS, "1.7", "torch.enable_grad()"),
    "inference_mode": Context(STEPS, "1.9", "torch.inference_mode()"),
    # Autocast leaves float64 alone.
    "autocast": Context(CALL, "1.10", "torch.autocast('cpu')"),
    "save_on_cpu": Context(CALL, "1.10", "torch.autograd.graph.save_on_cpu()", nests_since="1.11"),
    "saved_tensors_hooks": Context(
        CALL,
        "1.10",
        "torch.autograd.graph.saved_tensors_hooks(torch.Tensor.clone, torch.Tensor.clone)",
        nests_since="1.11",
    ),
    # Until then a jagged tensor lacks what looks whether any number is none.
    "detect_anomaly": Context(
        RUN,
        "1.7",
        "torch.autograd.detect_anomaly()",
        later={"jagged": "2.10", "jagged, unequal rows": "2.10"},
    ),
    "dual_level": Context(RUN, "1.8", "torch.autograd.forward_ad.dual_level()", "import torch.autograd.forward_ad"),
    "default_device": Context(RUN, "2.0", "torch.device('cpu')"),
    "meta_device": Context(RUN, "2.0", "torch.device('meta')"),
    "function_mode": Context(RUN, "2.0", "torch.overrides.BaseTorchFunctionMode()"),
    # Until then a tensor of a subclass cannot be made of a plain one in it.
    "dispatch_mode": Context(
        RUN,
        "2.0",
        "Dispatching()",
        """\
from torch.utils._python_dispatch import TorchDispatchMode


class Dispatching(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))""",
        later={"subclass": "2.6", "torch function": "2.6"},
    ),
    "one_thread": Context(RUN, "2.0", "torch.autograd.set_multithreading_enabled(False)"),
    "module_tracker": Context(
        RUN, "2.4", "torch.utils.module_tracker.ModuleTracker()", "import torch.utils.module_tracker"
    ),
    "checkpoint": Context(
        CALLER,
        "1.11",
        "torch.utils.checkpoint.checkpoint({net}, {args}, use_reentrant=False)",
        "import torch.utils.checkpoint",
        repeats=True,
    ),
    "functional_call": Context(
        CALLER,
        "2.0",
        "torch.func.functional_call({net}, dict({net}.named_parameters()), ({args},))",
        "import torch.func",
    ),
    # Threads are joined: what they have run is freed at once.
    "thread": Context(
        CALLER,
        "1.7",
        "in_a_thread({net}, {args})",
        """\
import concurrent.futures


def in_a_thread(function, *args):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()""",
    ),
    # Until 2.5 it refuses hooks on saved tensors, around it and inside.
    "vmap": Context(
        CALLER,
        "2.5",
        "on_a_batch_of_one({net}, {args})",
        """\
def on_a_batch_of_one(function, *args):
    y = torch.vmap(function, randomness="same")(*(arg[None] for arg in args))
    return tuple(each[0] for each in y) if isinstance(y, tuple) else y[0]""",
    ),
    "replica": Context(
        CALLER,
        "1.7",
        "replica({net})({args})",
        """\
import sys
from unittest import mock

from torch.nn.parallel import replicate


def replica(module):
    # As DataParallel makes it, whose broadcast knows no CPU.
    there = mock.patch.object(
        sys.modules["torch.nn.parallel.replicate"],
        "_broadcast_coalesced_reshape",
        lambda tensors, devices, detach=False: [[tensor.view_as(tensor) for tensor in tensors]],
    )
    with there:
        return replicate(module, [0])[0]""",
    ),
    # Until then gloo sends no complex numbers.
    "ddp": Context(
        CALLER,
        "1.11",
        "distributed({net}).forward({args})",
        f"{PROCESS_GROUP}\n\n\n{DISTRIBUTED}",
        complex_since="2.9",
    ),
    # It puts other parameters in the place of the module's own, which are given what those gather.
    "fully_shard": Context(
        CALLER,
        "2.7",
        "sharded({net})({args})",
        f"{PROCESS_GROUP}\n\n\n{SHARDED}",
        ("parameters",),
        complex_since="2.9",
    ),
    # On 2.7.1 a DTensor forgets that the tensor it is made of is a view with other signs. Until 2.10 backward raises
    # where DTensors were stacked, by which large strides are made.
    "dtensor": Context(
        CALLER,
        "2.7",
        "on_a_mesh({net}, {args})",
        f"{PROCESS_GROUP}\n\n\n{ON_A_MESH}",
        ("parameters", "inputs"),
        later={"negative view": "2.9", "conjugate view": "2.9", "large strides": "2.10"},
    ),
    # Forward and backward are those of torch.func; autograd hands over what goes in and comes out.
    "vjp": Context(CALLER, "2.0", "by_vjp({net}, {args})", BY_VJP, ("parameters", "differentiated")),
    "dual_inputs": Context(CALLER, "2.0", "with_tangents({net}, {args})", WITH_TANGENTS),
    # What is compiled is a function that calls the module: a compiled module is one more module, on which global hooks
    # are called too, as torch warns. Until 2.9 most classes of tensors are unknown to it, with hooks and without: on
    # 2.4.1 it raises, or warns of what it cannot trace, and on 2.1.2 and 2.2.2 what was compiled before is one more
    # module for hooks on all.
    "compile_eager": Context(
        CALLER, "2.1", "compiled({net}, 'eager')({args})", COMPILED, compiles=True, classes_since="2.9"
    ),
    "compile_aot_eager": Context(
        CALLER, "2.1", "compiled({net}, 'aot_eager')({args})", COMPILED, compiles=True, classes_since="2.9"
    ),
    "compile_module_eager": Context(
        CALLER, "2.1", "torch.compile({net}, backend='eager')({args})", compiles=True, classes_since="2.9"
    ),
    "compile_module_aot_eager": Context(
        CALLER,
        "2.1",
        "torch.compile({net}, backend='aot_eager')({args})",
        compiles=True,
        classes_since="2.9",
        later={"sparse gradient": "2.3"},  # on 2.2 the first of them in a process is now and then not freed
    ),
    "module_compile": Context(
        CALLER, "2.2", "compiled_in_place({net})({args})", COMPILED, compiles=True, classes_since="2.9"
    ),
    "module_compile_aot_eager": Context(
        CALLER, "2.2", "compiled_ahead_in_place({net})({args})", COMPILED_IN_PLACE, compiles=True, classes_since="2.9"
    ),
    "compiler_disable": Context(
        CALLER, "2.1", "uncompiled({net}, {args})", COMPILED, compiles=True, classes_since="2.9"
    ),
    "after_compile": Context(
        CALLER, "2.1", "after_compiling({net})({args})", COMPILED, compiles=True, classes_since="2.9"
    ),
    # The compiler gives back the graph's function, as torch's backend "eager" does. Older releases have it too, and
    # raise for hooks on several tensors and retained gradients: seen on 2.4.1 and 2.6.0.
    "compiled_autograd": Context(RUN, "2.9", "compiled_autograd()", COMPILED_AUTOGRAD, compiles=True),
    "is_grads_batched": Context(
        ASKING,
        "1.11",
        "of_a_batch_of_one({asked})",
        """\
def of_a_batch_of_one(outputs, inputs, cotangents, **settings):
    batch = tuple(cotangent[None] for cotangent in cotangents)
    found = torch.autograd.grad(outputs, inputs, batch, is_grads_batched=True, **settings)
    return tuple(None if each is None else each[0] for each in found)""",
    ),
}
"""The contexts by name."""

GRAD_MODES = ("no_grad", "enable_grad", "inference_mode")
"""Those that say whether autograd records."""


WRAPPING = ("vmap", "vjp", "dtensor")
"""Those that give the network wrappers of tensors, of which some functions of torch make other Nodes."""

MODES = ("default_device", "function_mode", "dispatch_mode")
"""Those that are called for functions of torch, or for its operations; any of them may be within any, itself too."""

COMPILING = tuple(name for name, context in CONTEXTS.items() if context.compiles)
"""Those in which torch.compile is at work."""

COMPILES_WITHIN_SINCE = "2.7"
"""The release from which on those are within others; older ones raise in some, without any hook (seen on 2.4.1)."""


def that_wrap(*places: str) -> tuple[str, ...]:
    """The names of the contexts that are put there."""
    return tuple(name for name, context in CONTEXTS.items() if context.wraps in places)


MANAGERS = that_wrap(STEPS, CALL, RUN)
"""Those in which statements run."""

CALLERS = that_wrap(CALLER)
"""Those that call the root in main's place."""


def replaced(names: Iterable[str], parameter: bool, differentiated: bool) -> bool:
    """Whether a context among those gives the network another tensor in the place of a parameter, or of an input."""
    places = {place for name in names for place in CONTEXTS[name].replaces}
    return not places.isdisjoint({"parameters"} if parameter else {"inputs", *["differentiated"] * differentiated})
