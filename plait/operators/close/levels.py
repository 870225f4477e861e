"""Queries over the groups of other queries: how far each level has come.

The groups of a query are rows of a stream without a source, a **derived** one. What batch b has made of them is in
files that manifest b names, and batch b + 1 takes them in, before it probes. So what a query over groups finds is as
much a function of the input as they are, and a batch that is done twice takes in the same.

The sources' watermark decides who is late and closes the windows of queries over sources. A derived stream has come to
where the groups of its query had been written when the last batch began: all groups of windows that end by then have
been taken in, and others end later. That is kept as its bar (`SourceProgress.late_before_us`); none of its rows is
late. A query over groups has come to the lowest of these and the watermark, and what is stored is kept until the last
level has passed it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from plait.operators.ingest.report_sums import highest
from plait.plan.relations import source_of
from plait.query.model import Query, Stream
from plait.query.time_windows import Window
from plait.state.model import END_OF_TIME_US, TABLE_BATCH, MadeGroups, Manifest, SourceProgress, oldest_of

NOTHING_TAKEN: Final[Mapping[str, int | None]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """The query whose groups a derived stream is of: their `window`, and its `identity` as in `OpenGroups`."""

    query: Query
    window: Window
    identity: str


Makers: TypeAlias = Mapping[str, Maker]
"""By name, which is that of the stream."""


def taken_after(before: Manifest | None, makers: Makers) -> dict[str, int | None]:
    """Return up to which end the groups of these queries have been taken in, once a batch has taken in those that the
    manifest before it names. What another query of that name had written counts for nothing.
    """
    groups = () if before is None else before.groups
    written = {(each.query, each.identity): each.over_until_us for each in groups}
    return {name: _come_to(written.get((name, maker.identity)), maker.window) for name, maker in makers.items()}


def _come_to(over_until_us: int | None, window: Window) -> int | None:
    """Return where a stream of groups has come to: to the end of time once no window is open."""
    if over_until_us is None or over_until_us < window.over_until(END_OF_TIME_US):
        return over_until_us
    return END_OF_TIME_US


def with_taken(progress: tuple[SourceProgress, ...], taken: Mapping[str, int | None]) -> tuple[SourceProgress, ...]:
    """Return the progress with the bars of derived streams raised to where they have come to."""
    return tuple(
        replace(each, late_before_us=highest(each.late_before_us, taken[each.source])) if each.source in taken else each
        for each in progress
    )


def marks_of(streams: Iterable[str], progress: Iterable[SourceProgress]) -> dict[str, int | None]:
    """Return where these derived streams have come to."""
    bars = {each.source: each.late_before_us for each in progress}
    return {stream: bars.get(stream) for stream in streams}


def watermark_of(query: Query, watermark_us: int | None, marks: Mapping[str, int | None]) -> int | None:
    """Return before which event time nothing of a query can come any more. `marks`: of derived streams."""
    read = (relation.source for relation in query.relations)
    return oldest_of([watermark_us, *(marks[source] for source in read if source in marks)])


def marks_in_the_end(makers: Makers, watermark_us: int | None) -> dict[str, int | None]:
    """Return where derived streams will have come to if the watermark stays there and batches go on."""
    marks: dict[str, int | None] = {}

    def mark_of(stream: str) -> int | None:
        if stream not in marks:
            read = {relation.source for relation in makers[stream].query.relations if relation.source in makers}
            reached, window = oldest_of([watermark_us, *map(mark_of, sorted(read))]), makers[stream].window
            marks[stream] = None if reached is None else _come_to(window.over_until(reached), window)
        return marks[stream]

    return {stream: mark_of(stream) for stream in makers}


def have_ended(streams: Iterable[str], progress: Iterable[SourceProgress]) -> bool:
    """Tell whether all groups of these streams have been taken in, and no more can come."""
    return all(mark == END_OF_TIME_US for mark in marks_of(streams, progress).values())


def with_streams(manifest: Manifest, streams: Iterable[Stream]) -> Manifest:
    """Return the manifest for queries that read these derived streams.

    What no query reads is not made, and rows that are missing in the middle would be worse than none: so nothing stays
    of a stream that nobody reads any more, or that is of other groups now. Who reads it later begins with the groups of
    then.
    """
    read = {stream.name: stream.derived or "" for stream in streams}
    known = {made.stream: made for made in manifest.made if read.get(made.stream) == made.identity}
    met = {made.stream for made in manifest.made} | {each.source for each in manifest.sources if each.source in read}
    gone = met - known.keys()
    manifest = replace(
        manifest, made=tuple(known.get(name) or MadeGroups(stream=name, identity=read[name]) for name in sorted(read))
    )
    return _without(manifest, gone) if gone else manifest


def _without(manifest: Manifest, gone: Container[str]) -> Manifest:
    """Return the manifest without these streams, and without intermediate stores: what is in those of other streams can
    be had again.
    """
    sources = {each.source for each in manifest.sources}
    kept = [
        bucket
        for bucket in manifest.buckets
        if bucket.batch_min == TABLE_BATCH
        or (source_of(bucket.store) in sources and source_of(bucket.store) not in gone)
    ]
    return replace(
        manifest,
        buckets=tuple(kept),
        fillings=(),
        sources=tuple(each for each in manifest.sources if each.source not in gone),
        windows=tuple(each for each in manifest.windows if source_of(each.store) not in gone),
    )


def changed_streams(manifest: Manifest, streams: Iterable[Stream]) -> Iterator[str]:
    """Yield the streams of which the manifest has groups of another query."""
    known = {made.stream: made.identity for made in manifest.made}
    for stream in streams:
        if known.get(stream.name, stream.derived) != stream.derived:
            yield stream.name


__all__ = [
    "NOTHING_TAKEN",
    "Maker",
    "Makers",
    "changed_streams",
    "have_ended",
    "marks_in_the_end",
    "marks_of",
    "taken_after",
    "watermark_of",
    "with_streams",
    "with_taken",
]
