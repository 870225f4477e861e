"""Commands load what they need and no more: what is loaded is waited for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plait.cli.advice_text import FORMATS as ADVICE
from plait.cli.arguments import ADVICE_FORMATS, EXPLAIN_FORMATS, STRATEGY_NAMES
from plait.optimizer.strategies import STRATEGIES
from plait.plan.explain import FORMATS as EXPLAIN

HEAVY = ("pyspark", "numba", "pandas", "duckdb", "highspy", "rich", "plait.runtime", "plait.optimizer")
SCRIPT = """
    CREATE STREAM r (a INT, ts TIMESTAMP) USING csv OPTIONS (path 'r') TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;
    CREATE STREAM s (a INT, ts TIMESTAMP) USING csv OPTIONS (path 's') TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;
    CREATE QUERY q INTO noop AS SELECT r.a FROM r, s WHERE r.a = s.a AND r.a + s.a > 3;
"""


COMMAND = """
from plait.cli.main import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""


def loaded(*arguments: str, program: str = COMMAND) -> set[str]:
    """Return which heavy modules a command loads, and check that it ends well."""
    program += "import sys; print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    modules = done.stderr.splitlines()[-1].split()
    return {heavy for heavy in HEAVY if any(name == heavy or name.startswith(f"{heavy}.") for name in modules)}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    for stream in "rs":
        (tmp_path / stream).mkdir()
    file = tmp_path / "joins.sql"
    file.write_text(SCRIPT)
    return file


def test_check_loads_the_front_end_alone(script: Path) -> None:
    assert loaded("check", str(script)) == set()


def test_explain_loads_neither_spark_nor_the_solver(script: Path) -> None:
    assert loaded("explain", str(script)).isdisjoint({"pyspark", "highspy", "pandas", "rich"})


def test_the_version_is_told_at_once() -> None:
    assert loaded("--version") == set()


def test_a_worker_loads_kernels_and_no_more() -> None:
    """The command loads the same beside the session, where modules of Spark's could meet half-made ones."""
    assert loaded(program="import plait.runtime.spark.tasks;") == {"numba", "plait.runtime"}


def test_the_help_lists_what_there_is() -> None:
    assert set(STRATEGY_NAMES) == set(STRATEGIES)
    assert set(EXPLAIN_FORMATS) == set(EXPLAIN)
    assert set(ADVICE_FORMATS) == set(ADVICE)
