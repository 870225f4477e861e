"""What intermediate stores may take: the storage budget less what the inputs take in any case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.options import PlanOptions
from plait.plan.relations import keys_of, projected_columns, selection_of, values_read, window_of
from plait.query.model import Query, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageBudget:
    """`left` rows or bytes for all intermediate stores together, beside the `inputs`; `width_bytes` of one row by
    source.
    """

    left: float
    inputs: float
    in_bytes: bool
    width_bytes: Mapping[str, float]

    def size(self, rows: float, bytes: float) -> float:
        """Return what a store of so many rows and bytes takes of `left`."""
        return bytes if self.in_bytes else rows


def storage_budget(queries: tuple[Query, ...], cardinality: Cardinality, options: PlanOptions) -> StorageBudget:
    """Return what the options leave for intermediate stores of these queries."""
    relations: dict[str, list[Relation]] = {}
    columns: dict[str, set[str]] = {}
    for query in queries:
        for relation in query.relations:
            relations.setdefault(relation.source, []).append(relation)
            needed = columns.setdefault(relation.source, set())
            needed.update(projected_columns(query, relation.alias))
            needed.update(key.name for key in keys_of(query, relation.alias))
            operands = values_read(query, relation.alias)
            needed.update(each if isinstance(each, str) else each.name for each in operands)
    assumed = cardinality.assumed
    widths = {
        source: assumed.column_bytes * (len(columns[source]) + (not relations[source][0].is_table))
        for source in sorted(relations)
    }
    rows = {source: input_rows(uses, cardinality) for source, uses in relations.items()}
    if options.storage_bytes is not None:
        taken = sum(rows[source] * widths[source] for source in sorted(rows))
        left = max(options.storage_bytes - taken, 0.0) * options.storage_share
        return StorageBudget(left=left, inputs=taken, in_bytes=True, width_bytes=widths)
    limit = math.inf if options.storage_rows is None else options.storage_rows
    taken = sum(rows[source] for source in sorted(rows))
    left = max(limit - taken, 0.0) * options.storage_share if limit < math.inf else limit
    return StorageBudget(left=left, inputs=taken, in_bytes=False, width_bytes=widths)


def input_rows(relations: list[Relation], cardinality: Cardinality) -> float:
    """Return the rows a source's store keeps: the widest window, the sum of the selectivities."""
    selections = {selection_of(relation) for relation in relations}
    passing = sum(
        cardinality.selectivity(relations[0].source, each) for each in sorted(selections, key=lambda s: s.sql)
    )
    rows = max(
        cardinality.rows(Extent(source=each.source, is_table=each.is_table, window_us=window_of(each)))
        for each in relations
    )
    return rows * min(passing, 1.0)
