"""Queries fail at every stage at which something is computed for them, several at once, for what is stored as for what
arrives, and whatever has been asked of them meanwhile: the others go on with exactly their results.
"""

from __future__ import annotations

import re

import pytest

import plait
from plait.errors import ComputationError
from plait.runtime.engine import Engine, QueryHandle
from plait.sql import load_script
from tests.property.standin.session import Session
from tests.property.test_failing_queries import LARGEST, NEVER, SCRIPT, Asked, aside, found
from tests.property.test_undelivered import JOIN, Place, place

__all__ = ["place"]

LAST = 5
"""The largest value for which what fails can be computed."""

KEPT = SCRIPT.replace("maxFilesPerTrigger '1'", "maxFilesPerTrigger '1', keep 'all'")
STEADY = Asked("steady", "selection", NEVER)
WINDOW = "FROM a JOIN b ON a.k = b.k GROUP BY window(a.ts, '10 seconds')"
STAGES = {
    "selection": Asked("", "selection", LAST).select,
    "key": Asked("", "key", LAST).select,
    "residual": Asked("", "residual", LAST).select,
    "partial": f"SELECT window.start, sum(a.v * {LARGEST // LAST}) AS v {WINDOW}",
    "having": f"SELECT window.start, max(a.v) AS v {WINDOW} HAVING max(a.v) * {LARGEST // LAST} % 7 >= 0",
    "group": f"SELECT window.start, max(a.v) * {LARGEST // LAST} AS v {WINDOW}",
    "lonely": f"SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON a.k = b.k AND a.v * b.v * {LARGEST // LAST**2} % 7 >= 0",
}


def opened(place: Place, queries: dict[str, str], **options: str) -> tuple[Engine, Session]:
    """Return an engine on the checkpoint with a query that never fails and these, and its session."""
    session = Session()
    engine = plait.Engine(session, checkpoint=str(place.folder / "checkpoint"))  # type: ignore[arg-type]
    for name, value in options.items():
        engine.set_option(f"plait.{name}", value)
    engine.load(load_script(KEPT.format(place.folder)))
    for name, select in {"steady": STEADY.select, **queries}.items():
        engine.query(name, select, sink=plait.sinks.parquet(str(place.folder / name)))
    return engine, session


def test_what_fails_at_every_stage_of_one_batch_is_set_aside_and_nothing_else(place: Place) -> None:
    place.arrive(1, 2)
    place.arrive(9)
    fitting = {f"{stage}_too": re.sub(r"\d{10,}", "1", select) for stage, select in STAGES.items()}
    engine, _ = opened(place, {**STAGES, **fitting})
    summary = engine.run_available(close=True)
    assert sorted(query for query, _ in summary.set_aside) == sorted(STAGES)
    assert found(place, "steady") == [1, 2, 9]
    assert [found(place, name) for name in ("selection", "key", "residual")] == [[1, 2]] * 3
    assert found(place, "having_too") == [9]


def test_a_start_sets_new_queries_aside_that_fail_for_stored_rows(place: Place) -> None:
    for value in (1, 9):
        place.arrive(value)
    opened(place, {})[0].run_available()
    place.arrive(2)
    engine, _ = opened(place, {name: STAGES[name] for name in ("selection", "key")})
    engine.run_available()
    assert sorted(aside(engine)) == ["key", "selection"]
    assert found(place, "steady") == [1, 2, 9]


def test_results_of_the_past_that_cannot_be_computed_set_their_queries_aside(place: Place) -> None:
    for value in (1, 9, 2):
        place.arrive(value)
    opened(place, {})[0].run_available()
    place.arrive(3)
    failing = {name: STAGES[name] for name in ("residual", "partial", "lonely")}
    engine, _ = opened(place, {**failing, "fits": Asked("", "residual", NEVER).select}, backfill="true")
    engine.run_available(close=True)
    assert sorted(aside(engine)) == sorted(failing)
    assert found(place, "steady") == [1, 2, 3, 9]
    assert found(place, "fits") == [1, 2, 3, 9]


def test_a_query_whose_intermediate_store_cannot_be_filled_is_set_aside(place: Place) -> None:
    for value in (1, 9, 2):
        place.arrive(value)
    third = "FROM a JOIN a AS c ON c.k = a.k JOIN b ON"
    queries = {
        name: select.replace("FROM a JOIN b ON", third)
        for name, select in {"fails": STAGES["residual"], "fits": JOIN}.items()
    }
    engine, _ = opened(place, queries, strategy="chain")
    engine.run_available()
    assert list(aside(engine)) == ["fails"]
    assert [found(place, name) for name in ("steady", "fits", "fails")] == [[1, 2, 9], [1, 2, 9], [1]]


def test_one_that_is_dropped_while_it_is_set_aside_can_be_asked_for_again(place: Place) -> None:
    for value in (1, 9, 2, 3):
        place.arrive(value)
    engine, session = opened(place, {"failing": STAGES["residual"]})
    done = set[int]()

    def boundary(batch: int, is_over: bool) -> None:
        if batch in (2, 3) and batch not in done:
            done.add(batch)
            if batch == 2:
                engine.drop("failing")
            else:
                sink = plait.sinks.parquet(str(place.folder / "failing"))
                engine.query("failing", STAGES["residual"], sink=sink)
            assert engine._run is not None
            engine._run.settle()

    session.boundary = boundary
    engine.run_available()
    assert (found(place, "failing"), found(place, "steady"), aside(engine)) == ([1, 3], [1, 2, 3, 9], {})


@pytest.mark.parametrize("stage", ["residual", "selection"])
def test_one_that_is_tried_again_and_fails_again_is_set_aside_again(place: Place, stage: str) -> None:
    """What fails of stored rows fails at once, what fails of pairs when the next pair comes."""
    for value in (1, 9, 8, 3):
        place.arrive(value)
    engine, session = opened(place, {"failing": STAGES[stage]})
    handles = list[QueryHandle]()

    def boundary(batch: int, is_over: bool) -> None:
        if batch == 2 and not handles:
            handles.append(engine.retry("failing"))
            assert engine._run is not None
            engine._run.settle()

    session.boundary = boundary
    engine.run_available()
    assert list(aside(engine)) == ["failing"]
    assert "set aside from batch 2 on" in (handles[0].set_aside or "")
    assert (found(place, "failing"), found(place, "steady")) == ([1], [1, 3, 8, 9])
    with pytest.raises(ComputationError):
        handles[0].wait_active(0)
