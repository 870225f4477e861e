"""Test pairs of a partial result and a stored row for what the lookup that found them did not settle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.kernels.bands import bounds, within
from plait.operators.column_names import UNTIL
from plait.operators.probe.partials import Int64s, Partials, Rows, validity_of
from plait.operators.probe.residuals import Predicates, holds
from plait.plan.columns import stored_column
from plait.plan.model import KeyColumn, Probed, Step, Store
from plait.query.predicates import Band, Equality, Residual, by_kind, operands_of
from plait.state.buckets import OpenBucket

Mask = npt.NDArray[np.bool_]


def band_bounds(partials: Partials, band: Band[Probed]) -> tuple[Int64s, Int64s]:
    """Return the smallest and the largest key each partial may find, whatever that is for one whose own is NULL."""
    keys, _ = partials.of(band.left)
    return bounds(keys, band.low, band.high, is_double=band.order == "double")


def first_evaluated(residuals: tuple[Residual[Probed], ...]) -> Residual[Probed] | None:
    """Return the residual predicate by which DuckDB finds pairs where there is no key; registered ones only test."""
    return next((residual for residual in residuals if not residual.is_function), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """What pairs of one step are still tested for: equal keys and the values behind hashes, bands, residuals. `known`:
    the partials without NULL among these keys, which is equal to nothing and near to nothing; None if all are.
    """

    partials: Partials
    step: Step
    keys: dict[str, KeyColumn]
    known: Mask | None
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
        equalities = kinds.equalities if hashed or len(kinds.equalities) > 1 else ()
        return cls(
            partials=partials,
            step=step,
            keys=keys,
            known=_known(partials, [*(each.left for each in equalities), *(each.left for each in bands)]),
            equalities=equalities,
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
        if self.known is not None:
            rows, stored = _chosen(rows, stored, self.known[rows])
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
        known = validity_of(opened.batch.column(band.right.name))
        return holds if known is None else holds & known[stored]

    def are_equal(self, opened: OpenBucket, rows: Rows, stored: Rows) -> Mask:
        """Tell of which pairs every key, and every real value behind a hash, is equal."""
        equal = np.ones(len(rows), np.bool_)
        pairs = self.partials.at(rows)
        for equality in self.equalities:
            key = self.keys[equality.right.name]
            probing, _ = pairs.of(equality.left)
            found = opened.take(stored, (key.name,)).column(0)
            equal &= probing == np.asarray(pc.fill_null(found, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
            known = validity_of(found)
            equal = equal if known is None else equal & known
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


def _known(partials: Partials, places: Sequence[Probed]) -> Mask | None:
    valid = [partials.positions[place.at or 0].validity(place.name) for place in places]
    masks = [mask for mask in valid if mask is not None]
    return np.logical_and.reduce(masks) if masks else None
