"""Test pairs of a partial result and a stored row for what the lookup that found them did not settle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.kernels.bands import bounds, within
from plait.operators.column_names import UNTIL
from plait.operators.probe.partials import Int64s, Partials, Rows
from plait.operators.probe.residuals import Predicates, holds
from plait.plan.columns import stored_column
from plait.plan.model import KeyColumn, Probed, Step, Store
from plait.query.predicates import Band, Equality, Residual, by_kind, operands_of
from plait.state.buckets import OpenBucket

Mask = npt.NDArray[np.bool_]


def band_bounds(partials: Partials, band: Band[Probed]) -> tuple[Int64s, Int64s]:
    """Return the smallest and the largest key each partial may find. One whose own key is NULL was sent nowhere."""
    keys, _ = partials.of(band.left)
    return bounds(keys, band.low, band.high, is_double=band.order == "double")


def first_evaluated(residuals: tuple[Residual[Probed], ...]) -> Residual[Probed] | None:
    """Return the residual predicate by which DuckDB finds pairs where there is no key; registered ones only test."""
    return next((residual for residual in residuals if not residual.is_function), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """What pairs of one step are still tested for: equal keys and the values behind hashes, bands, residuals."""

    partials: Partials
    step: Step
    keys: dict[str, KeyColumn]
    equalities: tuple[Equality[Probed], ...]
    bands: tuple[tuple[Band[Probed], Int64s, Int64s], ...]
    residuals: tuple[Residual[Probed], ...]
    predicates: Predicates

    @classmethod
    def of(cls, partials: Partials, step: Step, store: Store, predicates: Predicates) -> Verifier:
        """Return the tests that the step's lookup leaves over (`plait.operators.probe.lookups.lookup_of`)."""
        keys, kinds = {key.name: key for key in store.keys}, by_kind(step.predicates)
        hashed = any(keys[equality.right.name].value_name is not None for equality in kinds.equalities)
        bands = kinds.bands if kinds.equalities else kinds.bands[1:]
        looked_up = None if kinds.equalities or kinds.bands else first_evaluated(kinds.residuals)
        return cls(
            partials=partials,
            step=step,
            keys=keys,
            equalities=kinds.equalities if hashed or len(kinds.equalities) > 1 else (),
            bands=tuple((band, *band_bounds(partials, band)) for band in bands),
            residuals=tuple(residual for residual in kinds.residuals if residual is not looked_up),
            predicates=predicates,
        )

    def columns(self) -> tuple[str, ...]:
        """Return the stored columns the tests read, and those the lookup does."""
        read = [place.name for each in self.step.predicates for place in operands_of(each) if place.at is None]
        values = (self.keys[equality.right.name].value_name for equality in self.equalities)
        return tuple(dict.fromkeys((*read, *(name for name in values if name is not None))))

    def compared(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the stored columns that `are_equal` compares: keys, and the values behind hashes."""
        names = tuple(dict.fromkeys(equality.right.name for equality in self.equalities))
        values = (self.keys[name].value_name for name in names)
        return names, tuple(name for name in values if name is not None)

    def kept(self, opened: OpenBucket, rows: Rows, stored: Rows) -> tuple[Rows, Rows]:
        """Return the pairs that pass every test, the cheap ones first."""
        for band, smallest, largest in self.bands:
            rows, stored = _chosen(rows, stored, self._is_within(opened, band, smallest, largest, rows, stored))
        if self.equalities and len(rows):
            rows, stored = _chosen(rows, stored, self.are_equal(opened, rows, stored))
        if self.step.parts and len(rows):
            # No part of a stored tuple may be too old for the newest member of the partial.
            rows, stored = _chosen(rows, stored, self.partials.newest[rows] <= opened.int64(UNTIL)[stored])
        for residual in self.residuals:
            if len(rows):
                operands = self._operands(opened, residual, rows, stored)
                rows, stored = _chosen(rows, stored, holds(residual, operands, self.predicates))
        return rows, stored

    @staticmethod
    def _is_within(
        opened: OpenBucket, band: Band[Probed], smallest: Int64s, largest: Int64s, rows: Rows, stored: Rows
    ) -> Mask:
        holds = within(smallest, largest, opened.int64(band.right.name), rows, stored)
        column = opened.batch.column(band.right.name)
        if column.null_count:
            holds &= column.is_valid().to_numpy(zero_copy_only=False)[stored]
        return holds

    def are_equal(self, opened: OpenBucket, rows: Rows, stored: Rows) -> Mask:
        """Tell of which pairs every key, and every real value behind a hash, is equal."""
        equal = np.ones(len(rows), np.bool_)
        pairs = self.partials.at(rows)
        for equality in self.equalities:
            key = self.keys[equality.right.name]
            probing, _ = pairs.of(equality.left)
            equal &= probing == _stored_int64(opened, key.name, stored)
            if key.value_name is not None:
                theirs = opened.take(stored, (key.value_name,)).column(0)
                ours = pairs.positions[equality.left.at or 0].column(stored_column(equality.left.name).value.name)
                equal &= pc.fill_null(pc.equal(ours, theirs), False).to_numpy(zero_copy_only=False)
        return equal

    def _operands(self, opened: OpenBucket, residual: Residual[Probed], rows: Rows, stored: Rows) -> list[pa.Array]:
        return [
            opened.take(stored, (place.name,)).column(0)
            if place.at is None
            else self.partials.positions[place.at].at(rows).column(place.name)
            for place in residual.operands
        ]


def _chosen(rows: Rows, stored: Rows, mask: Mask) -> tuple[Rows, Rows]:
    return (rows, stored) if mask.all() else (rows[mask], stored[mask])


def _stored_int64(opened: OpenBucket, name: str, stored: Rows) -> Int64s:
    values = opened.take(stored, (name,)).column(0)
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
