"""What is a hook met in? Hosts, contexts, inputs and optimizers, as expressions that a script can hold."""

from __future__ import annotations

from dataclasses import dataclass

from hookcheck.programs.situations.sites import Release


@dataclass(frozen=True)
class Choice:
    """An expression, the definitions that it needs, and the first release that has what is in it."""

    expression: str
    since: Release = (1, 7)
    needs: str = ""


CONTEXTS = {
    "": Choice(""),
    "detect_anomaly": Choice("torch.autograd.detect_anomaly()"),
    "saved_tensors_hooks": Choice("torch.autograd.graph.saved_tensors_hooks(same, same)", (1, 10)),
    "save_on_cpu": Choice("torch.autograd.graph.save_on_cpu()", (1, 10)),
    "inference_mode(False)": Choice("torch.inference_mode(False)", (1, 9)),
    "enable_grad": Choice("torch.enable_grad()"),
    "autocast": Choice('torch.autocast("cpu", enabled=False)', (1, 10)),
    "record_function": Choice('torch.autograd.profiler.record_function("a name")'),
    "dual_level": Choice("torch.autograd.forward_ad.dual_level()", (1, 8)),
    "one thread": Choice("torch.autograd.set_multithreading_enabled(False)", (2, 0)),
    "default device": Choice('torch.device("cpu")', (2, 0)),
    "function mode": Choice("torch.overrides.BaseTorchFunctionMode()", (2, 0)),
    "dispatch mode": Choice(
        "Dispatching()",
        (2, 0),
        '''\
from torch.utils._python_dispatch import TorchDispatchMode


class Dispatching(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
''',
    ),
    "no new saved tensors hooks": Choice('torch.autograd.graph.disable_saved_tensors_hooks("no")', (2, 0)),
}
"""What must change nothing, by name."""

OTHER_CONTEXTS = {
    "enabled autocast": Choice('torch.autocast("cpu", dtype=torch.bfloat16)', (1, 10)),
    "enable_grad in no_grad": Choice("torch.no_grad(), torch.enable_grad()"),
    "no check for NaN": Choice("torch.autograd.detect_anomaly(check_nan=False)", (2, 0)),
    "cached parametrizations": Choice("parametrize.cached()", (1, 9), "from torch.nn.utils import parametrize\n"),
    "FLOP counter": Choice(
        "flop_counter.FlopCounterMode(display=False)", (2, 1), "from torch.utils import flop_counter\n"
    ),
    "module tracker": Choice("module_tracker.ModuleTracker()", (2, 4), "from torch.utils import module_tracker\n"),
    "no torch functions": Choice("torch._C.DisableTorchFunctionSubclass()", (2, 0)),
    "fork_rng": Choice("torch.random.fork_rng()"),
    "without oneDNN": Choice("torch.backends.mkldnn.flags(enabled=False)"),
    "one attention kernel": Choice(
        "attention.sdpa_kernel(attention.SDPBackend.MATH)", (2, 3), "from torch.nn import attention\n"
    ),
}
"""More of these, in which hooks come and go (see `chains`)."""

MODES = {
    "no_grad": Choice("torch.no_grad()"),
    "inference_mode": Choice("torch.inference_mode()", (1, 9)),
}
"""In which no graph is built, while hooks may come and go all the same."""

SURROUNDINGS = {**CONTEXTS, **OTHER_CONTEXTS, **MODES}
"""What acts may be in."""

LAZY = """\
class Lazy(nn.LazyLinear):
    def reset_parameters(self):
        if not self.has_uninitialized_params():
            nn.init.constant_(self.weight, 2.0)


def lazy(called):
    net = nn.Sequential(Lazy(1, bias=False), network()[1])
    if called:
        net(torch.ones(1, 1))
    return net
"""

UNDONE = """\
def undone(part, change):
    change(part)
    nn.utils.remove_weight_norm(part)
"""

