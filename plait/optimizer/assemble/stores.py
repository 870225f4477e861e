"""Lay out the stores of sources: what is kept for whom; then, for all stores, how they are reached.

The second half needs to know how many tuples probe by which keys, which the first half's keys help to estimate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from plait.optimizer.assemble.covering import widest_window
from plait.optimizer.assemble.naming import StoreName
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.extents import extent_of
from plait.optimizer.options import PlanOptions
from plait.plan.model import ProbeTree, Requirement, Selection, Store, ValueColumn
from plait.plan.relations import columns_of, keys_of, operands_of, requirement_of, window_of
from plait.query.model import Query, Relation, Source, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A relation of a query that needs a store."""

    query: Query
    relation: Relation


def gather_stores(queries: Iterable[Query], options: PlanOptions, store_name: StoreName) -> tuple[Store, ...]:
    """Return the stores with what they keep, ordered by id, without indexes and partitioning.

    A stream that keeps everything has a store even if no query reads it, so that later queries can reach back.
    """
    uses: dict[str, list[Use]] = {}
    sources: dict[str, Source] = {}
    for query in queries:
        for relation in query.relations:
            store_id = store_name(query.name, relation.source)
            sources[store_id] = options.source(relation.source, reader=query.name)
            uses.setdefault(store_id, []).append(Use(query=query, relation=relation))
    read = {source.name for source in sources.values()}
    for source in options.sources:
        if _keeps_all(source) and source.name not in read:
            sources[source.name.replace("/", "//") if source.name in sources else source.name] = source
    return tuple(
        _gather_store(store_id, sources[store_id], uses.get(store_id, []), options) for store_id in sorted(sources)
    )


def _gather_store(store_id: str, source: Source, uses: list[Use], options: PlanOptions) -> Store:
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
        keeps_all=_keeps_all(source),
        values=_values(uses),
    )


def _keeps_all(source: Source) -> bool:
    return isinstance(source, Stream) and source.keep == "all"


def _columns(source: Source, uses: list[Use]) -> tuple[str, ...]:
    needed = {column for use in uses for column in columns_of(use.query, use.relation.alias)}
    needed |= {operand for operand in _operands(uses) if isinstance(operand, str)}
    if _keeps_all(source):
        needed |= {column.name for column in source.schema or ()}
    return tuple(sorted(needed))


def _operands(uses: list[Use]) -> Iterator[str | ValueColumn]:
    return (operand for use in uses for operand in operands_of(use.query, use.relation.alias))


def _values(uses: list[Use]) -> tuple[ValueColumn, ...]:
    values = {operand.name: operand for operand in _operands(uses) if not isinstance(operand, str)}
    return tuple(values[name] for name in sorted(values))


def _requirements(source: Source, uses: list[Use]) -> tuple[Requirement, ...]:
    """Return the distinct requirements, ordered: an equal one of a second query changes nothing."""
    needs = {requirement_of(use.query, use.relation) for use in uses}
    if _keeps_all(source):
        needs.add(Requirement(selection=Selection(), keys=()))
    return tuple(sorted(needs, key=lambda need: (need.selection.sql, need.keys)))


def _window_us(source: Source, uses: list[Use]) -> int | None:
    if not isinstance(source, Stream):
        return None
    windows = [window_of(use.relation) for use in uses]
    if _keeps_all(source):
        windows.append(source.window_us)
    return widest_window(windows)


def choose_access(
    stores: tuple[Store, ...],
    trees: tuple[ProbeTree, ...],
    arrivals: Mapping[str, float],
    cardinality: Cardinality,
    at_random: Collection[str] = (),
) -> tuple[Store, ...]:
    """Give every store its indexes and its partitioning; `arrivals`: tuples per second by edge.

    The stores of the sources `at_random` are partitioned by nothing, intermediate stores by no key of theirs: what is
    frequent there is frequent in a join with it.
    """
    traffic: dict[str, dict[tuple[str, ...], float]] = {store.id: {} for store in stores}
    routed: dict[str, dict[tuple[str, ...], float]] = {store.id: {} for store in stores}
    by_id = {store.id: store for store in stores}
    for tree in trees:
        for _, step in tree.walk():
            store = by_id[step.member.store]
            telling = tuple(name for name in step.index if _source_of(store, name, by_id) not in at_random)
            _count(traffic[store.id], step.index, arrivals[step.edge])
            if step.matches and telling:
                _count(routed[store.id], telling, arrivals[step.edge])
    return tuple(
        replace(
            store,
            indexes=_indexes(traffic[store.id]),
            partition_by=_partitioning(store, routed[store.id], _Keys(stores=stores, cardinality=cardinality)),
        )
        for store in stores
    )


def _count(probes: dict[tuple[str, ...], float], keys: tuple[str, ...], arriving: float) -> None:
    probes[keys] = probes.get(keys, 0.0) + arriving


def _source_of(store: Store, key: str, stores: Mapping[str, Store]) -> str | None:
    """Return the source that a key of a store comes from."""
    part = store.key(key).part
    if store.intermediate is None or part is None:
        return store.source
    return stores[store.intermediate.parts[part].store].source


def _indexes(traffic: Mapping[tuple[str, ...], float]) -> tuple[tuple[str, ...], ...]:
    """Put the index with most traffic first, because buckets are sorted by it; the others follow by name."""
    used = [index for index in traffic if index]
    if not used:
        return ()
    first = min(used, key=lambda index: (-traffic[index], index))
    return (first, *sorted(set(used) - {first}))


def _partitioning(store: Store, traffic: Mapping[tuple[str, ...], float], keys_known: _Keys) -> tuple[str, ...]:
    """Return the keys that let most probes know their one partition; () if none ever does.

    A single key of a composite routes at least as many probes as the composite, so the composite is taken only where
    the single key has too few distinct values to fill all partitions. Remaining ties: fewer keys, then the name.
    """

    def rank(keys: tuple[str, ...]) -> tuple[float, float, int, tuple[str, ...]]:
        routed = sum(tuples for index, tuples in sorted(traffic.items()) if set(keys) <= set(index))
        distinct = prod(keys_known.distinct(store, key) for key in keys)
        spread = min(distinct, float(store.parallelism))
        return -routed, -spread, len(keys), keys

    choices = {(key,) for index in traffic for key in index} | set(traffic)
    return min(choices, key=rank, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """How many values the keys of stores have."""

    stores: tuple[Store, ...]
    cardinality: Cardinality

    def distinct(self, store: Store, name: str) -> float:
        """Return the distinct values of a key; in an intermediate store those of the part it belongs to."""
        key = store.key(name)
        if store.intermediate is not None and key.part is not None:
            part = store.intermediate.parts[key.part].store
            store = next(found for found in self.stores if found.id == part)
        return self.cardinality.distinct(extent_of(store, store.window_us), key)
