"""How far queries over groups have come, and what stays of groups that nobody reads any more."""

from __future__ import annotations

from dataclasses import replace

from plait.operators.close.levels import (
    Maker,
    changed_streams,
    have_ended,
    marks_in_the_end,
    marks_of,
    taken_after,
    watermark_of,
    with_streams,
    with_taken,
)
from plait.query.model import Query, Relation, SinkSpec, Stream
from plait.query.time_windows import TimeWindow
from plait.state.model import END_OF_TIME_US, MadeGroups, Manifest, OpenGroups, SourceProgress

BY_TEN = TimeWindow(relation="r", column="ts", size_us=10, slide_us=10, start_us=0, lag_us=0)
LAGGING = replace(BY_TEN, lag_us=7)


def query(name: str, *sources: str) -> Query:
    relations = tuple(Relation(alias=f"r{number}", source=source) for number, source in enumerate(sources))
    return Query(
        name=name, relations=relations, predicates=(), output=(), sink=SinkSpec(format="noop"), text="", spark_text=""
    )


def maker(name: str, window: TimeWindow, *sources: str) -> Maker:
    return Maker(query=query(name, *sources), window=window, identity="1")


def manifest(**over_until_us: int | None) -> Manifest:
    groups = tuple(OpenGroups(query=name, identity="1", over_until_us=end) for name, end in over_until_us.items())
    return Manifest(batch=1, watermark_us=50, plan="", groups=groups)


def test_what_was_written_when_a_batch_began_has_been_taken_in_after_it() -> None:
    makers = {name: maker(name, BY_TEN, "s") for name in ("one", "two", "new")}
    assert taken_after(manifest(one=40, two=None), makers) == {"one": 40, "two": None, "new": None}
    assert taken_after(None, makers) == dict.fromkeys(makers)


def test_what_another_query_of_that_name_had_written_counts_for_nothing() -> None:
    other = replace(maker("one", BY_TEN, "s"), identity="2")
    assert taken_after(manifest(one=40), {"one": other}) == {"one": None}


def test_groups_have_come_to_the_end_of_time_once_none_of_their_windows_is_open() -> None:
    ended = manifest(one=END_OF_TIME_US, two=END_OF_TIME_US - 7, three=END_OF_TIME_US - 8)
    windows = {"one": BY_TEN, "two": LAGGING, "three": LAGGING}
    taken = taken_after(ended, {name: maker(name, window, "s") for name, window in windows.items()})
    assert taken == {"one": END_OF_TIME_US, "two": END_OF_TIME_US, "three": END_OF_TIME_US - 8}
    progress = with_taken(tuple(SourceProgress(source=name) for name in sorted(taken)), taken)
    assert have_ended(["one", "two"], progress)
    assert not have_ended(taken, progress)


def test_a_mark_never_falls() -> None:
    progress = (SourceProgress(source="one", late_before_us=40), SourceProgress(source="s", late_before_us=9))
    assert marks_of(["one"], with_taken(progress, {"one": 30})) == {"one": 40}
    assert marks_of(["one"], with_taken(progress, {"one": 50})) == {"one": 50}
    assert with_taken(progress, {"one": None}) == progress


def test_a_query_has_come_to_the_lowest_of_the_watermark_and_the_groups_that_it_reads() -> None:
    marks = {"one": 40, "two": None}
    assert watermark_of(query("q", "s"), 50, marks) == 50
    assert watermark_of(query("q", "s", "one"), 50, marks) == 40
    assert watermark_of(query("q", "s", "one"), 30, marks) == 30
    assert watermark_of(query("q", "one", "two"), 50, marks) is None


def test_in_the_end_each_level_comes_to_where_the_one_below_lets_it() -> None:
    makers = {
        "one": maker("one", LAGGING, "s"),
        "two": maker("two", LAGGING, "one", "s"),
        "three": maker("three", BY_TEN, "two", "one"),
    }
    assert marks_in_the_end(makers, 50) == {"one": 43, "two": 36, "three": 36}
    assert marks_in_the_end(makers, None) == dict.fromkeys(makers)
    assert set(marks_in_the_end(makers, END_OF_TIME_US).values()) == {END_OF_TIME_US}


def test_what_is_stored_is_forgotten_only_once_the_last_level_has_passed_it() -> None:
    state = Manifest(
        batch=1,
        watermark_us=50,
        plan="",
        sources=(SourceProgress(source="one", late_before_us=40), SourceProgress(source="s", late_before_us=60)),
        made=(MadeGroups(stream="one", identity="1"),),
    )
    assert state.oldest_us == 40
    assert replace(state, made=()).oldest_us == 50
    assert replace(state, made=(MadeGroups(stream="two", identity="1"),)).oldest_us is None


def test_nothing_stays_of_groups_that_nobody_reads_or_that_are_others_now() -> None:
    state = Manifest(
        batch=1,
        watermark_us=50,
        plan="",
        sources=tuple(SourceProgress(source=name, late_before_us=40) for name in ("one", "s", "two")),
        made=(MadeGroups(stream="one", identity="1"), MadeGroups(stream="two", identity="1")),
    )
    streams = [Stream(name="one", time="e", derived="1"), Stream(name="two", time="e", derived="2")]
    assert list(changed_streams(state, streams)) == ["two"]
    left = with_streams(state, [*streams, Stream(name="three", time="e", derived="3")])
    assert left.made == (
        state.made[0],
        MadeGroups(stream="three", identity="3"),
        MadeGroups(stream="two", identity="2"),
    )
    assert [each.source for each in left.sources] == ["one", "s"]
    assert with_streams(state, [streams[0], replace(streams[1], derived="1")]) == state


def test_a_stream_of_groups_begins_without_what_is_known_of_another_of_its_name() -> None:
    state = Manifest(
        batch=1,
        watermark_us=50,
        plan="",
        sources=tuple(SourceProgress(source=name, late_before_us=40) for name in ("one", "s")),
    )
    left = with_streams(state, [Stream(name="one", time="e", derived="1")])
    assert [each.source for each in left.sources] == ["s"]
    assert marks_of(["one"], with_taken(left.sources, {"one": None})) == {"one": None}
