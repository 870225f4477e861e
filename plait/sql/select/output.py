"""The SELECT list: what each result holds, and under which name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import ColumnRef, OutputColumn, SinkSpec
from plait.sinks.kind import ResultColumn
from plait.sinks.kinds import KINDS, format_problem, kind_of
from plait.sinks.storable import Atomic, kept_problem, parts_of, spark_type_of
from plait.sql.expressions.bound import BoundExpression, column_of_join
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.inference import inferred_type
from plait.sql.expressions.scope import SchemaUnknownError, Scope
from plait.sql.expressions.structs import rows_of_fields, zipped_arguments
from plait.sql.lexis.names import backquoted, did_you_mean, folded
from plait.sql.lexis.tokens import Token, depths

INTERVAL_ADVICE: Final = (
    "months have no fixed length: write the number of months or years, or CAST(... AS STRING); an INTERVAL of days and "
    "seconds can be written"
)
_CALENDAR: Final = ("interval year", "interval month")


def bind_output(
    items: Sequence[tuple[Token, ...]], scope: Scope, expressions: ExpressionBinder
) -> list[tuple[OutputColumn, Token]]:
    """Return the output columns, each with the first token of its item. Wrong items are reported and left out."""
    bound: list[tuple[OutputColumn, Token]] = []
    for item in items:
        try:
            columns = _star(item, scope, expressions) if is_star(item) else _column(item, scope, expressions)
        except SqlError as problem:
            expressions.problems.append(problem)
            continue
        bound.extend((column, item[0]) for column in columns)
    return bound


def refuse_equal_names(
    output: Sequence[tuple[OutputColumn, Token]], sink: SinkSpec, expressions: ExpressionBinder
) -> None:
    """Refuse two columns of one name where files could not keep them apart."""
    if not any(kind.by_name for name, kind in KINDS.items() if name == sink.format):
        return  # a sink of no known name is reported for that
    seen: set[str] = set()
    reported: set[str] = set()
    for column, at in output:
        if column.name is None:
            continue
        name = folded(column.name)
        if name in seen and name not in reported:
            reported.add(name)
            message = f"two output columns are called '{column.name}', which {sink.format} cannot store; add an alias"
            shown = ", ".join(reference.name for reference in column.expression.columns)
            hint = " (and list the columns instead of *)" if at.is_symbol("*") else ""
            expressions.report(f"{message}: {shown or 'value'} AS another_name{hint}", at)
        seen.add(name)


def refuse_unwritable(
    output: Sequence[tuple[OutputColumn, Token]], scope: Scope, sink: SinkSpec, expressions: ExpressionBinder
) -> None:
    """Refuse columns of a declared type that the sink cannot store; of expressions only Spark knows the type."""
    if format_problem(sink.format) is not None:
        return
    types = {
        (relation.alias, folded(column.name)): spark_type_of(column.type)
        for relation in scope.relations
        for column in relation.source.schema or ()
    }
    columns: list[ResultColumn] = [
        (written.name, types.get((at[0].relation, folded(at[0].column))) if (at := _picked(written)) else None)
        for written, _ in output
    ]
    for problem in kind_of(sink).column_problems(sink, columns):
        if problem.column is not None:
            expressions.report(problem.message, output[problem.column][1])


def _picked(column: OutputColumn) -> tuple[ColumnRef, ...]:
    """Return the column that an output column is, nothing if it is computed."""
    columns = column.expression.columns
    return columns if len(columns) == 1 and column.expression.sql == backquoted(columns[0].name) else ()


def is_star(item: Sequence[Token]) -> bool:
    """Tell whether an item is ``*`` or ``relation.*``."""
    dotted = len(item) > 1 and item[1].is_symbol(".") and any(token.is_symbol("*") for token in item)
    return item[0].is_symbol("*") or (dotted and item[-1].is_symbol("*") and item[-2].is_symbol("."))


def _star(item: Sequence[Token], scope: Scope, expressions: ExpressionBinder) -> list[OutputColumn]:
    text, qualifier = expressions.text, item[0] if len(item) == 3 else None
    if len(item) not in (1, 3) or (qualifier is None and len(item) == 3):
        message = f"Plait does not run '{text.text[item[0].start : item[-1].end]}': list the columns"
        raise text.error(message, item[0].start, UnsupportedQueryError)
    relations = scope.relations
    if qualifier is not None:
        relation = scope.relation(qualifier.value)
        if relation is None:
            hint = did_you_mean(qualifier.value, (each.alias for each in relations))
            raise text.error(f"there is no relation '{qualifier.value}'{hint}", item[0].start)
        relations = (relation,)
    for relation in relations:
        if relation.source.schema is None:
            message = f"'*' needs the columns of '{relation.source.name}', which are not known yet; declare its schema"
            raise text.error(message, item[0].start, SchemaUnknownError)
    columns = scope.star(qualifier.value if qualifier else None)
    for column in columns:
        _refuse_unkept_column(column, item[0].start, scope, expressions)
        problem = _carried_problem(column.name, _type_of(column, scope))
        if problem is not None:
            raise text.error(problem, item[0].start, UnsupportedQueryError)
    shown = ((column, scope.otherwise(column) if qualifier is None else None) for column in columns)
    return [OutputColumn(name=column.column, expression=column_of_join(column, other)) for column, other in shown]


def _column(item: tuple[Token, ...], scope: Scope, expressions: ExpressionBinder) -> list[OutputColumn]:
    tokens, alias = without_alias(item, expressions)
    parsed = expressions.parse(tokens)
    if parsed is not None and parsed.alias is not None:
        if alias is not None:
            raise expressions.text.error(
                f"'{parsed.alias.value}' does not fit before AS; remove it", parsed.alias.start
            )
        alias, tokens = parsed.alias, tokens[:-1]
    bound = expressions.bind(parsed, tokens, scope)
    if bound is None:
        return []
    _refuse_unkept(bound, scope, expressions)
    refuse_type(inferred_type(bound), bound, expressions)
    _refuse_equal_fields(bound, expressions)
    for argument in zipped_arguments(tokens):
        if argument and bound.part(argument).is_column:
            message = "Plait does not run arrays_zip() of columns: use zip_with(a, b, (x, y) -> struct(x, y))"
            raise expressions.text.error(message, argument[0].start, UnsupportedQueryError)
    name = alias.value if alias else tokens[-1].value if bound.is_column else None
    return [OutputColumn(name=name, expression=bound.over_join())]


def _refuse_unkept(bound: BoundExpression, scope: Scope, expressions: ExpressionBinder) -> None:
    """Refuse columns of a declared type that no store can hold until their partners come. Raises SqlError."""
    for reference, meaning in bound.meanings:
        _refuse_unkept_column(meaning.column, reference.start, scope, expressions)


def _refuse_unkept_column(ref: ColumnRef, start: int, scope: Scope, expressions: ExpressionBinder) -> None:
    type_ = _type_of(ref, scope)
    problem = None if type_ is None else kept_problem(ref.name, type_)
    if problem is not None:
        raise expressions.text.error(problem, start, UnsupportedQueryError)


def _type_of(ref: ColumnRef, scope: Scope) -> str | None:
    relation = scope.relation(ref.relation)
    column = None if relation is None else relation.column(ref.column)
    return None if column is None else column.type or None


def refuse_type(type_: str | None, bound: BoundExpression, expressions: ExpressionBinder) -> None:
    """Refuse a type that results cannot carry. Raises SqlError."""
    problem = _carried_problem(bound.as_written(), type_)
    if problem is not None:
        raise expressions.text.error(problem, bound.tokens[0].start, UnsupportedQueryError)


def _carried_problem(written: str, type_: str | None) -> str | None:
    parsed = None if type_ is None else spark_type_of(type_)
    names = () if parsed is None else (part.name for part in parts_of(parsed) if isinstance(part, Atomic))
    for name in names:
        is_interval = name == "interval" or name.startswith(_CALENDAR)
        if is_interval or name.startswith("time("):
            advice = INTERVAL_ADVICE if is_interval else "write CAST(... AS STRING)"
            return f"'{written}' has type {type_}, which results cannot carry; {advice}"
    return None


def _refuse_equal_fields(bound: BoundExpression, expressions: ExpressionBinder) -> None:
    """Refuse ``struct(a.id, b.id)``, whose fields have one name. Raises SqlError."""
    for arguments in rows_of_fields(bound.tokens):
        parts = [bound.part(argument) for argument in arguments if argument]
        seen: set[str] = set()
        for part in (part for part in parts if part.is_column):
            name = folded(part.tokens[-1].value)
            if name in seen:
                message = (
                    f"two fields of this struct are called '{part.tokens[-1].value}'; name them: "
                    f"struct({', '.join(f'{part.as_written()} AS field{n}' for n, part in enumerate(parts, 1))})"
                )
                raise expressions.text.error(message, part.tokens[0].start)
            seen.add(name)


def without_alias(item: tuple[Token, ...], expressions: ExpressionBinder) -> tuple[tuple[Token, ...], Token | None]:
    """Cut off ``AS name``."""
    places = [
        index
        for index, depth, token in depths(item)
        if depth == 0 and token.keyword == "AS" and not (index and item[index - 1].is_symbol("."))
    ]
    if not places:
        return item, None
    expression, alias = item[: places[0]], item[places[0] + 1 :]
    if not expression or not alias:
        raise expressions.text.error("AS needs an expression before it and a name after it", item[places[0]].start)
    if alias[0].is_symbol("("):
        raise expressions.text.error("one expression has one name; remove the parentheses after AS", alias[0].start)
    if len(alias) > 1 or alias[0].kind not in ("word", "quoted"):
        at = alias[1] if len(alias) > 1 else alias[0]
        written = expressions.text.text[at.start : at.end]
        message = f"expected one name after AS, found '{written}'; put odd names in backquotes"
        raise expressions.text.error(message, at.start)
    return expression, alias[0]
