"""What several accounts of ingest tasks come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plait.operators.ingest.badrows import merged_bad
from plait.operators.reports import IngestReport
from plait.state.model import NullKey
from plait.stats.sketch import merge_sketches


def report_sum(left: IngestReport, right: IngestReport) -> IngestReport:
    """Return the account of what both are of, in this order."""
    return replace(
        right,
        rows=left.rows + right.rows,
        late=left.late + right.late,
        bad=left.bad + right.bad,
        null_keys=left.null_keys + right.null_keys,
        tau_min=lowest(left.tau_min, right.tau_min),
        tau_max=highest(left.tau_max, right.tau_max),
        buckets=left.buckets + right.buckets,
        sketches=union_sketches(left.sketches, right.sketches),
        kept=merged_kept(left.kept, right.kept),
        bad_rows=merged_bad(left.bad_rows, right.bad_rows),
        null_keys_by=merged_null_keys(left.null_keys_by, right.null_keys_by),
        copies=left.copies + right.copies,
        sent_rows=left.sent_rows + right.sent_rows,
        sent_bytes=left.sent_bytes + right.sent_bytes,
        outside=left.outside + right.outside,
        unstored_tau_max=highest(left.unstored_tau_max, right.unstored_tau_max),
    )


def merged_kept(left: Iterable[tuple[str, int]], right: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return the sums by selection."""
    kept = dict(left)
    for selection, rows in right:
        kept[selection] = kept.get(selection, 0) + rows
    return tuple(sorted(kept.items()))


def merged_null_keys(left: Iterable[NullKey], right: Iterable[NullKey]) -> tuple[NullKey, ...]:
    """Return the sums by key."""
    rows: dict[str, int] = {}
    for each in (*left, *right):
        rows[each.key] = rows.get(each.key, 0) + each.rows
    return tuple(NullKey(key=key, rows=rows[key]) for key in sorted(rows))


def lowest(left: int | None, right: int | None) -> int | None:
    """Return the smaller, ignoring None."""
    return right if left is None else left if right is None else min(left, right)


def highest(left: int | None, right: int | None) -> int | None:
    """Return the larger, ignoring None."""
    return right if left is None else left if right is None else max(left, right)


Sketches = tuple[tuple[str, tuple[int, ...]], ...]


def union_sketches(left: Sketches, right: Sketches) -> Sketches:
    """Return the sketches of what either set has seen, by key."""
    merged = dict(left)
    for name, values in right:
        merged[name] = merge_sketches(merged.get(name, ()), values)
    return tuple(sorted(merged.items()))


__all__ = ["highest", "lowest", "merged_kept", "merged_null_keys", "report_sum", "union_sketches"]
