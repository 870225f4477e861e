"""One broker for all tests that need one, and one database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.kafka.broker import Broker, running_broker
from tests.kafka.database import Database, NoServerError, running_database
from tests.kafka.jars import NoJarsError


@pytest.fixture(scope="session")
def running() -> Iterator[Broker]:
    """Provide a broker; where its jars cannot be fetched the test is skipped, but never in CI."""
    with or_skipped(NoJarsError), running_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def broker(running: Broker) -> str:
    """Provide the address of a broker."""
    return running.address


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    """Provide an empty database; where there is no server the test is skipped, but never in CI."""
    with or_skipped(NoServerError), running_database() as database:
        yield database


@contextmanager
def or_skipped(missing: type[Exception]) -> Iterator[None]:
    """Skip a test for want of something, but never in CI."""
    try:
        yield
    except missing as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
