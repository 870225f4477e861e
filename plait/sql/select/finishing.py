"""Which groups come from partial aggregates without Spark: those of which each column, and HAVING, is a window's end, a
key, an aggregate of which partial ones are kept, or what DuckDB computes of these exactly as Spark.

Left to Spark are keys of which it holds several values for one (zeros of both signs, NaNs), sets of keys, keys that are
expressions, and instants that are computed, which DuckDB has without a time zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plait.query.model import Aggregation
from plait.sinks.delivery import Finishing, Formula
from plait.spelling import backquoted
from plait.sql.lexis.names import folded
from plait.sql.lexis.tokens import Token, depths, rendered, split, tokens_of
from plait.sql.select.folding import Folding, edited
from plait.sql.select.formulas import made_column
from plait.sql.select.time_window import NAMES

_BOUNDS: Final = {"START": "#start", "END": "#end"}
_MANY_FOR_ONE: Final = ("float", "double")
_INSTANTS: Final = ("timestamp", "timestamp_ntz")


def finishing_of(
    aggregation: Aggregation, folding: Folding, results: Sequence[str], *, time_zone: str
) -> Finishing | None:
    """Return how the groups of what is kept are made without Spark; None if something of them takes it. `results`: the
    Spark types of the result columns.
    """
    kept, finals = dict(folding.kept), {f"#f{number}": each for number, each in enumerate(folding.ends)}
    text = edited(aggregation.sql, [(each.start, each.end, backquoted(name)) for name, each in finals.items()])
    clauses, keys = _clauses(text), folding.fold.keys
    items = _listed(clauses["SELECT"])
    if any(kept[key] in _MANY_FOR_ONE for key in keys) or len(items) != len(results) or "}}" in text:
        return None  # a brace of the user's is written twice
    if any(each.type in _INSTANTS for each in finals.values()) or not _are(clauses["GROUP BY"], keys):
        return None
    time = folding.kept[0][1]
    columns = {
        **dict.fromkeys(_BOUNDS.values(), time),
        **{key: kept[key] for key in keys},
        **{name: each.type for name, each in finals.items()},
    }

    def made(tokens: Sequence[Token], type_: str) -> int | Formula | None:
        column = made_column(_with_bounds(text, tokens), type_, columns, time_zone=time_zone)
        if isinstance(column, int):
            return column if list(columns.values())[column] == type_ else None
        return None if type_ in _INSTANTS else column

    results_made = [made(_without_alias(item), type_) for item, type_ in zip(items, results, strict=True)]
    having = made(clauses["HAVING"], "boolean") if clauses["HAVING"] else None
    if None in results_made or (clauses["HAVING"] and not isinstance(having, Formula)):
        return None
    return Finishing(
        keys=keys,
        finals=tuple(each.sql.replace("`", '"') for each in finals.values()),
        made=tuple(each for each in results_made if each is not None),
        having=having if isinstance(having, Formula) else None,
    )


def _clauses(text: str) -> dict[str, tuple[Token, ...]]:
    """Return the tokens of each clause of a SELECT."""
    tokens = tokens_of(text)
    words = ("SELECT", "FROM", "GROUP BY", "HAVING")
    at = [index for index, depth, token in depths(tokens) if depth == 0 and token.keyword in words]
    found = dict.fromkeys(words, tuple[Token, ...]())
    found |= {tokens[index].keyword: piece for index, piece in zip(at, split(tokens, at)[1:], strict=True)}
    return found


def _listed(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    commas = [index for index, depth, token in depths(tokens) if depth == 0 and token.is_symbol(",")]
    return split(tokens, commas)


def _without_alias(item: tuple[Token, ...]) -> tuple[Token, ...]:
    return item[:-2] if len(item) > 2 and item[-2].keyword == "AS" and item[-1].kind == "quoted" else item


def _are(groups: Sequence[Token], keys: Sequence[str]) -> bool:
    """Tell whether groups are by the window and just these columns."""
    elements = _listed(groups)
    by = {element[0].value for element in elements if len(element) == 1 and element[0].kind == "quoted"}
    others = [element for element in elements if len(element) != 1]
    return all(_bound(other, 0) for other in others) and by - {*NAMES} == set(keys)


def _bound(tokens: Sequence[Token], at: int) -> str | None:
    """Return the column of an end of the window, if that is what begins here."""
    if len(tokens) < at + 3 or not tokens[at + 1].is_symbol("."):
        return None
    name = tokens[at].value if tokens[at].kind in ("word", "quoted") else ""
    return _BOUNDS.get(tokens[at + 2].value.upper()) if folded(name) in NAMES else None


def _with_bounds(text: str, tokens: Sequence[Token]) -> str:
    """Return an expression in which the ends of the window are columns."""
    bounds = {at: _bound(tokens, at) for at in range(len(tokens))}
    edits = {tokens[at].start: (tokens[at + 2].end, backquoted(name)) for at, name in bounds.items() if name}
    return rendered(text, tokens, edits)


__all__ = ["finishing_of"]
