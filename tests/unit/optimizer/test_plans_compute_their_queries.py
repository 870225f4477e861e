"""Run random plans by hand, tuple by tuple, and compare with a nested loop over all input.

The interpreter below knows nothing of queries: it follows the trees, compares keys, and asks `Plan.rank` who was there
first. What it emits must be each result of each query, once.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.optimizer import STRATEGIES, plan
from plait.plan.model import Member, Output, Plan, Selection, Step
from plait.plan.relations import selection_of
from plait.plan.traversals import phases, split_part
from plait.plan.validate import validate
from plait.query.model import Query, SourceExpression
from plait.stats.model import Statistics
from tests.unit.optimizer.queries import options
from tests.unit.optimizer.random_orders import random_plan
from tests.unit.optimizer.random_queries import SOURCES, STREAMS, TABLES, query_sets

Row = tuple[int, int, int, int]
"""(identity, batch, a, b); the batch of table rows is -1."""


def value(expression: SourceExpression, row: Row) -> bool | int:
    names = {"`a`": str(row[2]), "`b`": str(row[3])}
    text = expression.sql.replace("=", "==").replace(" AND ", " and ").replace(" OR ", " or ")
    for name, number in names.items():
        text = text.replace(name, number)
    return eval(text)  # type: ignore[no-any-return]


def selected(selection: Selection, row: Row) -> bool:
    return all(value(conjunct, row) for conjunct in selection.conjuncts)


def draw_rows(rng: random.Random) -> dict[str, list[Row]]:
    rows = {}
    for number, name in enumerate((*STREAMS, *TABLES)):
        batches = [-1] * 2 if name in TABLES else [rng.randrange(3) for _ in range(3)]
        rows[name] = [(100 * number + n, batch, rng.randrange(3), rng.randrange(3)) for n, batch in enumerate(batches)]
    return rows


def results(query: Query, rows: Mapping[str, list[Row]]) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    """Yield every result of a query by trying all combinations."""
    aliases = [relation.alias for relation in query.relations]
    kept = [
        [row for row in rows[relation.source] if selected(selection_of(relation), row)] for relation in query.relations
    ]
    for combination in product(*kept):
        found = dict(zip(aliases, combination, strict=True))
        if all(
            value(equality.left.expression, found[equality.left.relation])
            == value(equality.right.expression, found[equality.right.relation])
            for equality in query.equalities
        ):
            yield query.name, tuple(sorted((alias, row[0]) for alias, row in found.items()))


def emitted(plan: Plan, rows: Mapping[str, list[Row]]) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
    """Yield what the plan emits when every row arrives in its batch, phase by phase."""
    kept: dict[str, list[tuple[int, int, tuple[Row, ...]]]] = defaultdict(list)

    def take(outputs: tuple[Output, ...], path: list[Row]) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
        for output in outputs:
            if not all(
                residual.selection is None or selected(residual.selection, path[residual.position])
                for residual in output.residual_filters
            ):
                continue
            yield output.query, tuple((alias, path[position][0]) for alias, position in output.positions)

    def key(member: Member, name: str, row: Row) -> object:
        key = plan.store(member.store).key(name)
        return key.type, value(key.expression, row)

    def stored(step: Step, start: tuple[int, tuple[int, int]]) -> Iterator[tuple[Row, ...]]:
        if step.parts:
            for batch, part, found in kept[step.member.store]:
                if (batch, plan.rank(step.parts[part])) < start:
                    yield found
            return
        for row in rows[plan.store(step.member.store).source or ""]:
            if (row[1], plan.rank(step.member)) < start and selected(step.member.selection, row):
                yield (row,)

    def probe(members: list[Member], path: list[Row], step: Step) -> Iterator[tuple[str, tuple[tuple[str, int], ...]]]:
        store = plan.store(step.member.store)
        for found in stored(step, (path[0][1], plan.rank(members[0]))):
            pairs = [(equality.left, *split_part(store, equality.right.name)) for equality in step.equalities]
            if all(
                key(members[known.at or 0], known.name, path[known.at or 0])
                == key(step.members[part], name, found[part])
                for known, part, name in pairs
            ):
                extended = [*path, *found]
                yield from take(step.outputs, extended)
                for fill in step.fills:
                    whole = tuple(extended[position] for position in fill.positions)
                    kept[fill.store].append((path[0][1], fill.positions.index(0), whole))
                for child in step.children:
                    yield from probe([*members, *step.members], extended, child)

    for batch in sorted({row[1] for found in rows.values() for row in found} - {-1}):
        for numbers in phases(plan):
            for tree in (plan.trees[number] for number in numbers):
                for row in rows[plan.store(tree.start.store).source or ""]:
                    if row[1] == batch and selected(tree.start.selection, row):
                        yield from take(tree.outputs, [row])
                        for step in tree.children:
                            yield from probe([tree.start], [row], step)


@given(queries=query_sets(largest=3), strategy=st.sampled_from(sorted(STRATEGIES)), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_each_result_is_emitted_exactly_once(queries: tuple[Query, ...], strategy: str, seed: int) -> None:
    rows = draw_rows(random.Random(seed))
    made = plan(queries, Statistics(), options(strategy, SOURCES))
    expected = Counter(result for query in queries for result in results(query, rows))
    assert Counter(emitted(made, rows)) == expected


@given(queries=query_sets(largest=4), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_each_result_is_emitted_exactly_once_by_way_of_any_intermediate_stores(
    queries: tuple[Query, ...], seed: int
) -> None:
    rng = random.Random(seed)
    rows = draw_rows(rng)
    made = random_plan(queries, Statistics(), options("greedy", SOURCES), rng)
    validate(made, queries)
    expected = Counter(result for query in queries for result in results(query, rows))
    assert Counter(emitted(made, rows)) == expected
