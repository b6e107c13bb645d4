"""Are versions told apart by their numbers, in whatever class torch has its own?"""

from __future__ import annotations

from hookcheck.releases.numbers import release


def test_a_version_may_be_a_text_that_cannot_be_hashed() -> None:
    """So is that of torch 1.10, whose class compares versions and leaves out the hash."""

    class TorchVersion(str):
        def __eq__(self, other: object) -> bool:
            return str(self) == str(other)

    assert TorchVersion.__hash__ is None
    assert release(TorchVersion("1.10.2+cu102")) == (1, 10)
