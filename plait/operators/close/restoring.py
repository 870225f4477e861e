"""Which stored buckets are to be written again because a new plan wants more in them, and how.

A bucket keeps what the plan of its day asked for. Whatever a later plan asks for is computed from what the bucket
holds, as far as that goes: a raw column may be stored as such, or be known from a key, a kept value or τ; or it is
NULL, because the source got it only later. What cannot be computed is left out of the new layout, and the bucket then
serves the queries that do not need it (`plait.operators.close.lacking` says which do).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from plait.operators.close.lacking import kept_for, with_unstored
from plait.operators.column_names import TAU, word_names
from plait.operators.ingest.projection import IngestSpec, bits_sql, ingest_spec, layout_of
from plait.operators.reports import IngestReport
from plait.operators.traversal.scheduling import lacks
from plait.plan.model import KeyColumn, Requirement, Selection, Store
from plait.plan.relations import bare_value
from plait.query.model import Column, Source, Stream
from plait.query.types import is_calendar
from plait.spelling import backquoted
from plait.state.model import Bucket, Layout, SourceProgress

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DAY_US = 86_400_000_000
_EVERY_ROW = Requirement(selection=Selection(), keys=())

Since = Callable[[str], "int | None"]
"""From which batch on rows of the source have a column; None: it never had it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """Buckets of one store and layout that are written again. `held`: the columns to read of them. `recovered`:
    (raw column, SQL over these) for what the source has and they do not. `spec`: how the rows are taken in again, its
    projection over both.
    """

    buckets: tuple[Bucket, ...]
    held: tuple[str, ...]
    recovered: tuple[tuple[str, str], ...]
    spec: IngestSpec


def rewritings(store: Store, source: Source, buckets: Iterable[Bucket], since: Since) -> tuple[Rewriting, ...]:
    """Return how those of the store's buckets are written again that lack what can be computed from them."""
    groups: dict[tuple[Layout, tuple[tuple[str, str], ...]], list[Bucket]] = {}
    lacking: dict[Layout, bool] = {}
    for bucket in buckets:
        if bucket.layout not in lacking:
            lacking[bucket.layout] = lacks(bucket, store)
        if lacking[bucket.layout]:
            groups.setdefault((bucket.layout, tuple(raw_columns(bucket, source, since).items())), []).append(bucket)
    split = []
    for (layout, raw), group in groups.items():
        rewriting = _rewriting(store, source, layout, dict(raw))
        if rewriting is not None:
            split.append(replace(rewriting, buckets=tuple(group)))
    return tuple(split)


def with_left_out(progress: SourceProgress, rewriting: Rewriting, reports: Iterable[IngestReport]) -> SourceProgress:
    """Return the progress of a source with the rows counted that its rewritten buckets no longer hold, because nothing
    in the new plan asks for them.
    """
    kept = kept_for(need for store, _ in rewriting.spec.stores for need in store.requirements)
    for report in reports:
        if report.unstored and report.unstored_tau_max is not None:
            progress = with_unstored(progress, report.unstored, report.unstored_tau_max, kept)
    return progress


def _rewriting(store: Store, source: Source, old: Layout, raw: Mapping[str, str]) -> Rewriting | None:
    """Return the rewriting of buckets of one layout; None if nothing they lack can be computed."""
    wanted = _narrowed(store, old, frozenset(raw))
    new = layout_of(wanted)
    if {*new.carried, *new.selections} <= {*old.carried, *old.selections}:
        return None
    if len(wanted.requirements) < len(store.requirements):  # whether one wants a row cannot be told, so none goes
        wanted = replace(wanted, requirements=(*wanted.requirements, _EVERY_ROW))
    # Rows that were dead letters are not stored, so nothing of them is asked for here.
    taken = replace(source, dead_letter=None) if isinstance(source, Stream) else source
    spec = ingest_spec(taken, (wanted,))
    held = (*old.carried, *word_names(len(old.selections)))
    projection = tuple((name, _held_sql(name, sql, held, spec, old)) for name, sql in spec.projection)
    return Rewriting(
        buckets=(),
        held=held,
        recovered=tuple((name, sql) for name, sql in raw.items() if name not in held),
        spec=replace(spec, projection=projection),
    )


