"""What is found about a row, one scenario for each way in which it can fare. DuckDB stands in for Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest

from plait.errors import OptionError
from plait.query.model import Query, Stream
from plait.runtime.why.evidence import bars_of
from plait.runtime.why.findings import Trace
from plait.runtime.why.question import read_question
from plait.runtime.why.row_frames import BATCH, RelationFrame, relation_frame
from plait.runtime.why.standing import Standing
from plait.runtime.why.tracing import Tracer
from plait.sql import load_script
from tests.property.standin.session import Session
from tests.property.standin.types import arrow_schema, struct_of

SOURCES: Final = """
CREATE STREAM orders (id BIGINT, cust STRING, o_ts TIMESTAMP) USING mine
  TIMESTAMP BY o_ts WINDOW INTERVAL 30 SECONDS DELAY INTERVAL 5 SECONDS;
CREATE STREAM items (oid BIGINT, qty BIGINT, i_ts TIMESTAMP) USING mine
  TIMESTAMP BY i_ts WINDOW INTERVAL 20 SECONDS;
CREATE STREAM trips (item BIGINT, km BIGINT, t_ts TIMESTAMP) USING mine
  TIMESTAMP BY t_ts WINDOW INTERVAL 60 SECONDS;
CREATE TABLE names (cust STRING, name STRING) USING mine;
"""
COLUMNS: Final = {
    "orders": (("id", "bigint"), ("cust", "string"), ("o_ts", "timestamp")),
    "items": (("oid", "bigint"), ("qty", "bigint"), ("i_ts", "timestamp")),
    "trips": (("item", "bigint"), ("km", "bigint"), ("t_ts", "timestamp")),
    "names": (("cust", "string"), ("name", "string")),
}
INNER: Final = "SELECT o.id, i.qty FROM orders o JOIN items i ON o.id = i.oid"
Rows = Sequence[tuple[Any, ...]]
"""Of a stream: two values, the event time in seconds and the batch, None for none yet. Of a table: two values."""

TEN: Final = 1_000_000_000  # microseconds; scenarios count their seconds from here


def at(second: float) -> int:
    return TEN + int(second * 1_000_000)


def rows_of(session: Session, name: str, rows: Rows) -> Any:
    is_table = name == "names"
    columns = (*COLUMNS[name], (BATCH, "bigint"))
    made = [
        (*row, -1) if is_table else (row[0], row[1], None if row[2] is None else at(row[2]), row[3]) for row in rows
    ]
    schema = arrow_schema(columns)
    arrays = [pa.array([row[place] for row in made], field.type) for place, field in enumerate(schema)]
    return session.createDataFrame(pa.Table.from_arrays(arrays, schema=schema), struct_of(columns))


def standing(mark: float | None = None, batch: int = 9, **more: Any) -> Standing:
    bars = dict.fromkeys(("orders", "items", "trips"), None if mark is None else at(mark))
    mark_us = None if mark is None else at(mark)
    return Standing(spark_batch=batch, bars=bars, mark_us=mark_us, holder="items", **more)


def asked(
    select: str, row: str, where: Standing, order: Mapping[str, Sequence[str]] | None = None, **rows: Rows
) -> Trace:
    session = Session()
    script = load_script(f"{SOURCES}CREATE QUERY q INTO noop AS {select};", base="/nowhere")
    query: Query = script.queries[0]
    sources = {source.name: source for source in script.sources}
    frames = {name: rows_of(session, name, rows.get(name, ())) for name in sources}
    streams = [each for each in sources.values() if isinstance(each, Stream) and rows.get(each.name)]
    bars = bars_of(session, streams, frames)  # type: ignore[arg-type]

    def frame_of(alias: str, condition: str | None) -> RelationFrame:
        source = sources[query.relation(alias).source]
        return relation_frame(query, alias, source, frames[source.name], bars.get(source.name, {}), condition)

    question = read_question(query, sources, row)
    tracer = Tracer(spark=session, query=query, standing=where, frame_of=frame_of, order=order or {})  # type: ignore[arg-type]
    return tracer.trace(question.alias, question.condition, question.shown)


def kinds(trace: Trace) -> list[str]:
    return [finding.kind for finding in trace.findings]


ANN: Final = (1, "ann", 0, 0)


def test_a_row_that_is_nowhere_has_not_arrived() -> None:
    trace = asked(INNER, "o.id = 2", standing(), orders=[ANN])
    assert kinds(trace) == ["not arrived"]
    assert "no row of stream orders with o.id = 2" in trace.answer.text


def test_a_row_that_no_batch_has_read_waits_for_the_next() -> None:
    assert kinds(asked(INNER, "o.id = 1", standing(), orders=[(1, "ann", 0, None)])) == ["not read yet"]


def test_a_row_without_an_event_time_is_a_bad_one() -> None:
    assert kinds(asked(INNER, "o.id = 1", standing(), orders=[(1, "ann", None, 0)])) == ["bad row"]


def test_a_row_that_came_after_the_watermark_had_passed_it_is_late() -> None:
    orders = [(7, "bob", 100, 0), (1, "ann", 94, 1), (2, "ann", 95, 1)]
    trace = asked(INNER, "o.id = 1", standing(95), orders=orders, items=[(7, 1, 110, 0)])
    assert kinds(trace) == ["late"]
    assert "batch 1" in trace.answer.text
    in_time = asked(INNER, "o.id = 2", standing(95), orders=orders, items=[(7, 1, 110, 0)])
    assert kinds(in_time)[0] == "met"


def test_a_row_that_the_query_does_not_select_is_left_out_and_the_condition_named() -> None:
    trace = asked(f"{INNER} WHERE o.cust <> 'ann' AND o.id > 0", "o.id = 1", standing(), orders=[ANN])
    assert kinds(trace) == ["selection false"]
    assert "o.cust <> 'ann' is not true" in trace.answer.text
    assert "o.id > 0" not in trace.answer.text


def test_a_row_whose_key_is_null_equals_nothing() -> None:
    trace = asked(INNER, "o.cust = 'ann'", standing(), orders=[(None, "ann", 0, 0)], items=[(None, 1, 0, 0)])
    assert kinds(trace) == ["null key"]
    assert "o.id is NULL" in trace.answer.text


def test_a_row_without_a_partner_waits_until_its_window_is_over_and_for_whom_is_told() -> None:
    trace = asked(INNER, "o.id = 1", standing(12), orders=[ANN], items=[(2, 1, 0, 0)])
    assert kinds(trace) == ["met", "no partner", "waits"]
    assert dict(trace.answer.facts) == {"until_us": at(30), "watermark_us": at(12), "held_back_by": "items"}
    assert (
        "until the watermark passes 1970-01-01 00:17:10; it is at 1970-01-01 00:16:52, held back by stream items"
        in (trace.answer.text)
    )


def test_a_row_without_a_partner_has_none_for_good_once_its_window_is_over() -> None:
    assert kinds(asked(INNER, "o.id = 1", standing(30), orders=[ANN])) == ["met", "no partner", "waits"]
    assert kinds(asked(INNER, "o.id = 1", standing(30.000001), orders=[ANN])) == ["met", "no partner"]
    assert kinds(asked(INNER, "o.id = 1", standing(0, ended=True), orders=[ANN])) == ["met", "no partner"]


@pytest.mark.parametrize(("second", "outside"), [(31, 1), (50, 20)])
def test_a_partner_that_comes_too_late_lies_outside_the_window_of_the_row(second: int, outside: int) -> None:
    trace = asked(INNER, "o.id = 1", standing(99), orders=[ANN], items=[(1, 1, second, 0), (1, 1, 90, 0)])
    assert kinds(trace) == ["met", "outside window"]
    facts = dict(trace.answer.facts)
    assert (facts["outside_us"], facts["window_of"], facts["partner_tau_us"]) == (outside * 1_000_000, "o", at(second))
    assert f"after the window of o (30 s), by {outside} s" in trace.answer.text


def test_a_partner_that_is_too_old_lies_outside_its_own_window() -> None:
    trace = asked(INNER, "o.id = 1", standing(99), orders=[(1, "ann", 50, 0)], items=[(1, 1, 29, 0)])
    assert kinds(trace) == ["met", "outside window"]
    assert dict(trace.answer.facts)["outside_us"] == 1_000_000
    assert "older than its own window (20 s) allows, by 1 s" in trace.answer.text


@pytest.mark.parametrize("second", [30, -20])
def test_a_partner_at_the_very_end_of_a_window_is_met(second: int) -> None:
    trace = asked(INNER, "o.id = 1", standing(), orders=[ANN], items=[(1, 1, second, 3)])
    assert kinds(trace) == ["met", "met", "came"]
    assert dict(trace.answer.facts)["batch"] == 3


def test_a_partner_that_was_late_is_not_joined() -> None:
    orders, items = [(1, "ann", 60, 0), (9, "bob", 100, 0)], [(9, 1, 100, 0), (1, 1, 65, 1)]
    trace = asked(INNER, "o.id = 1", standing(95), orders=orders, items=items)
    assert kinds(trace) == ["met", "partner late"]


def test_a_partner_that_is_not_selected_is_named_with_the_condition() -> None:
    trace = asked(f"{INNER} WHERE i.qty > 5", "o.id = 1", standing(99), orders=[ANN], items=[(1, 5, 1, 0)])
    assert kinds(trace) == ["met", "partner not selected"]
    assert "i.qty > 5 is not true" in trace.answer.text


def test_a_partner_that_no_batch_has_read_is_told() -> None:
    trace = asked(INNER, "o.id = 1", standing(12), orders=[ANN], items=[(1, 5, 1, None)])
    assert kinds(trace) == ["met", "partner not read", "waits"]


def test_a_result_came_with_the_batch_of_its_last_member() -> None:
    items = [(1, 5, 1, 4), (1, 5, 2, 6)]
    assert dict(asked(INNER, "o.id = 1", standing(), orders=[ANN], items=items).answer.facts)["batch"] == 4
    assert dict(asked(INNER, "i.oid = 1", standing(), orders=[(1, "a", 0, 5)], items=items).answer.facts)["batch"] == 5


def test_a_result_from_before_the_query_is_not_emitted() -> None:
    trace = asked(INNER, "o.id = 1", standing(since=5), orders=[ANN], items=[(1, 5, 1, 4)])
    assert kinds(trace)[-1] == "before the query"
    assert kinds(asked(INNER, "o.id = 1", standing(since=5), orders=[ANN], items=[(1, 5, 1, 5)]))[-1] == "came"


def test_results_of_a_query_that_is_set_aside_or_not_delivered_are_told_with_the_reason() -> None:
    rows: dict[str, Rows] = {"orders": [ANN], "items": [(1, 5, 1, 0)]}
    aside = asked(INNER, "o.id = 1", standing(set_aside="division by zero"), **rows)
    assert (aside.answer.kind, "division by zero" in aside.answer.text) == ("set aside", True)
    full = asked(INNER, "o.id = 1", standing(undelivered="no space left"), **rows)
    assert (full.answer.kind, "no space left" in full.answer.text) == ("not delivered", True)


THREE: Final = f"{INNER} JOIN trips t ON i.qty = t.item"


@pytest.mark.parametrize(
    ("order", "missing"), [({"o": ("o", "i", "t")}, "t"), ({}, "t"), ({"i": ("i", "t", "o")}, "t")]
)
def test_the_step_that_finds_no_partner_is_the_one_of_the_probe_order(order: Mapping[str, Any], missing: str) -> None:
    rows: dict[str, Rows] = {"orders": [ANN], "items": [(1, 5, 1, 0)], "trips": [(6, 1, 2, 0)]}
    row = "i.oid = 1" if "i" in order else "o.id = 1"
    trace = asked(THREE, row, standing(99), order, **rows)
    assert (trace.answer.kind, trace.answer.relation) == ("no partner", missing)
    assert "i.qty = t.item" in trace.answer.text


def test_all_members_have_to_lie_within_the_window_of_the_oldest() -> None:
    rows: dict[str, Rows] = {"orders": [ANN], "items": [(1, 5, 15, 0)], "trips": [(5, 1, 33, 0)]}
    trace = asked(THREE, "o.id = 1", standing(99), **rows)
    assert (trace.answer.kind, trace.answer.relation) == ("outside window", "t")
    assert dict(trace.answer.facts)["outside_us"] == 3_000_000


def test_a_condition_on_two_relations_is_worded_as_it_was_written() -> None:
    select = "SELECT o.id FROM orders o JOIN items i ON o.id + i.qty > 10 AND abs(o.id - i.oid) < 2"
    rows: dict[str, Rows] = {"orders": [ANN], "items": [(1, 5, 1, 0)]}
    trace = asked(select, "o.id = 1", standing(99), **rows)
    assert kinds(trace) == ["met", "no partner"]
    met = asked(select, "o.id = 1", standing(99), orders=[ANN], items=[(2, 10, 1, 0), (3, 10, 1, 0)])
    assert kinds(met) == ["met", "met", "came"]


def test_a_table_that_has_no_row_will_have_none() -> None:
    select = "SELECT o.id FROM orders o JOIN items i ON o.id = i.oid JOIN names n ON o.cust = n.cust"
    rows: dict[str, Rows] = {"orders": [ANN], "items": [(1, 5, 1, 0)]}
    trace = asked(select, "o.id = 1", standing(), names=[("bob", "Bob")], **rows)
    assert (kinds(trace)[-1], trace.answer.relation) == ("no partner", "n")
    assert kinds(asked(select, "o.id = 1", standing(), names=[("ann", "Ann")], **rows))[-1] == "came"


def test_groups_come_when_their_windows_are_over() -> None:
    select = (
        "SELECT window.start, count(*) AS n FROM orders o JOIN items i ON o.id = i.oid "
        "GROUP BY window(o.o_ts, '1 minute')"
    )
    rows: dict[str, Rows] = {"orders": [ANN], "items": [(1, 5, 1, 0)]}
    trace = asked(select, "o.id = 1", standing(40), **rows)
    assert trace.answer.kind == "window open"
    until = dict(trace.answer.facts)["until_us"]
    assert isinstance(until, int)
    over = asked(select, "o.id = 1", standing((until - TEN) / 1_000_000), **rows)
    assert over.answer.kind == "window over"


LEFT: Final = "SELECT o.id, i.qty FROM orders o LEFT JOIN items i ON o.id = i.oid"
ANTI: Final = "SELECT o.id FROM orders o LEFT ANTI JOIN items i ON o.id = i.oid"
SEMI: Final = "SELECT o.id FROM orders o LEFT SEMI JOIN items i ON o.id = i.oid"
RIGHT: Final = "SELECT o.id, i.qty FROM orders o RIGHT JOIN items i ON o.id = i.oid"


@pytest.mark.parametrize("select", [LEFT, ANTI])
def test_a_row_without_a_partner_is_certain_once_its_window_is_over(select: str) -> None:
    waits = asked(select, "o.id = 1", standing(30), orders=[ANN])
    assert kinds(waits) == ["met", "no partner", "waits"]
    assert dict(waits.answer.facts) == {"until_us": at(30), "watermark_us": at(30), "held_back_by": "items"}
    assert kinds(asked(select, "o.id = 1", standing(30.000001), orders=[ANN])) == ["met", "no partner", "certain"]


def test_a_left_join_has_a_result_at_the_first_partner() -> None:
    assert kinds(asked(LEFT, "o.id = 1", standing(), orders=[ANN], items=[(1, 5, 1, 4)])) == ["met", "met", "came"]


def test_a_row_of_the_added_relation_of_a_left_join_is_nothing_by_itself() -> None:
    trace = asked(LEFT, "i.oid = 1", standing(99), items=[(1, 5, 1, 4)])
    assert kinds(trace) == ["met", "no partner"]
    assert trace.answer.relation == "o"


def test_an_anti_join_keeps_out_what_has_a_partner() -> None:
    rows: dict[str, Rows] = {"orders": [ANN], "items": [(1, 5, 1, 4)]}
    assert kinds(asked(ANTI, "o.id = 1", standing(99), **rows)) == ["met", "has partner"]
    of_partner = asked(ANTI, "i.oid = 1", standing(99), **rows)
    assert kinds(of_partner) == ["met", "met", "has partner"]
    assert "keeps out the row it meets" in of_partner.answer.text


def test_a_semi_join_waits_for_the_first_partner() -> None:
    assert kinds(asked(SEMI, "o.id = 1", standing(12), orders=[ANN])) == ["met", "no partner", "waits"]
    assert kinds(asked(SEMI, "o.id = 1", standing(40), orders=[ANN])) == ["met", "no partner"]
    assert kinds(asked(SEMI, "o.id = 1", standing(), orders=[ANN], items=[(1, 5, 1, 4)])) == ["met", "met", "came"]


def test_a_row_of_the_right_side_stays_alone_once_its_window_is_over() -> None:
    waits = asked(RIGHT, "i.oid = 1", standing(21), items=[(1, 5, 1, 4)])
    assert kinds(waits) == ["met", "no partner", "waits"]
    assert dict(waits.answer.facts)["until_us"] == at(21)
    assert kinds(asked(RIGHT, "i.oid = 1", standing(22), items=[(1, 5, 1, 4)]))[-1] == "certain"
    assert kinds(asked(RIGHT, "o.id = 1", standing(99), orders=[ANN])) == ["met", "no partner"]


def test_a_condition_after_the_joins_is_asked_of_rows_without_a_partner_too() -> None:
    where = f"{LEFT} WHERE i.qty IS NULL"
    assert kinds(asked(where, "o.id = 1", standing(99), orders=[ANN]))[-1] == "certain"
    trace = asked(where, "o.id = 1", standing(99), orders=[ANN], items=[(1, 5, 1, 4)])
    assert kinds(trace) == ["met", "met", "where false"]


def test_a_condition_in_on_keeps_partners_away_and_not_the_row() -> None:
    select = f"{LEFT} AND i.qty > 5"
    assert kinds(asked(select, "o.id = 1", standing(99), orders=[ANN], items=[(1, 5, 1, 4)]))[-1] == "certain"
    assert kinds(asked(select, "o.id = 1", standing(99), orders=[ANN], items=[(1, 6, 1, 4)]))[-1] == "came"


def test_a_null_key_has_no_partner_and_so_is_certain_to_be_without() -> None:
    trace = asked(LEFT, "o.cust = 'ann'", standing(99), orders=[(None, "ann", 0, 0)], items=[(None, 5, 1, 4)])
    assert kinds(trace)[-1] == "certain"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("id = 1", "names no relation"),
        ("x.id = 1", "no relation 'x'"),
        ("o.nothing = 1", "no condition on a row of o"),
        ("o.id = i.oid", "no condition on a row of o"),
        ("o.id +", "no condition on a row of o"),
        ("o.id = 1) GROUP BY (o.id", "no condition on a row"),
        ("o.id = 1 UNION SELECT 1", "no condition on a row of o"),
    ],
)
def test_what_is_no_condition_on_a_row_is_refused(row: str, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        asked(INNER, row, standing())


def test_the_answer_is_told_to_people_and_programs_alike() -> None:
    trace = asked(INNER, "o.id = 1", standing(99), orders=[ANN])
    assert trace.as_text().splitlines()[0] == "query q, row o.id = 1"
    told = trace.as_json()
    assert told["answer"] == told["findings"][-1]
    assert (told["answer"]["kind"], told["answer"]["relation"]) == ("no partner", "i")
