"""What a query's own store takes over of one that kept all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.operators.close.closing import close
from plait.operators.close.keeping import with_all_kept
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.query.model import Stream
from plait.state.model import Bucket, Manifest, StoreWindow
from tests.unit.state.builders import described

OPTIONS = example_options("independent")
PLAN = plan((example_query("q1", "r.a = s.a"),), example_statistics(OPTIONS), OPTIONS)
HOUR, TEN_SECONDS = 3600 * 1_000_000, 10 * 1_000_000


def bucket(store: str, first: int, last: int | None = None) -> Bucket:
    path = f"{store}{first}"
    return described(store=store, path=path, batch_min=first, batch_max=first if last is None else last)


def taken(own: StoreWindow | None, other: StoreWindow, *buckets: Bucket) -> list[str]:
    """Return the files that q1's store has when q1 comes back."""
    windows = (other,) if own is None else (own, other)
    before = Manifest(batch=9, watermark_us=0, plan="p", buckets=buckets, windows=windows)
    return [each.path for each in with_all_kept(PLAN, before).buckets if each.store == "q1/s"]


OTHER = StoreWindow(store="q2/s", window_us=TEN_SECONDS, keeps_all=True, since=4)
LATER = (bucket("q2/s", 3), bucket("q2/s", 4), bucket("q2/s", 6))


def test_a_store_keeps_its_rows_of_before_the_stream_kept_all_and_adds_what_came_later() -> None:
    own = StoreWindow(store="q1/s", window_us=TEN_SECONDS)
    assert taken(own, OTHER, bucket("q1/s", 0), bucket("q1/s", 3), *LATER) == ["q1/s0", "q1/s3", "q2/s4", "q2/s6"]


def test_a_store_keeps_its_rows_where_the_one_that_kept_all_has_a_shorter_window() -> None:
    own = StoreWindow(store="q1/s", window_us=HOUR, keeps_all=True, since=0)
    other = replace(OTHER, since=0)
    assert taken(own, other, bucket("q1/s", 0), bucket("q1/s", 4), *LATER) == ["q1/s0", "q1/s4", "q2/s6"]


def test_rows_that_are_merged_with_earlier_ones_are_not_taken_twice() -> None:
    own = StoreWindow(store="q1/s", window_us=HOUR)
    merged = (bucket("q2/s", 2, 5), bucket("q2/s", 6))
    assert taken(own, OTHER, bucket("q1/s", 0), bucket("q1/s", 3), *merged) == ["q1/s0", "q1/s3", "q2/s6"]


@pytest.mark.parametrize("own", [None, StoreWindow(store="q1/s", window_us=TEN_SECONDS, keeps_all=True, since=2)])
def test_a_store_gives_up_what_it_has_for_one_that_has_all_of_it(own: StoreWindow | None) -> None:
    mine = () if own is None else (bucket("q1/s", 4),)
    assert taken(own, OTHER, *mine, *LATER) == ["q2/s3", "q2/s4", "q2/s6"]


def keeping(planned: Plan, keeps_all: bool) -> Plan:
    return replace(planned, stores=tuple(replace(store, keeps_all=keeps_all) for store in planned.stores))


def test_it_is_noted_since_when_a_store_keeps_all() -> None:
    streams = tuple(source for source in OPTIONS.sources if isinstance(source, Stream) and source.name in "rs")
    before = Manifest(batch=2, watermark_us=None, plan="p", buckets=(bucket("q1/s", 1),))
    seen = []
    for keeps_all in (False, True, True, False, True):
        closed = close(before, keeping(PLAN, keeps_all), streams, (), (), 0)
        before = replace(before, batch=before.batch + 1, buckets=closed.kept, windows=closed.windows)
        seen += [(found.keeps_all, found.since) for found in closed.windows]
    assert seen == [(False, None), (True, 4), (True, 4), (False, None), (True, 7)]
