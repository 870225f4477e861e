"""Rows, selectivities and distinct counts of single relations: statistics where there are some, assumptions where not.

Nothing else in the optimizer invents a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from typing_extensions import assert_never

from plait.plan.conditions import Joining, key_pairs, measured_name
from plait.plan.model import KeyColumn, Selection
from plait.query.model import SourceExpression
from plait.query.predicates import Band, Equality, Residual
from plait.spelling import backquoted
from plait.stats.model import Side, Statistics, conjunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Stand-ins for unknown numbers.

    Tables are usually dimensions joined by their key, so each of their keys is taken to be unique; a key of a stream is
    taken to repeat ten times inside a window. `conjunct_selectivity`: rows that satisfy one selection predicate.
    Of all pairs of rows `one_sided_selectivity` satisfy an inequality, `band_selectivity` lie in a band and
    `residual_selectivity` satisfy any other predicate of two relations: the usual guesses. `column_bytes`: what a
    stored value takes.
    """

    rate_rows_per_s: float = 1_000.0
    unbounded_stream_rows: float = 100_000.0
    table_rows: float = 10_000.0
    stream_distinct_share: float = 0.1
    table_distinct_share: float = 1.0
    conjunct_selectivity: float = 0.25
    one_sided_selectivity: float = 1 / 3
    band_selectivity: float = 0.05
    residual_selectivity: float = 0.2
    column_bytes: float = 8.0


ASSUMED = Assumptions()


_US_PER_S = 1_000_000
_GUESSED = 10.0
"""What distinct values tell of an equality weighs as much as so many matches that are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A source as far back as somebody looks: `window_us` None means everything that ever arrived."""

    source: str
    is_table: bool
    window_us: int | None