HOSTS = {
    "plain": Choice("network()"),
    "own methods": Choice(
        "restored(Own)",
        needs="""\
class Own(nn.Sequential):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        return super().forward(*args, **kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("0"), name)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def __getstate__(self):
        return dict(vars(self))

    def __setstate__(self, state):
        super().__setstate__(state)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, *args):
        super()._load_from_state_dict(*args)
""",
    ),
    "deep copy": Choice("copy.deepcopy(network())"),
    "shallow copy": Choice("copy.copy(network())"),
    "unpickled": Choice("pickle.loads(pickle.dumps(network()))"),
    "replica": Choice("network()._replicate_for_data_parallel()"),
    "DataParallel": Choice("nn.DataParallel(network())"),
    "AveragedModel": Choice("torch.optim.swa_utils.AveragedModel(network())", (2, 1)),
    "weight_norm": Choice("changed(network(), nn.utils.weight_norm)"),
    "pruned": Choice(
        'changed(network(), lambda part: prune.identity(part, "weight"))', needs="from torch.nn.utils import prune\n"
    ),
    "parametrized": Choice(
        "changed(network(), lambda part: parametrize.register_parametrization(part, 'weight', nn.Identity()))",
        (1, 13),
        "from torch.nn.utils import parametrize\n",
    ),
    "weight_norm, undone": Choice("changed(network(), lambda part: undone(part, nn.utils.weight_norm))", needs=UNDONE),
    "lazy": Choice("lazy(called=False)", (1, 13), LAZY),
    "lazy, called": Choice("lazy(called=True)", (1, 13), LAZY),
    "GraphModule": Choice("torch.fx.symbolic_trace(network())", (1, 8), "import torch.fx\n"),
}
"""What makes a net that is like the plain one, by name; ``needs`` goes before it."""

OPTIMIZERS = {
    "SGD": Choice("torch.optim.SGD(net.parameters(), lr=0.0)"),
    "Adam": Choice("torch.optim.Adam(net.parameters(), lr=0.0)"),
    "foreach": Choice("torch.optim.SGD(net.parameters(), lr=0.0, foreach=True)", (2, 0)),
    "fused": Choice("torch.optim.SGD(net.parameters(), lr=0.0, fused=True)", (2, 4)),
    "AdamW, amsgrad": Choice("torch.optim.AdamW(net.parameters(), lr=0.0, amsgrad=True)", (1, 10)),
    "of its own": Choice(
        "OwnOptimizer(net.parameters(), {})",
        needs="""\
class OwnOptimizer(torch.optim.Optimizer):
    def step(self, closure=None):
        return closure()
""",
    ),
    "with super().step()": Choice(
        "CallingStep(torch.optim.SGD(net.parameters(), lr=0.0).param_groups, lr=0.0)",
        needs="""\
class CallingStep(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)
""",
    ),
    "with a scheduler": Choice(
        "scheduled(torch.optim.SGD(net.parameters(), lr=0.0))",
        needs="""\
def scheduled(optimizer):
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return optimizer
""",
    ),
    "copied": Choice("copy.deepcopy(torch.optim.SGD(net.parameters(), lr=0.0))"),
}

INPUTS = {
    "plain": Choice("torch.tensor([[5.0]], requires_grad=True)"),
    "large strides": Choice("torch.full((1, 9), 5.0)[:, ::9].requires_grad_()"),
    "three dimensions": Choice("torch.full((1, 1, 1), 5.0, requires_grad=True)"),
    "expanded": Choice("torch.tensor(5.0).expand(1, 1).requires_grad_()"),
    "negative view": Choice("torch._neg_view(torch.full((1, 1), -5.0)).requires_grad_()", (1, 10)),
    "imaginary part": Choice("torch.full((1, 1), 5j).imag.requires_grad_()", (1, 10)),
    "parameter": Choice("nn.Parameter(torch.full((1, 1), 5.0))"),
    "plain subclass": Choice(
        "torch.full((1, 1), 5.0).as_subclass(Sub).requires_grad_()",
        (1, 10),
        needs="""\
class Sub(torch.Tensor):
    pass
""",
    ),
    "parameter subclass": Choice(
        "SubParameter(torch.full((1, 1), 5.0))",
        needs="""\
class SubParameter(nn.Parameter):
    pass
""",
    ),
    "with its own functions": Choice(
        "torch.full((1, 1), 5.0).as_subclass(Handling).requires_grad_()",
        (2, 0),
        needs="""\
class Handling(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})
""",
    ),
    "shared storage": Choice("torch.full((1, 1), 5.0).share_memory_().requires_grad_()"),
    "double and back": Choice("torch.full((1, 1), 5.0, dtype=torch.float64).float().requires_grad_()"),
}
