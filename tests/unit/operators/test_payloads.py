"""Messages between tasks: pieces of bounded size that together are what was sent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from plait.operators.probe.partials import Partials, Position
from plait.operators.traversal.messages import decode_partials, payloads


def partials(count: int) -> Partials:
    block = pa.record_batch({"k": pa.array(range(count), pa.int64()), "text": [f"{n:0100d}" for n in range(count)]})
    rows = np.arange(count, dtype=np.int64)
    return Partials(count=count, positions=(Position(block=block),), newest=rows, high=rows + 7)


@pytest.mark.parametrize(("count", "limit"), [(1, 10), (3, 1), (1000, 1), (1000, 20_000), (1000, 1 << 20)])
def test_pieces_hold_every_partial_once_and_in_order(count: int, limit: int) -> None:
    found = [decode_partials(payload, 1) for payload in payloads(partials(count), (("k", "text"),), limit)]
    assert np.concatenate([piece.newest for piece in found]).tolist() == list(range(count))
    assert np.concatenate([piece.high for piece in found]).tolist() == list(range(7, count + 7))
    keys = [key for piece in found for key in piece.positions[0].column("k").to_pylist()]
    assert keys == list(range(count))


def test_pieces_are_about_as_large_as_allowed() -> None:
    sizes = [len(payload) for payload in payloads(partials(10_000), (("k", "text"),), 100_000)]
    assert len(sizes) > 10
    assert max(sizes) < 110_000


def test_what_fits_is_sent_whole() -> None:
    assert len(list(payloads(partials(100), (("k",),)))) == 1
