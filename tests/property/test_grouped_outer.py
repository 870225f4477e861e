"""Queries that group outer, semi and anti joins by windows of event time: the rows that loops find of the joins, each
grouped once, in the batch in which the watermark has come to the end of a window and the window of its relation.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from plait.errors import UnsupportedQueryError
from tests.oracle.compare import difference
from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.oracle.nested_loop import TooManyCombinationsError
from tests.oracle.outer_loop import OuterLoop
from tests.property.case import Case, describe, quoted
from tests.property.expressions import Expression, column
from tests.property.outer_cases import OuterQuery, outer_case
from tests.property.windowed import (
    Grouping,
    Rows,
    drawn_aggregates,
    gap_of,
    grouped_rows,
    lengths,
    marks_after,
    tail_of,
)
from tests.property.windowed_run import run_windowed

CASES = int(os.environ.get("PLAIT_CASES", "200")) * 3 // 4
FIRST_SEED = 12_000_000 + int(os.environ.get("PLAIT_SEED", "0"))
CHUNK = 50
LATE_EVERY = 6
_KEYS, _NUMBERS = ("i", "l", "s", "b"), ("i", "l")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A query that groups, the one whose rows it groups, and how."""

    query: OuterQuery
    rows: OuterQuery
    how: Grouping


def drawn(case: Case) -> Drawn | None:
    """Return the first query of a case grouping, None if it cannot."""
    rng, query = random.Random(f"{case.seed} grouped outer"), case.queries[0]
    assert isinstance(query, OuterQuery)
    if any(join.kind in ("right", "full") for join in query.joins):
        return None
    source = case.source(query.relations[0][1])
    if source.is_table:
        return None
    taus = [tau for tau in source.taus() if tau is not None]
    time = next(each for each in source.columns if each.name == source.time)
    shown = [alias for alias, _ in query.relations if alias not in _tested(query)]
    keys = _columns(rng, case, query, shown, _KEYS, rng.choice((0, 1, 2)))
    aggregates = drawn_aggregates(rng)
    arguments = _columns(rng, case, query, shown, _NUMBERS, len(aggregates))
    if len(arguments) < len(aggregates):
        return None
    size, slide, start = lengths(rng, taus)
    window = f"window(a.{quoted(time.name)}, '{size} microseconds', '{slide} microseconds', '{start} microseconds')"
    gap = gap_of(rng, taus) if rng.random() < 0.4 else None
    name = "window" if gap is None else "session_window"
    if gap is not None:
        window = f"session_window(a.{quoted(time.name)}, '{gap} microseconds')"
    by = [_text(each) for each in keys]
    values = [each.sql.format(_text(argument)) for each, argument in zip(aggregates, arguments, strict=True)]
    select = ", ".join([f"{name}.start", f"{name}.end AS until", *by, *(f"{v} AS v{n}" for n, v in enumerate(values))])
    streams = [alias for alias, name in query.relations if not case.source(name).is_table]
    return Drawn(
        query=replace(query, sql=f"SELECT {select} {tail_of(query.sql)} GROUP BY {', '.join([window, *by])}"),
        rows=replace(query, projection=(column("a", time.name, time.kind.name, time.kind.small), *keys, *arguments)),
        how=Grouping(
            plain=query,
            size_us=size,
            slide_us=slide,
            start_us=start,
            lag_us=0 if len(streams) == 1 else case.window_us(query, "a") or 0,
            keys=len(keys),
            aggregates=aggregates,
            having=0,
            gap_us=gap,
        ),
    )


def _tested(query: OuterQuery) -> set[str]:
    return {join.alias for join in query.joins if join.kind in ("semi", "anti")}


def _text(expression: Expression) -> str:
    return expression.sql(lambda alias, name: f"{alias}.{quoted(name)}")


def _columns(
    rng: random.Random, case: Case, query: OuterQuery, shown: list[str], kinds: tuple[str, ...], count: int
) -> list[Expression]:
    found = [
        column(alias, each.name, each.kind.name, each.kind.small)
        for alias, source in query.relations
        if alias in shown
        for each in case.source(source).columns
        if each.kind.name in kinds
    ]
    return [rng.choice(found) for _ in range(count)] if found else []


def wanted_of(case: Case, query: Drawn) -> dict[int, Rows]:
    """Return what each batch writes; after the last one the input ends."""
    found = [row for _, row in OuterLoop(case, query.rows, closes=True).rows()]
    time = next(
        each
        for each in case.source(query.query.relations[0][1]).columns
        if each.name == query.rows.projection[0].columns[0][1]
    )
    table = pa.table([pa.array([row[0] for row in found], time.kind.arrow)], names=["p0"])
    for number in range(1, len(query.rows.projection)):
        table = table.append_column(f"p{number}", pa.array([row[number] for row in found]))
    return grouped_rows(table, query.how, marks_after(case))


def fault(case: Case, query: Drawn) -> str | None:
    """Return what is wrong with what was written; None if all is well."""
    wanted, written = wanted_of(case, query), run_windowed(case)
    for batch in range(case.batches + 1):
        problem = difference(written.groups[query.query.name][batch], wanted.get(batch, []))
        if problem is not None:
            return f"batch {batch}: {problem}"
    if written.stale:
        return f"{written.stale} rows of sessions wait that have been written"
    return f"{written.left} files are left" if written.left else None


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + CASES, CHUNK))
def test_rows_without_a_partner_are_grouped_as_soon_as_all_of_a_window_are_certain(first: int) -> None:
    checked = sessions = 0
    for seed in range(first, first + CHUNK):
        case = outer_case(seed, late=seed % LATE_EVERY == LATE_EVERY - 1)
        query = drawn(case)
        if query is None:
            continue
        case = replace(case, queries=(query.query,))
        try:
            problem = fault(case, query)
        except (UnsupportedQueryError, UnsuitableCaseError, TooManyCombinationsError):
            continue
        if problem is not None:
            pytest.fail(f"seed {seed}: {problem}\n{query.how}\n{describe(case)}", pytrace=False)
        checked += 1
        sessions += query.how.gap_us is not None
    assert sessions >= 2
    assert checked > CHUNK * 0.25
