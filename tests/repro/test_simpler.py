"""Is a script made simpler without saying anything else? Each rule on a text of a few lines."""

from __future__ import annotations

import pytest

from hookcheck.repro.cutting import cut, dropped
from hookcheck.repro.editing import quoted
from hookcheck.repro.entries import entry, keyed, unfilled
from hookcheck.repro.fields import attribute_put_in, hoisted, idle, imported, unguarded, unpacked, unread
from hookcheck.repro.folding import folded
from hookcheck.repro.names import put_in
from hookcheck.repro.opening import left_open
from hookcheck.repro.parameters import specialised, spread, undefaulted
from hookcheck.repro.placing import defined_ahead, placed, thunk
from hookcheck.repro.simpler import Rule, simpler
from hookcheck.repro.turns import one_turn, unrolled
from hookcheck.repro.unstated import done, unnoted
from hookcheck.repro.yielding import yielded

GROUP = "dist.init_process_group()"

MANAGED = "@contextmanager\ndef f():\n    a = list(b)\n    try:\n        yield b\n    finally:\n        h(a)\n\n\n"
OPEN = "def f():\n    return b\n\n\nx = f()\ng(x)"


def folded_since(text: str) -> str | None:
    return folded(text, "1.8")


CASES: dict[str, tuple[Rule, str, str | None]] = {
    "a literal": (put_in, "n = 3\nf(n)", "f(3)"),
    "a part of a module": (put_in, "make = copy.deepcopy\nf(make(a))", "f(copy.deepcopy(a))"),
    "a part of something else": (put_in, "make = b.deepcopy\nf(make(a))", None),
    "what a loop changes": (put_in, "n = 3\nfor _ in x:\n    n = f(n)", None),
    "a list that is filled": (put_in, "log = [1]\nlog.append(2)\nf(log)", None),
    "what the next condition asks": (put_in, "n = f(a)\nif n < 3:\n    g()", "if f(a) < 3:\n    g()"),
    "what a later condition asks": (put_in, "n = f(a)\ng()\nif n < 3:\n    g()", None),
    "what the next statement calls": (put_in, "g = a.b\ng(c)", "a.b(c)"),
    "what a later statement calls": (put_in, "g = a.b\nf()\ng(c)", None),
    "options of the next call": (put_in, 'o = {"a": f()}\ng(b, **o)', 'g(b, **{"a": f()})'),
    "options behind another call": (put_in, 'o = {"a": f()}\ng(h(), **o)', None),
    "what the next statement enters": (put_in, "h = f(a)\nwith h as b:\n    g()", "with f(a) as b:\n    g()"),
    "what holds something where that is asked": (put_in, "h = f(a)\nwith h:\n    g()\n    gc.collect()", None),
    "a part that is called later": (put_in, "n = partial(f, 1)\ng()\nn(a)", "g()\npartial(f, 1)(a)"),
    "a part that is called in a loop": (put_in, "n = partial(f, 1)\nfor a in b:\n    n(a)", None),
    "what modules of all releases have": (
        folded_since,
        'if hasattr(m, "register_forward_hook"):\n    f()',
        "if True:\n    f()",
    ),
    "what the class of all modules has": (
        folded_since,
        'if hasattr(nn.Module, "register_forward_hook"):\n    f()',
        "if True:\n    f()",
    ),
    "arguments that are listed": (folded_since, "a.f(*(0, 1), c)", "a.f(0, 1, c)"),
    "a list that is asked for": (folded_since, "a = [b]\nif a is not None:\n    f(a)", "a = [b]\nif True:\n    f(a)"),
    "a text that is asked for": (folded_since, 'if "a" is not None:\n    f()', "if True:\n    f()"),
    "a list that may be None": (folded_since, "a = [b]\nif c:\n    a = None\nif a is not None:\n    f(a)", None),
    "no arguments": (folded_since, "a.f(*())", "a.f()"),
    "arguments that are known to a run": (folded_since, "a.f(*b)", None),
    "what those of newer ones have": (folded_since, 'if hasattr(m, "register_full_backward_pre_hook"):\n    f()', None),
    "what they have in each turn": (
        folded_since,
        'for n in ("register_forward_pre_hook", "register_forward_hook"):\n    if hasattr(m, n):\n        f()',
        'for n in ("register_forward_pre_hook", "register_forward_hook"):\n    if True:\n        f()',
    ),
    "what they have in one turn": (
        folded_since,
        'for n in ("register_full_backward_pre_hook", "register_forward_hook"):\n    if hasattr(m, n):\n        f()',
        None,
    ),
    "a branch that is all of a function": (
        cut,
        "def f():\n    if False:\n        g()\n\n\nf()",
        "def f():\n    return None\n\n\nf()",
    ),
    "a branch": (cut, "if False:\n    f()\nelse:\n    g()", "g()"),
    "a branch ahead of another": (
        cut,
        "if False:\n    f()\nelif a:\n    g()\nelse:\n    h()",
        "if a:\n    g()\nelse:\n    h()",
    ),
    "a branch between two others": (
        cut,
        "if a:\n    f()\nelif False:\n    g()\nelif b:\n    h()",
        "if a:\n    f()\nelif b:\n    h()",
    ),
    "an unread name": (dropped, "n = None\nf()", "f()"),
    "an act that nobody reads": (dropped, "n = f()\ng()", "f()\ng()"),
    "what keeps something alive": (dropped, "n = f()\ngc.collect()", None),
    "attributes that nobody reads": (dropped, 'n = [*vars(a)["b"]]\nf()', "f()"),
    "a handle that nobody reads": (dropped, "h = a.register_hook(f)\ng()", "a.register_hook(f)\ng()"),
    "an item that nobody reads": (dropped, 'n = a["b"]\nf()', None),
    "a list of handles that nobody reads": (dropped, "h = [a(1), b(2)]\ng()", "a(1)\nb(2)\ng()"),
    "more of a list that nobody reads": (dropped, "h = [f]\nh += (b(2),)\ng()", "h = [f]\nb(2)\ng()"),
    "a log that nobody reads": (unnoted, "log = []\nlog.append(x[1])\ng()", "log = []\ng()"),
    "what is done for a log": (unnoted, "log = []\nf(lambda: log.append(g()))", "log = []\nf(lambda: g())"),
    "a log that is read": (unnoted, "log = []\nlog.append(1)\ng(log)", None),
    "a dict of pairs": (keyed, 'd = dict(zip(a, b))\nf(d["c"])', None),
    "an entry beside a function": (folded_since, '{"a": lambda: g(), "b": 2}["b"]', "2"),
    "what a function in it returns": (
        keyed,
        'def f():\n    def g():\n        return 1\n\n    return {"a": g}\n\n\nh(f()["a"])',
        'def f():\n    def g():\n        return 1\n\n    return {"a": g}["a"]\n\n\nh(f())',
    ),
    "an import by the name that it is given": (
        placed,
        "def f():\n    from a import b as c\n    return c\n\n\nd = f()\ng(d)",
        "from a import b as d\ng(d)",
    ),
    "a context that is left open": (left_open, MANAGED + "with f() as x:\n    g(x)", OPEN),
    "what acts after a context": (left_open, MANAGED + "with f() as x:\n    g(x)\nh()", None),
    "a parameter": (specialised, "def f(x, n):\n    return x + n\n\n\nf(a, 1)\nf(b, 1)", None),
    "a default": (undefaulted, "x = g()\n\n\ndef f(x=x):\n    return x\n\n\nh(f)", None),
    "a default in a loop": (undefaulted, "for x in y:\n    h(lambda x=x: x)", None),
    "keywords": (spread, "def f(a, **more):\n    return g(a, **more)\n\n\nf(1, b=2)", "g(1, b=2)"),
    "keywords of an act": (spread, "def f(a, **more):\n    g(a, **more)\n\n\nf(1, b=2)", "g(1, b=2)"),
    "an act that gives nothing": (spread, "def f(a, **more):\n    g(a, **more)\n\n\nx = f(1, b=2)", None),
    "statements": (placed, "def f(a):\n    g(a)\n    return h\n\n\nx = f(b)", "g(b)\nx = h"),
    "what is freed when a function ends": (placed, "def f():\n    x = g()\n\n\nf()\ngc.collect()", None),
    "what is freed with another function": (
        placed,
        "def f(a):\n    b = g(a)\n    return b, a\n\n\ndef h():\n    x = k()\n    b, c = f(x)\n\n\nh()\ngc.collect()",
        "def h():\n    x = k()\n    b = g(x)\n    c = x\n\n\nh()\ngc.collect()",
    ),
    "what that function asks for": (
        placed,
        "def f():\n    x = g()\n\n\ndef h():\n    y = k()\n    f()\n    gc.collect()\n\n\nh()\nk()",
        None,
    ),
    "a function that ends with the script": (
        placed,
        "def f():\n    def x():\n        g()\n\n    gc.collect()\n    h(x)\n\n\na = 1\nf()",
        "a = 1\n\ndef x():\n    g()\n\ngc.collect()\nh(x)",
    ),
    "what a function defines and frees": (
        placed,
        "def f():\n    def x():\n        g()\n\n    return weakref.ref(x)\n\n\na = f()\nh(a)",
        None,
    ),
    "statements that need keywords": (placed, "def f(**more):\n    g(more)\n\n\nf()", None),
    "the first argument of a call": (
        placed,
        "def f():\n    a = g()\n    h(a)\n    return a\n\n\nx = k(f(), 1)",
        "def f():\n    a = g()\n    h(a)\n    return a\n\n\na = f()\nx = k(a, 1)",
    ),
    "another argument of a call": (placed, "def f():\n    a = g()\n    return a\n\n\nx = k(h(), f())", None),
    "a context that goes on": (
        placed,
        "@contextmanager\ndef f(a):\n    try:\n        yield\n    except E:\n        a.g()\n    h(a)\n\n\n"
        "with f(b):\n    k()",
        "try:\n    k()\nexcept E:\n    b.g()\nh(b)",
    ),
    "a context in a loop": (
        placed,
        "@contextmanager\ndef f():\n    for _ in a:\n        yield\n\n\nwith f():\n    k()",
        None,
    ),
    "an early return": (placed, "def f(a):\n    if a:\n        return 1\n    return 2\n\n\nx = f(b)", None),
    "a generator": (yielded, "def f():\n    a = g()\n    yield a\n\n\nfor b in f():\n    h(b)", "a = g()\nb = a\nh(b)"),
    "a function": (thunk, "def f():\n    g(1)\n\n\nh(f)", "h(lambda: g(1))"),
    "a hook whose result may count": (thunk, "def f(x):\n    g(1)\n\n\nh(f)", None),
    "a hook with types that TorchScript reads": (thunk, "def f(x: Tensor):\n    return x + 1\n\n\nh(f)", None),
    "one turn": (unrolled, "for a, b in ((1, 2),):\n    f(a, b)", "a, b = 1, 2\nf(a, b)"),
    "one turn around others": (
        unrolled,
        "for a in (1,):\n    for b in c:\n        if b:\n            continue\n        f(a, b)",
        "a = 1\nfor b in c:\n    if b:\n        continue\n    f(a, b)",
    ),
    "one turn that goes on with the next": (unrolled, "for a in (1,):\n    if b:\n        continue\n    f(a)", None),
    "an entry": (unfilled, 'd = {"a": f(), "b": g()}\nh(d["a"])', 'd = {"a": f()}\nh(d["a"])'),
    "the entry": (unfilled, 'd = {"a": partial(f)}\nh(d["a"])', "h(partial(f))"),
    "the entry that is a dataclass": (
        unfilled,
        '@dataclass\nclass C:\n    a: int\n\n\nd = {"a": C(1)}\nh(d["a"])',
        "@dataclass\nclass C:\n    a: int\n\n\nh(C(1))",
    ),
    "the entry with a release": (
        unfilled,
        '@dataclass\nclass C:\n    since: object\n\n\nd = {"a": C((2, 1))}\nh(d["a"])',
        "@dataclass\nclass C:\n    since: object\n\n\nh(C((2, 1)))",
    ),
    "the entry that a call gives": (unfilled, 'd = {"a": f()}\ng()\nh(d["a"])', None),
    "a dict that is handed on": (unfilled, 'd = {"a": f(), "b": g()}\nh(d)', None),
    "a list that is only kept": (unread, "d = {}\nd[a] = b\nf()", "f()"),
    "options in options": (folded_since, 'f(1, **{**a, "b": c})', "f(1, **a, b=c)"),
    "options that are known": (lambda text: folded(text, "1.8"), 'f(1, **{"a": b}, c=d)', "f(1, a=b, c=d)"),
    "an act that the check calls": (folded_since, 'check.works("a", partial(f, b))', 'check.works("a", lambda: f(b))'),
    "what another fact says works": (lambda text: done(text, "b"), 'c = check.works("a", f)', "c = f()"),
    "what the fact itself says works": (lambda text: done(text, "a"), 'c = check.works("a", f)', None),
    "an act for later": (folded_since, 'check.true("a", partial(f, b))', None),
    "any part of a condition": (folded_since, "if a and True and b:\n    f()", "if a and b:\n    f()"),
    "the last part of a value": (folded_since, "c = a and True", None),
    "a part that decides": (folded_since, "if a or True:\n    f()", None),
    "a field that is asked for at once": (
        unpacked,
        "@dataclass\nclass C:\n    a: int\n    b: int = 2\n\n\nf(C(g).a)",
        "f(g)",
    ),
    "a list that is only filled": (unread, "d = []\nd.append(a)\nd.extend((a, b))\nf()", "None\nNone\nf()"),
    "a hook that only notes": (unread, "d = []\nf(lambda x: d.append(x))", "f(lambda x: None)"),
    "what is noted of an act": (unread, "d = []\nd.append((a, f(b)))\ng()", "f(b)\ng()"),
    "what a list keeps alive": (unread, "d = []\nd.append(f(b))\ng()", None),
    "whose lifetime counts": (unread, "d = []\nd.append(a)\nf(weakref.ref(a))", None),
    "what is noted of many acts": (unread, "d = []\nd.append([f(a) for a in b])\ng()", None),
    "a list that is read": (unread, "d = []\nd.append(a)\nf(d)", None),
    "what does nothing": (idle, "f = lambda: None\nf()\ng(f())", None),
    "calls of what does nothing": (idle, "f = lambda: None\nf()\ng()", "f = lambda: None\ng()"),
    "a statement that is None": (idle, "None\ng()", "g()"),
    "a context that undoes": (unguarded, "with restored():\n    f()", "f()"),
    "a context that does nothing": (unguarded, "with nullcontext():\n    f()", "f()"),
    "a context that gives something": (unguarded, "with nullcontext(a) as b:\n    f(b)", None),
    "a context that hushes": (
        unguarded,
        'with warnings.catch_warnings():\n    warnings.simplefilter("ignore")\n    f()',
        "f()",
    ),
    "a context that catches": (unguarded, "with warnings.catch_warnings(record=True) as w:\n    f()", None),
    "another context": (unguarded, "with torch.no_grad():\n    f()", None),
    "a function in a loop": (
        thunk,
        "for a in b:\n    def f(*_):\n        pass\n    h(f)",
        "for a in b:\n    h(lambda *_: None)",
    ),
    "a function of another turn": (thunk, "def f():\n    g(1)\n\n\nfor a in b:\n    h(f)", None),
    "an entry that is put in": (unfilled, 'd = {"a": f()}\nd["b"] = g()\nh(d["a"])', 'd = {"a": f()}\nh(d["a"])'),
    "entries that a loop over keys asks for": (
        unfilled,
        'd = {"a": f(), "b": g(), "c": h()}\nfor n in {"a": 1, "b": 2}:\n    k(d[n])',
        'd = {"a": f(), "b": g()}\nfor n in {"a": 1, "b": 2}:\n    k(d[n])',
    ),
    "entries that another dict may ask for": (unfilled, 'd = {"a": f()}\nfor n in {"a": 1, **b}:\n    k(d[n])', None),
    "entries that a loop puts in": (
        unfilled,
        'd = {"a": f()}\nfor n, of in (("b", g), ("c", k)):\n    d[n] = of\nh(d["a"])',
        'd = {"a": f()}\nh(d["a"])',
    ),
    "an entry that a loop puts in": (unfilled, 'd = {}\nfor n in ("a", "b"):\n    d[n] = g()\nh(d["a"])', None),
    "what a function gives": (
        keyed,
        'def f():\n    return {"a": x, "b": y}\n\n\ng(f()["b"])',
        'def f():\n    return {"a": x, "b": y}["b"]\n\n\ng(f())',
    ),
    "two entries of what it gives": (keyed, 'def f():\n    return d\n\n\ng(f()["a"], f()["b"])', None),
    "what torch may lack": (
        entry,
        'd = {}\nif hasattr(torch, "x"):\n    d["a"] = torch.x\nb = d["a"]',
        'if not hasattr(torch, "x"):\n    raise SystemExit(3)\nb = torch.x',
    ),
    "what is there": (entry, 'd = {}\nd["a"] = f()\nb = d["a"]', "b = f()"),
    "another entry": (entry, 'd = {}\nd["a"] = f()\nb = d["b"]', None),
    "what only makes a class": (
        dropped,
        "def make(base):\n    return type('A', (base,), {})\n\n\nfor a in b:\n    c = make(a)\nf()",
        "def make(base):\n    return type('A', (base,), {})\n\n\nf()",
    ),
    "a group of before": (
        cut,
        "if dist.is_initialized():\n    f()\ndist.init_process_group()",
        "dist.init_process_group()",
    ),
    "a group that was made": (cut, "dist.init_process_group()\nif dist.is_initialized():\n    f()", None),
    "an attribute": (
        attribute_put_in,
        "class A:\n    def __init__(self):\n        self.n = 1\n        f()\n\n\nh(A().n)",
        "class A:\n    def __init__(self):\n        f()\n\n\nh(1)",
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("error::SyntaxWarning")
def test_a_rule(name: str) -> None:
    rule, text, result = CASES[name]
    changed = rule(text)
    if result is not None:
        assert changed is not None
        assert changed.strip() == result
    elif name not in ("a parameter", "a default"):
        assert changed in (None, text)


def test_a_parameter_that_all_calls_give() -> None:
    changed = specialised("def f(x, n):\n    return x + n\n\n\nf(a, 1)\nf(b, 1)")
    assert changed == "def f(x):\n    return x + 1\n\n\nf(a)\nf(b)"


def test_a_default_that_keeps_what_a_loop_has() -> None:
    assert (
        undefaulted("x = g()\n\n\ndef f(x=x):\n    return x\n\n\nh(f)")
        == "x = g()\n\n\ndef f():\n    return x\n\n\nh(f)"
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('f("a" if True else b)', 'f("a")'),
        ("f(None or a)", "f(a)"),
        ('f({"a": x, "b": y}["b"])', "f(y)"),
        ("f((lambda a: a.b)(c))", "f(c.b)"),
        ("f((lambda a, b=c, d=1: g(a, b, d))(e, h))", "f(g(e, h, 1))"),
        ("f((lambda a, b=c: g(a, b))())", None),  # it raises
        ("f([g(n) for n in (1, 2)])", "f([g(1), g(2)])"),
        ("with partial(f, 1)(2):\n    g()", "with f(1, 2):\n    g()"),
        ('f(dict(a)["b"])', 'f(a["b"])'),
        ('f({k: v for k, v in a.items() if k in c}["b"])', 'f(a["b"])'),
        ('f({2 * k: v for k, v in a.items()}["b"])', None),
        ("f(2 * 3 * 5)", None),  # it says why
        ("f(torch.ones(1))", None),
    ],
)
def test_what_is_known(text: str, result: str | None) -> None:
    assert folded(text, "1.8") == result


@pytest.mark.parametrize(("release", "result"), [("(2, 0)", "f(True)"), ("(2, 1)", None)])
def test_a_condition_on_releases_is_known_where_it_is_so_on_all(release: str, result: str | None) -> None:
    text = f'f(tuple(map(int, torch.__version__.split(".")[:2])) >= {release})'
    assert folded(text, "2.0") == result


def test_a_dataclass_of_one_use() -> None:
    text = "@dataclass\nclass A:\n    n: int\n    m: int = 2\n\n\na = A(f)\ng(a.n, a.m)"
    assert (unpacked(text) or "").endswith("g(f, 2)")


def test_a_class_that_a_function_defines() -> None:
    text = "def f():\n    class A:\n        pass\n\n    return A()\n\n\nf()"
    assert hoisted(text) == "class A:\n    pass\n\n\ndef f():\n    return A()\n\n\nf()"


def test_a_hook_is_defined_ahead_of_the_loop_that_registers_it() -> None:
    text = "def noting(log):\n    def hook(*args):\n        log.append(1)\n\n    return hook\n\n\nlog = []\n"
    text += "for a in b:\n    a.register(noting(log))"
    changed = defined_ahead(text)
    assert changed is not None
    assert changed.index("def hook") < changed.index("for a in b")
    assert changed.endswith("a.register(hook)")


def test_a_module_is_imported_by_a_statement() -> None:
    text = 'a = getattr(import_module("torch.utils.checkpoint"), "checkpoint")\nb = import_module("torch.fx")'
    assert imported(text) == "from torch.utils.checkpoint import checkpoint as a\nfrom torch import fx as b"


def test_a_function_that_python_3_9_writes_with_a_blank() -> None:
    assert quoted("f(lambda : g('a'), 'b')") == 'f(lambda: g("a"), "b")'
    assert quoted("f(f'{a}, b', f\"{' '.join(c)}\")") == 'f(f"{a}, b", f"{\' \'.join(c)}")'


def test_a_rule_that_goes_too_far_is_left_out() -> None:
    text = "n = 3\nif True:\n    f(n)"
    assert simpler(text, "1.8", lambda candidate: "f(n)" in candidate) == "n = 3\nf(n)"


def test_the_turn_that_a_run_tells() -> None:
    text = "def judge(check):\n    for n in names():\n        check.equal(f'fact {n}', n, 3)"
    said = "the turn is 'a'\nthe turn is 'b'\n"
    shorter = one_turn(text, "fact b", lambda candidate: True, lambda candidate: said)
    assert shorter == "def judge(check):\n    n = 'b'\n    check.equal(f'fact {n}', n, 3)".replace("'b'", '"b"')


def test_the_turn_that_a_run_tells_by_its_key() -> None:
    text = "def judge(check):\n    for n, of in states().items():\n        check.equal(f'fact {n}', of(), 3)"
    shorter = one_turn(text, "fact b", lambda candidate: True, lambda candidate: "the turn is 'a'\nthe turn is 'b'\n")
    assert """n, of = "b", states()["b"]\n""" in shorter


def test_what_goes_on_within_a_turn_stays_in_its_loop() -> None:
    text = (
        "def judge(check):\n    for n in (1, 2):\n        for m in f(n):\n            if m:\n                continue\n"
    )
    text += "            g(m)\n        check.equal(f'fact {n}', n, 3)"
    shorter = one_turn(text, "fact 2", lambda candidate: "(1,)" not in candidate)
    assert "n = 2\n    for m in f(n):\n        if m:\n            continue\n" in shorter


def test_the_turn_of_what_a_function_is_given_by_default() -> None:
    text = "def sites(names=(1, 2)):\n    for name in names:\n        yield name\n\n\ndef judge(check):\n"
    text += "    for n in sites():\n        check.equal(f'fact {n}', n, 3)"
    shorter = one_turn(text, "fact 2", lambda candidate: "sites((2,))" in candidate)
    assert "for n in sites((2,)):" in shorter


def test_the_variant_that_shows_it() -> None:
    text = "def variants():\n    return {'a': f, 'b': g}\n\n\ndef judge(check):\n    for n, of in variants().items():\n"
    text += "        check.equal(f'fact {n}', of(), 3)"
    shorter = one_turn(text, "fact b", lambda candidate: "return g" in candidate)
    assert shorter.startswith("def variant():\n    return g\n")
    assert 'n, of = "b", variant()' in shorter


def test_what_a_dict_makes_is_not_made_anew_for_a_turn() -> None:
    text = "def judge(check):\n    d = {'a': f(), 'b': 3}\n    for n, of in d.items():\n"
    text += "        check.equal(f'fact {n}', of, 3)"
    assert 'n, of = "a", d["a"]' in one_turn(text, "fact a", lambda candidate: "d['b']" not in candidate)
