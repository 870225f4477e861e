"""What a query that groups asks of its join, and what becomes of the joined rows."""

from __future__ import annotations

import pytest

from plait.query.model import Aggregation
from plait.query.time_windows import SessionWindow, TimeWindow
from tests.unit.sql.reading import bound

MINUTE = 60_000_000


def aggregation(sql: str) -> Aggregation:
    found = bound(sql).aggregation
    assert found is not None
    return found


def test_the_join_gives_what_the_groups_read_event_time_first() -> None:
    query = bound(
        "SELECT window.start, o.city AS c, sum(i.qty * 2) AS n FROM orders o JOIN items i ON o.id = i.oid "
        "WHERE i.qty > 1 GROUP BY window(o.ts, '10 minutes', '1 minute', '30 seconds'), o.city "
        "HAVING n > 5 AND max(o.cust) < 9"
    )
    assert [column.name for column in query.output] == ["o.ts", "o.city", "i.qty", "o.cust"]
    assert query.names == (None, "c", "n")
    assert query.aggregation == Aggregation(
        window=TimeWindow(
            relation="o",
            column="ts",
            size_us=10 * MINUTE,
            slide_us=MINUTE,
            start_us=MINUTE // 2,
            lag_us=30_000_000,
        ),
        sql="SELECT window.start, `o.city` AS `c`, sum(`i.qty` * 2) AS `n` FROM {rows} GROUP BY `window`, `o.city` "
        "HAVING n > 5 AND max(`o.cust`) < 9",
        names=(None, "c", "n"),
        functions=("sum", "max"),
    )


@pytest.mark.parametrize(
    ("select", "sql"),
    [
        (
            "o.cust, count(*) FROM orders o GROUP BY window(ts, '1 hour'), cust",
            "SELECT `o.cust`, count(*) FROM {rows} GROUP BY `window`, `o.cust`",
        ),
        (
            "window(o.ts, '1 hour') AS w, o.cust FROM orders o GROUP BY 1, 2",
            "SELECT `window` AS `w`, `o.cust` FROM {rows} GROUP BY `window`, `o.cust`",
        ),
        (
            "window(o.ts, '1 hour').end AS until, lower(city) town FROM orders o GROUP BY window(ts, '1 hours'), town",
            "SELECT `window`.end AS `until`, lower(`o.city`) AS `town` FROM {rows} GROUP BY `window`, lower(`o.city`)",
        ),
        (
            "cust, grouping(city) AS g, count(*) FROM orders o GROUP BY window(ts, '1 hour'), CUBE(cust, lower(city))",
            "SELECT `o.cust`, grouping(`o.city`) AS `g`, count(*) FROM {rows} "
            "GROUP BY `window`, CUBE (`o.cust`, lower(`o.city`))",
        ),
        (
            "cust AS c FROM orders o GROUP BY window(ts, '1 hour'), GROUPING SETS ((c, city), o.id, ()), ROLLUP(flag)",
            "SELECT `o.cust` AS `c` FROM {rows} "
            "GROUP BY `window`, GROUPING SETS ((`o.cust`, `o.city`), (`o.id`), ()), ROLLUP (`o.flag`)",
        ),
        (
            "DISTINCT window(ts, '1 hour').start AS at, cust FROM orders o",
            "SELECT DISTINCT `window`.start AS `at`, `o.cust` FROM {rows}",
        ),
        (
            "count(DISTINCT cust) FILTER (WHERE city = '{a}') FROM orders o GROUP BY window(ts, '1 hour')",
            "SELECT count(DISTINCT `o.cust`) FILTER (WHERE `o.city` = '{{a}}') FROM {rows} GROUP BY `window`",
        ),
    ],
)
def test_only_columns_and_the_window_are_put_otherwise(select: str, sql: str) -> None:
    assert aggregation(f"SELECT {select}").sql == sql


@pytest.mark.parametrize(
    ("call", "put"),
    [
        ("first(city)", "min_by(`o.city`, struct(`o.ts` AS t, `o.city` AS x))"),
        (
            "last(cust + 1, TRUE) FILTER (WHERE flag)",
            "max_by(`o.cust` + 1, struct(`o.ts` AS t, `o.cust` + 1 AS x)) "
            "FILTER (WHERE (`o.cust` + 1) IS NOT NULL AND (`o.flag`))",
        ),
        ("size(collect_set(city))", "size(array_sort(collect_set(`o.city`) FILTER (WHERE (`o.city`) IS NOT NULL)))"),
        (
            "collect_list(id)",
            "transform(array_sort(collect_list(struct(`o.ts` AS t, `o.id` AS x)) FILTER (WHERE (`o.id`) IS NOT NULL)), "
            "each -> each.x)",
        ),
    ],
)
def test_what_depends_on_the_order_of_rows_takes_them_by_event_time(call: str, put: str) -> None:
    found = aggregation(f"SELECT {call} FROM orders o GROUP BY window(ts, '1 hour')")
    assert found.sql == f"SELECT {put} FROM {{rows}} GROUP BY `window`"


def test_sessions_know_what_tells_rows_apart() -> None:
    found = aggregation(
        "SELECT session_window.start AS at, lower(o.city) AS town, count(*) AS n FROM orders o JOIN items i ON "
        "o.id = i.oid GROUP BY session_window(o.ts, '10 minutes'), town, o.cust HAVING session_window.end IS NOT NULL"
    )
    assert found == Aggregation(
        window=SessionWindow(relation="o", column="ts", gap_us=10 * MINUTE, lag_us=30_000_000),
        sql="SELECT session_window.start AS `at`, lower(`o.city`) AS `town`, count(*) AS `n` FROM {rows} "
        "GROUP BY `session_window`, lower(`o.city`), `o.cust` HAVING session_window.end IS NOT NULL",
        names=("at", "town", "n"),
        functions=("count",),
        keys=("lower(`o.city`)", "`o.cust`"),
    )


def test_windows_of_one_stream_are_over_at_their_end() -> None:
    assert aggregation("SELECT count(*) FROM orders o GROUP BY window(ts, '1 hour')").window.lag_us == 0
    tables = "SELECT count(*) FROM orders o JOIN nation n ON o.city = n.city GROUP BY window(ts, '1 hour')"
    assert aggregation(tables).window.lag_us == 0


def test_queries_that_group_otherwise_are_not_equal() -> None:
    hours = [bound(f"SELECT count(*) FROM orders GROUP BY window(ts, '{n} hours')") for n in (1, 1, 2)]
    assert (hours[0] == hours[1], hash(hours[0]) == hash(hours[1]), hours[0] == hours[2]) == (True, True, False)
