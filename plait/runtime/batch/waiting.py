"""Results that wait for their sinks: whose and why, and how they are offered at a start, without a batch.

A batch offers what waits before its own results, but may be long in coming, and never comes to a run that finds
nothing new. What a sink takes at a start is noted in the last manifest, amended: that is the commit, before which it is
staged, and after which it is published, as in a batch. Killed before it, it is offered again; killed after it, the
manifest says what to publish.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from plait.faults import reach
from plait.runtime.batch.handing_over import Handover
from plait.runtime.batch.record import Batch
from plait.runtime.checkpoint.epoch import Epoch
from plait.sinks.kinds import kind_of
from plait.sinks.staging import Unpublished, publish
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest, Undelivered

_LATER: Final = "its files could not be published yet; that is tried again at every start and with every batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What came of offering. `before`: the manifest the next batch builds on; `rows`: how many were taken, by query."""

    before: Manifest
    rows: tuple[tuple[str, int], ...] = ()


def offer(handover: Handover, log: ManifestLog, epoch: Epoch, before: Manifest) -> Offered:
    """Offer to the sinks of an epoch what waits for them, and to those that remember batches what they may have."""
    if not before.undelivered:
        return Offered(before=before)
    handed = handover.deliver(Batch(number=before.batch + 1, epoch=epoch, before=before, clock_ms=0))
    _note_moved(log, before, handed.undelivered)
    work = handover.settle(handed)
    publications, waiting = work.publications, work.undelivered
    still = {(late.query, late.batch) for late in waiting}
    taken = [late for late in before.undelivered if (late.query, late.batch) not in still]
    after = replace(before, undelivered=waiting)
    if not taken:
        return Offered(before=after)
    last, gone = log.read(before.batch), {(late.query, late.batch) for late in taken}
    left = tuple(late for late in last.undelivered if (late.query, late.batch) not in gone)
    log.amend(replace(last, undelivered=left, publications=(*last.publications, *publications)))
    reach("offered")
    failed = tuple(each.publication for each in publish(publications))
    rows = dict[str, int]()
    for late in taken:
        rows[late.query] = rows.get(late.query, 0) + late.rows
    return Offered(
        before=replace(after, publications=(*before.publications, *failed)), rows=tuple(sorted(rows.items()))
    )


def _note_moved(log: ManifestLog, before: Manifest, waiting: Iterable[Undelivered]) -> None:
    """Note in the last manifest for which place results are now, before that gets them."""
    known = {(late.query, late.batch): late.sink for late in before.undelivered}
    moved = {(late.query, late.batch): late for late in waiting if late.sink != known[late.query, late.batch]}
    if moved:
        last = log.read(before.batch)
        noted = tuple(moved.get((late.query, late.batch), late) for late in last.undelivered)
        log.amend(replace(last, undelivered=noted))


def failing_after(work: Batch) -> tuple[tuple[str, str], ...]:
    """Return whose results wait after a batch and why, each once: what comes after the first that waits has no reason
    of its own.
    """
    reasons = dict[str, str]()
    waiting = ((late.query, late.reason) for late in work.undelivered if late.query in work.epoch.bindings)
    for name, reason in (*_unpublished(work), *waiting):
        reasons.setdefault(name, reason)
    return tuple(reasons.items())


def failing_at_start(epoch: Epoch, before: Manifest | None) -> tuple[tuple[str, str], ...]:
    """Return whose results wait, and why, before the first batch."""
    if before is None:
        return ()
    unpublished = tuple(Unpublished(publication=each, reason=_LATER) for each in before.publications)
    work = Batch(number=before.batch, epoch=epoch, before=None, clock_ms=0, manifest=before)
    return failing_after(replace(work, unpublished=unpublished, undelivered=before.undelivered))


def _unpublished(work: Batch) -> Iterator[tuple[str, str]]:
    """Yield whose files could not be published, and why."""
    sinks = {name: binding.sink.spec for name, binding in work.epoch.bindings.items()}
    directories = {name: kind_of(spec).directory(spec) for name, spec in sinks.items()}
    directories |= {f"dead letters of stream '{stream.name}'": stream.dead_letter for stream in work.epoch.streams}
    for each in work.unpublished:
        named = [name for name, directory in directories.items() if each.is_in(directory)]
        # What a query has left that was dropped since is still tried with every batch.
        folder = posixpath.dirname(each.publication.final)
        yield from ((name, each.reason) for name in named or [f"results in '{folder}', which no query has now"])


__all__ = ["Offered", "failing_after", "failing_at_start", "offer"]
