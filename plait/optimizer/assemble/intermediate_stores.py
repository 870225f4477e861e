"""Intermediate stores: what a subset of a query's relations becomes inside a plan, and what it has to keep.

An intermediate store is known by content: equal subsets of two queries have one store, whatever their aliases. It keeps
the columns and keys that anybody needs from it later; so a store that fills a larger one is laid out after that one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import combinations
from typing import Any

from plait.optimizer.assemble.covering import CoveredQueries
from plait.optimizer.assemble.draft import Draft
from plait.optimizer.estimate.join_sizes import MemberSizes
from plait.optimizer.options import PlanOptions
from plait.plan.conditions import between, keys_of_right, placed
from plait.plan.model import (
    Intermediate,
    KeyColumn,
    Member,
    Place,
    Requirement,
    Selection,
    Store,
    ValueColumn,
    part_column,
)
from plait.plan.relations import (
    StoreName,
    member_name,
    projected_columns,
    selection_of,
    values_read,
    widest_window,
    window_of,
)
from plait.query.model import Query
from plait.query.predicates import Conjunction, Residual, by_kind

_DIGEST_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """Some relations of a query, as the parts of an intermediate store: by (store, ordinal), aliases beside them."""

    query: Query
    aliases: tuple[str, ...]
    intermediate: Intermediate

    @classmethod
    def of(cls, query: Query, aliases: Collection[str], store_name: StoreName) -> Subset:
        """Return the subset with these aliases, given in any order."""
        ordered = sorted(
            aliases,
            key=lambda alias: (store_name(query.name, query.relation(alias).source), query.canonical(alias)[1]),
        )
        return cls(query=query, aliases=tuple(ordered), intermediate=_intermediate(query, ordered, store_name))

    @property
    def store(self) -> str:
        """The id of the store: its parts, and a digest of everything that tells it from others over the same parts."""
        name = "⋈".join(member_name(part) for part in self.intermediate.parts)
        content = repr(
            [
                [(part.store, part.ordinal, part.selection.sql, part.window_us) for part in self.intermediate.parts],
                *_content(self.intermediate.predicates),
            ]
        )
        return f"{name}~{blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()}"

    @property
    def window_us(self) -> int | None:
        """The largest window of its streams, None if one is unbounded."""
        relations = [self.query.relation(alias) for alias in self.aliases]
        return widest_window(relation.window_us for relation in relations if not relation.is_table)

    def key(self, alias: str, key: KeyColumn) -> KeyColumn:
        """Return a key of one of the relations as a key of the intermediate store."""
        return replace(key, part=self.aliases.index(alias))

    def outer_keys(self, others: Collection[str]) -> tuple[KeyColumn, ...]:
        """Return the keys by which the subset is joined with `others`, relations of the query outside it."""
        return tuple(
            self.key(alias, mine)
            for alias in self.aliases
            for other in others
            for mine in keys_of_right(between(self.query, other, alias))
        )

    def outer_operands(self, others: Collection[str]) -> Iterator[str | ValueColumn]:
        """Yield what residual predicates that also concern one of `others` read of the subset."""
        for part, alias in enumerate(self.aliases):
            for operand in values_read(self.query, alias, others):
                yield part_column(part, operand) if isinstance(operand, str) else replace(operand, part=part)


def _intermediate(query: Query, ordered: Sequence[str], store_name: StoreName) -> Intermediate:
    kinds = by_kind(
        predicate
        for left, right in combinations(range(len(ordered)), 2)
        for predicate in placed(between(query, ordered[left], ordered[right]), left, right)
    )
    return Intermediate(
        parts=tuple(member_of(query, alias, store_name, among=ordered) for alias in ordered),
        predicates=(*kinds.equalities, *kinds.bands, *kinds.residuals),
    )


def _content(predicates: Conjunction[Place[int]]) -> list[object]:
    """Return what a store's parts are joined on, for digests, as it was first written."""
    kinds = by_kind(predicates)
    return [
        [(each.left.at, each.left.name, each.right.at, each.right.name) for each in kinds.equalities],
        *(
            f"JoinedSpan(left={each.left.at}, left_key={each.left.name!r}, right={each.right.at}, "
            f"right_key={each.right.name!r}, low={each.low}, high={each.high})"
            for each in kinds.bands
        ),
        *(f"JoinedCheck({residual_content(each)})" for each in kinds.residuals),
    ]


def member_of(query: Query, alias: str, store_name: StoreName, *, among: Collection[str] | None = None) -> Member:
    """Return a relation of a query as a member; its ordinal counts occurrences `among` some aliases, default all."""
    relation = query.relation(alias)
    same = [other.alias for other in query.relations if other.source == relation.source]
    return Member(
        store=store_name(query.name, relation.source),
        ordinal=[other for other in same if among is None or other in among].index(alias),
        selection=selection_of(relation),
        window_us=window_of(relation),
    )


