"""A session starts whatever state the class-data archive is in, and workers are born with what they need."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.spark


def test_a_session_starts_without_an_archive_with_which_the_jvm_ends_and_its_first_task_finds_the_kernels() -> None:
    """In a process of its own: a JVM is started once a process, and no worker has done anything yet."""
    program = """
        from plait.runtime.spark import session

        class Damaged:
            discarded = False

            def options(self, *, make):
                return "-Xss1"

            def discard(self):
                self.discarded = True

        archive = Damaged()
        session.find_archive = lambda: archive
        spark = session.open_session("local[1]")
        assert archive.discarded
        print(spark.range(3).count())

        def loaded(batches):
            import os
            import sys
            import pyarrow as pa
            is_there = "plait.kernels.matching" in sys.modules
            is_direct = os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "").lower() == "true"
            rows = sum(batch.num_rows for batch in batches)
            yield pa.RecordBatch.from_pydict({"rows": [rows], "is_there": [is_there], "is_direct": [is_direct]})

        schema = "rows bigint, is_there boolean, is_direct boolean"
        row, = spark.range(0, 5, 1, 1).mapInArrow(loaded, schema).collect()
        print(row.rows, row.is_there, row.is_direct)
        spark.stop()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=180, check=False
    )
    assert (done.returncode, done.stdout.split()[-4:]) == (0, ["3", "5", "True", "True"]), done.stderr
