"""What the engine promises around the joins: changes, restarts, bad input, failing sinks, running."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.errors import CheckpointError, OptionError, SinkError, SourceError

pytestmark = pytest.mark.spark

ORDERS = "ts TIMESTAMP, id BIGINT, item STRING"
PARTS = "ts TIMESTAMP, oid BIGINT, qty INT"


def put(folder: Path, number: int, rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> None:
    """Write one file of rows whose first column is event time in seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array([second * 1_000_000 for second in columns[0]], pa.timestamp("us", tz="UTC"))]
    for name, values in zip(names[1:], columns[1:], strict=True):
        arrays.append(pa.array(values, pa.int32() if name == "qty" else None))
    path = folder / f"{number:03d}.parquet"
    pq.write_table(pa.table(arrays, names=list(names)), path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def orders(tmp_path: Path, number: int, *rows: tuple[Any, ...]) -> None:
    put(tmp_path / "orders", number, list(rows), ("ts", "id", "item"))


def parts(tmp_path: Path, number: int, *rows: tuple[Any, ...]) -> None:
    put(tmp_path / "parts", number, list(rows), ("ts", "oid", "qty"))


def make(
    spark: Any,
    tmp_path: Path,
    *,
    orders_ddl: str = ORDERS,
    named: bool = True,
    checkpoint: str = "checkpoint",
    **options: Any,
) -> plait.Engine:
    engine = plait.Engine(spark, checkpoint=str(tmp_path / checkpoint), **options)
    for name, ddl in (("orders", orders_ddl), ("parts", PARTS)):
        (tmp_path / name).mkdir(exist_ok=True)
        reader = spark.readStream.name(name) if named else spark.readStream
        frame = reader.schema(ddl).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / name))
        engine.stream(name, frame, time="ts", window="100 seconds", delay="5 seconds")
    return engine


