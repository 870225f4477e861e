"""What is said about rows that came to nothing, over real broken inputs read by Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import plait
from plait.sql.script.check import load_script

pytestmark = pytest.mark.spark

ITEMS = "CREATE STREAM items (id BIGINT, qty DOUBLE, ts TIMESTAMP)"
BROKEN = {
    "na": ("csv", "", "1,NA,2026-01-01 10:00:00\n2,5.5,2026-01-01 10:00:00\n"),
    "headed": ("csv", "", "id,qty,ts\n1,5.5,2026-01-01 10:00:00\n"),
    "dotted": ("csv", ", timestampFormat 'dd.MM.yyyy'", "1,5.5,2026-01-01 10:00:00\n1,5.5,01.01.2026\n"),
    "semicolons": ("csv", "", "1;5.5;2026-01-01 10:00:00\n"),
    "millis": ("csv", "", "1,5.5,1767225600000\n"),
    "dropped": ("csv", ", Mode 'DropMalformed'", "1,5.5,2026-01-01 10:00:00\n1,x,2026-01-01 10:00:00\n"),
    "quoted": ("json", "", '{"id": "1", "qty": 5.5, "ts": "2026-01-01T10:00:00Z"}\n'),
    "cut": ("json", "", '{"id": 1, "qty"\n'),
    "misnamed": ("json", "", '{"id": 1, "qty": 5.5, "time": "2026-01-01T10:00:00Z"}\n'),
    "number": ("json", "", '{"id": 1, "qty": 5.5, "ts": 1767225600000}\n'),
}
SAID = {
    "na": ("malformed", "qty", "'NA' is no DOUBLE: OPTIONS (nullValue 'NA') reads it as NULL"),
    "headed": ("malformed", "id", "header 'true'"),
    "dotted": ("malformed", "ts", "does not have the form timestampFormat 'dd.MM.yyyy'"),
    "semicolons": ("malformed", None, "more or fewer than the 3 fields declared"),
    "millis": ("malformed", "ts", "timestamp_millis(...)"),
    "dropped": ("malformed", "qty", "'x' is no DOUBLE"),
    "quoted": ("malformed", "id", "in the JSON it is a string"),
    "cut": ("malformed", None, "multiLine 'true'"),
    "misnamed": ("no event time", "ts", "the name in the JSON may be another one"),
}


def put(folder: Path, text: str, name: str = "0") -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def run(spark: Any, tmp_path: Path, script: str) -> tuple[plait.Engine, Any]:
    engine = plait.Engine(spark, checkpoint=str(tmp_path / "checkpoint"))
    engine.load(load_script(script))
    return engine, engine.run_available()


def test_every_broken_input_is_counted_and_explained_in_one_run(spark: Any, tmp_path: Path) -> None:
    script = ""
    for name, (kind, options, text) in BROKEN.items():
        put(tmp_path / name, text)
        script += f"""
            CREATE STREAM {name} (id BIGINT, qty DOUBLE, ts TIMESTAMP) USING {kind}
                OPTIONS (path '{tmp_path / name}'{options}) TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR;
            CREATE QUERY of_{name} INTO noop AS SELECT id, qty FROM {name};"""
    engine, summary = run(spark, tmp_path, script)
    by_name = {counts.source: counts for counts in summary.sources}
    for name, (reason, column, hint) in SAID.items():
        (bad,) = by_name[name].bad
        assert (bad.reason, bad.column, bad.rows) == (reason, column, 1), name
        assert hint in (bad.hint or ""), f"{name}: {bad.hint}"
    assert by_name["na"].bad[0].sample == "1,NA,2026-01-01 10:00:00"
    assert dict(summary.queries)["of_na"] == 1
    (warning,) = summary.warnings
    assert (warning.kind, warning.of) == ("event times", "number")
    assert "timestamp_millis(...)" in warning.text
    told = engine.status()["totals"]
    assert told["bad"] == sum(counts["bad"][0]["rows"] for counts in told["sources"].values() if counts["bad"])
    assert json.loads(json.dumps(told)) == told


def test_what_changed_behind_a_checkpoint_and_what_is_not_read_is_told(spark: Any, tmp_path: Path) -> None:
    script = f"""
        {ITEMS} USING csv OPTIONS (path '{tmp_path}/it ems') TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR;
        CREATE STREAM others (id BIGINT, ts TIMESTAMP) USING csv OPTIONS (path '{tmp_path}/others')
            TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR;
        CREATE TABLE names (id BIGINT, name STRING, size INT) USING csv OPTIONS (path '{tmp_path}/names');
        CREATE QUERY q INTO noop AS SELECT items.id FROM items JOIN others ON items.id = others.id;
        CREATE QUERY named INTO json OPTIONS (path '{tmp_path}/out') AS
            SELECT items.id FROM items JOIN names ON items.id = names.id;"""
    put(tmp_path / "names", "1,ann,3\nNA,bob,4\n", "names.csv")
    put(tmp_path / "it ems", "1,5.5,2026-01-01 10:00:00\n,5.5,2026-01-01 10:00:00\n", "a b.csv")
    put(tmp_path / "others", "2,2026-01-01 10:00:00\n", "a.csv")
    _, first = run(spark, tmp_path, script)
    (warning,) = first.warnings
    assert (warning.kind, warning.of) == ("table read in part", "names")
    assert "1 of 2 rows" in warning.text
    assert "in column 'id'" in warning.text
    assert "nullValue 'NA'" in warning.text
    assert [(each.key, each.rows) for each in first.sources[0].null_keys_by] == [("`id`", 1)]
    assert "with items.id = others.id and found none; the keys have no value in common" in dict(first.hints)["q"]

    put(tmp_path / "it ems", "1,5.5,2026-01-01 10:00:00\n", "old.csv")
    old = (tmp_path / "it ems" / "a b.csv").stat().st_mtime - 10 * 86_400
    os.utime(tmp_path / "it ems" / "old.csv", (old, old))
    put(tmp_path / "it ems" / "sub", "1,5.5,2026-01-01 10:00:00\n", "b.csv")
    put(tmp_path / "names", "1,anne,3\n", "names.csv")
    other = script.replace("SELECT items.id FROM items JOIN names", "SELECT items.id AS item FROM items JOIN names")
    _, second = run(spark, tmp_path, other)
    changed, written, *skipped = second.warnings
    assert (changed.kind, changed.of) == ("table changed", "names")
    assert "then 1 file of 17 bytes, now 1 file of 9 bytes" in changed.text
    assert (written.kind, written.of) == ("output changed", "named")
    assert "new 'item' BIGINT, gone 'id' BIGINT" in written.text
    assert [(warning.of, warning.text.partition(", such as ")[2].partition(",")[0]) for warning in skipped] == [
        ("items", "'sub/b.csv'"),
        ("items", "'old.csv'"),
    ]
    assert second.rows_in == 0
    assert second.hints == ()
