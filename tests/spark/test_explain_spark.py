"""Explanations of real runs and advice on real samples, as processes and from Python."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import plait
from plait.runtime.sampling import take_sample
from plait.sql import load_script
from tests.spark.test_cli import plait as command

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE STREAM orders (id BIGINT, customer STRING, o_ts TIMESTAMP)
  USING csv OPTIONS (path 'orders', maxFilesPerTrigger '1') TIMESTAMP BY o_ts WINDOW INTERVAL 30 SECONDS;
CREATE STREAM items (order_id BIGINT, qty INT, i_ts TIMESTAMP)
  USING csv OPTIONS (path 'items', maxFilesPerTrigger '1') TIMESTAMP BY i_ts WINDOW INTERVAL 30 SECONDS;
CREATE TABLE people (name STRING) USING csv OPTIONS (path 'people.csv');
CREATE STREAM ticks USING rate OPTIONS (rowsPerSecond '5') TIMESTAMP BY timestamp WINDOW INTERVAL 1 SECOND;
CREATE QUERY soon INTO noop AS SELECT o.id, i.qty FROM orders o JOIN items i ON o.id = i.order_id;
CREATE QUERY large INTO noop
  AS SELECT o.id, i.qty FROM orders o JOIN items i ON o.id = i.order_id JOIN people p ON p.name = o.customer
  WHERE i.qty >= 8;
"""
WITHOUT_TICKS = "\n".join(line for line in SCRIPT.splitlines() if "ticks" not in line)
TICKING = SCRIPT + "CREATE QUERY ticking INTO noop AS SELECT t.value FROM ticks t JOIN orders o ON o.id = t.value;\n"
FILES, SECONDS = 4, 40


def rows(file: int, per_s: int, values: tuple[int, int]) -> str:
    """Return the lines of one file: event times follow each other through the files, a key in order, a value by row."""
    lines = []
    for number in range(per_s * SECONDS):
        at = file * SECONDS + number / per_s
        lines.append(f"{number % values[0]},{number % values[1]},2026-01-01 00:{int(at) // 60:02}:{at % 60:06.3f}\n")
    return "".join(lines)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, per_s, values in (("orders", 5, (50, 3)), ("items", 10, (50, 10))):
        (tmp_path / name).mkdir()
        for file in range(FILES):
            path = tmp_path / name / f"{file}.csv"
            path.write_text(rows(file, per_s, values))
            os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))  # Spark reads the oldest file first
    (tmp_path / "people.csv").write_text("0\n1\n2\n")
    script = tmp_path / "shop.sql"
    script.write_text(WITHOUT_TICKS)
    return script


def test_a_run_ends_with_its_plan_explained_and_explain_says_the_same_later(shop: Path) -> None:
    ran = command("run", str(shop), "--available-now", "--explain", "--master", "local[2]")
    assert ran.returncode == 0, ran.stderr
    shown = ran.stdout[ran.stdout.index("Plan by strategy") :]
    later = command("explain", str(shop), "--checkpoint", str(shop.parent / "shop.checkpoint"), "--parallelism", "2")
    assert later.returncode == 0, later.stderr
    assert later.stdout == shown
    assert "Measured after batch 3" in shown
    document = json.loads(
        command("explain", str(shop), "--checkpoint", str(shop.parent / "shop.checkpoint"), "--format", "json").stdout
    )
    measured = document["measured"]["edges"]
    for step in (step for tree in document["trees"] for step in tree["steps"]):
        expected = step["estimate"]["probe_tuples_per_s"]
        assert measured[step["edge"]]["probe_tuples_per_s"] == pytest.approx(expected, rel=0.1)
    assert document["measured"]["stores"]["people"]["rows"] == 3
    assert {plan["strategy"] for plan in document["comparison"]["plans"]} == {"independent", "shared"}


def test_an_engine_explains_before_and_after_its_first_batch(spark: SparkSession, shop: Path) -> None:
    engine = plait.Engine(spark, checkpoint=str(shop.parent / "here"))
    engine.load(load_script(WITHOUT_TICKS, base=str(shop.parent)))
    before = engine.explain()
    assert "nothing has been measured yet" in before
    engine.run_available()
    after = json.loads(engine.explain("json"))
    assert after["measured"]["batch"] == 3
    assert sum(count["probe_tuples"] for count in after["measured"]["edges"].values()) > 0
    again = plait.Engine(spark, checkpoint=str(shop.parent / "here"))
    again.load(load_script(WITHOUT_TICKS, base=str(shop.parent)))
    assert json.loads(again.explain("json"))["measured"] is not None, "another engine goes on from the checkpoint"
    engine.drop("large")
    assert "This plan is for other queries than there are now (with large)" in engine.explain()


def test_a_sample_measures_rates_keys_and_shares_of_the_first_rows(spark: SparkSession, shop: Path) -> None:
    script = load_script(TICKING, base=str(shop.parent))
    found = take_sample(spark, script, rows=300)
    read = {each.source: each for each in found.read}
    assert (read["orders"].rows, read["orders"].is_whole) == (300, False)
    assert (read["people"].rows, read["people"].is_whole) == (3, True)
    assert read["ticks"].problem == "rate is not a valid Spark SQL Data Source", "it is read as a stream only"
    orders, items, people = (found.statistics.of(name) for name in ("orders", "items", "people"))
    assert orders.rate_rows_per_s == pytest.approx(5, rel=0.02)
    assert items.rate_rows_per_s == pytest.approx(10, rel=0.02)
    assert (orders.rows, people.rows) == (None, 3)
    assert dict(orders.distinct)["#k bigint `id`"] == 50
    assert dict(items.selectivity)["(`qty` >= 8)"] == pytest.approx(0.2)
    whole = take_sample(spark, load_script(WITHOUT_TICKS, base=str(shop.parent)), rows=100_000)
    assert all(each.is_whole for each in whole.read)
    assert whole.statistics.of("orders").rows == 5 * SECONDS * FILES
    assert {query.equalities[0].left.type for query in whole.queries} == {"bigint"}


def test_advise_with_a_sample_knows_all_it_needs(shop: Path) -> None:
    result = command("advise", str(shop), "--sample", "100000", "--master", "local[2]")
    assert result.returncode == 0, result.stderr
    assert "What was assumed" not in result.stdout
    told = "rate '5', rows '800', distinct.customer '3', distinct.id '50'"
    assert f"orders: all 800 rows; OPTIONS ({told})" in result.stdout
    shop.write_text(WITHOUT_TICKS.replace("path 'items'", "path 'nowhere'"))
    wrong = command("advise", str(shop), "--sample", "10", "--master", "local[2]")
    assert wrong.returncode == 2
    assert "nowhere" in wrong.stderr
    assert "Traceback" not in wrong.stderr
