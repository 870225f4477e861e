"""Where a query only counts and adds up the relation joined last, what is kept comes to what pairs come to."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from plait.operators.traversal import gatherer
from tests.unit.operators.traversal.counting_run import CountingRun, Row

BY_KEY = (
    "SELECT window.start, r.k, count(*), count(s.x), sum(s.x), avg(r.x), sum(s.d), sum(r.d), min(s.c), max(r.c), "
    "max(s.f), min(s.d), count_if(s.b), count_if(r.b), max(s.b), min(s.ts), sum(r.k) "
    "FROM r JOIN s ON r.k = s.k GROUP BY window(r.ts, '20 seconds', '10 seconds'), r.k"
)
BY_TEXT = (
    "SELECT window.start, s.c, count(*), sum(r.x), sum(s.x), max(r.d), min(s.k) "
    "FROM r JOIN s ON r.c = s.c AND r.k = s.k WHERE s.x > 1 AND r.b GROUP BY window(s.ts, '7 seconds'), s.c"
)
OF_THREE = (
    "SELECT window.start, r.k, count(*), sum(t.x), sum(s.d), min(r.x) FROM r JOIN s ON r.k = s.k JOIN t ON s.x = t.x "
    "GROUP BY window(r.ts, '5 seconds'), r.k"
)
ALL = {"by_key": BY_KEY, "by_text": BY_TEXT, "of_three": OF_THREE}


def drawn(rng: random.Random, rows: int, begin_s: int) -> list[Row]:
    def or_null(value: object) -> object:
        return None if rng.random() < 0.15 else value

    return [
        (
            begin_s + rng.randrange(15),
            or_null(rng.randrange(3)),
            or_null(rng.choice(("a", "b", "ä"))),
            or_null(rng.choice((0, 1, 2, 3, -(2**31), 2**31 - 1))),
            or_null(rng.choice((0.5, float("inf"), -1e300, float("nan")))),
            or_null(Decimal(rng.choice(("1", "-9999999.99")))),
            or_null(rng.random() < 0.5),
        )
        for _ in range(rows)
    ]


def both(directory: Path, seed: int, **selects: str) -> tuple[CountingRun, CountingRun]:
    """Run queries over random rows, with pairs of all matches and without."""
    rng, runs = random.Random(seed), []
    how = {"within_s": rng.choice((0, 4, 30)), "parallelism": rng.choice((1, 3)), "weak_hash": rng.random() < 0.3}
    batches = [{name: drawn(rng, 25, 10 * number) for name in "rst"} for number in range(3)]
    for counts in (False, True):
        run = CountingRun(directory / str(counts), selects, counts=counts, **how)  # type: ignore[arg-type]
        for batch in batches:
            run.batch(**batch)
        runs.append(run)
    return runs[0], runs[1]


@pytest.mark.parametrize("seed", range(20))
def test_matches_that_are_counted_come_to_what_pairs_come_to(tmp_path: Path, seed: int) -> None:
    paired, counted = both(tmp_path, seed, **ALL)
    assert not any(step.is_counted for tree in paired.plan.trees for step in tree.steps())
    assert sum(step.is_counted for tree in counted.plan.trees for step in tree.steps()) >= 4
    assert counted.matches() == paired.matches()
    for query in ALL:
        assert comparable(counted, query) == comparable(paired, query)


def comparable(run: CountingRun, query: str) -> set[str]:
    return {repr(row) for row in run.groups(query)}


def rows_folded(directory: Path, rows: int, *, counts: bool) -> tuple[int, int]:
    """Return how many rows were folded, and results found, where every row has as many partners as there are rows."""
    folded: list[int] = []
    select = "SELECT r.k, count(*), sum(s.x) FROM r JOIN s ON r.k = s.k GROUP BY window(r.ts, '1 hour'), r.k"
    run = CountingRun(directory, {"q": select}, within_s=60, counts=counts)

    def counted(batch: pa.RecordBatch, *given: object) -> pa.RecordBatch:
        folded.append(batch.num_rows)
        return kept[len(given) > 2](batch, *given)  # type: ignore[arg-type]

    kept = (gatherer.fold, gatherer.fold_counted)
    with patch.object(gatherer, "fold", counted), patch.object(gatherer, "fold_counted", counted):
        for name in "rs":
            run.batch(**{name: [(at % 60, at % 5, None, 1, None, None, None) for at in range(5 * rows)]})
    assert run.groups("q") == {(0, key, rows * rows, rows * rows) for key in range(5)}
    return sum(folded), run.matches()


def test_as_many_rows_are_folded_as_there_are_keys_however_many_results_there_are(tmp_path: Path) -> None:
    assert rows_folded(tmp_path / "pairs", 100, counts=False) == (50_000, 50_000)
    assert rows_folded(tmp_path / "few", 10, counts=True) == (5, 500)
    assert rows_folded(tmp_path / "many", 100, counts=True) == (5, 50_000)


def test_queries_that_group_alike_by_other_windows_keep_the_same_files(tmp_path: Path) -> None:
    select = "SELECT r.k, count(*) FROM r JOIN s ON r.k = s.k GROUP BY window(r.ts, {}), r.k"
    windows = {"a": "'12 seconds'", "b": "'20 seconds', '10 seconds'", "c": "'9 seconds', '3 seconds', '1 second'"}
    others = {"other": select.format("'12 seconds'").replace("count(*)", "count(s.x)")}
    selects = {name: select.format(window) for name, window in windows.items()} | others
    run = CountingRun(tmp_path, selects, within_s=5)
    run.batch(r=[(at, 1, None, 1, None, None, None) for at in range(12)])
    report = run.batch(s=[(at, 1, None, 1, None, None, None) for at in range(12)])
    kept = {each.query: each.gathered for each in report.results}
    assert len(kept) == 4
    assert kept["a"] == kept["b"] == kept["c"] != kept["other"]
    # Panes of one second suit windows of 12, 20, 10, 9 and 3 that do not begin together; of 12, those that are alone.
    assert len(run.groups("a")) == 12
    assert len(run.groups("other")) == 1
