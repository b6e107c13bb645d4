"""Why is what hooks see of registering not so on every host? Hosts register parts themselves, or are other modules.

A pattern is that of a clause, or of one of its facts (see `hookcheck.programs.host_kinds.Kind`).
"""

from __future__ import annotations

ANOTHER_MODULE = dict.fromkeys(
    (
        *("RG-01: parameters of a Linear", "RG-01: the very parameter", "RG-01: names where there is no parameter"),
        "RG-03: children of a Sequential",
    ),
    "it is another module than the one that a program makes, which is what registers there; some register it all anew",
)
"""Of a host that is not the module itself."""

COPIED = {**ANOTHER_MODULE, "RG-06": "a copy has copies of the parameters that a hook returned"}

COMPUTED_WEIGHT = {
    "RG-01": "a weight that is computed is registered anew, by other names and after the bias",
    "RG-06": "a weight that is computed is no parameter that a hook could return",
}

UNDONE = dict.fromkeys(
    ("RG-01", "RG-06: names"), "a weight that was computed was registered by another name, and then after the bias"
)

LAZY = {**ANOTHER_MODULE, "RG-06": "the hook makes a parameter of the one that it gets, which has no numbers there yet"}

BUFFERS = ("RG-02", "RG-04: * for a buffer")
"""What does not hold where a host registers buffers while it is made."""

PARTS_OF_ITS_OWN = dict.fromkeys(
    (
        *("RG-01: what is no parameter", "RG-01: names of what is *", "RG-01: parameters under hooks *"),
        *("RG-02: what is no buffer", "RG-02: names *", "RG-03: submodules under hooks *", "RG-04: *"),
    ),
    "what is made here registers parts of its own",
)

SCRIPTED = dict.fromkeys(
    ("RG-0[1235]", "PH-0[67]", "SZ-25", "SZ-26", "SZ-31"),
    "a ScriptModule takes no new parameters and modules once it is made, and says so",
)

OPTIMIZED = {
    "RG-0[1235]": "what is assigned to an OptimizedModule goes to the module in it, what is registered to the wrapper"
}
