"""What do hooks on a module's ``state_dict`` and ``load_state_dict`` promise?

A state_dict pre-hook is called as ``hook(module, prefix, keep_vars)`` before the state_dict is collected, a post-hook
as ``hook(module, state_dict, prefix, local_metadata)`` after it, to edit it in place. A load pre-hook is called before
a module loads, with the state_dict that it may mend and the lists of what is wrong; a load post-hook as
``hook(module, incompatible_keys)`` after it, and its edits of the keys decide whether strict loading raises.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any

from hookcheck.contract.clause import PIN, PROMISE
from hookcheck.probe.lazy import nn, torch
from hookcheck.programs.check import Check
from hookcheck.programs.program import program
from hookcheck.programs.watching import Bound, linear, noting

SAVE_PRE = "torch.nn.Module.register_state_dict_pre_hook"
SAVE_POST = "torch.nn.Module.register_state_dict_post_hook"
PRIVATE_SAVE_POST = "torch.nn.Module._register_state_dict_hook"
LOAD_PRE = "torch.nn.Module.register_load_state_dict_pre_hook"
PRIVATE_LOAD_PRE = "torch.nn.Module._register_load_state_dict_pre_hook"
LOAD_POST = "torch.nn.Module.register_load_state_dict_post_hook"


def _values(state: Any) -> dict[str, Any]:
    return {key: value.tolist() for key, value in state.items()}


@program("SD-01", PROMISE, since="2.0", source=f"{SAVE_PRE}; signature, 'pre-processing before the call'")
def a_pre_hook_runs_before_state_dict(check: Check) -> None:
    """A state_dict pre-hook is called as ``(module, prefix, keep_vars)`` before ``state_dict`` collects anything."""
    net: Any = nn.Sequential(linear(3))
    log: list[Any] = []

    def seen(module: Any, prefix: str, keep_vars: bool) -> None:
        log.append((type(module).__name__, prefix, keep_vars))

    handles = [module.register_state_dict_pre_hook(seen) for module in (net, net[0])]
    net.state_dict()
    check.order("arguments of the calls", log, [("Sequential", "", False), ("Linear", "0.", False)])
    log.clear()
    net.state_dict(prefix="net.", keep_vars=True)
    arguments = [("Sequential", "net.", True), ("Linear", "net.0.", True)]
    check.order("arguments under a prefix, with keep_vars", log, arguments)
    for handle in handles:
        handle.remove()
    net.state_dict()
    check.calls("calls once the handles are removed", len(log) - 2, 0)
    net.register_state_dict_pre_hook(lambda m, prefix, keep_vars: m.register_buffer("late", torch.tensor(2.0)))
    net[0].register_state_dict_pre_hook(lambda m, prefix, keep_vars: m.register_buffer("late", torch.tensor(5.0)))
    state = _values(net.state_dict())
    check.equal("what hooks add to their modules", state, {"late": 2, "0.weight": [[3]], "0.late": 5})


@program("SD-02", PROMISE, since="2.5", source=f"{SAVE_POST}; signature, 'modify the state_dict inplace'")
def a_post_hook_edits_in_place(check: Check) -> None:
    """A state_dict post-hook is called as ``(module, state_dict, prefix, local_metadata)`` and may edit it in place."""
    net: Any = nn.Sequential(linear(3))
    log: list[Any] = []

    def seen(module: Any, state: Any, prefix: str, local_metadata: Any) -> None:
        log.append((type(module).__name__, list(state), prefix, local_metadata["version"]))

    def renamed(module: Any, state: Any, prefix: str, local_metadata: Any) -> None:
        state[f"{prefix}kernel"] = state.pop(f"{prefix}weight")

    def added(module: Any, state: Any, prefix: str, local_metadata: Any) -> None:
        state[f"{prefix}keys"] = torch.tensor(float(len(state)))

    handle = net[0].register_state_dict_post_hook(renamed)
    for module in (net, net[0]):
        module.register_state_dict_post_hook(seen)
    net.register_state_dict_post_hook(added)
    state = net.state_dict(prefix="net.")
    calls = [("Linear", ["net.0.kernel"], "net.0.", 1), ("Sequential", ["net.0.kernel"], "net.", 1)]
    check.order("arguments of the calls", log, calls)
    check.equal("the edited state_dict", _values(state), {"net.0.kernel": [[3]], "net.keys": 1})
    handle.remove()
    state = net.state_dict()
    check.equal("keys once one handle is removed", sorted(state), ["0.weight", "keys"])

    def described(module: Any, state: Any, prefix: str, local_metadata: Any) -> None:
        state[f"{prefix}late"] = torch.tensor(2.0)
        local_metadata["late"] = True

    bare: Any = nn.Sequential(nn.Identity(), nn.ReLU())
    bare[0] = None  # a child that is not there comes first
    bare[1].register_state_dict_post_hook(described)
    state = bare.state_dict()
    check.equal("what the hook of a child without tensors adds", _values(state), {"1.late": 2})
    check.equal("what it adds to the metadata", state._metadata["1"], {"version": 1, "late": True})


@program("SD-03", PROMISE, since="2.5", source=f"{SAVE_POST}; signature '-> None'")
def a_post_hook_returns_nothing(check: Check) -> None:
    """A state_dict post-hook of the public kind returns nothing; whatever else it returns is an error."""
    for what, value in (("a dict", {}), ("False", False)):
        net: Any = nn.Sequential(linear())
        handle = net.register_state_dict_post_hook(lambda m, state, prefix, meta, value=value: value)
        check.raises(f"a root's hook that returns {what}", RuntimeError, net.state_dict, "must return None")
        handle.remove()
        net[0].register_state_dict_post_hook(lambda m, state, prefix, meta, value=value: value)
        check.raises(f"a child's hook that returns {what}", RuntimeError, net.state_dict, "must return None")
    quiet = linear(3)
    quiet.register_state_dict_post_hook(lambda m, state, prefix, meta: None)
    state = check.works("a hook that returns None", quiet.state_dict)
    check.equal("its state_dict", state and _values(state), {"weight": [[3]]})


@program("SD-04", PROMISE, since="1.7", source=f"{PRIVATE_SAVE_POST}; docstring since 2.5")
def the_private_post_hook_replaces_at_the_root(check: Check) -> None:
    """What a private state_dict hook returns is the state_dict if its module is the call's root, otherwise ignored."""
    net: Any = nn.Sequential(linear(3))
    log: list[Any] = []
    net._register_state_dict_hook(lambda m, state, prefix, meta: None)
    check.equal("under a hook that returns None", _values(net.state_dict()), {"0.weight": [[3]]})
    net[0]._register_state_dict_hook(lambda m, state, prefix, meta: {f"{prefix}mine": torch.tensor(1.0)})
    check.equal("under a child's hook that returns a dict", _values(net.state_dict()), {"0.weight": [[3]]})
    check.equal("of that child alone", _values(net[0].state_dict()), {"mine": 1})
    net._register_state_dict_hook(lambda m, state, prefix, meta: {"whole": torch.tensor(float(len(state)))})
    handle = net._register_state_dict_hook(lambda m, state, prefix, meta: log.append(list(state)))
    check.equal("under the root's hook that returns a dict", _values(net.state_dict()), {"whole": 1})
    check.order("keys that a later hook sees", log, [["whole"]])
    handle.remove()
    net.state_dict()
    check.calls("calls once the handle is removed", len(log) - 1, 0)


