"""The process that Spark forks its Python workers from, with loaded beforehand what each of them needs.

A worker that loads Arrow, Numba and the kernels by itself takes a second of a processor, and there is one for every
task at a time, just when Spark starts. Here it is loaded once, and workers are born with it; they also share its
memory. Spark starts this module in place of its own (`spark.python.daemon.module`). Mostly that was done before Spark
got so far, by a process that this one only stands for (`plait.runtime.spark.early_daemon`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from plait.runtime.spark.early_daemon import handed_over, wait_for_spark

_LOG = logging.getLogger(__name__)


def load() -> None:
    """Load what tasks need. If that fails, the first task will too, and it can say so."""
    try:
        import pyspark.worker  # noqa: F401  # what a worker runs

        from plait.runtime.spark.tasks import settle

        settle()
    except Exception as error:
        _LOG.debug("nothing could be loaded beforehand: %s", error)


def quiet(work: Callable[..., int]) -> Callable[..., int]:
    """Let a worker end without a word where Spark has let go of its task: nobody reads any more what it writes, and the
    user would see a stack trace of that for each task of a query that is started anew.
    """

    def working(*given: object) -> int:
        try:
            return work(*given)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return working


def main(arguments: list[str]) -> None:
    """Be the process that Spark forks workers from, here or in the early process; or be the early process."""
    match arguments:
        case ["--early", listener, place, head_start_s]:
            is_wanted = wait_for_spark(int(listener), place, float(head_start_s), load)
        case _:
            is_wanted = not handed_over()
            if is_wanted:
                load()
    if is_wanted:
        from pyspark import daemon

        daemon.worker = quiet(daemon.worker)
        daemon.manager()


if __name__ == "__main__":
    main(sys.argv[1:])
