"""Outer, semi and anti joins: what they mean join by join, and what is kept for them."""

from __future__ import annotations

import pytest

from plait.errors import UnsupportedQueryError
from plait.query.model import Column, Query, SinkSpec, Source, Stream, Table
from plait.query.predicates import Equality, operands_of
from plait.sql import bind_query

SECOND = 1_000_000


def stream(name: str, window_us: int | None) -> Stream:
    columns = (Column(name="k", type="bigint"), Column(name="x", type="int"), Column(name="ts", type="timestamp"))
    return Stream(name=name, time="ts", schema=columns, window_us=window_us)


SOURCES: dict[str, Source] = {
    "a": stream("a", 10 * SECOND),
    "b": stream("b", 20 * SECOND),
    "c": stream("c", 40 * SECOND),
    "u": stream("u", None),
    "t2": Stream(
        name="t2", time="at", schema=(Column(name="k", type="bigint"), Column(name="at", type="timestamp")), window_us=1
    ),
    "t": Table(name="t", schema=(Column(name="k", type="bigint"), Column(name="x", type="int"))),
}


def bound(select: str) -> Query:
    return bind_query(name="q", select=select, sink=SinkSpec(format="noop"), sources=SOURCES)


def kinds(select: str) -> list[tuple[str | None, str]]:
    return [(step.kind, step.alias) for step in bound(select).joins]


def test_joins_apply_in_the_order_they_are_written_and_where_comes_last() -> None:
    select = (
        "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.k = c.k LEFT ANTI JOIN t ON t.k = c.k WHERE b.x IS NULL"
    )
    assert kinds(select) == [("left", "b"), ("inner", "c"), ("anti", "t"), (None, "")]


def test_exists_and_in_are_semi_and_anti_joins_after_where() -> None:
    select = (
        "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k WHERE a.x IN (SELECT t.x FROM t) AND b.x IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM c WHERE c.k = a.k AND c.x > 3)"
    )
    assert kinds(select) == [("left", "b"), (None, ""), ("semi", "t"), ("anti", "c")]
    anti = bound(select).joins[-1]
    assert [type(each) for each in anti.predicates] == [Equality]
    assert [(each.relation, each.expression.sql) for each in anti.conditions] == [("c", "`x` > 3")]


def test_spark_is_told_of_joins_where_it_wants_no_subqueries() -> None:
    query = bound(
        "SELECT a.k FROM a WHERE a.x > 1 AND NOT EXISTS (SELECT 1 FROM b c2 WHERE c2.k = a.k AND c2.x <> 2) "
        "AND a.x IN (SELECT x FROM t)"
    )
    assert query.spark_text == (
        "SELECT a.k FROM {a} AS `a`  LEFT ANTI JOIN {b} AS `c2` ON (`c2`.`k` = `a`.`k`) AND (`c2`.`x` <> 2) "
        "LEFT SEMI JOIN {t} AS `t` ON ((`a`.`x`) = (`t`.`x`)) WHERE a.x > 1 AND TRUE AND TRUE"
    )


