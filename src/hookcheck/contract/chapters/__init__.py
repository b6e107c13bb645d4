"""The chapters of the contract. Importing this package declares every clause, in the order in which reports list them."""

from hookcheck.contract.chapters import firing, gradients, observers  # noqa: F401
