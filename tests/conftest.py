"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for all tests that need one."""
    from plait.runtime.spark.session import open_session

    session = open_session("local[2]", {"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()
