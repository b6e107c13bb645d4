# /// script
# dependencies = ["torch"]
# ///
"""A hook of a module that was pickled in another process is replaced by one registered here."""
# https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html

import os
import subprocess
import sys
import tempfile

import torch
from torch import nn

log = []


def restored(*args):
    log.append("restored")


if len(sys.argv) > 1:
    net = nn.Identity()
    for _ in range(3):
        handle = net.register_forward_hook(restored)
        handle.remove()
    net.register_forward_hook(restored)
    torch.save(net, sys.argv[1])
    raise SystemExit

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "net.pt")
    subprocess.run([sys.executable, __file__, path], check=True)
    try:
        net = torch.load(path, weights_only=False)
    except TypeError:
        net = torch.load(path)
net(torch.ones(1))
control, log[:] = list(log), []
for number in range(6):
    net.register_forward_hook(lambda *args, number=number: log.append(number))
net(torch.ones(1))
print("control:   ", control)
print("experiment:", log)
# 0: as documented, 1: the fault shows, 2: the control fails
raise SystemExit(2 if control != ["restored"] else 0 if log == ["restored", *range(6)] else 1)
