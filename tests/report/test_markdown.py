from __future__ import annotations

from hookcheck.report.markdown import markdown
from hookcheck.report.page import Fault, page

from .samples import case, deviation, record, records

GOLDEN = """\
# Do PyTorch's hooks keep their promises?

## Deviations that the ledger does not explain

- **wrong values**: BW-01 on residual with backward (1.7.1 cpu; topology bbbb)
- **not fired**: BW-01 on single-node with full\\_backward (1.13.1 cpu; topology aaaa)
- **wrong order**: BW-02 on single-node with full\\_backward (1.13.1 cpu; topology aaaa)

## Records

| torch | device | planned | ran | not offered | not run | crashed | timed out | run | started | Python |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 1.7.1 | cpu | 4 | 2 | 2 | 0 | 0 | 0 | complete | 2026-11-21T04:40:00Z | 3.9.18 |
| 1.13.1 | cpu | 4 | 2 | 0 | 1 | 1 | 0 | cut short: interrupted by the user | 2026-11-21T04:40:00Z | 3.9.18 |
| 2.13.0+cpu | cpu | 4 | 4 | 0 | 0 | 0 | 0 | complete | 2026-11-21T04:40:00Z | 3.9.18 |

## Verdicts

Legend: ! crashed: a case ended the process; nothing is said about the others; \
T timed out: a case took too long; nothing is said about the others; \
✗ deviates: deviates from a promise, and no ledger entry explains it; \
≠ changed: undocumented behaviour changed, and no ledger entry explains it; \
~ known: deviates, as an entry of the ledger says; \
✓ conforms: everything that was judged is as expected; \
– not run: not run, or nothing to judge; this is no pass; \
· not offered: this torch lacks the hook kind, or what the networks are made of.

### Backward hooks of a module

Each column: legacy / full, and on how many families.

| clause | 1.7.1 cpu | 1.13.1 cpu | 2.13.0 cpu |
| --- | --- | --- | --- |
| BW-01 | ✗1 ~1 / ·2 | !1 ~1 / ✗1 –1 | ~1 ✓1 / ✓2 |
| BW-02 | ✓2 / ·2 | !1 ✓1 / ≠1 –1 | ✓2 / ✓2 |

Where the families differ. Each column: legacy / full.

| clause | families | 1.7.1 cpu | 1.13.1 cpu | 2.13.0 cpu |
| --- | --- | --- | --- | --- |
| BW-01 | residual | ✗ / · | ! / – | ✓ / ✓ |
| BW-01 | single-node | ~ / · | ~ / ✗ | ~ / ✓ |
| BW-02 | residual | ✓ / · | ! / – | ✓ / ✓ |
| BW-02 | single-node | ✓ / · | ✓ / ≠ | ✓ / ✓ |

## Clauses

- **BW-01** (promise): Values are those of the inputs.
- **BW-02** (pin): The order of calls stays.
- **BW-03** (unspecified): The type of an exception.

## What was not run, and why

- 1.13.1 cpu: cut short: interrupted by the user
- crashed with backward: signal 11 (1 case each on 1.13.1 cpu; residual)
- not run with full\\_backward: cut short (1 case each on 1.13.1 cpu; residual)
- not offered with full\\_backward: this torch has no full\\_backward hooks (2 cases each on 1.7.1 cpu; \
single-node, residual)
"""


def test_the_whole_text() -> None:
    assert markdown(page(records())) == GOLDEN


def test_files_that_are_no_records_are_listed_first() -> None:
    text = markdown(page([], [Fault("torch-1.8.0-cpu.jsonl", "the file is empty; run `pytest conformance/` again")]))
    assert "- torch-1.8.0-cpu.jsonl: the file is empty; run \\`pytest conformance/\\` again" in text


def test_text_stays_text() -> None:
    odd = [case("a|b", "backward", [deviation()], family="<i>\nx|y*"), case("bbbb", "backward")]
    text = markdown(page([record("2.0.1", odd)]))
    assert "| BW-01 | &lt;i> x\\|y\\* | ✗ |" in text
    assert "<i>" not in text


def test_of_many_families_only_the_unusual_ones_are_named() -> None:
    cases = [case("aaaa", "backward", family=f"family-{number}") for number in range(30)]
    unusual = [case("bbbb", "backward", [deviation(ledger="linear-bias")], family=name) for name in ("view", "nested")]
    text = markdown(page([record("1.8.1", cases), record("2.13.0", [*unusual, *cases])]))
    assert "| BW-01 | ✓30 | ~2 ✓30 |" in text
    assert "| BW-01 | view, nested |   | ~ |" in text
    assert "| BW-01 | the other 30 that were judged | ✓ | ✓ |" in text
    assert "family-7" not in text


def test_a_clause_that_all_families_agree_on_is_told_once() -> None:
    text = markdown(page([record("2.0.1", [case("a", "backward"), case("b", "backward", family="residual")])]))
    assert "| BW-01 | ✓2 |" in text
    assert "Where the families differ" not in text


def test_cases_that_did_not_run_are_told_in_few_words() -> None:
    cases = [case("a", "backward", (), f"family-{n}", "not offered", "torch 1.7 lacks Mish") for n in range(30)]
    text = markdown(page([record("1.7.1", cases)]))
    assert "torch 1.7 lacks Mish (30 cases each on 1.7.1 cpu; 30 families)" in text
