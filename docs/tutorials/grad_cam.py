"""What a Grad-CAM library does with hooks, in short."""

import torch


class GradCam:
    def __init__(self, layer: torch.nn.Module) -> None:
        self.handle = layer.register_forward_hook(self._keep)

    def _keep(self, module, args, output):
        self.activations = output.detach()
        output.register_hook(self._keep_gradients)

    def _keep_gradients(self, gradient):
        self.gradients = gradient.detach()


def watch_gradients(net: torch.nn.Module, log: list):
    return [child.register_full_backward_hook(lambda m, gi, go: log.append(go[0].norm())) for child in net.children()]
