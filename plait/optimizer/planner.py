"""Find the strategy, let it plan, check what it made."""

from __future__ import annotations

from collections import Counter

from plait.errors import OptionError, UnsupportedQueryError
from plait.optimizer.join_graph import starts
from plait.optimizer.options import PlanOptions
from plait.optimizer.partitions import with_partitions
from plait.optimizer.strategies import STRATEGIES
from plait.plan.model import Plan
from plait.plan.validate import validate
from plait.query.model import Query
from plait.stats.model import Statistics


def plan(queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions) -> Plan:
    """Return the plan for all queries, the same whatever their order.

    Raises OptionError for an unknown strategy, a repeated query name or an unknown source, UnsupportedQueryError
    for a query without a stream, InvalidPlanError if the strategy is defective.
    """
    strategy = STRATEGIES.get(options.strategy)
    if strategy is None:
        raise OptionError(f"unknown strategy '{options.strategy}'; expected one of {', '.join(sorted(STRATEGIES))}")
    _check_queries(queries, options)
    made = strategy(queries, statistics, with_partitions(queries, statistics, options))
    validate(made, queries)
    return made


def _check_queries(queries: tuple[Query, ...], options: PlanOptions) -> None:
    for name, count in sorted(Counter(query.name for query in queries).items()):
        if count > 1:
            raise OptionError(f"{count} queries are named '{name}'; give each query its own name")
    for query in queries:
        for relation in query.relations:
            options.source(relation.source, reader=query.name)
        if not starts(query):
            raise UnsupportedQueryError(
                f"query '{query.name}' reads tables only, so nothing ever arrives that could complete a result; "
                "join at least one stream, or run it as a batch query"
            )
