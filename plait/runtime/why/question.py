"""Which row is asked about: a condition on one relation of a query, as ``o.id = 17``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from plait.errors import OptionError, SqlError
from plait.query.model import Query, SinkSpec, Source, Stream
from plait.spelling import backquoted, did_you_mean, folded
from plait.sql.lexis.tokens import tokens_of
from plait.sql.select.binder import bind_query


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The relation, by its `alias`, and the condition as Spark SQL over the columns of its source; `shown` as
    written.
    """

    alias: str
    condition: str
    shown: str


def read_question(query: Query, sources: Mapping[str, Source], row: str) -> Question:
    """Read what is asked. Raises OptionError for what names no relation or more than one, SqlError for what is no
    condition.
    """
    alias = _alias(query, row)
    source = sources[query.relation(alias).source]
    columns = source.schema or ()
    if not columns:
        raise OptionError(f"the columns of '{source.name}' are not known, so nothing can be asked about its rows")
    # A table alone is no query, so it is bound as if it were a stream.
    stood_for = Stream(name=source.name, time=columns[0].name, schema=columns)
    select = (
        f"SELECT {backquoted(alias)}.{backquoted(columns[0].name)} FROM {backquoted(source.name)} {backquoted(alias)} "
    )
    try:
        bound = bind_query(
            name="why",
            select=f"{select}WHERE ({row}\n)",
            sink=SinkSpec(format="noop"),
            sources={source.name: stood_for},
        )
    except SqlError as error:
        raise OptionError(f"'{row}' is no condition on a row of {alias}: {error.message}") from error
    selections = bound.relations[0].selections
    if bound.aggregation is not None or bound.joins or len(bound.relations) != 1 or not selections:
        raise OptionError(f"'{row}' is no condition on a row; write for example {alias}.{columns[0].name} = 17")
    return Question(alias=alias, condition=" AND ".join(f"({each.sql})" for each in selections), shown=row)


def _alias(query: Query, row: str) -> str:
    """Return the relation that a condition names first."""
    aliases = {folded(relation.alias): relation.alias for relation in query.relations}
    tokens = tokens_of(row)
    named = [
        token.value for token, after in pairwise(tokens) if token.kind in ("word", "quoted") and after.is_symbol(".")
    ]
    if not named:
        example = query.relations[0].alias
        raise OptionError(f"'{row}' names no relation of query '{query.name}'; write for example {example}.id = 17")
    found = aliases.get(folded(named[0]))
    if found is None:
        hint = did_you_mean(named[0], aliases.values())
        raise OptionError(f"query '{query.name}' has no relation '{named[0]}'{hint}")
    return found


__all__ = ["Question", "read_question"]
