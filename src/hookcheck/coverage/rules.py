"""Why can two features never meet? A short table of rules, each with the pairs that it speaks of and its reason."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

Word = tuple[str, str]
"""An axis and a word of it."""

NOT_DRAWN = "not drawn yet"
"""The reason of an unreached pair that no rule speaks of: nothing stands in the way."""


@dataclass(frozen=True)
class Rule:
    """Two words never meet where the one matches ``one`` and the other ``other``.

    A pattern is ``axis=word`` with the wildcards of a shell; of those that match a word the last decides, and one that
    begins with ``!`` says no.
    """

    why: str
    one: tuple[str, ...]
    other: tuple[str, ...] = ("*",)

    def speaks_of(self, a: Word, b: Word) -> bool:
        """Whether the rule says that ``a`` and ``b`` never meet."""
        return (_matches(a, self.one) and _matches(b, self.other)) or (
            _matches(b, self.one) and _matches(a, self.other)
        )


def _matches(word: Word, patterns: tuple[str, ...]) -> bool:
    matching = [pattern for pattern in patterns if fnmatchcase("=".join(word), pattern.lstrip("!"))]
    return bool(matching) and not matching[-1].startswith("!")


RULES = (
    Rule("a hook fires only where an output requires grad, so there is one", ("None pattern=grad_output empty",)),
    Rule("a module by itself has no second name", ("reuse=shared module",), ("depth=1",)),
    Rule(
        "single-node is one convolution",
        ("family=single-node",),
        ("layer group=*", "!layer group=convolution", "depth=3", "depth=4+"),
    ),
    Rule("intermediate-loss takes its loss from what a child gives", ("family=intermediate-loss",), ("depth=1",)),
    Rule("nested is modules in modules in a module", ("family=nested",), ("depth=1", "depth=2")),
    Rule(
        "these families call or share a module more than once",
        ("family=shared-module", "family=train-eval", "family=accumulate"),
        ("reuse=once",),
    ),
    Rule(
        "calls without positional arguments are what keyword-input and container-input are about",
        ("family=*", "!family=keyword-input", "!family=container-input"),
        ("arity=0 in", "None pattern=grad_input empty"),
    ),
    Rule(
        "a chain hands on one tensor",
        ("family=single-node", "family=multi-node", "family=intermediate-loss", "family=no-grad-evaluation"),
        ("arity=*", "!arity=1 *"),
    ),
    Rule(
        "grad mode is switched off in families that are about that",
        ("family=*", "!family=no-grad-evaluation", "!family=detached-inside", "!family=train-eval"),
        ("grad mode=no_grad", "grad mode=inference_mode"),
    ),
    Rule("steps in place are what inplace is about", ("family=*", "!family=inplace"), ("in-place=*", "!in-place=none")),
    Rule(
        "sharing is what shared-module and shared-parameter are about",
        ("family=*", "!family=shared-*"),
        ("reuse=shared *", "reuse=recursive"),
    ),
    Rule(
        "dtypes are what mixed-dtype is about, all others have float64 or float32",
        ("family=*", "!family=mixed-dtype"),
        ("dtype=*", "!dtype=float64", "!dtype=float32"),
    ),
)
"""The rules, of which the first that speaks of a pair gives the reason; each must hold of the corpus, and be of use."""