@program("SD-05", PROMISE, since="2.5", source=f"{LOAD_PRE}; signature")
def a_load_pre_hook_runs_before_loading(check: Check) -> None:
    """A load pre-hook is called before loading with the module and the seven arguments of ``_load_from_state_dict``."""
    net: Any = nn.Sequential(linear(3))
    log: list[Any] = []

    def seen(module: Any, state: Any, prefix: str, meta: Any, strict: bool, *lists: Any) -> None:
        log.append((type(module).__name__, net[0].weight.item(), prefix, strict, *lists))

    def renamed(module: Any, state: Any, prefix: str, *others: Any) -> Any:
        state[f"{prefix}weight"] = state.pop(f"{prefix}kernel")
        return "ignored"

    handles = [module.register_load_state_dict_pre_hook(seen) for module in (net, net[0])]
    handle = net[0].register_load_state_dict_pre_hook(renamed)
    state = {"0.kernel": torch.tensor([[5.0]])}
    check.works("loading a state_dict whose key a hook renames", lambda: net.load_state_dict(state))
    check.equal("the weight that is loaded", net[0].weight, [[5]])
    expected: list[Any] = [("Sequential", 3.0, "", True, [], [], []), ("Linear", 3.0, "0.", True, [], [], [])]
    check.order("arguments of the calls", log, expected)
    check.equal("keys of the caller's dict", list(state), ["0.kernel"])
    for kind in (dict, OrderedDict):
        held = kind(kernel=torch.tensor([[7.0]]))
        net[0].load_state_dict(held)
        check.equal(f"keys of the caller's {kind.__name__}, of which the root has a hook", list(held), ["kernel"])
        check.equal(f"the weight that is loaded from that {kind.__name__}", net[0].weight, [[7]])
    log.clear()
    for each in (*handles, handle):
        each.remove()
    check.raises("loading once the handles are removed", RuntimeError, lambda: net.load_state_dict(state), "0.kernel")
    check.calls("calls once the handles are removed", len(log), 0)
    net[0].register_load_state_dict_pre_hook(lambda *arguments: arguments[7].append("not on a Sunday"))
    weight = {"0.weight": torch.tensor([[7.0]])}
    check.raises("error messages are raised", RuntimeError, lambda: net.load_state_dict(weight), "not on a Sunday")
    bare: Any = nn.Module()
    bare.register_load_state_dict_pre_hook(lambda module, *others: module.register_buffer("late", torch.zeros(1)))
    check.works("loading what a hook registers", lambda: bare.load_state_dict({"late": torch.ones(1)}))
    check.equal("the buffer that a hook registers", bare.late, [1])


