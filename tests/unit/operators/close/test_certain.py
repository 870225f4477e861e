"""How far the watermark has come for one query: what decides which rows are certain."""

from __future__ import annotations

from dataclasses import replace

from plait.operators.close.certain import mark_of_query, span_of
from plait.operators.close.certain_sql import Span
from plait.operators.probe.partials import NO_LOW
from plait.query.model import Query, Relation, SinkSpec
from plait.state.model import SourceProgress

QUERY = Query(
    name="q",
    relations=(
        Relation(alias="a", source="r", window_us=5),
        Relation(alias="b", source="s", window_us=5),
        Relation(alias="n", source="nation", is_table=True),
    ),
    predicates=(),
    output=(),
    sink=SinkSpec(format="noop"),
    text="",
    spark_text="",
)


def progress(**bars: int | None) -> tuple[SourceProgress, ...]:
    return tuple(SourceProgress(source=source, late_before_us=bar) for source, bar in bars.items())


def test_nothing_is_certain_before_every_stream_of_the_query_is_held_to_a_watermark() -> None:
    assert mark_of_query(QUERY, progress(r=7)) is None
    assert mark_of_query(QUERY, progress(r=7, s=None)) is None
    assert span_of(QUERY, (), progress(r=7)).last_us == NO_LOW


def test_the_stream_that_is_behind_decides_and_streams_of_other_queries_do_not() -> None:
    assert mark_of_query(QUERY, progress(r=7, s=4, t=1)) == 4


def test_what_one_batch_has_made_certain_the_next_does_not_find_again() -> None:
    first, second = progress(r=7, s=4), progress(r=9, s=9)
    spans = span_of(QUERY, (), first), span_of(QUERY, first, second), span_of(QUERY, second, second)
    assert spans[0] == Span(since_us=NO_LOW + 1, last_us=3)
    assert spans[1] == Span(since_us=4, last_us=8)
    assert spans[2] == Span(since_us=9, last_us=8)


def test_a_query_with_a_table_alone_on_one_side_waits_for_its_stream_only() -> None:
    query = replace(QUERY, relations=QUERY.relations[1:])
    assert mark_of_query(query, progress(r=1, s=4)) == 4
