"""A torch as somebody has it who changed module hooks and built from source: the change is made in memory.

The developer thought that what is no tensor needs no place in ``grad_input``.
"""

import torch
from torch.utils import hooks

hooks.BackwardHook._pack_with_none = lambda self, indices, values, size: tuple(values) or (None,) * size
torch.__version__ = "2.16.0a0+gitc0ffee1"
