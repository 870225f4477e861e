"""Every query that groups by windows of event time, or sessions, writes the groups of each window once, in the batch in
which the watermark has come to its end, and nothing is left when the input ends.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.oracle.compare import difference
from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.property.case import Case, describe
from tests.property.cases import random_case
from tests.property.windowed import Grouping, expected_groups, grouped_case
from tests.property.windowed_run import run_windowed

CASES = int(os.environ.get("PLAIT_CASES", "200"))
FIRST_SEED = 9_000_000 + int(os.environ.get("PLAIT_SEED", "0"))
CHUNK = 50
LATE_EVERY = 5


def case_of(seed: int) -> Case:
    """Return the case of a seed; one in five has late rows."""
    return random_case(seed, late=seed % LATE_EVERY == LATE_EVERY - 1, rows_scale=0.8)


def fault(case: Case, groupings: dict[str, Grouping], ways: Counter[str]) -> str | None:
    """Return what is wrong with what was written; None if all is well. `ways`: how it was found, by case."""
    wanted, written = expected_groups(case, groupings), run_windowed(case)
    ways["counted"] += written.counted > 0
    ways["shared"] += written.shared > 0
    for query in groupings:
        for batch in range(case.batches + 1):
            problem = difference(written.groups[query][batch], wanted[query].get(batch, []))
            if problem is not None:
                return f"{query}, batch {batch}: {problem}"
    if written.stale:
        return f"{written.stale} rows of sessions wait that have been written"
    return f"{written.left} files are left" if written.left else None


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + CASES, CHUNK))
def test_every_window_is_written_once_and_as_soon_as_it_is_over(first: int) -> None:
    checked = 0
    ways = Counter[str]()
    for seed in range(first, first + CHUNK):
        case, groupings = grouped_case(case_of(seed))
        try:
            problem = fault(case, groupings, ways) if groupings else None
        except UnsuitableCaseError:
            continue
        if problem is not None:
            pytest.fail(f"seed {seed}: {problem}\n{groupings}\n{describe(case)}", pytrace=False)
        checked += bool(groupings)
    assert checked > CHUNK * 0.4
    assert min(ways["counted"], ways["shared"]) >= 2, ways


def test_the_cases_have_all_kinds_of_windows_and_close_some_of_them_early() -> None:
    seen = Counter[str]()
    for seed in range(FIRST_SEED, FIRST_SEED + 60):
        case, groupings = grouped_case(case_of(seed))
        try:
            written = expected_groups(case, groupings)
        except UnsuitableCaseError:
            continue
        for name, how in groupings.items():
            batches = [batch for batch, rows in written[name].items() if rows]
            kind = "hopping" if how.slide_us < how.size_us else "tumbling"
            seen[kind if how.gap_us is None else "sessions"] += bool(batches)
            seen["joined sessions"] += bool(batches) and how.gap_us is not None and how.lag_us > 0
            seen["sessions by computed keys"] += bool(batches) and how.gap_us is not None and "%" in how.plain.sql
            seen["joined"] += bool(batches) and len(how.plain.relations) > 1
            seen["lagging"] += bool(batches) and how.lag_us > 0
            seen["distinct"] += bool(batches) and not how.aggregates
            seen["having"] += bool(batches) and how.having > 0
            seen["early"] += any(batch < case.batches for batch in batches)
            seen["in several batches"] += len(batches) > 2
    kinds = ("hopping", "tumbling", "sessions", "joined sessions", "joined", "lagging", "distinct", "having")
    assert min(seen[kind] for kind in (*kinds, "sessions by computed keys")) >= 2, seen
    assert min(seen["early"], seen["in several batches"]) >= 5, seen


def test_some_of_the_cases_have_groups_that_take_no_spark() -> None:
    made = sessions = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 400):  # few have sessions: as many as it takes
        if made > 10 and sessions > 2:
            return
        case, groupings = grouped_case(case_of(seed))
        try:
            written = run_windowed(case) if groupings else None
        except UnsuitableCaseError:
            continue
        made += 0 if written is None else written.made
        sessions += 0 if written is None else written.sessions_made
    pytest.fail(f"groups that take no Spark: {made}, of sessions {sessions}")
