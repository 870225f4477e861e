"""Lay out the intermediate stores that probe orders use: columns and keys that anybody needs from them later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from plait.optimizer.assemble.covering import Carried
from plait.optimizer.assemble.intermediates import Subset
from plait.optimizer.assemble.naming import StoreName
from plait.optimizer.assemble.probe_trees import widest
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import KeyColumn, Requirement, Selection, Store, ValueColumn, part_column
from plait.plan.relations import columns_of


@dataclass(slots=True)
class _Draft:
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


def gather_intermediates(
    carried: Carried, orders: Iterable[ProbeOrder], options: PlanOptions, store_name: StoreName
) -> tuple[Store, ...]:
    """Return the intermediate stores, ordered by id, without indexes and partitioning."""
    by_name = {query.name: query for query in carried.joined}
    found: dict[str, _Draft] = {}
    # The largest first: what a store is filled from must hold what the store itself turns out to need.
    for order in sorted(orders, key=lambda order: -sum(len(unit) for unit in order.units)):
        query = by_name[order.query]
        covered = frozenset(alias for unit in order.units for alias in unit)
        target = found.get(Subset.of(query, covered, store_name).store) if order.fills else None
        for unit in order.units[1:]:
            if len(unit) > 1:
                subset = Subset.of(query, unit, store_name)
                draft = found.setdefault(subset.store, _Draft(subset))
                draft.need_keys(subset.outer_keys(covered - set(unit)))
                draft.need_operands(subset.outer_operands(covered - set(unit)))
                if target is None:
                    _need_for_query(draft, subset, carried)
                else:
                    _need_for_store(draft, subset, Subset.of(query, covered, store_name), target)
    return tuple(_store(found[store_id], options) for store_id in sorted(found))


def _need_for_query(draft: _Draft, subset: Subset, carried: Carried) -> None:
    """Add what the query reads after the join, and what tells its own tuples from those it shares."""
    for part, alias in enumerate(subset.aliases):
        draft.columns |= {part_column(part, column) for column in columns_of(subset.query, alias)}
        for narrowing in carried.narrowings(subset.query.name, ((alias, part),)):
            draft.columns |= {part_column(part, name) for name in narrowing.columns}


def _need_for_store(draft: _Draft, subset: Subset, whole: Subset, target: _Draft) -> None:
    """Add what the larger store keeps that is filled by way of this one."""
    for part, alias in enumerate(subset.aliases):
        place = whole.aliases.index(alias)
        draft.columns |= {part_column(part, name) for name in _own_columns(target, place)}
        draft.need_keys(subset.key(alias, key) for key in target.keys.values() if key.part == place)
        draft.need_operands(replace(value, part=part) for value in target.values.values() if value.part == place)


def _own_columns(target: _Draft, place: int) -> Iterator[str]:
    prefix = part_column(place, "")
    return (column.removeprefix(prefix) for column in target.columns if column.startswith(prefix))


def _store(draft: _Draft, options: PlanOptions) -> Store:
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
        window_us=widest(query, aliases),
        intermediate=draft.subset.intermediate,
        values=tuple(draft.values[name] for name in sorted(draft.values)),
    )
