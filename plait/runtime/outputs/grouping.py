"""How joined rows become the groups of a query, by Spark."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from plait.query.model import ColumnRef, Query
from plait.query.time_windows import TimeWindow
from plait.sinks.delivery import Fold
from plait.spelling import backquoted
from plait.sql.select.folding import folding_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """`joined`: the columns of the joined row that groups are made of; `fold`: how they are kept until their windows
    are over, None if they are as they are; `kept`: the Spark schema of that; `sql`: the groups of it, as in
    `Aggregation`. `identity`: what the kept rows mean; equal ones can be grouped together.
    """

    joined: tuple[ColumnRef, ...]
    fold: Fold | None
    kept: StructType
    window: TimeWindow
    sql: str
    identity: str

    @property
    def time(self) -> ColumnRef:
        """The column of the windows' event time."""
        return ColumnRef(relation=self.window.relation, column=self.window.column)


def grouping_of(
    query: Query, joined: tuple[ColumnRef, ...], schema: StructType, *, can_fold: bool = True
) -> Grouping | None:
    """Return how a query groups, None if it does not. Without `can_fold` the joined rows are kept as they are."""
    aggregation = query.aggregation
    if aggregation is None:
        return None
    types = {ref: str(field.dataType.simpleString()).lower() for ref, field in zip(joined, schema, strict=True)}
    folding = folding_of(aggregation, types) if can_fold else None
    if folding is not None:
        columns = (f"{backquoted(name)} {type_}" for name, type_ in folding.kept)
        schema = StructType.fromDDL(", ".join(columns))
    windows = [(relation.alias, relation.source, relation.window_us) for relation in query.relations]
    meaning = (query.text, windows, schema.json(), aggregation, folding)
    return Grouping(
        joined=joined,
        fold=None if folding is None else folding.fold,
        kept=schema,
        window=aggregation.window,
        sql=aggregation.sql if folding is None else folding.sql,
        identity=hashlib.sha256(repr(meaning).encode()).hexdigest()[:16],
    )


def grouped(
    spark: SparkSession, rows: DataFrame, how: Grouping, *, after_us: int | None = None, until_us: int | None = None
) -> DataFrame:
    """Return the groups of kept rows, of the windows that end in ``(after_us, until_us]``."""
    window = how.window
    lengths = ", ".join(f"'{length} microseconds'" for length in (window.size_us, window.slide_us, window.start_us))
    windowed = rows.withColumn("window", expr(f"window({backquoted(how.time.name)}, {lengths})"))
    ends = "unix_micros(CAST(window.end AS TIMESTAMP))"
    bounds = [f"{ends} > {after_us}"] if after_us is not None else []
    bounds += [f"{ends} <= {until_us}"] if until_us is not None else []
    return spark.sql(how.sql, rows=windowed.where(" AND ".join(bounds)) if bounds else windowed)


__all__ = ["Grouping", "grouped", "grouping_of"]
