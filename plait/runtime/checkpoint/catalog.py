"""The checkpoint's catalog: what was read and asked when it was last used, so that a changed script can be told apart
from a mistaken one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from plait.errors import CheckpointError
from plait.plan.codec import PartTexts, encode
from plait.plan.model import Plan
from plait.query.model import Column, Source, Stream
from plait.state.garbage import plan_path
from plait.state.storage import Storage
from plait.version import __version__

FORMAT = 1
PATH = "catalog.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownColumn:
    """A column of a known source. Rows that arrived before batch `since` do not have it: it is NULL there."""

    name: str
    type: str
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSource:
    """A source as the checkpoint knows it; `time` None for a table. `path`: where a script says its files are, None
    where it says nothing of the kind.
    """

    name: str
    time: str | None
    columns: tuple[KnownColumn, ...]
    path: str | None = None

    def since(self, column: str) -> int | None:
        """Return the batch from which on rows have this column, None if the source never had it."""
        return next((known.since for known in self.columns if known.name == column), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """`epoch` counts the plans this checkpoint has seen; `named`: its sources have names in Spark's offset log. `read`:
    the streams that the last plan reads; None in a catalog of an earlier version. `offsets`: where Spark had come to
    with each stream, by its name there, when it was last read by a finished batch.
    """

    epoch: int = 0
    named: bool = True
    sources: tuple[KnownSource, ...] = ()
    queries: tuple[str, ...] = ()
    read: tuple[str, ...] | None = None
    offsets: tuple[tuple[str, str], ...] = ()

    def source(self, name: str) -> KnownSource | None:
        """Return what is known of a source."""
        return next((known for known in self.sources if known.name == name), None)


def read_catalog(storage: Storage, version: str) -> Catalog | None:
    """Return the checkpoint's catalog, None on a new checkpoint. Raises CheckpointError if it is damaged or of a
    newer format.
    """
    if not storage.exists(PATH):
        return None
    try:
        document = json.loads(storage.read_bytes(PATH))
        written = int(document["format"])
        if written > FORMAT:
            raise CheckpointError(
                f"checkpoint {storage.uri} was written by Plait {document.get('plait')} (format "
                f"{written}); this is Plait {version} "
                f"(format {FORMAT}). Use that version or a newer one, or another checkpoint."
            )
        return _decode(document)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"the catalog {storage.name(PATH)} is damaged ({error}). Restore the checkpoint from a "
            "backup, or use another one."
        ) from error


def write_epoch(storage: Storage, catalog: Catalog, plan: Plan, written: PartTexts | None = None) -> str:
    """Write the catalog and the plan of its epoch; return the plan's name: epoch and content. `written`: what plans
    before it were written as.
    """
    text = encode(plan, written).encode()
    name = f"{catalog.epoch}-{hashlib.sha256(text).hexdigest()[:12]}"
    write_catalog(storage, catalog, __version__)
    storage.write_file(plan_path(name), text)
    return name


def write_catalog(storage: Storage, catalog: Catalog, version: str) -> None:
    """Replace the checkpoint's catalog, atomically and durably."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "plait": version,
        "epoch": catalog.epoch,
        "named": catalog.named,
        "queries": list(catalog.queries),
        "read": None if catalog.read is None else list(catalog.read),
        "offsets": dict(catalog.offsets),
        "sources": [
            {
                "name": source.name,
                "time": source.time,
                "path": source.path,
                "columns": [[column.name, column.type, column.since] for column in source.columns],
            }
            for source in catalog.sources
        ],
    }
    storage.write_file(PATH, json.dumps(document, indent=1, ensure_ascii=False).encode(), durable=True)


def _decode(document: dict[str, Any]) -> Catalog:
    return Catalog(
        epoch=int(document["epoch"]),
        named=bool(document["named"]),
        queries=tuple(document["queries"]),
        read=None if document.get("read") is None else tuple(document["read"]),
        offsets=tuple(sorted(document.get("offsets", {}).items())),
        sources=tuple(
            KnownSource(
                name=source["name"],
                time=source["time"],
                path=source.get("path"),
                columns=tuple(
                    KnownColumn(name=name, type=kind, since=since) for name, kind, since in source["columns"]
                ),
            )
            for source in document["sources"]
        ),
    )


def evolve(
    catalog: Catalog | None, sources: Iterable[Source], queries: Iterable[str], next_batch: int, *, named: bool
) -> Catalog:
    """Return the catalog for the next epoch. Sources that are not used now stay known, in case they come back.

    Raises CheckpointError if a source changed in a way its stored tuples cannot follow: only new columns can be taken.
    """
    before = catalog or Catalog(named=named)
    _check_names(before, named)
    known = {source.name: source for source in before.sources}
    for source in sources:
        known[source.name] = _evolve_source(known.get(source.name), source, next_batch)
    return replace(
        before,
        epoch=before.epoch + 1,
        sources=tuple(known[name] for name in sorted(known)),
        queries=tuple(sorted(queries)),
    )


