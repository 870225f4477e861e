"""What a query with outer, semi and anti joins has in the end: DuckDB, with the window condition written into ON."""

from __future__ import annotations

import pyarrow as pa

from tests.oracle.duckdb_oracle import joinable_rows, load
from tests.oracle.translate import connection, to_duckdb
from tests.property.case import Case, quoted
from tests.property.expressions import Expression
from tests.property.outer_cases import OuterQuery

_WORDS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}


def outer_rows(case: Case, query: OuterQuery) -> pa.Table:
    """Return all results once nothing more comes."""
    load(connection(), joinable_rows(case))
    alias, source = query.relations[0]
    text, shown = f'FROM "{source}" {alias}', [alias]
    for join in query.joins:
        conditions = [*map(_written, join.on), *_windows(case, query, [*shown, join.alias])]
        text += f' {_WORDS[join.kind]} "{join.source}" {join.alias} ON {" AND ".join(conditions)}'
        shown += [] if join.kind in ("semi", "anti") else [join.alias]
    where = f" WHERE {' AND '.join(map(_written, query.where))}" if query.where else ""
    columns = ", ".join(f"{_written(item)} AS c{number}" for number, item in enumerate(query.projection))
    return connection().sql(f"SELECT {columns} {text}{where}").to_arrow_table()


def _written(expression: Expression) -> str:
    return f"({to_duckdb(expression.sql(lambda alias, name: f'{alias}.{quoted(name)}'))})"


def _windows(case: Case, query: OuterQuery, aliases: list[str]) -> list[str]:
    """Return that each member is within its window of the newest; one without a row is left out."""
    sources = {alias: case.source(source) for alias, source in query.relations}
    taus = {
        alias: f"epoch_us({alias}.{_double_quoted(sources[alias].time or '')})"
        for alias in aliases
        if not sources[alias].is_table
    }
    newest = f"greatest({', '.join(taus.values())})" if len(taus) > 1 else next(iter(taus.values()), "0")
    return [
        f"coalesce({newest} - {tau} <= {case.window_us(query, alias)}, TRUE)"
        for alias, tau in taus.items()
        if case.window_us(query, alias) is not None
    ]


def _double_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


__all__ = ["outer_rows"]