@pytest.mark.parametrize(
    ("joins", "expected"),
    [
        ("a LEFT JOIN b ON a.k = b.k WHERE b.x > 5", []),
        ("a LEFT JOIN b ON a.k = b.k WHERE b.x IS NULL", [("left", "b"), (None, "")]),
        ("a RIGHT JOIN b ON a.k = b.k WHERE a.x = 1", []),
        ("a FULL JOIN b ON a.k = b.k WHERE a.x = 1", [("left", "b"), (None, "")]),
        ("a FULL JOIN b ON a.k = b.k WHERE b.x = 1", [("right", "b"), (None, "")]),
        ("a FULL JOIN b ON a.k = b.k WHERE a.x = 1 AND b.x = 1", []),
        ("a FULL JOIN b ON a.k = b.k WHERE a.x < b.x", [("full", "b"), (None, "")]),
        ("a FULL JOIN b ON a.k = b.k WHERE a.x = b.x", []),
        ("a LEFT JOIN b ON a.k = b.k JOIN c ON b.k = c.k", []),
        ("a LEFT JOIN b ON a.k = b.k JOIN c ON a.k = c.k", [("left", "b"), ("inner", "c")]),
        ("a LEFT JOIN b ON a.k = b.k LEFT SEMI JOIN c ON b.k = c.k", [("inner", "b"), ("semi", "c")]),
        ("a LEFT JOIN b ON a.k = b.k LEFT ANTI JOIN c ON b.k = c.k", [("left", "b"), ("anti", "c")]),
        ("u LEFT JOIN b ON u.k = b.k WHERE b.x IS NOT NULL", []),
    ],
)
def test_an_outer_join_whose_rows_without_partner_cannot_be_results_is_an_inner_one(
    joins: str, expected: list[tuple[str | None, str]]
) -> None:
    assert kinds(f"SELECT 1 AS one FROM {joins}") == expected


def test_a_condition_says_whether_it_holds_where_there_is_no_row() -> None:
    where = bound("SELECT 1 AS one FROM a LEFT JOIN b ON a.k = b.k AND b.x > 1 WHERE b.x IS NULL AND a.x > 1").joins
    found = [(each.expression.sql, each.holds_of_nothing) for step in where for each in step.conditions]
    assert sorted(found) == [("`x` > 1", False), ("`x` > 1", False), ("`x` IS NULL", True)]


def test_a_stream_of_unbounded_window_is_joined_with_tables_all_the_same() -> None:
    assert kinds("SELECT u.k, t.x FROM u LEFT JOIN t ON u.k = t.k") == [("left", "t")]
    assert kinds("SELECT u.k FROM u LEFT ANTI JOIN t ON u.k = t.k") == [("anti", "t")]
    assert kinds("SELECT u.k, t.x FROM t RIGHT JOIN u ON u.k = t.k") == [("right", "u")]


def kept_us(select: str) -> dict[str, int | None]:
    return {each.alias: None if each.waiting is None else each.waiting.kept_us for each in bound(select).relations}


def test_what_a_row_may_meet_is_kept_until_the_row_closes() -> None:
    assert kept_us("SELECT 1 AS one FROM a LEFT JOIN b ON a.k = b.k") == {"a": 10 * SECOND, "b": 30 * SECOND}
    assert kept_us("SELECT 1 AS one FROM a RIGHT JOIN b ON a.k = b.k") == {"a": 30 * SECOND, "b": 30 * SECOND}
    chain = "SELECT 1 AS one FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k LEFT JOIN t ON t.k = c.k"
    assert kept_us(chain) == {"a": 10 * SECOND, "b": 20 * SECOND, "c": 50 * SECOND, "t": None}
    full = "SELECT 1 AS one FROM a FULL JOIN b ON a.k = b.k FULL JOIN c ON b.k = c.k"
    assert set(kept_us(full).values()) == {2 * 70 * SECOND}


def test_rows_that_no_result_depends_on_are_not_kept() -> None:
    query = bound(
        "SELECT 1 AS one FROM a LEFT JOIN b ON a.k = b.k AND a.x > 1 AND b.x > 2 WHERE a.x < 9 AND b.x IS NULL"
    )
    waiting = {each.alias: each.waiting for each in query.relations}
    a, b = waiting["a"], waiting["b"]
    assert a is not None
    assert b is not None
    assert [each.sql for each in a.selections] == ["`x` < 9"]
    assert [each.sql for each in a.conditions] == ["`x` > 1"]
    assert [each.sql for each in b.selections] == ["`x` > 2"]
    assert [each.sql for each in b.conditions] == ["`x` IS NULL"]


def test_a_join_that_keeps_its_right_side_depends_on_rows_that_where_rejects() -> None:
    query = bound("SELECT 1 AS one FROM a FULL JOIN b ON a.k = b.k AND b.x > 2 WHERE a.x IS NULL")
    waiting = {each.alias: each.waiting for each in query.relations}
    assert {alias: None if each is None else each.selections for alias, each in waiting.items()} == {"a": (), "b": ()}


