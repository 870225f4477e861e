"""Windows made narrower by time predicates."""

from __future__ import annotations

from plait.query.model import Operand, OrderedType, Query, Relation, SinkSpec, SourceExpression, band_between
from plait.query.predicates import Band
from plait.query.windows import with_narrow_windows

TIME = SourceExpression(sql="`ts`", columns=("ts",))


def apart(left: str, right: str, low: int | None, high: int | None, kind: OrderedType = "timestamp") -> Band[Operand]:
    sides = Operand(relation=left, expression=TIME), Operand(relation=right, expression=TIME)
    return band_between(*sides, kind, low, high)


def windows(
    relations: dict[str, int | None], *bands: Band[Operand], tables: tuple[str, ...] = ()
) -> dict[str, int | None]:
    query = Query(
        name="q",
        relations=tuple(
            Relation(alias=alias, source=alias, window_us=window, is_table=alias in tables)
            for alias, window in relations.items()
        ),
        predicates=bands,
        output=(),
        sink=SinkSpec(format="noop"),
        text="",
        spark_text="",
    )
    narrowed = with_narrow_windows(query, lambda source: None if source in tables else "`ts`")
    return {relation.alias: relation.window_us for relation in narrowed.relations}


def test_a_band_of_event_times_bounds_both_unbounded_windows():
    assert windows({"a": None, "b": None}, apart("a", "b", -3, 5)) == {"a": 5, "b": 3}


def test_a_stream_whose_partners_must_be_older_is_kept_for_no_time():
    assert windows({"a": None, "b": None}, apart("a", "b", 1, 5)) == {"a": 5, "b": 0}


def test_a_one_sided_bound_narrows_one_window_only():
    assert windows({"a": None, "b": None}, apart("a", "b", None, 5)) == {"a": 5, "b": None}


def test_bounds_add_up_along_a_chain():
    found = windows({"a": None, "b": None, "c": None}, apart("a", "b", -3, 5), apart("b", "c", -1, 2))
    assert found == {"a": 7, "b": 3, "c": 4}


def test_windows_are_bounds_too():
    assert windows({"a": None, "b": 10}, apart("a", "b", None, 5)) == {"a": 5, "b": 10}
    assert windows({"a": None, "b": 2, "c": None}, apart("a", "b", None, 5)) == {"a": 7, "b": 2, "c": None}


def test_a_window_never_grows():
    assert windows({"a": 4, "b": 4}, apart("a", "b", -30, 50)) == {"a": 4, "b": 4}


def test_a_stream_that_no_bound_reaches_keeps_all_windows():
    assert windows({"a": None, "b": None, "c": None}, apart("a", "b", -3, 5)) == {"a": None, "b": None, "c": None}


def test_tables_and_other_columns_say_nothing_about_time():
    assert windows({"a": 9, "t": None}, apart("a", "t", -1, 1), tables=("t",)) == {"a": 9, "t": None}
    assert windows({"a": None, "b": None}, apart("a", "b", -1, 1, kind="date")) == {"a": None, "b": None}
