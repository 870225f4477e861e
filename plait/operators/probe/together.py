"""Which buckets a traversal reads as one: small ones that it would look into again and again.

What a step finds does not depend on it, nor which tuples are counted: buckets of one layout of which a tuple finds
either all or none are read together, if their store is small whatever their partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from plait.operators.probe.reader import Reader
from plait.state.buckets import OpenBucket
from plait.state.joined_buckets import JoinedBucket, description
from plait.state.model import Bucket

_LOOKUP_SECONDS = 5e-5
"""What a lookup takes beside the work for the rows it finds."""
_ROW_SECONDS, _BYTE_SECONDS = 5e-7, 1e-9
"""What it takes to copy and index a row."""
_MOST_BYTES, _MOST_BYTES_IN_ALL = 32 << 20, 256 << 20
"""What is read as one may take, and all of it together: a store may have hundreds of partitions."""
_INDEX_ROW_BYTES = 20
_WHOLE_ROWS = 100_000


@dataclass(slots=True)
class Together:
    """Opens buckets, those that are read as one as such. `joined`: what they consist of, by store and path; `whole`:
    the stores whose partitions are probed at once; `spare_bytes`: what more of what is read as one may take.
    """

    reader: Reader
    spare_bytes: int = _MOST_BYTES_IN_ALL
    joined: dict[tuple[str, str], tuple[Bucket, tuple[Bucket, ...]]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    _opened: dict[tuple[str, str], JoinedBucket] = field(default_factory=dict)

    def open(self, bucket: Bucket) -> OpenBucket:
        """Return a bucket mapped into memory."""
        place = bucket.store, bucket.path
        if place not in self.joined:
            return self.reader.open(bucket)
        opened = self._opened.get(place)
        if opened is None:
            opened = self._opened[place] = self.reader.open_joined(*self.joined[place])
        return opened

    def require_untouched(self) -> None:
        """Raise `CheckpointError` if what was read as one has been written to meanwhile."""
        for opened in self._opened.values():
            opened.require_untouched()

    def join(self, buckets: Iterable[Bucket], lookups: int) -> tuple[Bucket, ...]:
        """Return the buckets, with one in the place of those that are better read together by so many lookups."""
        groups: dict[object, list[Bucket]] = {}
        for bucket in buckets:
            groups.setdefault(self.reader.kind(bucket), []).append(bucket)
        return tuple(each for group in groups.values() for each in self._join(group, lookups))

    def _join(self, group: list[Bucket], lookups: int) -> Iterator[Bucket]:
        ordered = sorted(group, key=lambda bucket: bucket.rows)
        count = _worth(ordered, lookups, min(self.spare_bytes, _MOST_BYTES))
        yield from ordered[count:]
        if count == 1:
            yield ordered[0]
        elif count:
            chosen = tuple(ordered[:count])
            one = description(chosen)
            self.spare_bytes -= sum(map(_memory, chosen))
            self.joined[one.store, one.path] = one, chosen
            yield one


def _memory(bucket: Bucket) -> int:
    """Return the bytes of a copy of a bucket and of an index of it."""
    return bucket.bytes + bucket.rows * _INDEX_ROW_BYTES


def _worth(ordered: list[Bucket], lookups: int, most_bytes: int) -> int:
    """Return how many of these buckets, the smallest, cost less to copy than to look into one by one."""
    seconds, size, worth = 0.0, 0, min(1, len(ordered))
    for count, bucket in enumerate(ordered, 1):
        seconds, size = seconds + bucket.rows * _ROW_SECONDS + bucket.bytes * _BYTE_SECONDS, size + _memory(bucket)
        if size > most_bytes:
            break
        if seconds < (count - 1) * lookups * _LOOKUP_SECONDS:
            worth = count
    return worth


def joined_stores(
    stores: Mapping[str, tuple[Bucket, ...]], together: Together, batch: int, lookups: Mapping[str, int]
) -> dict[str, tuple[Bucket, ...]]:
    """Return the buckets of each store, of which small ones that a tuple of this batch finds alike are one. `lookups`:
    how often a bucket of a store is looked into.
    """
    joined: dict[str, tuple[Bucket, ...]] = {}
    for store, buckets in stores.items():
        if sum(bucket.rows for bucket in buckets) <= _WHOLE_ROWS:
            together.whole.add(store)
        groups: dict[object, list[Bucket]] = {}
        for bucket in buckets:
            own = (bucket.batch_max, bucket.started_by) if bucket.batch_max >= batch else None
            place = bucket.partition, bucket.partition_by, bucket.parallelism
            groups.setdefault((own, None if store in together.whole else place), []).append(bucket)
        parts = (together.join(group, lookups.get(store, 0)) for group in groups.values())
        joined[store] = tuple(bucket for part in parts for bucket in part)
    return joined


__all__ = ["Together", "joined_stores"]
