"""Hand a batch's results to their sinks: what waits from earlier batches first, and only where the sink is the query's.

A sink that takes nothing stops nobody: its results wait in the checkpoint, and those of later batches behind them.

A sink that remembers which batches it has gets them after the commit: until then they wait as if it had failed. So a
manifest names results that it may have, and whoever goes on from that manifest offers them once more, to the very sink
they were found for, which alone can tell. That it has failed does not tell either, since the answer of one that had
taken them may be what was lost: before results go to another place, the one they were found for is asked. If the other
one remembers batches too, a manifest names it first as the one that may have them, in case its answer is lost as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import PlaitError, SinkError, reason_of
from plait.faults import reach
from plait.operators.reports import ResultFile
from plait.runtime.batch.record import Batch
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.checkpoint.recovery import claim_sink
from plait.runtime.outputs.binding import Binding
from plait.runtime.outputs.deliverer import Deliverer, deliver_together, written_by_tasks
from plait.runtime.outputs.shape import decoded_sink, encoded_sink
from plait.sinks.kinds import kind_of
from plait.sinks.staging import Publication, require_staged
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest, Undelivered
from plait.state.storage import Storage

_FAILURES = (PySparkException, Py4JJavaError, PlaitError, OSError, pa.ArrowException)
"""What a sink fails with; Spark's tasks that cannot write fail with an error of Java's."""

_CAUSE = re.compile(r"Caused by: (?P<cause>[^\n]+)")


class Handover:
    """Knows the sinks that are `claimed`: known to be their queries' own. `slots`: tasks at a time."""

    def __init__(
        self, spark: SparkSession, storage: Storage, checkpoint: str, *, slots: int, claimed: Collection[str]
    ) -> None:
        self._spark, self._storage, self._checkpoint, self._slots = spark, storage, checkpoint, slots
        self.deliverer = Deliverer(spark, storage, checkpoint)
        self._claimed = set(claimed)
        self._settled = set[tuple[str, int]]()

    def keep_claims(self, queries: Collection[str]) -> None:
        """Forget the claims of all but these queries: others have new sinks, or are gone."""
        self._claimed &= set(queries)

    def unclaimed(self, epoch: Epoch, before: Manifest | None) -> set[str]:
        """Return the queries whose sinks are not known to be theirs; their results wait in the checkpoint."""
        unclaimed = set()
        for name, binding in epoch.bindings.items():
            try:
                self._claim(binding, before)
            except (SinkError, OSError):
                unclaimed.add(name)
        return unclaimed

    def _claim(self, binding: Binding, before: Manifest | None) -> None:
        if binding.query.name not in self._claimed:
            claim_sink(self._storage, before, binding)
            self._claimed.add(binding.query.name)

    def deliver(self, work: Batch) -> Batch:
        """Give sinks what is theirs, and make sure that what is staged is in sight of this process."""
        bindings = work.epoch.bindings
        files = [file for report in work.found for file in report.results]
        earlier = () if work.before is None else work.before.undelivered
        fresh = [_noted(late, bindings[late.query]) for late in _spooled(work.number, files)]
        for_later = {(late.query, late.batch) for late in (*earlier, *fresh) if _is_for_after_commit(late, bindings)}
        together = self._deliver_together(work.epoch, fresh, {late.query for late in earlier})
        publications = [file.publication for file in files if file.publication is not None]
        publications += [publication for published in together.values() for publication in published]
        remaining: list[Undelivered] = []
        blocked: set[str] = set()
        for late in (*earlier, *(late for late in fresh if late.query not in together)):
            # A query that is left out may come back: what its sink has not taken waits for that.
            is_absent = late.query not in bindings
            if is_absent or late.query in blocked or (late.reason and late.batch == work.number):
                remaining.append(late)
                continue
            is_for_later = (late.query, late.batch) in for_later
            try:
                if is_for_later:
                    remaining += self._for_later(bindings[late.query], late, work.before)
                    continue
                reach("deliver")
                self._claim(bindings[late.query], work.before)
                if work.before is None or not self._is_elsewhere(bindings[late.query], late, work.before):
                    publications += self.deliverer.deliver(bindings[late.query], late)
            except _FAILURES as error:
                blocked.add(late.query)
                remaining.append(replace(late, reason=_reason(error)))
        require_staged((*(letter for report in work.ingested for letter in report.publications), *publications))
        return replace(work, publications=tuple(publications), undelivered=tuple(remaining))

    def settle(self, work: Batch) -> Batch:
        """Give sinks that remember batches what is theirs, now that it is committed."""
        bindings, last = work.epoch.bindings, (work.manifest or work.before)
        remaining: list[Undelivered] = []
        blocked: set[str] = set()
        for late in work.undelivered:
            is_due = _is_for_after_commit(late, bindings) and not (late.reason and late.batch == work.number)
            if not is_due or late.query in blocked or last is None:
                remaining.append(late)
                continue
            reach("settle")
            try:
                if _may_be_there(late):
                    self.deliverer.settle(late, last)
                elif self.deliverer.moved(bindings[late.query], late) is late:
                    self.deliverer.deliver(bindings[late.query], late, last)
                else:  # no manifest names that place yet
                    blocked.add(late.query)
                    remaining.append(late)
                    continue
            except _FAILURES as error:
                blocked.add(late.query)
                remaining.append(replace(late, reason=_reason(error)))
            else:
                self._settled.add((late.query, late.batch))
        return replace(work, undelivered=tuple(remaining))

    def close(self, log: ManifestLog) -> None:
        """Note in the last manifest what sinks have taken since it was written, so that the next run need not ask; let
        go of what they keep open.
        """
        with suppress(PlaitError, OSError):  # then the next run asks
            last = log.latest() if self._settled else None
            if last is not None:
                left = tuple(late for late in last.undelivered if (late.query, late.batch) not in self._settled)
                if left != last.undelivered:
                    log.amend(replace(last, undelivered=left))
        self.deliverer.close()

    def _for_later(self, binding: Binding, late: Undelivered, last: Manifest | None) -> list[Undelivered]:
        """Return what waits for the commit: the results, noted for another place than the one they were found for if
        they are to go there; nothing if that one has them. Raises SinkError if it does not answer.
        """
        if last is None or _may_be_there(late):
            return [late]
        moved = self.deliverer.moved(binding, late)
        return [] if moved is not late and self._is_elsewhere(binding, late, last) else [moved]

    def _is_elsewhere(self, binding: Binding, late: Undelivered, last: Manifest) -> bool:
        """Tell whether the place that results were found for has them, which is not today's. Raises SinkError if it
        does not answer.
        """
        try:
            return self.deliverer.has_elsewhere(binding, late, last)
        except _FAILURES as error:
            former = decoded_sink(late.sink)
            place = f"{former.format} '{kind_of(former).place(former)}'"
            raise SinkError(
                f"query '{late.query}': {late.rows} results of batch {late.batch} were found for {place}, and may be "
                f"there, but it does not answer ({_reason(error)}). They wait until it does, and what comes after "
                "them, too; drop the query by name (DROP QUERY) to have them deleted"
            ) from error

    def _deliver_together(
        self, epoch: Epoch, fresh: list[Undelivered], behind: set[str]
    ) -> dict[str, tuple[Publication, ...]]:
        """Give what tasks can write to its sinks in one job; return what to publish, by query. If one of them fails,
        none is delivered. `behind`: the queries that have results waiting.
        """
        chosen = []
        for late in fresh:
            binding = epoch.bindings[late.query]
            delivery = written_by_tasks(binding, self._checkpoint)
            is_ready = late.query in self._claimed and late.query not in behind and not late.reason
            if delivery is not None and is_ready:
                chosen.append((binding, late, delivery))
        if not chosen:
            return {}
        reach("deliver")
        try:
            return deliver_together(self._spark, self._storage, chosen, slots=self._slots)
        except _FAILURES:
            return {}  # each by itself will tell which it was


