"""Lives in which plans change between any two batches and intermediate stores are filled a few rows at a time: whoever
kills, restarts, adds and drops queries meanwhile, every query gets what it is entitled to.

A run checks 50 lives; ``PLAIT_LIVES=20000`` sets another number (two thirds of it are checked), ``PLAIT_SEED=1000000``
where they start.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace

import pytest

from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.property.forcing import Forcing
from tests.property.life_cases import FAIL_POINTS, random_life
from tests.property.life_running import check_life
from tests.property.life_shrinking import shrink_life
from tests.property.lives import Life, describe

LIVES = int(os.environ.get("PLAIT_LIVES", "75")) * 2 // 3
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0")) + 3_000_000
CHUNK = 25


def life_of(seed: int) -> Life:
    """Return a life of a few plain spans, killed more often than others."""
    rng = random.Random(f"filling {seed}")
    life = random_life(seed)
    spans = tuple(
        replace(span, kill=(rng.choice((0, 1, 1, 2)), rng.choice(FAIL_POINTS)) if rng.random() < 0.3 else None)
        for span in life.spans
    )
    return replace(life, spans=spans)


def forcing_of(seed: int) -> Forcing:
    """Return how plans change in a life."""
    rng = random.Random(f"forcing {seed}")
    return Forcing(seed=f"plans {seed}", share=rng.choice((0.2, 0.5, 0.9)), fill_rows=rng.choice((1, 2, 5, 20)))


def fault(life: Life) -> str | None:
    """Return what is wrong with a life under its changes of plan."""
    return check_life(life, forcing_of(life.seed).install)


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + LIVES, CHUNK))
def test_stores_that_are_filled_bit_by_bit_cost_and_repeat_no_result(first: int) -> None:
    seen = Counter[str]()
    for seed in range(first, first + CHUNK):
        life, forcing = life_of(seed), forcing_of(seed)
        try:
            problem = check_life(life, forcing.install)
        except UnsuitableCaseError:
            continue
        if problem is not None:
            smaller = shrink_life(life, lambda found: fault(found) is not None)
            text = f"seed {seed}: {problem}\nsmallest life found: {fault(smaller)}\n{describe(smaller)}"
            pytest.fail(text, pytrace=False)
        seen.update(changes=forcing.minds, in_between=forcing.in_between)
        seen.update(filling=sum(map(bool, forcing.stages)), arrived=sum(not lacking for lacking in forcing.stages))
    assert min(seen.values()) >= CHUNK // 8, seen