JOIN = "SELECT o.id, p.qty FROM orders o JOIN parts p ON o.id = p.oid"


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_a_query_added_on_an_old_checkpoint_sees_what_is_kept_and_the_others_go_on(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"), (2, 2, "b"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.parquet(str(tmp_path / "out")))
    assert dict(engine.run_available().queries) == {"join": 1}

    parts(tmp_path, 1, (3, 2, 20))
    again = make(spark, tmp_path)
    again.query("join", JOIN, sink=plait.sinks.parquet(str(tmp_path / "out")))
    reverse = again.query(
        "reverse", "SELECT p.qty, o.id FROM parts p, orders o WHERE p.oid = o.id", sink=plait.sinks.memory()
    )
    big = again.query("big", f"{JOIN} WHERE p.qty > 15", sink=plait.sinks.memory())
    assert dict(again.run_available().queries) == {"join": 1, "reverse": 1, "big": 1}
    assert rows(reverse.results()) == Counter([(20, 2)])
    assert rows(big.results()) == Counter([(2, 20)])
    assert rows(pq.read_table(tmp_path / "out")) == Counter([(1, 10), (2, 20)])


def test_a_query_added_later_uses_the_selections_that_stored_rows_already_carry(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"), (2, 2, "b"), (3, 3, "a"))
    parts(tmp_path, 0, (1, 9, 10))
    first = {
        "joined": "SELECT o.id FROM orders o JOIN parts p ON o.id = p.oid WHERE o.item = 'a'",
        "all": "SELECT o.id FROM orders o JOIN parts p ON o.id = p.oid",
    }
    engine = make(spark, tmp_path)
    for name, text in first.items():
        engine.query(name, text, sink=plait.sinks.noop())
    engine.run_available()

    # Column item was not kept, only whether it is 'a'; the new query needs that and a key computed from id.
    parts(tmp_path, 1, (4, 2, 20), (4, 3, 30))
    again = make(spark, tmp_path)
    for name, text in first.items():
        again.query(name, text, sink=plait.sinks.noop())
    added = again.query(
        "next",
        "SELECT o.id, p.oid FROM orders o JOIN parts p ON o.id + 1 = p.oid WHERE o.item = 'a'",
        sink=plait.sinks.memory(),
    )
    assert dict(again.run_available().queries) == {"joined": 1, "all": 2, "next": 1}
    assert rows(added.results()) == Counter([(1, 2)])


def test_a_dropped_query_leaves_what_no_other_needs_until_its_window_has_passed(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.query("items", "SELECT a.id FROM orders a JOIN orders b ON a.item = b.item", sink=plait.sinks.noop())
    engine.run_available()

    orders(tmp_path, 1, (2, 5, "a"))
    again = make(spark, tmp_path)
    kept = again.query("items", "SELECT a.id FROM orders a JOIN orders b ON a.item = b.item", sink=plait.sinks.memory())
    summary = again.run_available()
    assert rows(kept.results()) == Counter([(1,), (5,), (5,)])
    assert summary.stored_tuples == 3
    (notice,) = again.notices()
    assert notice in [each.text for each in summary.warnings]
    assert notice.startswith("no query needs the 1 stored rows of 'parts' now; they stay until its window has passed")

    orders(tmp_path, 2, (108, 6, "b"))
    assert again.run_available().stored_tuples == 1


def test_a_new_column_is_null_in_earlier_rows(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 7, 1))
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.run_available()

    put(tmp_path / "orders", 1, [(2, 2, "b", "red")], ("ts", "id", "item", "colour"))
    parts(tmp_path, 1, (3, 1, 10), (3, 2, 20))
    again = make(spark, tmp_path, orders_ddl=f"{ORDERS}, colour STRING")
    colours = again.query(
        "join", "SELECT o.id, o.colour FROM orders o JOIN parts p ON o.id = p.oid", sink=plait.sinks.memory()
    )
    again.run_available()
    assert rows(colours.results()) == Counter([(1, None), (2, "red")])


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("ts TIMESTAMP, id INT, item STRING", "'id' was bigint and is now int"),
        ("ts TIMESTAMP, id BIGINT", "'item' (string) is gone"),
    ],
)
def test_any_other_change_of_a_stream_is_refused(spark: Any, tmp_path: Path, ddl: str, message: str) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.run_available()
    changed = make(spark, tmp_path, orders_ddl=ddl)
    changed.query("join", JOIN, sink=plait.sinks.noop())
    with pytest.raises(CheckpointError, match="use another checkpoint") as caught:
        changed.run_available()
    assert message in str(caught.value)


