"""Sizes and values that random cases do not reach."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.property.found import case, query, stream, table
from tests.property.running import check

YEAR_1_US, YEAR_9999_US = -62_135_596_800_000_000, 253_402_300_799_999_999


@pytest.mark.parametrize("count", [62, 63, 64, 65, 130])
def test_more_selections_than_one_word_has_bits(count: int) -> None:
    rows = [(batch, batch * 10 + n, n % count, n) for batch in range(2) for n in range(2 * count)]
    left = stream("r", "k BIGINT, l BIGINT", *rows)
    right = stream("s", "k BIGINT, l BIGINT", *rows[:count])
    alone = [query(f"SELECT l FROM r WHERE k = {n} OR l = 7", ("r", "r")) for n in range(count)]
    joined = [
        query(f"SELECT r.l FROM r, s WHERE r.l = s.l AND s.k <> {n} AND r.k < {n}", ("r", "r"), ("s", "s"))
        for n in range(0, count, 16)
    ]
    assert check(case((left, right), *alone, *joined, parallelism=2)) is None


@pytest.mark.parametrize("window_us", [1, 2**62 - 1, None])
def test_the_first_and_the_last_instant_do_not_overflow(window_us: int | None) -> None:
    instants = [(0, YEAR_1_US, 1), (0, YEAR_9999_US, 1), (1, YEAR_9999_US, 1), (1, YEAR_9999_US - 1, 1)]
    left = stream("r", "k BIGINT", *instants, window_us=window_us, delay_us=10)
    right = stream("s", "k BIGINT", *instants, window_us=1, delay_us=10)
    pairs = query("SELECT r.ts, s.ts FROM r, s WHERE r.k = s.k", ("r", "r"), ("s", "s"))
    assert check(case((left, right), pairs, pairs)) is None


def test_one_key_on_all_rows_in_blocks_of_one() -> None:
    rows = [(batch, batch * 100 + n, 5) for batch in range(3) for n in range(20)]
    left, right = stream("r", "k BIGINT", *rows), stream("s", "k BIGINT", *rows, window_us=37)
    pairs = query("SELECT r.ts, s.ts FROM r JOIN s USING (k)", ("r", "r"), ("s", "s"))
    for routing in ("local", "shuffle"):
        assert check(case((left, right), pairs, block_rows=1, routing=routing, parallelism=3)) is None


def test_an_eight_way_self_join() -> None:
    rows = [(n % 4, 10 * n, n % 6, n) for n in range(12)]
    source = stream("r", "k BIGINT, l BIGINT", *rows, window_us=60, delay_us=1000)
    aliases = "abcdefgh"
    equal = " AND ".join(f"{left}.k = {right}.k" for left, right in pairwise(aliases))
    text = f"SELECT a.l, h.l FROM {', '.join(f'r {alias}' for alias in aliases)} WHERE {equal}"
    joined = query(text, *((alias, "r") for alias in aliases))
    for strategy in ("greedy", "independent"):
        assert check(case((source,), joined, strategy=strategy, parallelism=2)) is None


def test_streams_without_any_row_and_tables_without_any() -> None:
    empty, full = stream("r", "k BIGINT"), stream("s", "k BIGINT", (0, 1, 1), (1, 2, 1))
    nothing, something = table("t", "k BIGINT"), table("u", "k BIGINT", (1,), (None,))
    queries = [
        query("SELECT * FROM r, s WHERE r.k = s.k", ("r", "r"), ("s", "s")),
        query("SELECT s.k FROM s, t WHERE s.k = t.k", ("s", "s"), ("t", "t")),
        query("SELECT s.k FROM s, u WHERE s.k = u.k", ("s", "s"), ("u", "u")),
        query("SELECT k FROM r", ("r", "r")),
    ]
    assert check(case((empty, full, nothing, something), *queries, parallelism=2)) is None


def test_a_tuple_exactly_one_window_older_than_the_watermark_is_still_joined() -> None:
    left = stream("r", "k BIGINT", (0, 10, 1), (1, 15, 9), window_us=5)
    right = stream("s", "k BIGINT", (0, 10, 8), (1, 15, 7), (2, 15, 1))
    joined = query("SELECT r.ts, s.ts FROM r, s WHERE r.k = s.k", ("r", "r"), ("s", "s"))
    assert check(case((left, right), joined)) is None