@dataclass(slots=True)
class _StoreDraft:
    """A store while its users are being asked."""

    subset: Subset
    columns: set[str] = field(default_factory=set)
    keys: dict[str, KeyColumn] = field(default_factory=dict)
    values: dict[str, ValueColumn] = field(default_factory=dict)

    def need_keys(self, keys: Iterable[KeyColumn]) -> None:
        self.keys.update((key.name, key) for key in keys)

    def need_operands(self, operands: Iterable[str | ValueColumn]) -> None:
        for operand in operands:
            if isinstance(operand, str):
                self.columns.add(operand)
            else:
                self.values[operand.name] = operand


def lay_out_intermediate_stores(draft: Draft) -> Draft:
    """Add the stores of intermediate results, with all that orders need from them later."""
    queries, store_name = draft.queries, draft.store_name
    by_name = {query.name: query for query in queries.joined}
    stores: dict[str, _StoreDraft] = {}
    # The largest first: what a store is filled from must hold what the store itself turns out to need.
    for order in sorted(draft.orders, key=lambda order: -sum(len(unit) for unit in order.units)):
        query = by_name[order.query]
        covered = frozenset(alias for unit in order.units for alias in unit)
        target = stores.get(Subset.of(query, covered, store_name).store) if order.fills else None
        for unit in order.units[1:]:
            if len(unit) > 1:
                subset = Subset.of(query, unit, store_name)
                store = stores.setdefault(subset.store, _StoreDraft(subset))
                store.need_keys(subset.outer_keys(covered - set(unit)))
                store.need_operands(subset.outer_operands(covered - set(unit)))
                if target is None:
                    _need_for_query(store, subset, queries)
                else:
                    _need_for_store(store, subset, Subset.of(query, covered, store_name), target)
    made = (_store(store, draft.options) for store in stores.values())
    return replace(draft, stores=tuple(sorted((*draft.stores, *made), key=lambda store: store.id)))


def _need_for_query(draft: _StoreDraft, subset: Subset, queries: CoveredQueries) -> None:
    """Add what the query reads after the join, and what tells its own tuples from those it shares."""
    for part, alias in enumerate(subset.aliases):
        draft.columns |= {part_column(part, column) for column in projected_columns(subset.query, alias)}
        for residual in queries.residual_filters(subset.query.name, ((alias, part),)):
            draft.columns |= {part_column(part, name) for name in residual.columns}


def _need_for_store(draft: _StoreDraft, subset: Subset, whole: Subset, target: _StoreDraft) -> None:
    """Add what the larger store keeps that is filled by way of this one."""
    for part, alias in enumerate(subset.aliases):
        place = whole.aliases.index(alias)
        draft.columns |= {part_column(part, name) for name in _own_columns(target, place)}
        draft.need_keys(subset.key(alias, key) for key in target.keys.values() if key.part == place)
        draft.need_operands(replace(value, part=part) for value in target.values.values() if value.part == place)


def _own_columns(target: _StoreDraft, place: int) -> Iterator[str]:
    prefix = part_column(place, "")
    return (column.removeprefix(prefix) for column in target.columns if column.startswith(prefix))


def _store(draft: _StoreDraft, options: PlanOptions) -> Store:
    query, aliases = draft.subset.query, draft.subset.aliases
    return Store(
        id=draft.subset.store,
        source=None,
        is_table=False,
        columns=tuple(sorted(draft.columns)),
        keys=tuple(draft.keys[name] for name in sorted(draft.keys)),
        requirements=(Requirement(selection=Selection(), keys=()),),
        indexes=(),
        partition_by=(),
        parallelism=max(options.parallelism_of(query.relation(alias).source) for alias in aliases),
        window_us=draft.subset.window_us,
        intermediate=draft.subset.intermediate,
        values=tuple(draft.values[name] for name in sorted(draft.values)),
    )


def settle_parallelism(draft: Draft) -> Draft:
    """Give intermediate stores as many partitions as what they keep asks for, if tasks have a size."""
    sizes = MemberSizes(stores=draft.stores, cardinality=draft.cardinality)

    def settled(store: Store) -> Store:
        if store.intermediate is None or draft.options.task_rows is None:
            return store
        return replace(store, parallelism=draft.options.partitions_of_join((), sizes.size(store.intermediate)))

    return replace(draft, stores=tuple(map(settled, draft.stores)))


def residual_content(residual: Residual[Place[Any]]) -> str:
    """Return a residual predicate, for digests, as it was first written."""
    formula = f"Formula(sql={residual.sql!r}, text={residual.text!r}, is_function={residual.is_function})"
    return f"formula={formula}, operands={tuple((place.at, place.name) for place in residual.operands)}"