def test_queries_come_and_go_while_the_engine_runs(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"), (2, 2, "b"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    first = engine.query("first", JOIN, sink=plait.sinks.memory())
    handle = engine.start(trigger="0 seconds")
    wait_until(lambda: len(first.results()) == 1)
    _refuse_sinks_while_running(engine, tmp_path)
    second = engine.query("second", JOIN, sink=plait.sinks.memory())
    assert second.wait_active(60)
    parts(tmp_path, 1, (3, 2, 20))
    wait_until(lambda: len(second.results()) == 1)
    engine.drop("first")
    parts(tmp_path, 2, (4, 2, 30))
    wait_until(lambda: len(second.results()) == 2)
    summary = handle.stop()
    assert rows(second.results()) == Counter([(2, 20), (2, 30)])
    assert summary.batches == 3
    assert not engine.status()["running"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("plait-planning")]


def _refuse_sinks_while_running(engine: plait.Engine, tmp_path: Path) -> None:
    """What would feed on itself, or write where others have, is refused and stops nothing."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "report.csv").write_text("a\n1\n")
    for path, reason in (
        ("orders", "is what stream 'orders' reads"),
        ("checkpoint/out", "where the checkpoint is"),
        ("theirs", "holds files that are not its results"),
    ):
        with pytest.raises(SinkError, match=reason):
            engine.query("second", JOIN, sink=plait.sinks.parquet(str(tmp_path / path)))
    assert engine.status()["running"]


def wait_until(condition: Any, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened in time"
        time.sleep(0.1)


def test_a_failing_sink_stops_nobody_and_gets_its_results_later(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    orders(tmp_path, 1, (2, 2, "b"))
    orders(tmp_path, 2, (3, 3, "c"))
    parts(tmp_path, 0, (1, 1, 10), (1, 2, 20), (1, 3, 30))
    calls: list[int] = []
    taken: list[tuple[Any, ...]] = []

    def take(frame: Any, batch: int) -> None:
        calls.append(batch)
        if len(calls) == 1:
            raise ValueError("not now")
        taken.extend((batch, *row) for row in frame.collect())

    engine = make(spark, tmp_path)
    engine.query("shy", JOIN, sink=plait.sinks.foreach(take))
    steady = engine.query("steady", JOIN, sink=plait.sinks.memory())
    summary = engine.run_available()
    assert rows(steady.results()) == Counter([(1, 10), (2, 20), (3, 30)])
    assert sorted(taken) == [(0, 1, 10), (1, 2, 20), (2, 3, 30)]
    assert summary.failing == ()


def test_a_sink_that_cannot_be_written_is_reported_and_served_after_a_restart(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    (tmp_path / "out").write_text("a file where the sink's directory should be")
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.parquet(str(tmp_path / "out")))
    steady = engine.query("steady", JOIN, sink=plait.sinks.memory())
    summary = engine.run_available()
    assert len(steady.results()) == 1
    assert [query for query, _ in summary.failing] == ["join"]

    (tmp_path / "out").unlink()
    parts(tmp_path, 1, (2, 1, 11))
    again = make(spark, tmp_path)
    again.query("join", JOIN, sink=plait.sinks.parquet(str(tmp_path / "out")))
    assert again.run_available().failing == ()
    assert rows(pq.read_table(tmp_path / "out")) == Counter([(1, 10), (1, 11)])


def test_a_folder_with_results_of_others_is_added_to_or_emptied_only_where_that_is_asked_for(
    spark: Any, tmp_path: Path
) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))

    def run(checkpoint: str, **options: Any) -> Counter[tuple[Any, ...]]:
        engine = make(spark, tmp_path, checkpoint=checkpoint)
        engine.query("join", JOIN, sink=plait.sinks.parquet(str(tmp_path / "out"), **options))
        engine.run_available()
        return rows(pq.read_table(tmp_path / "out"))

    assert run("one") == Counter({(1, 10): 1})
    with pytest.raises(SinkError, match="holds results of another checkpoint"):
        run("two")
    assert run("two", existing="append") == Counter({(1, 10): 2})
    parts(tmp_path, 1, (2, 1, 11))
    assert run("three", existing="overwrite") == Counter([(1, 10), (1, 11)])
    parts(tmp_path, 2, (3, 1, 12))
    assert run("three", existing="overwrite") == Counter([(1, 10), (1, 11), (1, 12)])
    with pytest.raises(SinkError, match=f"holds results of another checkpoint .*{tmp_path / 'three'}"):
        run("one")


def test_results_of_an_earlier_version_are_those_of_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    """It kept no id, left no marker, and named files without saying whose they are."""
    orders(tmp_path, 0, (1, 1, "a"))
    for number in range(2):
        parts(tmp_path, number, (1, 1, 10 + number))
        engine = make(spark, tmp_path)
        engine.query("join", JOIN, sink=plait.sinks.parquet(str(tmp_path / "out")))
        engine.run_available()
        if number == 0:
            (tmp_path / "checkpoint" / "plait" / "id").unlink()
            (tmp_path / "out" / "_plait").unlink()
            for file in (tmp_path / "out").glob("*.parquet"):
                file.rename(file.with_name(f"{file.stem.rpartition('-')[0]}.parquet"))
    assert rows(pq.read_table(tmp_path / "out")) == Counter([(1, 10), (1, 11)])
    assert (tmp_path / "out" / "_plait").exists()


def test_malformed_rows_and_rows_without_time_become_dead_letters(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    lines = [
        {"ts": "2026-01-01T00:00:01Z", "id": 1, "item": "a"},
        {"id": 2, "item": "no time"},
        {"ts": "2026-01-01T00:00:02Z", "id": "not a number", "item": "b"},
    ]
    (folder / "0.json").write_text("\n".join(json.dumps(line) for line in lines) + "\n{broken\n")
    parts(tmp_path, 0, (1_767_225_601, 1, 10), (1_767_225_601, 2, 20))
    script = f"""
        CREATE STREAM orders ({ORDERS}) USING json OPTIONS (path '{folder}', deadLetter '{tmp_path}/dead')
            TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
        CREATE STREAM parts ({PARTS}) USING parquet OPTIONS (path '{tmp_path}/parts')
            TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
        CREATE QUERY q INTO memory AS {JOIN};
    """
    from plait.sql.script.check import load_script

    engine = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    engine.load(load_script(script))
    summary = engine.run_available()
    assert rows(engine.results("q")) == Counter([(1, 10)])
    assert summary.bad == 3
    letters = pq.read_table(tmp_path / "dead").to_pylist()
    assert Counter((letter["stream"], letter["reason"]) for letter in letters) == Counter(
        {("orders", "malformed"): 2, ("orders", "no event time"): 1}
    )
    assert {letter["row"]["_corrupt_record"] for letter in letters} >= {"{broken"}


def test_an_idle_stream_does_not_hold_the_watermark_back(spark: Any, tmp_path: Path) -> None:
    now = [1_000.0]
    events = []
    engine = plait.Engine(
        spark, checkpoint=str(tmp_path / "checkpoint"), clock=lambda: now[0], listener=lambda event: hear(event)
    )

    def hear(event: Any) -> None:
        events.append(event)
        now[0] += 20

    for name, ddl, idle in (("orders", ORDERS, None), ("parts", PARTS, "30 seconds")):
        (tmp_path / name).mkdir(exist_ok=True)
        reader = spark.readStream.name(name).schema(ddl).option("maxFilesPerTrigger", 1)
        engine.stream(name, reader.parquet(str(tmp_path / name)), time="ts", window="1 second", idle=idle)
    for number in range(4):
        orders(tmp_path, number, (10 * number, number, "a"))
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.run_available()
    assert [event.watermark_us for event in events] == [None, None, 20_000_000, 30_000_000]
    assert [event.laggard for event in events][:2] == ["parts", "parts"]
    assert events[-1].stored_tuples == 1


@pytest.fixture
def unnamed(spark: Any) -> Iterator[Any]:
    """The session as a user has it who never heard of named streams."""
    setting = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
    spark.conf.set(setting, "false")
    yield spark
    spark.conf.set(setting, "true")


def test_streams_without_a_name_run_and_keep_their_checkpoint(unnamed: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    by_format = {"path": str(tmp_path / "parts"), "maxFilesPerTrigger": 1}
    for number in (1, 2):
        engine = make(unnamed, tmp_path, named=False)
        engine.stream("opened", format="parquet", options=by_format, schema=PARTS, time="ts", window="100 seconds")
        query = engine.query("join", JOIN, sink=plait.sinks.memory())
        other = engine.query("other", JOIN.replace("parts", "opened"), sink=plait.sinks.memory())
        assert dict(engine.run_available().queries) == {"join": 1, "other": 1}
        assert query.results() == other.results()
        parts(tmp_path, number, (2, 1, 10 + number))
    fewer = make(unnamed, tmp_path, named=False)
    fewer.query("join", JOIN, sink=plait.sinks.memory())
    with pytest.raises(CheckpointError, match="read 'orders', 'parts', 'opened': expected the same"):
        fewer.run_available()
    unnamed.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    other = make(unnamed, tmp_path)
    other.query("join", JOIN, sink=plait.sinks.noop())
    with pytest.raises(CheckpointError, match="begun without"):
        other.run_available()


def test_a_damaged_bucket_is_named_before_anything_runs(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.run_available()
    bucket = next((tmp_path / "checkpoint" / "plait" / "stores").rglob("*.arrow"))
    content = bytearray(bucket.read_bytes())
    content[len(content) // 2] ^= 0xFF
    bucket.write_bytes(content)
    again = make(spark, tmp_path)
    again.query("join", JOIN, sink=plait.sinks.noop())
    with pytest.raises(CheckpointError, match="is damaged") as caught:
        again.run_available()
    assert bucket.name in str(caught.value)
    assert "backup" in str(caught.value)


def test_a_foreign_checkpoint_is_refused_and_left_alone(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "thesis.doc").write_text("precious")
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    with pytest.raises(CheckpointError, match="not a Plait checkpoint"):
        engine.run_available()
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["thesis.doc"]


def test_half_a_checkpoint_is_refused(spark: Any, tmp_path: Path) -> None:
    import shutil

    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.run_available()
    shutil.rmtree(tmp_path / "checkpoint" / "spark")
    again = make(spark, tmp_path)
    again.query("join", JOIN, sink=plait.sinks.noop())
    with pytest.raises(CheckpointError, match="is incomplete"):
        again.run_available()


def test_an_expression_that_fails_at_run_time_says_so_and_the_checkpoint_stays_usable(
    spark: Any, tmp_path: Path
) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    orders(tmp_path, 1, (2, 2, "b"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    engine.query("join", f"{JOIN} WHERE 10 / (o.id - 2) < 100", sink=plait.sinks.noop())
    with pytest.raises(SourceError, match="DIVIDE_BY_ZERO"):
        engine.run_available()
    again = make(spark, tmp_path)
    query = again.query("join", JOIN, sink=plait.sinks.memory())
    parts(tmp_path, 1, (3, 1, 11))
    again.run_available()
    assert (1, 11) in rows(query.results())


def test_the_engine_names_what_is_missing(spark: Any, tmp_path: Path) -> None:
    engine = make(spark, tmp_path)
    with pytest.raises(OptionError, match="no query"):
        engine.run_available()
    with pytest.raises(OptionError, match="registered already"):
        engine.table("orders", spark.range(1))
    with pytest.raises(OptionError, match="streaming DataFrame"):
        engine.stream("numbers", spark.range(1), time="id")
    with pytest.raises(OptionError, match="found str 'in/numbers'; let Plait open files"):
        engine.stream("numbers", "in/numbers", time="id")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="found str 'in/numbers'; open files with spark"):
        engine.table("numbers", "in/numbers")  # type: ignore[arg-type]
    for sink, advice in (("out", "plait.sinks.parquet"), (None, "plait.sinks.parquet"), (plait.sinks.csv, "call the")):
        with pytest.raises(OptionError, match=f"query 'join': expected a sink of plait.sinks, found .*{advice}"):
            engine.query("join", JOIN, sink=sink)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="expected a Spark session, found NoneType"):
        plait.Engine(None, checkpoint=str(tmp_path / "other"))
    with pytest.raises(OptionError, match="'when' is no column"):
        engine.stream("again", spark.readStream.name("again").format("rate").load(), time="when")
    with pytest.raises(OptionError, match="write timestamp_millis"):
        engine.stream("again", spark.readStream.name("again").format("rate").load(), time="value")
    with pytest.raises(OptionError, match="no query 'x' to drop"):
        engine.drop("x")


def test_a_single_stream_query_and_a_table_join_work(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"), (2, 2, "b"), (3, 3, None))
    engine = make(spark, tmp_path)
    engine.table(
        "names", spark.createDataFrame([("a", "apple"), ("b", "pear"), (None, "?")], "item string, name string")
    )
    alone = engine.query("alone", "SELECT id + 1 AS next FROM orders WHERE id > 1", sink=plait.sinks.memory())
    named = engine.query("named", "SELECT id, name FROM orders JOIN names USING (item)", sink=plait.sinks.memory())
    engine.run_available()
    assert rows(alone.results()) == Counter([(3,), (4,)])
    assert rows(named.results()) == Counter([(1, "apple"), (2, "pear")])


def test_backfill_gives_a_new_query_the_results_of_the_past_once(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"), (2, 2, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.query("items", "SELECT a.id FROM orders a JOIN orders b ON a.item = b.item", sink=plait.sinks.noop())
    engine.run_available()

    parts(tmp_path, 1, (3, 2, 20))
    again = make(spark, tmp_path)
    again.set_option("plait.backfill", "true")
    again.query("join", JOIN, sink=plait.sinks.noop())
    late = again.query("late", JOIN, sink=plait.sinks.memory())
    pairs = again.query(
        "pairs", "SELECT a.id AS x, b.id AS y FROM orders a JOIN orders b ON a.item = b.item", sink=plait.sinks.memory()
    )
    assert dict(again.run_available().queries) == {"join": 1, "late": 2, "pairs": 4}
    assert rows(late.results()) == Counter([(1, 10), (2, 20)])
    assert rows(pairs.results()) == Counter([(1, 1), (1, 2), (2, 1), (2, 2)])


def refuse(frame: Any, batch: int) -> None:
    raise ValueError("not now")


def test_results_that_a_sink_takes_late_are_those_of_the_query_that_found_them(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (2, 1, 10))
    engine = make(spark, tmp_path)
    both = "SELECT bigint(x.ts) AS o, bigint(y.ts) AS p FROM orders x JOIN parts y ON x.id = y.oid"
    engine.query("other", "SELECT o.id, o.item FROM orders o JOIN parts p ON o.id = p.oid", sink=plait.sinks.noop())
    engine.query("swapped", both, sink=plait.sinks.foreach(refuse))
    engine.query("columns", f"{JOIN} WHERE p.qty < 11", sink=plait.sinks.foreach(refuse))
    assert [query for query, _ in engine.run_available().failing] == ["columns", "swapped"]

    parts(tmp_path, 1, (3, 1, 11))
    again = make(spark, tmp_path)
    turned = "SELECT bigint(y.ts) AS o, bigint(x.ts) AS p FROM parts x JOIN orders y ON x.oid = y.id"
    again.query("swapped", turned, sink=plait.sinks.json(str(tmp_path / "swapped")))
    upper = "SELECT upper(o.item) AS item FROM orders o JOIN parts p ON o.id = p.oid"
    again.query("columns", upper, sink=plait.sinks.json(str(tmp_path / "columns")))
    assert again.run_available().failing == ()

    def written(folder: str) -> list[str]:
        files = sorted((tmp_path / folder).glob("*.json"))
        return [file.read_text().strip() for file in files]

    assert written("swapped") == ['{"o":1,"p":2}', '{"o":1,"p":3}']
    assert written("columns") == ['{"id":1,"qty":10}', '{"item":"A"}']


def test_results_that_no_sink_takes_because_their_query_is_left_out_are_named(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10), (1, 1, 11))
    engine = make(spark, tmp_path)
    engine.query("shy", JOIN, sink=plait.sinks.foreach(refuse))
    engine.run_available()
    again = make(spark, tmp_path)
    again.query("other", JOIN, sink=plait.sinks.noop())
    again.run_available()
    assert [text for text in again.notices() if "shy" in text] == [
        "query 'shy' is left out, and 2 rows of its results, which its sink has not taken (SinkError: query 'shy': its "
        "foreach function raised ValueError: not now), wait in the checkpoint until it runs again. To delete them, "
        "drop it by name"
    ]


def test_a_running_engine_whose_last_query_is_dropped_waits_for_another_one(spark: Any, tmp_path: Path) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    first = engine.query("q", JOIN, sink=plait.sinks.memory())
    handle = engine.start("50 milliseconds")
    try:
        wait_for(lambda: len(first.results()) == 1)
        engine.drop("q")
        assert not handle.await_termination(2)
        changed = engine.query(
            "q", "SELECT p.qty FROM orders o JOIN parts p ON o.id = p.oid", sink=plait.sinks.memory()
        )
        assert (changed.results().column_names, len(changed.results())) == (["qty"], 0)
        parts(tmp_path, 1, (2, 1, 11))
        wait_for(lambda: len(changed.results()) == 1)
        assert changed.results().to_pylist() == [{"qty": 11}]
        engine.drop("q")
    finally:
        handle.stop()


def wait_for(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
