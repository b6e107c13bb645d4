"""Every clause of the contract: importing this module declares them all, in the order of the reports."""

from hookcheck.programs import chapters as _programs  # noqa: F401

from hookcheck.networks.chapters import chains, firing, forward, gradients, observers, places, tensors  # noqa: F401  # isort: skip