def _held_sql(name: str, sql: str, held: tuple[str, ...], spec: IngestSpec, old: Layout) -> str:
    """Return how a projected column is had from stored rows: as it is, or by its expression over raw columns."""
    words = word_names(max(len(spec.selections), 2))
    if name in words:
        return bits_sql(spec.selections, words.index(name), held=old.selections)
    return backquoted(name) if name in held else sql


def _narrowed(store: Store, old: Layout, raw: frozenset[str]) -> Store:
    """Return the store with no more than can be had from the raw columns and the old layout."""

    def has(*names: str | None) -> bool:
        return all(name is None or name in carried for name in names)

    carried = frozenset(old.carried)
    keys = tuple(key for key in store.keys if raw.issuperset(key.expression.columns) or has(key.name, key.value_name))
    names = {key.name for key in keys}
    requirements = tuple(
        replace(need, keys=tuple(name for name in need.keys if name in names))
        for need in store.requirements
        if need.selection.sql in old.selections or raw.issuperset(columns_read(need.selection))
    )
    return replace(
        store,
        columns=tuple(column for column in store.columns if column in raw),
        keys=keys,
        values=tuple(value for value in store.values if raw.issuperset(value.expression.columns) or has(value.name)),
        requirements=requirements,
        indexes=tuple(index for index in store.indexes if names.issuperset(index)),
        partition_by=store.partition_by if names.issuperset(store.partition_by) else (),
    )


def columns_read(selection: Selection) -> frozenset[str]:
    """Return the raw columns that a selection is computed from."""
    return frozenset(
        column for each in selection.alternatives for conjunct in each.conjuncts for column in conjunct.columns
    )


def raw_columns(bucket: Bucket, source: Source, since: Since) -> dict[str, str]:
    """Return the raw columns of the source that are known of the bucket's rows, each as SQL over what it holds."""
    selected = {}
    for column in source.schema or ():
        first = since(column.name)
        if column.name in bucket.layout.columns:
            selected[column.name] = backquoted(column.name)
        elif first is not None and first > bucket.batch_max:
            selected[column.name] = f"CAST(NULL AS {column.type})"
        elif (sql := _recovered(column, source, bucket.layout)) is not None:
            selected[column.name] = sql
    return selected


def _recovered(column: Column, source: Source, old: Layout) -> str | None:
    """Return a raw column as SQL over event time, a kept value or a key that is the column itself; None if none is."""
    if isinstance(source, Stream) and column.name == source.time and old.has_tau:
        return _from_micros(backquoted(TAU), column.type)
    value = bare_value(column)
    if value.name in old.values:
        held = backquoted(value.name)
        return f"CAST(CAST({held} AS INTERVAL MONTH) AS {column.type})" if is_calendar(column.type) else held
    # The common type of an equality may be wider than the column.
    wider = _INTEGERS[_INTEGERS.index(column.type) :] if column.type in _INTEGERS else (column.type,)
    keys = (KeyColumn(expression=value.expression, type=kind).name for kind in wider)
    key = next((backquoted(name) for name in keys if name in old.keys), None)
    if key is None:
        return None
    if column.type in _INTEGERS:
        return f"CAST({key} AS {column.type})"
    if column.type == "date":
        return f"date_from_unix_date(CAST({key} AS INT))"
    return f"timestamp_micros({key})" if column.type == "timestamp" else None


def _from_micros(micros: str, kind: str) -> str | None:
    """Return event time as its column had it."""
    match kind:
        case "timestamp":
            return f"timestamp_micros({micros})"
        case "timestamp_ntz":
            return f"CAST(timestamp_micros({micros}) AS TIMESTAMP_NTZ)"  # the session's time zone is UTC
        case "date":
            return f"date_from_unix_date(CAST({micros} DIV {_DAY_US} AS INT))"
        case _:
            return None


__all__ = ["Rewriting", "columns_read", "raw_columns", "rewritings", "with_left_out"]
