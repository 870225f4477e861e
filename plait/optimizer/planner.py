"""Check what is asked, settle how many partitions there are, let the strategy plan, check what it made.

A store of few rows in many partitions makes every probe that does not know its partition many; a store of many rows in
few does not fit a task. So only the large ones are spread (paper 002, section V.C). The numbers are settled when a plan
is made; while a stream runs, plans come and go on the stores as they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from plait.errors import OptionError, UnsupportedQueryError
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.storage_budget import input_rows
from plait.optimizer.incremental.former import Former
from plait.optimizer.incremental.replan import can_go_on, replan
from plait.optimizer.options import PlanOptions, partitions
from plait.optimizer.strategies import STRATEGIES
from plait.plan.model import Plan
from plait.plan.strategy_names import strategy_name
from plait.plan.validate import validate
from plait.query.model import Query, Relation
from plait.stats.model import Statistics


def plan(
    queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions, former: Former | None = None
) -> Plan:
    """Return the plan for all queries, the same whatever their order. Beside a `former` one of the same strategy only
    what has changed is planned, unless that is too much.

    Raises OptionError for an unknown strategy, a repeated query name or an unknown source, UnsupportedQueryError
    for a query without a stream, InvalidPlanError if the strategy is defective.
    """
    strategy = STRATEGIES[strategy_name(options.strategy)]
    change = None if former is None else former.change_to(queries)
    if former is not None and change is not None and can_go_on(former, change, queries, options):
        if not change.count and former.plan.ranks == options.ranks:
            return former.plan
        _check_names(queries)
        _check_sources(change.added, options)
        parts = with_partitions(change.added, statistics, options) if change.added else options
        return replan(former, change, queries, statistics, parts)
    _check_names(queries)
    _check_sources(queries, options)
    made = strategy(queries, statistics, with_partitions(queries, statistics, options))
    validate(made, queries)
    return made


def _check_names(queries: tuple[Query, ...]) -> None:
    for name, count in sorted(Counter(query.name for query in queries).items()):
        if count > 1:
            raise OptionError(f"{count} queries are named '{name}'; give each query its own name")


def _check_sources(queries: tuple[Query, ...], options: PlanOptions) -> None:
    for query in queries:
        for relation in query.relations:
            options.source(relation.source, reader=query.name)
        if not query.starts:
            raise UnsupportedQueryError(
                f"query '{query.name}' reads tables only, so nothing ever arrives that could complete a result; "
                "join at least one stream, or run it as a batch query"
            )


def with_partitions(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> PlanOptions:
    """Return the options with a number of partitions for every source that has none of its own."""
    if options.task_rows is None:
        return options
    cardinality = Cardinality(statistics=statistics)
    relations: dict[str, list[Relation]] = {}
    for query in queries:
        for relation in query.relations:
            relations.setdefault(relation.source, []).append(relation)
    counts = {
        source: partitions(input_rows(uses, cardinality), options.task_rows)
        for source, uses in sorted(relations.items())
    }
    counts.update(options.parallelism_by_source)
    return replace(options, parallelism_by_source=tuple(sorted(counts.items())))