def test_using_shows_the_side_that_always_has_a_row() -> None:
    right = bound("SELECT k FROM a RIGHT JOIN b USING (k)")
    assert right.output[0].expression.sql == "`b.k`"
    left = bound("SELECT * FROM a LEFT JOIN t USING (k)")
    assert [each.expression.sql for each in left.output] == ["`a.k`", "`a.x`", "`a.ts`", "`t.x`"]


def test_using_of_a_full_join_shows_whichever_side_has_a_row() -> None:
    query = bound("SELECT k + 1 AS more, struct(k) AS s, a.k AS own FROM a FULL JOIN b USING (k)")
    assert [each.expression.sql for each in query.output] == [
        "coalesce(`a.k`, `b.k`) + 1",
        "struct(coalesce(`a.k`, `b.k`) AS `k`)",
        "`a.k`",
    ]
    star = bound("SELECT * FROM a NATURAL FULL JOIN t2")
    assert star.output[0].expression.sql == "coalesce(`a.k`, `t2.k`)"


def test_windows_of_time_wait_for_the_rows_that_may_have_no_partner() -> None:
    select = "SELECT count(*) AS n, count(b.k) AS m FROM a LEFT JOIN {} ON a.k = b.k GROUP BY window(a.ts, '5 seconds')"
    lags = [bound(select.format(added)).aggregation for added in ("b", "t b")]
    assert [None if each is None else each.window.lag_us for each in lags] == [10 * SECOND, 0]
    tested = bound(
        "SELECT DISTINCT window(a.ts, '5 seconds') AS w FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"
    )
    assert tested.aggregation is not None
    assert tested.aggregation.window.lag_us == 10 * SECOND


def test_what_a_join_only_looks_into_has_no_columns() -> None:
    query = bound("SELECT * FROM a LEFT SEMI JOIN b ON a.k = b.k")
    assert [each.expression.sql for each in query.output] == ["`a.k`", "`a.x`", "`a.ts`"]


def test_a_name_in_a_subquery_is_one_of_its_own_columns_before_others() -> None:
    query = bound("SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE k = a.k AND x > 3 AND x < a.x)")
    semi = query.joins[-1]
    assert [(each.relation, each.expression.sql) for each in semi.conditions] == [("b", "`x` > 3")]
    assert {operand.relation for each in semi.predicates for operand in operands_of(each)} == {"a", "b"}
    anti = bound("SELECT k FROM a WHERE k IS NOT NULL AND k NOT IN (SELECT k FROM b WHERE k IS NOT NULL)").joins[-1]
    assert [(each.relation, each.expression.sql) for each in anti.conditions] == [("b", "`k` IS NOT NULL")]
    (equality,) = anti.predicates
    assert [operand.relation for operand in operands_of(equality)] == ["a", "b"]


@pytest.mark.parametrize(
    "where",
    [
        "a.x > 1 OR a.k IN (SELECT t.k FROM t)",
        "(a.x > 1 OR a.k NOT IN (SELECT t.k FROM t WHERE t.k IS NOT NULL))",
        "NOT a.x > 1 OR a.k IN (SELECT t.k FROM t)",
        "NOT NOT a.k IN (SELECT t.k FROM t)",
    ],
)
def test_in_is_no_join_where_or_and_not_bind_less_than_it(where: str) -> None:
    with pytest.raises(UnsupportedQueryError, match="does not run a subquery"):
        bound(f"SELECT a.k FROM a WHERE {where}")


def test_a_row_that_may_be_let_in_at_any_time_leaves_nothing_without_a_partner() -> None:
    with pytest.raises(UnsupportedQueryError, match=r"give one a WINDOW, as in WINDOW \(u INTERVAL"):
        bound("SELECT c.k FROM u LEFT SEMI JOIN b ON u.k = b.k RIGHT JOIN c ON u.k = c.k")
