"""Partitions that follow from what a store keeps."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from plait.adapt.planning import probing_only
from plait.errors import OptionError
from plait.optimizer import plan
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.options import PlanOptions
from plait.query.model import SourceExpression

QUERY = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")


def options(strategy: str = "greedy", **changes: object) -> PlanOptions:
    made = example_options(strategy, ("r", 10_000.0), ("s", 100.0), ("t", 250.0), ("u", 90.0))
    return replace(made, task_rows=100.0, **changes)


def partitions(chosen: PlanOptions) -> dict[str, int]:
    made = plan((QUERY,), example_statistics(chosen), chosen)
    return {store.id.split("~")[0]: store.parallelism for store in made.stores}


def test_only_large_stores_are_spread() -> None:
    assert partitions(options()) == {"r": 100, "s": 1, "t": 3, "u": 1}


def test_a_number_given_by_hand_stands() -> None:
    assert partitions(options(parallelism_by_source=(("r", 4),)))["r"] == 4


def test_intermediate_results_are_spread_by_their_own_size() -> None:
    found = partitions(options("left-deep"))
    kept = {name: count for name, count in found.items() if "⋈" in name}
    assert kept["s⋈t⋈u"] >= kept["t⋈u"] >= 1
    assert kept["t⋈u"] == 3


def test_a_task_must_hold_a_row() -> None:
    with pytest.raises(OptionError, match="task_rows is 0"):
        replace(example_options("greedy"), task_rows=0.0)


def test_while_a_stream_runs_its_stores_keep_their_partitions() -> None:
    before = plan((QUERY,), example_statistics(options()), options())
    grown = replace(options(), task_rows=10.0)
    after = plan((QUERY,), example_statistics(grown), grown)
    adapted = probing_only(before, after)
    assert adapted is not None
    assert {store.id: store.parallelism for store in adapted.stores} == partitions(options())


def test_what_a_selection_leaves_out_takes_no_partition() -> None:
    chosen = options()
    narrowed = replace(
        QUERY,
        relations=tuple(
            replace(each, selections=(SourceExpression(sql="`v` < 10", columns=("v",)),)) if each.alias == "r" else each
            for each in QUERY.relations
        ),
    )
    made = plan((narrowed,), example_statistics(chosen), chosen)
    kept = {stored.store: stored.rows for stored in made.stored}
    assert kept["r"] < 10_000
    assert {store.id: store.parallelism for store in made.stores}["r"] == math.ceil(kept["r"] / 100)


@pytest.mark.parametrize("rows", [100.0, 40.0])
def test_ilp_weighs_a_store_with_the_partitions_it_will_have(rows: float) -> None:
    chosen = replace(options("ilp"), task_rows=rows)
    chosen = replace(chosen, sources=tuple(replace(each, placement="random") for each in chosen.sources))
    made = plan((QUERY,), example_statistics(chosen), chosen)
    sent = sum(step.estimate.probe_tuples or 0.0 for tree in made.trees for _, step in tree.walk())
    assert any(store.intermediate for store in made.stores)
    assert made.solution is not None
    assert made.solution.objective == pytest.approx(sent)
