"""What came out of checking a model: a verdict for each module call, hook kind and clause, and sentences for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from textwrap import fill

CONFORMS, KNOWN, NEW = "conforms", "deviates: known", "deviates: new"
RAISING = "the step raises"
NOT_REACHED, NOT_JUDGED = "not reached", "not judged"
VERDICTS = (NEW, KNOWN, NOT_JUDGED, NOT_REACHED, CONFORMS)
"""What can be said of a hook of a kind on a module call by a clause; that to be looked at first, first."""


@dataclass(frozen=True)
class Judged:
    """One verdict.

    ``module`` is the path as in ``named_modules`` (empty for the model itself), ``call`` counts the calls of the module
    from 0; it is None where the verdict is about the module or, with ``clause`` on a whole run, about the run. ``gap``
    says how it deviates, ``expected`` and ``observed`` in which words; ``why`` is the ledger's reason, or why nothing
    is judged, ``link`` what the reason rests on.
    """

    module: str
    call: int | None
    kind: str
    clause: str
    verdict: str
    gap: str = ""
    expected: str = ""
    observed: str = ""
    why: str = ""
    link: str = ""

    @property
    def subject(self) -> str:
        """What it is about, for people: ``layer1.0.conv1#0``, or the whole step."""
        if self.call is None:
            return self.module or ("the step" if self.clause else "the model")
        return f"{self.module or 'the model'}#{self.call}"


@dataclass(frozen=True)
class Seen:
    """What hooks of a kind saw at one place: how many ``times`` they were called, and what they were ``given``: the
    shapes and dtypes of each call, numbers aside, equal ones once."""

    kind: str
    on: str
    times: int
    given: str


@dataclass(frozen=True)
class OwnHook:
    """What became of one hook of the user's own function.

    ``kind`` is its hook kind; ``on`` the path of its module, the name of its parameter, input or output, ``all
    modules`` or ``another tensor``; ``place`` is where it was registered (``file:line``). It was ``called`` so often,
    and ``due`` so often (None: that is not known). At ``returned`` calls it returned something, at ``wrote`` it wrote
    to a tensor that it was given; ``changed`` are the outputs and gradients that are others by that. ``left`` says that
    it was still there at the end. ``retained`` is how many bytes of what it was given are still there after the step,
    and ``graph`` whether some of that has its graph. ``judged`` are the verdicts on what it received, as if no hook
    returned anything.
    """

    kind: str
    on: str
    function: str
    place: str
    called: int
    due: int | None
    returned: int
    wrote: int
    changed: tuple[str, ...]
    left: bool
    retained: int
    graph: bool
    judged: tuple[Judged, ...]

    @property
    def received(self) -> str:
        """What it received, in words."""
        wrong = [v for v in self.judged if v.verdict in (NEW, KNOWN)]
        if wrong:
            worst = next((v for v in wrong if v.verdict == NEW), wrong[0])
            why = f" ({worst.why})" if worst.why else ""
            return f"received {worst.gap}: {worst.observed} instead of {worst.expected}{why}"
        if any(v.verdict == CONFORMS for v in self.judged):
            return "received what it must"
        left = next((v.why for v in self.judged if v.verdict in (NOT_JUDGED, NOT_REACHED)), "nothing speaks of it")
        return f"not judged, since {left}"

    @property
    def answered(self) -> str:
        """What it returned and what that did, in words; what it wrote; what stays in memory; whether it does itself."""
        did = [f"returned something at {_calls(self.returned)}"] if self.returned else []
        did += [f"wrote to what it was given at {_calls(self.wrote)}"] if self.wrote else []
        if did:
            more = f" and {len(self.changed) - 3} more" if len(self.changed) > 3 else ""
            way = "with which" if any(change.startswith(RAISING) for change in self.changed) else "which changes"
            did.append(f"{way} {', '.join(self.changed[:3]) or 'nothing'}{more}")
        if self.retained:
            graph = ", with the graph behind it" if self.graph else ""
            did.append(f"{_size(self.retained)} of what it was given stay in memory{graph}")
        return ", ".join([*did, *(["was not removed"] if self.left else [])])

    @property
    def called_as_due(self) -> str:
        """How often it was called, in words."""
        due = "" if self.due in (None, self.called) else f" and not {times(self.due or 0)}"
        return f"called {times(self.called)}{due}"

    def __str__(self) -> str:
        """All of it."""
        return "; ".join(filter(None, (self.called_as_due, self.received, self.answered)))


def _size(count: int) -> str:
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB" if count < 2**20 else f"{count / 2**20:.1f} MiB"


def _calls(count: int) -> str:
    return "one call" if count == 1 else f"{count} calls"


def times(count: int) -> str:
    """How often something is called."""
    return {0: "never", 1: "once"}.get(count, f"{count} times")


