"""The command line: one module a command. Each prints for people, or as JSON for programs.

Nothing here imports torch before a command needs it, so all but ``run`` work without it; and what only some commands
need is imported by them, so that the others start fast.
"""

from hookcheck.cli import (  # noqa: F401 -- declare the commands
    badge,
    bisect,
    check,
    claims,
    completion,
    coverage,
    diff,
    doctor,
    explain,
    families,
    kill_matrix,
    layers,
    list,
    matrix,
    merge,
    releases,
    report,
    repro,
    run,
    scan,
    summary,
    support,
    upgrade,
    validate,
    verify,
)
from hookcheck.cli.frame import main as main
