"""Queries, sources and options for tests, without the SQL front end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from plait.optimizer import PlanOptions, plan
from plait.plan.model import Place, Plan, Probed
from plait.plan.traversals import endings
from plait.query.model import (
    Column,
    ColumnRef,
    DeclaredStatistics,
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
from plait.query.predicates import Equality
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics

SECOND_US = 1_000_000


def expression(sql: str) -> SourceExpression:
    """Return an expression; its columns are the backquoted names."""
    return SourceExpression(sql=sql, columns=tuple(dict.fromkeys(re.findall(r"`([^`]+)`", sql))))


def equality(condition: str, type: str | None = "bigint") -> Equality[Operand]:
    """Return ``o.id = l.oid``; a side ``o.lower(`city`)`` is an expression."""
    left, right = condition.split(" = ")
    return Equality(left=_operand(left, type), right=_operand(right, type))


def _operand(side: str, type: str | None) -> Operand:
    alias, sql = side.split(".", 1)
    return Operand(relation=alias, expression=expression(sql if "`" in sql else f"`{sql}`"), type=type)


def query(
    name: str,
    relations: Mapping[str, str],
    conditions: Iterable[str | Equality[Operand]] = (),
    *,
    where: Mapping[str, Sequence[str]] | None = None,
    windows: Mapping[str, int | None] | None = None,
    tables: Iterable[str] = (),
    select: Iterable[str] = (),
) -> Query:
    """Return a query; `relations` alias → source, `tables` sources, `windows` seconds by alias (10 where silent)."""
    where, windows, tables = where or {}, windows or {}, set(tables)
    output = []
    for name_of_column in select:
        alias, column = name_of_column.split(".")
        columns = (ColumnRef(relation=alias, column=column),)
        output.append(OutputColumn(name=None, expression=JoinedExpression(sql=f"`{alias}.{column}`", columns=columns)))
    text = f"SELECT ... FROM {', '.join(relations.values())}"
    return Query(
        name=name,
        relations=tuple(
            Relation(
                alias=alias,
                source=source,
                is_table=source in tables,
                window_us=None if source in tables else _us(windows.get(alias, 10)),
                selections=tuple(expression(sql) for sql in where.get(alias, ())),
            )
            for alias, source in relations.items()
        ),
        predicates=tuple(
            condition if isinstance(condition, Equality) else equality(condition) for condition in conditions
        ),
        output=tuple(output),
        sink=SinkSpec(format="noop"),
        text=text,
        spark_text=text,
    )


def _us(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * SECOND_US


def stream(
    name: str,
    *,
    rate: float | None = None,
    rows: float | None = None,
    distinct: Mapping[str, float] | None = None,
    keep: str = "needed",
    placement: str = "keys",
    columns: Iterable[str] = (),
    window: int | None = 10,
) -> Stream:
    """Return a stream; `window` in seconds."""
    return Stream(
        name=name,
        time="ts",
        schema=tuple(Column(name=column, type="bigint") for column in columns) or None,
        window_us=_us(window),
        keep=keep,
        placement=placement,
        declared=DeclaredStatistics(rate_rows_per_s=rate, rows=rows, distinct=tuple(sorted((distinct or {}).items()))),
    )


def table(name: str, *, rows: float | None = None, distinct: Mapping[str, float] | None = None) -> Table:
    """Return a table."""
    return Table(name=name, declared=DeclaredStatistics(rows=rows, distinct=tuple(sorted((distinct or {}).items()))))


def sources_of(queries: Iterable[Query]) -> tuple[Source, ...]:
    """Return undeclared sources for everything the queries read, by name."""
    found: dict[str, Source] = {}
    for each in queries:
        for relation in each.relations:
            found[relation.source] = table(relation.source) if relation.is_table else stream(relation.source)
    return tuple(found[name] for name in sorted(found))


def options(strategy: str, sources: Iterable[Source], parallelism: int = 1, **by_source: int) -> PlanOptions:
    """Return plan options, without time for a solver: what most tests claim holds for any plan, the quick ones too."""
    return PlanOptions(
        strategy=strategy,
        sources=tuple(sources),
        parallelism=parallelism,
        parallelism_by_source=tuple(sorted(by_source.items())),
        time_limit_s=0.0,
    )


def planned(
    queries: Iterable[Query],
    strategy: str = "greedy",
    *,
    sources: Iterable[Source] | None = None,
    statistics: Statistics | None = None,
    parallelism: int = 1,
) -> Plan:
    """Plan the queries with what their sources declare."""
    listed = tuple(queries)
    chosen = sources_of(listed) if sources is None else tuple(sources)
    known = declared_statistics(chosen) if statistics is None else statistics
    return plan(listed, known, options(strategy, chosen, parallelism))


def orders(made: Plan) -> dict[str, str]:
    """Return the probe orders by ``query/start``, as aliases."""
    found = {}
    for _, _, output in endings(made):
        aliases = [alias for alias, _ in sorted(output.positions, key=lambda place: place[1])]
        found[f"{output.query}/{aliases[0]}"] = " ".join(aliases)
    return found


def edges(made: Plan) -> list[str]:
    """Return all edges, in canonical order."""
    return [step.edge for tree in made.trees for _, step in tree.walk()]


def equal_keys(position: int, probe_key: str, store_key: str) -> Equality[Probed]:
    """Return what a step requires: a key of what has been joined equals one of the probed store."""
    return Equality(left=Place(position, probe_key), right=Place(None, store_key))
