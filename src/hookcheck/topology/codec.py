"""How is a topology written, read back and named? Canonical JSON, and an id that is a hash of it.

A dataclass becomes an object with its class name under ``type``; fields at their default are left out; tuples become
arrays. A key is the name of its field, or an older name that `model.key` gives. Two topologies are the same exactly if
their canonical JSON is, so the id identifies content, not a label.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, lru_cache
from typing import Any

from hookcheck.errors import HookcheckError
from hookcheck.topology import model, tree
from hookcheck.topology.catalogue import layer_classes, op_classes
from hookcheck.topology.model import Topology, worked_out_once


class TopologyError(HookcheckError):
    """A text is no topology, or is not the one that it says it is."""


def encode(value: Any) -> Any:
    """A topology, or a part of one, as plain JSON values."""
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    part: Any = type(value)
    shown: dict[str, Any] = {"type": part.__name__}
    for name, key, default in _fields(part):
        content = getattr(value, name)
        if default is MISSING or content != default:
            shown[key] = encode(content)
    return shown


@cache
def _fields(part: Any) -> tuple[tuple[str, str, Any], ...]:
    """The names, keys and defaults of the fields of a dataclass."""
    return tuple((f.name, model.key(f), f.default) for f in fields(part))


@cache
def _names(part: Any) -> dict[str, str]:
    """The names of the fields of a dataclass, by key."""
    return {key: name for name, key, _ in _fields(part)}


def canonical(topology: Topology) -> str:
    """The one JSON text of a topology: sorted keys, no spaces, ASCII."""
    return json.dumps(encode(topology), sort_keys=True, separators=(",", ":"), allow_nan=False)


@worked_out_once
def identify(topology: Topology) -> str:
    """The topology's id: the first 16 hexadecimal digits of the SHA-256 of its canonical JSON."""
    return hashlib.sha256(canonical(topology).encode()).hexdigest()[:16]


def decode(content: Any) -> Topology:
    """The topology that ``content``, as `encode` gave it, stands for.

    Raises:
        TopologyError: an unknown class or field, a missing field, or no topology at all.
    """
    topology = _decode(content)
    if not isinstance(topology, Topology):
        raise TopologyError(f"this is no topology but {type(content).__name__}; see `hookcheck.topology.model`")
    return topology


def _decode(content: Any) -> Any:
    if isinstance(content, list):
        return tuple(_decode(item) for item in content)
    if not isinstance(content, dict):
        return content
    known = _classes()
    name = content.get("type")
    if not isinstance(name, str) or name not in known:
        raise TopologyError(f"unknown part {name!r} in a topology; was it written by a newer hookcheck?")
    names = _names(known[name])
    strange = content.keys() - names.keys() - {"type"}
    if strange:
        raise TopologyError(f"the fields of {name!r} are not as they should be: it has no {sorted(strange)[0]!r}")
    try:
        return known[name](**{names[key]: _decode(value) for key, value in content.items() if key != "type"})
    except TypeError as error:
        raise TopologyError(f"the fields of {name!r} are not as they should be: {error}") from None


@lru_cache(maxsize=1)
def _classes() -> dict[str, Any]:
    known = {**vars(tree), **vars(model)}
    plain = {name: c for name, c in known.items() if isinstance(c, type) and is_dataclass(c)}
    return {**plain, **layer_classes(), **op_classes()}
