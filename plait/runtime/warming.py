"""Have Python workers load what they will need while the user still registers streams and queries.

A fresh worker spends seconds on importing Arrow and Numba and on loading the kernels. Spark starts workers with the
first task that needs one, which would be the first micro-batch.
"""

from __future__ import annotations

import logging
import threading

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.runtime.session import parallelism_of
from plait.runtime.tasks import REPORT, load_kernels

_LOG = logging.getLogger(__name__)


class Warming:
    """One Spark job in the background that makes as many workers ready as there are tasks at a time."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._thread = threading.Thread(target=self._run, name="plait-warming", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        slots = parallelism_of(self._spark)
        try:
            self._spark.range(0, slots, 1, slots).mapInArrow(load_kernels, REPORT).collect()
        except PySparkException as error:
            # Whatever is wrong with the workers, the first batch will meet it and say so.
            _LOG.debug("workers could not be warmed: %s", error)

    def wait(self) -> None:
        """Return once the workers are ready."""
        self._thread.join()
