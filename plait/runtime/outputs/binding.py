"""Confirm a query with Spark and decide how its results travel.

Spark's analyzer has the last word on every expression: the query's own text is analyzed over the real schemas, which
yields the output columns' names and types, and the type of every operand of a join predicate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from plait.errors import OptionError, SqlError
from plait.query.model import ColumnRef, JoinedExpression, Operand, Query, with_countable
from plait.query.types import resolve_types
from plait.query.windows import TimeOf, with_narrow_windows
from plait.runtime.outputs.arrow_schemas import arrow_schema
from plait.runtime.outputs.grouping import Grouping, coded, grouped, grouping_of
from plait.runtime.outputs.plain_queries import plain_output
from plait.runtime.outputs.rejections import refuse_types, rejected
from plait.runtime.outputs.shape import Shape
from plait.runtime.spark.session import is_ansi, time_zone
from plait.sinks.delivery import Delivery, Gathering, Made, Projection, Spooled
from plait.sinks.kind import Sink
from plait.sinks.kinds import kind_of
from plait.sinks.storable import Array, Atomic, Map, SparkType, Struct, kept_problem
from plait.spelling import backquoted
from plait.sql.predicates.evaluation import resolve_residuals
from plait.sql.select.formulas import made_of
from plait.state.gathered import folder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A query that Spark accepted. `joined` are the columns of the rows that are handed over, with their Spark schema:
    of the joined row its projection reads, or of its groups. `output` is the schema of its results, `arrow_output` the
    same as Arrow has it, None where nobody wants it. `made`: how its results come from these rows without Spark, None
    if they do not. `grouping`: how they come from joined rows if it groups. `joined_arrow`: the schema of joined rows
    as Arrow has it, where some relation may have no row to tell the types by. `kept`: what a memory sink has taken, by
    batch: a batch done twice replaces itself. It goes with the last who holds the query.
    """

    query: Query
    sink: Sink
    joined: tuple[ColumnRef, ...]
    joined_schema: StructType
    output: StructType
    arrow_output: pa.Schema | None
    made: Made | None
    grouping: Grouping | None = None
    joined_arrow: pa.Schema | None = None
    kept: dict[int, pa.Table] = field(default_factory=dict, compare=False, repr=False)

    def results(self) -> pa.Table:
        """Return all results so far, in batch order. Raises OptionError unless its sink is the memory."""
        if self.sink.spec.format != "memory":
            raise OptionError(f"query '{self.query.name}' has no memory sink; create it with sink=plait.sinks.memory()")
        parts = [self.kept[batch] for batch in sorted(self.kept)]
        return pa.concat_tables(parts) if parts else (self.arrow_output or pa.schema([])).empty_table()

    @property
    def joined_types(self) -> dict[ColumnRef, pa.DataType]:
        """The Arrow types of the columns of the joined row; of queries in which a relation may have no row."""
        types = () if self.joined_arrow is None else self.joined_arrow.types
        return dict(zip(self.probed, types, strict=True))

    @property
    def shape(self) -> Shape:
        """How its spooled rows become results."""
        if self.grouping is None:
            sql = tuple(column.expression.sql for column in self.query.output)
        else:
            sql = tuple(backquoted(ref.name) for ref in self.joined)
        return Shape(joined=self.joined_schema, sql=sql, output=self.output)

    @property
    def probed(self) -> tuple[ColumnRef, ...]:
        """The columns of the joined row that probing is to find."""
        return self.joined if self.grouping is None else self.grouping.joined

    def found_by_probing(self, checkpoint: str, *, spool: bool = False) -> Delivery:
        """Return what probe tasks do with the rows they have joined; arguments as of `delivery`."""
        if self.grouping is None:
            return self.delivery(checkpoint, spool=spool)
        name, time = self.query.name, self.grouping.time
        return Gathering(
            query=name,
            columns=self.grouping.joined,
            time=time,
            folder=folder_of(name),
            fold=self.grouping.fold,
        )

    def delivery(self, checkpoint: str, *, spool: bool = False) -> Delivery:
        """Return how this query's results are handed over on the checkpoint of this id; `spool` forces the detour
        through it.
        """
        if spool:
            return Spooled(query=self.query.name, columns=self.joined)
        projection = Projection(
            query=self.query.name,
            checkpoint=checkpoint,
            joined=self.joined,
            made=self.made,
            schema=self.arrow_output,
        )
        return kind_of(self.sink.spec).delivery(self.sink.spec, projection)


