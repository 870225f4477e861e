"""Find out which of the expressions that Spark evaluates over rows of a source fail for one of them.

Spark tells of one failure, and not of every kind where it stands. So each expression is tried by itself: halves of all
there are, and halves of those that fail, which takes few jobs where few fail. What fails when nothing is computed at
all is no fault of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from plait.errors import Failure
from plait.operators.column_names import TAU, word_names
from plait.operators.ingest.projection import IngestSpec
from plait.plan.columns import stored_column
from plait.runtime.spark.headline import headline

SPARK_FAILS = (PySparkException, Py4JJavaError)


@dataclass(frozen=True, slots=True)
class Computed:
    """What Spark computes of a row: a column of a store, or a selection under its text; `text` for the user."""

    name: str
    sql: str
    text: str


def computed_by(spec: IngestSpec) -> tuple[Computed, ...]:
    """Return what Spark computes of rows of a source for queries: not their event time, nor what is only handed on."""
    words = set(word_names(max(len(spec.selections), 2)))
    made = [each for each in spec.projection if each[0] not in words and each[0] != TAU and _is_computed(each[0])]
    columns = (Computed(name, sql, stored_column(name).text) for name, sql in made)
    return (*columns, *(Computed(sql, sql, sql) for sql in spec.selections if sql != "true"))


def _is_computed(name: str) -> bool:
    return stored_column(name).kind in ("key", "ordered key", "value")


def failures_among(rows: DataFrame, spec: IngestSpec) -> tuple[Failure, ...]:
    """Return which of what a spec wants computed fails for some of the `rows` of its source. Raises what Spark does if
    they cannot be read.
    """
    _compute(rows, ["*"])
    return tuple(
        Failure(reason=_reason(spec.source, each, error), source=spec.source, column=each.name)
        for each, error in _failing(rows, computed_by(spec))
    )


def _failing(rows: DataFrame, tried: Sequence[Computed]) -> Iterator[tuple[Computed, Exception]]:
    if not tried:
        return
    try:
        _compute(rows, [f"{each.sql} AS c{number}" for number, each in enumerate(tried)])
    except SPARK_FAILS as error:
        if len(tried) == 1:
            yield tried[0], error
            return
        half = len(tried) // 2
        yield from _failing(rows, tried[:half])
        yield from _failing(rows, tried[half:])


def _compute(rows: DataFrame, expressions: list[str]) -> None:
    """Have Spark compute these of every row, and keep nothing."""
    rows.selectExpr(*expressions).write.format("noop").mode("overwrite").save()


def _reason(source: str, what: Computed, error: Exception) -> str:
    return (
        f"Spark cannot compute {what.text} for some row of '{source}': {headline(str(error))} Guard the values it "
        "fails for, with try_cast, try_divide, nullif or coalesce, or mend the data"
    )


__all__ = ["SPARK_FAILS", "Computed", "computed_by", "failures_among"]
