"""What must not matter does not: the same input gives the same output however it is run."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.oracle.compare import multiset
from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected
from tests.property.arrivals import Arrivals, late_rows
from tests.property.case import Case, CaseSource, describe
from tests.property.cases import STRATEGIES, all_punctual, random_case
from tests.property.running import run_case

SEEDS = range(500_000, 500_010)


def plain_case(seed: int) -> Case:
    """Return a case of moderate size with some output."""
    for attempt in range(20):
        case = random_case(seed + 1000 * attempt)
        try:
            if case.batches > 1 and any(table.num_rows for table in expected(case).values()):
                return case
        except UnsuitableCaseError:
            continue
    raise AssertionError("no case with output found")


def outputs(case: Case) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return the multiset of rows of each query."""
    outcome = run_case(case)
    return {query.name: multiset(outcome.rows(query.name)) for query in case.queries}


def one_strategy(case: Case, strategy: str) -> Case:
    return case.with_options(strategies=(strategy,) * case.batches)


@pytest.mark.parametrize("seed", SEEDS)
def test_strategy_partitioning_and_memory_limits_change_nothing(seed: int) -> None:
    case = plain_case(seed)
    rng = random.Random(seed)
    wanted = outputs(case)
    for strategy in STRATEGIES:
        variant = one_strategy(case, strategy).with_options(
            parallelism=rng.randint(1, 5),
            block_rows=rng.choice((1, 2, 7, 4096)),
            sliced_ingest=rng.randint(1, 4),
            compactions=frozenset(batch for batch in range(1, case.batches) if rng.random() < 0.5),
            restarts=frozenset(batch for batch in range(1, case.batches) if rng.random() < 0.5),
            weak_hash=rng.random() < 0.5,
        )
        assert outputs(variant) == wanted, describe(variant)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_walk_for_all_tasks_changes_neither_results_nor_what_is_counted(seed: int) -> None:
    case = plain_case(seed).with_options(block_rows=5)
    apart = run_case(case.with_options(routing="local"))
    as_one = run_case(case.with_options(routing="driver"))
    for query in case.queries:
        assert multiset(apart.rows(query.name)) == multiset(as_one.rows(query.name)), describe(case)
    assert (apart.probe_tuples, apart.rows_out) == (as_one.probe_tuples, as_one.rows_out), describe(case)
    assert (apart.progress, apart.stored) == (as_one.progress, as_one.stored), describe(case)


@pytest.mark.parametrize("seed", SEEDS)
def test_routing_changes_neither_results_nor_the_number_of_probe_tuples(seed: int) -> None:
    case = plain_case(seed).with_options(block_rows=5)
    local = run_case(case.with_options(routing="local"))
    shuffled = run_case(case.with_options(routing="shuffle"))
    for query in case.queries:
        assert multiset(local.rows(query.name)) == multiset(shuffled.rows(query.name)), describe(case)
    assert local.probe_tuples == shuffled.probe_tuples, describe(case)


@pytest.mark.parametrize("seed", SEEDS)
def test_batch_boundaries_change_nothing(seed: int) -> None:
    case = plain_case(seed)
    wanted = outputs(case)
    assert outputs(all_punctual(case)) == wanted, describe(case)
    rng = random.Random(seed)
    for _ in range(3):
        variant = rebatched(case, rng)
        assert outputs(variant) == wanted, describe(variant)


def rebatched(case: Case, rng: random.Random) -> Case:
    """Return the case with other batches in which nothing is late either.

    Each batch of a source goes to some batch not before its predecessor's; if that makes a row late, another choice is
    tried.
    """

    def places() -> list[int]:
        return sorted(rng.randrange(case.batches) for _ in range(case.batches))

    for attempt in range(30):
        common = places()
        variant = replace(
            case,
            sources=tuple(_moved(source, places() if attempt % 2 else common) for source in case.sources),
        )
        if not _has_late_rows(variant):
            return variant
    return case


def _moved(source: CaseSource, places: list[int]) -> CaseSource:
    return replace(source, batch_of=tuple(places[batch] for batch in source.batch_of))


def _has_late_rows(case: Case) -> bool:
    streams = [source for source in case.sources if not source.is_table]
    arrivals = [
        Arrivals(delay_us=source.delay_us, taus=source.taus(), batch_of=list(source.batch_of)) for source in streams
    ]
    return any(any(mask) for mask in late_rows(arrivals, case.batches))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_query_alone_outputs_the_same_as_among_others(seed: int) -> None:
    case = plain_case(seed)
    together = outputs(case)
    for query in case.queries:
        assert outputs(replace(case, queries=(query,))) == {query.name: together[query.name]}, describe(case)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_sources_and_of_rows_in_a_batch_changes_nothing(seed: int) -> None:
    case = plain_case(seed)
    rng = random.Random(seed)
    sources = [_shuffled_within_batches(source, rng) for source in case.sources]
    rng.shuffle(sources)
    assert outputs(replace(case, sources=tuple(sources))) == outputs(case), describe(case)


def _shuffled_within_batches(source: CaseSource, rng: random.Random) -> CaseSource:
    batches = source.batch_of or (0,) * source.rows.num_rows
    order = sorted(range(source.rows.num_rows), key=lambda row: (batches[row], rng.random()))
    return replace(source, rows=source.rows.take(order))
