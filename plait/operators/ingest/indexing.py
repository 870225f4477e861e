"""Make an index of the selections on a source, so that hundreds of them cost little more than a few.

A selection is in the index if each of its conjuncts does nothing but compare one column with constants, in a way that
is known to be Spark's (`plait.sql.predicates.column_tests`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_never

from plait.kernels.bands import ordered_int64
from plait.operators.ingest.indexed import ColumnClasses, SelectionIndex
from plait.plan.model import Selection
from plait.query.remembering import remembered
from plait.sql.predicates.column_tests import (
    Bound,
    Compared,
    Connected,
    Missing,
    Not,
    Sure,
    Test,
    Unknown,
    bounds_of,
    class_test,
)

Mask: TypeAlias = npt.NDArray[np.bool_]
Truth: TypeAlias = tuple[Mask, Mask]
"""For which classes something is true, and for which it is false; for the others it is NULL."""

_Asked: TypeAlias = tuple[tuple[str, Test], ...]


def selection_index(selections: Sequence[Selection | None], types: Mapping[str, str]) -> SelectionIndex:
    """Return the index of those of the `selections` that it can decide, from columns of these types; places with None
    are not asked for.
    """
    asked = {place: tests for place, each in enumerate(selections) if (tests := _tests(each, types)) is not None}
    by_column: dict[str, dict[int, list[Test]]] = {}
    for place, tests in asked.items():
        for column, test in tests:
            by_column.setdefault(column, {}).setdefault(place, []).append(test)
    return SelectionIndex(
        places=tuple(asked),
        columns=tuple(_column_classes(column, types[column], tests) for column, tests in sorted(by_column.items())),
    )


def _tests(selection: Selection | None, types: Mapping[str, str]) -> _Asked | None:
    """Return what the conjuncts of a selection ask of which column; None if one asks something else."""
    if selection is None or selection.any_of:
        return None
    tests = []
    for conjunct in selection.conjuncts:
        column, *others = dict.fromkeys(conjunct.columns) or ("",)
        if others or column not in types:
            return None
        test = class_test(conjunct.sql, column, types[column])
        if test is None:
            return None
        tests.append((column, test))
    return tuple(tests)


def _column_classes(column: str, type_: str, asked: Mapping[int, Sequence[Test]]) -> ColumnClasses:
    own = {place: _own_classes(tuple(tests), type_) for place, tests in asked.items()}
    bounds: list[Any] = sorted({bound for theirs, _ in own.values() for bound in theirs})
    places = {bound: place for place, bound in enumerate(bounds)}
    runs: list[tuple[int, int, int]] = []
    for place, (theirs, held) in own.items():
        firsts, lasts = _among(theirs, places)
        runs += [(place, firsts[first], lasts[last]) for first, last in held]
    is_text = type_ == "string"
    return ColumnClasses(column=column, bounds=tuple(bounds), is_text=is_text, asking=tuple(asked), runs=tuple(runs))


_OwnClasses: TypeAlias = tuple[tuple[Any, ...], tuple[tuple[int, int], ...]]
"""The bounds of some tests, ascending, and the runs of classes, as these alone cut them, for which all of them hold."""


@remembered(1 << 14)  # with every query that comes or goes all are asked for again
def _own_classes(tests: tuple[Test, ...], type_: str) -> _OwnClasses:
    """Return that for a column of this type: 1 and 1.0 are equal, but not as bounds."""
    bounds: list[Any] = sorted({_ordered(bound) for test in tests for bound in bounds_of(test)})
    places = {bound: place for place, bound in enumerate(bounds)}
    holds = np.logical_and.reduce([_truth(test, places)[0] for test in tests])
    return tuple(bounds), tuple(_runs(holds))


def _among(own: Sequence[Any], places: Mapping[Any, int]) -> tuple[list[int], list[int]]:
    """Return the first and the last of all classes that each class is which some bounds alone cut: between two of them
    there may be others.
    """
    count = len(places)
    at = [2 * places[bound] + 1 for bound in own]
    firsts = [0, *(each for place in at for each in (place, place + 1)), 2 * count + 1]
    lasts = [*(each for place in at for each in (place - 1, place)), 2 * count, 2 * count + 1]
    return firsts, lasts


def _ordered(bound: Bound) -> int | bytes:
    return int(ordered_int64(np.array([bound]))[0]) if isinstance(bound, float) else bound


def _truth(test: Test, places: Mapping[int | bytes, int]) -> Truth:
    """Return what a test is for each class, NULL being the last."""
    classes = np.arange(2 * len(places) + 2)
    is_value = classes < len(classes) - 1
    match test:
        case Compared(kind=kind, bound=bound):
            own = 2 * places[_ordered(bound)] + 1
            true = classes < own if kind == "<" else classes <= own if kind == "<=" else classes == own
            return true & is_value, ~true & is_value
        case Unknown():
            return np.zeros_like(is_value), np.zeros_like(is_value)
        case Missing():
            return ~is_value, is_value
        case Not(part=part):
            true, false = _truth(part, places)
            return false, true
        case Sure(part=part):
            true, _ = _truth(part, places)
            return true, ~true
        case Connected(kind=kind, parts=parts):
            every, some = np.logical_and.reduce, np.logical_or.reduce
            trues, falses = zip(*(_truth(part, places) for part in parts), strict=True)
            return (every(trues), some(falses)) if kind == "AND" else (some(trues), every(falses))
        case _:
            assert_never(test)


def _runs(mask: Mask) -> Iterable[tuple[int, int]]:
    """Return the first and the last place of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False]))))
    return [(int(first), int(last) - 1) for first, last in zip(edges[::2], edges[1::2], strict=True)]


__all__ = ["selection_index"]
