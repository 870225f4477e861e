"""Results that a sink has not taken survive starts without their query, and go only with a drop by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError

import plait
from plait.errors import CheckpointError, PlaitError, SinkError, reason_of
from plait.operators.evaluating import EvaluationError
from plait.operators.traversal import results
from plait.runtime.batch import handing_over, waiting
from plait.runtime.outputs.deliverer import Deliverer
from plait.sinks import staging
from plait.sinks.claims import ClaimedDirectory
from plait.sql import load_script
from plait.state.manifest import ManifestLog
from plait.state.storage import Storage
from tests.property.standin import frames
from tests.property.standin.session import Session

JOIN = "SELECT a.k, b.v FROM a JOIN b ON a.k = b.k"
SCRIPT = """
    CREATE STREAM a (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{0}/a')
        TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
    CREATE STREAM b (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{0}/b')
        TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
    CREATE QUERY other INTO noop AS SELECT a.v FROM a JOIN b ON a.k = b.k;
"""
SHY = f"CREATE QUERY shy INTO parquet OPTIONS (path '{{0}}/shy') AS {JOIN};"


@dataclass(slots=True)
class Place:
    """Where the streams, the checkpoint and the sink of query `shy` are."""

    folder: Path
    files: int = 0

    def arrive(self, *values: int) -> None:
        """Let a file of each stream arrive: a pair for each value."""
        for stream in "ab":
            (self.folder / stream).mkdir(exist_ok=True)
            rows = [{"ts": datetime.fromtimestamp(1 + self.files, UTC), "k": 1000 + v, "v": v} for v in values]
            schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("v", pa.int64())])
            pq.write_table(pa.Table.from_pylist(rows, schema), self.folder / stream / f"{self.files}.parquet")
        self.files += 1

    def run(self, text: str, change: Callable[[plait.Engine], object] = lambda engine: None, **options: Any) -> Any:
        """Run a script on all that is there; return the engine."""
        engine = plait.Engine(Session(), checkpoint=str(self.folder / "checkpoint"))  # type: ignore[arg-type]
        for name, value in options.items():
            engine.set_option(f"plait.{name}", value)
        engine.load(load_script(text.format(self.folder)))
        change(engine)
        engine.run_available()
        return engine

    def fail_to_deliver(self, *values: int, shy: str = SHY) -> None:
        """Run with query `shy` while its sink takes nothing: a file lies where its folder should be."""
        self.arrive(*values)
        block = (self.folder / "shy").write_text
        summary = self.run(SCRIPT + shy, lambda engine: block("in the way")).summary()
        assert [query for query, _ in summary.failing] == ["shy"]
        (self.folder / "shy").unlink()

    def delivered(self, query: str = "shy") -> list[int]:
        """Return the values in the sink of a query."""
        files = (self.folder / query).glob("*.parquet")
        return sorted(v for file in files for v in pq.read_table(file)["v"].to_pylist())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        frames.install(patch.setattr)
        yield Place(tmp_path)


def told(engine: plait.Engine) -> list[str]:
    return [text for text in engine.notices() if text.startswith("query 'shy'")]


def test_a_query_that_is_left_out_of_starts_gets_what_its_sink_had_not_taken_once_it_is_back(place: Place) -> None:
    place.fail_to_deliver(1, 2)
    for value in (3, 4):
        place.arrive(value)
        without = place.run(SCRIPT)
        (text,) = told(without)
        assert text.startswith("query 'shy' is left out, and 2 rows of its results")
        assert without.summary().failing == ()
    place.arrive(5)
    back = place.run(SCRIPT + SHY)
    assert (place.delivered(), told(back)) == ([1, 2, 5], [])


@pytest.mark.parametrize("by", ["script", "engine"])
def test_a_query_that_is_dropped_by_name_takes_along_what_its_sink_had_not_taken(place: Place, by: str) -> None:
    place.fail_to_deliver(1, 2)
    place.arrive(3)
    if by == "script":
        dropping = place.run(SCRIPT + SHY + "DROP QUERY shy;")
    else:
        dropping = place.run(SCRIPT + SHY, lambda engine: engine.drop("shy"))
    (text,) = told(dropping)
    assert text.startswith("query 'shy' was dropped, and with it 2 rows of its results")
    place.arrive(4)
    back = place.run(SCRIPT + SHY)
    assert (place.delivered(), told(back)) == ([4], [])


def test_a_script_that_drops_a_query_before_it_creates_it_keeps_what_its_sink_has_not_taken(place: Place) -> None:
    place.fail_to_deliver(1)
    place.arrive(2)
    place.run(SCRIPT + SHY + "DROP QUERY shy;" + SHY)
    assert place.delivered() == [1, 2]


ANOTHER = (
    "CREATE QUERY shy INTO parquet OPTIONS (path '{{0}}/{}'{}) AS SELECT a.k, b.v, a.v AS w FROM a JOIN b ON a.k = b.k;"
)


def test_results_that_do_not_fit_the_sink_of_a_changed_query_are_written_as_it_wrote_before(place: Place) -> None:
    place.fail_to_deliver(1, 2)
    place.arrive()
    engine = place.run(SCRIPT + ANOTHER.format("shy", ", partitionBy 'w'"))
    assert (engine.summary().failing, place.delivered()) == ((), [1, 2])


def test_results_that_fit_no_sink_of_a_changed_query_say_so_and_wait_for_the_one_it_had(place: Place) -> None:
    place.fail_to_deliver(1, 2)
    place.arrive()
    ((_, reason),) = place.run(SCRIPT + ANOTHER.format("elsewhere", ", partitionBy 'w'")).summary().failing
    assert "2 results of batch 0 wait for the sink of query 'shy', which was another query" in reason
    assert "partitionBy" in reason
    assert "Run it once with the sink it had" in reason
    place.arrive(3)
    engine = place.run(SCRIPT + ANOTHER.format("shy", ""))
    assert (engine.summary().failing, place.delivered()) == ((), [1, 2, 3])


def test_results_for_files_are_not_lost_in_a_table_of_their_directory(place: Place) -> None:
    place.fail_to_deliver(1, 2)
    place.arrive()
    table = ANOTHER.format("shy", ", partitionBy 'w'").replace("INTO parquet", "INTO delta")
    ((_, reason),) = place.run(SCRIPT + table).summary().failing
    assert "Run it once with the sink it had" in reason
    place.arrive(3)
    engine = place.run(SCRIPT + ANOTHER.format("shy", ""))
    assert (engine.summary().failing, place.delivered()) == ((), [1, 2, 3])


LOUD = f"CREATE QUERY loud INTO parquet OPTIONS (path '{{0}}/loud') AS {JOIN};"


def test_a_sink_in_which_nothing_can_be_published_is_set_aside_alone_and_tried_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_one, is_full = staging._move, [True]

    def refused(publication: staging.Publication, may_be_out: bool) -> None:
        if is_full[0] and "/shy/" in publication.final:
            raise OSError("no space left on device")
        publish_one(publication, may_be_out)

    monkeypatch.setattr(staging, "_move", refused)
    script = SCRIPT + SHY + LOUD
    for value in (1, 2):  # the second start finds what the first has left, and must not clear it away
        place.arrive(value)
        summary = place.run(script).summary()
        assert {query for query, _ in summary.failing} == {"shy"}
        assert "no space left on device" in dict(summary.failing)["shy"]
        assert place.delivered() == []
        assert place.delivered("loud") == list(range(1, value + 1))
    is_full[0] = False
    place.arrive(3)
    assert place.run(script).summary().failing == ()
    assert place.delivered() == place.delivered("loud") == [1, 2, 3]


def test_a_sink_that_is_in_order_at_the_start_is_not_looked_through_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    recover, looked = ClaimedDirectory.recover, list[str]()

    def noted(directory: ClaimedDirectory) -> None:
        looked.append(directory.claim.owner.query)
        recover(directory)

    monkeypatch.setattr(ClaimedDirectory, "recover", noted)
    place.arrive(1)
    place.run(SCRIPT + SHY + LOUD)
    assert (sorted(looked), place.delivered()) == (["loud", "shy"], [1])


def test_what_could_not_be_published_is_published_with_the_next_batch_of_the_same_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_one, refusals = staging._move, [OSError("busy")]

    def refused(publication: staging.Publication, may_be_out: bool) -> None:
        if refusals and "/shy/" in publication.final:
            raise refusals.pop()
        publish_one(publication, may_be_out)

    monkeypatch.setattr(staging, "_move", refused)
    failing: list[tuple[str, ...]] = []

    def listen(engine: plait.Engine) -> None:
        engine.listen(lambda event: failing.append(tuple(query for query, _ in event.failing)))

    place.arrive(1)
    place.arrive(2)
    place.run(SCRIPT.replace("'{0}/a'", "'{0}/a', maxFilesPerTrigger '1'") + SHY, listen)
    assert (failing[0], failing[-1], place.delivered()) == (("shy",), (), [1, 2])


def test_what_spark_computes_for_all_queries_at_once_waits_behind_what_its_sink_has_not_taken(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise SinkError("not yet")

    computed = SHY.replace("b.v FROM", "b.v, upper(CAST(a.k AS STRING)) AS t FROM")
    place.fail_to_deliver(1, 2, shy=computed)
    place.arrive(3)
    with monkeypatch.context() as patch:
        patch.setattr(Deliverer, "deliver", refused)
        assert {query for query, _ in place.run(SCRIPT + computed).summary().failing} == {"shy"}
        assert place.delivered() == []
    place.arrive(4)
    assert place.run(SCRIPT + computed).summary().failing == ()
    assert place.delivered() == [1, 2, 3, 4]


@pytest.mark.parametrize("sink", ["parquet OPTIONS (path '{0}/shy')", "memory", "noop"])
def test_what_duckdb_cannot_compute_for_some_row_spark_computes_in_the_same_batch(
    place: Place, monkeypatch: pytest.MonkeyPatch, sink: str
) -> None:
    asked: list[object] = []

    def fails(sqls: object, columns: object) -> None:
        asked.append(sqls)
        raise EvaluationError("Overflow")

    monkeypatch.setattr(results, "evaluated", fails)
    failing: list[object] = []

    def listen(engine: plait.Engine) -> None:
        engine.listen(lambda event: failing.append(event.failing))

    place.arrive(1)
    place.arrive(2)
    shy = f"CREATE QUERY shy INTO {sink} AS SELECT a.k, b.v + 1 - 1 AS v FROM a JOIN b ON a.k = b.k;"
    engine = place.run(SCRIPT.replace("'{0}/a'", "'{0}/a', maxFilesPerTrigger '1'") + shy, listen)
    assert (failing, dict(engine.summary().queries)["shy"]) == ([(), ()], 2)
    if sink == "memory":
        assert engine.results("shy")["v"].to_pylist() == [1, 2]
    else:
        assert len(asked) == 1  # the second batch goes to Spark at once
        assert sink == "noop" or place.delivered() == [1, 2]


def test_a_sink_that_takes_nothing_is_named_once_with_its_reason_however_many_batches_wait(place: Place) -> None:
    place.fail_to_deliver(1)
    place.fail_to_deliver(2)
    place.arrive(3)
    block = (place.folder / "shy").write_text
    summary = place.run(SCRIPT + SHY, lambda engine: block("in the way")).summary()
    ((query, reason),) = summary.failing
    assert query == "shy"
    assert reason.startswith("NotADirectoryError")


def test_results_of_a_dropped_query_that_cannot_be_published_are_named_as_long_as_they_wait(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_one, is_full = staging._move, [True]

    def refused(publication: staging.Publication, may_be_out: bool) -> None:
        if is_full[0] and "/shy/" in publication.final:
            raise OSError("no space left on device")
        publish_one(publication, may_be_out)

    monkeypatch.setattr(staging, "_move", refused)
    place.arrive(1)
    place.run(SCRIPT + SHY)
    place.arrive(2)
    ((name, reason),) = place.run(SCRIPT).summary().failing
    assert name == f"results in '{place.folder}/shy', which no query has now"
    assert "no space left on device" in reason
    is_full.clear()
    is_full.append(False)
    place.arrive(3)
    assert (place.run(SCRIPT).summary().failing, place.delivered()) == ((), [1])


def test_a_run_that_finds_nothing_new_offers_what_waits(place: Place) -> None:
    place.fail_to_deliver(1, 2)
    engine = place.run(SCRIPT + SHY)
    summary = engine.summary()
    assert (place.delivered(), summary.batches, summary.failing) == ([1, 2], 0, ())
    assert told(engine) == []
    (text,) = (text for text in engine.notices() if "'shy'" in text)
    assert text == "the sink of query 'shy' has taken 2 rows of results that had waited for it"
    place.arrive(3)
    again = place.run(SCRIPT + SHY)
    assert (place.delivered(), again.notices()) == ([1, 2, 3], ())


def test_a_run_that_finds_nothing_new_says_whose_results_still_wait(place: Place) -> None:
    place.fail_to_deliver(1, 2)
    block = (place.folder / "shy").write_text
    summary = place.run(SCRIPT + SHY, lambda engine: block("in the way again")).summary()
    assert [query for query, _ in summary.failing] == ["shy"]
    assert summary.batches == 0
    without = place.run(SCRIPT).summary()
    assert without.failing == ()
    (place.folder / "shy").unlink()
    assert place.run(SCRIPT + SHY).summary().failing == ()
    assert place.delivered() == [1, 2]


@pytest.mark.parametrize("point", ["deliver", "offered", "publish"])
def test_what_is_offered_at_a_start_comes_once_whenever_the_start_dies(
    place: Place, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    place.fail_to_deliver(1, 2)

    class Died(BaseException):
        """Stands for the end of the process."""

    def reach(name: str) -> None:
        if name == point:
            raise Died

    with monkeypatch.context() as patch:
        for module in (waiting, handing_over, staging):
            patch.setattr(module, "reach", reach)
        with pytest.raises((Died, PlaitError)):
            place.run(SCRIPT + SHY)
    place.arrive(3)
    place.run(SCRIPT + SHY)
    assert place.delivered() == [1, 2, 3]


def test_a_manifest_is_amended_only_while_it_is_the_last(place: Place) -> None:
    place.arrive(1)
    place.run(SCRIPT)
    log = ManifestLog(Storage.open(str(place.folder / "checkpoint" / "plait")))
    first = log.latest()
    assert first is not None
    place.arrive(2)
    place.run(SCRIPT)
    with pytest.raises(CheckpointError, match="second engine"):
        log.amend(first)


def test_a_full_disk_is_named_without_the_words_of_the_system() -> None:
    error = OSError(28, "Error writing bytes to file. Detail: [errno 28] No space left on device")
    assert reason_of(error).startswith("no space left on the device. Free some space")
    assert reason_of(ValueError("x\ny")) == "ValueError: x"


class OfJava(Py4JJavaError):
    """What a Spark task that cannot write ends with."""

    def __init__(self, cause: str) -> None:
        self.cause = cause

    def __str__(self) -> str:
        return (
            "An error occurred while calling o9.save.\n: org.apache.spark.SparkException: Job aborted due to stage "
            f"failure\nCaused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED]\nCaused by: {self.cause}\n\tat y"
        )


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (
            "java.io.IOException: Mkdirs failed to create file:/out",
            "java.io.IOException: Mkdirs failed to create file:/out",
        ),
        (
            "org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device",
            "no space left on the device. Free some space: the results wait in the checkpoint until then",
        ),
    ],
)
def test_a_task_of_sparks_that_cannot_write_stops_no_other_sink(
    place: Place, monkeypatch: pytest.MonkeyPatch, cause: str, reason: str
) -> None:
    def deliver(self: Deliverer, binding: Any, late: Any) -> Any:
        raise OfJava(cause)

    place.arrive(1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(Deliverer, "deliver", deliver)
        patch.setattr(handing_over, "deliver_together", deliver)
        (place.folder / "shy").mkdir()
        blocked = SHY.replace("INTO parquet", "INTO csv")
        summary = place.run(SCRIPT + blocked).summary()
    assert summary.failing == (("shy", reason),)
    assert dict(summary.queries)["other"] == 2
