"""A CUDA device on which fake tensors run, and what hooks see there."""
