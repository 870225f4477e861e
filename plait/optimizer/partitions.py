"""How many partitions each source's store has, where that is to follow from what it keeps.

A store of few rows in many partitions makes every probe that does not know its partition many; a store of many rows in
few does not fit a task. So only the large ones are spread (paper 002, section V.C). The numbers are settled when a plan
is made; while a stream runs, plans come and go on the stores as they are.
"""

from __future__ import annotations

from dataclasses import replace

from plait.optimizer.estimate.budget import input_rows
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions, partitions
from plait.query.model import Query, Relation
from plait.stats.model import Statistics


def with_partitions(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> PlanOptions:
    """Return the options with a number of partitions for every source that has none of its own."""
    if options.task_rows is None:
        return options
    cardinality = Cardinality(statistics=statistics)
    relations: dict[str, list[Relation]] = {}
    for query in queries:
        for relation in query.relations:
            relations.setdefault(relation.source, []).append(relation)
    found = {
        source: partitions(input_rows(uses, cardinality), options.task_rows)
        for source, uses in sorted(relations.items())
    }
    found.update(options.parallelism_by_source)
    return replace(options, parallelism_by_source=tuple(sorted(found.items())))
