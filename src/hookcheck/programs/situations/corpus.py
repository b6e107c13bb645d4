"""Which situations does everyone run? The corpus: JSON lines beside this module, choices at their simplest left out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from hookcheck.programs.situations.acts import Situation

PATH = Path(__file__).with_name("corpus.jsonl")


def line(situation: Situation) -> str:
    """The one text of a situation."""
    choices = {f.name: getattr(situation, f.name) for f in fields(situation)}
    return json.dumps({f.name: choices[f.name] for f in fields(situation) if choices[f.name] != f.default})


def read() -> tuple[Situation, ...]:
    """The situations of the corpus."""
    lines = PATH.read_text(encoding="utf-8").splitlines() if PATH.exists() else ()
    return tuple(Situation(**json.loads(text)) for text in lines)


def write(situations: Iterable[Situation]) -> None:
    """Writes the corpus anew."""
    PATH.write_text("".join(f"{line(situation)}\n" for situation in situations), encoding="utf-8")
