"""`plait run` as a process: what it prints, how it ends, and that the README's example is true."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

README = Path(__file__).parents[2] / "README.md"
PLAIT = (sys.executable, "-m", "plait.cli.main")
SCRIPT = """
CREATE STREAM orders (id BIGINT, customer STRING, o_ts TIMESTAMP) USING csv OPTIONS (path 'orders')
  TIMESTAMP BY o_ts WINDOW INTERVAL 30 SECONDS DELAY INTERVAL 5 SECONDS;
CREATE STREAM items (order_id BIGINT, qty INT, i_ts TIMESTAMP) USING csv OPTIONS (path 'items')
  TIMESTAMP BY i_ts WINDOW INTERVAL 30 SECONDS DELAY INTERVAL 5 SECONDS;
CREATE QUERY soon INTO json OPTIONS (path 'soon')
  AS SELECT o.id, o.customer, i.qty FROM orders o JOIN items i ON o.id = i.order_id;
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYSPARK_PYTHON": sys.executable, "PLAIT_DEBUG": "0"}


def plait(*arguments: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PLAIT, *arguments], capture_output=True, text=True, timeout=seconds, env=environment(), check=False
    )


def events(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("*.json")) for line in file.read_text().splitlines()]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, rows in (
        ("orders", "1,ann,2026-01-01 10:00:00\n2,bob,2026-01-01 10:00:20\n"),
        ("items", "1,3,2026-01-01 10:00:05\n2,1,2026-01-01 10:01:10\n"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text(rows)
    script = tmp_path / "shop.sql"
    script.write_text(SCRIPT)
    return script


def test_a_second_run_reads_only_what_is_new_and_joins_it_with_what_was_kept(shop: Path) -> None:
    first = plait("run", str(shop), "--available-now", "--json")
    assert first.returncode == 0, first.stderr
    finished = events(first.stdout)[-1]
    assert finished["event"] == "finished"
    assert finished["rows_in"] == 4
    assert finished["queries"] == {"soon": {"rows_out": 1}}
    (shop.parent / "orders" / "2.csv").write_text("2,eve,2026-01-01 10:01:05\n")
    second = plait("run", str(shop), "--available-now", "--json")
    assert second.returncode == 0, second.stderr
    assert events(second.stdout)[-1]["rows_in"] == 1
    assert sorted(row["customer"] for row in results(shop.parent / "soon")) == ["ann", "eve"]
    assert (shop.parent / "shop.checkpoint" / "plait").is_dir()


def test_a_run_that_closes_its_input_ends_the_checkpoint_and_running_it_again_is_refused(shop: Path) -> None:
    without = plait("run", str(shop), "--close")
    assert (without.returncode, "--available-now --close" in without.stderr) == (2, True)
    first = plait("run", str(shop), "--available-now", "--close", "--json")
    assert first.returncode == 0, first.stderr
    batches = [event for event in events(first.stdout) if event["event"] == "batch"]
    assert [(event["rows_in"], event["watermark_us"] == 2**63 - 1) for event in batches] == [(4, False), (0, True)]
    assert batches[-1]["stored_tuples"] == 0
    assert results(shop.parent / "soon") == [{"id": 1, "customer": "ann", "qty": 3}]
    again = plait("run", str(shop), "--available-now")
    assert again.returncode == 2
    assert "has ended: it was run with --close" in again.stderr
    assert results(shop.parent / "soon") == [{"id": 1, "customer": "ann", "qty": 3}]


def test_ctrl_c_finishes_the_batch_and_prints_the_totals(shop: Path) -> None:
    command = [*PLAIT, "run", str(shop), "--json", "--trigger", "200 milliseconds", "--strategy", "fixed"]
    seen = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            seen.append(json.loads(line))
            if seen[-1]["event"] == "batch":
                break
        process.send_signal(signal.SIGINT)
        rest, stderr = process.communicate(timeout=200)
    assert process.returncode == 0, stderr
    assert [event["event"] for event in events(rest)][-2:] == ["stopping", "finished"]
    assert seen[0]["strategy"] == "fixed"
    assert results(shop.parent / "soon") == [{"id": 1, "customer": "ann", "qty": 3}]


def test_a_run_that_cannot_use_its_checkpoint_ends_with_status_1_and_one_message(shop: Path) -> None:
    foreign = shop.parent / "foreign"
    foreign.mkdir()
    (foreign / "letters.txt").write_text("mine")
    result = plait("run", str(shop), "--available-now", "--checkpoint", str(foreign))
    assert result.returncode == 1
    assert "is not a Plait checkpoint" in result.stderr
    assert "Traceback" not in result.stderr
    assert (foreign / "letters.txt").read_text() == "mine"


def test_a_stream_without_files_to_read_ends_with_a_message_and_no_java_traces(shop: Path) -> None:
    shop.write_text(SCRIPT.replace("path 'items'", "path 'nowhere'"))
    result = plait("run", str(shop), "--available-now")
    assert result.returncode in (1, 2)
    assert "nowhere" in result.stderr
    assert "\tat org.apache" not in result.stderr
    assert "Traceback" not in result.stderr


def blocks(language: str) -> list[str]:
    """Return the code blocks of the README's example section."""
    section = README.read_text().split("## Ten lines to a result")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


TABLE = [
    "+---+--------+---+",
    "| id|customer|qty|",
    "+---+--------+---+",
    "|  1|     ann|  3|",
    "+---+--------+---+",
    "",
]


def test_the_examples_of_the_readme_print_what_it_says(tmp_path: Path) -> None:
    [shell], [python] = blocks("sh"), blocks("python")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "plait").write_text(f'#!/bin/sh\nexec {" ".join(PLAIT)} "$@"\n')
    (bin_folder / "plait").chmod(0o755)
    here = Path(__file__).parents[2]
    env = {
        **environment(),
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(here),
        "TZ": "America/New_York",
    }
    ran = subprocess.run(
        ["bash", "-e", "-c", shell], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == '{"id":1,"customer":"ann","qty":3}'
    program = tmp_path / "shop.py"
    program.write_text(python)
    ran = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["(('soon', 1),)", *TABLE]
    assert len(list((tmp_path / "shop" / "soon-python").glob("*.parquet"))) == 1


def test_help_is_quick_and_names_every_command() -> None:
    began = time.monotonic()
    result = plait("--help")
    assert result.returncode == 0
    for command in ("run", "explain", "advise", "check", "demo"):
        assert command in result.stdout
    assert time.monotonic() - began < 10
