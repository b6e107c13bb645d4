"""The chapters of the contract. Importing this package declares every clause, in the order of the reports."""

from hookcheck.contract import programs  # noqa: F401
from hookcheck.contract.chapters import chains, firing, forward, gradients, observers, tensors  # noqa: F401
