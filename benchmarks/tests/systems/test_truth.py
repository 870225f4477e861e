"""Estimates against what is sent, where what is sent can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.systems.edges import EdgeTruth, q_error
from benchmarks.systems.truth import Glimpse, edge_truths, summarize
from plait.optimizer import plan
from plait.optimizer.examples import example_options, example_query
from plait.plan.model import Plan
from plait.query.model import Query
from plait.state.model import SourceProgress
from plait.stats.model import SourceStatistics, Statistics

RATE, SPAN_S, KEYS = 150, 8, 12
ROWS = RATE * SPAN_S
SECOND_US = 1_000_000
RANDOM = np.random.default_rng(11)
TAUS = {name: np.sort(RANDOM.integers(0, SPAN_S * SECOND_US, ROWS)) for name in "rst"}
COLUMNS = {name: {key: RANDOM.integers(0, KEYS, ROWS) for key in "ab"} for name in "rst"}
STATISTICS = Statistics(
    sources=tuple(
        SourceStatistics(source=name, rate_rows_per_s=RATE, rows=ROWS, distinct=(("a", KEYS), ("b", KEYS)))
        for name in "rst"
    )
)
SOURCES = tuple(
    SourceProgress(source=name, rows=ROWS, tau_min=int(taus[0]), tau_max=int(taus[-1])) for name, taus in TAUS.items()
)


def made_plan(window_us: int | None) -> Plan:
    query = example_query("q", "r.a = s.a", "s.b = t.b")
    query = replace(query, relations=tuple(replace(found, window_us=window_us) for found in query.relations))
    return plan((query,), STATISTICS, example_options("shared"))


def sent(window_us: int | None, until_us: int = SPAN_S * SECOND_US) -> tuple[tuple[str, int], ...]:
    """Count what the edges of the three-way plan carry: starting tuples, and pairs whose newest member is the first."""
    counts = {}
    for path, key in {"r→s→t": "a", "t→s→r": "b", "s→r→t": "a", "s→t→r": "b"}.items():
        start, probed, _ = path.split("→")
        taus = TAUS[start][TAUS[start] < until_us]
        age = taus[:, None] - TAUS[probed][None, :]
        equal = COLUMNS[start][key][: len(taus), None] == COLUMNS[probed][key][None, :]
        near = (age > 0) & (age <= (window_us or SPAN_S * SECOND_US))
        counts[f"{start}→{probed}"] = len(taus)
        counts[path] = int((equal & near).sum())
    return tuple(sorted(counts.items()))


def truths(window_us: int | None, earlier: tuple[Glimpse, ...] = ()) -> dict[str, EdgeTruth]:
    last = Glimpse(plan="now", tau_us=SPAN_S * SECOND_US, probe_tuples=sent(window_us), sources=SOURCES)
    return {
        truth.edge: truth
        for truth in edge_truths(dict.fromkeys(("before", "now"), made_plan(window_us)), STATISTICS, (*earlier, last))
    }


@pytest.mark.parametrize("window_us", [None, SECOND_US, 3 * SECOND_US])
def test_while_windows_fill_what_is_estimated_is_what_is_sent(window_us: int | None):
    for truth in truths(window_us).values():
        assert truth.measured > 0
        assert truth.filling_q_error < 1.1, truth


def test_the_estimate_of_a_full_history_is_right():
    for truth in truths(None).values():
        assert truth.q_error < 1.1, truth


def test_the_estimate_of_short_windows_is_off_by_the_time_they_take_to_fill():
    assert truths(SECOND_US)["r→s"].q_error < 1.01
    for truth in truths(SECOND_US).values():
        assert truth.q_error < SPAN_S / (SPAN_S - 1), truth


@pytest.mark.parametrize("window_us", [None, SECOND_US])
def test_an_edge_that_outlives_a_plan_counts_for_the_whole_time(window_us: int | None):
    before = Glimpse(plan="before", tau_us=SPAN_S * SECOND_US // 3, probe_tuples=())
    for edge, truth in truths(window_us, (before,)).items():
        alone = truths(window_us)[edge]
        assert truth.measured == alone.measured
        assert truth.estimated == pytest.approx(alone.estimated)
        assert truth.filling == pytest.approx(alone.filling)
        assert truth.span_us == alone.span_us


@pytest.mark.parametrize("window_us", [None, SECOND_US])
def test_an_edge_counts_only_while_it_is_part_of_the_plan(window_us: int | None):
    half_us = SPAN_S * SECOND_US // 2
    plans = {"before": replace(made_plan(window_us), trees=()), "now": made_plan(window_us)}
    glimpses = (
        Glimpse(plan="before", tau_us=half_us, probe_tuples=(*sent(window_us, half_us), ("x→y", 7))),
        Glimpse(plan="now", tau_us=SPAN_S * SECOND_US, probe_tuples=sent(window_us), sources=SOURCES),
    )
    found = edge_truths(plans, STATISTICS, glimpses)
    assert len(found) == 6
    for truth in found:
        assert truth.span_us == pytest.approx(half_us, rel=0.01)
        assert truth.filling_q_error < 1.1, truth
        assert truth.joined > 1 or truth.measured == pytest.approx(ROWS / 2, rel=0.1)


def test_probes_sent_to_every_partition_count_for_each():
    query: Query = example_query("q", "r.a = s.a", "s.b = t.b")
    made = plan((query,), STATISTICS, example_options("shared", parallelism=4))
    last = Glimpse(plan="now", tau_us=SPAN_S * SECOND_US, probe_tuples=(), sources=SOURCES)
    broadcast = [
        truth for truth in edge_truths({"now": made}, STATISTICS, (last,)) if truth.joined == 1 and truth.measured == 0
    ]
    assert {round(truth.filling / ROWS) for truth in broadcast} == {1, 4}


def test_the_worst_edge_is_named_and_blamed_on_time_or_data():
    def edge(name: str, measured: int, estimated: float, filling: float) -> EdgeTruth:
        return EdgeTruth(edge=name, joined=1, span_us=1, measured=measured, estimated=estimated, filling=filling)

    found = summarize([edge("a", 10, 11, 10), edge("b", 90, 30, 91), edge("c", 100, 20, 20)])
    assert found is not None
    assert (found.worst, found.worst_edge, found.median) == (5, "c", 3)
    assert (found.above_two, found.data_above_two) == (2, 1)
    assert summarize([]) is None


def test_less_than_one_tuple_counts_as_one():
    assert q_error(0, 0.01) == 1
    assert q_error(5, 0) == 5
