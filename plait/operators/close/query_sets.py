"""Which selections stored rows pass together: a sample for those who decide whether queries are joined as one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import numpy as np

from plait.errors import CheckpointError
from plait.operators.column_names import SELECTIONS_PER_WORD, word_names
from plait.plan.relations import source_of
from plait.state.buckets import int64_view, open_bucket
from plait.state.model import Bucket, Manifest
from plait.state.storage import Storage
from plait.stats.model import QuerySets

MOST_ROWS: Final = 2048
"""So many rows of each source are looked at."""


def sampled_query_sets(storage: Storage, manifest: Manifest | None) -> tuple[QuerySets, ...]:
    """Return samples of the rows stored last, of every source whose rows were asked for more than one selection, by
    source. A bucket that has been deleted meanwhile is left out.
    """
    if manifest is None:
        return ()
    latest: dict[str, Bucket] = {}
    sources = {known.source for known in manifest.sources}
    for bucket in _telling(manifest.buckets):
        source = source_of(bucket.store)
        known = latest.get(source)
        if source in sources and (known is None or _age(known) < _age(bucket)):
            latest[source] = bucket
    found = []
    for source, bucket in sorted(latest.items()):
        with suppress(CheckpointError, OSError):
            sets = _sets(storage, bucket)
            found.append(QuerySets(source=source, selections=bucket.layout.selections, sets=sets))
    return tuple(found)


def _telling(buckets: Iterable[Bucket]) -> Iterable[Bucket]:
    return (bucket for bucket in buckets if bucket.rows and bucket.layout.has_tau and len(bucket.layout.selections) > 1)


def _age(bucket: Bucket) -> tuple[int, int]:
    return bucket.batch_max, bucket.rows


def _sets(storage: Storage, bucket: Bucket) -> tuple[tuple[int, int], ...]:
    """Return the query sets of rows spread over a bucket, each with how many have it."""
    batch = open_bucket(storage, bucket).batch
    rows = np.linspace(0, bucket.rows - 1, min(bucket.rows, MOST_ROWS)).astype(np.int64)
    words = [int64_view(batch, name)[rows] for name in word_names(len(bucket.layout.selections))]
    distinct, counts = np.unique(np.stack(words, axis=1), axis=0, return_counts=True)
    return tuple(
        (sum(int(word) << place * SELECTIONS_PER_WORD for place, word in enumerate(each)), int(count))
        for each, count in zip(distinct, counts, strict=True)
    )


__all__ = ["MOST_ROWS", "sampled_query_sets"]
