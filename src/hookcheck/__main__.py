"""How is hookcheck started? By its script, or by ``python -m hookcheck`` where that is not on the path."""

import os
import signal
import sys

from hookcheck.cli import main
from hookcheck.cli.streams import keep_writing


def run() -> None:
    """The command line; the process ends with its exit code.

    Whoever ends it by a signal interrupts it, as Ctrl-C does: environments of some gigabytes are removed then.
    A process that has gone backward with torch 1.7 or 1.8 may crash or hang where Python puts things away.
    """
    keep_writing()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main(prog_name="hookcheck")
    except SystemExit as ended:
        torch = sys.modules.get("torch")
        if torch is None or not str(torch.__version__).startswith(("1.7.", "1.8.")):
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else ended.code is not None)


if __name__ == "__main__":
    run()
