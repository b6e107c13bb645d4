"""With which backends of ``torch.compile`` a script shows its fault: that tells which part of the compiler has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hookcheck.repro import verify
from hookcheck.repro.verify import Verdict

BACKENDS = ("eager", "aot_eager")
"""Those that scripts name: dynamo alone, and dynamo with AOTAutograd. The default, inductor, wants a C++ compiler."""

NAMED = re.compile(rf'\bbackend="(?:{"|".join(BACKENDS)})"')


def compiles(script: str) -> bool:
    """Whether a script compiles something, forward or backward, so that PyTorch has a bug form of its own for it.

    >>> compiles("torch.compile(net, backend='eager')"), compiles("re.compile('x')")
    (True, False)
    """
    return bool(re.search(r"\btorch\.compile\b|(?<!\bre)\.compile\(|\bcompiled_autograd\b", script))


def variants(script: str) -> dict[str, str]:
    """The script with each backend in the place of those that it names; empty where it names none.

    >>> variants('torch.compile(net, backend="eager")')["aot_eager"]
    'torch.compile(net, backend="aot_eager")'
    """
    if not NAMED.search(script):
        return {}
    return {backend: NAMED.sub(f'backend="{backend}"', script) for backend in BACKENDS}


def ablation(script: str, folder: Path, verdict: Verdict, limit: float) -> Iterator[tuple[str, Verdict]]:
    """Each backend with what the script says of the torch at hand with it; ``verdict`` is what it says as it is.

    The scripts are written to ``folder``.
    """
    for backend, text in variants(script).items():
        if text == script:
            yield backend, verdict
            continue
        path = folder / f"{backend}.py"
        path.write_text(text, encoding="utf-8")
        yield backend, verify.here(path, verdict.torch, 1, limit)
