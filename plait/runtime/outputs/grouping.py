"""How joined rows become the groups of a query, by Spark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import LongType, StructField, StructType

from plait.query.model import Aggregation, ColumnRef, Query
from plait.query.time_windows import SessionWindow, Window
from plait.sinks.delivery import BEGIN, END, Finishing, Fold
from plait.spelling import backquoted
from plait.sql.lexis.tokens import depths, tokens_of
from plait.sql.select.finishing import finishing_of
from plait.sql.select.folding import folding_of, is_flat
from plait.sql.select.why_pairs import countable


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """`joined`: the columns of the joined row that groups are made of; `fold`: how they are kept until their windows
    are over, None if they are as they are; `kept`: the Spark schema of that; `sql`: the groups of it, as in
    `Aggregation`; `finishing`: how they are made without Spark, None if they are not. `identity`: what the kept rows
    mean; equal ones can be grouped together. `countable` as in `Aggregation`. `keys`: what tells sessions apart, as SQL
    over what is kept; `key_columns`: the same as columns, None if it has to be computed.
    """

    joined: tuple[ColumnRef, ...]
    fold: Fold | None
    kept: StructType
    window: Window
    sql: str
    finishing: Finishing | None
    identity: str
    countable: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    key_columns: tuple[str, ...] | None = ()

    @property
    def time(self) -> ColumnRef:
        """The column of the windows' event time."""
        return ColumnRef(relation=self.window.relation, column=self.window.column)

    @property
    def read(self) -> StructType:
        """The Spark schema of the rows that groups are made of: of sessions, with when each of them begins and ends."""
        if not isinstance(self.window, SessionWindow):
            return self.kept
        return StructType([*self.kept.fields, *(StructField(name, LongType()) for name in (BEGIN, END))])


def grouping_of(
    query: Query,
    joined: tuple[ColumnRef, ...],
    schema: StructType,
    results: StructType,
    *,
    time_zone: str,
    can_fold: bool = True,
    read: Sequence[str] = (),
) -> Grouping | None:
    """Return how a query groups, None if it does not. `schema`: of its joined rows, `results`: of its groups. Without
    `can_fold` the joined rows are kept as they are. `read`: as for `rows_identity`.
    """
    aggregation = query.aggregation
    if aggregation is None:
        return None
    types = dict(zip(joined, _type_names(schema), strict=True))
    folding = folding_of(aggregation, types) if can_fold else None
    fold = finishing = None
    if folding is not None:
        fold, finishing = folding.fold, finishing_of(aggregation, folding, _type_names(results), time_zone=time_zone)
        columns = (f"{backquoted(name)} {type_}" for name, type_ in folding.kept)
        schema = StructType.fromDDL(", ".join(columns))
    return Grouping(
        joined=joined,
        fold=fold,
        kept=schema,
        window=aggregation.window,
        sql=aggregation.sql if folding is None else folding.sql,
        finishing=finishing,
        identity=rows_identity(query.text, aggregation, types, fold, read),
        countable=countable(query, fold, types),
        keys=aggregation.keys,
        key_columns=_columns(aggregation.keys, types),
    )


def _columns(keys: tuple[str, ...], types: Mapping[ColumnRef, str]) -> tuple[str, ...] | None:
    """Return keys as columns; None if one of them is computed, or of a type whose equality only Spark knows."""
    flat = {backquoted(ref.name): ref.name for ref, type_ in types.items() if is_flat(type_)}
    return tuple(flat[key] for key in keys) if flat.keys() >= {*keys} else None


def _type_names(schema: StructType) -> list[str]:
    return [str(field.dataType.simpleString()).lower() for field in schema]


