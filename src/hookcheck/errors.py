"""Which errors are the user's to mend: faults of the input, each naming what to do.

The command line and the pytest plugin print these in one line. Every other exception is a fault of hookcheck itself
and is never caught or softened.
"""


class HookcheckError(Exception):
    """The input is at fault; the message says what is wrong and what to do about it."""


def exhausted(error: BaseException) -> bool:
    """Whether an exception says that there is no memory left, as Python or torch does: it is the machine's, and no
    answer of what was run."""
    return isinstance(error, MemoryError) or "DefaultCPUAllocator: " in str(error)
