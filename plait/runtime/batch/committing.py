"""Phase *commit*: the state after a batch is written down, and from here on the batch has happened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plait.adapt.budget import Budget, stores_to_drop
from plait.operators.close.next_manifest import next_manifest
from plait.runtime.batch.compacting import Compactor
from plait.runtime.batch.record import Batch
from plait.state.manifest import ManifestLog
from plait.state.storage import Storage
from plait.state.trust import trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Writes manifests, with finished merges in place of what they merged. `budget`: what stores may keep, None for all
    they want.
    """

    storage: Storage
    compactor: Compactor
    budget: Budget | None

    def commit(self, work: Batch) -> Batch:
        """Write the manifest, without the intermediate stores that have become too large. If the plan stays in force
        nevertheless, they are filled anew before the next batch.
        """
        if work.closed is None:
            raise RuntimeError("a batch is closed before it is committed")
        manifest = next_manifest(
            work.before,
            work.closed,
            plan=work.epoch.plan,
            plan_id=work.epoch.plan_id,
            batch=work.number,
            ingested=work.ingested,
            probed=work.probed,
            publications=work.publications,
            undelivered=work.undelivered,
            sampled=0 if work.sample is None else work.sample.probe_tuples,
            is_fed=work.is_fed,
            ended=work.is_over,
            generation=work.epoch.generation,
        )
        manifest = self.compactor.adopt(manifest, work.epoch.plan, work.epoch.readings)
        buckets, fillings = manifest.buckets, manifest.fillings
        dropped = frozenset() if self.budget is None else stores_to_drop(self.budget, work.epoch.plan, buckets)
        manifest = replace(
            manifest,
            buckets=tuple(bucket for bucket in buckets if bucket.store not in dropped),
            fillings=tuple(filling for filling in fillings if filling.store not in dropped),
        )
        ManifestLog(self.storage).commit(manifest)
        trust(self.storage, manifest.named)
        return replace(work, manifest=manifest, dropped=dropped)


__all__ = ["Committer"]
