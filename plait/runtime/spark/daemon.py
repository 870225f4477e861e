"""The process that Spark forks its Python workers from, with loaded beforehand what each of them needs.

A worker that loads Arrow, Numba and the kernels by itself takes a second of a processor, and there is one for every
task at a time, just when Spark starts. Here it is loaded once, and workers are born with it; they also share its
memory. Spark starts this module in place of its own (`spark.python.daemon.module`).
"""

from __future__ import annotations

import logging

_LOG = logging.getLogger(__name__)


def load() -> None:
    """Load what tasks need. If that fails, the first task will too, and it can say so."""
    try:
        import pyspark.worker  # noqa: F401  # what a worker runs

        from plait.runtime.spark.tasks import settle

        settle()
    except Exception as error:
        _LOG.debug("nothing could be loaded beforehand: %s", error)


if __name__ == "__main__":
    load()
    from pyspark.daemon import manager

    manager()
