"""What all tests share: one thread of torch, no limit on how long an example takes, and samples of long proofs."""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import count

import pytest
from hypothesis import HealthCheck, settings

# pytest-xdist runs a process for each core: threads of torch beside it wait for each other in a loop. OpenMP reads this
# once, as torch is imported, here and in each process that a test starts.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="run all cases of the proofs that are sampled otherwise")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of each test and each `one_in` the first of every ``n`` cases stays; what is asked for by ``-k`` stays."""
    if config.getoption("whole") or config.getoption("keyword"):
        return
    places: dict[tuple[str, int], count[int]] = defaultdict(count)
    stay, left_out = [], []
    for item in items:
        mark = item.get_closest_marker("one_in")
        is_left_out = mark and next(places[item.nodeid.partition("[")[0], mark.args[0]]) % mark.args[0]
        (left_out if is_left_out else stay).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = stay
