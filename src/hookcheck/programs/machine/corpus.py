"""Which sequences of acts does everyone play? The corpus: JSON lines beside this module, each an array of acts.

An act is written as a part of a topology is: an object with its class under ``type``, fields at their default left out.
`hookcheck.programs.machine.draw` adds lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hookcheck.programs.machine import model
from hookcheck.programs.machine.model import Act, RegisterAct, Release, fitted
from hookcheck.topology.codec import encode

PATH = Path(__file__).with_name("corpus.jsonl")


def line(acts: Sequence[Act]) -> str:
    """The one text of a sequence."""
    return json.dumps(encode(tuple(acts)), sort_keys=True, separators=(",", ":"))


def sequence(line: str) -> tuple[Act, ...]:
    """The sequence that a line stands for."""
    return tuple(_decode(act) for act in json.loads(line))


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return getattr(model, value["type"])(**{name: _decode(item) for name, item in value.items() if name != "type"})


def read() -> tuple[tuple[Act, ...], ...]:
    """The sequences of the corpus, as the newest torch plays them."""
    return tuple(map(sequence, PATH.read_text(encoding="utf-8").splitlines()))


def write(sequences: Iterable[Sequence[Act]]) -> None:
    """Writes the corpus anew."""
    PATH.write_text("".join(f"{line(acts)}\n" for acts in sequences), encoding="utf-8")


def held(release: Release) -> tuple[tuple[Act, ...], ...]:
    """The sequences of the corpus, as a torch can play them."""
    return tuple(
        tuple(fitted(act, release) if isinstance(act, RegisterAct) else act for act in acts) for acts in read()
    )