@program("SD-06", PROMISE, since="1.10", source=f"{PRIVATE_LOAD_PRE}; docstring")
def the_private_load_pre_hook_omits_the_module(check: Check) -> None:
    """A private load pre-hook is called without the module unless it was registered with ``with_module``."""
    net: Any = nn.Sequential(linear())
    log: list[Any] = []
    net[0]._register_load_state_dict_pre_hook(lambda *arguments: log.append(arguments))
    net[0]._register_load_state_dict_pre_hook(lambda *arguments: log.append(arguments), with_module=True)
    net.load_state_dict(net.state_dict())
    check.calls("calls", len(log), 2)
    plain, with_module = log
    check.equal("arguments without the module", len(plain), 7, "argument")
    check.equal("arguments with the module", len(with_module), 8, "argument")
    check.true("the first of the eight is the module", with_module[0] is net[0], "argument")
    check.true("the others are the same", all(a is b for a, b in zip(plain, with_module[1:])), "argument")
    check.equal("the prefix", plain[1], "0.", "argument")


@program("SD-07", PROMISE, since="1.12", source=f"{LOAD_POST}; signature, 'the current module'")
def a_load_post_hook_runs_after_loading(check: Check) -> None:
    """A load post-hook is called after loading as ``(module, incompatible_keys)`` with the lists of keys at odds."""
    net: Any = nn.Sequential(nn.Linear(1, 1))
    log: list[Any] = []

    def seen(module: Any, keys: Any) -> None:
        log.append((type(module).__name__, net[0].weight.item(), list(keys.missing_keys), list(keys.unexpected_keys)))

    handles = [module.register_load_state_dict_post_hook(seen) for module in (net, net[0])]
    net.load_state_dict({"0.weight": torch.tensor([[5.0]]), "0.extra": torch.zeros(1)}, strict=False)
    keys = (5.0, ["0.bias"], ["0.extra"])
    check.order("calls", log, [("Linear", *keys), ("Sequential", *keys)])
    for handle in handles:
        handle.remove()
    net.load_state_dict({}, strict=False)
    check.calls("calls once the handles are removed", len(log) - 2, 0)


@program("SD-08", PROMISE, since="1.12", source=f"{LOAD_POST}; 'can be modified inplace'")
def a_load_post_hook_edits_both_lists(check: Check) -> None:
    """What a load post-hook does to the lists in place is seen by later hooks and in what ``load_state_dict`` gives."""
    net: Any = nn.Linear(1, 1)
    log: list[Any] = []

    def edited(module: Any, keys: Any) -> None:
        keys.missing_keys.remove("weight")
        keys.unexpected_keys.append("made up")

    net.register_load_state_dict_post_hook(edited)
    net.register_load_state_dict_post_hook(lambda m, keys: log.append((list(keys[0]), list(keys[1]))))
    result = net.load_state_dict({"extra": torch.zeros(1)}, strict=False)
    check.order("what a later hook sees", log, [(["bias"], ["extra", "made up"])])
    check.equal("missing_keys of the result", result.missing_keys, ["bias"])
    check.equal("unexpected_keys of the result", result.unexpected_keys, ["extra", "made up"])


@program("SD-09", PROMISE, since="1.12", source=f"{LOAD_POST}; 'Additions to either set of keys'")
def a_load_post_hook_makes_loading_fail(check: Check) -> None:
    """Under ``strict=True`` a key that a load post-hook adds to either list is an error."""
    for name in ("missing_keys", "unexpected_keys"):
        net = linear()
        load = partial(net.load_state_dict, net.state_dict())
        handle = net.register_load_state_dict_post_hook(lambda m, keys, name=name: getattr(keys, name).append("odd"))
        check.raises(f"strict loading, with an addition to {name}", RuntimeError, load, "odd")
        check.works(f"loading that is not strict, with an addition to {name}", partial(load, strict=False))
        handle.remove()
        check.works(f"strict loading, after an addition to {name}", load)


