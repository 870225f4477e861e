"""Test pairs of a partial result and a stored row for what the lookup that found them did not settle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.kernels.spans import bounds, within
from plait.operators.formulas import Predicates, holds
from plait.operators.names import UNTIL
from plait.operators.partials import Int64s, Partials, Rows
from plait.plan.model import Check, KeyColumn, SpanMatch, Step, Store
from plait.state.buckets import OpenBucket

Mask = npt.NDArray[np.bool_]


def span_bounds(partials: Partials, span: SpanMatch) -> tuple[Int64s, Int64s]:
    """Return the smallest and the largest key each partial may find. One whose own key is NULL was sent nowhere."""
    keys, _ = partials.positions[span.position].int64(span.probe_key)
    return bounds(keys, span.low, span.high, is_double=span.order == "double")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """What pairs of one step are still tested for: equal keys and the values behind hashes, bounds, formulas."""

    partials: Partials
    step: Step
    keys: dict[str, KeyColumn]
    equal: bool
    bounds: tuple[tuple[SpanMatch, Int64s, Int64s], ...]
    checks: tuple[Check, ...]
    predicates: Predicates

    @classmethod
    def of(cls, partials: Partials, step: Step, store: Store, predicates: Predicates) -> Verifier:
        """Return the tests that the step's lookup leaves over (`plait.operators.lookups.lookup_of`)."""
        keys = {key.name: key for key in store.keys}
        hashed = any(keys[match.store_key].value_name is not None for match in step.matches)
        spans = step.spans if step.matches else step.spans[1:]
        checks = step.checks
        if not step.matches and not step.spans:
            first = next((check for check in checks if not check.formula.is_function), None)
            checks = tuple(check for check in checks if check is not first)
        return cls(
            partials=partials,
            step=step,
            keys=keys,
            equal=hashed or len(step.matches) > 1,
            bounds=tuple((span, *span_bounds(partials, span)) for span in spans),
            checks=checks,
            predicates=predicates,
        )

    def columns(self) -> tuple[str, ...]:
        """Return the stored columns the tests read, and those the lookup does."""
        step = self.step
        names = [match.store_key for match in step.matches] + [span.store_key for span in step.spans]
        values = (self.keys[match.store_key].value_name for match in step.matches)
        names += [name for name in values if name is not None]
        names += [name for check in step.checks for position, name in check.operands if position is None]
        return tuple(dict.fromkeys(names))

    def kept(self, opened: OpenBucket, rows: Rows, stored: Rows) -> tuple[Rows, Rows]:
        """Return the pairs that pass every test, the cheap ones first."""
        for span, smallest, largest in self.bounds:
            rows, stored = _chosen(rows, stored, self._is_within(opened, span, smallest, largest, rows, stored))
        if self.equal and len(rows):
            rows, stored = _chosen(rows, stored, self._are_equal(opened, rows, stored))
        if self.step.parts and len(rows):
            # No part of a stored tuple may be too old for the newest member of the partial.
            rows, stored = _chosen(rows, stored, self.partials.newest[rows] <= opened.int64(UNTIL)[stored])
        for check in self.checks:
            if len(rows):
                operands = self._operands(opened, check, rows, stored)
                rows, stored = _chosen(rows, stored, holds(check.formula, operands, self.predicates))
        return rows, stored

    @staticmethod
    def _is_within(
        opened: OpenBucket, span: SpanMatch, smallest: Int64s, largest: Int64s, rows: Rows, stored: Rows
    ) -> Mask:
        found = within(smallest, largest, opened.int64(span.store_key), rows, stored)
        column = opened.batch.column(span.store_key)
        if column.null_count:
            found &= column.is_valid().to_numpy(zero_copy_only=False)[stored]
        return found

    def _are_equal(self, opened: OpenBucket, rows: Rows, stored: Rows) -> Mask:
        """Tell of which pairs every key, and every real value behind a hash, is equal."""
        equal = np.ones(len(rows), np.bool_)
        pairs = self.partials.at(rows)
        for match in self.step.matches:
            position, key = pairs.positions[match.position], self.keys[match.store_key]
            probing, _ = position.int64(match.probe_key)
            equal &= probing == _stored_int64(opened, match.store_key, stored)
            if key.value_name is not None:
                theirs = opened.take(stored, (key.value_name,)).column(0)
                ours = position.column("#v" + match.probe_key.removeprefix("#k"))
                equal &= pc.fill_null(pc.equal(ours, theirs), False).to_numpy(zero_copy_only=False)
        return equal

    def _operands(self, opened: OpenBucket, check: Check, rows: Rows, stored: Rows) -> list[pa.Array]:
        found = []
        for position, name in check.operands:
            if position is None:
                found.append(opened.take(stored, (name,)).column(0))
            else:
                found.append(self.partials.positions[position].at(rows).column(name))
        return found


def _chosen(rows: Rows, stored: Rows, mask: Mask) -> tuple[Rows, Rows]:
    return (rows, stored) if mask.all() else (rows[mask], stored[mask])


def _stored_int64(opened: OpenBucket, name: str, stored: Rows) -> Int64s:
    values = opened.take(stored, (name,)).column(0)
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
