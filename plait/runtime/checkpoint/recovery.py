"""Open a checkpoint and bring it to a consistent state before anything runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import quote

from plait.errors import CheckpointError, SinkError
from plait.operators.close.levels import changed_streams
from plait.query.model import Stream
from plait.runtime.checkpoint.catalog import PATH, Catalog, read_catalog
from plait.runtime.checkpoint.offsets import check_offsets, complete_offsets
from plait.runtime.outputs.binding import Binding
from plait.sinks.claims import Claim, ClaimedPlace, Owner, remove_later, tag_of
from plait.sinks.kinds import kind_of
from plait.sinks.staging import Publication, Unpublished, discard_staged, publish
from plait.state.batch_numbers import note_unfed
from plait.state.ended import ended_error
from plait.state.garbage import collect
from plait.state.gathered import require_gathered
from plait.state.identity import identity_of, keep_identity, kept_identity
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest
from plait.state.place import state_of
from plait.state.storage import Storage
from plait.state.trust import verify_all
from plait.version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What finishing the last batch has come to. `claimed`: the queries whose sinks are theirs and in order;
    `unpublished`: what could not be published now.
    """

    claimed: frozenset[str]
    unpublished: tuple[Publication, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Which checkpoint this is: its `identity`, and whether it was `begun_without_markers` by an earlier version of
    Plait: then its sinks have none.
    """

    identity: str
    begun_without_markers: bool


def whose(storage: Storage) -> Whose:
    """Return which checkpoint this is."""
    is_older = storage.exists(PATH) and kept_identity(storage) is None
    return Whose(identity=identity_of(storage), begun_without_markers=is_older)


def open_checkpoint(checkpoint: str, cache_bytes: int | None = None) -> tuple[Storage, Catalog | None, Manifest | None]:
    """Return the checkpoint's storage, catalog and last manifest, both None if it is new. `cache_bytes`: for local
    copies of a remote one.

    Raises CheckpointError if the directory holds something else, or if a live bucket is missing or damaged.
    """
    storage = replace(state_of(checkpoint), cache_bytes=cache_bytes)
    catalog = read_catalog(storage, __version__)
    if catalog is None:
        _refuse_foreign(checkpoint)
        return storage, None, None
    complete_offsets(checkpoint)
    manifest = ManifestLog(storage).latest()
    if manifest is not None:
        check_offsets(checkpoint, manifest)
        verify_all(storage, manifest.named)
        require_gathered(storage, (file for groups in manifest.groups for file in groups.files))
        require_gathered(storage, (file for made in manifest.made for file in made.files))
    return storage, catalog, manifest


def _refuse_foreign(checkpoint: str) -> None:
    """A directory with files but without our catalog belongs to somebody else."""
    root = Storage.open(checkpoint)
    files = root.list(recursive=False)
    foreign = [file.path for file in files if not posixpath.basename(file.path).startswith(".")]
    if foreign or root.exists("spark") or root.exists("offsets") or root.exists("commits"):
        found = foreign[0] if foreign else "a Spark checkpoint without Plait's catalog"
        raise CheckpointError(
            f"'{checkpoint}' is not a Plait checkpoint: expected plait/{PATH}, found {found}. Choose "
            "an empty or new directory."
        )


def finish_last_batch(
    storage: Storage, owner: Whose, manifest: Manifest | None, bindings: Iterable[Binding], streams: Iterable[Stream]
) -> Finished:
    """Publish what the last batch committed, then delete what attempts that lost have staged or stored.

    Raises SinkError, before anything is written, if a sink holds results of somebody else. One that cannot be looked at
    now, or in which something cannot be published, stops no other: `claim_sink` is asked again before anything is
    delivered to it.
    """
    identity, places, claimed = owner.identity, [], set()
    for place in _places(storage, owner, manifest, bindings):
        with suppress(OSError):
            place.refuse()
            places.append(place)  # what could not be looked at is not taken either
    if not owner.begun_without_markers or manifest is None:  # else it has one from Spark, until all sinks are marked
        keep_identity(storage, identity)
    for place in places:
        with suppress(OSError):
            place.take()
            claimed.add(place.claim.owner.query)
    keep_identity(storage, identity)
    failed = () if manifest is None else _publish_again(storage, manifest)
    for place in places:
        name = place.claim.owner.query
        # What is staged there is not all left by attempts that lost.
        if name not in claimed or any(each.is_in(place.directory) for each in failed):
            claimed.discard(name)
            continue
        try:
            place.recover()
        except OSError:
            claimed.discard(name)
    for stream in streams:
        if stream.dead_letter is not None and not any(each.is_in(stream.dead_letter) for each in failed):
            mine = rf"{re.escape(quote(stream.name, safe=''))}-\d{{8,}}-.*-{tag_of(identity)}\..*"
            discard_staged(stream.dead_letter, re.compile(mine))
            remove_later(stream.dead_letter, stream.name, tag_of(identity), -1 if manifest is None else manifest.batch)
    if manifest is not None:
        note_unfed(storage, manifest.unfed)
        log = ManifestLog(storage)
        collect(storage, tuple(log.read(number) for number in log.batches()))
    return Finished(claimed=frozenset(claimed), unpublished=tuple(each.publication for each in failed))


def refuse_ended(
    storage: Storage,
    owner: Whose,
    manifest: Manifest | None,
    bindings: Iterable[Binding],
    streams: Iterable[Stream],
    dropped: Collection[str] = (),
) -> None:
    """Refuse a checkpoint whose input has ended, once what its last batch committed is in sight. Raises OptionError.

    One whose sinks have not taken all results yet is not refused: they are offered once more. Those of queries that
    were `dropped` are deleted here: no batch will come that does it.
    """
    if manifest is None or not manifest.ended:
        return
    left = without_dropped(manifest, dropped)
    if left != manifest:
        manifest = left
        ManifestLog(storage).amend(manifest)
    finished = finish_last_batch(storage, owner, manifest, bindings, streams)
    if not (finished.unpublished or manifest.undelivered):
        raise ended_error(posixpath.dirname(storage.uri))


def refuse_changed(checkpoint: str, manifest: Manifest | None, streams: Iterable[Stream]) -> None:
    """Refuse to let queries go on with the groups of another query than before. Raises CheckpointError."""
    for name in () if manifest is None else changed_streams(manifest, streams):
        raise CheckpointError(
            f"query '{name}' was another one when its groups were last read on checkpoint '{checkpoint}', and queries "
            "read them: what they have gathered would be of both. Give the new query another name, and those that read "
            "it too; or run once without those that read it, and they begin anew."
        )


def without_dropped(manifest: Manifest, dropped: Container[str], replaced: Container[str] = ()) -> Manifest:
    """Return the manifest without what waits of queries that were dropped by name. What those that are `replaced` have
    gathered stays: whether the new ones can use it, they know.
    """
    return replace(
        manifest,
        undelivered=tuple(late for late in manifest.undelivered if late.query not in dropped),
        groups=tuple(groups for groups in manifest.groups if groups.query not in dropped or groups.query in replaced),
    )


def _publish_again(storage: Storage, manifest: Manifest) -> tuple[Unpublished, ...]:
    """Publish what the manifest names. What it names for the second time could not be published with the batch before,
    so that it is nowhere to be seen does not tell that it has been.
    """
    log = ManifestLog(storage)
    earlier = [number for number in log.batches() if number < manifest.batch]
    known = set(log.read(earlier[-1]).publications) if earlier else set()
    waited = [publication for publication in manifest.publications if publication in known]
    fresh = [publication for publication in manifest.publications if publication not in known]
    return (*publish(waited), *publish(fresh, may_be_out=True))


def claim_sink(storage: Storage, manifest: Manifest | None, binding: Binding) -> None:
    """Make sure that what is in the query's sink is its own, and nothing that will be published again. Raises SinkError
    or OSError if it is not, or if that cannot be told now.

    Called before anything of the next batch is staged, for a sink that could not be looked at when the run started. It
    may still hold what a checkpoint restored from a backup has not done, or what was not published.
    """
    directory = kind_of(binding.sink.spec).directory(binding.sink.spec) or ""
    waiting = () if manifest is None else manifest.publications
    failed = publish(each for each in waiting if Unpublished(publication=each, reason="").is_in(directory))
    if failed:
        raise SinkError(failed[0].reason)
    for place in _places(storage, whose(storage), manifest, [binding]):
        place.refuse()
        place.take()
        place.recover()


def refuse_results_of_others(storage: Storage, manifest: Manifest | None, bindings: Iterable[Binding]) -> None:
    """Raise SinkError if one of these sinks holds results of somebody else. Writes nothing. `manifest`: the last."""
    for place in _places(storage, whose(storage), manifest, bindings):
        with suppress(OSError):  # as at a start: what cannot be looked at now is asked again before a delivery
            place.refuse()


def _places(
    storage: Storage, owner: Whose, manifest: Manifest | None, bindings: Iterable[Binding]
) -> list[ClaimedPlace]:
    """Return where the results of these queries go, each claimed for its query."""
    waiting, checkpoint = () if manifest is None else manifest.undelivered, posixpath.dirname(storage.uri)
    places = []
    for binding in bindings:
        query, spec = binding.query.name, binding.sink.spec
        claim = Claim(
            owner=Owner(checkpoint=owner.identity, place=checkpoint, query=query),
            adopts=owner.begun_without_markers and _has_run(manifest, query),
            batch=-1 if manifest is None else manifest.batch,
            waiting=frozenset(late.batch for late in waiting if late.query == query),
        )
        places.append(kind_of(spec).claimed(spec, claim))
    return places


def _has_run(manifest: Manifest | None, query: str) -> bool:
    return manifest is not None and any(progress.query == query for progress in manifest.queries)
