"""Random lives of a checkpoint through real Spark: what its stand-in of `tests.property.standin` cannot show.

Named sources in Spark's own offset log, hashes of keys in buckets that are written anew, sinks. A run takes 10 lives;
``PLAIT_LIFECYCLES=200`` sets another number. Changes while the engine runs become restarts: when a batch ends is
Spark's to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.oracle.entitlement import Entitlement, entitlements
from tests.property.expressions import column
from tests.property.found import joined, stream
from tests.property.life_running import LifeRun, fault
from tests.property.lives import Life, describe
from tests.property.plain import plain_query
from tests.property.test_found_lives import KEYS, columns, span
from tests.property.test_life_cycles import life_of

pytestmark = pytest.mark.spark

LIVES = int(os.environ.get("PLAIT_LIFECYCLES", "10"))
PER_TEST = 5
FIRST_SEED = 800_000
MOST_BATCHES = 6


def telling_lives(first: int) -> Iterator[tuple[Life, dict[str, Entitlement]]]:
    """Yield short lives in which some query is owed something from before it came."""
    seed = first
    while True:
        seed += 1
        life = _restarted(life_of(seed))
        try:
            owed = entitlements(life)
        except UnsuitableCaseError:
            continue
        if 1 < len(life.spans) < 5 and life.spans[-1].until <= MOST_BATCHES and any(e.past for e in owed.values()):
            yield life, owed


def _restarted(life: Life) -> Life:
    """Return the life with restarts instead of changes while running, and without kills."""
    spans = (replace(span, is_restart=True, kill=None) for span in life.spans)
    return replace(life, spans=tuple(spans))


@pytest.mark.parametrize("group", range(-(-LIVES // PER_TEST)))
def test_every_query_outputs_what_it_is_entitled_to(group: int, spark: SparkSession, tmp_path: Path) -> None:
    lives = telling_lives(FIRST_SEED + 1000 * group)
    for number in range(PER_TEST):
        life, owed = next(lives)
        problem = fault(life, LifeRun(spark, life, tmp_path / str(number)).run(), owed)
        assert problem is None, f"{problem}\n{describe(life)}"


@pytest.mark.parametrize("rest", [1, 2, 4])
def test_a_stream_that_comes_back_is_read_from_where_it_had_come_to(
    rest: int, spark: SparkSession, tmp_path: Path
) -> None:
    """It comes back after `rest` batches without it, and there is a new file of it."""
    last = 1 + rest
    left = stream("a", "k BIGINT", (0, 1, 5), (last, 3, 6))
    right = stream("b", "k BIGINT", *((file, 2, 5) for file in range(last)), (last, 3, 6))
    pairs = columns(joined(left, right, KEYS), "a.k", "b.k")
    alone = plain_query("alone", (("b", "b"),), (), [column("b", "k", "l", True)])
    both = (left, right)
    life = Life(seed=-1, spans=(span(1, both, pairs), span(last, both, alone), span(last + 1, both, pairs)))
    owed = entitlements(life)
    assert {key: each.must.total() for key, each in owed.items()} == {"q_ak_bk-0": 1, "alone-1": rest, "q_ak_bk-2": 1}
    assert fault(life, LifeRun(spark, life, tmp_path / "life").run(), owed) is None