def rows_identity(
    text: str,
    aggregation: Aggregation,
    types: Mapping[ColumnRef, str],
    fold: Fold | None,
    read: Sequence[str] = (),
) -> str:
    """Return what tells kept rows apart from those that mean something else. `types`: of the joined row; `read`:
    what tells groups of other queries that it reads apart from those of others of their names.

    It is written out, name by name, because checkpoints hold it: it must not change with a version of ours, nor with
    anything that leaves the rows what they are, such as HAVING, another name of a column, or whether it can be NULL.
    """
    window = aggregation.window
    if isinstance(window, SessionWindow):
        windows: list[object] = ["sessions", window.gap_us, *aggregation.keys]
    else:
        windows = [window.size_us, window.slide_us, window.start_us]
    meaning = {
        "join": _join_part(text),
        "time": [window.relation, window.column],
        "windows": windows,
        "columns": [[ref.name, type_] for ref, type_ in types.items()],
        "panes": None if fold is None else [fold.pane_us, fold.start_us],
        "keys": None if fold is None else list(fold.keys),
        "partials": None if fold is None else [[each.name, each.first, each.again] for each in fold.partials],
    }
    if read:
        meaning["groups"] = list(read)
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:16]


def _join_part(text: str) -> list[str]:
    """Return the tokens of a SELECT that say which rows it joins: from FROM on, up to what groups them."""
    tokens = tokens_of(text)
    outside = [(place, token.keyword) for place, depth, token in depths(tokens) if depth == 0]
    first = next(place for place, word in outside if word == "FROM")
    last = next((place for place, word in outside if place > first and word == "GROUP BY"), len(tokens))
    return [f"{token.kind} {token.keyword or token.value}" for token in tokens[first:last]]


def grouped(
    spark: SparkSession, rows: DataFrame, how: Grouping, *, after_us: int | None = None, until_us: int | None = None
) -> DataFrame:
    """Return the groups of kept rows, of the windows that end in ``(after_us, until_us]``; of sessions, of all."""
    window = how.window
    if isinstance(window, SessionWindow):
        return spark.sql(how.sql, rows=rows.withColumn("session_window", expr(_session(how))))
    lengths = ", ".join(f"'{length} microseconds'" for length in (window.size_us, window.slide_us, window.start_us))
    windowed = rows.withColumn("window", expr(f"window({backquoted(how.time.name)}, {lengths})"))
    ends = "unix_micros(CAST(window.end AS TIMESTAMP))"
    bounds = [f"{ends} > {after_us}"] if after_us is not None else []
    bounds += [f"{ends} <= {until_us}"] if until_us is not None else []
    return spark.sql(how.sql, rows=windowed.where(" AND ".join(bounds)) if bounds else windowed)


def _session(how: Grouping) -> str:
    """Return the column that holds a session, as SQL."""
    is_local = how.kept[how.time.name].dataType.simpleString() == "timestamp_ntz"
    type_ = "TIMESTAMP_NTZ" if is_local else "TIMESTAMP"
    start, end = (f"CAST(timestamp_micros({backquoted(name)}) AS {type_})" for name in (BEGIN, END))
    return f"named_struct('start', {start}, 'end', {end})"


def coded(rows: DataFrame, how: Grouping) -> DataFrame:
    """Return which kept rows are alike in what tells sessions apart: a number for each, the same for those that are."""
    number = "monotonically_increasing_id() AS number"
    named = [f"{sql} AS key{place}" for place, sql in enumerate(how.keys)]
    keyed = rows.selectExpr(number, *named)
    by = ", ".join(f"key{place}" for place in range(len(how.keys)))
    # Spark warns of windows over all rows; no number is below zero.
    return keyed.selectExpr("number", f"dense_rank() OVER (PARTITION BY number < 0 ORDER BY {by}) AS code")


def codes_of(rows: DataFrame, how: Grouping) -> npt.NDArray[np.int64]:
    """Return these numbers in the order of the rows."""
    found = coded(rows, how).toArrow()
    order = np.argsort(found.column("number").to_numpy())
    codes: npt.NDArray[np.int64] = found.column("code").to_numpy()[order].astype(np.int64)
    return codes


__all__ = ["Grouping", "coded", "codes_of", "grouped", "grouping_of", "rows_identity"]
