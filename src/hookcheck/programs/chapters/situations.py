"""Are hooks of every kind called as they are registered, whatever they meet? In situations that a covering array chose.

A hook is on a site, with a neighbour there and one elsewhere; the net is of some host, its input of some class, its
optimizer of some sort; something is done to it before the call or between forward and backward; contexts are around
all of it; it is called plainly, in a checkpoint, in a thread or in inference; a hook, a body or a closure raises, or a
hook removes or registers one. Then all is run again, the hook is
removed in some way, all is run once more, and in the end nothing may hold a hook. A model in plain Python says what
must be noted at each step (`hookcheck.programs.situations`). Any two choices that go together meet in some situation.
"""

from __future__ import annotations

from hookcheck.contract.clause import PIN
from hookcheck.probe.lazy import torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program
from hookcheck.programs.situations.judge import finding, held
from hookcheck.programs.situations.sites import BY_CLAUSE, SITES

PINNED = "; that nothing else that is done meanwhile concerns hooks is nowhere said, but relied on"


def _state_of(clause: str, check: Check) -> None:
    """States what becomes of the situations that a clause speaks of."""
    major, minor = torch.__version__.split(".")[:2]
    for situation in held((int(major), int(minor))):
        if SITES[situation.site].lane in BY_CLAUSE[clause]:
            check.state(situation.name, finding(situation), situation.features)


@program("SI-01", PIN, since="1.8", source=f"torch.nn.Module.register_forward_hook and its siblings{PINNED}")
def hooks_on_calls(check: Check) -> None:
    """Hooks on the calls of modules are called, removed and freed as everywhere else, whatever they meet."""
    _state_of("SI-01", check)


@program("SI-02", PIN, since="1.8", source=f"torch.nn.Module.register_state_dict_post_hook and its siblings{PINNED}")
def hooks_on_state(check: Check) -> None:
    """Hooks on what modules save and load are called, removed and freed as everywhere else, whatever they meet."""
    _state_of("SI-02", check)


@program(
    "SI-03",
    PIN,
    since="2.0",
    source=f"torch.nn.modules.module.register_module_parameter_registration_hook and its siblings{PINNED}",
)
def hooks_on_registration(check: Check) -> None:
    """Hooks on what modules register are called, removed and freed as everywhere else, whatever they meet."""
    _state_of("SI-03", check)


@program("SI-04", PIN, since="1.8", source=f"torch.Tensor.register_hook, torch.autograd.graph{PINNED}")
def hooks_in_the_graph(check: Check) -> None:
    """Hooks on tensors, Nodes and what is saved are called, removed and freed as elsewhere, whatever they meet."""
    _state_of("SI-04", check)


@program("SI-05", PIN, since="2.0", source=f"torch.optim.Optimizer.register_step_pre_hook and its siblings{PINNED}")
def hooks_on_optimizers(check: Check) -> None:
    """Hooks on optimizers are called, removed and freed as everywhere else, whatever they meet."""
    _state_of("SI-05", check)
