"""The oracles agree with each other, and the comparison sees every kind of difference."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.oracle.compare import difference, table_rows
from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected, late_masks
from tests.oracle.nested_loop import TooManyCombinationsError, nested_loop
from tests.property.case import describe
from tests.property.cases import random_case

CHUNK = 25


@pytest.mark.parametrize("chunk", range(8))
def test_duckdb_and_the_nested_loop_compute_the_same(chunk: int) -> None:
    compared = rows = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        case = random_case(seed, late=seed % 5 == 0, rows_scale=0.5)
        try:
            results = expected(case)
        except UnsuitableCaseError:
            continue
        for query in case.queries:
            try:
                loop = nested_loop(case, query)
            except TooManyCombinationsError:
                continue
            problem = difference(table_rows(results[query.name]), loop)
            assert problem is None, f"{query.name}: {problem}\n{describe(case)}"
            compared += 1
            rows += len(loop)
    assert compared > CHUNK
    assert rows > 100


@pytest.mark.parametrize("chunk", range(4))
def test_duckdb_and_the_nested_loop_agree_on_predicates_that_are_no_equality(chunk: int) -> None:
    compared = rows = 0
    for seed in range(6_000_000 + chunk * CHUNK, 6_000_000 + (chunk + 1) * CHUNK):
        case = random_case(seed, thetas=True)
        try:
            results = expected(case)
        except UnsuitableCaseError:
            continue
        for query in case.queries:
            try:
                loop = nested_loop(case, query)
            except TooManyCombinationsError:
                continue
            problem = difference(table_rows(results[query.name]), loop)
            assert problem is None, f"{query.name}: {problem}\n{describe(case)}"
            compared += 1
            rows += len(loop)
    assert compared > CHUNK
    assert rows > 1000


def test_punctual_cases_have_no_late_row_and_late_cases_have_some() -> None:
    assert not any(any(mask) for seed in range(60) for mask in late_masks(random_case(seed)).values())
    late = [sum(map(sum, late_masks(random_case(seed, late=True)).values())) for seed in range(60)]
    assert sum(count > 0 for count in late) > 15


def test_a_seed_gives_the_same_case_every_time() -> None:
    assert describe(random_case(7)) == describe(random_case(7))
    assert describe(random_case(7)) != describe(random_case(8))


@pytest.mark.parametrize(
    ("actual", "wanted"),
    [
        ([(float("nan"),)], [(float("nan"),)]),
        ([(-0.0,)], [(0.0,)]),
        ([(Decimal("1.50"),)], [(Decimal("1.5"),)]),
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]),
        ([(None,)], [(None,)]),
    ],
)
def test_values_that_sql_takes_as_equal_compare_equal(actual: list, wanted: list) -> None:
    assert difference(actual, wanted) is None


@pytest.mark.parametrize(
    ("actual", "wanted", "text"),
    [
        ([(1,)], [(1,), (1,)], "1 missing"),
        ([(1,), (1,)], [(1,)], "1 too many"),
        ([(1, "a")], [(1, "b")], "column 1: expected 'b', found 'a'"),
        ([(None,)], [(0,)], "column 0"),
        ([("",)], [(None,)], "column 0"),
        ([(True,)], [(1,)], "column 0"),
        ([(2**53,)], [(2**53 + 1,)], "column 0"),
        ([(Decimal("0.1"),)], [(0.1,)], "column 0"),
        ([(1, 2)], [(1,)], "length"),
    ],
)
def test_differences_are_found_and_named(actual: list, wanted: list, text: str) -> None:
    assert text in (difference(actual, wanted) or "")
