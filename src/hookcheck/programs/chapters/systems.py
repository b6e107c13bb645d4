"""Do whole programs see what is right through their hooks? Six worked ones, of the kind that people write.

The other chapters judge hooks one promise at a time. This one runs the programs in ``hookcheck.programs.systems`` as
they stand, and holds every number that their hooks record or change, and every ``.grad``, to hand-written formulas.
"""

from __future__ import annotations

from importlib import import_module

from hookcheck.contract.clause import CLAIM
from hookcheck.programs.check import Check
from hookcheck.programs.program import program

CAPTURE = "PyTorch tutorials and tools that collect attention and its gradients by hooks"
LAYERS = "torch.nn.Module.register_forward_hook, and tutorials that look into convolutional nets by it"


@program(
    "SYS-01", CLAIM, since="1.7", source="PyTorch tutorials that follow back-propagation through two sigmoid layers"
)
def two_layer_sigmoid(check: Check) -> None:
    """Hook objects on every layer of a two-layer net record what is right in forward and in two backward passes; of a
    legacy hook on a Linear that is the last Node's gradients."""
    import_module("hookcheck.programs.systems.judging").two_layer_sigmoid(check)


@program("SYS-02", CLAIM, since="1.7", source=CAPTURE)
def attention_capture(check: Check) -> None:
    """A collector adds one output and one gradient of each module that it is on with every execution; with legacy hooks
    on a Linear the gradient is the bias's."""
    import_module("hookcheck.programs.systems.judging").attention_capture(check)


@program("SYS-03", CLAIM, since="1.7", source="torch.Tensor.register_hook, and tutorials that clip gradients by it")
def gradient_clipper(check: Check) -> None:
    """Hooks on parameters clamp the gradient of each backward, summed over a parameter's uses, before it is added to
    ``.grad``."""
    import_module("hookcheck.programs.systems.judging").gradient_clipper(check)


@program("SYS-04", CLAIM, since="1.7", source=LAYERS)
def shape_inspector(check: Check) -> None:
    """Forward hooks on all layers print the shape of each output, in the order of the calls, and change nothing."""
    import_module("hookcheck.programs.systems.judging").shape_inspector(check)


@program("SYS-05", CLAIM, since="1.7", source=LAYERS)
def feature_maps(check: Check) -> None:
    """Forward hooks keep the outputs of chosen layers, which are the net's own tensors: gradients go through them, and
    writes reach them."""
    import_module("hookcheck.programs.systems.judging").feature_maps(check)


@program("SYS-06", CLAIM, since="1.7", source=LAYERS)
def hooked_dropout(check: Check) -> None:
    """Forward hooks on the convolutions of a VGG16 drop channels out in evaluation mode, gradients follow the masks,
    and without the hooks the net is as it was."""
    import_module("hookcheck.programs.systems.judging").hooked_dropout(check)
