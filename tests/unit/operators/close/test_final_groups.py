"""Groups of windows that are over, made of partial aggregates."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from plait.operators.close.final_groups import final_groups
from plait.operators.close.groups import GroupedQuery, Over
from plait.operators.evaluating import EvaluationError
from plait.query.time_windows import TimeWindow
from plait.sinks.delivery import Finishing, Fold, Formula, Partial

UTC = pa.timestamp("us", tz="UTC")
WINDOW = TimeWindow(relation="r", column="ts", size_us=30, slide_us=20, start_us=5, lag_us=0)
QUERY = GroupedQuery(query="q", identity="", window=WINDOW, time="r.ts")
HOW = Finishing(
    keys=("r.k",),
    finals=('CAST(sum("#p0") AS BIGINT)', 'CAST(sum("#p1") AS BIGINT)'),
    made=(1, 2, 3, 4),
    having=None,
)


def part(*rows: tuple[int, str | None, int, int]) -> pa.RecordBatch:
    """Return partial aggregates: pane, key, count and sum."""
    panes, keys, counts, sums = zip(*rows, strict=True)
    columns = {
        "r.ts": pa.array(panes, pa.int64()).cast(UTC),
        "r.k": pa.array(keys, pa.string()),
        "#p0": pa.array(counts, pa.int64()),
        "#p1": pa.array(map(Decimal, sums), pa.decimal128(38, 0)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


PARTS = [
    part((5, "a", 1, 10), (15, "a", 2, 20), (25, "a", 4, 40)),
    part((25, "a", 8, 80), (25, None, 1, 1), (-5, "b", 1, 7), (45, "a", 9, 9)),
]


def found(over: Over, how: Finishing = HOW) -> set[tuple[object, ...]]:
    groups = final_groups(PARTS, QUERY, how, over)
    assert groups.column(0).type == UTC
    ends = groups.column(0).cast(pa.int64()).to_pylist()
    return set(zip(ends, *(column.to_pylist() for column in groups.columns[1:]), strict=True))


def test_each_pane_is_in_all_windows_that_hold_it() -> None:
    assert found(Over(after_us=None, until_us=55, files=())) == {
        (15, "b", 1, 7),
        (15, "a", 1, 10),
        (35, "a", 15, 150),
        (35, None, 1, 1),
        (55, "a", 21, 129),
        (55, None, 1, 1),
    }


def test_windows_that_are_not_over_and_those_that_were_are_left_out() -> None:
    assert found(Over(after_us=15, until_us=35, files=())) == {(35, "a", 15, 150), (35, None, 1, 1)}
    assert found(Over(after_us=55, until_us=56, files=())) == set()


def test_groups_of_which_having_is_not_true_are_left_out() -> None:
    having = Formula(sql='"2" > \'a\' OR "3" > 12', reads=(2, 3))
    how = Finishing(keys=HOW.keys, finals=HOW.finals, made=HOW.made, having=having)
    assert found(Over(after_us=None, until_us=35, files=()), how) == {(15, "b", 1, 7), (35, "a", 15, 150)}


def test_partial_aggregates_of_before_a_start_count_whatever_their_time_zone_was_called() -> None:
    zoned = PARTS[0].set_column(0, "r.ts", PARTS[0].column(0).cast(pa.timestamp("us", tz="Etc/UTC")))
    over = Over(after_us=15, until_us=35, files=())
    groups = final_groups([PARTS[1], zoned], QUERY, HOW, over)
    assert groups.column(0).type == UTC
    rows = set(zip(*(column.to_pylist() for column in groups.columns[1:]), strict=True))
    assert rows == {("a", 15, 150), (None, 1, 1)}


def test_what_overflows_is_left_to_spark() -> None:
    parts = [part((5, "a", 1, 2**62), (5, "a", 1, 2**62))]
    with pytest.raises(EvaluationError):
        final_groups(parts, QUERY, HOW, Over(after_us=None, until_us=99, files=()))


def test_long_windows_with_a_short_slide_are_made_of_what_their_panes_come_to_together() -> None:
    count = Partial(name="#p0", first="", again='CAST(sum("#p0") AS BIGINT)', measured="rows", of=None, type="BIGINT")
    total = replace(count, name="#p1", again='CAST(sum("#p1") AS DECIMAL(38, 0))', type="DECIMAL(38, 0)")
    fold = Fold(pane_us=1, start_us=0, keys=("r.k",), partials=(count, total))
    query = replace(QUERY, window=replace(WINDOW, size_us=100, slide_us=2, start_us=0), fold=fold)
    parts = [part(*((tau, "a", 1, tau) for tau in range(300)))]
    groups = final_groups(parts, query, HOW, Over(after_us=150, until_us=160, files=()))
    rows = zip(*(column.to_pylist() for column in groups.columns), strict=True)
    begins = [end - 100 for end in range(152, 161, 2)]
    wanted = {(begin + 100, "a", 100, sum(range(begin, begin + 100))) for begin in begins}
    assert {(int(end.timestamp() * 1e6 + 0.5), *others) for end, *others in rows} == wanted
