"""Queries that Spark cannot compute for some row are set aside alone, whatever it is that fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import plait
from tests.spark.test_cli import environment
from tests.spark.test_engine import JOIN, make, orders, parts, rows

pytestmark = pytest.mark.spark

BEYOND = "9223372036854775800"
FAILING = {
    "zero": f"{JOIN} WHERE 10 DIV (o.id - 5) > -100",
    "text": "SELECT o.id, p.qty FROM orders o JOIN parts p ON o.id = p.oid AND CAST(o.item AS INT) = p.qty",
    "element": f"{JOIN} WHERE array(1, 2, 3, 4)[o.id - 1] > 0",
    "told": f"{JOIN} WHERE o.id < 5 OR raise_error('five') IS NULL",
    "pair": f"{JOIN} AND o.id * p.qty * 400000000000000000 % 7 >= 0",
    "group": f"SELECT sum(o.id + {BEYOND}) AS n FROM orders o GROUP BY window(o.ts, '1 second')",
}
FINE = {
    "steady": JOIN,
    "guarded": f"{JOIN} WHERE coalesce(try_divide(10, o.id - 5), 0) > -100",
    "counted": "SELECT count(*) AS n FROM orders o GROUP BY window(o.ts, '1 second')",
}


def test_all_that_fails_in_a_batch_is_found_and_others_keep_their_results(spark: Any, tmp_path: Path) -> None:
    for number, ids in enumerate(((1, 2), (5, 3), (6,))):
        orders(tmp_path, number, *((10 * number, each, str((each % 5 and each) or "five")) for each in ids))
        parts(tmp_path, number, *((10 * number, each, each) for each in ids))
    engine = make(spark, tmp_path)
    queries = {name: engine.query(name, text, sink=plait.sinks.memory()) for name, text in {**FAILING, **FINE}.items()}
    summary = engine.run_available(close=True)
    assert sorted(name for name, _ in summary.set_aside) == sorted(FAILING)
    told = dict(summary.set_aside)
    assert "[DIVIDE_BY_ZERO]" in told["zero"]
    assert "[CAST_INVALID_INPUT]" in told["text"]
    assert "five" in told["told"]
    assert "cannot compute the groups" in told["group"]
    assert sorted(rows(queries["steady"].results())) == [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6)]
    assert sorted(rows(queries["guarded"].results())) == [(1, 1), (2, 2), (3, 3), (5, 5), (6, 6)]
    assert sorted(queries["counted"].results()["n"].to_pylist()) == [1, 2, 2]
    for name in ("zero", "text", "element", "told", "pair"):
        assert sorted(rows(queries[name].results())) == [(1, 1), (2, 2)], name


SCRIPT = """
CREATE STREAM orders (id BIGINT, item STRING, ts TIMESTAMP) USING csv OPTIONS (path 'orders')
  TIMESTAMP BY ts WINDOW INTERVAL 30 SECONDS;
CREATE QUERY steady INTO json OPTIONS (path 'steady') AS SELECT o.id FROM orders o;
CREATE QUERY narrow INTO json OPTIONS (path 'narrow') AS SELECT o.id FROM orders o WHERE CAST(o.item AS INT) > 0;
"""


def test_the_command_says_who_is_set_aside_and_tries_again_when_it_is_told_to(tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        command = [sys.executable, "-m", "plait.cli.main", "run", str(tmp_path / "s.sql"), "--available-now", "--json"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment(), check=False)
        return done.returncode, json.loads(done.stdout.splitlines()[-1]), done.stderr

    def found(query: str) -> list[int]:
        files = (tmp_path / query).glob("*.json")
        return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())

    (tmp_path / "s.sql").write_text(SCRIPT)
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.csv").write_text("1,7,2026-01-01 10:00:00\n2,x,2026-01-01 10:00:01\n")
    status, finished, errors = run()
    assert (status, list(finished["set_aside"])) == (1, ["narrow"])
    assert "malformed" in finished["set_aside"]["narrow"]
    assert "Traceback" not in errors
    assert (found("steady"), found("narrow")) == ([1, 2], [])
    (tmp_path / "orders" / "2.csv").write_text("3,8,2026-01-01 10:00:02\n")
    status, finished, _ = run("--retry", "narrow")
    assert (status, finished["set_aside"]) == (0, {})
    assert (found("steady"), found("narrow")) == ([1, 2, 3], [3])
