from __future__ import annotations

import random

import pytest

from plait.stats.sketch import SKETCH_SIZE, estimate_distinct, merge_sketches


def sketch(distinct: int, seed: int, k: int = SKETCH_SIZE) -> tuple[int, ...]:
    rng = random.Random(seed)
    return tuple(sorted(rng.randrange(2**64) for _ in range(distinct))[:k])


@pytest.mark.parametrize("distinct", [0, 1, 200, SKETCH_SIZE - 1])
def test_a_sketch_that_is_not_full_counts_exactly(distinct: int) -> None:
    assert estimate_distinct(sketch(distinct, 1)) == distinct


@pytest.mark.parametrize("distinct", [SKETCH_SIZE, 1_000, 20_000])
def test_estimates_lie_within_three_standard_errors_and_have_no_bias(distinct: int) -> None:
    estimates = [estimate_distinct(sketch(distinct, seed)) for seed in range(20)]
    assert all(abs(estimate - distinct) < 0.19 * distinct for estimate in estimates)
    assert sum(estimates) / len(estimates) == pytest.approx(distinct, rel=0.05)


def test_an_estimate_never_exceeds_the_rows_nor_falls_below_what_was_seen() -> None:
    full = sketch(10_000, 3)
    assert estimate_distinct(full, rows=5_000) == 5_000
    assert estimate_distinct(full, rows=3) == SKETCH_SIZE, "rows lag behind: the hashes are the evidence"
    assert estimate_distinct(tuple(range(2**64 - SKETCH_SIZE, 2**64))) == SKETCH_SIZE


def test_merging_gives_the_sketch_of_everything() -> None:
    rng = random.Random(5)
    hashes = [rng.randrange(2**64) for _ in range(3_000)]
    parts = [tuple(sorted(set(hashes[start : start + 1_200]))[:SKETCH_SIZE]) for start in (0, 900, 1_800)]
    assert merge_sketches(*parts) == tuple(sorted(hashes)[:SKETCH_SIZE])


def test_merging_keeps_every_bit_of_large_and_small_hashes() -> None:
    assert merge_sketches((1, 2**64 - 1), (1, 2**63 + 1), ()) == (1, 2**63 + 1, 2**64 - 1)
    assert merge_sketches() == () == merge_sketches(())
    assert merge_sketches((1, 3), (2,), k=2) == (1, 2)
