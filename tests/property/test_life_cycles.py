"""Random lives of a checkpoint: every query gets what it is entitled to, whatever came and went around it.

Streams and queries are added, dropped, changed, brought back and renamed between runs and while one is running; runs
are killed and started again. `tests.oracle.entitlement` says what each query must and may output. A run checks 75
lives; ``PLAIT_LIVES=20000`` sets another number, ``PLAIT_SEED=1000000`` where they start.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.oracle.entitlement import entitlements
from tests.property.life_cases import random_life
from tests.property.life_running import check_life
from tests.property.life_shrinking import shrink_life
from tests.property.lives import Life, Span, describe

LIVES = int(os.environ.get("PLAIT_LIVES", "75"))
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0"))
CHUNK = 25


def life_of(seed: int) -> Life:
    """Return the life of a seed."""
    return random_life(seed)


def report(life: Life, problem: str) -> str:
    """Return what is wrong with the life, then a smaller life that is wrong too."""
    smaller = shrink_life(life, lambda found: check_life(found) is not None)
    return f"seed {life.seed}: {problem}\nsmallest life found: {check_life(smaller)}\n{describe(smaller)}"


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + LIVES, CHUNK))
def test_every_query_outputs_what_it_is_entitled_to(first: int) -> None:
    checked = 0
    for seed in range(first, first + CHUNK):
        life = life_of(seed)
        try:
            problem = check_life(life)
        except UnsuitableCaseError:
            continue
        if problem is not None:
            pytest.fail(report(life, problem), pytrace=False)
        checked += 1
    assert checked > CHUNK * 0.8


def test_lives_go_through_every_kind_of_change_and_leave_little_open() -> None:
    seen: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + 80):
        life = life_of(seed)
        try:
            owed = entitlements(life)
        except UnsuitableCaseError:
            continue
        seen.update(changes_of(life))
        seen["queries"] += len(owed)
        seen["left open"] += sum(not each.is_exact for each in owed.values())
        seen["owed something from before they came"] += sum(each.past > 0 for each in owed.values())
    assert all(seen[kind] >= 3 for kind in KINDS), seen
    assert seen["left open"] < seen["queries"] * 0.15
    assert seen["owed something from before they came"] > seen["queries"] * 0.05


KINDS = (
    *("query added", "query dropped", "query changed", "query back"),
    *("stream added", "stream dropped", "stream back", "while running", "killed", "without batches", "backfill"),
    *("stream renamed", "stream idle", "window changed", "delay changed", "dead letters on", "dead letters off"),
)


def changes_of(life: Life) -> set[str]:
    """Return the kinds of changes in a life."""
    kinds = {"killed" for span in life.spans if span.kill is not None}
    kinds |= {"backfill" for span in life.spans if span.way.backfill}
    kinds |= {"stream idle" for span in life.spans if any(each.is_impatient for each in span.read())}
    queries: dict[str, int] = {}
    streams: set[str] = set()
    for before, after in zip(life.spans, life.spans[1:], strict=False):
        old, new = ({query.name: id(query) for query in span.queries} for span in (before, after))
        read, reads = ({each.name for each in span.read()} for span in (before, after))
        queries.update(old)
        streams |= read
        kinds |= {"query back" if name in queries else "query added" for name in new.keys() - old.keys()}
        kinds |= {"query changed" for name in new.keys() & old.keys() if old[name] != new[name]}
        kinds |= {"query dropped"} if old.keys() - new.keys() else set()
        kinds |= {"stream back" if name in streams else "stream added" for name in reads - read}
        kinds |= {"stream dropped"} if read - reads else set()
        kinds |= changes_of_streams(before, after)
        kinds |= {"while running"} if not after.is_restart else set()
        kinds |= {"without batches"} if after.until == before.until and reads <= read else set()
    return kinds


def changes_of_streams(before: Span, after: Span) -> set[str]:
    """Return how streams are told otherwise from one span to the next."""
    kinds: set[str] = set()
    for new in after.read():
        same = (old for old in before.read() if old.source.name == new.source.name)
        for old in same:
            kinds |= {"stream renamed"} if old.name != new.name else set()
            kinds |= {"window changed"} if old.source.window_us != new.source.window_us else set()
            kinds |= {"delay changed"} if old.source.delay_us != new.source.delay_us else set()
            if old.dead_letter != new.dead_letter:
                kinds.add(f"dead letters {'on' if new.dead_letter else 'off'}")
    return kinds
