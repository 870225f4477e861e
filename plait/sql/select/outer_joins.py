"""What the joins of a query mean one after the other, where they are not all inner ones.

Conditions and predicates are told apart by the join they belong to: in ON they say what matches, in WHERE what is a
result. WHERE that is not true where a relation has no row makes an outer join an inner one, or one that keeps less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from plait.errors import UnsupportedQueryError
from plait.query.model import Condition, JoinKind, JoinStep, Operand, Query
from plait.query.partners import (
    KEEPS_LEFT,
    KEEPS_RIGHT,
    LeftPart,
    closing_us,
    has_stream,
    is_in_every_row,
    left_parts,
)
from plait.query.places import TextPlace
from plait.query.predicates import Residual, operands_of
from plait.sql.lexis.text import SourceText
from plait.sql.lexis.tokens import Token
from plait.sql.predicates.of_nothing import of_nothing
from plait.sql.predicates.sorting import Predicates
from plait.sql.select.from_clause import FromClause
from plait.sql.select.syntax import JoinKind as WrittenKind

_KINDS: Final[dict[WrittenKind, JoinKind]] = {
    "comma": "inner",
    "inner": "inner",
    "cross": "inner",
    "left": "left",
    "right": "right",
    "full": "full",
    "semi": "semi",
    "anti": "anti",
}
_WORDS: Final[dict[JoinKind, str]] = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN or EXISTS",
    "anti": "ANTI JOIN or NOT EXISTS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """A step, where it stands, and the conditions on one relation in it; `where`: it is WHERE."""

    kind: JoinKind | None
    alias: str
    at: Token | None
    predicates: Predicates


def with_joins(query: Query, clause: FromClause, where: Predicates, asked_at: Token | None, text: SourceText) -> Query:
    """Return the query with what its joins mean, the same one if all are inner. `asked_at`: where the conditions of
    WHERE begin. Raises UnsupportedQueryError.
    """
    written = [
        _Written(kind=_KINDS[each.syntax.join], alias=each.alias, at=each.syntax.at, predicates=each.predicates)
        for each in clause.joins
    ]
    if all(each.kind == "inner" for each in written):
        return query
    _refuse_commas(clause, text)
    # WHERE comes after the joins of FROM, and before the relations it looks into itself.
    in_from = sum(1 for each in clause.joins if not each.syntax.in_where)
    leading = clause.relations[0].alias
    written.insert(in_from, _Written(kind=None, alias=leading, at=asked_at, predicates=where))
    kinds = _simplified([each.kind for each in written], written, leading)
    if all(kind in (None, "inner") for kind in kinds):
        return query
    steps = tuple(_step(replace(each, kind=kind), text) for each, kind in zip(written, kinds, strict=True))
    query = replace(query, joins=tuple(step for step in steps if step.kind or step.predicates or step.conditions))
    for step, part in left_parts(query):
        _check(query, step, part)
    _refuse_changing(query)
    return query


def _refuse_changing(query: Query) -> None:
    """Refuse tables that are read again where a row may turn out to have no partner later than it arrives."""
    changing = next((relation.alias for relation in query.relations if relation.changes), None)
    if changing is not None and sum(not relation.is_table for relation in query.relations) > 1:
        step = next(each for each in query.joins if each.kind not in (None, "inner"))
        _refuse(
            step,
            f"{_WORDS[step.kind or 'inner']} of several streams beside table '{changing}', which has REFRESH: by the "
            "time a row is known to have no partner the table has other rows than when it arrived; leave REFRESH out, "
            "or let one query join the streams and another one its results with the table",
        )


def _refuse_commas(clause: FromClause, text: SourceText) -> None:
    for each in clause.joins:
        if each.syntax.join == "comma":
            message = (
                "Plait does not run commas in FROM beside outer, semi and anti joins: write JOIN ... ON instead of ','"
            )
            raise text.error(message, each.syntax.source.start, UnsupportedQueryError)


def _simplified(kinds: list[JoinKind | None], written: Sequence[_Written], leading: str) -> list[JoinKind | None]:
    """Return the kinds of joins with those that keep rows without partners which WHERE, or an inner join after it,
    takes away again replaced by what is left of them.
    """
    while True:
        changed = list(kinds)
        for place, later in enumerate(written):
            if changed[place] in (None, "inner", "semi"):
                for alias in _needed(later):
                    _let_go(changed, written, place, alias, leading)
        if changed == kinds:
            return kinds
        kinds = changed


def _let_go(kinds: list[JoinKind | None], written: Sequence[_Written], before: int, alias: str, leading: str) -> None:
    """Change the joins before a place after which `alias` has a row in whatever stays."""
    for place in range(before):
        kind, added = kinds[place], written[place].alias
        if written[place].kind is None or kind not in ("left", "right", "full"):
            continue
        is_left = alias == leading or any(each.alias == alias for each in written[:place] if each.kind)
        if alias == added and kind in KEEPS_LEFT:
            kinds[place] = "inner" if kind == "left" else "right"
        elif is_left and kind in KEEPS_RIGHT:
            kinds[place] = "inner" if kind == "right" else "left"


def _needed(step: _Written) -> set[str]:
    """Return the relations without a row of which the step is not true."""
    needed = {
        alias
        for alias, condition in step.predicates.conditions(step.alias)
        if condition.columns and of_nothing(condition.sql) in ("null", "false")
    }
    for predicate in step.predicates.joins:
        if not isinstance(predicate, Residual):
            needed |= {side.relation for side in operands_of(predicate) if _is_null(side)}
    return needed


def _is_null(operand: Operand) -> bool:
    return of_nothing(operand.expression.sql) == "null"


def _step(written: _Written, text: SourceText) -> JoinStep:
    place = TextPlace() if written.at is None else text.text_place(written.at.start)
    conditions = written.predicates.conditions(written.alias)
    return JoinStep(
        kind=written.kind,
        alias="" if written.kind is None else written.alias,
        predicates=written.predicates.joins,
        conditions=tuple(
            Condition(relation=alias, expression=condition, holds_of_nothing=of_nothing(condition.sql) == "true")
            for alias, condition in conditions
        ),
        place=place,
    )


def _check(query: Query, step: JoinStep, part: LeftPart) -> None:
    """Raise UnsupportedQueryError for what cannot be decided."""
    for condition in step.conditions:
        if condition.relation in part.lacking and of_nothing(condition.expression.sql) in ("unknown", "value"):
            _refuse(
                step,
                f"the condition {condition.expression.sql} on '{condition.relation}', which may have no row here: "
                "whether it is true of NULLs cannot be told; write it with comparisons, IS NULL, AND, OR and NOT",
            )
    for predicate in step.predicates:
        if isinstance(predicate, Residual) and predicate.is_function:
            _refuse(step, f"the registered predicate {predicate.sql}() beside outer, semi and anti joins")
        for operand in operands_of(predicate):
            if operand.relation in part.lacking and not _is_null(operand):
                _refuse(
                    step,
                    f"{operand.expression.sql} of '{operand.relation}', which may have no row here, in a comparison "
                    "with another relation: it is not NULL then; compare a column, and write IS NULL as a condition of "
                    "its own",
                )
    _check_end(query, step, part)


def _check_end(query: Query, step: JoinStep, part: LeftPart) -> None:
    if step.kind is None or step.kind == "inner":
        return
    added, words = query.relation(step.alias), _WORDS[step.kind]
    is_left_kept = step.kind in KEEPS_LEFT or step.kind == "anti"
    if not added.is_table and (is_left_kept or step.kind == "semi") and closing_us(query, part) is None:
        if step.kind == "semi" and has_stream(query, part.certain):
            return
        _refuse(
            step,
            f"{words} of {_listed(part.aliases)} with '{step.alias}': rows of {_listed(part.aliases)} have no bounded "
            f"window, so a match can always come; give one a WINDOW, as in WINDOW ({part.aliases[0]} INTERVAL 1 HOUR)"
            if has_stream(query, part.aliases)
            else f"{words} of {_listed(part.aliases)} with '{step.alias}': a table never closes, so a match can always "
            f"come; put stream '{step.alias}' first",
        )
    if step.kind in KEEPS_RIGHT and has_stream(query, part.aliases):
        if added.is_table:
            _refuse(
                step,
                f"{words} with table '{step.alias}': a table never closes, so a match for its rows can always come; "
                "put the table on the side whose rows are not kept",
            )
        if part.lag_us is None:
            _refuse(
                step,
                f"{words} with '{step.alias}' after a SEMI JOIN or EXISTS of {_listed(part.aliases)} without a bounded "
                f"window: a match can always come; give one a WINDOW, as in WINDOW ({part.aliases[0]} INTERVAL 1 HOUR)",
            )
        if added.window_us is None:
            _refuse(
                step,
                f"{words} with '{step.alias}' whose window is unbounded: a match can always come; give it a WINDOW, as "
                f"in WINDOW ({step.alias} INTERVAL 1 HOUR)",
            )
    if step.kind == "full" and added.is_table:
        _refuse(
            step,
            f"FULL JOIN with table '{step.alias}': a table never closes, so a match for its rows can always come; "
            "write LEFT JOIN",
        )


def grouped(query: Query, place: TextPlace) -> Query:
    """Return a query that groups, its windows of time over once all its rows are certain that lie in them. `place`:
    where it groups. Raises UnsupportedQueryError for windows of which that cannot be told.
    """
    if not query.joins or query.aggregation is None:
        return query
    window = query.aggregation.window
    length_us = query.relation(window.relation).window_us
    if not is_in_every_row(query, window.relation) or length_us is None:
        raise UnsupportedQueryError(
            f"Plait does not group these joins by windows of the time of '{window.relation}': it may have no row, or "
            "its rows wait for longer than a bounded window of its own; take the time of the first relation, give it a "
            "WINDOW, and write LEFT JOIN",
            line=place.line,
            column=place.column,
            file=place.file,
        )
    is_alone = len([each for each in query.relations if not each.is_table]) == 1
    lasting = replace(window, lag_us=0 if is_alone else length_us)
    return replace(query, aggregation=replace(query.aggregation, window=lasting))


def _refuse(step: JoinStep, what: str) -> None:
    """Raise UnsupportedQueryError for what a step asks."""
    place = step.place
    raise UnsupportedQueryError(f"Plait does not run {what}", line=place.line, column=place.column, file=place.file)


def _listed(aliases: tuple[str, ...]) -> str:
    return ", ".join(f"'{alias}'" for alias in aliases)


__all__ = ["grouped", "with_joins"]
