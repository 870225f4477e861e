"""Take a batch that has failed while Spark computed something of its rows once more, to find out what fails.

The streaming query is started for it on its own offset log, so it reads the very rows of that batch, which it hands
over as they are. The batch does not end: the next start carries it out without the queries that are to blame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from plait.errors import Failure
from plait.operators.ingest.projection import IngestSpec
from plait.runtime.inputs.opening import OpenSource, reading
from plait.runtime.inputs.trying import failures_among
from plait.spelling import backquoted

_PLACE = "place"


@dataclass(frozen=True, slots=True)
class Tried:
    """A source as it was opened, and what Spark computes of its rows."""

    opened: OpenSource
    spec: IngestSpec


def trial_frames(sources: Sequence[Tried]) -> list[DataFrame]:
    """Return the rows of each source, all with the same columns: those of every source, and the place of its own."""
    frames = []
    for place, tried in enumerate(sources):
        columns = [expr(f"CAST({place} AS INT)").alias(_PLACE)]
        for other, each in enumerate(sources):
            for number, field in enumerate(each.opened.frame.schema.fields):
                value = expr(backquoted(field.name)) if other == place else expr("NULL").cast(field.dataType)
                columns.append(value.alias(f"c{other}_{number}"))
        with reading(tried.opened.source):
            frames.append(tried.opened.frame.select(*columns))
    return frames


def failures_of_batch(batch: DataFrame, sources: Sequence[Tried]) -> tuple[Failure, ...]:
    """Return what fails of what Spark computes of the rows of a batch of `trial_frames`. Raises what Spark does if they
    cannot be read at all.
    """
    rows, failures = batch.persist(), list[Failure]()
    try:
        for place, tried in enumerate(sources):
            names = [backquoted(field.name) for field in tried.opened.frame.schema.fields]
            own = [f"c{place}_{number} AS {name}" for number, name in enumerate(names)]
            failures += failures_among(rows.where(f"{_PLACE} = {place}").selectExpr(*own), tried.spec)
    finally:
        rows.unpersist()
    return tuple(failures)


__all__ = ["Tried", "failures_of_batch", "trial_frames"]
