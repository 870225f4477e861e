"""Queries of which it is known without asking Spark what it says: they take columns, and compare them.

To ask takes Spark's analyzer some ten milliseconds, and this process as many turns at its own interpreter lock as there
are calls of the JVM, each of them a wait where a batch or planning is under way. What a column is called and what type
it has stands in the schema; what may be equal to what is a table that is tested against Spark
(`plait.query.types.common_type`), and so is what may be compared with constants (`plait.sql.predicates.column_tests`).
All else is Spark's to confirm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from pyspark.sql.types import StructField, StructType

from plait.query.model import Operand, OutputColumn, Query, Relation
from plait.query.predicates import Equality
from plait.query.types import common_type
from plait.spelling import backquoted
from plait.sql.lexis.tokens import tokens_of
from plait.sql.predicates.column_tests import class_test

_MERGES: Final = re.compile(r"\b(USING|NATURAL)\b", re.IGNORECASE)
"""Where columns of two relations become one, Spark notes of others that they are hidden."""

_WHOLE: Final = re.compile(r"\d+(\.\d+)?")
_FRACTIONAL: Final = frozenset({"float", "double"})


def plain_output(query: Query, schemas: Mapping[str, StructType]) -> StructType | None:
    """Return the schema that Spark has for the results of a query; None if it has to be asked, be it because it may
    refuse the query. `schemas`: of the sources, by name.
    """
    if query.aggregation is not None or query.joins or _MERGES.search(query.text):
        return None
    fields = {(each.alias, field.name): field for each in query.relations for field in schemas[each.source].fields}
    types = {place: field.dataType.simpleString().lower() for place, field in fields.items()}
    output = [_field(column, fields) for column in query.output]
    if None in output or not all(_is_plain_relation(each, types) for each in query.relations):
        return None
    for predicate in query.predicates:
        if not isinstance(predicate, Equality):
            return None
        left, right = _type(predicate.left, types), _type(predicate.right, types)
        if left is None or right is None or common_type(left, right) is None:
            return None
    return StructType([field for field in output if field is not None])


def _field(column: OutputColumn, fields: Mapping[tuple[str, str], StructField]) -> StructField | None:
    """Return an output column if it is a column of a relation under a name that is known."""
    if column.name is None or len(column.expression.columns) != 1:
        return None
    (ref,) = column.expression.columns
    field = fields.get((ref.relation, ref.column))
    if field is None or column.expression.sql != backquoted(ref.name):
        return None
    return StructField(column.name, field.dataType, field.nullable, field.metadata)


def _type(operand: Operand, types: Mapping[tuple[str, str], str]) -> str | None:
    """Return the type of a side of an equality if it is a column."""
    columns = operand.expression.columns
    if len(columns) != 1 or operand.expression.sql != backquoted(columns[0]):
        return None
    return types.get((operand.relation, columns[0]))


def _is_plain_relation(relation: Relation, types: Mapping[tuple[str, str], str]) -> bool:
    """Tell whether all that is asked of a relation alone compares one column with constants."""
    return all(
        len(each.columns) == 1 and _is_plain(each.sql, each.columns[0], types.get((relation.alias, each.columns[0])))
        for each in relation.selections
    )


@lru_cache(maxsize=1 << 12)
def _is_plain(sql: str, column: str, type_: str | None) -> bool:
    """Tell whether a condition compares a column with constants that are surely ones to Spark: a number may be too
    large for what its last letter makes it, or for a double.
    """
    if type_ is None or type_ in _FRACTIONAL or "\\" in sql or class_test(sql, column, type_) is None:
        return False
    return all(_WHOLE.fullmatch(sql[each.start : each.end]) for each in tokens_of(sql) if each.kind == "number")


__all__ = ["plain_output"]
