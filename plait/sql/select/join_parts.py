"""Joins of views as joins of the streams and tables in them, one after the other; None where no such joins say it.

A view is a row of its members, so the window condition of a join with it is one on all of them, and an inner join of
inner joins can be taken in any order. Rows of an outer join within a view are settled before the view is joined: so
its joins must come first. A filter of a view belongs before the join that reads it: into the ON of a join that does
not keep the view's rows, behind one that keeps them, and of FULL JOIN, which keeps both sides' rows, into both, there
true of rows that the view has no part in. Tempting and wrong: all filters in WHERE, which would take away rows
without a partner; and all in ON, which would keep rows that the view does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from plait.sql.predicates.of_nothing import of_nothing
from plait.sql.select.syntax import JoinKind
from plait.sql.select.view_parts import INNER, Joined, Part, Pieces, column_at, enclosed, relations_of, said, sql_of

_FLIPPED: Final[dict[JoinKind, JoinKind]] = {
    "inner": "inner",
    "cross": "cross",
    "left": "right",
    "right": "left",
    "full": "full",
}
"""The join that says the same with its sides exchanged."""


def join_parts(left: Part, right: Part, kind: JoinKind, on: tuple[Pieces, ...]) -> Part | None:
    """Return ``left kind JOIN right ON on`` as joins one after the other."""
    if len(right.steps) == 1:
        return _with_one(left, right, kind, on)
    if kind in INNER and right.is_inner:
        return _with_all(left, right, kind, on)
    if kind in _FLIPPED and len(left.steps) == 1:
        return _with_one(right, left, _FLIPPED[kind], on)
    if kind in INNER and left.is_inner:
        return _with_all(right, left, kind, on)
    return None


def without_needless(part: Part) -> Part:
    """Return the part with those left joins as inner ones of whose rows without a partner a filter keeps none."""
    needed = {
        alias
        for each in part.filters
        for alias in relations_of(each)
        if len(relations_of(each)) == 1 and of_nothing(sql_of(each)) in ("null", "false")
    }
    steps = (
        replace(step, kind="inner") if step.kind == "left" and step.alias in needed else step for step in part.steps
    )
    return Part(steps=tuple(steps), filters=part.filters)


def _with_one(left: Part, right: Part, kind: JoinKind, on: tuple[Pieces, ...]) -> Part | None:
    """Return the join with a part of one relation."""
    step = right.steps[0]
    if kind == "full":
        return _full(_settled(left), right, on)
    if kind == "right":
        left = _settled(left)
        return Part(steps=(*left.steps, replace(step, kind=kind, on=(*left.filters, *on))), filters=right.filters)
    return Part(steps=(*left.steps, replace(step, kind=kind, on=(*right.filters, *on))), filters=left.filters)


def _full(left: Part, right: Part, on: tuple[Pieces, ...]) -> Part | None:
    kept = [_or_absent(part, filter_) for part in (left, right) for filter_ in part.filters]
    if None in kept:
        return None
    step = replace(right.steps[0], kind="full", on=(*left.filters, *right.filters, *on))
    return Part(steps=(*left.steps, step), filters=tuple(each for each in kept if each is not None))


def _or_absent(part: Part, filter_: Pieces) -> Pieces | None:
    """Return a filter of a part as one on rows that may have no row of it; None where no condition on one relation
    says that.
    """
    presence = part.presence
    if presence is None or not relations_of(filter_) <= {presence.relation}:
        return None
    place = filter_[0].place
    return (*column_at(presence, place), *said(" IS NULL OR ", place), *enclosed(filter_))


def _settled(part: Part) -> Part:
    """Return the part with its filters in ON, if it has inner joins alone to put them into."""
    if not part.is_inner or len(part.steps) == 1:
        return part
    return Part(steps=_placed(part.steps, part.filters, 1))


def _with_all(left: Part, right: Part, kind: JoinKind, on: tuple[Pieces, ...]) -> Part:
    """Return the inner join with inner joins."""
    first = replace(right.steps[0], kind=kind)
    steps = (*left.steps, first, *right.steps[1:])
    return Part(steps=_placed(steps, (*right.filters, *on), len(left.steps)), filters=left.filters)


def _placed(steps: Sequence[Joined], conditions: Sequence[Pieces], first: int) -> tuple[Joined, ...]:
    """Return inner joins, from the `first` on, with conditions where all they read is there."""
    placed = list(steps)
    for condition in conditions:
        read = relations_of(condition)
        at = max([first, *(place for place, step in enumerate(steps) if step.alias in read)])
        placed[at] = replace(placed[at], on=(*placed[at].on, condition))
    return tuple(placed)


__all__ = ["join_parts", "without_needless"]
