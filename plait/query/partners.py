"""Which rows of a query can lack a relation, until when a partner may come, and what is kept until then.

Joins apply one after the other: what has been joined so far is the **left part**, and each step adds one relation. A
row of the left part can have no new partner once the watermark has passed the smallest τ + W of its members. By then
all that it could have been compared with has arrived, and is kept until then, of whichever relation it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from plait.query.model import JoinKind, JoinStep, Query, Relation, SourceExpression, Waiting

KEEPS_LEFT: Final[frozenset[JoinKind]] = frozenset({"left", "full"})
"""The joins after which rows of the left part stay that have no partner."""

KEEPS_RIGHT: Final[frozenset[JoinKind]] = frozenset({"right", "full"})
"""The joins after which rows of the added relation stay that have no partner."""

TESTS: Final[frozenset[JoinKind]] = frozenset({"semi", "anti"})
"""The joins that only ask whether there is a partner, and add no columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPart:
    """What a step finds on its left. `aliases`: relations with columns in it; `lacking`: those that may have no row;
    `lag_us`: how much later than the τ of a member of it a row may become certain (None: not at all, for unbounded
    windows), or be let in by a first partner, which is no member; 0 where all rows are certain as soon as they are
    there.
    """

    aliases: tuple[str, ...]
    lacking: frozenset[str] = frozenset()
    lag_us: int | None = 0

    @property
    def certain(self) -> tuple[str, ...]:
        """The relations that always have a row."""
        return tuple(alias for alias in self.aliases if alias not in self.lacking)


def left_parts(query: Query) -> Iterator[tuple[JoinStep, LeftPart]]:
    """Yield each step of a query with joins, and what it finds on its left."""
    part = LeftPart(aliases=(query.relations[0].alias,))
    for step in query.joins:
        yield step, part
        part = _after(query, step, part)


def _after(query: Query, step: JoinStep, part: LeftPart) -> LeftPart:
    if step.kind is None:
        return part
    waits: list[int | None] = [part.lag_us]
    if step.kind in (*KEEPS_LEFT, *TESTS) and not query.relation(step.alias).is_table:
        waits.append(closing_us(query, part))
    if step.kind in KEEPS_RIGHT and has_stream(query, part.aliases):
        waits.append(_sum(_window_us(query, step.alias), part.lag_us))
    lag = None if None in waits else max(each for each in waits if each is not None)
    if step.kind in TESTS:
        return replace(part, lag_us=lag)
    lacking = part.lacking
    lacking |= {step.alias} if step.kind in KEEPS_LEFT else set()
    lacking |= set(part.aliases) if step.kind in KEEPS_RIGHT else set()
    return LeftPart(aliases=(*part.aliases, step.alias), lacking=lacking, lag_us=lag)


def closing_us(query: Query, part: LeftPart) -> int | None:
    """Return how long after any member's τ a row of the part can have no new partner at the latest; None: never.

    That is when the window of any member is over. A relation that may have no row cannot be counted on for that.
    """
    sure = [_window_us(query, alias) for alias in part.certain if _is_stream(query, alias)]
    bounded = [window for window in sure if window is not None]
    if bounded:
        return min(bounded)
    others = [_window_us(query, alias) for alias in part.lacking if _is_stream(query, alias)]
    known = [window for window in others if window is not None]
    return max(known) if known and len(known) == len(others) and not part.certain else None


def kept_alone(query: Query) -> frozenset[str]:
    """Return the relations of which a row without a partner is in a result: that it meets nothing does not lose it."""
    kept: set[str] = set()
    for step, part in left_parts(query):
        if step.kind in KEEPS_LEFT or step.kind == "anti":
            kept.update(part.aliases)
        if step.kind in KEEPS_RIGHT:
            kept.add(step.alias)
    return frozenset(kept)


def window_us_of(relation: Relation) -> int | None:
    """Return the window as the user has it, which may be longer than what joins of all relations need."""
    return relation.window_us if relation.waiting is None else relation.waiting.window_us


