"""What a checkpoint says about the plan in force: read only, and without Spark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from plait.errors import CheckpointError, OptionError
from plait.operators.traversal.scheduling import by_store
from plait.plan.changelog import changelog
from plait.plan.codec import decode
from plait.plan.explain import EdgeCount, Measured, StoreCount
from plait.plan.model import Plan
from plait.plan.traversals import kept_stores, path_members
from plait.query.model import Operand, Query
from plait.query.predicates import Equality
from plait.query.types import typed
from plait.runtime.checkpoint.catalog import read_catalog
from plait.state.garbage import plan_path
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest, SourceProgress
from plait.state.place import state_of
from plait.state.storage import Storage
from plait.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The plan that governed the last batch, the state after it, and what it counted."""

    plan: Plan
    manifest: Manifest
    measured: Measured


def observe(checkpoint: str) -> Observed:
    """Return what a checkpoint says. Raises OptionError if it is none, CheckpointError if it has no batch."""
    storage = state_of(checkpoint)
    if read_catalog(storage, __version__) is None:
        raise OptionError(f"there is no Plait checkpoint at '{checkpoint}'; name the one that a run was given")
    manifest = ManifestLog(storage).latest()
    if manifest is None or not manifest.plan:
        raise CheckpointError(f"no batch has been finished in checkpoint '{checkpoint}' yet; explain it without")
    made = read_plan(storage, manifest.plan)
    if made is None:
        raise CheckpointError(
            f"checkpoint '{checkpoint}' lacks plan {manifest.plan} of its last batch; run it once more, or restore it"
        )
    return Observed(plan=made, manifest=manifest, measured=measure(storage, made, manifest))


def measure(storage: Storage, made: Plan, last: Manifest) -> Measured:
    """Return what the batches up to the last one counted, as far back as they were governed by this plan."""
    log = ManifestLog(storage)
    plans: dict[str, Plan | None] = {}

    def is_governed(manifest: Manifest) -> bool:
        if manifest.plan not in plans:
            with suppress(CheckpointError):  # an earlier version's plan: it governed other batches than this one
                plans[manifest.plan] = None
                plans[manifest.plan] = read_plan(storage, manifest.plan)
        governing = plans[manifest.plan]
        return governing is not None and not changelog(governing, made)

    governed: list[Manifest] = []
    before: Manifest | None = None
    for batch in reversed([batch for batch in log.batches() if batch <= last.batch]):
        try:
            manifest = last if batch == last.batch else log.read(batch)
        except CheckpointError:  # deleted meanwhile by the run that is explained
            break
        if not is_governed(manifest):
            before = manifest
            break
        governed.append(manifest)
    if before is None and governed and governed[-1].batch > 0:
        # Older manifests are deleted: counting begins where the oldest one that is left ends.
        before = governed.pop()
    return measured(made, last, before, batches=len(governed))


def measured(made: Plan, last: Manifest, before: Manifest | None, *, batches: int) -> Measured:
    """Return what was counted from one manifest to another; `before` None: from the beginning."""
    now, then = dict(last.probe_tuples), dict(() if before is None else before.probe_tuples)
    edges = []
    for tree in made.trees if batches else ():
        source = made.store(tree.start.store).source or ""
        stretch = _Stretch.of(source, last, before)
        for path, step in tree.walk():
            endless = sum(
                member.window_us is None and not made.store(member.store).is_table
                for member in path_members(tree.start, path)[1:]
            )
            count = now.get(step.edge, 0) - then.get(step.edge, 0)
            span_us = None if stretch is None else stretch.average_us(endless)
            edges.append(EdgeCount(edge=step.edge, probe_tuples=count, span_us=span_us))
    held, kept = by_store(last.buckets), kept_stores(made)
    stores = tuple(
        StoreCount(
            store=store.id,
            rows=sum(bucket.rows for bucket in held.get(store.id, ())),
            bytes=sum(bucket.bytes for bucket in held.get(store.id, ())),
        )
        for store in made.stores
        if store.id in kept
    )
    return Measured(
        batch=last.batch,
        batches=batches,
        edges=tuple(sorted(edges, key=lambda count: count.edge)),
        stores=stores,
        sampled=last.sampled - (0 if before is None else before.sampled) if batches else 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """From when to when edges were counted, in microseconds since the first tuple of their starting stream."""

    start_us: int
    end_us: int

    @classmethod
    def of(cls, source: str, last: Manifest, before: Manifest | None) -> _Stretch | None:
        """Return the stretch for arrivals of a source between two manifests; None if no time has passed."""
        after = _progress(source, last)
        if after is None or after.tau_min is None or after.tau_max is None:
            return None
        began = None if before is None else _progress(source, before)
        start = after.tau_min if began is None or began.tau_max is None else began.tau_max
        return (
            cls(start_us=start - after.tau_min, end_us=after.tau_max - after.tau_min) if after.tau_max > start else None
        )

    def average_us(self, endless: int) -> int:
        """Return in how much time of the whole run, on average, an edge sends what it does in this stretch.

        Behind every stream that is kept for ever an edge sends more and more, in proportion to the time passed, while
        estimates are averages of the whole run.
        """
        before = self.start_us / self.end_us
        return round((1.0 - math.pow(before, endless + 1)) * self.end_us)


def _progress(source: str, manifest: Manifest) -> SourceProgress | None:
    return next((each for each in manifest.sources if each.source == source), None)


def read_plan(storage: Storage, name: str) -> Plan | None:
    """Return a plan that was in force; None if it is gone."""
    path = plan_path(name)
    return decode(storage.read_bytes(path).decode()) if name and storage.exists(path) else None


def with_types_of(made: Plan, queries: Iterable[Query]) -> tuple[Query, ...]:
    """Return the queries with the types that Spark once told for their equalities, as far as the plan shows them."""
    types: dict[tuple[str, str], set[str]] = {}
    for store in made.stores:
        for key in store.keys:
            if store.source is not None:
                types.setdefault((store.source, key.expression.sql), set()).add(key.type)
    return tuple(
        replace(
            query,
            predicates=tuple(
                _typed(query, each, types) if isinstance(each, Equality) else each for each in query.predicates
            ),
        )
        for query in queries
    )


def _typed(query: Query, equality: Equality[Operand], types: Mapping[tuple[str, str], set[str]]) -> Equality[Operand]:
    def known(operand: Operand) -> set[str]:
        return types.get((query.relation(operand.relation).source, operand.expression.sql), set())

    seen = known(equality.left) & known(equality.right)
    return typed(equality, min(seen)) if equality.left.type is None and len(seen) == 1 else equality
