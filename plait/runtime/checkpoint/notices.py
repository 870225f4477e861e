"""What a user should know about a checkpoint that is opened again with other streams than before."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from plait.operators.close.keeping import resting_windows
from plait.operators.close.lacking import moment_text
from plait.operators.probe.partials import NO_LOW
from plait.plan.model import Plan
from plait.runtime.checkpoint.catalog import Catalog
from plait.runtime.notice import Notice
from plait.runtime.outputs.grouping import Grouping
from plait.state.model import Manifest, OpenGroups


def notices(
    before: Catalog | None,
    now: Catalog,
    manifest: Manifest | None,
    plan: Plan,
    registered: frozenset[str],
    dropped: frozenset[str] = frozenset(),
    groupings: Mapping[str, Grouping | None] = MappingProxyType({}),
    decided_from: Mapping[str, int | None] = MappingProxyType({}),
    *,
    backfill: bool = False,
) -> tuple[Notice, ...]:
    """Return one notice for every stream that comes back, rests, or seems to have been renamed, for every query
    that is left out or was `dropped` although its sink has not taken all of its results or it has windows that are not
    over, for every one that comes back to such windows or cannot go on with them, and for every one that `backfill`
    leaves as it is because it comes back or because nobody can tell what it would have had, or fills up with the next
    batch. `groupings`: how today's queries group; `decided_from`: from which event time on the new ones have of the
    past what the watermark decided, None: of no time.
    """
    if before is None or manifest is None:
        return ()
    read = frozenset(now.read or ())
    return (
        *_returned(before, manifest, read),
        *_resting(manifest, plan),
        *_renamed(before, now, registered, read),
        *_undelivered(manifest, plan, dropped),
        *_open_windows(manifest, dropped, groupings),
        *((*_not_filled(manifest, plan), *_filled_later(manifest, plan, decided_from)) if backfill else ()),
    )


def _returned(before: Catalog, manifest: Manifest, read: frozenset[str]) -> list[Notice]:
    seen = {known.source for known in manifest.sources if known.rows}
    rows = _rows(manifest)
    away = read & seen - frozenset(seen if before.read is None else before.read)
    return [
        Notice(
            kind="stream read again",
            of=stream,
            text=f"stream '{stream}' is read again: it goes on where it had come to, with {rows.get(stream, 0)} rows "
            "of it still stored",
        )
        for stream in sorted(away)
    ]


def _resting(manifest: Manifest, plan: Plan) -> list[Notice]:
    rows = _rows(manifest)
    return [
        Notice(
            kind="rows not needed",
            of=store,
            text=f"no query needs the {rows[store]} stored rows of '{store}' now; they stay "
            f"{'for good, because its window is unbounded,' if window_us is None else 'until its window has passed'} "
            "in case one does again",
        )
        for store, window_us in sorted(resting_windows(plan, manifest).items())
    ]


def _renamed(before: Catalog, now: Catalog, registered: frozenset[str], read: frozenset[str]) -> list[Notice]:
    notices = []
    for stream in sorted(read):
        known = now.source(stream)
        if known is None or known.path is None or before.source(stream) is not None:
            continue
        former = [old.name for old in before.sources if old.path == known.path and old.name not in registered]
        notices += [
            Notice(
                kind="stream renamed",
                of=stream,
                text=f"stream '{stream}' reads '{known.path}', as stream '{old}' did: to the checkpoint it is another "
                f"stream, read from its start and without the rows stored of '{old}'. If it is the same one, give it "
                "its old name",
            )
            for old in former
        ]
    return notices


def _undelivered(manifest: Manifest, plan: Plan, dropped: frozenset[str]) -> list[Notice]:
    rows, reasons = dict[str, int](), dict[str, str]()
    for late in manifest.undelivered:
        if late.query in dropped or late.query not in plan.queries:
            rows[late.query] = rows.get(late.query, 0) + late.rows
            reasons.setdefault(late.query, late.reason or "the run was ended before it could tell")
    return [
        Notice(
            kind="results undelivered",
            of=query,
            text=f"query '{query}' was dropped, and with it {count} rows of its results, which its sink has not taken "
            f"({reasons[query]}): they are deleted with the next batch"
            if query in dropped
            else f"query '{query}' is left out, and {count} rows of its results, which its sink has not taken "
            f"({reasons[query]}), wait in the checkpoint until it runs again. To delete them, drop it by name",
        )
        for query, count in sorted(rows.items())
    ]


def _open_windows(
    manifest: Manifest, dropped: frozenset[str], groupings: Mapping[str, Grouping | None]
) -> list[Notice]:
    """Tell of queries that had gathered rows and do not simply go on with them. `groupings`: of today's queries."""
    here = {progress.query for progress in manifest.queries if progress.left is None}
    found = []
    for groups in manifest.groups:
        grouping, rows = groupings.get(groups.query), sum(file.rows for file in groups.files)
        if groups.query not in groupings:
            found += [_waiting(groups.query, rows, groups.query in dropped)] if rows else []
        elif grouping is None or grouping.identity != groups.identity:
            found += [_begun_anew(groups.query, rows)] if rows else []
        elif groups.query not in here:
            found.append(_incomplete(groups))
    return found


