"""How much slower batches are while clients ask."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.components.load import Part, slower, table

PART = Part(name="before", seconds=10, batches=(), service_cpu_s=0.5, files=10, threads=5, objects=100, memory_bytes=10)


def test_batches_while_clients_ask_are_compared_with_those_before_and_after() -> None:
    parts = [
        replace(PART, batches=(1.0, 1.0, 1.2)),
        replace(PART, name="asked", batches=(1.1, 1.1, 5.0)),
        replace(PART, name="after", batches=(1.0, 0.9)),
    ]
    assert slower(parts) == pytest.approx(1.1)
    assert list(table(parts).columns[4].cells) == ["5.0%"] * 3
