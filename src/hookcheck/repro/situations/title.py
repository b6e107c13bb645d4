"""What a situation shows, in one line that somebody could prove wrong, and why what is expected is expected."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from hookcheck.programs.situations.acts import Alter, Register, Remove, Trigger, Trouble
from hookcheck.programs.situations.sites import SITES
from hookcheck.repro.situations.noting import logs
from hookcheck.repro.situations.reduced import Scene, raised
from hookcheck.repro.words import LONGEST_TITLE, how

GAPS = {
    "not fired": "a hook is not called",
    "fired too often": "a hook is called too often",
    "not raised": "what is raised does not come out",
    "wrong arguments": "a hook is given something else",
    "wrong order": "hooks are called in another order",
    "kept alive": "a hook is never freed",
}
WAYS = {
    "grad": "in autograd.grad", "inputs": "in backward(inputs=…)", "twice": "twice", "thread": "in a thread",
    "with": "as a context", "copied handle": "by a copied handle", "around a call": "as a context of a call",
    "around an error": "as a context of an error",
}  # fmt: skip
"""The ways of backward and of removal that are not the plain ones."""


def title(scene: Scene) -> str:
    """What registers the hooks, what they meet, and how torch deviates."""
    return titles(scene)[0]


def titles(scene: Scene) -> list[str]:
    """The title, and where something is raised a briefer one, without the words of torch's own."""
    sites = (SITES[act.site].register for act in scene.acts if isinstance(act, Register))
    hooks = " and ".join(dict.fromkeys(map(_function, sites))) or "no hooks"
    finding = scene.finding
    assert finding is not None
    text = finding.observed if isinstance(finding.observed, str) else ""
    gap = GAPS.get(finding.gap) or text or _message(scene) or raised(finding) or how(finding)
    about = f"{' '.join((hooks, *_around(scene)))}{''.join(_besides(scene))}"
    wholes = (f"{about}: {each}" for each in (gap, raised(finding)) if each)
    return [textwrap.shorten(whole, LONGEST_TITLE, placeholder=" …").rstrip(": ") for whole in wholes]


def _function(register: str) -> str:
    """The function by which a hook is registered, as people call it."""
    return next(iter(re.findall(r"_?register_\w+(?=\()", register)), "saved_tensors_hooks")


def _message(scene: Scene) -> str:
    finding = scene.finding
    entries = finding.observed if finding is not None and isinstance(finding.observed, list) else []
    texts = [re.match(r"""\('raised', '(\w+)', (['"])(.*)\2\)$""", entry) for entry in entries]
    return next((f"{match[1]}: {match[3]}" for match in texts if match), "")


def _around(scene: Scene) -> Iterator[str]:
    """What hooks are on, and in what, where that is not the plainest there is."""
    situation = scene.situation
    yield from [f"on {situation.host}"] if situation.host != "plain" else []
    yield from [f"of an optimizer {situation.optimizer}"] if situation.optimizer != "SGD" else []
    yield from [f"with an input that is: {situation.input}"] if situation.input != "plain" else []
    yield from (f"in {context}" for context in scene.contexts)


def _besides(scene: Scene) -> Iterator[str]:
    """What is done besides calling, going back, saving and stepping."""
    for act in scene.acts:
        if isinstance(act, Alter):
            yield f" after {act.what.replace(' with handles', '')}"
        if isinstance(act, Trouble):
            yield f", where {act.what if act.what.startswith('the ') else f'a hook {act.what}'}"
        if isinstance(act, Remove):
            yield f", removed {WAYS.get(act.way, '')}".rstrip()
        if isinstance(act, Trigger) and act.what == "backward" and act.way in WAYS:
            yield f" {WAYS[act.way]}"
        if isinstance(act, Trigger) and act.call:
            yield f", called {act.call if act.call.startswith('in ') else f'in {act.call}'}"


def why(scene: Scene, due: str) -> str:
    """Why what is ``due`` is, in one line."""
    log = logs(scene.acts)
    last = log.each[-1]
    if re.search(r"\d\.\d", due):
        return "y = x * 2 * 3 for x = 5, so its gradients are 6 for x and 15 for the first weight"
    if any(entry[0] == "raised" for entry in last):
        return "what is raised comes out of what calls it"
    hooks = [entry[0] for entry in last if entry[0] in log.sites]
    if any(isinstance(act, Remove) for act in scene.acts):
        return "each hook that was not removed is called"
    others = {act.other for act in scene.acts if isinstance(act, Trouble) and act.what == "removes another"}
    if others:
        return "a call has the hooks that it took up" if others & {*hooks} else "what was removed is called no more"
    if len(hooks) > len({*hooks}):
        return "each hook is called for each call that it is on"
    return "each hook is called once, in the order of registration" if hooks[1:] else "the hook is called once"
