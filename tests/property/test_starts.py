"""What a start makes of the script and of what the start before has left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.errors import CheckpointError
from plait.runtime.batch.events import BatchEvent
from plait.sql import load_script
from tests.property.standin.session import Session
from tests.property.test_undelivered import Place, place

__all__ = ["place"]

STREAMS = """
    CREATE STREAM a (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{0}/a') TIMESTAMP BY ts {1};
    CREATE STREAM b (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{0}/b')
        TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
"""


def run(folder: Path, script: str, window: str = "", **told: Any) -> plait.Engine:
    """Run a script on all that is there; return the engine."""
    engine = plait.Engine(Session(), checkpoint=str(folder / "checkpoint"), **told)  # type: ignore[arg-type]
    engine.load(load_script(script.format(folder, window), file="shop.sql"))
    engine.run_available()
    return engine


def test_what_the_script_probably_does_not_mean_is_told_with_the_first_batch_and_at_the_end(place: Place) -> None:
    place.arrive(1)
    script = STREAMS + "CREATE QUERY q INTO noop AS SELECT a.v FROM a JOIN b ON a.k = b.k;"
    events: list[BatchEvent] = []
    engine = run(place.folder, script, listener=events.append)
    told = engine.summary().warnings
    (warning,) = (notice for notice in told if notice.kind != "event times")  # those of the rows are in 1970
    assert (warning.kind, warning.of, warning.is_of_start) == ("no window", "a", False)
    assert warning.text.startswith("shop.sql:2:5: stream 'a' has no WINDOW and query 'q' joins it with streams")
    assert events[0].warnings == told
    assert warning.as_json() in engine.status()["totals"]["warnings"]
    place.arrive(2)
    again = run(place.folder, script, "WINDOW UNBOUNDED")
    assert {notice.kind for notice in again.summary().warnings} == {"event times"}


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b'{"format": 99}'])
def test_a_former_plan_that_cannot_be_read_costs_no_row_of_a_table(place: Place, content: bytes) -> None:
    (place.folder / "names").mkdir()
    rows = [{"id": v, "name": f"n{v}", "side": f"s{v % 2}"} for v in range(10)]
    pq.write_table(pa.Table.from_pylist(rows), place.folder / "names" / "1.parquet")
    table = f"CREATE TABLE t USING parquet OPTIONS (path '{place.folder}/names');"
    first = "CREATE QUERY q INTO memory AS SELECT a.v, t.name FROM a JOIN t ON a.v = t.id WHERE t.side = 's1';"
    place.arrive(1, 2, 3)
    engine = run(place.folder, STREAMS + table + first, "WINDOW UNBOUNDED")
    assert engine.results("q").sort_by("v").to_pylist() == [{"v": 1, "name": "n1"}, {"v": 3, "name": "n3"}]
    (plan,) = (place.folder / "checkpoint" / "plait" / "plans").glob("*.json")
    plan.write_bytes(content)
    place.arrive(4, 5)
    second = "CREATE QUERY r INTO memory AS SELECT a.v, t.side FROM a JOIN t ON a.v = t.id;"
    engine = run(place.folder, STREAMS + table + first + second, "WINDOW UNBOUNDED")
    assert engine.results("q").to_pylist() == [{"v": 5, "name": "n5"}]
    assert engine.results("r").sort_by("v").to_pylist() == [{"v": 4, "side": "s0"}, {"v": 5, "side": "s1"}]


def test_a_query_that_is_new_says_that_its_past_comes_with_the_next_batch(place: Place) -> None:
    script = "SET plait.backfill = true;" + STREAMS
    first = "CREATE QUERY q INTO noop AS SELECT a.v FROM a JOIN b ON a.k = b.k;"
    second = "CREATE QUERY r INTO memory AS SELECT a.v FROM a JOIN b ON a.k = b.k;"
    place.arrive(1)
    assert run(place.folder, script + first, "WINDOW UNBOUNDED").notices() == ()
    engine = run(place.folder, script + first + second, "WINDOW UNBOUNDED")
    assert engine.results("r").num_rows == 0
    (told,) = engine.notices()
    assert told.startswith("query 'r' is new: the results of what is stored come with the next batch")
    place.arrive(2)
    engine = run(place.folder, script + first + second, "WINDOW UNBOUNDED")
    assert engine.results("r").sort_by("v").to_pylist() == [{"v": 1}, {"v": 2}]
    assert run(place.folder, script + first + second, "WINDOW UNBOUNDED").notices() == ()


def test_rows_are_not_let_go_because_it_cannot_be_told_any_more_whether_a_query_wants_them(place: Place) -> None:
    streams = "".join(
        f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, v BIGINT, w BIGINT) "
        f"USING parquet OPTIONS (path '{{0}}/{name}') TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;"
        for name in "ab"
    )
    first = "CREATE QUERY q INTO memory AS SELECT a.v AS old, b.v AS new FROM a JOIN b ON a.k = b.k;"
    # Of the rows of `a` that are there, `w` was not stored: nobody asked for it.
    second = "CREATE QUERY r INTO memory AS SELECT a.k, a.v FROM a JOIN b ON a.v = b.v WHERE a.w > 1;"
    write_rows(place.folder / "a" / "1.parquet", (1, 10, 5), (2, 20, 5))
    write_rows(place.folder / "b" / "1.parquet", (7, 7, 7))
    run(place.folder, streams + first)
    write_rows(place.folder / "b" / "2.parquet", (8, 8, 8))
    run(place.folder, streams + second)
    write_rows(place.folder / "b" / "3.parquet", (1, 11, 0), (2, 21, 0))
    engine = run(place.folder, streams + first)
    assert engine.results("q").sort_by("old").to_pylist() == [{"old": 10, "new": 11}, {"old": 20, "new": 21}]


def write_rows(path: Path, *rows: tuple[int, int, int]) -> None:
    path.parent.mkdir(exist_ok=True)
    columns = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
    times = pa.array([1_000_000] * len(rows), pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table([times, *columns], names=["ts", "k", "v", "w"]), path)


def test_a_second_engine_on_a_checkpoint_is_refused_while_the_first_one_runs(place: Place) -> None:
    place.arrive(1)
    refused: list[str] = []

    def intrude(event: BatchEvent) -> None:
        with pytest.raises(CheckpointError) as raised:
            run(place.folder, script)
        refused.append(str(raised.value))

    script = STREAMS + "CREATE QUERY q INTO memory AS SELECT a.v FROM a JOIN b ON a.k = b.k;"
    engine = run(place.folder, script, listener=intrude)
    assert refused
    assert all(text.startswith("another run works on checkpoint") for text in refused)
    assert engine.results("q").num_rows == 1
    run(place.folder, script)