def _check_names(before: Catalog, named: bool) -> None:
    """Spark's offset log either names its sources or numbers them, from the first batch on."""
    if before.named == named:
        return
    words = ("with named streams", "without")
    was, now = words if before.named else words[::-1]
    raise CheckpointError(
        f"the checkpoint was begun {was}, this session reads {now}: expected the same setting of "
        "spark.sql.streaming.queryEvolution.enableSourceEvolution as before. Set it so, or use another checkpoint."
    )


def refuse_other_streams(before: Catalog | None, now: Catalog) -> None:
    """Refuse to read other streams, or the same in another order, where Spark's offset log numbers them: it would take
    what one has read for what another has. Raises CheckpointError.
    """
    if now.named or before is None or before.read is None or before.read == now.read:
        return
    raise CheckpointError(
        f"the checkpoint was begun with streams that have no names for Spark, and queries read {_listed(before.read)}: "
        f"expected the same in this order, found {_listed(now.read or ())}. Register them so, or use another "
        "checkpoint, with a session of plait.runtime.spark.session.open_session(), on which streams can come and go."
    )


def refuse_names_of_sources(before: Catalog | None, queries: Iterable[str]) -> None:
    """Refuse queries whose groups are read under the name of a stream or table of before: what is stored of that would
    be taken for groups. Raises CheckpointError.
    """
    for name in queries:
        if before is not None and before.source(name) is not None:
            raise CheckpointError(
                f"query '{name}', whose groups other queries read, is called like a stream or table that the "
                "checkpoint knows: what is stored of that would count as groups. Give the query another name, or use "
                "another checkpoint."
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


def _time_of(stream: Stream) -> str:
    return stream.time if stream.computed is None else stream.computed.sql


def _evolve_source(before: KnownSource | None, source: Source, next_batch: int) -> KnownSource:
    time = _time_of(source) if isinstance(source, Stream) else None
    columns, path = source.schema or (), path_of(source)
    if before is None:
        added = tuple(KnownColumn(name=column.name, type=column.type, since=-1) for column in columns)
        return KnownSource(name=source.name, time=time, columns=added, path=path)
    if (before.time is None) != (time is None):
        kinds = ("a table", "a stream") if before.time is None else ("a stream", "a table")
        raise _changed(source.name, f"it was {kinds[0]} and is now {kinds[1]}")
    if before.time != time:
        raise _changed(source.name, f"its event time was '{before.time}' and is now '{time}'")
    if time is not None:
        _refuse_another_place(before, path)
    _refuse_changes(before, columns)
    added = tuple(
        KnownColumn(name=column.name, type=column.type, since=next_batch)
        for column in columns
        if before.since(column.name) is None
    )
    return replace(before, columns=before.columns + added, path=path or before.path)


def path_of(source: Source) -> str | None:
    """Return where the files of a source are, as a script says it; None for a DataFrame and for what has no path."""
    options = () if source.connector is None else source.connector.options
    path = next((value for name, value in options if name.lower() == "path"), None)
    return None if path is None else path.removeprefix("file://").rstrip("/")


def _refuse_another_place(before: KnownSource, path: str | None) -> None:
    """Spark knows the files it has read by their paths. Under another path all of them would be new, those that were
    read already and only moved included: then every result of theirs would come a second time.
    """
    if before.path is not None and path is not None and path != before.path:
        raise CheckpointError(
            f"stream '{before.name}' read '{before.path}' so far and now reads '{path}'. All files there would count "
            "as new, and if they are the old ones, moved, every result would come twice. Restore the path (a link to "
            f"the new place will do); to read '{path}' from its start as a stream of its own, give it another name; or "
            "use another checkpoint."
        )


def _refuse_changes(before: KnownSource, columns: tuple[Column, ...]) -> None:
    now = {column.name: column.type for column in columns}
    for known in before.columns:
        if known.name not in now:
            raise _changed(before.name, f"column '{known.name}' ({known.type}) is gone")
        if now[known.name] != known.type:
            raise _changed(before.name, f"column '{known.name}' was {known.type} and is now {now[known.name]}")


def _changed(source: str, what: str) -> CheckpointError:
    return CheckpointError(
        f"'{source}' does not fit the checkpoint: {what}. A checkpoint takes new columns (NULL in "
        "earlier rows) and nothing else: "
        "restore the old definition, give the source a new name, or use another checkpoint."
    )