@dataclass(frozen=True)
class Remark:
    """Something that its user should know of a model: about ``topic``, in a sentence, with the modules and the hook
    kinds that it is about."""

    topic: str
    text: str
    modules: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The sentence with hook kinds and modules."""
        names = [name or "the model" for name in self.modules]
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        text = f"{', '.join(self.kinds)}: {self.text}" if self.kinds else self.text
        return f"{text}: {shown}" if names else text


@dataclass(frozen=True)
class ModelCheck:
    """The result of `hookcheck.check_module`.

    ``kinds`` are the hook kinds that ran; ``judged`` every verdict; ``remarks`` the sentences, most costly first;
    ``hooks`` what became of the user's own, whose verdicts are among ``judged`` as well, and ``raised`` what the step
    with all of them raises (empty: nothing);
    ``seen`` what hooks of each kind saw, verdicts aside.
    """

    model: str
    torch: str
    device: str
    kinds: tuple[str, ...]
    judged: tuple[Judged, ...]
    remarks: tuple[Remark, ...]
    calls: Mapping[str, int] = field(default_factory=dict)
    hooks: tuple[OwnHook, ...] = ()
    seen: tuple[Seen, ...] = ()
    raised: str = ""

    @property
    def deviations(self) -> tuple[Judged, ...]:
        """The verdicts that deviate and that no entry of the ledger explains."""
        return tuple(verdict for verdict in self.judged if verdict.verdict == NEW)

    def of(self, module: str, kind: str | None = None) -> tuple[Judged, ...]:
        """The verdicts on a module, and on one hook kind if it is given."""
        return tuple(v for v in self.judged if v.module == module and kind in (None, v.kind))

    def raise_if_deviating(self, known: bool = False) -> None:
        """Raises where anything deviates that the ledger does not know, or, with ``known``, anything at all; and where
        the step with the user's own hooks does.

        Raises:
            AssertionError: with the deviations and the sentences.
        """
        wrong = [v for v in self.judged if v.verdict == NEW or (known and v.verdict == KNOWN)]
        if wrong or self.raised:
            raise AssertionError("\n".join([str(self), "", *map(_line, wrong[:20])]))

    def to_json(self) -> str:
        """All fields as JSON."""
        return json.dumps(asdict(self), indent=2)

    def __str__(self) -> str:
        """The counts by hook kind, then the sentences, most costly first."""
        modules, calls = len(self.calls), sum(self.calls.values())
        reached = f"{modules} module{'' if modules == 1 else 's'} reached by {calls} call{'' if calls == 1 else 's'}"
        lines = [f"{self.model} on {self.device}, torch {self.torch}: {reached}"]
        for kind, counts in self._counts().items():
            counted = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
            lines.append(f"  {kind}: {counted}")
        topic = ""
        for remark in self.remarks:
            if remark.topic != topic:
                topic = remark.topic
                lines += ["", topic]
            lines.append(_folded(str(remark)))
        lines += ["", "your hooks", *map(_folded, self._of_hooks())] if self.hooks or self.raised else []
        new = self.deviations
        if new:
            lines += ["", "new deviations, which the ledger does not know", *map(_folded, map(_line, new[:10]))]
            lines += [f"  and {len(new) - 10} more"] if len(new) > 10 else []
        return "\n".join(lines)

    def _of_hooks(self) -> list[str]:
        """The sentences on the user's own hooks; what the step with them raises is told once."""
        together = list(_together(self.hooks))
        if not self.raised:
            return together
        raises = f"the step raises {self.raised}"
        return [f"with them {raises}", *(text.replace(raises, "the step raises") for text in together)]

    def _counts(self) -> dict[str, Counter[str]]:
        return {kind: Counter(v.verdict for v in self.judged if v.kind == kind) for kind in self.kinds}

    def _repr_html_(self) -> str:
        """A table of the counts and a list of the sentences, for notebooks."""
        head = "".join(f"<th>{verdict}</th>" for verdict in VERDICTS)
        rows = "".join(
            f"<tr><td>{escape(kind)}</td>{''.join(f'<td>{counts[verdict]}</td>' for verdict in VERDICTS)}</tr>"
            for kind, counts in self._counts().items()
        )
        items = "".join(f"<li><b>{escape(r.topic)}</b> {escape(str(r))}</li>" for r in self.remarks)
        items += "".join(f"<li>{escape(text)}</li>" for text in self._of_hooks())
        new = "".join(f"<li>{escape(_line(verdict))}</li>" for verdict in self.deviations)
        return (
            f"<p>{escape(self.model)} on {escape(self.device)}, torch {escape(self.torch)}</p>"
            f"<table><tr><th>hook kind</th>{head}</tr>{rows}</table><ul>{items}{new}</ul>"
        )


def _together(hooks: Iterable[OwnHook]) -> Iterable[str]:
    """A sentence for each function that was registered somewhere and what became of it, with the modules or tensors."""
    by_text: dict[tuple[str, ...], list[str]] = {}
    for hook in hooks:
        key = (f"{hook.kind} hook {hook.function} ({hook.place})", str(hook))
        by_text.setdefault(key, []).append(hook.on or "the model")
    for (head, text), on in by_text.items():
        names = [f"{name} ({times} times)" if times > 1 else name for name, times in Counter(on).items()]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        yield f"{head} on {shown}: {text}"


def _folded(text: str) -> str:
    return fill(text, 118, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def _line(verdict: Judged) -> str:
    return (
        f"{verdict.clause} {verdict.kind} on {verdict.subject}: {verdict.gap}: {verdict.observed} instead of "
        f"{verdict.expected}"
    )


def by_module(verdicts: Iterable[Judged]) -> tuple[str, ...]:
    """The modules that verdicts are about, each once."""
    return tuple(dict.fromkeys(verdict.module for verdict in verdicts))
