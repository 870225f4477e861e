"""Small buckets of which a tuple finds either all or none are read as one, if they are looked into often enough."""

from __future__ import annotations

from pathlib import Path

from plait.operators.probe.reader import Reader
from plait.operators.probe.together import Together, joined_stores
from plait.state.model import Bucket
from plait.state.storage import Storage
from tests.unit.state.builders import A, B, described, layout


def joined(tmp_path: Path, buckets: list[Bucket], lookups: int = 1000, batch: int = 9) -> list[set[str]]:
    """Return which buckets of a large store are read together, by path."""
    buckets = [*buckets, described(path="~", rows=200_000, bytes=1 << 30)]
    together = Together(Reader(Storage.open(str(tmp_path))))
    (found,) = joined_stores({"s": tuple(buckets)}, together, batch, {"s": lookups}).values()
    sets = [
        {each.path for each in together.joined["s", one.path][1]} if ("s", one.path) in together.joined else {one.path}
        for one in found
    ]
    assert together.whole == set()
    return sorted((each for each in sets if each != {"~"}), key=min)


def test_earlier_buckets_of_a_partition_are_one_and_those_of_the_batch_another(tmp_path: Path) -> None:
    buckets = [
        described(path=f"p{part}b{batch}", partition=part, batch_max=batch) for part in (0, 1) for batch in (7, 8, 9)
    ]
    buckets += [described(path="p0b9 too", batch_max=9)]
    assert joined(tmp_path, buckets) == [{"p0b7", "p0b8"}, {"p0b9", "p0b9 too"}, {"p1b7", "p1b8"}, {"p1b9"}]


def test_buckets_are_apart_if_a_tuple_may_find_one_of_them_only(tmp_path: Path) -> None:
    other = (
        {"layout": layout(A, B)},
        {"sort_key": (B,)},
        {"parallelism": 2},
        {"partition_by": (A,)},
        {"batch_max": 9, "started_by": 1},
        {"batch_max": 9, "started_by": 0},
    )
    buckets = [described(path=f"b{number}", **change) for number, change in enumerate(other)]
    assert joined(tmp_path, buckets) == [{f"b{number}"} for number in range(len(other))]


def test_partitions_of_a_small_store_are_read_together_and_at_once(tmp_path: Path) -> None:
    buckets = [described(path=f"p{part}", partition=part, parallelism=2) for part in (0, 1)]
    together = Together(Reader(Storage.open(str(tmp_path))))
    (found,) = joined_stores({"s": tuple(buckets)}, together, 9, {"s": 1000})["s"]
    assert {each.path for each in together.joined["s", found.path][1]} == {"p0", "p1"}
    assert together.whole == {"s"}


def test_large_buckets_stay_by_themselves_and_so_do_small_ones_that_are_seldom_looked_into(tmp_path: Path) -> None:
    small = [described(path=f"s{number}", rows=100, bytes=10_000) for number in range(5)]
    large = described(path="t", rows=10_000_000, bytes=1 << 30)
    names = {bucket.path for bucket in small}
    assert joined(tmp_path, [large, *small]) == [names, {"t"}]
    assert joined(tmp_path, [large, *small], lookups=0) == [{name} for name in sorted(names)] + [{"t"}]


def test_what_is_read_as_one_is_bounded_over_all_partitions_with_its_indexes(tmp_path: Path) -> None:
    buckets = [
        described(path=f"p{part}b{batch}", partition=part, rows=1_000, bytes=30_000, batch_max=batch)
        for part in range(50)
        for batch in range(4)
    ]
    together = Together(Reader(Storage.open(str(tmp_path))), spare_bytes=1_000_000)
    joined_stores({"s": tuple(buckets[:100]), "t": tuple(buckets[100:])}, together, 9, {"s": 1000, "t": 1000})
    read = sum(each.bytes + 20 * each.rows for _, parts in together.joined.values() for each in parts)
    assert 900_000 < read <= 1_000_000
    assert together.spare_bytes == 1_000_000 - read
