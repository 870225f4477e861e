"""Every query of every random case outputs exactly what a batch SQL engine computes over the whole input.

A run checks 800 cases and 200 with other predicates than equalities; ``PLAIT_CASES=100000`` sets another number,
``PLAIT_SEED=1000000`` where they start.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings

from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected
from tests.property.case import Case, CaseQuery, describe
from tests.property.cases import random_case
from tests.property.expressions import Expression
from tests.property.front_end import from_structure
from tests.property.running import check
from tests.property.shrinking import shrink
from tests.property.strategies import cases
from tests.property.thetas import labels

CASES = int(os.environ.get("PLAIT_CASES", "800"))
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0"))
CHUNK = 50
LATE_EVERY = 10
MANY_FROM = 5_000_000 + FIRST_SEED
KINDS_FROM = 6_000_000
THETAS_FROM = KINDS_FROM + FIRST_SEED


def case_of(seed: int) -> Case:
    """Return the case of a seed; one in ten has late rows."""
    return random_case(seed, late=seed % LATE_EVERY == LATE_EVERY - 1)


def report(case: Case, problem: str) -> str:
    """Return what is wrong with the case, then a smaller case that is wrong too."""
    smaller = shrink(case, lambda found: check(found) is not None)
    layer = "in the front end" if check(smaller, from_structure) is None else "below the front end"
    return f"seed {case.seed}: {problem}\nfault {layer}; smallest case found: {check(smaller)}\n{describe(smaller)}"


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + CASES, CHUNK))
def test_every_query_outputs_what_duckdb_computes(first: int) -> None:
    checked = 0
    for seed in range(first, first + CHUNK):
        case = case_of(seed)
        try:
            problem = check(case)
        except UnsuitableCaseError:
            continue
        if problem is not None:
            pytest.fail(report(case, problem), pytrace=False)
        checked += 1
    assert checked > CHUNK * 0.8


@pytest.mark.parametrize("first", range(MANY_FROM, MANY_FROM + CASES // 20, CHUNK))
def test_five_and_six_queries_at_once_output_what_duckdb_computes(first: int) -> None:
    for seed in range(first, first + CHUNK):
        case = random_case(seed, queries=5 + seed % 2)
        strategy = ("ilp", "random")[seed // 2 % 2]
        case = case.with_options(strategies=(strategy,) * case.batches)
        try:
            problem = check(case)
        except UnsuitableCaseError:
            continue
        if problem is not None:
            pytest.fail(report(case, problem), pytrace=False)


@pytest.mark.parametrize("first", range(THETAS_FROM, THETAS_FROM + CASES // 4, CHUNK))
def test_queries_with_other_predicates_than_equalities_output_what_duckdb_computes(first: int) -> None:
    checked = 0
    for seed in range(first, first + CHUNK):
        case = random_case(seed, late=seed % LATE_EVERY == LATE_EVERY - 1, thetas=True)
        try:
            problem = check(case)
        except UnsuitableCaseError:
            continue
        if problem is not None:
            pytest.fail(report(case, problem), pytrace=False)
        checked += 1
    assert checked > CHUNK * 0.6


def test_every_kind_of_other_predicates_decides_about_results() -> None:
    """Each kind is among the conditions of queries with results, and for some pairs of rows true, for some not."""
    with_results: Counter[str] = Counter()
    verdicts: dict[str, set[bool]] = {label: set() for label in labels()}
    for seed in range(KINDS_FROM, KINDS_FROM + 220):
        case = random_case(seed, thetas=True, rows_scale=0.5)
        try:
            results = expected(case)
        except UnsuitableCaseError:
            continue
        for query in case.queries:
            for theta in query.conditions:
                if theta.label:
                    with_results[theta.label] += bool(results[query.name].num_rows)
                    verdicts[theta.label].update(verdicts_of(case, query, theta))
    assert {label for label in labels() if with_results[label] < 2} == set()
    assert {label for label, found in verdicts.items() if found != {True, False}} == set()


def verdicts_of(case: Case, query: CaseQuery, theta: Expression) -> set[bool]:
    """Tell whether the predicate is true of some pairs of rows, and whether it is not of some."""
    aliases = list(dict.fromkeys(alias for alias, _ in theta.columns))
    rows = [case.source(dict(query.relations)[alias]).rows.to_pylist() for alias in aliases]
    return {theta.value(dict(zip(aliases, pair, strict=True))) is True for pair in product(*rows)}


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases())
def test_hypothesis_finds_no_counterexample(case: Case) -> None:
    try:
        problem = check(case)
    except UnsuitableCaseError:
        return
    assert problem is None, f"{problem}\n{describe(case)}"
