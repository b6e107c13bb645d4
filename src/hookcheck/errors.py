"""Which errors are the user's to mend: faults of the input, each naming what to do.

The command line and the pytest plugin print these in one line. Every other exception is a fault of hookcheck itself
and is never caught or softened.
"""


class HookcheckError(Exception):
    """The input is at fault; the message says what is wrong and what to do about it."""


def is_the_machines(error: BaseException) -> bool:
    """Whether an exception is the machine's, and no answer of what was run: no memory is left, or a CUDA device has
    failed, after which nothing that the process computes on it can be trusted."""
    said = str(error)
    return (
        isinstance(error, MemoryError)
        or "DefaultCPUAllocator: " in said
        or "CUDA error: " in said
        or device_is_full(error)
    )


def device_is_full(error: BaseException) -> bool:
    """Whether an exception says that a CUDA device has no memory left; the device works on."""
    return "CUDA out of memory" in str(error)
