from __future__ import annotations

from .samples import record


def test_cells_are_those_of_the_planned_clauses_on_the_hook_kinds_they_speak_of() -> None:
    verdicts = {(cell.clause, cell.family, cell.kind): cell.verdict for cell in record().cells()}
    assert verdicts == {
        ("BW-01", "single-node", "backward"): "deviates",
        ("BW-01", "single-node", "full_backward"): "conforms",
        ("BW-01", "residual", "backward"): "not run",
        ("BW-01", "residual", "full_backward"): "conforms",
    }
