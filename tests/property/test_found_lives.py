"""Lives that failed once, made small. Each test says what must hold."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.oracle.entitlement import entitlements
from tests.property.case import CaseQuery, CaseSource
from tests.property.expressions import apply, column
from tests.property.found import Condition, joined, stream, table
from tests.property.life_running import check_life, run_life
from tests.property.lives import Declared, Life, Span, Way, describe
from tests.property.plain import plain_query

KEYS: Condition = ("{a.k} = {b.k}", lambda x, y: x == y)


def columns(query: CaseQuery, *names: str) -> CaseQuery:
    """Return a query with this output, given as ``alias.column``, named after it."""
    chosen = [each for each in query.projection if ".".join(each.columns[0]) in names]
    return plain_query("q_" + "_".join(n.replace(".", "") for n in names), query.relations, query.conditions, chosen)


def span(until: int, sources: tuple[CaseSource, ...], *queries: CaseQuery, **changes: object) -> Span:
    """Return a span. `changes` of `Declared` apply to all streams, others to the way it runs."""
    of_streams = {name: changes.pop(name) for name in ("keep_all", "dead_letter") if name in changes}
    declared = (
        Declared(name=source.name, source=source, **({} if source.is_table else of_streams))  # type: ignore[arg-type]
        for source in sources
    )
    way = Way(**{"parallelism": 1, **changes})  # type: ignore[arg-type]
    return Span(declared=tuple(declared), queries=queries, until=until, way=way)


def life(*spans: Span) -> Life:
    return Life(seed=-1, spans=spans)


def check(given: Life, owed: dict[str, int]) -> None:
    """Check a life; `owed`: how many rows each query must output, counted by hand."""
    found = {key: entitlement.must.total() for key, entitlement in entitlements(given).items()}
    assert found == owed
    problem = check_life(given)
    assert problem is None, f"{problem}\n{describe(given)}"


LEFT = stream("a", "k BIGINT, s STRING, x BIGINT", (0, 1, 5, "5", 1), (0, 2, 6, "6", 2))
RIGHT = stream("b", "k BIGINT, y BIGINT", (0, 1, 7, 1), (1, 3, 5, 2), (1, 3, 6, 3))
BOTH = (LEFT, RIGHT)
PAIRS = joined(LEFT, RIGHT, KEYS)


def test_a_query_added_later_finds_what_another_one_stored() -> None:
    first, added = columns(PAIRS, "a.s", "b.y"), columns(PAIRS, "a.s")
    check(life(span(1, BOTH, first), span(2, BOTH, first, added)), {first.name + "-0": 2, added.name + "-1": 2})


def test_a_query_dropped_and_brought_back_finds_what_others_have_kept_in_between() -> None:
    first, second = columns(PAIRS, "a.s", "b.y"), columns(PAIRS, "a.s")
    given = life(span(0, BOTH, first, second), span(1, BOTH, first), span(2, BOTH, second))
    check(given, {first.name + "-0": 0, second.name + "-0": 0, second.name + "-2": 2})


def test_dead_letters_lose_no_stored_row_when_queries_change() -> None:
    first, added = columns(PAIRS, "a.s", "a.x", "b.y"), columns(PAIRS, "a.s")
    changed = replace_key(added)
    given = life(span(1, BOTH, first, dead_letter=True), span(2, BOTH, changed, dead_letter=True))
    check(given, {first.name + "-0": 0, changed.name + "-1": 2})


def replace_key(query: CaseQuery) -> CaseQuery:
    """Join on a key that was not stored but can be computed from a column that was."""
    shifted = joined(LEFT, RIGHT, ("{a.x} + 4 = {b.k}", lambda x, y: x + 4 == y))
    return plain_query(query.name, query.relations, shifted.conditions, query.projection)


def test_a_query_that_stays_loses_nothing_to_one_that_shares_its_join_and_needs_another_column() -> None:
    first, needs_more = columns(PAIRS, "a.x", "b.y"), columns(PAIRS, "a.s")
    given = life(span(1, BOTH, first), span(2, BOTH, first, needs_more))
    check(given, {first.name + "-0": 2, needs_more.name + "-1": 0})


def test_what_one_new_query_lacks_takes_nothing_from_another_new_one() -> None:
    first, needs_more = columns(PAIRS, "a.x", "b.y"), columns(PAIRS, "a.s")
    changed = replace_key(columns(PAIRS, "a.x"))
    given = life(span(1, BOTH, first), span(2, BOTH, needs_more, changed))
    check(given, {first.name + "-0": 0, needs_more.name + "-1": 0, changed.name + "-1": 2})


def test_a_query_over_one_stream_is_filled_up_with_what_was_stored() -> None:
    first = columns(PAIRS, "a.s", "b.y")
    alone = plain_query("alone", (("a", "a"),), (), [column("a", "s", "s", True)])
    given = life(span(1, BOTH, first), span(2, BOTH, alone, backfill=True))
    check(given, {first.name + "-0": 0, "alone-1": 2})


def test_a_query_that_comes_back_is_not_filled_up_with_what_its_sink_has_already() -> None:
    both = (stream("a", "k BIGINT", (0, 1, 5)), stream("b", "k BIGINT", *((batch, 1, 5) for batch in range(3))))
    pairs = joined(*both, KEYS)
    stays, returns = columns(pairs, "a.k", "b.k"), columns(pairs, "a.k")
    given = life(span(1, both, stays, returns), span(2, both, stays), span(3, both, stays, returns, backfill=True))
    check(given, {stays.name + "-0": 3, returns.name + "-0": 1, returns.name + "-2": 1})


def test_a_query_that_comes_back_after_all_rows_of_its_time_have_gone_is_a_new_one() -> None:
    both = (
        stream("a", "k BIGINT", (0, 1, 5), (1, 500, 5), (2, 501, 5), window_us=10),
        stream("b", "k BIGINT", (0, 1, 5), (1, 500, 6), (2, 500, 5), (3, 502, 6), window_us=10),
    )
    pairs = joined(*both, KEYS)
    stays, returns = columns(pairs, "a.k", "b.k"), columns(pairs, "a.k")
    given = life(span(1, both, stays, returns), span(3, both, stays), span(4, both, stays, returns, backfill=True))
    found = run_life(given).rows
    assert [len(found[key]) for key in (stays.name + "-0", returns.name + "-0", returns.name + "-2")] == [3, 1, 2]
    check(given, {stays.name + "-0": 3, returns.name + "-0": 1, returns.name + "-2": 0})


def test_a_stream_that_keeps_all_can_be_read_and_left_by_queries_that_share_nothing() -> None:
    first = columns(PAIRS, "a.s", "b.y")
    alone = plain_query("alone", (("a", "a"),), (), [column("a", "s", "s", True)])
    changes = {"keep_all": True, "strategy": "independent"}
    given = life(span(1, BOTH, alone, **changes), span(2, BOTH, alone, first, **changes))
    check(given, {"alone-0": 2, first.name + "-1": 2})


def test_what_a_stream_has_kept_that_kept_all_is_there_for_queries_that_share_nothing() -> None:
    first, second = columns(PAIRS, "a.s", "b.y"), columns(PAIRS, "a.s")
    kept = span(1, BOTH, first, keep_all=True, strategy="independent")
    given = life(kept, span(1, BOTH, second, strategy="independent"), span(2, BOTH, second, strategy="independent"))
    check(given, {first.name + "-0": 0, second.name + "-1": 2})


def test_a_query_that_stays_keeps_its_rows_when_its_streams_begin_to_keep_all() -> None:
    both = (stream("a", "k BIGINT", (0, 1, 5), (1, 1, 6)), stream("b", "k BIGINT", (0, 1, 7), (2, 1, 5)))
    stays = columns(joined(*both, KEYS, ("{a.k} = 5", lambda x: x == 5)), "a.k", "b.k")
    other = columns(joined(*both, KEYS, ("{a.k} = 6", lambda x: x == 6)), "a.k")
    given = life(
        span(2, both, stays, other, strategy="independent"),
        span(3, both, stays, other, keep_all=True, strategy="independent"),
    )
    check(given, {stays.name + "-0": 1, other.name + "-0": 0})


def test_a_query_with_shorter_windows_is_filled_up_with_all_that_was_stored() -> None:
    left = stream("a", "k BIGINT", (0, 1, 5), (1, 500, 8), (2, 501, 9), window_us=1000)
    right = stream("b", "k BIGINT", (0, 2, 5), (1, 500, 7), (2, 501, 9), window_us=1000)
    pairs = joined(left, right, KEYS)
    first = columns(pairs, "a.k", "b.k")
    shorter = plain_query("shorter", pairs.relations, pairs.conditions, first.projection, (("a", 5), ("b", 5)))
    given = life(span(2, (left, right), first), span(3, (left, right), shorter, backfill=True))
    check(given, {first.name + "-0": 1, "shorter-1": 2})


@pytest.mark.parametrize("strategy", ["greedy", "ilp", "bushy", "chain"])
def test_a_query_of_three_with_shorter_windows_is_filled_up_whatever_the_stores(strategy: str) -> None:
    left = stream("a", "k BIGINT", (0, 1, 5), (1, 500, 8), (2, 501, 9), window_us=1000)
    middle = stream("b", "k BIGINT", (0, 2, 5), (1, 500, 8), (2, 501, 9), window_us=1000)
    right = stream("c", "k BIGINT", (0, 3, 5), (1, 500, 8), (2, 501, 9), window_us=1000)
    sources = (left, middle, right)
    keys = [column(each.name, "k", each.columns[0].kind.name, each.columns[0].kind.small) for each in sources]
    equal = [apply("{0} = {1}", lambda x, y: x == y, one, other, kind="b") for one, other in pairwise(keys)]
    relations = tuple((each.name, each.name) for each in sources)
    all_three = plain_query("all_three", relations, equal, keys)
    shorter = plain_query("shorter", relations, equal, keys, tuple((each.name, 5) for each in sources))
    given = life(
        span(2, sources, all_three, strategy=strategy),
        span(3, sources, shorter, backfill=True, strategy=strategy),
    )
    check(given, {all_three.name + "-0": 2, "shorter-1": 3})


def test_rows_are_not_forgotten_by_a_shorter_window_before_a_stream_that_joins_has_sent_anything() -> None:
    left = stream("a", "k BIGINT", (0, 1, 5), (1, 500, 8), window_us=1000)
    right = stream("b", "k BIGINT", (0, 2, 7), (1, 500, 7), window_us=1000)
    joins = stream("c", "k BIGINT", (0, 3, 5), (1, 500, 9), window_us=1000)
    first = columns(joined(left, right, KEYS), "a.k", "b.k")
    pairs = joined(left, joins, KEYS)
    shorter = plain_query("shorter", pairs.relations, pairs.conditions, first.projection, (("a", 5), ("b", 5)))
    given = life(span(2, (left, right), first), span(3, (left, joins), shorter))
    check(given, {first.name + "-0": 0, "shorter-1": 1})


def test_a_table_is_read_again_for_rows_that_no_query_of_its_time_wanted() -> None:
    """What was stored shows the selection `true`, asked by the other query; but that one needs another key."""
    left = stream("a", "k BIGINT, x BIGINT", (0, 1, 9, 9), (1, 2, 5, 9))
    right = table("t", "k BIGINT, r BIGINT", (5, None), (5, 1), (6, 9))
    equal: Condition = ("{a.x} = {b.r}", lambda x, r: x == r)
    present: Condition = ("{b.r} IS NOT NULL", lambda r: True)
    selective = columns(joined(left, right, KEYS, present), "a.k", "b.k")
    other = columns(joined(left, right, equal), "a.x")
    all_of_it = columns(joined(left, right, KEYS), "b.k")
    given = life(span(1, (left, right), selective, other), span(2, (left, right), all_of_it))
    check(given, {selective.name + "-0": 0, other.name + "-0": 1, all_of_it.name + "-1": 2})
