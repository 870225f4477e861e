"""Of what arrives in one batch the relation of the higher rank finds the other: by ranks, windows and batches alone."""

from __future__ import annotations

import pytest

from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.pick.beginnings import Beginnings
from plait.stats.model import SourceStatistics, Statistics

SECOND_US = 1_000_000
R, S, TABLE = 1, 2, 4
RANKS = ((0, 0), (1, 0), (-1, 0))


def beginnings(windows_s: tuple[int | None, int | None], batch_s: float | None, rows: float = 0.0) -> Beginnings:
    """Return those of two streams of 100 rows a second and a table."""
    extents = [
        Extent(source=name, is_table=False, window_us=None if window_s is None else window_s * SECOND_US)
        for name, window_s in zip("rs", windows_s, strict=True)
    ]
    extents.append(Extent(source="t", is_table=True, window_us=None))
    sources = tuple(SourceStatistics(source=name, rate_rows_per_s=100.0, rows=rows) for name in "rst")
    return Beginnings(extents, RANKS, Cardinality(statistics=Statistics(sources=sources, batch_s=batch_s)))


@pytest.mark.parametrize(
    ("batch_s", "of_r", "of_s"),
    [
        # A row of r misses the half batch of s that came with it, of 4 s; one of s finds as much of r beside its 1 s.
        (2.0, 1.0 - 1.0 / 4.0, 1.0 + 1.0 / 1.0),
        # Of a batch of 8 s a row of s sees at most 4 s ahead, and less near its end: 4 - 4 * 4 / (2 * 8) on average.
        (8.0, 1.0 - 3.0 / 4.0, 1.0 + 3.0 / 1.0),
    ],
)
def test_what_one_relation_misses_of_a_batch_the_other_finds(batch_s: float, of_r: float, of_s: float) -> None:
    found = beginnings((1, 4), batch_s)
    assert found.of(R, S) == pytest.approx(of_r)
    assert found.of(S, R) == pytest.approx(of_s)
    # Together they find what they would find row by row: 1 s of r and 4 s of s.
    assert found.of(R, S) * 4 + found.of(S, R) * 1 == pytest.approx(5.0)


def test_windows_of_two_batches_let_one_relation_find_a_good_deal_more_than_the_other() -> None:
    found = beginnings((2, 2), 1.0)
    assert found.of(S, R) / found.of(R, S) == pytest.approx(1.25 / 0.75)
    assert found.of_all(R | S, TABLE) == 1.0
    assert found.of_all(R, S) == pytest.approx(0.75)


def test_of_full_histories_it_does_not_matter_however_short_they_are() -> None:
    assert beginnings((None, None), 1.0, rows=200.0).origins == 0
    assert beginnings((2, None), 1.0, rows=200.0).origins == 0
    assert beginnings((2, 2), 1.0, rows=200.0).origins == R | S


def test_rows_of_tables_are_found_whoever_comes_and_nothing_is_known_before_a_batch() -> None:
    found = beginnings((2, 2), 1.0, rows=100.0)
    assert (found.of(R, TABLE), found.of(S, TABLE), found.origins) == (1.0, 1.0, R | S)
    assert beginnings((2, 2), None).origins == 0
