"""Where can the source of a clause be read? The addresses that its text names, for whoever triages a report."""

from __future__ import annotations

import re

from hookcheck.hooks.kinds import DOCS

ISSUES = "https://github.com/pytorch/pytorch/issues"


def links(source: str) -> tuple[str, ...]:
    """The addresses of what ``source`` names; empty where it names nothing that has one.

    >>> links("notes on autograd, 'Special hooks'; pytorch#56693")[1]
    'https://github.com/pytorch/pytorch/issues/56693'
    """
    methods = re.findall(r"torch\.nn\.Module\.\w+", source)
    functions = re.findall(r"torch\.(?:Tensor\.\w+|autograd\.(?:backward|grad)\b)", source)
    sections = re.findall(r"notes on autograd, '([^']+)'", source)
    issues = re.findall(r"pytorch#(\d+)", source)
    return (
        *(f"{DOCS}/generated/torch.nn.Module.html#{name}" for name in dict.fromkeys(methods)),
        *(f"{DOCS}/generated/{name}.html" for name in dict.fromkeys(functions)),
        *(f"{DOCS}/notes/autograd.html#{section.lower().replace(' ', '-')}" for section in sections),
        *(f"{ISSUES}/{number}" for number in issues),
    )
