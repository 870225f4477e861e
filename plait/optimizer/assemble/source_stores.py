"""Lay out the stores of sources: which columns and keys they keep, for whom and how long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plait.optimizer.assemble.draft import Draft
from plait.optimizer.options import PlanOptions
from plait.plan.model import Requirement, Selection, Store, ValueColumn
from plait.plan.relations import (
    bare_value,
    kept_us_of,
    keys_of,
    projected_columns,
    requirements_of,
    values_read,
    widest_window,
)
from plait.query.model import Query, Relation, Source, Stream
from plait.query.types import is_calendar


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A relation of a query that needs a store."""

    query: Query
    relation: Relation


def lay_out_source_stores(draft: Draft) -> Draft:
    """Add the stores of sources with what they keep for whom, ordered by id.

    A stream that keeps everything has a store even if no query reads it, so that later queries can reach back.
    """
    options = draft.options
    uses: dict[str, list[Use]] = {}
    sources: dict[str, Source] = {}
    for query in draft.queries.own:
        for relation in query.relations:
            store_id = draft.store_name(query.name, relation.source)
            sources[store_id] = options.source(relation.source, reader=query.name)
            uses.setdefault(store_id, []).append(Use(query=query, relation=relation))
    read = {source.name for source in sources.values()}
    for source in options.sources:
        if keeps_all(source) and source.name not in read:
            sources[draft.store_name("", source.name)] = source
    stores = (
        source_store(store_id, sources[store_id], uses.get(store_id, []), options) for store_id in sorted(sources)
    )
    return replace(draft, stores=tuple(stores))


def source_store(store_id: str, source: Source, uses: list[Use], options: PlanOptions) -> Store:
    """Return the store of a source with all that relations use of it."""
    keys = {key.name: key for use in uses for key in keys_of(use.query, use.relation.alias)}
    return Store(
        id=store_id,
        source=source.name,
        is_table=not isinstance(source, Stream),
        columns=_columns(source, uses),
        keys=tuple(keys[name] for name in sorted(keys)),
        requirements=_requirements(source, uses),
        indexes=(),
        partition_by=(),
        parallelism=options.parallelism_of(source.name),
        window_us=_window_us(source, uses),
        keeps_all=keeps_all(source),
        values=_values(source, uses),
        waits=any(use.relation.waiting is not None for use in uses),
    )


def keeps_all(source: Source) -> bool:
    """Tell whether a source is stored whole, whoever reads it."""
    return isinstance(source, Stream) and source.keep == "all"


def _columns(source: Source, uses: list[Use]) -> tuple[str, ...]:
    needed = {column for use in uses for column in projected_columns(use.query, use.relation.alias)}
    needed |= {operand for operand in _operands(uses) if isinstance(operand, str)}
    if keeps_all(source):
        needed |= {column.name for column in source.schema or () if not is_calendar(column.type)}
    return tuple(sorted(needed))


def _operands(uses: list[Use]) -> Iterator[str | ValueColumn]:
    return (operand for use in uses for operand in values_read(use.query, use.relation.alias))


def _values(source: Source, uses: list[Use]) -> tuple[ValueColumn, ...]:
    values = {operand.name: operand for operand in _operands(uses) if not isinstance(operand, str)}
    if keeps_all(source):
        kept = (bare_value(column) for column in source.schema or () if is_calendar(column.type))
        values.update((value.name, value) for value in kept)
    return tuple(values[name] for name in sorted(values))


def _requirements(source: Source, uses: list[Use]) -> tuple[Requirement, ...]:
    """Return the distinct requirements, ordered: an equal one of a second query changes nothing."""
    needs = {need for use in uses for need in requirements_of(use.query, use.relation)}
    if keeps_all(source):
        needs.add(Requirement(selection=Selection(), keys=()))
    return tuple(sorted(needs, key=lambda need: (need.selection.sql, need.keys)))


def _window_us(source: Source, uses: list[Use]) -> int | None:
    if not isinstance(source, Stream):
        return None
    windows = [kept_us_of(use.relation) for use in uses]
    if keeps_all(source):
        windows.append(source.window_us)
    return widest_window(windows)