def _is_for_after_commit(late: Undelivered, bindings: Mapping[str, Binding]) -> bool:
    """Tell whether results go to a sink that remembers batches: one that may have them, or else today's."""
    if _may_be_there(late):
        return True
    return late.query in bindings and kind_of(bindings[late.query].sink.spec).remembers(bindings[late.query].sink.spec)


def _may_be_there(late: Undelivered) -> bool:
    """Tell whether the sink that results were found for is to get them, whatever today's is: it remembers batches, and
    has not failed to take them yet.
    """
    if not late.sink or late.reason:
        return False
    spec = decoded_sink(late.sink)
    return kind_of(spec).remembers(spec)


def _reason(error: Exception) -> str:
    """Return in one line what a sink failed with: of an error of Java's the innermost cause, which comes last."""
    causes = _CAUSE.findall(str(error)) if isinstance(error, Py4JJavaError) else []
    reason = reason_of(error)
    return str(causes[-1]).strip() if causes and reason.startswith(type(error).__name__) else reason


def _spooled(batch: int, files: list[ResultFile]) -> list[Undelivered]:
    """Group this batch's spooled files by query."""
    spooled: dict[str, Undelivered] = {}
    for file in files:
        if not file.paths:
            continue
        known = spooled.get(
            file.query, Undelivered(query=file.query, batch=batch, paths=(), rows=0, reason=file.failure or "")
        )
        spooled[file.query] = replace(known, paths=known.paths + file.paths, rows=known.rows + file.rows)
    return [spooled[query] for query in sorted(spooled)]


def _noted(late: Undelivered, binding: Binding) -> Undelivered:
    """Return results of a query with what it says of them and of its sink, in case it is another one when they are
    taken.
    """
    return replace(late, shape=binding.shape.encoded(), sink=encoded_sink(binding.sink.spec))


__all__ = ["Handover"]
