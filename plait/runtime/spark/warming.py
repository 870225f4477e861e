"""Have Python workers, and the driver, load what they will need while the user still registers streams and queries.

A fresh worker spends seconds on importing Arrow and Numba and on loading the kernels. Spark starts workers with the
first task that needs one, which would be the first micro-batch.
"""

from __future__ import annotations

import atexit
import logging
import threading
from contextlib import suppress
from typing import Final
from weakref import WeakSet

from pyspark.sql import SparkSession

from plait.kernels.warm import warm
from plait.runtime.spark.session import has_one_executor, parallelism_of
from plait.runtime.spark.tasks import REPORT, load_kernels

_LOG = logging.getLogger(__name__)
_ROUNDS = 3
_PATIENCE_S = 60.0
_AT_THE_END_S: Final = 10.0
"""So long a program that ends waits for jobs that make workers ready in its own JVM. It takes that along, and whatever
runs there has its stack traces written to standard error.
"""
_in_this_jvm: WeakSet[threading.Thread] = WeakSet()


@atexit.register
def _let_end() -> None:
    with suppress(KeyboardInterrupt):  # whoever cannot wait for it
        for thread in tuple(_in_this_jvm):
            thread.join(_AT_THE_END_S)


class Warming:
    """Spark jobs in the background that make as many workers ready as there are tasks at a time.

    On a cluster executors register one after the other, so they are counted again once some are warm.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._slots = parallelism_of(spark) if has_one_executor(spark) else None
        if self._slots is not None:  # on a cluster tasks do all that takes kernels
            threading.Thread(target=warm, name="plait-kernels", daemon=True).start()
        self._thread = threading.Thread(target=self._run, name="plait-warming", daemon=True)
        if self._slots is not None:
            _in_this_jvm.add(self._thread)
        self._thread.start()

    @property
    def slots(self) -> int:
        """How many tasks run at a time; on a cluster, once its executors are there."""
        if self._slots is None or not has_one_executor(self._spark):
            self.wait()
        return self._slots or 1

    def _run(self) -> None:
        warm = 0
        try:
            for _ in range(_ROUNDS):
                slots = self._slots = parallelism_of(self._spark)
                if slots <= warm:
                    return
                self._spark.range(0, slots, 1, slots).mapInArrow(load_kernels, REPORT).collect()
                warm = slots
        except Exception as error:
            # Spark passes some failures on as they come from Java. Whatever is wrong with the workers, the first batch
            # will meet it and say so.
            _LOG.debug("workers could not be warmed: %s", error)

    def wait(self) -> None:
        """Return once the workers are ready; say so if that takes longer than it should."""
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            _LOG.warning(
                "no executor has finished a first task in %d s; Plait goes on waiting. Check that the cluster has "
                "cores and memory free for what is asked (spark.executor.cores, spark.executor.memory, "
                "spark.cores.max), and that its workers reach this machine (spark.driver.host).",
                _PATIENCE_S,
            )
            self._thread.join()