Operand: TypeAlias = tuple[Extent, KeyColumn]
"""One side of an equality."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cardinality:
    """Answer how many rows, or distinct keys, a relation has."""

    statistics: Statistics
    assumed: Assumptions = ASSUMED

    def rows(self, extent: Extent) -> float:
        """Return |R| before any selection: rate times window, or all rows of a table or an unbounded stream."""
        known = self.statistics.of(extent.source)
        if extent.is_table:
            return self.assumed.table_rows if known.rows is None else known.rows
        if extent.window_us is None:
            return self.assumed.unbounded_stream_rows if known.rows is None else known.rows
        return self._rate(extent.source) * extent.window_us / _US_PER_S

    def knows_rows(self, extent: Extent) -> bool:
        """Tell whether |R| is known."""
        known = self.statistics.of(extent.source)
        return (known.rows if extent.is_table or extent.window_us is None else known.rate_rows_per_s) is not None

    def pace(self, extent: Extent) -> float:
        """Return how many times per second a stream brings as many rows as `rows` counts: 1 / window."""
        rows = self.rows(extent)
        return self._rate(extent.source) / rows if rows > 0 else 0.0

    def _rate(self, source: str) -> float:
        known = self.statistics.of(source).rate_rows_per_s
        return self.assumed.rate_rows_per_s if known is None else known

    def selectivity(self, source: str, selection: Selection) -> float:
        """Return the selectivity of a selection, its conjuncts independent unless measured together."""
        known = self.statistics.of(source)
        measured = known.selectivity_of(selection.sql)
        if measured is not None:
            return measured
        if selection.any_of:
            return self._any_of(source, selection.any_of)
        passing = 1.0
        for conjunct in selection.conjuncts:
            share = known.selectivity_of(Selection(conjuncts=(conjunct,)).sql)
            passing *= self.assumed.conjunct_selectivity if share is None else share
        return passing

    def _any_of(self, source: str, alternatives: tuple[Selection, ...]) -> float:
        """Return the share of rows for which one of some selections holds: as a sample of query sets shows it, else as
        if they were independent.
        """
        each = [self.selectivity(source, alternative) for alternative in alternatives]
        overlap = self.statistics.overlap(source, [alternative.sql for alternative in alternatives])
        if overlap is None:
            return 1.0 - prod(1.0 - share for share in each)
        return min(overlap * sum(each), 1.0)

    def selected_rows(self, extent: Extent, selection: Selection) -> float:
        """Return |R| after the selection."""
        return self.rows(extent) * self.selectivity(extent.source, selection)

    def distinct(self, extent: Extent, key: KeyColumn) -> float:
        """Return the number of distinct keys, at least one.

        A count declared for the column comes before the one measured for the key (`plait.stats.combine`). A count of
        the column also stands for an expression of that column alone, which cannot have more values. Counts are not
        capped by the rows in the window: two values drawn from d equally likely ones are equal once in d times,
        however few are drawn.
        """
        known = self._known_distinct(extent, key)
        if known is not None:
            return max(known, 1.0)
        fraction = self.assumed.table_distinct_share if extent.is_table else self.assumed.stream_distinct_share
        return max(self.rows(extent) * fraction, 1.0)

    def knows_distinct(self, extent: Extent, key: KeyColumn) -> bool:
        """Tell whether the number of distinct keys is known."""
        return self._known_distinct(extent, key) is not None

    def _known_distinct(self, extent: Extent, key: KeyColumn) -> float | None:
        known = map(self.statistics.of(extent.source).distinct_of, _names(key))
        return next((count for count in known if count is not None), None)

    def join(self, equalities: Iterable[tuple[Operand, Operand]]) -> float:
        """Return the selectivity of equalities between two relations that hold at once, 1 without any.

        If they were not measured together, the most selective one counts whole, the next by its square root, the one
        after by the fourth root: columns that are joined together mostly depend on each other.
        """
        pairs = list(equalities)
        if len(pairs) > 1:
            measured = self.statistics.selectivity(*conjunction((_side(left), _side(right)) for left, right in pairs))
            if measured is not None:
                return measured
        ordered = sorted(self.equality(left, right) for left, right in pairs)
        return prod(math.pow(selectivity, math.pow(0.5, place)) for place, selectivity in enumerate(ordered))

    def between(self, left: Extent, right: Extent, joined: Joining) -> float:
        """Return f(left, right): the selectivity of all that joins two relations, measured at once or put together."""
        keys = key_pairs(joined)
        if len(keys) < len(joined):
            sides = (((left.source, mine), (right.source, theirs)) for mine, theirs in map(measured_name, joined))
            measured = self.statistics.selectivity(*conjunction(sides))
            if measured is not None:
                return measured
        return self.join(((left, mine), (right, theirs)) for mine, theirs in keys) * self._others(joined)

    def knows_between(self, left: Extent, right: Extent, joined: Joining) -> bool:
        """Tell whether f(left, right) was measured, or follows from distinct keys that are known."""
        keys = key_pairs(joined)
        sides = (((left.source, mine), (right.source, theirs)) for mine, theirs in map(measured_name, joined))
        if self.statistics.selectivity(*conjunction(sides)) is not None:
            return True
        return len(keys) == len(joined) and all(
            self.statistics.selectivity(_side((left, mine)), _side((right, theirs))) is not None
            or self.knows_distinct(left, mine)
            or self.knows_distinct(right, theirs)
            for mine, theirs in keys
        )

    def _others(self, joined: Joining) -> float:
        """Return the assumed selectivity of what is no equality.

        A residual predicate beside a band mostly is the exact form of it, so only those in excess of the bands count.
        """
        selectivity, bands, residuals = 1.0, 0, 0
        for predicate in joined:
            match predicate:
                case Equality():
                    pass
                case Band():
                    is_one_sided = predicate.low is None or predicate.high is None
                    selectivity *= self.assumed.one_sided_selectivity if is_one_sided else self.assumed.band_selectivity
                    bands += 1
                case Residual():
                    residuals += 1
                case _:
                    assert_never(predicate)
        return selectivity * math.pow(self.assumed.residual_selectivity, max(residuals - bands, 0))

    def equality(self, left: Operand, right: Operand) -> float:
        """Return the selectivity of ``left = right``: the measured one, or 1 / max(distinct left, distinct right).

        The latter counts as if `_GUESSED` matches had been seen at that rate: where few pairs were compared, as by a
        sample, none or two among them by chance say little.
        """
        measured = self.statistics.join(_side(left), _side(right))
        guess = 1.0 / max(self.distinct(*left), self.distinct(*right))
        if measured is None:
            return guess
        if measured.pairs == math.inf or not (self.knows_distinct(*left) or self.knows_distinct(*right)):
            return measured.selectivity
        return (_GUESSED + measured.selectivity * measured.pairs) / (_GUESSED / guess + measured.pairs)


def _side(operand: Operand) -> Side:
    extent, key = operand
    return extent.source, replace(key, part=None).name


def _names(key: KeyColumn) -> tuple[str, ...]:
    """Return the names under which the distinct count of a key may be known, best first."""
    columns = key.expression.columns
    if len(columns) != 1:
        return (key.name,)
    return (columns[0], key.name) if _is_bare(key.expression) else (key.name, columns[0])


def _is_bare(expression: SourceExpression) -> bool:
    return expression.sql == backquoted(expression.columns[0])
