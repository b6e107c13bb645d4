"""What all tests share: how long an example takes is the affair of the machine, and of what else runs on it."""

from hypothesis import HealthCheck, settings

settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
