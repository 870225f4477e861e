"""Programs of users in processes of their own: which Python their workers run in, what they leave on standard error,
what they say when Spark's JVM or a worker dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

_ROOT = Path(__file__).parents[2]

_PROGRAM = """
import os, sys, time
from pathlib import Path
import pyarrow as pa
from pyspark.sql import SparkSession
import plait
from plait.errors import OptionError, PredicateError

root = Path(sys.argv[1])
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
         .config("spark.sql.streaming.offsetLog.formatVersion", "2").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
print("=== begun", file=sys.stderr, flush=True)

def put(name, number, line):
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / f".{number}.csv").write_text(line)
    (folder / f".{number}.csv").rename(folder / f"{number}.csv")

def engine(checkpoint, **options):
    made = plait.Engine(spark, checkpoint=str(root / checkpoint), **options)
    for name in "ab":
        frame = (spark.readStream.name(name).schema("id BIGINT, ts TIMESTAMP").option("maxFilesPerTrigger", 1)
                 .csv(str(root / name)))
        made.stream(name, frame, time="ts")
    return made

for number in range(3):
    put("a", number, f"{number},2026-01-01 10:00:00")
    put("b", number, f"{number},2026-01-01 10:00:00")
PAIRS = "SELECT a.id FROM a JOIN b ON a.id = b.id"
batches = []
running = engine("running", listener=batches.append)
running.query("always", PAIRS, sink=plait.sinks.memory())
handle = running.start(trigger="10 milliseconds")
for number in range(6):
    running.query(f"q{number}", PAIRS, sink=plait.sinks.noop())
    put("a", 3 + number, f"{3 + number},2026-01-01 10:00:00")
    time.sleep(0.3 * (number % 3))
    running.drop(f"q{number}")
    put("b", 3 + number, f"{3 + number},2026-01-01 10:00:00")
deadline = time.monotonic() + 120
while len(running.results("always")) < 9 and time.monotonic() < deadline:
    time.sleep(0.1)
handle.stop()
print("results", sorted(running.results("always")["id"].to_pylist()))

def leaves(left, right):
    os._exit(3)

failing = engine("failing")
failing.predicate("leaves", leaves)
failing.query("q", "SELECT a.id FROM a JOIN b ON a.id = b.id AND leaves(a.id, b.id)", sink=plait.sinks.noop())
try:
    failing.run_available()
except PredicateError as error:
    print("failed:", error)
beside = engine("beside")
beside.predicate("leaves", leaves)
beside.query("q", "SELECT a.id FROM a JOIN b ON a.id = b.id AND leaves(a.id, b.id)", sink=plait.sinks.noop())
beside.query("fine", PAIRS, sink=plait.sinks.memory())
print("aside:", [name for name, _ in beside.run_available().set_aside], len(beside.results("fine")))
try:
    failing.predicate("holds", lambda left, right: handle._run._between and left)
except OptionError as error:
    print("refused:", error)
print("=== ended", file=sys.stderr, flush=True)
"""


def _environment(**changes: str) -> dict[str, str]:
    """Return the environment of a shell in which nobody has activated anything."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "VIRTUAL_ENV"))}
    return {**kept, "PYTHONPATH": str(_ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin", **changes}


def test_a_program_without_activation_adds_and_drops_queries_and_leaves_nothing_on_standard_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), str(tmp_path)],
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert lines[0] == "results [0, 1, 2, 3, 4, 5, 6, 7, 8]"
    assert lines[1].startswith(
        "failed: a Python worker ended in the middle of a batch. The predicate 'leaves' ran in it"
    )
    assert lines[2] == "aside: ['q'] 9"
    assert lines[3].startswith("refused: predicate 'holds' cannot be sent to Spark's workers: ")
    written = done.stderr.split("=== begun\n")[1]
    before_the_worker_died = written.split("Python worker exited")[0]
    assert "Stopping" not in written
    assert "Traceback" not in before_the_worker_died


def test_a_run_whose_jvm_is_killed_says_so_and_its_checkpoint_goes_on(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.csv").write_text("1,2026-01-01 10:00:00\n")
    streams = "".join(
        f"CREATE STREAM {name} (id BIGINT, ts TIMESTAMP) USING csv OPTIONS (path '{name}') TIMESTAMP BY ts;\n"
        for name in "ab"
    )
    query = "CREATE QUERY q INTO csv OPTIONS (path 'out') AS SELECT a.id FROM a JOIN b ON a.id = b.id;\n"
    (tmp_path / "s.sql").write_text(streams + query)
    command = [sys.executable, "-m", "plait.cli.main", "run", str(tmp_path / "s.sql"), "--json", "--master", "local[2]"]
    with subprocess.Popen(
        command, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while '"event": "batch"' not in process.stdout.readline():
            assert process.poll() is None, process.stderr
        os.kill(_jvm_of(process.pid), signal.SIGKILL)
        began = time.monotonic()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert time.monotonic() - began < 60
    assert "\nplait: Spark's JVM has ended" in f"\n{errors}"
    (tmp_path / "b" / "1.csv").write_text("1,2026-01-01 10:00:01\n")
    again = subprocess.run(
        [*command, "--available-now"], env=_environment(), capture_output=True, text=True, timeout=200
    )
    assert again.returncode == 0, again.stderr
    rows = [row for path in (tmp_path / "out").glob("*.csv") for row in path.read_text().splitlines()]
    assert rows == ["1", "1"]


def _jvm_of(process: int) -> int:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    tasks = Path(f"/proc/{process}/task").iterdir()
    children += [child for task in tasks for child in (task / "children").read_text().split()]
    return next(int(child) for child in children if "java" in Path(f"/proc/{child}/cmdline").read_text())
