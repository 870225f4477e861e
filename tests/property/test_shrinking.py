"""A failing case loses everything that its failure does not need."""

from __future__ import annotations

from tests.property.case import Case
from tests.property.cases import random_case
from tests.property.running import check
from tests.property.shrinking import shrink


def has(case: Case, label: str) -> bool:
    return any(condition.label == label for query in case.queries for condition in query.conditions)


def is_of_a_stream(case: Case, label: str) -> bool:
    """Tell whether every such predicate reads a stream: without one there is no query."""
    found = [
        [case.source(dict(query.relations)[alias]).is_table for alias, _ in condition.columns]
        for query in case.queries
        for condition in query.conditions
        if condition.label == label
    ]
    return bool(found) and not any(map(all, found))


def test_one_predicate_is_left_of_all_join_conditions_and_the_case_still_runs() -> None:
    for label in ("like", "band", "missing or more"):
        seed = next(seed for seed in range(10_000) if is_of_a_stream(_large(seed), label))
        smaller = shrink(_large(seed), lambda case, label=label: has(case, label))
        (query,) = smaller.queries
        assert [condition.label for condition in query.conditions] == [label]
        assert (len(query.relations), len(query.projection)) == (2, 1)
        assert {source.name for source in smaller.sources} == {name for _, name in query.relations}
        assert all(source.rows.num_rows == 0 for source in smaller.sources)
        assert check(smaller) is None


def _large(seed: int) -> Case:
    case = random_case(seed, thetas=True)
    return case if len(case.queries) > 1 and len(case.queries[0].relations) > 2 else random_case(3)
