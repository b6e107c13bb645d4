"""How is a CUDA device made to compute as exactly as the processor, and what is it called in a record?

Convolutions on CUDA multiply in TF32 unless told otherwise (https://docs.pytorch.org/docs/stable/notes/cuda.html), with
10 bits of mantissa of float32's 23; and cuDNN chooses among kernels that sum in orders of their own.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from unittest import mock

import torch
from torch.utils import collect_env

WORKSPACE = ":4096:8"
"""What cuBLAS needs to sum in one order (https://docs.nvidia.com/cuda/cublas/#results-reproducibility)."""


REDUCED = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction")
"""What lets products of 16-bit numbers be summed in 16 bits, which the table of tolerances does not allow for."""


def compute_exactly() -> None:
    """From here on float32 is multiplied as float32, and each kernel sums in one order, as far as torch lets it.

    A build without CUDA has the same settings, which concern nothing there.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", WORKSPACE)  # read when a device is first used
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch 2.9 has other names for these, and still takes the old ones
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        for name in REDUCED:
            with suppress(AttributeError, AssertionError):  # where torch has no such setting, up to 1.9 the latter
                setattr(torch.backends.cuda.matmul, name, False)


def ordered_on(device: str) -> AbstractContextManager[None]:
    """On a CUDA device what is inside takes kernels that sum in one order, where there are such, and runs on a stream
    of its own: hooks in backward, which the device's own thread calls, are then seen to get back to it. Threads that
    are started inside are on that stream as well: on one of their own they would read what is not yet written."""
    return nullcontext() if device == "cpu" else _ordered_on_cuda()


@contextmanager
def _ordered_on_cuda() -> Iterator[None]:
    before, stream = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(before)
    with _deterministic(), torch.cuda.stream(stream), in_threads_too(stream):
        yield
    before.wait_stream(stream)


def in_threads_too(stream: torch.cuda.Stream) -> AbstractContextManager[object]:
    """Threads of Python's that are started inside are on ``stream``."""
    run = threading.Thread.run

    def on_the_stream(thread: threading.Thread) -> None:
        with torch.cuda.stream(stream):
            run(thread)

    return mock.patch.object(threading.Thread, "run", on_the_stream)


def _can_warn() -> bool:
    return hasattr(torch, "is_deterministic_algorithms_warn_only_enabled")


@contextmanager
def _deterministic() -> Iterator[None]:
    """Takes the deterministic kernels; up to 1.10 torch cannot do so without raising where there is none."""
    if not _can_warn():
        yield
        return
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def current_stream(device: str) -> Callable[[], int]:
    """What says which stream is current: a number of CUDA's, or 0 on a CPU."""
    return no_stream if device == "cpu" else _cuda_stream


def no_stream() -> int:
    """A CPU has none."""
    return 0


def _cuda_stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)


BROUGHT = ("does not have a deterministic implementation", "there was no current CUDA context")
"""What warnings say that the setting brings for kernels that sum in one order, and the first use of cuBLAS in the
device's own thread: no hook has to do with them."""


def settle() -> None:
    """Has the device's own thread let go of the latest backward, of which it keeps all until it takes up the next."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        with torch.enable_grad():
            leaf = torch.zeros((), device="cuda", requires_grad=True)
            torch.autograd.grad(leaf.clone(), leaf)


def seed(device: str) -> None:
    """Begins the random numbers of the device anew; the processor's are not touched."""
    if device != "cpu":
        torch.cuda.manual_seed_all(0)


def random_state(device: str) -> bytes:
    """The state of the random numbers that operations on ``device`` draw from."""
    if device == "cpu":
        return torch.default_generator.get_state().numpy().tobytes()
    return torch.default_generator.get_state().numpy().tobytes() + torch.cuda.get_rng_state().numpy().tobytes()


def accelerator() -> dict[str, str]:
    """What a record's header says of the device, each as text; nothing where torch can use none.

    ``gpu``: its name and compute capability; ``driver`` and ``cudnn``: their versions; ``tf32``: whether float32 is
    multiplied in it; ``deterministic``: whether kernels that sum in one order are taken, where there are such;
    ``cublas``: what cuBLAS is told to do so.
    """
    if not torch.cuda.is_available():
        return {}
    major, minor = torch.cuda.get_device_capability()
    return {
        "gpu": f"{torch.cuda.get_device_name()}, compute capability {major}.{minor}",
        "driver": collect_env.get_nvidia_driver_version(collect_env.run) or "unknown",  # type: ignore[no-untyped-call]
        "cudnn": str(torch.backends.cudnn.version() or "none"),  # type: ignore[no-untyped-call]
        "tf32": "on" if torch.backends.cudnn.allow_tf32 else "off",
        "deterministic": "where there are such" if _can_warn() else "off",
        "cublas": os.environ.get("CUBLAS_WORKSPACE_CONFIG", "default"),
    }
