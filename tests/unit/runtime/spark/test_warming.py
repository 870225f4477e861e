"""A program that ends while its workers are being made ready waits for that, but not for ever."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

PROGRAM = """
import time
from plait.runtime.spark import warming

class Frame:
    def mapInArrow(self, function, schema):
        return self

    def collect(self):
        print("begun", flush=True)
        time.sleep({seconds})
        print("done", flush=True)

class Spark:
    def range(self, *told):
        return Frame()

warming.parallelism_of, warming.has_one_executor, warming.warm = (lambda spark: 2), (lambda spark: {is_local}), int
warming._AT_THE_END_S = 2.0
made = warming.Warming(Spark())
time.sleep(0.2)
print("ends", flush=True)
"""


@pytest.mark.parametrize(
    ("is_local", "seconds", "written"),
    [(True, 1, ["begun", "ends", "done"]), (True, 60, ["begun", "ends"]), (False, 60, ["begun", "ends"])],
)
def test_a_program_that_ends_waits_for_the_jobs_that_make_workers_ready(
    is_local: bool, seconds: int, written: list[str]
) -> None:
    began = time.monotonic()
    code = PROGRAM.format(is_local=is_local, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (written, "")
    assert time.monotonic() - began < 50
