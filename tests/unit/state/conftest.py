"""Buckets of the tests here have few rows, and have index files all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait.state import indexes


@pytest.fixture(autouse=True, scope="module")
def indexed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexes, "FEWEST_ROWS", 0)
        yield
