"""Any data that the model can hold, whether or not it could run."""

from __future__ import annotations

from hypothesis import strategies as st

from hookcheck.topology.contexts import CALLERS, MANAGERS
from hookcheck.topology.layers.activation import ReLU, Sigmoid, Tanh
from hookcheck.topology.layers.convolution import Conv2d
from hookcheck.topology.layers.linear import Linear
from hookcheck.topology.layers.structure import Flatten
from hookcheck.topology.model import (
    Apply,
    Backward,
    Call,
    Composite,
    Grad,
    Input,
    Leak,
    Module,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Recurse,
    Sequential,
    Statement,
    Topology,
    Train,
    Within,
)
from hookcheck.topology.needs import DTYPES
from hookcheck.topology.ops import Add, Mean, Mul, Sum
from hookcheck.topology.tree import Literal, Pack, Ref, Tree
from hookcheck.topology.values import DOMAINS

NAMES = st.sampled_from(["x", "y", "h0", "leaked"])
REFS = st.builds(Ref, NAMES, st.lists(st.one_of(st.integers(-3, 9), st.text(max_size=3)), max_size=2).map(tuple))
LITERALS = st.builds(
    Literal,
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
)


def _packs(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Pack]:
    items = st.lists(trees, max_size=3).map(tuple)
    pairs = st.lists(st.tuples(st.text(max_size=2), trees), max_size=3)
    keyed = st.builds(
        lambda kind, pairs: Pack(kind, tuple(tree for _, tree in pairs), tuple(key for key, _ in pairs)),
        st.sampled_from(["dict", "namedtuple", "dataclass"]),
        pairs,
    )
    return st.one_of(st.builds(Pack, st.sampled_from(["tuple", "list"]), items), keyed)


TREES: st.SearchStrategy[Tree] = st.recursive(st.one_of(REFS, LITERALS), _packs, max_leaves=4)
FEW_TREES, FEW_REFS = st.lists(TREES, max_size=2).map(tuple), st.lists(REFS, max_size=2).map(tuple)
STATEMENTS: st.SearchStrategy[Statement] = st.recursive(
    st.one_of(
        st.builds(
            Call,
            NAMES,
            NAMES,
            FEW_TREES,
            st.lists(st.tuples(NAMES, TREES), max_size=2).map(tuple),
            st.sampled_from(["", *CALLERS]),
        ),
        st.builds(Apply, NAMES, st.sampled_from([Add(), Mul(), Sum(), Mean()]), FEW_REFS),
        st.builds(Leak, NAMES, REFS),
        st.builds(Recurse, NAMES, REFS, NAMES),
        st.builds(Train, NAMES, st.booleans()),
        st.builds(Backward, FEW_REFS, FEW_REFS, FEW_REFS, st.booleans(), st.booleans()),
        st.builds(
            Grad,
            NAMES,
            FEW_REFS,
            FEW_REFS,
            FEW_REFS,
            st.booleans(),
            st.booleans(),
            st.sampled_from(["", "is_grads_batched"]),
        ),
    ),
    lambda inner: st.builds(
        Within,
        st.sampled_from(sorted(MANAGERS)),
        st.lists(inner, max_size=2).map(tuple),
    ),
    max_leaves=3,
)
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
BODIES = st.lists(STATEMENTS, max_size=3).map(tuple)
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
MODULES: st.SearchStrategy[Module] = st.recursive(
    st.one_of(
        st.builds(Linear, st.integers(1, 3), st.integers(1, 3), st.booleans()),
        st.builds(
            Conv2d, st.integers(1, 3), st.integers(1, 3), PAIRS, PAIRS, PAIRS, PAIRS, st.integers(1, 2), st.booleans()
        ),
        st.sampled_from([Sigmoid(), Tanh(), ReLU(), Flatten()]),
        st.builds(ParameterList, st.lists(SHAPES, max_size=2).map(tuple)),
        st.builds(ParameterDict, st.lists(st.tuples(NAMES, SHAPES), max_size=2).map(tuple)),
    ),
    lambda inner: st.one_of(
        st.builds(Sequential, st.lists(inner, max_size=2).map(tuple)),
        st.builds(ModuleList, st.lists(inner, max_size=2).map(tuple)),
        st.builds(ModuleDict, st.lists(st.tuples(NAMES, inner), max_size=2).map(tuple)),
        st.builds(
            Composite,
            st.lists(st.tuples(NAMES, inner), max_size=2).map(tuple),
            st.lists(NAMES, max_size=2).map(tuple),
            BODIES,
            TREES,
            st.lists(NAMES, max_size=2).map(tuple),
            st.lists(st.tuples(NAMES, SHAPES), max_size=2).map(tuple),
        ),
    ),
    max_leaves=3,
)
INPUTS = st.builds(
    Input,
    NAMES,
    SHAPES,
    st.booleans(),
    st.sampled_from(sorted(DOMAINS)),
    st.integers(0, 9),
    st.sampled_from(["", *DTYPES]),
)
TOPOLOGIES = st.builds(
    Topology,
    MODULES,
    st.lists(INPUTS, max_size=2).map(tuple),
    BODIES,
    st.booleans(),
    st.sampled_from(sorted(DTYPES)),
    st.sampled_from(["any", "cpu", "cuda"]),
    st.integers(0, 2**32 - 1),
    st.lists(NAMES, max_size=2).map(tuple),
    st.lists(st.tuples(NAMES, NAMES), max_size=2).map(tuple),
)
