"""Is a pack/unpack pair of saved-tensors hooks right? The corpus is run with and without it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

import torch

from hookcheck.errors import HookcheckError
from hookcheck.models.tables import saved_tensors_pair
from hookcheck.oracle.tolerance import close, coarsest
from hookcheck.probe.observation import Array, Copy, Observation, dtype_of, numbers
from hookcheck.probe.run import observe, unavailable
from hookcheck.programs.processes import group_left
from hookcheck.releases.numbers import release
from hookcheck.suite import conformance_folder
from hookcheck.topology.codec import identify
from hookcheck.topology.corpus import read
from hookcheck.topology.families import FAMILIES, family_named
from hookcheck.topology.model import Topology, size
from hookcheck.topology.source import source
from hookcheck.topology.values import values

MakeContext = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class PairFault:
    """One way in which a network ran otherwise with the pair than without it.

    ``what`` is ``raised``, ``value``, ``gradient``, ``dtype``, ``version``, ``view``, ``strides``, ``requires grad``,
    ``object``, ``random state``, ``memory`` or ``stack``; ``where`` names the tensor, or is ``the context`` for what
    concerns no network. ``topology`` is the id of the network.
    """

    what: str
    where: str
    expected: str
    observed: str
    topology: str = ""

    def __str__(self) -> str:
        """One line."""
        return f"{self.what} of {self.where or 'the run'}: {self.observed}, not {self.expected}"


@dataclass(frozen=True)
class SavedTensorsCheck:
    """What a pair did to the networks that were run.

    ``ran`` networks ran; ``left_out`` needed a newer torch. ``smallest`` is the smallest network that shows a fault, as
    PyTorch code in which the pair is named ``make_context()``, and empty if none does.
    """

    ran: int
    left_out: int
    faults: tuple[PairFault, ...]
    smallest: str = ""

    def __str__(self) -> str:
        """How many networks ran, the faults by what they are with one example, and the smallest network."""
        shown = len({fault.topology for fault in self.faults if fault.topology})
        lines = [f"{self.ran} networks ran, {self.left_out} need a newer torch; {shown} ran otherwise with the pair"]
        for what in dict.fromkeys(fault.what for fault in self.faults):
            those = [fault for fault in self.faults if fault.what == what]
            lines.append(f"  {len(those)} x {those[0]}")
        return "\n".join([*lines, *(["", self.smallest] if self.smallest else [])])

    def to_json(self) -> str:
        """The fields as JSON."""
        return json.dumps(asdict(self), indent=2)

    def raise_if_faulty(self) -> None:
        """Raises where the pair changed anything.

        Raises:
            AssertionError: with the text of the result.
        """
        if self.faults:
            raise AssertionError(str(self))


def check_saved_tensors_hooks(
    make_context: MakeContext,
    *,
    share: float = 0.1,
    families: tuple[str, ...] = (),
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> SavedTensorsCheck:
    """Runs networks of the corpus with and without a pair of saved-tensors hooks, and says what the pair changed.

    ``make_context()`` makes a context within which the pair is there, such as
    ``torch.autograd.graph.saved_tensors_hooks(pack, unpack)``; it is called once a network. ``share`` of each of the
    ``families`` (all of them where empty) is drawn by ``seed``, at least one network each; 1 is all of it.
    ``progress`` is called with how many ran, of how many. Values and gradients are held to the one table of tolerances,
    by dtype; all else must be the same.

    Raises:
        HookcheckError: a torch without such hooks, a share or family that is none, or no context.
    """
    _usable(make_context, share, families)
    drawn = random.Random(seed)
    folder = conformance_folder() / "corpus"
    chosen: list[Topology] = []
    for family in families or FAMILIES:
        whole = read(folder, family)
        chosen += drawn.sample(whole, max(1, round(share * len(whole))))
    topologies = [topology for topology in chosen if not unavailable(topology, "saved_tensors")]
    faults = [*_context_faults(make_context)]
    with group_left():  # DistributedDataParallel and others have networks make one
        for number, topology in enumerate(topologies, start=1):
            faults += _faults(topology, make_context)
            if progress:
                progress(number, len(topologies))
    shown = {fault.topology for fault in faults}
    faulty = [topology for topology in topologies if identify(topology) in shown]
    smallest = _script(min(faulty, key=size)) if faulty else ""
    return SavedTensorsCheck(len(topologies), len(chosen) - len(topologies), tuple(faults), smallest)


def _usable(make_context: MakeContext, share: float, families: tuple[str, ...]) -> None:
    if release(torch.__version__) < (1, 10):
        raise HookcheckError(f"saved_tensors_hooks came with torch 1.10; this is {torch.__version__}")
    if not 0 < share <= 1:
        raise HookcheckError(f"share is a part of the corpus, above 0 and at most 1, not {share}")
    for family in families:
        family_named(family)
    if not callable(make_context):
        raise HookcheckError("make_context is a function that makes the context: pass lambda: saved_tensors_hooks(…)")
    if not hasattr(make_context(), "__enter__"):
        raise HookcheckError("make_context() gives no context: return saved_tensors_hooks(pack, unpack) itself")


class _Own(Exception):
    """What a block raises that must come out of the context as it is."""


def _context_faults(make_context: MakeContext) -> Iterator[PairFault]:
    """An exception of the block comes out, and the pair is not there afterwards."""
    before, observed = saved_tensors_pair(), "none"
    try:
        with make_context():
            raise _Own
    except _Own:
        observed = ""
    except Exception as other:
        observed = repr(other)
    if observed:
        yield PairFault("raised", "the context", "the exception of the block", observed)
    if saved_tensors_pair() != before:
        yield PairFault("stack", "the context", "no pair after the block", "the pair is still there")


def _faults(topology: Topology, make_context: MakeContext) -> list[PairFault]:
    given = values(topology)
    plain = observe(topology, given, None)
    faults = {*_differences(plain, observe(topology, given, None, within=make_context))}
    id = identify(topology)
    return sorted((PairFault(f.what, f.where, f.expected, f.observed, id) for f in faults), key=str)


def _differences(plain: Observation, paired: Observation) -> Iterator[PairFault]:
    if plain.raised != paired.raised:
        yield PairFault("raised", "", str(plain.raised or "no exception"), str(paired.raised or "no exception"))
        return
    for path, a, b in [*_pairs(plain.values, paired.values), *_pairs(plain.gradients, paired.gradients, ".grad")]:
        yield from _unlike("gradient" if path.endswith(".grad") else "value", path, a, b)
    for name, standing in plain.standings.items():
        other = paired.standings.get(name)
        for what, field in (("version", "version"), ("view", "view"), ("strides", "strides"), ("object", "object")):
            if other is not None and getattr(standing, field) != getattr(other, field):
                yield PairFault(what, name, str(getattr(standing, field)), str(getattr(other, field)))
    for name, layout in plain.layouts.items():
        if name in paired.layouts and layout != paired.layouts[name]:
            yield PairFault("strides", f"{name}.grad", str(layout), str(paired.layouts[name]))
    for name, asks in plain.requires_grad.items():
        if paired.requires_grad.get(name) is not asks:
            yield PairFault("requires grad", name, str(asks), str(paired.requires_grad.get(name)))
    if plain.random != paired.random:
        yield PairFault("random state", "", "as without the pair", "another one")
    for name in sorted({*paired.alive} - {*plain.alive}):
        yield PairFault("memory", name, "freed after the run", "kept alive by the pair")


def _pairs(plain: Mapping[str, Any], paired: Mapping[str, Any], end: str = "") -> Iterator[tuple[str, Copy, Copy]]:
    for name, value in plain.items():
        yield from _leaves(f"{name}{end}", value, paired.get(name))


def _leaves(path: str, a: Copy, b: Copy) -> Iterator[tuple[str, Copy, Copy]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a:
            yield from _leaves(f"{path}[{key}]", a[key], b.get(key))
    elif isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        for i, (one, other) in enumerate(zip(a, b)):
            yield from _leaves(f"{path}[{i}]", one, other)
    else:
        yield path, a, b


def _unlike(what: str, path: str, a: Copy, b: Copy) -> Iterator[PairFault]:
    if not (hasattr(a, "dtype") and hasattr(b, "dtype")):
        if type(a) is not type(b) or a != b:
            yield PairFault(what, path, _word(a), _word(b))
        return
    expected, observed = dtype_of(a), dtype_of(b)  # type: ignore[arg-type]
    if expected != observed:
        yield PairFault("dtype", path, expected, observed)
    elif not close(numbers(b), numbers(a), coarsest([expected]), "cpu"):  # type: ignore[arg-type]
        yield PairFault(what, path, _word(a), _word(b))


def _word(value: Copy | Array) -> str:
    text = " ".join(repr(numbers(value).tolist() if hasattr(value, "dtype") else value).split())  # type: ignore[arg-type]
    return text if len(text) <= 60 else f"{text[:57]}..."


def _script(topology: Topology) -> str:
    """The network, its main part within the pair."""
    parts = source(topology)
    main = "\n".join(f"    {line}" if line else "" for line in parts.main.splitlines())
    return (
        f"import torch\nfrom torch import nn\n\n\n{parts.modules}\n\n{parts.data}\n\n"
        f"with make_context():  # and once without it\n{main}\n"
    )
