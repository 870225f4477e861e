"""What probing shows about joins: how many pairs of tuples were compared on an equality, and how many matched.

The distinct counts of two keys say little about their join when the keys grow with time, are skewed, or have few values
in common. The first step of a probe path compares arriving tuples with a store, so it measures the equality itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plait.operators.reports import ProbeReport
from plait.plan.model import Member, Plan, ProbeTree, Selection, Step, Store, is_routed
from plait.state.model import Bucket, JoinProgress, SourceProgress
from plait.stats.model import conjunction


def observed_joins(
    plan: Plan,
    buckets: tuple[tuple[Bucket, ...], tuple[Bucket, ...]],
    probed: Iterable[ProbeReport],
    progress: Mapping[str, SourceProgress],
) -> dict[str, tuple[JoinProgress, ...]]:
    """Return what a batch showed, by the source of the starting relation. `buckets`: stored before, and of the batch.

    The equalities of one step are measured together: of several it cannot be told which one a pair failed.
    """
    found: dict[str, dict[tuple[str, str, str], JoinProgress]] = {}
    sent, matched = _totals(report.probe_tuples for report in probed), _totals(report.matches for report in probed)
    for tree in plan.trees:
        source = plan.store(tree.start.store).source
        for step in tree.children:
            target = plan.store(step.member.store)
            if source is None or target.source is None or not step.matches or not sent.get(step.edge):
                continue
            copies = 1 if is_routed(target, step) else target.parallelism
            pairs = sent[step.edge] / copies * _rows_seen(plan, tree, step, buckets, progress.get(target.source))
            sides = conjunction(((source, match.probe_key), (target.source, match.store_key)) for match in step.matches)
            own, theirs = sides if source <= target.source else sides[::-1]
            seen = JoinProgress(
                key=own[1],
                other=target.source,
                other_key=theirs[1],
                pairs=pairs,
                matches=float(matched.get(step.edge, 0)),
            )
            joins = found.setdefault(source, {})
            joins[seen.equality] = seen.plus(joins.get(seen.equality))
    return {source: tuple(joins[name] for name in sorted(joins)) for source, joins in found.items()}


def merged_joins(before: Iterable[JoinProgress], added: Iterable[JoinProgress]) -> tuple[JoinProgress, ...]:
    """Return the sums, by equality."""
    joins = {known.equality: known for known in before}
    for seen in added:
        joins[seen.equality] = seen.plus(joins.get(seen.equality))
    return tuple(joins[name] for name in sorted(joins))


def _totals(counts: Iterable[tuple[tuple[str, int], ...]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for found in counts:
        for edge, count in found:
            total[edge] = total.get(edge, 0) + count
    return total


def _rows_seen(
    plan: Plan,
    tree: ProbeTree,
    step: Step,
    buckets: tuple[tuple[Bucket, ...], tuple[Bucket, ...]],
    progress: SourceProgress | None,
) -> float:
    """Return how many stored tuples an arriving one was compared with, as far as windows and selection let it."""
    stored, arrived = buckets
    starting = [bucket for bucket in arrived if bucket.store == tree.start.store and bucket.tau_min is not None]
    rows = sum(bucket.rows for bucket in starting)
    if not rows:
        return 0.0
    middle = sum(bucket.rows * ((bucket.tau_min or 0) + (bucket.tau_max or 0)) / 2 for bucket in starting) / rows
    visible = [bucket for bucket in stored if bucket.store == step.member.store]
    if plan.rank(step.member) < plan.rank(tree.start):
        visible += [bucket for bucket in arrived if bucket.store == step.member.store]
    reach = (_bound(middle, step.member, -1), _bound(middle, tree.start, 1))
    seen = sum(bucket.rows * _share_within(bucket, reach) for bucket in visible)
    return seen * _share_selected(step.member.selection, plan.store(step.member.store), progress)


def _bound(middle: float, member: Member, sign: int) -> float:
    return sign * float("inf") if member.window_us is None else middle + sign * member.window_us


def _share_within(bucket: Bucket, reach: tuple[float, float]) -> float:
    """Return the share of a bucket's event times within the reach, as if they were spread evenly."""
    if bucket.tau_min is None or bucket.tau_max is None:
        return 1.0
    low, high = max(reach[0], bucket.tau_min), min(reach[1], bucket.tau_max)
    if high < low:
        return 0.0
    span = bucket.tau_max - bucket.tau_min
    return 1.0 if span == 0 else (high - low) / span


def _share_selected(selection: Selection, store: Store, progress: SourceProgress | None) -> float:
    """Return the share of the store's tuples that satisfy the selection."""
    kept = {} if progress is None else dict(progress.kept)
    everything = min(sum(kept.get(each.sql, 0) for each in store.selections), 0 if progress is None else progress.rows)
    wanted = sum(kept.get(each.sql, 0) for each in selection.alternatives)
    return min(wanted / everything, 1.0) if everything else 1.0


__all__ = ["merged_joins", "observed_joins"]
