"""Sources and queries after the front end: names resolved, text split, nothing planned.

Expressions stay Spark SQL text, because Spark evaluates them. The front end only replaces column references:

- in a `SourceExpression` (columns of one source) each reference is the backquoted column name: ``lower(`city`)``;
- in a `JoinedExpression` (columns of the joined row) it is one backquoted name ``alias.column``: ``` `o.qty` *
  `l.price` ```.

A backquote inside a name is doubled. Equal text therefore means equal expression, whatever alias the user chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from typing_extensions import assert_never

from plait.query.graph import QueryGraph
from plait.query.origin import Column as Column
from plait.query.origin import Connector as Connector
from plait.query.origin import Options as Options
from plait.query.places import TextPlace
from plait.query.predicates import Band, Conjunction, Equality, Order, Predicate, Residual, by_kind, operands_of
from plait.query.time_windows import Window

Keep: TypeAlias = Literal["needed", "all"]
Placement: TypeAlias = Literal["keys", "random"]
KEEPS: Final[tuple[Keep, ...]] = ("needed", "all")
PLACEMENTS: Final[tuple[Placement, ...]] = ("keys", "random")
"""What `Stream.keep` and `Stream.placement` may be, the default first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStatistics:
    """What the user said about a source (``OPTIONS (rate '1000', 'distinct.key' '50')``); None where silent."""

    rate_rows_per_s: float | None = None
    rows: float | None = None
    distinct: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """An event time that is computed: Spark SQL over the stream's columns, and its type, None until Spark was asked."""

    sql: str
    columns: tuple[str, ...]
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An unbounded input. Durations are microseconds; `window_us` None keeps the full history.

    `connector` is None when the user handed over a DataFrame. `keep` is ``needed`` (store what the queries use)
    or ``all`` (store every column and row, so that later queries can reach back). `placement` is ``keys`` (a store is
    partitioned by a key that probes know) or ``random``: frequent keys cannot make a partition large, but every probe
    goes to all of them. `time` is a column; or an expression as the user wrote it, and `computed` what it stands for.

    `derived`: of a stream that no source delivers, because its rows are the groups of the query of its name, what tells
    these from the groups of another query; None for what arrives.
    """

    name: str
    time: str
    computed: EventTime | None = None
    schema: tuple[Column, ...] | None = None
    window_us: int | None = None
    delay_us: int = 0
    idle_us: int | None = None
    dead_letter: str | None = None
    keep: Keep = "needed"
    placement: Placement = "keys"
    declared: DeclaredStatistics = field(default_factory=DeclaredStatistics)
    connector: Connector | None = None
    derived: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A static relation: arrived before the first batch, never expires. `refresh_us`: how often it is read again, None
    for not at all; what arrives is joined with the rows it has then.
    """

    name: str
    schema: tuple[Column, ...] | None = None
    declared: DeclaredStatistics = field(default_factory=DeclaredStatistics)
    connector: Connector | None = None
    refresh_us: int | None = None


Source: TypeAlias = Stream | Table


