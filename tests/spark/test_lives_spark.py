"""Changed scripts on an old checkpoint, end to end; `tests.property.test_checkpoint_life` has more, without Spark."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import plait
from plait.errors import CheckpointError
from plait.runtime.engine import Engine
from plait.sql import load_script

pytestmark = pytest.mark.spark

A = "CREATE STREAM a (ts {time}, s STRING, x BIGINT, n INT, d DATE) USING json OPTIONS (path '{path}'{more})\n"
B = "CREATE STREAM b (ts TIMESTAMP, id BIGINT, y BIGINT, d DATE) USING json OPTIONS (path 'b')\n"
C = "CREATE STREAM c (ts TIMESTAMP, k BIGINT) USING json OPTIONS (path 'c')\n"
TAIL = "  TIMESTAMP BY ts WINDOW INTERVAL {window} SECONDS DELAY INTERVAL 0 SECONDS;\n"


def put(folder: Path, number: int, *rows: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number:03d}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def at(second: int, **values: Any) -> dict[str, Any]:
    return {"ts": f"2026-01-01 10:{second // 60:02d}:{second % 60:02d}", **values}


def a(second: int, **values: Any) -> dict[str, Any]:
    return at(second, **{"s": "5", "x": 7, "n": 3, "d": "2026-01-02", **values})


def b(second: int, **values: Any) -> dict[str, Any]:
    return at(second, **{"id": 5, "y": 1, "d": "2026-01-02", **values})


class Shop:
    """A script and its checkpoint in a directory; each run may say something else."""

    def __init__(self, spark: Any, directory: Path) -> None:
        self.spark, self.directory = spark, directory
        for name in "abc":
            (directory / name).mkdir(exist_ok=True)

    def run(
        self,
        streams: str,
        queries: dict[str, str],
        *,
        time: str = "TIMESTAMP",
        path: str = "a",
        more: str = "",
        window: int = 30,
        name: str = "a",
    ) -> tuple[Engine, plait.runtime.batch.events.Summary]:
        texts = {"a": A.replace("STREAM a", f"STREAM {name}").format(time=time, path=path, more=more), "b": B, "c": C}
        script = "".join(texts[stream] + TAIL.format(window=window) for stream in streams)
        script += "".join(f"CREATE QUERY {query} INTO memory AS {sql};\n" for query, sql in queries.items())
        engine = Engine(self.spark, checkpoint=str(self.directory / "checkpoint"))
        engine.load(load_script(script, file="shop.sql", base=str(self.directory)))
        return engine, engine.run_available()


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Shop:
    return Shop(spark, tmp_path)


def results(engine: Engine, query: str) -> Counter[tuple[Any, ...]]:
    table = engine.results(query)
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_a_changed_key_finds_the_rows_stored_before_it_also_where_dead_letters_are_kept(shop: Shop) -> None:
    put(shop.directory / "a", 0, a(0))
    put(shop.directory / "b", 0, b(0))
    letters = f", deadLetter '{shop.directory}/letters'"
    _, first = shop.run("ab", {"q": "SELECT a.s, b.id FROM a JOIN b ON a.s = b.id"}, more=letters)
    put(shop.directory / "b", 1, b(4))
    engine, second = shop.run(
        "ab", {"q": "SELECT a.s, b.id FROM a JOIN b ON try_cast(a.s AS BIGINT) = b.id"}, more=letters
    )
    assert (dict(first.queries), dict(second.queries), second.bad) == ({"q": 1}, {"q": 1}, 0)
    assert engine.status()["lacking"] == []


@pytest.mark.parametrize("time", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_columns_are_had_from_the_keys_and_times_that_are_stored(shop: Shop, time: str) -> None:
    put(shop.directory / "a", 0, a(61))
    put(shop.directory / "b", 0, b(61))
    shop.run("ab", {"q": "SELECT b.y FROM a JOIN b ON a.x = b.id + 2 AND a.n = b.id - 2 AND a.d = b.d"}, time=time)
    put(shop.directory / "b", 1, b(64))
    select = "SELECT a.ts, a.x, a.n, a.d, b.ts FROM a JOIN b ON a.x = b.id + 2 AND a.n = b.id - 2 AND a.d = b.d"
    text = select.replace("a.ts,", "CAST(a.ts AS STRING) AS t,").replace("b.ts", "CAST(a.d AS STRING) AS day")
    engine, _ = shop.run("ab", {"q": text}, time=time)
    rows = results(engine, "q")
    assert [(t, x, n, day) for (t, x, n, _, day) in rows.elements()] == [("2026-01-01 10:01:01", 7, 3, "2026-01-02")]


def test_what_a_new_query_lacks_is_said_at_the_start_in_the_status_and_in_the_summary(shop: Shop) -> None:
    old = "SELECT a.s, b.id FROM a JOIN b ON a.x = b.id + 2"
    put(shop.directory / "a", 0, a(0), a(1))
    put(shop.directory / "b", 0, b(1))
    shop.run("ab", {"old": old})
    put(shop.directory / "b", 1, b(4))
    queries = {"old": old, "late": "SELECT a.n, b.id FROM a JOIN b ON a.x = b.id + 2"}
    engine, summary = shop.run("ab", queries)
    assert dict(summary.queries) == {"old": 2, "late": 0}
    (lacking,) = engine.status()["lacking"]
    assert {name: lacking[name] for name in ("query", "stream", "columns", "rows")} == {
        "query": "late",
        "stream": "a",
        "columns": ["n"],
        "rows": 2,
    }
    assert engine.notices() == (
        "2 rows of 'a' were stored without n, which query 'late' needs: its results go without them until the "
        "watermark has passed 2026-01-01 10:00:31. OPTIONS (keep 'all') on the stream stores everything for queries "
        "added later.",
    )
    assert summary.as_json()["lacking"] == [lacking]
    assert engine.status()["last_batch"]["lacking"] == [lacking]

    put(shop.directory / "a", 1, a(32))
    put(shop.directory / "b", 2, b(32))
    engine, summary = shop.run("ab", queries)
    assert (dict(summary.queries), summary.lacking) == ({"old": 2, "late": 2}, ())


AB, BC = "SELECT a.x, b.id FROM a JOIN b ON a.x = b.id + 2", "SELECT b.id, c.k FROM b JOIN c ON b.id = c.k"


def test_a_stream_that_is_dropped_and_added_again_loses_and_repeats_nothing(shop: Shop) -> None:
    put(shop.directory / "a", 0, *(a(second % 10) for second in range(51)))
    put(shop.directory / "b", 0, b(0))
    put(shop.directory / "c", 0, at(0, k=5))
    _, first = shop.run("abc", {"q1": AB, "qc": BC})
    assert dict(first.queries) == {"q1": 51, "qc": 1}
    put(shop.directory / "b", 1, b(5))
    assert dict(shop.run("bc", {"qc": BC})[1].queries) == {"qc": 1}
    put(shop.directory / "b", 2, b(9))
    engine, last = shop.run("abc", {"q1": AB, "qc": BC})
    assert dict(last.queries) == {"q1": 51, "qc": 1}
    assert engine.notices() == (
        "stream 'a' is read again: it goes on where it had come to, with 51 rows of it still stored",
    )


def test_a_stream_under_a_new_name_is_read_from_its_start_and_said_to_be_another_one(shop: Shop) -> None:
    put(shop.directory / "a", 0, a(0))
    put(shop.directory / "b", 0, b(0))
    shop.run("ab", {"q": AB})
    engine, summary = shop.run("ab", {"q": AB.replace("a.x", "z.x").replace("FROM a", "FROM z")}, name="z")
    assert (summary.rows_in, dict(summary.queries)) == (1, {"q": 1})
    assert any("stream 'z' reads" in text and "give it its old name" in text for text in engine.notices())


def test_a_stream_whose_path_has_changed_is_refused_and_the_old_path_goes_on(shop: Shop) -> None:
    put(shop.directory / "a", 0, a(0))
    put(shop.directory / "b", 0, b(0))
    shop.run("ab", {"q": AB})
    shutil.copytree(shop.directory / "a", shop.directory / "moved")
    with pytest.raises(CheckpointError, match=r"stream 'a' read '.*/a' so far and now reads '.*/moved'.*come twice"):
        shop.run("ab", {"q": AB}, path="moved")
    put(shop.directory / "b", 1, b(4))
    assert dict(shop.run("ab", {"q": AB}, path="a/")[1].queries) == {"q": 1}


def test_a_stream_added_later_is_not_late_by_what_others_had_sent_before(shop: Shop) -> None:
    put(shop.directory / "a", 0, a(100))
    put(shop.directory / "b", 0, b(100))
    shop.run("ab", {"q1": AB}, window=200)
    put(shop.directory / "c", 0, *(at(second, k=5) for second in range(20)))
    put(shop.directory / "a", 1, a(50))
    engine, summary = shop.run("abc", {"q1": AB, "qc": BC}, window=200)
    assert (summary.late, dict(summary.queries)) == (1, {"q1": 0, "qc": 20})
    assert engine.status()["last_batch"]["laggard"] == "c"
