"""What all tests share: one thread of torch, and no limit on how long an example takes, since machines differ."""

import os

from hypothesis import HealthCheck, settings

# pytest-xdist runs a process for each core: threads of torch beside it wait for each other in a loop. OpenMP reads this
# once, as torch is imported, here and in each process that a test starts.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