def _waiting(query: str, rows: int, is_dropped: bool) -> Notice:
    return Notice(
        kind="windows waiting",
        of=query,
        text=f"query '{query}' was dropped, and with it {rows} rows that it has kept for windows of event time that "
        "are not over: they are deleted with the next batch"
        if is_dropped
        else f"query '{query}' is left out, and {rows} rows that it has kept for windows of event time that are not "
        "over wait in the checkpoint until it runs again. To delete them, drop it by name",
    )


def _begun_anew(query: str, rows: int) -> Notice:
    return Notice(
        kind="windows begun anew",
        of=query,
        text=f"query '{query}' groups other rows than when it last ran, or keeps them otherwise (its text, the types "
        f"of its columns, ANSI mode or the version of Plait has changed): {rows} rows that were kept for windows of "
        "event time that are not over are deleted with the next batch, and those windows begin anew. To have them "
        "complete, run what it was before once more, and give the new query another name",
    )


def _incomplete(groups: OpenGroups) -> Notice:
    return Notice(
        kind="windows incomplete",
        of=groups.query,
        text=f"query '{groups.query}' comes back: its windows of event time go on with what it had kept, and none is "
        "written twice, but those that were open while it was left out lack the results of what came meanwhile",
    )


def _not_filled(manifest: Manifest, plan: Plan) -> list[Notice]:
    return [
        Notice(
            kind="query not filled",
            of=known.query,
            text=f"query '{known.query}' was here before, until batch {known.left}: it goes on with what comes, and is "
            "not filled up with the past, of which it has had results already. To have a query filled up, give it "
            "another name",
        )
        for known in manifest.queries
        if known.left is not None and known.query in plan.queries
    ]


def _filled_later(manifest: Manifest, plan: Plan, decided_from: Mapping[str, int | None]) -> list[Notice]:
    known = {progress.query for progress in manifest.queries}
    new = sorted(set(plan.queries) - known) if manifest.batch >= 0 else []
    return [_to_be_filled(query, decided_from.get(query, NO_LOW)) for query in new]


def _to_be_filled(query: str, decided_from_us: int | None) -> Notice:
    if decided_from_us is None:
        return _never_filled(query)
    text = (
        f"query '{query}' is new: the results of what is stored come with the next batch, or bit by bit "
        "with those that follow if that is much, once something new has arrived"
    )
    if decided_from_us > NO_LOW:
        text += (
            f"; rows without a partner and windows of time from event time {moment_text(decided_from_us)} on, because "
            "of what was before not all is stored that decides them (OPTIONS (keep 'all') and a longer WINDOW on the "
            "streams keep more)"
        )
    return Notice(kind="query to be filled", of=query, text=text)


def _never_filled(query: str) -> Notice:
    return Notice(
        kind="query not filled",
        of=query,
        text=f"query '{query}' is not filled up with the past by plait.backfill: rows that it would need are not "
        "stored any more, and of no event time it can be told which rows had no partner, or what was in a window of "
        "time (windows are unbounded, a session may have begun earlier, it reads a table that has REFRESH, or strategy "
        "'independent' gives it stores of its own, which are empty). It has what is decided from now on. To have all, "
        "run it on a checkpoint of its own",
    )


def _rows(manifest: Manifest) -> dict[str, int]:
    rows: dict[str, int] = {}
    for bucket in manifest.buckets:
        rows[bucket.store] = rows.get(bucket.store, 0) + bucket.rows
    return rows


__all__ = ["notices"]