def bind(
    spark: SparkSession,
    query: Query,
    sink: Sink,
    frames: Mapping[str, DataFrame],
    time_of: TimeOf,
    read: Sequence[str] = (),
) -> Binding:
    """Return the confirmed query, its windows as narrow as its time predicates allow. `read`: what tells the groups
    that it reads apart from those of other queries of their names.

    Raises SqlError with Spark's own words if Spark rejects it.
    """

    def type_of(operand: Operand) -> str:
        frame, expression = frames[query.relation(operand.relation).source], operand.expression
        bare = next((name for name in expression.columns if backquoted(name) == expression.sql), None)
        field = frame.selectExpr(expression.sql).schema[0] if bare is None else frame.schema[bare]
        return _type_name(field)

    try:
        plain = plain_output(query, {source: frame.schema for source, frame in frames.items()})
        output = spark.sql(query.spark_text, **frames).schema if plain is None else plain
        query = resolve_types(query, type_of)
        query = resolve_residuals(query, type_of, time_zone="UTC" if plain is not None else time_zone(spark))
        query = with_narrow_windows(query, time_of)
    except PySparkException as error:
        raise rejected(query, error) from error
    except SqlError as problem:
        raise _in_query(query, problem) from problem
    refuse_types(query, output)
    joined = tuple(dict.fromkeys(ref for column in query.output for ref in column.expression.columns))
    try:
        check_output(query.name, sink, output)
        fields = [_field(query, ref, frames) for ref in joined]
    except SqlError as problem:
        raise _in_query(query, problem) from problem
    binding = Binding(
        query=query,
        sink=sink,
        joined=joined,
        joined_schema=StructType(fields),
        output=output,
        arrow_output=arrow_schema(spark, output) if _wants_schema(sink, output) or _may_be_read(query) else None,
        joined_arrow=arrow_schema(spark, StructType(fields)) if query.joins and fields else None,
        made=None if query.aggregation else _made(spark, query, dict(zip(joined, fields, strict=True)), output),
    )
    if query.aggregation is None:
        return binding
    grouping = grouping_of(
        query, joined, StructType(fields), output, time_zone=time_zone(spark), can_fold=is_ansi(spark), read=read
    )
    return binding if grouping is None else _of_groups(spark, binding, grouping)


def _of_groups(spark: SparkSession, binding: Binding, grouping: Grouping) -> Binding:
    """Return the binding of a query that groups: what is handed over are its groups, made of joined rows when their
    windows are over. Raises SqlError if that would come to something else than the user's own text.
    """
    refs = tuple(ColumnRef(relation="", column=str(number)) for number in range(len(binding.output.fields)))
    try:
        found = grouped(spark, spark.createDataFrame([], grouping.read), grouping).schema
        if grouping.key_columns is None:
            coded(spark.createDataFrame([], grouping.kept), grouping)
    except PySparkException as error:
        raise rejected(binding.query, error) from error
    if [_type_name(field) for field in found] != [_type_name(field) for field in binding.output]:
        raise _in_query(
            binding.query,
            SqlError(f"query '{binding.query.name}': its groups would have types {found.simpleString()}; CAST them"),
        )
    fields = [StructField(ref.name, field.dataType, True) for ref, field in zip(refs, binding.output, strict=True)]
    return replace(
        binding,
        query=with_countable(binding.query, grouping.countable),
        joined=refs,
        joined_schema=StructType(fields),
        made=tuple(range(len(refs))),
        grouping=grouping,
    )


def _made(
    spark: SparkSession, query: Query, joined: Mapping[ColumnRef, StructField], output: StructType
) -> Made | None:
    """Return how results are made without Spark; without ANSI mode Spark computes other things."""
    expressions = [column.expression for column in query.output]
    is_computed = any(map(_is_computed, expressions))
    if is_computed and not is_ansi(spark):
        return None
    types = [_type_name(field) for field in output.fields]
    return made_of(
        list(zip(expressions, types, strict=True)),
        {ref: _type_name(field) for ref, field in joined.items()},
        time_zone=time_zone(spark) if is_computed else "UTC",
    )


def _type_name(field: StructField) -> str:
    return str(field.dataType.simpleString()).lower()


def _wants_schema(sink: Sink, output: StructType) -> bool:
    return kind_of(sink.spec).wants_schema([spark_type(field.dataType) for field in output.fields])


def _may_be_read(query: Query) -> bool:
    """Tell whether other queries may read its results."""
    return query.aggregation is not None and query.aggregation.end is not None


def check_output(query: str, sink: Sink, output: StructType) -> None:
    """Refuse what the sink of a query cannot be told or cannot store. Raises OptionError or SqlError."""
    kind = kind_of(sink.spec)
    for problem in kind.problems(sink.spec):
        raise OptionError(f"query '{query}': {problem.message}")
    _check_names(query, sink, output)
    columns = [(field.name, spark_type(field.dataType)) for field in output.fields]
    for problem in kind.column_problems(sink.spec, columns):
        raise SqlError(f"query '{query}': {problem.message}")


def _check_names(query: str, sink: Sink, output: StructType) -> None:
    """Refuse a file sink two columns of one name, which only Spark's derived names can still bring about."""
    names = [name.lower() for name in output.names]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and kind_of(sink.spec).by_name:
        raise SqlError(
            f"query '{query}': two columns are named '{twice}', which {sink.spec.format} cannot store; add an alias"
        )


def _field(query: Query, ref: ColumnRef, frames: Mapping[str, DataFrame]) -> StructField:
    frame = frames[query.relation(ref.relation).source]
    type_ = frame.schema[ref.column].dataType
    problem = kept_problem(ref.name, type_.simpleString())
    if problem is not None:
        raise SqlError(f"query '{query.name}': {problem}")
    return StructField(ref.name, type_, True)


def _is_computed(expression: JoinedExpression) -> bool:
    return [backquoted(ref.name) for ref in expression.columns] != [expression.sql.strip()]


def _in_query(query: Query, problem: SqlError) -> SqlError:
    """Return the problem with the place of the query, if it has none."""
    if problem.line is not None:
        return problem
    place = query.place
    return type(problem)(problem.message, line=place.line, column=place.column, file=place.file)


def spark_type(type_: DataType) -> SparkType:
    """Return the type as sinks judge it."""
    match type_:
        case ArrayType():
            return Array(spark_type(type_.elementType))
        case MapType():
            return Map(spark_type(type_.keyType), spark_type(type_.valueType))
        case StructType():
            return Struct(tuple((field.name, spark_type(field.dataType)) for field in type_.fields))
        case _:
            return Atomic(str(type_.simpleString()).lower())