def has_stream(query: Query, aliases: tuple[str, ...]) -> bool:
    """Tell whether one of the relations is a stream."""
    return any(_is_stream(query, alias) for alias in aliases)


def _window_us(query: Query, alias: str) -> int | None:
    return window_us_of(query.relation(alias))


def _is_stream(query: Query, alias: str) -> bool:
    return not query.relation(alias).is_table


def is_in_every_row(query: Query, alias: str) -> bool:
    """Tell whether each result has a row of this relation, and is certain by the time that row's window is over."""
    return alias in _leading(query) and not any(step.kind in KEEPS_RIGHT for step in query.joins)


def with_waiting(query: Query) -> Query:
    """Return a query with joins with what is kept of each relation until its rows are certain."""
    if not query.joins:
        return query
    kept = _pushed(query)
    relations = (
        replace(
            relation,
            waiting=Waiting(
                selections=kept[relation.alias],
                conditions=_conditions(query, relation.alias, kept[relation.alias]),
                window_us=relation.window_us,
                kept_us=_kept_us(query, relation),
            ),
        )
        for relation in query.relations
    )
    return replace(query, relations=tuple(relations))


def _pushed(query: Query) -> dict[str, tuple[SourceExpression, ...]]:
    """Return of each relation the conditions without which its rows matter to nobody, so that they need not be kept.

    A condition in ON matters for the relation that is added alone, unless its rows stay without partners. One in WHERE,
    or in ON of an inner join, is true of all that comes of a row only where no join keeps rows of its right side: else
    a row that is left out could be the partner that another one must be known to have.
    """
    keeps_right = any(step.kind in KEEPS_RIGHT for step in query.joins)
    pushed: dict[str, dict[SourceExpression, None]] = {relation.alias: {} for relation in query.relations}
    for step, part in left_parts(query):
        for condition in step.conditions:
            is_added = condition.relation == step.alias
            own = is_added and step.kind in ("inner", "left", "semi", "anti")
            of_all = not is_added and step.kind in (None, "inner") and not keeps_right
            if own or (of_all and condition.relation in _leading(query) and condition.relation not in part.lacking):
                pushed[condition.relation][condition.expression] = None
    return {alias: tuple(found) for alias, found in pushed.items()}


def _leading(query: Query) -> tuple[str, ...]:
    """Return the relations before the first join that is no inner one: each is in every row."""
    leading = [query.relations[0].alias]
    for step in query.joins:
        if step.kind not in (None, "inner"):
            break
        leading += [step.alias] if step.alias else []
    return tuple(leading)


def _conditions(query: Query, alias: str, pushed: tuple[SourceExpression, ...]) -> tuple[SourceExpression, ...]:
    found = (each.expression for step in query.joins for each in step.conditions if each.relation == alias)
    return tuple(expression for expression in dict.fromkeys(found) if expression not in pushed)


def _kept_us(query: Query, relation: Relation) -> int | None:
    """Return how long rows of a relation are looked at after their τ; None: for ever.

    Without joins that keep their right side, every row has all of the leading relations, is certain before the smallest
    of their windows is over, and meets nothing that is older by more than its own window. Else the way from one row to
    another it depends on may lead across each of the windows, there and back.
    """
    if relation.is_table:
        return None
    windows = [each.window_us for each in query.relations if not each.is_table]
    if any(step.kind in KEEPS_RIGHT for step in query.joins):
        total = _total(windows)
        return total if len(query.relations) == 2 or total is None else 2 * total
    leading = _leading(query)
    if relation.alias in leading:
        return relation.window_us
    bounded = [query.relation(alias).window_us for alias in leading]
    return _sum(relation.window_us, min((each for each in bounded if each is not None), default=None))


def _total(windows: list[int | None]) -> int | None:
    bounded = [window for window in windows if window is not None]
    return sum(bounded) if len(bounded) == len(windows) else None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


__all__ = [
    "KEEPS_LEFT",
    "KEEPS_RIGHT",
    "TESTS",
    "LeftPart",
    "closing_us",
    "has_stream",
    "is_in_every_row",
    "kept_alone",
    "left_parts",
    "window_us_of",
    "with_waiting",
]
