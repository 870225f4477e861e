"""What a checkpoint says about the plan in force: read only, and without Spark."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from plait import __version__
from plait.errors import CheckpointError
from plait.operators.coordinator import by_store
from plait.plan.changelog import changelog
from plait.plan.codec import decode
from plait.plan.explain import EdgeCount, Measured, StoreCount
from plait.plan.model import Plan
from plait.plan.walks import kept_stores
from plait.query.model import Equality, Operand, Query
from plait.runtime.catalog import read_catalog
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest, SourceProgress
from plait.state.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The plan that governed the last batch, the state after it, and what it counted."""

    plan: Plan
    manifest: Manifest
    measured: Measured


def observe(checkpoint: str) -> Observed:
    """Return what a checkpoint says. Raises CheckpointError if it is none, or if no batch has been finished in it."""
    storage = Storage.open(posixpath.join(checkpoint, "plait"))
    if read_catalog(storage, __version__) is None:
        raise CheckpointError(f"there is no Plait checkpoint at '{checkpoint}'; name the one that a run was given")
    manifest = ManifestLog(storage).latest()
    if manifest is None or not manifest.plan:
        raise CheckpointError(f"no batch has been finished in checkpoint '{checkpoint}' yet; explain it without")
    made = _read_plan(storage, manifest.plan)
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
                plans[manifest.plan] = _read_plan(storage, manifest.plan)
        found = plans[manifest.plan]
        return found is not None and not changelog(found, made)

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
    ends = {progress.source: progress for progress in last.sources}
    begins = {progress.source: progress for progress in (() if before is None else before.sources)}
    edges = []
    for tree in made.trees if batches else ():
        source = made.store(tree.start.store).source or ""
        span_us = _span(begins.get(source), ends.get(source))
        edges += [
            EdgeCount(edge=step.edge, probe_tuples=now.get(step.edge, 0) - then.get(step.edge, 0), span_us=span_us)
            for _, step in tree.walk()
        ]
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
    )


def _span(before: SourceProgress | None, after: SourceProgress | None) -> int | None:
    """Return the event time between two manifests; None if none has passed."""
    if after is None or after.tau_max is None or after.tau_min is None:
        return None
    start = after.tau_min if before is None or before.tau_max is None else before.tau_max
    return after.tau_max - start if after.tau_max > start else None


def _read_plan(storage: Storage, name: str) -> Plan | None:
    """Return a plan that was in force; None if it is gone."""
    path = f"plans/{name}.json"
    return decode(storage.read_bytes(path).decode()) if name and storage.exists(path) else None


def with_types_of(made: Plan, queries: Iterable[Query]) -> tuple[Query, ...]:
    """Return the queries with the types that Spark once told for their equalities, as far as the plan shows them."""
    types: dict[tuple[str, str], set[str]] = {}
    for store in made.stores:
        for key in store.keys:
            if store.source is not None:
                types.setdefault((store.source, key.expression.sql), set()).add(key.type)
    return tuple(
        replace(query, equalities=tuple(_typed(query, equality, types) for equality in query.equalities))
        for query in queries
    )


def _typed(query: Query, equality: Equality, types: Mapping[tuple[str, str], set[str]]) -> Equality:
    def known(operand: Operand) -> set[str]:
        return types.get((query.relation(operand.relation).source, operand.expression.sql), set())

    found = known(equality.left) & known(equality.right)
    return replace(equality, type=min(found)) if equality.type is None and len(found) == 1 else equality
