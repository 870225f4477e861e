"""Queries with outer, semi and anti joins: what they output is what the definition says, and each row comes in the very
batch it says.

A run checks 2,000 cases to the end of their input; ``PLAIT_CASES=20000`` checks 50,000, ``PLAIT_SEED`` says where they
start.
"""

from __future__ import annotations

import os
from collections import Counter

import duckdb
import pytest

from plait.errors import UnsupportedQueryError
from tests.oracle.compare import difference, normal, table_rows
from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.oracle.nested_loop import TooManyCombinationsError
from tests.oracle.outer_duckdb import outer_rows
from tests.oracle.outer_loop import OuterLoop
from tests.property.case import Case, describe
from tests.property.front_end import from_text
from tests.property.outer_cases import OuterQuery, outer_case
from tests.property.running import run_case

CASES = int(os.environ.get("PLAIT_CASES", "800")) * 5 // 2
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0"))
CHUNK = 50
LATE_EVERY = 10


def fault(case: Case) -> str | None:
    """Return what is wrong with the outcome of a case; None if nothing is."""
    outcome = run_case(case, ends=True)
    bound = {query.name: query for query in from_text(case)[1]}
    for query in case.queries:
        assert isinstance(query, OuterQuery)
        kinds = {step.alias: step.kind for step in bound[query.name].joins if step.alias and step.kind}
        loop = OuterLoop(case, query, closes=True, kinds=kinds)
        wanted = Counter((batch, normal(row)) for batch, row in loop.rows())
        tables = zip(outcome.batches.get(query.name, ()), outcome.tables.get(query.name, ()), strict=True)
        found = Counter((batch, normal(row)) for batch, table in tables for row in table_rows(table))
        if found != wanted:
            return f"{query.name}: missing {dict(wanted - found)}, too many {dict(found - wanted)}"
    return None


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + CASES, CHUNK))
def test_each_row_comes_once_in_the_batch_that_makes_it_certain(first: int) -> None:
    checked = 0
    for seed in range(first, first + CHUNK):
        case = outer_case(seed, late=seed % LATE_EVERY == LATE_EVERY - 1)
        try:
            problem = fault(case)
        except (UnsupportedQueryError, UnsuitableCaseError, TooManyCombinationsError):
            continue
        if problem is not None:
            pytest.fail(f"seed {seed}: {problem}\n{describe(case)}", pytrace=False)
        checked += 1
    assert checked > CHUNK * 0.6


@pytest.mark.parametrize("first", range(7_000_000, 7_000_300, 100))
def test_the_loops_and_duckdb_agree_on_what_comes_in_the_end(first: int) -> None:
    checked = 0
    for seed in range(first, first + 100):
        case = outer_case(seed, late=seed % LATE_EVERY == LATE_EVERY - 1)
        for query in case.queries:
            assert isinstance(query, OuterQuery)
            try:
                rows = [row for _, row in OuterLoop(case, query, closes=True).rows()]
                wanted = table_rows(outer_rows(case, query))
            except (TooManyCombinationsError, duckdb.Error):
                continue
            assert difference(rows, wanted) is None, f"seed {seed}: {difference(rows, wanted)}\n{describe(case)}"
            checked += 1
    assert checked > 70


def test_a_relation_that_has_sent_nothing_matches_nothing_whatever_it_is_compared_by() -> None:
    assert fault(outer_case(100_630)) is None


def test_nobody_waits_for_partners_of_rows_that_a_later_join_takes_away() -> None:
    assert fault(outer_case(505_120)) is None
