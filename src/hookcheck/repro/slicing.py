"""What one fact of a program needs: the statements that may matter to it, and of each loop the turn that shows it.

A statement matters to a fact where it touches a name that the fact depends on, or one whose value has to do with it; so
does what acts on all of torch. Nothing is left out because the fault shows without it: that it does would prove
nothing of a hook that is not called. Everything is read from the text; only turns of loops are tried.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hookcheck.repro.editing import written
from hookcheck.repro.removals import REGISTERS
from hookcheck.repro.syntax import (
    CHECK,
    LEAVES,
    aims_of,
    blocks,
    called,
    checked,
    checking,
    checks,
    dedented,
    defined,
    free_names,
    holders,
    is_fact,
    lines_of,
    outside_of_functions,
    reads,
    states,
    stored,
    without,
)

GLOBAL = re.compile(r"\bregister_module_|\b_?set_\w+\(|\bmanual_seed\(|\bfresh\(|\breset\(")
"""What acts on all of torch, whatever it is given."""


def sliced(text: str, fact: str, beside: str = "", needed: bool = False) -> str | None:
    """Definitions of which one states ``fact``, with what matters to it alone; None where none does.

    What is stated ``beside`` it, ahead of it, stays where that needs nothing more, or with that if it is ``needed``.
    """
    text = _without_conditions(_without_ends(text, fact), fact)
    tree = ast.parse(text)
    aims = aims_of(tree, fact)
    if not aims:
        return None
    holding = holders(tree, aims)
    others = aims_of(tree, beside) - aims if beside else frozenset()
    aims, others = (aims | others, frozenset()) if needed else (aims, others)
    lines: set[int] = set()
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and checks(function) and function.name in holding:
            lines |= Function(function, text, aims, holding, others).left_out()
    return used(without(text, lines), holding)


def _without_ends(text: str, fact: str) -> str:
    """The text without ``try`` and ``finally`` around the fact: a script ends with it, all that it opened aside."""
    while True:
        tree = ast.parse(text)
        aims = aims_of(tree, fact)
        ended = (n for n in ast.walk(tree) if isinstance(n, ast.Try) and not n.handlers and not n.orelse)
        statement = next((n for n in ended if any(states(part, aims) for part in n.body)), None)
        if statement is None:
            return text
        lines = text.split("\n")
        first, last = statement.lineno, statement.body[-1].end_lineno
        lines[first - 1 : statement.end_lineno] = dedented(lines[first:last])
        text = "\n".join(lines)


def _without_conditions(text: str, fact: str) -> str:
    """The text with the fact by itself where it was the condition of what comes after it: a script ends with it."""
    tree = ast.parse(text)
    aims = aims_of(tree, fact)
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.If) and not n.orelse):
        facts = [n for n in ast.walk(node.test) if isinstance(n, ast.Call) and is_fact(n) and n.lineno in aims]
        if len(facts) == 1 and not any(states(part, aims) for part in node.body):
            lines = text.split("\n")
            lines[node.lineno - 1 : node.end_lineno] = [f"{' ' * node.col_offset}{written(facts[0])}"]
            return _without_conditions("\n".join(lines), fact)
    return text


def used(text: str, holding: frozenset[str]) -> str:
    """The text without the definitions at its top that nothing uses; the last statement is used, and what is
    ``holding`` the fact or registers a hook, whoever reads the handle."""
    while True:
        body = ast.parse(text).body
        names = [{node.id for node in ast.walk(part) if isinstance(node, ast.Name)} for part in body]
        unused: set[int] = set()
        for place, part in enumerate(body[:-1]):
            others = set[str]().union(*(names[i] for i in range(len(body)) if i != place))
            defined_names = defined(part)
            if defined_names and not defined_names & (others | holding) and not _registers(part):
                unused |= lines_of(part)
        if not unused:
            return text
        text = without(text, unused)


def _registers(part: ast.stmt) -> bool:
    """Whether a statement registers a hook; a function that would do so if it were called does not."""
    calls = (n.func for n in outside_of_functions(part) if isinstance(n, ast.Call))
    return any(REGISTERS.search(f"{ast.unparse(of)}(") for of in calls)


@dataclass(frozen=True)
class Function:
    """A function in which facts are stated, of which ``aims`` matter; ``holding`` are functions in which these are.

    Of the others those ``beside`` them stay that need nothing more.
    """

    node: ast.FunctionDef
    text: str
    aims: frozenset[int]
    holding: frozenset[str]
    beside: frozenset[int] = frozenset()

    @property
    def functions(self) -> set[str]:
        """The functions that it defines: to call one changes nothing but what it names."""
        return {part.name for part in ast.walk(self.node) if isinstance(part, ast.FunctionDef)}

    def left_out(self) -> set[int]:
        """The lines of what does not matter."""
        local = stored(self.node)
        related = self._related(local)
        needed = set[str]()
        while True:
            before = len(needed)
            for statement in _statements(self.node.body):
                if self._matters(statement, needed, local, related):
                    needed |= self._touched(statement, local)
            if len(needed) == before:
                break
        return self._lines(self.node.body, needed, local, related, False)[0]

    def _lines(
        self, body: Sequence[ast.stmt], needed: set[str], local: set[str], related: dict[str, set[str]], again: bool
    ) -> tuple[set[int], bool]:
        """The lines of a block that do not matter, and whether the aim is in it; ``again`` says that it is a loop's."""
        lines: set[int] = set()
        behind, met = again, False
        for statement in reversed(body):
            if self._aimed(statement):
                behind = met = True
                for block in blocks(statement):
                    inner, aimed = self._lines(
                        block, needed, local, related, isinstance(statement, (ast.For, ast.While))
                    )
                    lines |= inner if aimed else set()
            else:
                goes = not behind or (not met and self._of_result(statement))
                if behind and self._stays(statement, needed, local):
                    continue
                if goes or not self._matters(statement, needed, local, related):
                    lines |= lines_of(statement)
                else:
                    lines |= self._other_facts(statement)
        return lines, any(map(self._aimed, body))

    def _stays(self, statement: ast.stmt, needed: set[str], local: set[str]) -> bool:
        """Whether it states what is to stay, and touches nothing that would not be there otherwise."""
        stated = _mere_fact(statement) and statement.lineno in self.beside
        return stated and self._touched(statement, local) <= needed | {CHECK}

    def _other_facts(self, statement: ast.stmt) -> set[int]:
        """The lines of what is stated within a statement that matters, and changes nothing."""
        lines: set[int] = set()
        for part in _statements([statement]):
            for block in blocks(part):
                others = [inner for inner in block if not _mere_fact(inner)]
                lines |= (
                    set[int]().union(*(lines_of(inner) for inner in block if _mere_fact(inner))) if others else set()
                )
        return lines

    def _of_result(self, statement: ast.stmt) -> bool:
        """Whether it is about what the fact gives if it is so: a script that states it has nothing of that name."""
        aims = (node for node in ast.walk(self.node) if isinstance(node, ast.Assign) and self._is_aim(node.value))
        results = set[str]().union(*map(stored, aims))
        return any(isinstance(node, ast.Name) and node.id in results for node in ast.walk(statement))

    def _aimed(self, statement: ast.stmt) -> bool:
        return any(self._is_aim(node) for node in ast.walk(statement))

    def _is_aim(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        return (
            (node.lineno in self.aims and is_fact(node))
            or checking(node) in self.holding
            or called(node) in self.stating
        )

    @cached_property
    def stating(self) -> frozenset[str]:
        """The functions that it defines in which the aims are."""
        inner = (part for part in ast.walk(self.node) if isinstance(part, ast.FunctionDef) and part is not self.node)
        return frozenset(part.name for part in inner if states(part, self.aims))

    def _matters(self, statement: ast.stmt, needed: set[str], local: set[str], related: dict[str, set[str]]) -> bool:
        if self._aimed(statement):
            return True
        if any(isinstance(node, LEAVES) for node in outside_of_functions(statement)):
            return True
        call = statement.value if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
        fact = call is not None and checked(call)
        if fact and reads(statement):
            return False
        touched = self._touched(statement, local)
        if call is not None and fact and not touched and called(call):  # what states others, of its own
            return GLOBAL.search(self._source_of(called(call))) is not None
        if not fact and GLOBAL.search(ast.unparse(statement)):
            return True
        if isinstance(statement, ast.Expr) and touched <= self.functions:
            return True
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            return statement.name in needed
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            if not stored(statement):  # an attribute or an item, of what may be known elsewhere too
                return True
            if reads(statement):
                return bool(stored(statement) & needed)
        data = touched - self.functions
        return bool(set[str]().union(*(related[name] for name in data)) & needed)

    def _source_of(self, name: str) -> str:
        """The text of a function at the top."""
        functions = (n for n in ast.parse(self.text).body if isinstance(n, ast.FunctionDef) and n.name == name)
        return next(map(ast.unparse, functions), "")

    def _touched(self, statement: ast.stmt, local: set[str]) -> set[str]:
        """The local names in a statement, those in the functions that it names too; of a block those of its head."""
        parts: Iterable[ast.AST] = [statement]
        if blocks(statement) and self._aimed(statement):
            parts = _head(statement)
        names = set[str]().union(*map(free_names, parts)) & local
        inner = {d.name: d for d in ast.walk(self.node) if isinstance(d, (ast.FunctionDef, ast.ClassDef))}
        while True:
            more = {
                used for name in names & set(inner) for used in free_names(inner[name]) & (local - _bound(inner[name]))
            }
            if more <= names:
                return names - {CHECK}
            names |= more

    def _related(self, local: set[str]) -> dict[str, set[str]]:
        """Of each name those that its value was made with, or that were made with it, however indirectly."""
        related = {name: {name} for name in local}
        for statement in ast.walk(self.node):
            if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.For, ast.With)):
                names = (self._touched(statement, local) - self.functions) | (stored(statement) & local)
                joined = set[str]().union(*(related[name] for name in names))
                related.update(dict.fromkeys(joined, joined))
        return related


def _bound(inner: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """The names of a function that are its own, and not what another one has by the same name."""
    if isinstance(inner, ast.ClassDef) or any(isinstance(n, ast.Nonlocal) for n in ast.walk(inner)):
        return set()
    given = {n.id for n in ast.walk(inner.args) if isinstance(n, ast.Name)}
    inside = (n for part in inner.body for n in outside_of_functions(part) if isinstance(n, ast.Name))
    stores = {n.id for n in inside if isinstance(n.ctx, ast.Store)}
    return (stores | {a.arg for a in ast.walk(inner.args) if isinstance(a, ast.arg)}) - given


def _mere_fact(statement: ast.stmt) -> bool:
    """Whether a statement states a fact, and changes nothing."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and is_fact(call) and reads(statement)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, and of the blocks in it, but not of the functions."""
    for statement in body:
        yield statement
        for block in blocks(statement):
            yield from _statements(block)


def _head(statement: ast.stmt) -> list[ast.AST]:
    return [n for n in ast.iter_child_nodes(statement) if not isinstance(n, (ast.stmt, ast.ExceptHandler))]
