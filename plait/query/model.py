"""Sources and queries after the front end: names resolved, text split, nothing planned.

Expressions stay Spark SQL text, because Spark evaluates them. The front end only replaces column references:

- in a `SourceExpression` (columns of one source) each reference is the backquoted column name: ``lower(`city`)``;
- in a `JoinedExpression` (columns of the joined row) it is one backquoted name ``alias.column``: ``` `o.qty` *
  `l.price` ```.

A backquote inside a name is doubled. Equal text therefore means equal expression, whatever alias the user chose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Options: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a source. `type` is Spark DDL in lower case: ``bigint``, ``decimal(10,2)``, ``timestamp``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStatistics:
    """What the user said about a source (``OPTIONS (rate '1000', 'distinct.key' '50')``); None where silent."""

    rate_rows_per_s: float | None = None
    rows: float | None = None
    distinct: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """How Spark reads a source: format and options as given to ``spark.readStream``, paths already absolute."""

    format: str
    options: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An unbounded input. Durations are microseconds; `window_us` None keeps the full history.

    `connector` is None when the user handed over a DataFrame. `keep` is ``needed`` (store what the queries use)
    or ``all`` (store every column and row, so that later queries can reach back).
    """

    name: str
    time: str
    schema: tuple[Column, ...] | None = None
    window_us: int | None = None
    delay_us: int = 0
    idle_us: int | None = None
    dead_letter: str | None = None
    keep: str = "needed"
    declared: DeclaredStatistics = field(default_factory=DeclaredStatistics)
    connector: Connector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A static relation: arrived before the first batch, never expires."""

    name: str
    schema: tuple[Column, ...] | None = None
    declared: DeclaredStatistics = field(default_factory=DeclaredStatistics)
    connector: Connector | None = None


Source: TypeAlias = Stream | Table


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceExpression:
    """Spark SQL over the columns of one source. `columns` in order of first appearance."""

    sql: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRef:
    """A column of a relation of the query."""

    relation: str
    column: str

    @property
    def name(self) -> str:
        """The column's name in a joined row."""
        return f"{self.relation}.{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedExpression:
    """Spark SQL over the joined row. `columns` in order of first appearance."""

    sql: str
    columns: tuple[ColumnRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A source as it occurs in a query. `selections` are conjuncts over this relation alone.

    In a query that the optimizer joins in the place of several, `alternatives` are the selections of these, each a
    conjunction, one of which must hold; `selections` is then empty.
    """

    alias: str
    source: str
    is_table: bool = False
    window_us: int | None = None
    selections: tuple[SourceExpression, ...] = ()
    alternatives: tuple[tuple[SourceExpression, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One side of an equality: an expression over one relation."""

    relation: str
    expression: SourceExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """``left = right`` between two different relations.

    `type` is the Spark type both sides are cast to before they are compared; None until somebody who knows the
    operands' types has said so (`plait.query.types.common_type`).
    """

    left: Operand
    right: Operand
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """One column of the projection. `name` None: Spark derives it from the text, as it always does."""

    name: str | None
    expression: JoinedExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec:
    """Where results go: ``parquet``, ``csv``, ``json``, ``console``, ``memory``, ``noop``, ``foreach``."""

    format: str
    options: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One continuous join query. `text` is the user's SELECT; `relations` in FROM order.

    `spark_text` is the same SELECT with every source name replaced by ``{name}`` and other braces doubled, ready for
    ``spark.sql(spark_text, name=dataframe)``: that is how Spark confirms it and names its output columns.
    """

    name: str
    relations: tuple[Relation, ...]
    equalities: tuple[Equality, ...]
    output: tuple[OutputColumn, ...]
    sink: SinkSpec
    text: str
    spark_text: str

    def relation(self, alias: str) -> Relation:
        """Return the relation with this alias."""
        return next(relation for relation in self.relations if relation.alias == alias)
