"""hookcheck: a conformance and regression suite for PyTorch's hooks."""

__version__ = "0.1.0"
