"""A name for each module that a script imports by ``import_module`` more than once."""

from __future__ import annotations

import ast

from hookcheck.repro.editing import replaced


def named(text: str) -> str:
    """The text with such modules imported once, ahead of the statement that is the first to ask for one.

    Where a definition at the top is the first it stays: what the text asks of its torch may stand behind it.
    """
    tree = ast.parse(text)
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    taken |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    taken |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for module in dict.fromkeys(name for node in ast.walk(tree) for name in _imported(node)):
        first = next(s for s in tree.body if any(module in _imported(node) for node in ast.walk(s)))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and module in _imported(node)]
        name = module.rpartition(".")[2]
        if len(calls) > 1 and name not in taken and not isinstance(first, (ast.FunctionDef, ast.ClassDef)):
            for call in sorted(calls, key=lambda call: (-call.lineno, -call.col_offset)):
                text = replaced(text, call, name)
            lines = text.split("\n")
            lines.insert(first.lineno - 1, f'{name} = import_module("{module}")')
            return named("\n".join(lines))
    return text


def _imported(node: ast.AST) -> tuple[str, ...]:
    """The module that a call imports by its name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_module":
        return tuple(arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))
    return ()
