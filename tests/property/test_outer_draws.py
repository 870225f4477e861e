"""What random cases of outer, semi and anti joins draw: every type in every place, every kind of join after others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.property.case import Case
from tests.property.expressions import Expression
from tests.property.outer_cases import KINDS, TESTS, OuterQuery, outer_case
from tests.property.values import BY_NAME, NESTED

SEEDS = range(1000)
NAMES = frozenset(BY_NAME)


@pytest.fixture(scope="module")
def drawn() -> list[tuple[Case, OuterQuery]]:
    cases = [outer_case(seed, late=seed % 10 == 9) for seed in SEEDS]
    return [(case, query) for case in cases for query in case.queries if isinstance(query, OuterQuery)]


def kinds_of(case: Case, query: OuterQuery, item: Expression) -> Iterator[str]:
    """Yield the kinds of the columns that an expression reads."""
    sources = dict(query.relations)
    for alias, name in item.columns:
        yield next(each.kind.name for each in case.source(sources[alias]).columns if each.name == name)


def is_of_two(item: Expression) -> bool:
    return len({alias for alias, _ in item.columns}) == 2


def test_every_kind_of_column_is_a_key_a_residual_and_an_output(drawn: list[tuple[Case, OuterQuery]]) -> None:
    seen: dict[str, set[str]] = {"key": set(), "residual": set(), "condition": set(), "output": set()}
    for case, query in drawn:
        asked = [item for join in query.joins for item in join.on] + list(query.where)
        for item in asked:
            what = ("key" if item.template == "{0} = {1}" else "residual") if is_of_two(item) else "condition"
            seen[what].update(kinds_of(case, query, item))
        for item in query.projection:
            seen["output"].update(kinds_of(case, query, item))
    assert NAMES - seen["key"] == set()
    assert NAMES - seen["residual"] - NESTED == set()
    assert NAMES - seen["condition"] == set()
    assert {name for name in NAMES if BY_NAME[name].is_kept} - seen["output"] == set()


def test_every_kind_of_join_comes_after_every_other(drawn: list[tuple[Case, OuterQuery]]) -> None:
    after = Counter((one.kind, other.kind) for _, query in drawn for one, other in pairwise(query.joins))
    assert set(after) == {(one, other) for one in set(KINDS) for other in set(KINDS)}
    late = sum(count for (one, other), count in after.items() if one in TESTS and other in ("right", "full"))
    assert late > 20


def test_what_lacks_a_relation_is_asked_by_or_and_where_it_is_the_only_one(
    drawn: list[tuple[Case, OuterQuery]],
) -> None:
    lacking_or, of_two_in_where = 0, 0
    for _, query in drawn:
        lacking = {join.alias for join in query.joins if join.kind in ("left", "full")}
        asked = [item for join in query.joins for item in join.on] + list(query.where)
        lacking_or += sum(
            item.template == "({0} OR {1})" and bool(lacking & {alias for alias, _ in item.columns}) for item in asked
        )
        of_two_in_where += sum(map(is_of_two, query.where))
    assert lacking_or > 50
    assert of_two_in_where > 20


def test_joins_merge_columns_begin_with_tables_and_have_relations_without_rows(
    drawn: list[tuple[Case, OuterQuery]],
) -> None:
    merges = Counter((join.merges[:5], join.kind) for _, query in drawn for join in query.joins)
    assert {kind for word, kind in merges if word == "USING"} == set(KINDS)
    assert {kind for word, kind in merges if word == "NATUR"} >= set(KINDS) - {"semi", "anti"}
    assert sum(case.source(query.relations[0][1]).is_table for case, query in drawn) > 20
    bare = [
        (case.source(name).is_table, case.source(name).rows.num_rows)
        for case, query in drawn
        for _, name in query.relations
    ]
    assert Counter(bare)[True, 0] > 5
    assert Counter(bare)[False, 0] > 10
    assert sum(not is_table and rows == 1 for is_table, rows in bare) > 10
