"""Which aggregates are kept as partial ones, and what puts them together."""

from __future__ import annotations

import pytest

from plait.query.model import ColumnRef
from plait.sinks.delivery import LAST, Fold, Partial
from plait.sql.select.folding import End, Folding, folding_of
from tests.unit.sql.reading import bound

MINUTE = 60_000_000
TYPES = {
    "ts": "timestamp",
    "cust": "int",
    "city": "string",
    "id": "bigint",
    "flag": "boolean",
    "addr": "struct<City:string>",
}


def folding(
    select: str, window: str = "'10 minutes'", more: str = "", *, call: str = "window", **types: str
) -> Folding | None:
    query = bound(f"SELECT {select} FROM orders o GROUP BY {call}(o.ts, {window}){more}")
    assert query.aggregation is not None
    known = {**TYPES, **types}
    return folding_of(
        query.aggregation,
        {ref: known[ref.column] for column in query.output for ref in column.expression.columns},
    )


def test_rows_become_one_for_each_pane_and_key() -> None:
    found = folding("city, count(*) AS n, sum(cust) + 1", "'10 minutes', '4 minutes', '-1 minute'", ", city")
    assert found == Folding(
        fold=Fold(
            pane_us=2 * MINUTE,
            start_us=-MINUTE,
            keys=("o.city",),
            partials=(
                Partial(
                    name="#p0",
                    first="CAST(count(*) AS BIGINT)",
                    again='CAST(sum("#p0") AS BIGINT)',
                    measured="rows",
                    of=None,
                    type="BIGINT",
                ),
                Partial(
                    name="#p1",
                    first='CAST(sum("2") AS DECIMAL(38, 0))',
                    again='CAST(sum("#p1") AS DECIMAL(38, 0))',
                    measured="sum",
                    of=2,
                    type="DECIMAL(38, 0)",
                ),
            ),
        ),
        sql="SELECT `o.city`, CAST(sum(`#p0`) AS BIGINT) AS `n`, CAST(sum(`#p1`) AS BIGINT) + 1 FROM {rows} "
        "GROUP BY `window`, `o.city`",
        kept=(("o.ts", "timestamp"), ("o.city", "string"), ("#p0", "bigint"), ("#p1", "decimal(38,0)")),
        ends=(
            End(start=17, end=25, sql="CAST(sum(`#p0`) AS BIGINT)", type="bigint"),
            End(start=34, end=47, sql="CAST(sum(`#p1`) AS BIGINT)", type="bigint"),
        ),
    )


@pytest.mark.parametrize(
    ("select", "ended"),
    [
        ("count(1)", "CAST(sum(`#p0`) AS BIGINT)"),
        ("count(cust)", "CAST(sum(`#p0`) AS BIGINT)"),
        ("count_if(flag)", "CAST(sum(`#p0`) AS BIGINT)"),
        ("max(city)", "max(`#p0`)"),
        ("mean(cust)", "(sum(`#p0`) / nullif(sum(`#p1`), 0))"),
        ("count(DISTINCT city)", "count(DISTINCT `o.city`)"),
        ("sum(DISTINCT id)", "sum(DISTINCT `o.id`)"),
        ("bool_or(cust > 3)", "bool_or(`o.cust` > 3)"),
        ("min(lower(city))", "min(lower(`o.city`))"),
        ("max(cust) FILTER (WHERE flag)", "max(`o.cust`) FILTER (WHERE `o.flag`)"),
    ],
)
def test_aggregates_that_do_not_mind_duplicates_are_left_as_they_are(select: str, ended: str) -> None:
    found = folding(select)
    assert found is not None
    assert found.sql == f"SELECT {ended} FROM {{rows}} GROUP BY `window`"


@pytest.mark.parametrize(
    "select",
    [
        "stddev(cust)",
        "count(*), median(cust)",
        "sum(cust + 1)",
        "count(*) FILTER (WHERE flag)",
        "count(cust, city)",
        "avg(id)",
        "max(o.ts)",
        "count(DISTINCT o.ts)",
        "count(DISTINCT addr)",
        "first(city)",
        "collect_list(city)",
    ],
)
def test_rows_are_kept_for_others(select: str) -> None:
    assert folding(select) is None


def test_null_is_not_counted() -> None:
    found = folding("count(cust), count(*)")
    assert found is not None
    assert [each.first for each in found.fold.partials] == ['CAST(count("1") AS BIGINT)', "CAST(count(*) AS BIGINT)"]


def test_decimals_are_summed_as_long_as_there_are_digits_enough() -> None:
    found = folding("sum(cust)", cust="decimal(28,3)")
    assert found is not None
    assert found.sql == "SELECT CAST(sum(`#p0`) AS DECIMAL(38, 3)) FROM {rows} GROUP BY `window`"
    assert folding("sum(cust)", cust="decimal(29,3)") is None
    assert folding("avg(cust)", cust="decimal(9,3)") is None
    assert folding("count(*)", ts="date") is None


def test_partial_aggregates_of_sessions_know_their_last_event_time() -> None:
    found = folding("city, count(*)", "'10 minutes'", ", city", call="session_window")
    assert found is not None
    assert (found.fold.gap_us, found.fold.keys) == (10 * MINUTE, ("o.city",))
    last = found.fold.partials[-1]
    assert (last.name, last.first, last.again, last.of) == (LAST, 'max(epoch_us("0"))', 'max("#last")', 0)
    assert found.kept[-1] == ("#last", "bigint")
    assert found.sql == "SELECT `o.city`, CAST(sum(`#p0`) AS BIGINT) FROM {rows} GROUP BY `session_window`, `o.city`"


def test_the_event_time_is_known_by_its_place() -> None:
    query = bound("SELECT count(o.id) FROM orders o GROUP BY window(o.ts, '1 hour')")
    assert query.output[0].expression.columns == (ColumnRef(relation="o", column="ts"),)
