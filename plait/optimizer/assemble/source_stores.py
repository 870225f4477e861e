"""Lay out the stores of sources: which columns and keys they keep, for whom and how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plait.optimizer.assemble.draft import Draft
from plait.optimizer.options import PlanOptions
from plait.plan.model import Requirement, Selection, Store, ValueColumn
from plait.plan.relations import StoreNeed, bare_value, needs_of, widest_window
from plait.query.model import Source, Stream
from plait.query.types import is_calendar


def lay_out_source_stores(draft: Draft) -> Draft:
    """Add the stores of sources with what they keep for whom, ordered by id.

    A stream that keeps everything has a store even if no query reads it, so that later queries can reach back.
    """
    options = draft.options
    needs: dict[str, list[StoreNeed]] = {}
    sources: dict[str, Source] = {}
    for query in draft.queries.own:
        for need in needs_of(query):
            store_id = draft.store_name(query.name, need.source)
            sources[store_id] = options.source(need.source, reader=query.name)
            needs.setdefault(store_id, []).append(need)
    read = {source.name for source in sources.values()}
    for source in options.sources:
        if keeps_all(source) and source.name not in read:
            sources[draft.store_name("", source.name)] = source
    stores = (
        source_store(store_id, sources[store_id], needs.get(store_id, []), options) for store_id in sorted(sources)
    )
    return replace(draft, stores=tuple(stores))


def source_store(store_id: str, source: Source, needs: Sequence[StoreNeed], options: PlanOptions) -> Store:
    """Return the store of a source with all that relations need of it."""
    keys = {key.name: key for need in needs for key in need.keys}
    return Store(
        id=store_id,
        source=source.name,
        is_table=not isinstance(source, Stream),
        columns=_columns(source, needs),
        keys=tuple(keys[name] for name in sorted(keys)),
        requirements=_requirements(source, needs),
        indexes=(),
        partition_by=(),
        parallelism=options.parallelism_of(source.name),
        window_us=_window_us(source, needs),
        keeps_all=keeps_all(source),
        values=_values(source, needs),
        waits=any(need.waits for need in needs),
    )


def keeps_all(source: Source) -> bool:
    """Tell whether a source is stored whole, whoever reads it."""
    return isinstance(source, Stream) and source.keep == "all"


def _columns(source: Source, needs: Sequence[StoreNeed]) -> tuple[str, ...]:
    needed = set[str]().union(*(need.columns for need in needs))
    if keeps_all(source):
        needed |= {column.name for column in source.schema or () if not is_calendar(column.type)}
    return tuple(sorted(needed))


def _values(source: Source, needs: Sequence[StoreNeed]) -> tuple[ValueColumn, ...]:
    values = {value.name: value for need in needs for value in need.values}
    if keeps_all(source):
        kept = (bare_value(column) for column in source.schema or () if is_calendar(column.type))
        values.update((value.name, value) for value in kept)
    return tuple(values[name] for name in sorted(values))


def _requirements(source: Source, needs: Sequence[StoreNeed]) -> tuple[Requirement, ...]:
    """Return the distinct requirements, ordered: an equal one of a second query changes nothing."""
    distinct = {requirement for need in needs for requirement in need.requirements}
    if keeps_all(source):
        distinct.add(Requirement(selection=Selection(), keys=()))
    return tuple(sorted(distinct, key=lambda requirement: (requirement.selection.sql, requirement.keys)))


def _window_us(source: Source, needs: Sequence[StoreNeed]) -> int | None:
    if not isinstance(source, Stream):
        return None
    windows = [need.kept_us for need in needs]
    if keeps_all(source):
        windows.append(source.window_us)
    return widest_window(windows)
