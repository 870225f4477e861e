"""Columns of the SELECT list as DuckDB computes them, where it does so exactly as Spark, value and type.

What is translated is what join predicates may call (`plait.sql.predicates.translation`), without what may differ in the
last bit or the sign of a zero. All else is left to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait.query.model import ColumnRef, JoinedExpression
from plait.sinks.delivery import Formula, Made
from plait.sql.lexis.tokens import rendered, tokens_of
from plait.sql.predicates.coercions import ALIKE, Untranslatable
from plait.sql.predicates.evaluation import UTC
from plait.sql.predicates.translation import value_of


def made_of(
    expressions: Sequence[tuple[JoinedExpression, str]], joined: Mapping[ColumnRef, str], *, time_zone: str
) -> Made | None:
    """Return how results come from joined rows without Spark; None if one of their columns takes it.

    `expressions`: the SELECT list, with the types Spark gives it. `joined`: the columns it reads, with theirs.
    """
    made = [_made(expression, type_, joined, time_zone) for expression, type_ in expressions]
    return None if None in made else tuple(each for each in made if each is not None)


def _made(
    expression: JoinedExpression, type_: str, joined: Mapping[ColumnRef, str], time_zone: str
) -> int | Formula | None:
    return made_column(expression.sql, type_, {ref.name: known for ref, known in joined.items()}, time_zone=time_zone)


def made_column(sql: str, type_: str, columns: Mapping[str, str], *, time_zone: str) -> int | Formula | None:
    """Return how one column comes from others, which have these Spark types; None if it takes Spark."""
    places = {name: place for place, name in enumerate(columns)}
    tokens = tokens_of(sql)
    if len(tokens) == 1 and tokens[0].kind == "quoted":
        return places.get(tokens[0].value)
    quoted = [token for token in tokens if token.kind == "quoted"]
    if ALIKE.fullmatch(type_) is None or not all(token.value in places for token in quoted):
        return None
    numbered = {token.start: (token.end, f"`{places[token.value]}`") for token in quoted}
    zone = None if time_zone.lower() in UTC else time_zone
    try:
        value = value_of(rendered(sql, tokens, numbered), tuple(columns.values()), time_zone=zone, is_exact=True)
    except Untranslatable:
        return None
    reads = tuple(sorted({places[token.value] for token in quoted}))
    return Formula(sql=value.sql, reads=reads) if value.type == type_ else None


__all__ = ["made_column", "made_of"]