@program("SD-10", PROMISE, since="1.12", source=f"{LOAD_POST}; 'clearing out both'")
def a_load_post_hook_avoids_the_error(check: Check) -> None:
    """Under ``strict=True`` no error is raised if load post-hooks clear both lists."""
    state = {"weight": torch.tensor([[5.0]]), "extra": torch.zeros(1)}
    net: Any = nn.Linear(1, 1)
    net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    check.raises("one list cleared", RuntimeError, lambda: net.load_state_dict(state), "extra")
    net.register_load_state_dict_post_hook(lambda m, keys: keys.unexpected_keys.clear())
    result = check.works("both lists cleared", lambda: net.load_state_dict(state))
    check.equal("the result", result and (list(result[0]), list(result[1])), ([], []))
    check.equal("the weight that is loaded", net.weight, [[5]])


@program("SD-11", PROMISE, since="1.12", source=f"{LOAD_POST}; 'Returns'")
def every_registration_gives_a_handle(check: Check) -> None:
    """Every registration of a hook on state_dict or loading gives a RemovableHandle, which removes that hook alone."""
    for api in (SAVE_PRE, SAVE_POST, PRIVATE_SAVE_POST, LOAD_PRE, PRIVATE_LOAD_PRE, LOAD_POST):
        name = api.rpartition(".")[2]
        if not hasattr(nn.Module, name):
            continue
        net = linear()
        log: list[str] = []
        handles = [getattr(net, name)(lambda *arguments, log=log, who=who: log.append(who)) for who in "abc"]
        removable = all(type(handle) is torch.utils.hooks.RemovableHandle for handle in handles)
        check.true(f"what {name} gives", removable, "argument")
        handles[1].remove()
        net.load_state_dict(net.state_dict())
        check.order(f"hooks of {name} that are left", log, ["a", "c"])


@program("U-18", PIN, since="1.12", source=f"{PRIVATE_LOAD_PRE}, {LOAD_POST}; relied on by FSDP and checkpoint_wrapper")
def children_load_what_is_theirs(check: Check) -> None:
    """A child's load pre-hook gets the keys and the metadata under its prefix alone, and its load post-hook runs before
    the parent's."""
    parts = {"0": linear(), "1": nn.Sequential(linear()), "10": linear()}  # the third one's name begins as another's
    net: Any = nn.Sequential(OrderedDict(parts))
    given: dict[str, Any] = {}
    marks: dict[str, Any] = {}
    log: list[str] = []

    def seen(name: str, state: Any, prefix: str, local_metadata: Any, *others: Any) -> None:
        given[name], marks[name] = sorted(state), local_metadata.get("mark")

    for name, module in net.named_modules():
        module._register_state_dict_hook(lambda m, state, prefix, metadata, name=name: metadata.update(mark=name))
        module._register_load_state_dict_pre_hook(partial(seen, name))
        module.register_load_state_dict_post_hook(lambda module, keys, name=name: log.append(name))
    net.load_state_dict(net.state_dict())
    keys = {"0": ["0.weight"], "1": ["1.0.weight"], "1.0": ["1.0.weight"], "10": ["10.weight"]}
    keys[""] = [*keys["0"], *keys["1"], *keys["10"]]
    check.equal("keys that pre-hooks get", given, keys, "entry")
    check.equal("metadata that pre-hooks get", marks, {name: name for name in keys}, "entry")
    check.order("post-hooks", log, ["0", "1.0", "1", "10", ""])


@program("SD-12", PIN, since="1.7", source=f"{PRIVATE_LOAD_PRE}; 'strict' of the signature; pytorch#156177")
def a_load_pre_hook_is_told_strict(check: Check) -> None:
    """A load pre-hook is told ``strict=True`` whatever ``load_state_dict`` was: that decides after loading only."""
    net: Any = nn.Sequential(linear())
    log: list[Any] = []
    for module in (net, net[0]):
        module._register_load_state_dict_pre_hook(lambda state, prefix, meta, strict, *lists: log.append(strict))
    for strict in (True, False):
        log.clear()
        net.load_state_dict(net.state_dict(), strict=strict)
        check.order(f"strict as it is told under {strict}", log, [True, True])


