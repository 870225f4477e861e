"""Delta tables as streams and tables: what their commits have added is what queries see, and what a stream cannot
follow is refused by name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.conftest import or_skipped
from tests.kafka.jars import NoJarsError, fetched_jars

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program tells."""
    with or_skipped(NoJarsError):
        fetched_jars()
    program = [sys.executable, "-m", "tests.kafka.delta_program", str(tmp_path_factory.mktemp("tables"))]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_tables_that_grow_by_rows_and_columns_are_joined_by_their_commits(told: dict[str, Any]) -> None:
    first = [{"id": n, "qty": n % 5, "country": "x"} for n in range(0, 40, 2)]
    later = [{"id": n, "qty": n % 5, "country": "xy"[n % 2], "note": "new"} for n in range(40, 50)]
    assert told["joined"] == first + later
    assert told["known"] == list(range(40, 50, 2))
    assert told["batches"] == [2, 1]  # of 40 rows at most
    assert told["given"] == 420  # all versions: 1,050 items, two of ten cities


def test_what_a_stream_cannot_follow_is_refused_by_name(told: dict[str, Any]) -> None:
    assert told["seen"] == [[0, 1, 2], [0, 1, 2], [3, 4], [5]]
    assert "rows of the Delta table were changed or deleted (version 2)" in told["changed"]
    assert "skipChangeCommits 'true'" in told["changed"]
    assert "there is no Delta table at its path" in told["nowhere"]
    assert "Cannot time travel Delta table to version 99. Available versions: [0, 4]. " in told["no version"]
    assert "SQLSTATE" not in told["no version"]


def test_the_logs_tell_which_batch_took_a_row_of_a_table(told: dict[str, Any]) -> None:
    why = {row: lines[0].split(", event")[0].strip() for row, lines in told["why"].items()}
    assert why == {
        "o.id = 2": "arrived with batch 0",
        "o.id = 31": "arrived with batch 1",
        "o.id = 45": "arrived with batch 2",
        "o.id = 50": "arrived",
    }
    assert told["why"]["o.id = 2"][-2:] == [
        "  there is a result: it came with batch 0",
        "  but table cities is looked at as it is now; results have the rows it had when their newest member arrived "
        "(REFRESH)",
    ]
    assert "files of its table were taken out or rewritten since" in told["untold"]
