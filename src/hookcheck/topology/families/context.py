"""context: a network runs inside of something of torch that must change nothing, its caller or a context manager."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from hookcheck.topology.families.drawing import Draw
from hookcheck.topology.families.networks import backed, networks, topology
from hookcheck.topology.layers.adjustable import RReLU
from hookcheck.topology.model import CALLERS, Topology, Within, walk

FORWARD, WHOLE = ("autocast", "save_on_cpu"), ("detect_anomaly",)
"""The contexts that are put around the call alone, and those that are put around the backward as well."""


@st.composite
def topologies(draw: Draw) -> Topology:
    """A network of float64, which autocast leaves alone, called and differentiated once.

    None of float32: what autocast casts, and the float32 copies that it keeps, torch's documentation lists by operation
    and changes from release to release, and the oracle knows no dtype but by promotion.

    No RReLU is in a checkpoint: its backward may there find any numbers (pytorch#193671).
    """
    net = draw(networks())
    inputs, losses = backed(draw, net.named("y"))
    random = any(isinstance(module, RReLU) for _, module in walk(net.module))
    callers = [caller for caller in CALLERS if caller != "checkpoint" or not random]
    inside, call = draw(st.sampled_from([*callers, *FORWARD, *WHOLE])), net.call()
    if inside in CALLERS:
        main = (replace(call, through=inside), *losses)
    elif inside in FORWARD:
        main = (Within(inside, (call,)), *losses)
    else:
        main = (Within(inside, (call, *losses)),)
    return topology(draw, net.module, (*net.arguments, *inputs), main, dtype="float64")
