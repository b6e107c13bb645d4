"""What can be asked of hookcheck on the command line? Each command prints for people, or as JSON for programs.

Nothing here imports torch before a command needs it, so all but ``run`` work without it; and what only some commands
need is imported by them, so that the others start fast.
"""

from hookcheck.cli import check, diff, found, lists, scan  # noqa: F401 -- declare the commands
from hookcheck.cli.frame import main as main
