"""Guards against faults of hooks in anyone's tests: a pytest plugin, loaded by every run where hookcheck is installed.

It imports neither torch nor the rest of hookcheck until a fixture of it is used: it must cost other suites nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

GUARD = "hookcheck_guard"


class _Guard:
    """What is registered where every test of a suite is guarded."""

    @pytest.fixture(autouse=True)
    def _hookcheck_guard(self, no_hooks_left: Any) -> None:
        """Has every test end with the hooks that it began with."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option and the setting that guard a whole suite."""
    text = "fail every test that leaves a hook of torch behind, saying on what and where it was registered"
    parser.getgroup("hookcheck").addoption("--hookcheck-guard", action="store_true", default=None, help=text)
    parser.addini(GUARD, text, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Guards the suite where that was asked for."""
    if config.getoption(GUARD) or config.getini(GUARD):
        config.pluginmanager.register(_Guard(), "hookcheck-guard")


@pytest.fixture
def no_hooks_left() -> Iterator[Callable[[], None]]:
    """Fails at the end of the test if there are hooks that were not there when it began.

    That is at teardown, when what the test held in its variables is gone: a model that is gone leaves nothing. Called
    in the test itself (``no_hooks_left()``), it looks at once.
    """
    from hookcheck.models.leftovers import watched

    with watched() as news:

        def check() -> None:
            __tracebackhide__ = True
            left = news()
            if left:
                count = "a hook was left" if len(left) == 1 else f"{len(left)} hooks were left"
                pytest.fail("\n  ".join([f"{count}:", *map(str, left)]), pytrace=False)

        yield check
        check()


@pytest.fixture
def assert_fires() -> Callable[..., Any]:
    """``with assert_fires(model, kind, times=, order=): …``; see `hookcheck.models.firing.assert_fires`."""
    from hookcheck.models import firing

    return firing.assert_fires


@pytest.fixture
def same_under() -> Callable[..., Any]:
    """``same_under(contexts)(function, *args)``; see `hookcheck.models.same_under.same_under`."""
    from hookcheck.models import same_under as module

    return module.same_under
