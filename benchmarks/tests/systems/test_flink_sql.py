"""Questions in Flink's SQL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.systems import flink_sql
from benchmarks.systems.task import UnableError
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import Join, JoinQuery, OutputOf
from benchmarks.workloads.three_way import THREE_WAY

(TRIPLES,) = THREE_WAY.queries
TIMES = THREE_WAY.times()
HALF_A_MINUTE = "INTERVAL '0 00:00:30.000' DAY TO SECOND(3)"


def test_a_windowed_join_has_one_pair_of_event_times_a_step_and_all_exact_times_after():
    text = flink_sql.select(TRIPLES, TIMES, interval_joins=True)
    assert "FROM `_r` AS `r` JOIN `_s` AS `s` ON `r`.`ra` = `s`.`sa` AND `s`.`_event_time` BETWEEN" in text
    assert text.count("_event_time") == 6
    for left, right in (("r", "s"), ("r", "t"), ("s", "t")):
        assert f"`{right}`.`ts` BETWEEN `{left}`.`ts` - {HALF_A_MINUTE} AND `{left}`.`ts` + {HALF_A_MINUTE}" in text


def test_without_a_window_and_for_regular_joins_tables_have_no_event_time():
    endless = flink_sql.select(replace(TRIPLES, window_s=None), TIMES, interval_joins=True)
    assert "`_" not in endless
    assert "WHERE" not in endless
    regular = flink_sql.select(TRIPLES, TIMES, interval_joins=False)
    assert "_event_time" not in regular
    assert regular.count("BETWEEN") == 3


def test_selections_conditions_and_aliases_are_asked():
    query = JoinQuery(
        name="pairs",
        relations=("one", "other"),
        joins=(Join(left="one", right="other", columns=(("ra", "ra"),)),),
        outputs=(OutputOf(relation="other", column="ts", type="timestamp"),),
        selections=(("one", "one.rv > 3"),),
        conditions=("one.rv < other.rv",),
        aliases=(("one", "r"), ("other", "r")),
        window_s=1,
    )
    text = flink_sql.select(query, TIMES, interval_joins=True)
    assert "FROM `_r` AS `one` JOIN `_r` AS `other` ON `one`.`ra` = `other`.`ra`" in text
    assert "(`one`.`rv` > 3) AND (`one`.`rv` < `other`.`rv`)" in text
    assert "SELECT `other`.`ts` AS `other_ts` FROM" in text


def test_sinks_keep_microseconds_where_results_are_read_again_and_else_discard_everything():
    discarding = flink_sql.sink(TRIPLES, "out", None)
    assert "`r_ts` TIMESTAMP(6)" in discarding
    assert "'connector' = 'blackhole'" in discarding
    kept = flink_sql.sink(TRIPLES, "out", "file:/results")
    assert "'path' = 'file:/results', 'format' = 'parquet'" in kept
    assert "'parquet.timestamp.time.unit' = 'micros'" in kept


def test_a_delivery_is_of_the_file_that_brought_the_newest_member():
    text = flink_sql.delivered(TRIPLES, TIMES, 10_000_000, "answers")
    newest = "GREATEST(`r_ts`, `s_ts`, `t_ts`)"
    assert f"EXTRACT(EPOCH FROM {newest}) * 1000000 + EXTRACT(MICROSECOND FROM {newest})" in text
    assert f"- {FIRST_US}) / 10000000 AS INT), CURRENT_ROW_TIMESTAMP() FROM `answers`" in text


def test_a_query_that_hides_a_time_has_no_latency():
    blind = replace(TRIPLES, outputs=tuple(output for output in TRIPLES.outputs if output.name != "s_ts"))
    with pytest.raises(UnableError, match="event time of 's'"):
        flink_sql.delivered(blind, TIMES, 1, "answers")


@pytest.mark.parametrize(("days", "words"), [(99, "DAY TO"), (100, "DAY(3) TO"), (99_999, "DAY(5) TO")])
def test_long_intervals_tell_their_precision(days: int, words: str):
    assert f"'{days} 00:00:00.000' {words}" in flink_sql.interval(days * 86_400_000)


def test_an_interval_that_flink_cannot_write_is_refused():
    with pytest.raises(UnableError, match="100,000 days"):
        flink_sql.interval(100_000 * 86_400_000)


def test_a_type_without_a_counterpart_is_refused():
    assert flink_sql.flink_type("decimal(12,2)") == "DECIMAL(12,2)"
    with pytest.raises(UnableError, match="array<int>"):
        flink_sql.flink_type("array<int>")