@program("SD-13", PROMISE, since="2.5", source=f"{SAVE_POST}; 'hook'")
def a_post_hook_can_be_any_callable(check: Check) -> None:
    """A state_dict post-hook can be any callable, a bound method too, as it can where the private method takes it."""
    log: list[str] = []
    for name in ("_register_state_dict_hook", "register_state_dict_post_hook"):
        net = linear()
        log.clear()
        check.works(f"a bound method given to {name}", partial(getattr(net, name), Bound(log).hook))
        net.state_dict()
        check.calls(f"calls of a bound method given to {name}", len(log), 1)
    net, log = linear(), []
    net.register_state_dict_post_hook(noting(log, "public"))
    net._register_state_dict_hook(noting(log, "private"))
    net.state_dict()
    check.order("hooks of both kinds, as they were registered", log, ["public", "private"])


@program("SD-14", PIN, since="1.7", source="pytorch#85743")
def a_load_pre_hook_edits_for_siblings(check: Check) -> None:
    """The dict that a child's load pre-hook gets is the one that all modules load from."""
    net, other = (nn.Sequential(linear(), linear()) for _ in range(2))
    for number, parameter in enumerate(other.parameters()):
        nn.init.constant_(parameter, number + 3.0)
    state = other.state_dict()
    saved = _values(state)  # of weights of 3 and 4; on hosts, whatever these save
    numbers, half = [*saved.values()], len(saved) // 2
    state.update({f"{key}?": state.pop(key) for key in saved})

    def mended(state: Any, *others: Any) -> None:
        for key in [key for key in state if key.endswith("?")]:
            state[key[:-1]] = state.pop(key)

    net[0]._register_load_state_dict_pre_hook(mended)
    check.works("loading what a hook mends for a sibling", lambda: net.load_state_dict(state))
    loaded = [*_values(net.state_dict()).values()]
    check.equal("the sibling's weight", loaded[half:], numbers[half:])
    check.equal("the weight of the hook's own module", loaded[:half], numbers[:half])


@program("SD-15", PIN, since="2.5", source="pytorch#131690")
def a_function_is_not_marked_for_ever(check: Check) -> None:
    """A function that was a public post-hook, and is removed, can be a private one that returns a dict."""
    public, private = (lambda *arguments: {"mine": torch.tensor(1.0)} for _ in range(2))  # two functions
    linear().register_state_dict_post_hook(public).remove()
    net = linear()
    handle = net._register_state_dict_hook(private)
    check.equal("the state_dict under a function that was not public", list(net.state_dict()), ["mine"])
    handle.remove()
    check.works("registering it as a private hook", lambda: net._register_state_dict_hook(public))
    check.equal("the state_dict under it", list(net.state_dict()), ["mine"])


@program("SD-16", PROMISE, since="1.7", source="pytorch#88541")
def a_hook_removes_itself(check: Check) -> None:
    """A hook on state_dict or its loading may remove itself while it runs; the others run all the same."""
    for api in (PRIVATE_SAVE_POST, PRIVATE_LOAD_PRE, SAVE_PRE, LOAD_POST):
        name = api.rpartition(".")[2]
        if not hasattr(nn.Module, name):
            continue
        net = linear()
        log: list[str] = []
        handles: list[Any] = []

        def once(*arguments: Any, handles: Any = handles, log: Any = log) -> None:
            log.append("once")
            handles[0].remove()

        handles.append(getattr(net, name)(once))
        getattr(net, name)(lambda *arguments, log=log: log.append("always"))
        act = partial(lambda net: net.load_state_dict(net.state_dict()), net)
        check.works(f"the first time with {name}", act)
        check.works(f"the second time with {name}", act)
        check.calls(f"calls of what removes itself, with {name}", log.count("once"), 1)
        check.calls(f"calls of the other, with {name}", log.count("always"), 2)


@program("SD-17", PROMISE, since="1.12", source=f"pytorch#76823; {LOAD_POST}")
def edits_of_a_child_are_respected(check: Check) -> None:
    """What a child's load post-hook does to the lists in place decides whether strict loading of the whole raises."""
    net: Any = nn.Sequential(nn.Linear(1, 1))
    state = {"0.weight": torch.tensor([[5.0]]), "0.extra": torch.zeros(1)}

    def forgiven(module: Any, keys: Any) -> None:
        del keys.missing_keys[:], keys.unexpected_keys[:]

    check.raises("without a hook", RuntimeError, lambda: net.load_state_dict(state), "0.bias")
    handle = net[0].register_load_state_dict_post_hook(forgiven)
    check.works("under a hook that empties the lists", lambda: net.load_state_dict(state))
    handle.remove()
    net[0].register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.append("0.odd"))
    check.raises("under a hook that adds to them", RuntimeError, lambda: net.load_state_dict(state), "0.odd")
