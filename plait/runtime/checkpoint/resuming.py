"""Where each stream goes on when a checkpoint is opened again: where our last finished batch left it, or at its start.

Spark's offset log alone cannot say. It notes how far a batch reads before it is carried out, so a batch that was begun
with a stream and finished without it has noted rows that nobody has seen; and it forgets a stream that was left out.
"""

from __future__ import annotations

from dataclasses import replace

from plait.runtime.checkpoint.catalog import Catalog
from plait.runtime.checkpoint.offsets import forget_offsets, last_offsets, offsets_at, resume_offsets
from plait.sources import spark_name
from plait.state.model import Manifest


def resume_streams(checkpoint: str, last: Catalog | None, now: Catalog, manifest: Manifest | None) -> Catalog:
    """Let each stream of the plan (`now.read`) go on where it had come to when a finished batch last read it, and begin
    where none has; return the catalog with where that is. `last`: the catalog of the start before.
    """
    if manifest is None or manifest.batch < 0 or not now.named:
        return now
    noted = offsets_at(checkpoint, manifest.batch)
    was_read = noted.keys() if last is None or last.read is None else {spark_name(name) for name in last.read}
    # What the log says of a stream that was not read stems from a batch that was begun with it and finished without.
    offsets = dict(now.offsets) | {name: offset for name, offset in noted.items() if name in was_read}
    added = {spark_name(name) for name in now.read or ()} - was_read
    seen = added & {spark_name(known.source) for known in manifest.sources if known.rows}
    offsets = last_offsets(checkpoint, manifest.batch, seen - offsets.keys()) | offsets
    resume_offsets(checkpoint, {name: offsets[name] for name in added & offsets.keys()})
    forget_offsets(checkpoint, added - offsets.keys() - seen)
    return replace(now, offsets=tuple(sorted(offsets.items())))


__all__ = ["resume_streams"]
