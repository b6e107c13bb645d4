# /// script
# dependencies = ["torch"]
# ///
"""With two backwards of one graph at once a full backward hook gets gradients of the other."""
# https://docs.pytorch.org/docs/stable/notes/autograd.html#multithreaded-autograd

from threading import Barrier, Thread

import torch
from torch import nn

if not hasattr(nn.Module, "register_full_backward_hook"):
    raise SystemExit(3)

both = Barrier(2, timeout=20)


def meet(grad):
    both.wait()


class Net(nn.Module):
    def forward(self, x):
        y = 3 * x
        y.register_hook(meet)
        return 1 * y


log = []
net = Net()
net.register_full_backward_hook(lambda module, gi, go: log.append((gi[0].item(), go[0].item())))
x = torch.tensor(1.0, requires_grad=True)
y = net(x)
gradients = []


def run(scale):
    gradients.append(torch.autograd.grad(scale * y, x, retain_graph=True)[0].item())


threads = [Thread(target=run, args=(scale,)) for scale in (1, 10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("gradients of x:", sorted(gradients))
print("grad_input and grad_output of each call:", sorted(log))
if sorted(gradients) != [3, 30]:
    raise SystemExit(2)  # the control fails
raise SystemExit(0 if sorted(log) == [(3, 1), (30, 10)] else 1)
