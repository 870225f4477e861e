"""Random cases with random tables, generations and hot keys output what a batch SQL engine computes.

Rows are shuffled; before some batches tables are drawn, for some of the keys that stores are reached by, with more or
fewer key groups and partitions than before, and keys split over several. ``PLAIT_CASES=2000`` sets another number.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.oracle.compare import multiset
from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.property.case import Case, describe
from tests.property.cases import random_case
from tests.property.running import check, run_case
from tests.property.shrinking import shrink

CASES = int(os.environ.get("PLAIT_CASES", "20"))
FIRST_SEED = 7_000_000 + int(os.environ.get("PLAIT_SEED", "0"))
CHUNK = 20


def with_tables(seed: int) -> Case:
    case = random_case(seed, late=seed % 10 == 9, thetas=seed % 5 == 4)
    return case.with_options(routing="shuffle", tables=case.options.tables | {seed % 2})


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + CASES, CHUNK))
def test_every_query_outputs_what_duckdb_computes_wherever_tables_send_rows(first: int) -> None:
    checked = 0
    for seed in range(first, first + CHUNK):
        case = with_tables(seed)
        try:
            problem = check(case)
        except UnsuitableCaseError:
            continue
        if problem is not None:
            smaller = shrink(case, lambda found: check(found) is not None)
            pytest.fail(f"seed {seed}: {problem}\nsmallest: {check(smaller)}\n{describe(smaller)}", pytrace=False)
        checked += 1
    assert checked > CHUNK * 0.6


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 4))
def test_tables_change_neither_results_nor_what_is_counted(seed: int) -> None:
    case = with_tables(seed)
    sent = run_case(case)
    local = run_case(case.with_options(routing="local"))
    for query in case.queries:
        assert multiset(sent.rows(query.name)) == multiset(local.rows(query.name)), describe(case)
    assert sent.probe_tuples == local.probe_tuples, describe(case)
    # What is forgotten is forgotten bucket by bucket, and which rows are in one depends on where they are sent.
    counted = [{name: replace(each, forgotten=()) for name, each in run.progress.items()} for run in (sent, local)]
    assert counted[0] == counted[1], describe(case)
    assert sent.rows_out == local.rows_out, describe(case)
