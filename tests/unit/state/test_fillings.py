"""What has been taken to fill an intermediate store, and what has not, are not merged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.state.compaction import Merge, choose_merges
from plait.state.fillings import after_merge, fence, left_rows, may_merge
from plait.state.manifest import decode, encode
from plait.state.model import Bucket, Filling, Left, Manifest
from tests.unit.state.builders import described


def bucket(number: int) -> Bucket:
    return described(path=f"b{number}", batch_min=number, batch_max=number, rows=10)


BUCKETS = tuple(map(bucket, range(8)))
FILLING = Filling(
    store="s⋈t~12345678+", part=0, since=6, rows=60, left=(Left(path="b3", row=4), Left(path="b2"), Left(path="b1")),
    carried=("0:v",),
)  # fmt: skip


def test_rows_before_and_after_a_store_began_to_come_and_those_taken_and_not_stay_apart() -> None:
    side = fence((FILLING,))
    together = [[each.path for each in BUCKETS if side(each) == side(other)] for other in BUCKETS]
    assert together == [
        ["b0", "b4", "b5"], ["b1", "b2"], ["b1", "b2"], ["b3"], ["b0", "b4", "b5"], ["b0", "b4", "b5"],
        ["b6", "b7"], ["b6", "b7"],
    ]  # fmt: skip


def test_merges_are_chosen_within_the_fence() -> None:
    def chosen(*fillings: Filling) -> list[list[str]]:
        merges = choose_merges(BUCKETS, {"s": None}, fan_in=2, fence=fence(fillings))
        return sorted([each.path for each in merge.buckets] for merge in merges)

    assert chosen(FILLING) == [["b0", "b4"], ["b1", "b2"], ["b6", "b7"]]
    assert chosen() == chosen(replace(FILLING, left=())) == [["b0", "b1"]]


@pytest.mark.parametrize(("paths", "may"), [("b1 b2", True), ("b6 b7", True), ("b2 b3", False), ("b5 b6", False)])
def test_a_merge_that_was_begun_before_takes_effect_only_within_the_fence(paths: str, may: bool) -> None:
    merge = Merge(buckets=tuple(each for each in BUCKETS if each.path in paths.split()))
    assert may_merge(merge, (FILLING,)) == may
    assert may_merge(merge, ())


def test_what_buckets_that_are_left_become_is_left_in_their_place() -> None:
    merged = described(path="m", rows=20)
    (after,) = after_merge((FILLING,), Merge(buckets=BUCKETS[1:3]), merged)
    assert after.left == (Left(path="b3", row=4), Left(path="m"))
    assert after_merge((FILLING,), Merge(buckets=BUCKETS[4:6]), merged) == (FILLING,)


def test_rows_that_are_left_are_counted_from_where_taking_stopped() -> None:
    assert left_rows((FILLING,), BUCKETS) == {FILLING.store: 6 + 10 + 10}


def test_how_far_stores_are_filled_is_part_of_the_manifest_and_of_an_older_one_nothing_is_known() -> None:
    manifest = Manifest(batch=3, watermark_us=None, plan="p", buckets=BUCKETS, fillings=(FILLING,))
    assert decode(encode(manifest), "m") == manifest
    assert Manifest(batch=3, watermark_us=None, plan="p").fillings == ()
