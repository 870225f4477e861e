"""Let Spark add up the results of each batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.systems.checksum import Checksum, aggregates
from benchmarks.systems.integers import spark_integers
from benchmarks.workloads.joins import JoinQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sums:
    """The checksum of all batches of one query: a batch that is done twice counts once."""

    def __init__(self, query: JoinQuery) -> None:
        self._aggregates = aggregates(spark_integers(query.outputs))
        self._batches: dict[int, Checksum] = {}

    def add(self, results: DataFrame, batch: int) -> None:
        """Add the results of a batch; for ``foreachBatch`` and Plait's ``foreach`` sink."""
        (sums,) = results.selectExpr(*self._aggregates).collect()
        self._batches[batch] = Checksum.of_sums(sums)

    def total(self) -> Checksum:
        """Return the checksum so far."""
        return sum(self._batches.values(), Checksum())
