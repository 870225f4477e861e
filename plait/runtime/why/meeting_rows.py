"""What a row, joined with others so far, meets of one more relation, and what keeps it from meeting more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from plait.query.model import Condition, Operand, relations_of
from plait.query.predicates import Predicate
from plait.runtime.why.row_frames import RelationFrame, predicate_sql
from plait.sql.lexis.names import doubled


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Rows joined so far. `frame` has ``newest`` and ``closes`` (microseconds: the largest event time, and when the
    first window is over), ``arrived`` (the batch of the last member) and all columns of the `placed` relations.
    """

    frame: DataFrame
    placed: tuple[RelationFrame, ...]

    def of(self, alias: str) -> RelationFrame | None:
        """Return the frame of a relation, None if it is not among them."""
        return next((each for each in self.placed if each.relation.alias == alias), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """How many pairs with rows of another relation satisfy the predicates (`met`); of these, how many have been read
    (`taken`), also satisfy its selections (`selected`), were in time (`timely`), and lie within all windows (`within`).
    Of those that do not, the nearest lies `outside_us` outside; `is_later`: it is too late for what it should meet,
    else it is too old. `at_us`: its event time.
    """

    met: int
    taken: int
    selected: int
    timely: int
    within: int
    outside_us: int | None = None
    is_later: bool = False
    at_us: int | None = None


def begun_with(spark: SparkSession, start: RelationFrame, rows: DataFrame) -> Joined:
    """Return rows of one relation."""
    columns = ", ".join(rows.columns)
    text = (
        f"SELECT {start.newest} AS newest, {start.closes} AS closes, {start.column('batch')} AS arrived, {columns} "
        "FROM {rows} x"
    )
    return Joined(frame=spark.sql(text, rows=rows), placed=(start,))


def conditions_on(
    joined: Joined, other: RelationFrame, predicates: Iterable[Predicate[Operand]], conditions: Iterable[Condition] = ()
) -> list[str]:
    """Return what ON says of rows and those of another relation, as SQL: predicates whose operands are there, and
    conditions on relations that are.
    """
    frames = (*joined.placed, other)
    known = {each.relation.alias: each for each in frames}
    texts = [
        doubled(predicate_sql(each, lambda operand: known[operand.relation].operand(operand.expression)))
        for each in predicates
        if set(relations_of(each)) <= known.keys() and other.relation.alias in relations_of(each)
    ]
    return [*texts, *(known[each.relation].selection(each.expression) for each in conditions if each.relation in known)]


def look(
    spark: SparkSession, joined: Joined, other: RelationFrame, on: Sequence[str], selected: Sequence[str]
) -> Looked:
    """Return what the rows meet of another relation. `selected`: what else its rows have to satisfy."""
    pairs = _pairs(spark, joined, other, on, selected)
    usable = "is_taken AND is_selected AND NOT is_late"
    counts = _row(
        spark.sql(
            "SELECT count(*) AS met, count_if(is_taken) AS taken, count_if(is_taken AND is_selected) AS selected, "
            f"count_if({usable}) AS timely, count_if({usable} AND excess <= 0) AS within FROM {{pairs}} p",
            pairs=pairs,
        )
    )
    met, taken, chosen, timely, within = (int(count or 0) for count in counts.values())
    looked = Looked(met=met, taken=taken, selected=chosen, timely=timely, within=within)
    if looked.within or not looked.timely:
        return looked
    nearest = _row(
        spark.sql(
            f"SELECT excess, is_later, at FROM {{pairs}} p WHERE {usable} ORDER BY excess, at LIMIT 1", pairs=pairs
        )
    )
    return replace(looked, outside_us=nearest["excess"], is_later=nearest["is_later"], at_us=nearest["at"])


def extended(
    spark: SparkSession, joined: Joined, other: RelationFrame, on: Sequence[str], selected: Sequence[str]
) -> Joined:
    """Return the rows joined with those of another relation that they meet."""
    pairs = _pairs(spark, joined, other, on, selected)
    columns = ", ".join((*_columns(joined), *other.frame.columns))
    text = (
        f"SELECT greatest(newest, {other.newest}) AS newest, least(closes, {other.closes}) AS closes, "
        f"greatest(arrived, {other.column('batch')}) AS arrived, {columns} FROM {{pairs}} p "
        "WHERE is_taken AND is_selected AND NOT is_late AND excess <= 0"
    )
    return Joined(frame=spark.sql(text, pairs=pairs), placed=(*joined.placed, other))


def _pairs(
    spark: SparkSession, joined: Joined, other: RelationFrame, on: Sequence[str], selected: Sequence[str]
) -> DataFrame:
    columns = ", ".join(("x.newest", "x.closes", "x.arrived", *_columns(joined), *other.frame.columns))
    text = (
        f"SELECT {columns}, {other.column('batch')} IS NOT NULL AS is_taken, {other.column('late')} AS is_late, "
        f"{' AND '.join(selected) or 'TRUE'} AS is_selected, {other.column('tau')} AS at, "
        f"greatest({other.newest} - x.closes, x.newest - {other.closes}) AS excess, "
        f"{other.newest} - x.closes > 0 AS is_later "
        f"FROM {{joined}} x JOIN {{other}} y ON {' AND '.join(f'({each})' for each in on) or 'TRUE'}"
    )
    return spark.sql(text, joined=joined.frame, other=other.frame)


def _columns(joined: Joined) -> list[str]:
    return [name for each in joined.placed for name in each.frame.columns]


def holding(joined: Joined, texts: Sequence[str]) -> Joined:
    """Return the rows of which these conditions hold."""
    if not texts:
        return joined
    return replace(joined, frame=joined.frame.where(" AND ".join(f"({text})" for text in texts)))


def bounds(spark: SparkSession, joined: Joined) -> dict[str, int | None]:
    """Return of the rows how many there are (``rows``), when the last one closes (``closes``), and the first batch by
    which all members of one had arrived (``arrived``).
    """
    text = "SELECT count(*) AS rows, max(closes) AS closes, min(arrived) AS arrived FROM {joined} x"
    return _row(spark.sql(text, joined=joined.frame))


def _row(frame: DataFrame) -> dict[str, Any]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows[0]


__all__ = ["Joined", "Looked", "begun_with", "bounds", "conditions_on", "extended", "holding", "look"]
