"""Which stored rows a batch looks at: no more with more that is stored, and all that matter."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from plait.operators.close import certain
from plait.operators.close.certain import certain_rows
from plait.operators.close.certain_sql import Span
from plait.operators.close.concerned import Sides, look_at_concerned
from plait.operators.close.meeting import link_of
from plait.operators.close.sides import Stored, side_of
from plait.operators.column_names import word_names
from plait.operators.probe.reader import Reader
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan as make_plan
from plait.plan.model import Plan
from plait.plan.relations import waiting_selections
from plait.query.model import Query
from plait.query.types import resolve_types
from plait.sql.predicates.evaluation import resolve_residuals
from plait.state.buckets import write_bucket
from plait.state.model import Bucket, Layout
from plait.state.storage import Storage
from plait.stats.model import Statistics
from tests.unit.sql.select.test_outer_joins import SECOND, SOURCES, bound

Row: TypeAlias = tuple[int | None, int | None, int]
"""k, x and event time."""

KEYS = ("#k bigint `k`", "#k bigint `x`")
LEFT = "SELECT a.k, a.x, b.x FROM a LEFT JOIN b ON a.k = b.k"


def resolved(select: str) -> Query:
    return resolve_residuals(resolve_types(bound(select), lambda _: "bigint"), lambda _: "bigint")


def planned(query: Query) -> Plan:
    options = PlanOptions(strategy="greedy", sources=tuple(SOURCES.values()), parallelism=1)
    return make_plan((query,), Statistics(), options)


def put(storage: Storage, query: Query, store: str, batch: int, given: Iterable[Row]) -> Iterator[Bucket]:
    """Store rows as the query wants them, those of which a condition holds that it keeps them for."""
    columns = zip(("k", "x", "#tau"), zip(*given, strict=True), strict=True)
    rows = pa.table({name: pa.array(values, pa.int64()) for name, values in columns})
    kept = [each.waiting for each in query.relations if each.source == store and each.waiting is not None]
    selections = tuple(dict.fromkeys(each.sql for waiting in kept for each in waiting_selections(waiting))) or ("true",)
    held = [f"(({sql}) IS TRUE)::BIGINT << {bit}".replace("`", '"') for bit, sql in enumerate(selections)]
    bits = duckdb.connect().from_arrow(rows).project(f"({' + '.join(held)})::BIGINT AS bits").to_arrow_table()["bits"]
    for name, values in ((KEYS[0], rows["k"]), (KEYS[1], rows["x"]), *((name, bits) for name in word_names(len(held)))):
        rows = rows.append_column(name, values)
    rows = rows.filter(pc.greater(bits, 0)).drop_columns(["#tau"] if store == "t" else [])
    if rows.num_rows:
        yield write_bucket(
            storage,
            store=store,
            partition=0,
            name=f"{batch}-0",
            table=rows,
            layout=Layout(columns=("k", "x"), keys=KEYS, values=(), selections=selections, has_tau=store != "t"),
            indexes=((KEYS[0],), (KEYS[1],)),
            batch_min=batch,
            batch_max=batch,
        )


def stored(
    storage: Storage, query: Query, before: Mapping[str, list[list[Row]]], fresh: Mapping[str, list[Row]]
) -> Stored:
    """Return batches of rows, and those of one more."""
    batches = [(store, n, rows) for store, each in before.items() for n, rows in enumerate(each) if rows]
    last = [(store, 1000, rows) for store, rows in fresh.items() if rows]
    return Stored(
        reader=Reader(storage),
        before=tuple(bucket for each in batches for bucket in put(storage, query, *each)),
        fresh=tuple(bucket for each in last for bucket in put(storage, query, *each)),
    )


def found(query: Query, plan: Plan, rows: Stored, span: Span) -> Counter[tuple[object, ...]]:
    columns = {ref: pa.int64() for output in query.output for ref in output.expression.columns}
    batch = certain_rows(query, plan, rows, span, columns)
    return Counter() if batch is None else Counter(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def looked_at(query: Query, plan: Plan, rows: Stored, span: Span) -> dict[str, tuple[int, int]]:
    """Return how many rows of each relation are looked at, and how many of its buckets are opened."""
    sides = {relation.alias: side_of(query, relation, plan, rows) for relation in query.relations}
    look_at_concerned(query, plan, span, sides)
    return {alias: (side.count, side.opened) for alias, side in sides.items()}


def in_order(count: int, first: int) -> list[list[Row]]:
    """Return batches of two rows a second apart, the keys of which come once: in all streams, and times `first`."""
    return [[(2 * n, n, 2 * n * SECOND), (first * (2 * n + 1), n, (2 * n + 1) * SECOND)] for n in range(count)]


@pytest.mark.parametrize(
    ("select", "most"),
    [
        (LEFT, {"a": (2, 3), "b": (0, 18)}),
        (LEFT.replace("LEFT", "FULL"), {"a": (2, 18), "b": (2, 18)}),
        (LEFT.replace("a.k = b.k", "a.k = b.k AND a.x <> b.x"), {"a": (4, 3), "b": (0, 18)}),
        (LEFT.replace("a.k = b.k", "a.k = b.k AND a.x >= 0"), {"a": (4, 3), "b": (2, 18)}),
        ("SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k", {"a": (2, 3), "b": (0, 18)}),
        ("SELECT a.k FROM a LEFT SEMI JOIN b ON a.k = b.k", {"a": (1, 8), "b": (1, 18)}),
        (
            "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.x = c.x",
            {"a": (6, 18), "b": (4, 24), "c": (12, 36)},
        ),
        (
            "SELECT a.k FROM a FULL JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k",
            {"a": (30, 60), "b": (30, 60), "c": (30, 60)},
        ),
    ],
)
def test_what_a_batch_looks_at_does_not_grow_with_what_is_stored(
    select: str, most: Mapping[str, tuple[int, int]], tmp_path: Path
) -> None:
    query, counts = resolved(select), []
    for count in (50, 100):
        storage = Storage.open(str(tmp_path / str(count)))
        streams = {alias: in_order(count, first) for alias, first in (("a", 1), ("b", -1), ("c", 1))}
        fresh = {alias: batches.pop() for alias, batches in streams.items()}
        span = Span(since_us=(2 * count - 6) * SECOND, last_us=(2 * count - 2) * SECOND - 1)
        counts.append(looked_at(query, planned(query), stored(storage, query, streams, fresh), span))
    assert counts[0] == counts[1]
    for alias, (rows, buckets) in most.items():
        assert counts[0][alias][0] <= rows, (alias, counts)
        assert counts[0][alias][1] <= buckets, (alias, counts)


SELECTS = (
    LEFT,
    LEFT.replace("LEFT", "RIGHT"),
    LEFT.replace("LEFT", "FULL"),
    LEFT.replace("a.k = b.k", "a.k = b.k AND a.x = b.x"),
    LEFT.replace("a.k = b.k", "a.k = b.k AND a.x <> b.x"),
    LEFT.replace("a.k = b.k", "a.x <> b.x"),
    LEFT + " WHERE b.k IS NULL AND a.x > 1",
    LEFT.replace("LEFT", "FULL") + " WHERE b.k IS NULL",
    "SELECT a.k, a.x FROM a LEFT SEMI JOIN b ON a.k = b.k",
    "SELECT a.k, a.x FROM a LEFT SEMI JOIN b ON a.k = b.k AND a.x <> b.x",
    "SELECT a.k, a.x FROM a LEFT SEMI JOIN b ON a.k = b.k WHERE a.x > 1",
    "SELECT a.k, a.x FROM a LEFT ANTI JOIN b ON a.k = b.k",
    "SELECT a.k, a.x FROM a LEFT SEMI JOIN t ON a.k = t.k",
    "SELECT a.k, a.x FROM a LEFT ANTI JOIN t ON a.k = t.k",
    "SELECT a.k, t.x FROM a LEFT JOIN t ON a.k = t.k",
    "SELECT a.k, t.x FROM t RIGHT JOIN a ON a.k = t.k",
    "SELECT a.k, b.x, c.x FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.x = c.x",
    "SELECT a.k, b.x, c.x FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.x = c.x",
    "SELECT a.k, b.x, c.x FROM a JOIN b ON a.k = b.k LEFT JOIN c ON b.x = c.x",
    "SELECT a.k, b.x, c.x FROM a LEFT JOIN b ON a.k = b.k JOIN c ON a.x = c.x",
    "SELECT a.k, b.x FROM a LEFT JOIN b ON a.k = b.k LEFT SEMI JOIN c ON a.x = c.x",
    "SELECT a.k, c.x FROM a LEFT SEMI JOIN b ON a.k = b.k LEFT JOIN c ON a.x = c.x",
    "SELECT a.k, c.x FROM a LEFT ANTI JOIN b ON a.k = b.k LEFT JOIN c ON a.x = c.x",
    "SELECT a.k, t.x, b.x FROM a LEFT JOIN t ON a.k = t.k LEFT JOIN b ON a.x = b.x",
    "SELECT a.k, b.x FROM a LEFT JOIN b ON a.k = b.k LEFT ANTI JOIN t ON a.x = t.x",
    "SELECT a.k, b.x, c.x FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON a.x <> c.x",
    "SELECT a.k, b.x, c.x FROM a FULL JOIN b ON a.k = b.k LEFT JOIN c ON a.x = c.x",
    "SELECT a.k, b.x, c.x FROM a LEFT JOIN b ON a.k = b.k FULL JOIN c ON b.x = c.x",
    "SELECT a.k, b.x, c.x FROM a FULL JOIN b ON a.k = b.k FULL JOIN c ON b.k = c.k",
    "SELECT a.k, b.x, c.x FROM a LEFT JOIN b ON a.k = b.k RIGHT JOIN c ON a.k = c.k",
    "SELECT a.k, c.x FROM a LEFT SEMI JOIN b ON a.k = b.k RIGHT JOIN c ON a.k = c.k",
    "SELECT a.k, b.x FROM a RIGHT JOIN b ON a.k = b.k LEFT ANTI JOIN c ON b.x = c.x",
    "SELECT a.k, b.x, c.x FROM a RIGHT JOIN b ON a.k = b.k LEFT JOIN c ON b.x <> c.x",
)


def everything(query: Query, plan: Plan, span: Span, sides: Sides) -> bool:
    for side in sides.values():
        side.look_at(side.everything())
    return False


@pytest.mark.parametrize("select", SELECTS)
def test_rows_that_are_not_looked_at_make_no_difference(
    select: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, results = resolved(select), 0
    plan = planned(query)
    for seed in range(5):
        rng = random.Random(seed)
        since = rng.choice((-(2**63) + 1, 30 * SECOND, 42 * SECOND))
        span = Span(since_us=since, last_us=max(since, 0) + rng.choice((-1, 5, 25)) * SECOND)

        def rows(count: int, first_s: int, rng: random.Random = rng) -> list[Row]:
            def one() -> Row:
                return rng.choice((None, *range(14))), rng.randrange(12), rng.randrange(first_s, 60) * SECOND

            return [one() for _ in range(count)]

        before = {name: [rows(rng.randrange(14), 0) for _ in range(4)] for name in "abct"}
        fresh = {name: rows(rng.randrange(16), max(since, 0) // SECOND) for name in "abc"}
        given = stored(Storage.open(str(tmp_path / str(seed))), query, before, fresh)
        concerned = found(query, plan, given, span)
        with monkeypatch.context() as patched:
            patched.setattr(certain, "look_at_concerned", everything)
            assert concerned == found(query, plan, given, span), f"seed {seed}"
        results += concerned.total()
    assert results > 0


@pytest.mark.parametrize(
    ("on", "partner", "stranger"),
    [("a.k = b.k AND a.x <> b.x", 6, 5), ("a.k = b.k AND a.x = b.x", 5, 6), ("a.k = b.k AND a.x + 3 <= b.x", 8, 7)],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_what_on_asks_beside_the_first_key_is_asked_of_all_that_have_it(
    on: str, partner: int, stranger: int, is_there: bool, tmp_path: Path
) -> None:
    query = resolved(LEFT.replace("a.k = b.k", on))
    others: list[Row] = [(1, partner if is_there else stranger, 0)]
    rows = stored(Storage.open(str(tmp_path)), query, {"a": [[(1, 5, 0)]], "b": [others]}, {})
    span = Span(since_us=0, last_us=20 * SECOND)
    assert found(query, planned(query), rows, span) == ({} if is_there else {(1, 5, None): 1})


@pytest.mark.parametrize("on", ["a.k = b.k AND a.x = b.x", "a.k = b.k AND abs(a.x - b.x) < 3"])
@pytest.mark.parametrize(("own", "other"), [(None, 0), (0, None), (None, None)])
def test_nothing_is_equal_or_near_to_null(on: str, own: int | None, other: int | None, tmp_path: Path) -> None:
    query = resolved(LEFT.replace("a.k = b.k", on))
    rows = stored(Storage.open(str(tmp_path)), query, {"a": [[(1, own, 0)]], "b": [[(1, other, 0)]]}, {})
    assert found(query, planned(query), rows, Span(since_us=0, last_us=20 * SECOND)) == {(1, own, None): 1}


@pytest.mark.parametrize(("at_s", "is_met"), [(20, True), (21, False)])
def test_a_row_as_old_as_its_window_is_long_is_met_by_time_alone(at_s: int, is_met: bool, tmp_path: Path) -> None:
    query = resolved(LEFT.replace("a.k = b.k", "a.x <> b.x"))
    before: dict[str, list[list[Row]]] = {"a": [[(1, 5, at_s * SECOND)]], "b": [[(2, 6, 0)]]}
    rows = stored(Storage.open(str(tmp_path)), query, before, {})
    span = Span(since_us=0, last_us=40 * SECOND)
    assert found(query, planned(query), rows, span) == ({} if is_met else {(1, 5, None): 1})


@pytest.mark.parametrize(("since_us", "is_found"), [(20 * SECOND, True), (20 * SECOND + 1, False)])
def test_a_row_whose_window_ends_as_a_span_begins_is_looked_at(since_us: int, is_found: bool, tmp_path: Path) -> None:
    query = resolved(LEFT)
    rows = stored(Storage.open(str(tmp_path)), query, {"a": [[(1, 5, 10 * SECOND)]]}, {})
    span = Span(since_us=since_us, last_us=since_us)
    assert found(query, planned(query), rows, span) == ({(1, 5, None): 1} if is_found else {})


@pytest.mark.parametrize(("at_us", "is_found"), [(40 * SECOND, False), (50 * SECOND, True), (50 * SECOND + 1, False)])
def test_a_row_of_a_right_side_is_looked_at_when_the_rows_on_its_left_have_waited(
    at_us: int, is_found: bool, tmp_path: Path
) -> None:
    query = resolved("SELECT a.k, b.x, c.x FROM a LEFT JOIN b ON a.k = b.k RIGHT JOIN c ON a.k = c.k")
    rows = stored(Storage.open(str(tmp_path)), query, {"c": [[(1, 5, 0)]]}, {})
    span = Span(since_us=at_us, last_us=at_us)
    assert found(query, planned(query), rows, span) == ({(None, None, 5): 1} if is_found else {})


def test_rows_that_were_kept_without_what_on_asks_of_them_are_not_looked_at(tmp_path: Path) -> None:
    query, before = resolved(LEFT + " AND b.x > 1"), resolved(LEFT)
    storage, given = Storage.open(str(tmp_path)), [[(1, 5, 0)]]
    for kept, buckets in ((query, 1), (before, 0)):
        rows = stored(storage, kept, {"b": given}, {})
        assert len(side_of(query, query.relation("b"), planned(query), rows).buckets) == buckets


def test_a_relation_is_linked_with_the_one_that_it_shares_most_keys_with() -> None:
    query = resolved("SELECT a.k FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON c.k = a.k AND b.x = c.x AND c.k = b.k")
    link = link_of(query, query.joins[1])
    assert (link.parent, len(link.equalities), link.is_whole) == ("b", 2, False)
    assert {(each.left.name, each.right.name) for each in link.equalities} == {(key, key) for key in KEYS}


@pytest.mark.parametrize(
    ("on", "is_whole"),
    [
        ("a.k = b.k AND a.x <> b.x", True),
        ("a.k = b.k AND a.x > 1", False),
        ("a.k = b.k AND b.x > 1", True),
        ("a.x <> b.x", False),
    ],
)
def test_nothing_else_is_asked_unless_something_is_told_of_rows_that_are_kept(on: str, is_whole: bool) -> None:
    query = resolved(f"SELECT a.k FROM a LEFT JOIN b ON {on}")
    assert link_of(query, query.joins[0]).is_whole == is_whole
