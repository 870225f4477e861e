"""The running example of the papers, for docstrings and tests: r(a), s(a, b), t(b), 100 tuples each in their windows.

|r ⋈ s| = 100 and |s ⋈ t| = 150 (paper 000, section V.2).
"""

from __future__ import annotations

from plait.optimizer.options import PlanOptions
from plait.plan.model import Plan
from plait.plan.strategy_names import StrategyName
from plait.plan.traversals import endings
from plait.query.model import (
    ColumnRef,
    DeclaredStatistics,
    JoinedExpression,
    Operand,
    OutputColumn,
    Query,
    Relation,
    SinkSpec,
    SourceExpression,
    Stream,
)
from plait.query.predicates import Equality
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics

_SECOND_US = 1_000_000
_DISTINCT = (("a", 100.0), ("b", 100 / 1.5), ("c", 100.0))


def example_query(name: str, *conditions: str) -> Query:
    """Return a query over streams with a window of one second, joined on conditions such as ``r.a = s.a``."""
    sides = [tuple(side.split(".") for side in condition.split(" = ")) for condition in conditions]
    sources = list(dict.fromkeys(source for pair in sides for source, _ in pair))
    output = tuple(OutputColumn(name=None, expression=_joined(source, "v")) for source in sources)
    text = f"SELECT * FROM {', '.join(sources)} WHERE {' AND '.join(conditions)}"
    return Query(
        name=name,
        relations=tuple(Relation(alias=source, source=source, window_us=_SECOND_US) for source in sources),
        predicates=tuple(Equality(left=_operand(*left), right=_operand(*right)) for left, right in sides),
        output=output,
        sink=SinkSpec(format="noop"),
        text=text,
        spark_text=text,
    )


def example_options(strategy: StrategyName, *rates: tuple[str, float], parallelism: int = 1) -> PlanOptions:
    """Return options for streams of these rates; by default r, s, t and u at 100 tuples a second."""
    chosen = rates or tuple((source, 100.0) for source in "rstu")
    return PlanOptions(
        strategy=strategy,
        sources=tuple(
            Stream(
                name=source,
                time="ts",
                window_us=_SECOND_US,
                declared=DeclaredStatistics(
                    rate_rows_per_s=rate, distinct=(("a", 100.0), ("b", 100 / 1.5), ("c", 100.0))
                ),
            )
            for source, rate in chosen
        ),
        parallelism=parallelism,
    )


def example_statistics(options: PlanOptions) -> Statistics:
    """Return what the options' sources declare."""
    return declared_statistics(options.sources)


def probe_orders(plan: Plan) -> tuple[str, ...]:
    """Return the probe orders of a plan as ``query: r s t``, sorted."""
    return tuple(sorted(f"{output.query}: {' '.join(output.aliases)}" for _, _, output in endings(plan)))


def _operand(source: str, column: str) -> Operand:
    return Operand(relation=source, expression=SourceExpression(sql=f"`{column}`", columns=(column,)), type="bigint")


def _joined(source: str, column: str) -> JoinedExpression:
    return JoinedExpression(sql=f"`{source}.{column}`", columns=(ColumnRef(relation=source, column=column),))
