"""Sources and queries after the front end: names resolved, text split, nothing planned.

Expressions stay Spark SQL text, because Spark evaluates them. The front end only replaces column references:

- in a `SourceExpression` (columns of one source) each reference is the backquoted column name: ``lower(`city`)``;
- in a `JoinedExpression` (columns of the joined row) it is one backquoted name ``alias.column``: ``` `o.qty` *
  `l.price` ```.

A backquote inside a name is doubled. Equal text therefore means equal expression, whatever alias the user chose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from typing_extensions import assert_never

from plait.query.predicates import Order

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
    or ``all`` (store every column and row, so that later queries can reach back). `placement` is ``keys`` (a store is
    partitioned by a key that probes know) or ``random``: frequent keys cannot make a partition large, but every probe
    goes to all of them.
    """

    name: str
    time: str
    schema: tuple[Column, ...] | None = None
    window_us: int | None = None
    delay_us: int = 0
    idle_us: int | None = None
    dead_letter: str | None = None
    keep: str = "needed"
    placement: str = "keys"
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


OrderedType: TypeAlias = Literal["tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "double"]
"""The types that have an int64 of the same order; ``double`` stands for all fractional ones."""


def order_of(type_: OrderedType) -> Order:
    """Return how keys of this type are ordered."""
    match type_:
        case "double":
            return "double"
        case "tinyint" | "smallint" | "int" | "bigint" | "date" | "timestamp" | "timestamp_ntz":
            return "integer"
        case _:
            assert_never(type_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """``low ≤ right − left ≤ high`` for two operands of different relations, None where there is no such bound.

    Both sides are of `type`; the bounds are whole numbers, days, microseconds or doubles. NaN is larger than anything
    else and equal to itself, as in Spark. The bounds are closed; those of a double may be a little wide.
    """

    left: Operand
    right: Operand
    type: OrderedType
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Theta:
    """A join predicate of two relations that is no equality: it holds where `sql` is true.

    Whatever concerns one relation alone is an operand, which Spark computes when its row arrives; in `sql`, Spark SQL
    with every operation in parentheses, the n-th of `operands` stands as the column `` `n` ``. `span` is implied by the
    predicate; `is_span` says that it is all of it. A registered predicate is `function`, called with the operands.

    Known only when the operands' types are: `types` of the operands, `span`, and `evaluated`, the predicate as DuckDB
    SQL over columns ``"n"`` (None where `is_span` or `function` makes it superfluous).
    """

    operands: tuple[Operand, ...]
    sql: str
    function: str | None = None
    types: tuple[str, ...] | None = None
    span: Span | None = None
    is_span: bool = False
    evaluated: str | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        """The aliases of the two relations, in order of appearance."""
        return tuple(dict.fromkeys(operand.relation for operand in self.operands))


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
class TextPlace:
    """Where a query's text starts; lines and columns count from 1."""

    file: str | None = None
    line: int = 1
    column: int = 1


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
    thetas: tuple[Theta, ...] = ()
    place: TextPlace = field(default=TextPlace(), compare=False)

    def relation(self, alias: str) -> Relation:
        """Return the relation with this alias."""
        return next(relation for relation in self.relations if relation.alias == alias)
