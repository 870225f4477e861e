"""Which buckets are looked through for rows that meet, where partitions may have been made in several ways."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from plait.operators.close.certain_sql import Span
from plait.operators.close.sides import Stored
from plait.operators.probe.reader import Reader
from plait.state.storage import Storage
from tests.unit.operators.close.test_concerned import KEYS, LEFT, found, planned, put, resolved
from tests.unit.sql.select.test_outer_joins import SECOND

Kind: TypeAlias = tuple[str, int, int]
"""Of a bucket: the key that partitions it, how many partitions there are, and which it is."""

BY_K, BY_X = KEYS
ALL = Span(since_us=0, last_us=1000 * SECOND)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        # The same way on both sides: the partner is in the partition of the same number.
        (((BY_K, 2, 0),), ((BY_K, 2, 0), (BY_K, 2, 1))),
        # Stored before and after the number of partitions changed, or the key: it may be in any.
        (((BY_K, 2, 0),), ((BY_K, 3, 2), (BY_K, 2, 1))),
        (((BY_K, 2, 0),), ((BY_X, 2, 1), (BY_K, 2, 1))),
        (((BY_K, 2, 0), (BY_X, 2, 1)), ((BY_K, 2, 1), (BY_K, 2, 0))),
        (((BY_K, 3, 0), (BY_K, 2, 1)), ((BY_K, 2, 1), (BY_K, 2, 1))),
    ],
)
def test_a_partner_is_found_wherever_it_was_put(
    tmp_path: Path, left: tuple[Kind, ...], right: tuple[Kind, ...]
) -> None:
    query, storage = resolved(LEFT), Storage.open(str(tmp_path))
    buckets = []
    # Each row of `a` has its partner in the first bucket of `b`; the other is of a key that nothing has.
    for store, kinds in (("a", left), ("b", right)):
        for number, (key, parallelism, partition) in enumerate(kinds):
            rows = [(number, number, SECOND)] if store == "a" else [(k, k, SECOND) for k in (0, 1, 9)[2 * number :][:2]]
            (bucket,) = put(storage, query, store, number, rows)
            buckets.append(replace(bucket, partition_by=(key,), parallelism=parallelism, partition=partition))
    stored = Stored(reader=Reader(storage), before=tuple(buckets), fresh=())
    assert found(query, planned(query), stored, ALL) == Counter()
