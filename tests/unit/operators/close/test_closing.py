"""What a batch makes final: the watermark, the buckets it lets go, and those that stay though nobody needs them."""

from __future__ import annotations

from dataclasses import replace

from plait.operators.close.closing import close
from plait.operators.close.next_manifest import next_manifest
from plait.operators.reports import IngestReport, ProbeReport, ResultFile
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.query.model import Stream
from plait.state.model import END_OF_TIME_US, TABLE_BATCH, Bucket, Forgotten, Manifest, SourceProgress, StoreWindow
from tests.unit.state.builders import described

SECOND = 1_000_000
OPTIONS = example_options("fixed")
RS = plan((example_query("q", "r.a = s.a"),), example_statistics(OPTIONS), OPTIONS)
ST = plan((example_query("q", "s.b = t.b"),), example_statistics(OPTIONS), OPTIONS)
STREAMS = tuple(source for source in OPTIONS.sources if isinstance(source, Stream) and source.name in "rs")


def bucket(store: str, second: float, batch: int = 0) -> Bucket:
    tau = round(second * SECOND)
    return described(store=store, path=f"{store}{second}", tau_min=tau, tau_max=tau, batch_min=batch, batch_max=batch)


def arrived(source: str, second: float, *buckets: Bucket) -> IngestReport:
    return IngestReport(source=source, rows=1, tau_max=round(second * SECOND), buckets=buckets)


def manifest(*buckets: Bucket, **changes: object) -> Manifest:
    sources = tuple(SourceProgress(source=name, rows=1, tau_max=0) for name in "rs")
    return replace(Manifest(batch=0, watermark_us=0, plan="p", sources=sources, buckets=buckets), **changes)  # type: ignore[arg-type]


def test_it_tells_which_buckets_the_watermark_has_passed() -> None:
    before = manifest(bucket("r", 1), bucket("s", 5), bucket("r", 9))
    reports = (arrived("r", 10, bucket("r", 10, 1)), arrived("s", 7, bucket("s", 7, 1)))
    closed = close(before, RS, STREAMS, reports, (), 0)
    # Windows of a second: at 7 s what is older than 6 s can join nothing any more.
    assert closed.watermark_us == 7 * SECOND
    assert [each.path for each in closed.expired] == ["r1", "s5"]
    assert [each.path for each in closed.kept] == ["r9", "r10", "s7"]
    assert {each.source: each.late_before_us for each in closed.sources} == {"r": 7 * SECOND, "s": 7 * SECOND}


def test_a_bucket_of_this_very_batch_may_expire_with_it() -> None:
    reports = (arrived("r", 10, bucket("r", 2, 1), bucket("r", 10, 1)), arrived("s", 10))
    closed = close(manifest(), RS, STREAMS, reports, (), 0)
    assert [each.path for each in closed.expired] == ["r2"]
    assert [each.path for each in closed.kept] == ["r10"]


def test_the_end_of_the_input_passes_every_event_time_and_lets_all_go_that_has_a_window() -> None:
    closed = close(manifest(bucket("r", 1)), RS, STREAMS, (), (), 0, is_end=True)
    assert closed.watermark_us == END_OF_TIME_US
    assert [each.path for each in closed.expired] == ["r1"]
    assert {each.late_before_us for each in closed.sources} == {END_OF_TIME_US}
    following = next_manifest(
        manifest(unfed=1),
        closed,
        plan=RS,
        plan_id="p",
        batch=1,
        ingested=(),
        probed=(),
        publications=(),
        undelivered=(),
        is_fed=False,
        ended=True,
    )
    assert (following.ended, following.unfed, following.spark_batch) == (True, 2, -1)


def test_without_a_watermark_nothing_expires() -> None:
    closed = close(None, RS, STREAMS, (arrived("r", 10, bucket("r", 1)),), (), 0)
    assert (closed.watermark_us, closed.expired) == (None, ())


def test_a_store_that_rests_keeps_its_buckets_until_its_last_window_has_passed() -> None:
    windows = (StoreWindow(store="r", window_us=3 * SECOND), StoreWindow(store="s", window_us=SECOND))
    before = manifest(bucket("r", 5), windows=windows)
    streams = tuple(source for source in OPTIONS.sources if isinstance(source, Stream) and source.name in "st")
    resting = close(before, ST, streams, (arrived("s", 8), arrived("t", 8)), (), 0)
    assert [each.path for each in resting.kept] == ["r5"]
    assert StoreWindow(store="r", window_us=3 * SECOND) in resting.windows
    gone = close(before, ST, streams, (arrived("s", 9), arrived("t", 9)), (), 0)
    assert (gone.kept, [each.path for each in gone.expired], gone.windows) == ((), ["r5"], ())


def test_a_store_whose_window_an_earlier_version_did_not_note_rests_for_good() -> None:
    table = replace(bucket("u", 5, TABLE_BATCH), tau_min=None, tau_max=None)
    before = manifest(bucket("r", 5), bucket("q/s", 5), bucket("r⋈s~0123abcd", 5), table)
    streams = tuple(source for source in OPTIONS.sources if isinstance(source, Stream) and source.name in "st")
    resting = close(before, ST, streams, (arrived("s", 900), arrived("t", 900)), (), 0)
    # What is no stream's can be made again.
    assert [each.path for each in resting.kept] == ["r5", "q/s5"]
    assert resting.windows == tuple(StoreWindow(store=each, window_us=None) for each in ("q/s", "r"))
    following = replace(before, buckets=resting.kept, windows=resting.windows)
    assert close(following, ST, streams, (), (), 0).kept == resting.kept


def test_an_inner_join_has_nothing_that_becomes_final() -> None:
    assert close(manifest(), RS, STREAMS, (arrived("r", 10), arrived("s", 10)), (), 0).found == ()


def test_what_becomes_final_counts_as_results_of_the_batch() -> None:
    closed = close(manifest(), RS, STREAMS, (), (), 0)
    found = ProbeReport(results=(ResultFile(query="q", rows=3),))
    following = next_manifest(
        manifest(),
        replace(closed, found=(found,)),
        plan=RS,
        plan_id="p",
        batch=1,
        ingested=(),
        probed=(ProbeReport(results=(ResultFile(query="q", rows=4),)),),
        publications=(),
        undelivered=(),
    )
    assert [(each.query, each.rows_out) for each in following.queries] == [("q", 7)]


def test_only_rows_that_no_store_of_their_stream_keeps_any_longer_are_forgotten() -> None:
    windows = (StoreWindow(store="p/r", window_us=SECOND), StoreWindow(store="q/r", window_us=5 * SECOND))
    before = manifest(bucket("p/r", 1), bucket("q/r", 1), bucket("q/r", 2), windows=windows)
    streams = tuple(source for source in OPTIONS.sources if isinstance(source, Stream) and source.name in "st")
    at_six = close(before, ST, streams, (arrived("s", 6), arrived("t", 6)), (), 0)
    assert [each.path for each in at_six.expired] == ["p/r1"]
    assert [found.forgotten for found in at_six.sources if found.source == "r"] == [()]
    at_seven = close(before, ST, streams, (arrived("s", 7), arrived("t", 7)), (), 0)
    assert [each.path for each in at_seven.kept] == ["q/r2"]
    assert [found.forgotten for found in at_seven.sources if found.source == "r"] == [
        (Forgotten(rows=bucket("q/r", 1).rows, tau_max_us=SECOND),)
    ]
