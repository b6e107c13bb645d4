"""The release in which a fault came, or went: found by trying releases in the middle, both ends first."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil, log2
from pathlib import Path

from hookcheck.errors import HookcheckError
from hookcheck.repro.verify import HOLDS, SHOWS, SKIP, Verdict

Try = Callable[[str], Verdict]


@dataclass
class Memory:
    """The verdicts so far, in a file beside the script, so that a search that was cut off goes on."""

    path: Path
    script: str
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    @classmethod
    def of(cls, script: Path) -> Memory:
        """The memory of a script: empty where it has changed since."""
        path = script.with_name(f"{script.stem}.bisect.json")
        digest = hashlib.sha256(script.read_bytes()).hexdigest()
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            known = content["verdicts"] if content["script"] == digest else {}
            return cls(path, digest, {torch: Verdict(**verdict) for torch, verdict in known.items()})
        except (OSError, ValueError, KeyError, TypeError):
            return cls(path, digest)

    def add(self, verdict: Verdict) -> None:
        """Writes a verdict down, unless the folder cannot be written: the search goes on without that."""
        self.verdicts[verdict.torch] = verdict
        content = {"script": self.script, "verdicts": {torch: asdict(v) for torch, v in self.verdicts.items()}}
        with contextlib.suppress(OSError):
            self.path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Bisection:
    """Between which neighbours the verdict changes: ``before`` and ``after``; ``skipped`` lie between them.

    ``first`` and ``last`` are the ends of the search, and ``verdicts`` all that was tried.
    """

    before: Verdict
    after: Verdict
    skipped: tuple[Verdict, ...]
    first: str
    last: str

    @property
    def specifier(self) -> str:
        """The releases on which the fault shows, of those that were searched, as a version specifier."""
        if self.after.verdict == SHOWS:
            return f">={self.after.torch},<={self.last}"
        return f">={self.first},<={self.before.torch}"

    def text(self) -> str:
        """The answer as a paragraph, to be pasted into an issue."""
        came = self.after.verdict == SHOWS
        if came:
            text = (
                f"The first torch on which the fault shows is {self.after.torch}; {self.before.torch} is as documented."
            )
        else:
            text = (
                f"The last torch on which the fault shows is {self.before.torch}; {self.after.torch} is as documented."
            )
        if self.skipped:
            why = "; ".join(f"{verdict.torch} ({verdict.why})" for verdict in self.skipped)
            text += f" It may be one of those between them, of which nothing can be said: {why}."
        return f"{text} Of the releases from {self.first} to {self.last} it concerns torch {self.specifier}."


def bisect(
    versions: Sequence[str],
    attempt: Try,
    memory: Memory,
    say: Callable[[Verdict, int], None],
    named: bool = False,
    find_fix: bool = False,
    present: str = "",
) -> Bisection:
    """Where in ``versions`` (the oldest first) the fault came, or with ``find_fix`` went.

    Both ends are tried first; a skip at an end moves it inwards, unless the ends are ``named``. ``say`` is called with
    each verdict and the number of steps that are left at most. A release that is ``present``, which costs no
    environment, is tried before all others: a script that crashes there and at an end in the same way is at fault
    itself.

    Raises:
        HookcheckError: both ends say the same, one says nothing, or they are the other way round; or it crashes so.
    """

    def verdict(version: str, left: int) -> Verdict:
        result = memory.verdicts.get(version)
        if result is None:
            result = attempt(version)
            memory.add(result)
        say(result, left)
        return result

    known = verdict(present, _steps(versions)) if present in versions and not named else None
    crash = known if known is not None and known.crashed else None
    low, high = (_end(order, verdict, named, crash) for order in (versions, versions[::-1]))
    if versions.index(low.torch) >= versions.index(high.torch):
        raise HookcheckError("only one release can say anything: give --good and --bad, or more releases")
    if low.verdict == high.verdict:
        word = "shows on both" if low.verdict == SHOWS else "shows on neither"
        raise HookcheckError(
            f"there is nothing to search for: the fault {word} {low.torch} and {high.torch}; give other ends"
        )
    if find_fix is (high.verdict == SHOWS):
        ends = f"the fault shows on {{}} and not on {{}}: {'without' if find_fix else 'with'} --find-fix"
        raise HookcheckError(
            f"{ends.format(high.torch, low.torch)} the release in which it came is searched"
            if find_fix
            else f"{ends.format(low.torch, high.torch)} the release that mended it is searched"
        )
    first, last = low.torch, high.torch
    skipped: dict[str, Verdict] = {}
    while True:
        between = versions[versions.index(low.torch) + 1 : versions.index(high.torch)]
        left = [version for version in between if version not in skipped]
        if not left:
            return Bisection(low, high, tuple(skipped[version] for version in between), first, last)
        middle = left[len(left) // 2]
        middle_verdict = verdict(middle, ceil(log2(len(left) + 1)) - 1)
        if middle_verdict.verdict == SKIP:
            skipped[middle] = middle_verdict
        elif middle_verdict.verdict == low.verdict:
            low = middle_verdict
        else:
            high = middle_verdict


def _steps(versions: Sequence[str]) -> int:
    """How many steps a search takes at most, once both ends are known."""
    return ceil(log2(max(2, len(versions) - 1)))


def _end(
    versions: Sequence[str], verdict: Callable[[str, int], Verdict], named: bool, crash: Verdict | None
) -> Verdict:
    """The first of ``versions`` that says something, where that does not ``crash`` as the torch at hand does."""
    for version in versions:
        end = verdict(version, _steps(versions))
        if end.verdict in (SHOWS, HOLDS):
            return end
        if crash is not None and version != crash.torch and end.why == crash.why:
            raise HookcheckError(
                f"the script crashes on torch {version} in the same way as on torch {crash.torch}, which is at hand "
                f"({crash.why}): mend it, or name both ends with --good and --bad"
            )
        if named:
            raise HookcheckError(f"torch {version} cannot be an end, since nothing can be said of it: {end.why}")
    raise HookcheckError("no release can say anything: see what is skipped, and why")
