"""Queries over the groups of other queries find what a SQL engine finds that computes these first, whatever batches,
starts and deaths there are in between.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.runtime.batch import made_groups
from tests.property.derived import Place, Results, random_place, random_queries
from tests.property.standin import frames
from tests.property.test_undecided_kills import POINTS, Deaths, live, suppress_ended

CASES = int(os.environ.get("PLAIT_CASES", "16"))
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0"))


@pytest.fixture
def deaths() -> Iterator[Deaths]:
    with pytest.MonkeyPatch.context() as patch:
        frames.install(patch.setattr)
        yield Deaths(patch)


def assert_as_wanted(place: Place) -> None:
    found, wanted = place.found(), place.wanted()
    for query in place.queries:
        lacking, extra = wanted[query.name] - found[query.name], found[query.name] - wanted[query.name]
        assert [lacking, extra] == [Counter(), Counter()], query


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_random_queries_over_groups_find_what_duckdb_does(
    tmp_path: Path, deaths: Deaths, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_groups, "is_ansi", lambda _: seed % 2 == 0)  # of odd ones Spark takes the groups in
    place, rng = random_place(tmp_path, seed), random.Random(seed)
    starts, found = rng.choice((1, 1, 3)), list[Results]()
    for start in range(starts):
        for _ in range(rng.randrange(1, 6)):
            place.arrive_somehow()
        engine = place.engine(
            strategy=rng.choice(("greedy", "dppick", "fixed", "shared")), parallelism=rng.randrange(1, 4)
        )
        engine.set_option("plait.compaction", rng.choice(("true", "false")))
        engine.run_available(close=start == starts - 1)
        found.append(place.found())
    assert_as_wanted(place)
    wanted = place.wanted()
    assert all(early[name] <= wanted[name] for early in found for name in wanted)


def test_the_random_queries_are_of_all_kinds_and_of_three_levels() -> None:
    kinds, levels = Counter[str](), Counter[int]()
    for seed in range(60):
        depth: dict[str, int] = {}
        for query in random_queries(random.Random(f"derived {seed}")):
            kinds[query.kind] += 1
            depth[query.name] = max(depth.get(name, 0) + (name not in "ab") for name in query.needs)
        levels[max(depth.values())] += 1
    assert min(kinds.values()) >= 3, kinds
    assert len(kinds) == 14, kinds
    assert min(levels[2], levels[3]) >= 5, levels


@pytest.mark.parametrize("point", POINTS)
def test_an_engine_that_dies_between_levels_loses_and_repeats_nothing(
    tmp_path: Path, deaths: Deaths, point: str
) -> None:
    rng, died = random.Random(f"derived deaths at {point}"), 0
    for count in (rng.randrange(1, 4), rng.randrange(4, 10)):
        place = random_place(tmp_path / f"life {count}", rng.randrange(1000))
        for _ in range(4):
            place.arrive()
        died += live(place, deaths, point, count)
        assert_as_wanted(place)
    assert died, f"no engine came to {point}"


@pytest.mark.parametrize("seed", range(4))
def test_lives_over_groups_in_which_engines_die_end_as_duckdb_says(tmp_path: Path, deaths: Deaths, seed: int) -> None:
    place, rng = random_place(tmp_path, 500 + seed), random.Random(seed)
    for number in range(3):
        for _ in range(rng.randrange(1, 4)):
            place.arrive()
        while True:
            deaths.arm(rng.choice(POINTS) if rng.random() < 0.6 else None, rng.randrange(1, 5))
            before = deaths.died
            try:
                with suppress_ended():
                    place.engine(strategy=rng.choice(("greedy", "shared"))).run_available(close=number == 2)
                break
            except Exception:
                if deaths.died == before:
                    raise
    assert_as_wanted(place)
