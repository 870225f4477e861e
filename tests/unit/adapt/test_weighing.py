"""Plans are weighed by what their strategy minimizes, and changes by the work they make, in the same unit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.adapt.weighing import (
    PROBE_TUPLE_NS,
    Stored,
    change_cost,
    cost_of,
    delay_s,
    measured_cost,
    restart_cost,
)
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.plan.step_names import named_steps
from plait.stats.cycles import Cycles, Series

QUERY = example_query("q", "r.a = s.a", "s.b = t.b")
OPTIONS = example_options("fixed", ("r", 1.0), ("s", 100.0), ("t", 100.0))
STATISTICS = example_statistics(OPTIONS)


def planned(strategy: str) -> Plan:
    return plan((QUERY,), STATISTICS, replace(OPTIONS, strategy=strategy))


def counted(running: Plan, counts: tuple[int, int, int], seconds: float = 10.0) -> Cycles:
    """Return one cycle in which every step took so many tuples, with so many that matched, and matches."""
    names = sorted({tuple(name) for _, name in named_steps(running)})
    steps = tuple(
        Series(kind="step", name=name, counts=tuple((count,) for count in counts), earlier=(0, 0, 0)) for name in names
    )
    source = Series(kind="source", name=("r",), counts=((10,), (round(seconds * 1_000_000),)), earlier=(0, 0))
    return Cycles(number=1, batches=(1,), seconds=(10.0,), series=(*steps, source))


def test_rows_that_enter_an_intermediate_store_cost_what_the_options_say_where_the_strategy_weighs_them() -> None:
    deep = planned("left-deep")
    assert any(store.intermediate is not None for store in deep.stores)
    free, dear = (replace(OPTIONS, strategy="ilp", store_weight=weight) for weight in (0.0, 100.0))
    assert cost_of(deep, STATISTICS, free) < cost_of(deep, STATISTICS, dear)
    heedless = replace(OPTIONS, strategy="bushy", store_weight=100.0)
    assert cost_of(deep, STATISTICS, heedless) == cost_of(deep, STATISTICS, free)


def test_tuples_of_every_edge_are_counted_by_all_but_dppick_which_counts_work() -> None:
    # r: 1 row/s probes s, finds 1, probes t, 1.5; s: 100 probe r, each finds 1/100, probe t; t: 100 probe s, find 1.5.
    flat = planned("fixed")
    assert cost_of(flat, STATISTICS, OPTIONS) == pytest.approx(1 + 1 + 100 + 1 + 100 + 150)
    work = cost_of(flat, STATISTICS, replace(OPTIONS, strategy="dppick"))
    assert work > 353 * OPTIONS.costs.match


def test_what_a_plan_did_cost_is_what_was_counted_of_its_steps_by_second_of_event_time() -> None:
    flat = planned("greedy")
    cycles = counted(flat, (1_000, 500, 800))
    names = {name for _, name in named_steps(flat)}
    assert measured_cost(flat, STATISTICS, OPTIONS, cycles) == pytest.approx(len(names) * 100.0)
    assert measured_cost(flat, STATISTICS, OPTIONS, Cycles()) is None
    assert measured_cost(flat, STATISTICS, OPTIONS, counted(flat, (1_000, 500, 800), seconds=0.0)) is None


def test_filling_a_store_costs_the_steps_that_what_is_stored_takes() -> None:
    flat, deep = planned("greedy"), planned("left-deep")
    stored = Stored(rows={"r": 1_000, "s": 1_000, "t": 1_000})
    (store,) = (store.id for store in deep.stores if store.intermediate is not None)
    filling, _ = change_cost(flat, deep, STATISTICS, OPTIONS, stored)
    assert filling == pytest.approx(1_000)  # the rows of one part probe the other
    fewer = replace(stored, rows={**stored.rows, "s": 10, "t": 20, "r": 30})
    assert change_cost(flat, deep, STATISTICS, OPTIONS, fewer)[0] <= 20
    assert change_cost(flat, deep, STATISTICS, OPTIONS, replace(stored, left={store: 0.25}))[0] == pytest.approx(250)
    assert change_cost(flat, deep, STATISTICS, OPTIONS, Stored()) == (0.0, 0.0)
    assert change_cost(deep, deep, STATISTICS, OPTIONS, stored) == (0.0, 0.0)


def test_a_gain_begins_once_so_many_slices_as_the_work_takes_are_done() -> None:
    moved = Series(kind="source", name=("r",), counts=((100,), (20_000_000,)), earlier=(0, 0))
    cycles = Cycles(number=1, batches=(10,), seconds=(20.0,), series=(moved,))  # a batch brings two seconds
    probes = 1e6  # a quarter of a second of probe tuples
    assert delay_s(probes, OPTIONS, cycles, slice_s=0.1) == pytest.approx(3 * 2.0)
    assert delay_s(probes, OPTIONS, cycles, slice_s=1.0) == pytest.approx(2.0)
    assert delay_s(probes, OPTIONS, cycles, slice_s=None) == pytest.approx(2.0)
    assert delay_s(0.0, OPTIONS, cycles, slice_s=0.1) == 0.0
    assert delay_s(probes, OPTIONS, Cycles(), slice_s=0.1) == 0.0


def test_an_index_that_is_missing_costs_a_sort_of_what_is_stored() -> None:
    flat = planned("greedy")
    bare = replace(flat, stores=tuple(replace(store, indexes=store.indexes[:1]) for store in flat.stores))
    added = sum(len(store.indexes) - 1 for store in flat.stores)
    assert added > 0
    assert change_cost(bare, flat, STATISTICS, OPTIONS, Stored(rows={"s": 1_000})) == (
        0.0,
        pytest.approx(added * 1_000 * 100 / 250),
    )


def test_a_restart_costs_a_second_of_every_core_in_the_unit_of_the_strategy() -> None:
    two = replace(OPTIONS, parallelism=2)
    assert restart_cost(replace(two, strategy="dppick")) == pytest.approx(2e9)
    assert restart_cost(two) == pytest.approx(2e9 / PROBE_TUPLE_NS)
