"""Build a case's sources and queries from its structure, past the front end.

If a case fails only when it comes through SQL text, the front end is at fault; if it fails both ways, it is not.
"""

from __future__ import annotations

from plait.query.model import (
    Column,
    ColumnRef,
    JoinedExpression,
    Operand,
    OutputColumn,
    Query,
    Relation,
    SinkSpec,
    Source,
    SourceExpression,
    Stream,
    Table,
)
from plait.query.predicates import Equality, Residual
from tests.property.case import Case, CaseQuery, CaseSource
from tests.property.expressions import Expression
from tests.property.registered import PREDICATES


def backquoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def structured_source(source: CaseSource) -> Source:
    """Return the stream or table."""
    schema = tuple(Column(name=column.name, type=column.kind.spark.lower()) for column in source.columns)
    if source.time is None:
        return Table(name=source.name, schema=schema)
    return Stream(
        name=source.name,
        time=source.time,
        schema=schema,
        window_us=source.window_us,
        delay_us=source.delay_us,
        keep="all" if source.keep_all else "needed",
        placement="random" if source.at_random else "keys",
    )


def structured_query(case: Case, query: CaseQuery) -> Query:
    """Return the query; equalities without their common type."""
    relations, equalities = [], []
    for alias, name in query.relations:
        source = case.source(name)
        own = [item for item in query.conditions if {found for found, _ in item.columns} == {alias}]
        relations.append(
            Relation(
                alias=alias,
                source=name,
                is_table=source.is_table,
                window_us=None if source.is_table else case.window_us(query, alias),
                selections=tuple(_of_source(item) for item in own),
            )
        )
    thetas = []
    for item in query.conditions:
        if _aliases(item) == 2 and item.template == "{0} = {1}" and all(_aliases(side) == 1 for side in item.operands):
            left, right = item.operands
            equalities.append(Equality(left=_operand(left), right=_operand(right)))
        elif _aliases(item) == 2:
            thetas.append(_theta(item))
    return Query(
        name=query.name,
        relations=tuple(relations),
        predicates=(*equalities, *thetas),
        output=tuple(OutputColumn(name=f"c{n}", expression=_joined(item)) for n, item in enumerate(query.projection)),
        sink=SinkSpec(format="noop"),
        text=query.sql,
        spark_text=query.sql,
    )


def _aliases(item: Expression) -> int:
    return len({alias for alias, _ in item.columns})


def _theta(item: Expression) -> Residual[Operand]:
    """Cut what concerns one relation out of a predicate over two."""
    operands: dict[Operand, int] = {}

    def written(part: Expression) -> str:
        if _aliases(part) == 1:
            return f"`{operands.setdefault(_operand(part), len(operands))}`"
        return (part.template or part.sql(lambda *_: "")).format(*map(written, part.operands))

    sql = written(item)
    function = sql.split("(")[0] if sql.split("(")[0] in PREDICATES else None
    return Residual(operands=tuple(operands), sql=function or sql, text=sql, is_function=function is not None)


def _of_source(item: Expression) -> SourceExpression:
    return SourceExpression(
        sql=item.sql(lambda _, name: backquoted(name)), columns=tuple(dict.fromkeys(name for _, name in item.columns))
    )


def _operand(item: Expression) -> Operand:
    return Operand(relation=item.columns[0][0], expression=_of_source(item))


def _joined(item: Expression) -> JoinedExpression:
    return JoinedExpression(
        sql=item.sql(lambda alias, name: backquoted(f"{alias}.{name}")),
        columns=tuple(ColumnRef(relation=alias, column=name) for alias, name in item.columns),
    )
