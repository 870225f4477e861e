"""Questions in Flink's SQL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.bench.question import THREE_WAY
from plait.bench.systems import flink_sql
from plait.bench.systems.task import UnableError
from plait.workloads.joins import Join, JoinQuery, OutputOf

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
    text = flink_sql.select(query, TIMES, interval_joins=True, as_numbers=True)
    assert "FROM `_r` AS `one` JOIN `_r` AS `other` ON `one`.`ra` = `other`.`ra`" in text
    assert "(`one`.`rv` > 3) AND (`one`.`rv` < `other`.`rv`)" in text
    assert "EXTRACT(EPOCH FROM `other`.`ts`) * 1000000" in text


def test_sinks_take_times_as_numbers_only_where_they_are_read_again():
    assert "`r_ts` TIMESTAMP(6)" in flink_sql.sink(TRIPLES, "out", None)
    assert "'connector' = 'blackhole'" in flink_sql.sink(TRIPLES, "out", None)
    kept = flink_sql.sink(TRIPLES, "out", "/results")
    assert "`r_ts` BIGINT" in kept
    assert "'path' = '/results'" in kept


def test_a_type_without_a_counterpart_is_refused():
    assert flink_sql.flink_type("decimal(12,2)") == "DECIMAL(12,2)"
    with pytest.raises(UnableError, match="array<int>"):
        flink_sql.flink_type("array<int>")
