"""Why is what becomes of hooks in copies and pickles not so on every host? Some cannot be copied, some go without.

A pattern is as in `hookcheck.programs.host_registering`.
"""

from __future__ import annotations

HOOKS_OF_COPIES = ("SZ-2[0123]", "U-13", "SZ-0[134567]", "SZ-11", "SZ-27", "SZ-31")
"""What says that a copy, or what comes from a pickle, has the hooks of the original."""

PICKLED = ("SZ-0[134567]", "SZ-1[013]", "SZ-27", "SZ-31")
"""What pickles a module."""

COMPUTING = ("SZ-25", "SZ-26", "SZ-31")
"""What has the weight of a module computed."""

NO_PARAMETER = {
    **dict.fromkeys(
        ("U-13", "SZ-12", "SZ-13", "SZ-24", "SZ-30", "EX-0[1456]", "EX-10: program"),
        "its weight is computed or packed, and is no parameter",
    ),
    **dict.fromkeys(COMPUTING, "its weight is computed or packed already"),
    **dict.fromkeys(("parameter-hooks", "SV-01"), "its weight is computed or packed, and is no parameter"),
}

NO_DEEPCOPY = dict.fromkeys(
    ("SZ-2[01]", "SZ-0[1567]: program", "SZ-11: program"),
    "a weight that a pre-hook computed cannot be copied with deepcopy, as SZ-25 and SZ-26 say",
)
"""Of the clauses of which it is the end that is left out, it is a pickle that comes first."""

LOADED = ("SZ-2[013]", "SZ-0[125]")
"""What loads a module's state, after a backward."""

BACKWARD = (*LOADED, "SZ-08")
"""What runs a backward."""

LOADED_BY_NAME = ("PH-03", "PH-06", "PH-08", "U-14")
"""What loads a state that has a weight alone."""

NO_LOADING = dict.fromkeys(
    (*LOADED, *LOADED_BY_NAME, "PH-11", "SD-20: program", "SV-01"),
    "remove_spectral_norm leaves a hook behind by which loading fails, as clauses on state dicts show",
)
