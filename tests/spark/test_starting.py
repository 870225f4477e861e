"""A session starts whatever state the class-data archive is in."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.spark


def test_a_session_starts_without_an_archive_with_which_the_jvm_ends() -> None:
    """In a process of its own: a JVM is started once a process."""
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
        spark.stop()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=180, check=False
    )
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["3"]), done.stderr