def changes(source: Source) -> bool:
    """Tell whether it is a table that is read again while queries run."""
    return isinstance(source, Table) and source.refresh_us is not None


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
class Waiting:
    """What is kept of a relation until it is certain which of its rows have no partner.

    Rows that satisfy `selections`, NULL keys or not, for `kept_us` (None: for ever); of each it is told whether it
    satisfies each of `conditions`. `window_us`: the window as the user has it, from which on nothing new can match.
    """

    selections: tuple[SourceExpression, ...]
    conditions: tuple[SourceExpression, ...]
    window_us: int | None
    kept_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A source as it occurs in a query. `selections` are conjuncts over this relation alone.

    In a query that the optimizer joins in the place of several, `alternatives` are the selections of these, each a
    conjunction, one of which must hold; `selections` is then empty. `waiting`: in a query that has rows without a
    partner, or with the first one only, what has to be kept of the relation to know them. `changes`: it is a table that
    is read again while queries run.
    """

    alias: str
    source: str
    is_table: bool = False
    changes: bool = False
    window_us: int | None = None
    selections: tuple[SourceExpression, ...] = ()
    alternatives: tuple[tuple[SourceExpression, ...], ...] = ()
    waiting: Waiting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """What a join predicate reads of one relation: an expression, which Spark computes when a row arrives.

    `type`: the Spark type it is compared as, None until somebody who knows the types of the columns has said so. Sides
    of an equality and of a band are cast to it (`plait.query.types.common_type`, `OrderedType`).
    """

    relation: str
    expression: SourceExpression
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


def band_between(
    left: Operand, right: Operand, type_: OrderedType, low: float | None, high: float | None
) -> Band[Operand]:
    """Return ``low ≤ right − left ≤ high``, both sides as this type: whole numbers, days, microseconds or doubles."""
    sides = replace(left, type=type_), replace(right, type=type_)
    return Band(left=sides[0], right=sides[1], order=order_of(type_), low=low, high=high)


def relations_of(predicate: Predicate[Operand]) -> tuple[str, str]:
    """Return the aliases of the two relations, in order of appearance."""
    left, right = dict.fromkeys(operand.relation for operand in operands_of(predicate))
    return left, right


JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition on one relation in ON or in WHERE after outer joins. `holds_of_nothing`: whether it is true where
    the relation has no row, so that all its columns are NULL.
    """

    relation: str
    expression: SourceExpression
    holds_of_nothing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStep:
    """One join of a query in the order in which they apply, with its ON; with `kind` None what WHERE asks of the rows
    so far, and no `alias`. Predicates are not true where an operand belongs to a relation without a row.
    """

    kind: JoinKind | None
    alias: str = ""
    predicates: Conjunction[Operand] = ()
    conditions: tuple[Condition, ...] = ()
    place: TextPlace = field(default=TextPlace(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """One column of the projection. `name` None: Spark derives it from the text, as it always does."""

    name: str | None
    expression: JoinedExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """What becomes of the results of a query that groups them: one row for each group of each window of event time.

    `sql` is a whole SELECT over ``{rows}``: the joined rows with a column ``window``, one for every window that one
    belongs to; other braces are doubled, ready for ``spark.sql``. `names` of its columns, None where Spark derives one
    from the user's text; `functions`: what it calls, in order of appearance. `countable`: the relations of which it
    only wants to know how many rows match, and what they add up to, once the types of columns are known.

    Of sessions the column is ``session_window``, and `keys` are what tells rows apart that are never of one session:
    all else that is grouped by, as SQL over the joined rows.

    `columns`: of the groups as queries that read them see them, None if one has no name; `end`: which of them is the
    end of the window, and so their event time, None if there is none.
    """

    window: Window
    sql: str
    names: tuple[str | None, ...]
    functions: tuple[str, ...]
    countable: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    columns: tuple[Column, ...] | None = field(default=None, compare=False)
    end: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec:
    """Where results go: ``parquet``, ``csv``, ``json``, ``console``, ``memory``, ``noop``, ``foreach``."""

    format: str
    options: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One continuous join query. `text` is the user's SELECT, views merged; `relations` in FROM order. With an
    `aggregation` the `output` of the join is what that reads, and its groups are the results.

    `spark_text` is the same SELECT with every source name replaced by ``{name}`` and other braces doubled, ready for
    ``spark.sql(spark_text, name=dataframe)``: that is how Spark confirms it and names its output columns.

    `joins`: of a query that has rows without a partner, or with the first one only, what it means, join by join (from
    the second relation on); empty for one that is an inner join. `predicates` and the relations' selections are then
    those of its **core**, the inner join of all relations: its results are those in which every relation has a row.

    `place`: where the text starts; `places`: of one put together of several texts, where each piece starts in it and
    where that was written.
    """

    name: str
    relations: tuple[Relation, ...]
    predicates: Conjunction[Operand]
    output: tuple[OutputColumn, ...]
    sink: SinkSpec
    text: str
    spark_text: str
    aggregation: Aggregation | None = None
    joins: tuple[JoinStep, ...] = ()
    place: TextPlace = field(default=TextPlace(), compare=False)
    places: tuple[tuple[int, TextPlace], ...] = field(default=(), compare=False, repr=False)
    graph: QueryGraph = field(init=False, compare=False, repr=False)
    _by_alias: Mapping[str, Relation] = field(init=False, compare=False, repr=False)
    _canonical: Mapping[str, tuple[str, int]] = field(init=False, compare=False, repr=False)
    _between: Mapping[frozenset[str], Conjunction[Operand]] = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __hash__(self) -> int:
        return self._hash  # what is worked out of queries is remembered, and hundreds of them are asked about each time

    def __post_init__(self) -> None:
        asked = self.output, self.sink, self.text, self.aggregation, self.joins
        content = self.name, self.relations, self.predicates, asked
        object.__setattr__(self, "_hash", hash(content))
        # Asked for at every step of every probe order that an optimizer looks at.
        by_alias = {relation.alias: relation for relation in self.relations}
        canonical: dict[str, tuple[str, int]] = {}
        for relation in self.relations:
            earlier = sum(source == relation.source for source, _ in canonical.values())
            canonical[relation.alias] = relation.source, earlier
        pairs = tuple(map(relations_of, self.predicates))
        between: dict[frozenset[str], Conjunction[Operand]] = {}
        for predicate, pair in zip(self.predicates, pairs, strict=True):
            between[frozenset(pair)] = (*between.get(frozenset(pair), ()), predicate)
        object.__setattr__(self, "_by_alias", by_alias)
        object.__setattr__(self, "_canonical", canonical)
        object.__setattr__(self, "_between", between)
        object.__setattr__(self, "graph", QueryGraph(aliases=tuple(by_alias), pairs=pairs))

    @property
    def equalities(self) -> tuple[Equality[Operand], ...]:
        """The equalities among the predicates."""
        return by_kind(self.predicates).equalities

    @property
    def residuals(self) -> tuple[Residual[Operand], ...]:
        """The predicates that no key decides, as far as is known."""
        return by_kind(self.predicates).residuals

    def relation(self, alias: str) -> Relation:
        """Return the relation with this alias."""
        return self._by_alias[alias]

    def place_of(self, offset: int) -> TextPlace:
        """Return where the user wrote what starts there in `text`."""
        if self.places:
            return next(place for start, place in reversed(self.places) if start <= offset)
        before = self.text[:offset]
        if "\n" not in before:
            return replace(self.place, column=self.place.column + offset)
        return replace(self.place, line=self.place.line + before.count("\n"), column=offset - before.rfind("\n"))

    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of the result columns, None where Spark derives one."""
        return tuple(column.name for column in self.output) if self.aggregation is None else self.aggregation.names

    @property
    def starts(self) -> tuple[str, ...]:
        """The aliases of the relations whose tuples arrive: every stream, no table."""
        return tuple(relation.alias for relation in self.relations if not relation.is_table)

    def canonical(self, alias: str) -> tuple[str, int]:
        """Return what orders the relations whatever their aliases: (source, earlier occurrences of it in FROM)."""
        return self._canonical[alias]

    def mentioned(self) -> Iterator[tuple[str, str]]:
        """Yield (source, column) for every column the query reads, in order of appearance, repeated ones too."""
        for relation in self.relations:
            for selection in relation.selections:
                yield from ((relation.source, column) for column in selection.columns)
        for operand in (operand for predicate in self.predicates for operand in operands_of(predicate)):
            source = self.relation(operand.relation).source
            yield from ((source, column) for column in operand.expression.columns)
        for output in self.output:
            yield from ((self.relation(ref.relation).source, ref.column) for ref in output.expression.columns)

    def between(self, left: str, right: str) -> Conjunction[Operand]:
        """Return the predicates between two relations."""
        return self._between.get(frozenset((left, right)), ())


def with_countable(query: Query, countable: tuple[str, ...]) -> Query:
    """Return a query that groups with the relations of which matches are counted."""
    assert query.aggregation is not None, "only a query that groups counts"
    return replace(query, aggregation=replace(query.aggregation, countable=countable))


def with_predicates(query: Query, made: Callable[[Conjunction[Operand]], Conjunction[Operand]]) -> Query:
    """Return the query with other predicates made of its own, of all together and of those of each join."""
    joins = tuple(replace(step, predicates=made(step.predicates)) for step in query.joins)
    return replace(query, predicates=made(query.predicates), joins=joins)
